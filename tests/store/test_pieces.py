"""Rows that come in pieces are stored as if they had come at once, and the files behind a version have names."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evermat.core.error_catalogue import CANNOT_WRITE, STATE_DAMAGED, VERSION_NOT_KEPT
from evermat.core.errors import ResourceError, StateError
from evermat.store import Store
from evermat.store.data_files import PartName, read_current, stored_columns, table_schema, write_part
from tests.store.models import (
    NULLARY,
    PAIRS,
    SCHEMAS,
    contents,
    entry,
    everything,
    in_pieces,
    minus,
    plus,
    rows_of,
    small_state,
)

FACTS = [(f"n{n % 7}", n) for n in range(1050)]


def tree(path: Path) -> dict[str, bytes | None]:
    """All that there is in a folder."""
    return {str(p.relative_to(path)): p.read_bytes() if p.is_file() else None for p in path.rglob("*")}


def in_order(store: Store, version: int, name: str) -> list[tuple]:
    return [row for _, found in store.read(version, name) for row in rows_of(found)]


@pytest.mark.parametrize("size", [1, 7, 99, 100, 101, 350, 5000])
def test_pieces_equal_one_table(tmp_path: Path, monkeypatch, size: int):
    monkeypatch.setattr("evermat.store.chunked_write.PART_ROWS", 100)
    monkeypatch.setattr("evermat.store.delta_table.LARGE_ROWS", 10)
    with Store.create(tmp_path / "one") as one, Store.create(tmp_path / "many") as many:
        for facts in (FACTS, FACTS[:250]):  # a snapshot and a change
            rows = plus(PAIRS, *facts)
            one.commit(entry(), {"edge": rows}, {"edge": PAIRS})
            many.commit(entry(), {"edge": in_pieces(rows, size)}, {"edge": PAIRS})
        assert in_order(many, 2, "edge") == in_order(one, 2, "edge")
        counts = [found.num_rows for _, found in many.read(1, "edge")]
        assert sum(counts) == len(FACTS)
        assert max(counts) <= 100
        assert len(counts) <= 2 * len(FACTS) / 100 + 1  # two neighbours together are more than one file takes
        assert [(n, name) for n, name, _ in many.changes(2, 2)] == [(2, "edge")] * len(
            [part for part in many.parts(2, "edge")[1] if part.last == 2]
        )


def test_small_pieces_share_a_file(tmp_path: Path, monkeypatch):
    rows = plus(PAIRS, *FACTS)
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"edge": in_pieces(rows, 1)}, {"edge": PAIRS})
        assert [found.num_rows for _, found in store.read(1, "edge")] == [1050]
        monkeypatch.setattr("evermat.store.chunked_write._JOINED_BYTES", 0)
        store.commit(entry(), {"edge": in_pieces(rows, 350)}, {"edge": PAIRS})
        assert [found.num_rows for n, found in store.read(2, "edge") if n == 2] == [350] * 3
        assert in_order(store, 2, "edge") == 2 * in_order(store, 1, "edge")


def test_lists_and_empty_pieces(tmp_path: Path):
    rows = plus(PAIRS, *FACTS)
    with Store.create(tmp_path / "state") as store:
        pieces = [rows.slice(0, 0), rows.slice(0, 3), rows.slice(3, 0), rows.slice(3)]
        store.commit(entry(), {"edge": pieces, "on": iter([plus(NULLARY, ())])}, {"edge": PAIRS, "on": NULLARY})
        assert list(contents(store, 1, "edge")) == FACTS
        assert len(contents(store, 1, "on")) == 1


def test_pieces_of_different_encodings(tmp_path: Path):
    def coded(prefix: str, indices: pa.DataType) -> pa.Table:
        values = pa.array([f"{prefix}{n}" for n in range(100)])
        column = pa.DictionaryArray.from_arrays(pa.array(range(100), indices), values)
        return pa.table({"x": column, "y": column, "_origin": pa.repeat("derived", 100).dictionary_encode()})

    plain = pa.table({"x": pa.array(["p"], pa.large_string()), "y": ["q"], "_op": ["+"], "_origin": ["derived"]})
    schema = pa.schema([("x", pa.string()), ("y", pa.string())])
    narrow = [coded(prefix, pa.int8()) for prefix in "abc"]  # together more values than the indices can count
    right = [(f"{prefix}{n}",) * 2 for prefix in "abc" for n in range(100)]
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"r": narrow}, {"r": schema})
        ((_, found),) = store.read(1, "r")
        assert list(contents(store, 1, "r")) == right
        assert len(found["x"].chunk(0).dictionary) == 300
        store.commit(entry(), {"r": [plain, coded("d", pa.int32()), plain]}, {"r": schema})
        ((_, before), (_, after)) = store.read(2, "r")
        wanted = [("p", "q"), *((f"d{n}",) * 2 for n in range(100)), ("p", "q")]
        assert [row[:2] for row in rows_of(after)] == wanted
        assert before.equals(found)


@pytest.mark.parametrize("none", [[], [plus(PAIRS)], [plus(PAIRS), plus(PAIRS)]])
def test_no_pieces(tmp_path: Path, none: list[pa.Table]):
    schemas = {"a": PAIRS, "b": PAIRS}
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"a": iter(none)}, schemas)  # a table without facts
        assert [contents(store, 1, name) for name in schemas] == [{}, {}]
        store.commit(entry(), {"a": plus(PAIRS, ("x", 1)), "b": plus(PAIRS, ("y", 1))}, schemas)
        relations = tree(tmp_path / "state" / "relations")
        store.commit(entry(), {"a": iter(none)}, schemas)  # no change
        assert tree(tmp_path / "state" / "relations") == relations
        store.commit(entry(), {"a": iter(none), "b": iter(none)}, {"a": PAIRS}, dropped=["b"])
        assert tree(tmp_path / "state" / "relations") == relations
        assert [(n, name) for n, name, _ in store.changes(1, 4)] == [(2, "a"), (2, "b")]
        store.compact({"a": iter(none)}, None)  # says that there are no facts
        assert contents(store, 4, "a") == {}
    with Store.open(tmp_path / "state") as store:
        assert [v.relations for v in store.versions()] == [("a", "b")] * 3 + [("a",)]
        assert list(contents(store, 3, "b")) == [("y", 1)]
        store.lock()
        store.commit(entry(), {}, {"a": PAIRS})
        store.vacuum(1)
        assert [p.name for p in (tmp_path / "state" / "relations").iterdir()] == ["a"]


def test_a_dropped_relation_in_pieces(tmp_path: Path):
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"a": plus(PAIRS, ("x", 1), ("x", 2))}, {"a": PAIRS})
        store.commit(entry(), {"a": in_pieces(minus(PAIRS, ("x", 1), ("x", 2)), 1)}, {}, dropped=["a"])
        assert [(n, row[-1]) for n, _, t in store.changes(1, 2) for row in rows_of(t)] == [
            (1, "+"),
            (1, "+"),
            (2, "-"),
            (2, "-"),
        ]


def failing(error: BaseException) -> Iterator[pa.Table]:
    for n in range(10):
        yield plus(PAIRS, ("f", n))
    raise error


ERRORS = [RuntimeError("no more"), OSError(errno.EIO, "the source is gone"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_pieces_that_fail(tmp_path: Path, monkeypatch, error: BaseException):
    monkeypatch.setattr("evermat.store.chunked_write.PART_ROWS", 1)  # so that files are written before it fails
    path = tmp_path / "state"
    right = small_state(path)
    with Store.open(path) as store:
        store.lock()
        before = tree(path)
        changes = {"edge": plus(PAIRS, ("n", 5)), "path": failing(error), "new": plus(PAIRS, ("n", 5))}
        with pytest.raises(type(error)) as raised:
            store.commit(entry(), changes, SCHEMAS | {"new": PAIRS})
        assert raised.value is error
        assert tree(path) == before
        with pytest.raises(type(error)):
            store.compact({"edge": failing(error)}, None)
        assert tree(path) == before
        assert everything(store) == right
        store.commit(entry(), {"path": plus(PAIRS, ("n", 5))}, SCHEMAS)
    with Store.open(path) as store:
        assert contents(store, 5, "path").keys() == {*right[4]["path"], ("n", 5)}


def test_pieces_that_fail_in_a_new_state(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("evermat.store.chunked_write.PART_ROWS", 1)
    with Store.create(tmp_path / "state") as store:
        (temporary,) = tmp_path.iterdir()
        before = tree(temporary)
        with pytest.raises(RuntimeError, match="no more"):
            store.commit(entry(), {"edge": plus(PAIRS, ("a", 1)), "path": failing(RuntimeError("no more"))}, SCHEMAS)
        assert tree(temporary) == before
        assert not (tmp_path / "state").exists()
        store.commit(entry(), {"edge": plus(PAIRS, ("a", 1))}, SCHEMAS)
        assert everything(store)[1] == {"edge": {("a", 1): ("explicit", 1, None)}, "path": {}, "on": {}}


def test_pieces_are_no_longer_asked_for_when_the_disk_is_full(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("evermat.store.chunked_write.PART_ROWS", 1)
    path = tmp_path / "state"
    small_state(path)
    asked, closed = [], []

    def pieces() -> Iterator[pa.Table]:
        try:
            for n in range(1000):
                asked.append(n)
                yield plus(PAIRS, ("f", n))
        finally:
            closed.append(True)

    def full(folder: Path, name: PartName, number: int, rows: pa.Table):
        if number == 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write_part(folder, name, number, rows)

    monkeypatch.setattr("evermat.store.chunked_write.write_part", full)
    with Store.open(path) as store:
        store.lock()
        before = tree(path)
        with pytest.raises(ResourceError, match="No space left on device") as raised:
            store.commit(entry(), {"edge": pieces()}, SCHEMAS)
        assert raised.value.problems[0].kind is CANNOT_WRITE
        assert 6 <= len(asked) < 100
        assert closed == [True]
        assert tree(path) == before


def test_few_pieces_are_held_at_a_time(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("evermat.store.chunked_write.PART_ROWS", 10)
    guard = threading.Lock()
    held, most = [0], [0]
    open_now: list[str] = []
    threads: set[int] = set()

    def pieces(name: str) -> Iterator[pa.Table]:
        assert not open_now  # one after the other
        open_now.append(name)
        for n in range(5):
            threads.add(threading.get_ident())
            with guard:
                held[0] += 10
                most[0] = max(most[0], held[0])
            yield plus(PAIRS, *((name, 10 * n + i) for i in range(10)))
        open_now.remove(name)

    def slowly(folder: Path, name: PartName, number: int, rows: pa.Table):
        time.sleep(0.002)
        part = write_part(folder, name, number, rows)
        with guard:
            held[0] -= rows.num_rows
        return part

    monkeypatch.setattr("evermat.store.chunked_write.write_part", slowly)
    names = [f"r{n}" for n in range(20)]
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {name: pieces(name) for name in names}, dict.fromkeys(names, PAIRS))
        assert all(len(contents(store, 1, name)) == 50 for name in names)
    assert threads == {threading.get_ident()}
    assert held == [0]
    assert most[0] <= 10 * 5  # three on their way, one that waits for its neighbour, and the neighbour


def test_compaction_from_pieces_that_the_store_reads(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("evermat.store.chunked_write.PART_ROWS", 100)
    with Store.create(tmp_path / "state") as store:
        for start in range(0, 1050, 350):
            store.commit(entry(), {"edge": plus(PAIRS, *FACTS[start : start + 350])}, {"edge": PAIRS})
        store.compact({"edge": (found for _, found in store.read(3, "edge"))}, None)
        assert {part.last for part in store.parts(3, "edge")[1]} == {3}
        assert list(contents(store, 3, "edge")) == FACTS
        store.commit(entry(), {"edge": minus(PAIRS, FACTS[0])}, {"edge": PAIRS})
        assert list(contents(store, 4, "edge")) == FACTS[1:]


# --- files ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_files_are_what_is_read(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("evermat.store.chunked_write.PART_ROWS", 3)
    monkeypatch.setattr("evermat.store.delta_table.FAN", 2)
    path = tmp_path / "state"
    small_state(path, 6)
    with Store.open(path) as store:
        store.lock()
        store.commit(entry(), {"edge": plus(PAIRS, *FACTS[:10]), "on": minus(NULLARY, ())}, SCHEMAS)
    with Store.open(path) as store:
        for version in range(1, 8):
            for name, schema in SCHEMAS.items():
                folder, parts = store.parts(version, name)
                columns = stored_columns(schema)
                assert folder.is_absolute()
                assert parts == sorted(parts, key=lambda part: part.order)
                found = [(min(part.last, version), read_current(folder, part, columns, version)) for part in parts]
                assert [(number, [row[:-1] for row in rows_of(rows)]) for number, rows in found] == [
                    (number, rows_of(rows)) for number, rows in store.read(version, name)
                ]
                assert all(rows.schema.names == table_schema(columns).names for _, rows in found)
        found = {(part.snapshot, part.first, part.last) for part in store.parts(7, "edge")[1]}
        assert found == {(True, 3, 3), (False, 4, 5), (False, 6, 6), (False, 7, 7)}
        assert store.parts(1, "path")[1] == []
        with pytest.raises(KeyError):
            store.parts(1, "nothing")


def test_files_after_a_vacuum_by_another(tmp_path: Path):
    path = tmp_path / "state"
    right = small_state(path)
    with Store.open(path) as reader, Store.open(path) as writer:
        before = reader.parts(4, "path")
        assert len(before[1]) == 3
        writer.lock()
        writer.compact({"edge": plus(PAIRS, *right[4]["edge"])}, None)
        assert reader.parts(4, "path") == before
        writer.vacuum(1)
        folder, (part,) = reader.parts(4, "path")
        assert (part.first, part.last) == (2, 4)
        assert {row[:2] for row in rows_of(pq.ParquetFile(folder / part.path).read())} == set(right[4]["path"])
        for number in (1, 2):
            with pytest.raises(StateError) as raised:
                reader.parts(number, "edge")
            assert raised.value.problems[0].kind is VERSION_NOT_KEPT


def test_a_file_that_is_missing(tmp_path: Path):
    path = tmp_path / "state"
    small_state(path)
    with Store.open(path) as store:
        folder, parts = store.parts(4, "edge")
        file = folder / parts[0].path
        file.unlink()
        with pytest.raises(StateError, match="it is missing") as raised:
            store.parts(4, "edge")
        assert raised.value.problems[0].kind is STATE_DAMAGED
        assert str(file) in str(raised.value)
