"""What goes in comes out, whatever it is called."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evermat.core.errors import EvermatError, StateError
from evermat.store import Part, Store
from evermat.store.delta_table import mergeable
from evermat.store.names import column_names, folder_name
from tests.store.models import ALL_TYPES, NULLARY, PAIRS, UNSIGNED, contents, entry, minus, plus, rows_of, table


def test_all_types(tmp_path: Path):
    facts = [
        ("", -(2**63), UNSIGNED, math.inf),
        ("a\tb\nä\x00𝄞", 2**63 - 1, UNSIGNED - 1, -1.5e-300),
        ("x" * 10_000, 0, UNSIGNED - UNSIGNED, 0.0),
    ]
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"r": plus(ALL_TYPES, *facts)}, {"r": ALL_TYPES})
    with Store.open(tmp_path / "state") as store:
        assert contents(store, 1, "r") == dict.fromkeys(facts, ("explicit", 1, None))
        assert store.schema(1, "r") == ALL_TYPES


def test_nullary(tmp_path: Path):
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"on": plus(NULLARY, ())}, {"on": NULLARY, "off": NULLARY})
        store.commit(entry(), {"on": minus(NULLARY, ()), "off": plus(NULLARY, ())}, {"on": NULLARY, "off": NULLARY})
        assert [len(contents(store, n, name)) for n in (1, 2) for name in ("on", "off")] == [1, 0, 0, 1]


def test_dictionaries_large_strings_and_missing_columns(tmp_path: Path):
    schema = pa.schema([("x", pa.large_string()), ("y", pa.dictionary(pa.int32(), pa.string()))])
    rows = pa.table(
        {
            "x": pa.array(["a", "b"], pa.large_string()),
            "y": pa.array(["c", "c"]).dictionary_encode(),
            "_origin": pa.array(["derived", "derived"]).dictionary_encode(),
        }
    )
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"r": rows}, {"r": schema})
        assert contents(store, 1, "r") == dict.fromkeys([("a", "c"), ("b", "c")], ("derived", None, None))


def test_a_large_relation_has_several_files(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("evermat.store.chunked_write.PART_ROWS", 100)
    facts = [("a", n) for n in range(1050)]
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"edge": plus(PAIRS, *facts)}, {"edge": PAIRS})
        assert [found.num_rows for _, found in store.read(1, "edge")] == [100] * 10 + [50]
        assert list(contents(store, 1, "edge")) == facts
        assert not store.needs_snapshot("edge")


def test_rows_that_are_streamed_to_disk(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("evermat.store.data_files._SMALL", 0)
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"edge": plus(PAIRS, ("a", 1))}, {"edge": PAIRS})
        assert list(contents(store, 1, "edge")) == [("a", 1)]


WEIRD = ["Edge", "edge", "EDGE", "..", "../../x", "/", "", "a/b", "a b", "http://e.org/#x", "x" * 1000, "y" * 1000, "ä",
         "\x00", "_", "-rf", "edge-2", "%2e", "a\nb", "CON"]  # fmt: skip


def test_weird_relation_names(tmp_path: Path):
    schemas = dict.fromkeys(WEIRD, PAIRS)
    with Store.create(tmp_path / "s" / "state") as store:
        store.commit(entry(), {name: plus(PAIRS, (name, n)) for n, name in enumerate(WEIRD)}, schemas)
        store.commit(entry(), {name: plus(PAIRS, (name, -1)) for name in WEIRD}, schemas)
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
    assert [p.name for p in (tmp_path / "s").iterdir()] == ["state"]
    folders = [p.name for p in (tmp_path / "s" / "state" / "relations").iterdir()]
    assert len({folder.lower() for folder in folders}) == len(WEIRD)
    assert all(0 < len(folder) <= 80 for folder in folders)
    with Store.open(tmp_path / "s" / "state") as store:
        assert list(store.latest.relations) == WEIRD
        for n, name in enumerate(WEIRD):
            assert list(contents(store, 2, name)) == [(name, n), (name, -1)]


@pytest.mark.parametrize("name", ["with space", "100%", "ha#sh", "que?stion", "ünï", "bra[c]ket", "=", "a;b'c\"d"])
def test_weird_places(tmp_path: Path, name: str):
    place = tmp_path / name / "state"
    with Store.create(place) as store:
        store.commit(entry(), {"edge": plus(PAIRS, ("a", 1))}, {"edge": PAIRS})
        store.commit(entry(), {"edge": plus(PAIRS, ("a", 2))}, {"edge": PAIRS})
        store.compact({"edge": plus(PAIRS, ("a", 1), ("a", 2))}, None)
        store.vacuum(1)
    with Store.open(place) as store:
        assert len(contents(store, 2, "edge")) == 2


@pytest.mark.parametrize(("name", "what"), [("a%20b", "`%20`"), ("a\\b", "`\\`"), ("a\nb", "a control character")])
def test_places_that_delta_misreads(tmp_path: Path, name: str, what: str):
    with pytest.raises(StateError, match="a state cannot be written at") as raised:
        Store.create(tmp_path / name)
    assert f"the path contains {what}" in str(raised.value)
    assert not list(tmp_path.iterdir())


def test_column_names():
    assert column_names(["x", "y"]) == ["x", "y"]
    assert column_names(["x", "X", "x_2"]) == ["x", "X_3", "x_2"]
    assert column_names(["_op", "_VERSION", "_origin"]) == ["_op_2", "_VERSION_2", "_origin_2"]
    assert column_names(["", "a b", "a,b", "?x"]) == ["column", "a_b", "a_b_2", "_x"]
    assert column_names([]) == []


def test_columns_called_like_ours(tmp_path: Path):
    schema = pa.schema([("_op", pa.string()), ("_version", pa.int64()), ("_OP", pa.string())])
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"r": plus(schema, ("a", 1, "b"))}, {"r": schema})
        assert list(contents(store, 1, "r")) == [("a", 1, "b")]
        assert store.schema(1, "r").names == ["_op_2", "_version_2", "_OP_3"]


def test_folder_names():
    assert folder_name("x" * 200, []) == "x" * 80
    assert folder_name("x" * 200, ["X" * 80]) == "x" * 78 + "-2"
    assert folder_name("", ["relation"]) == "relation-2"


def test_what_a_version_says(tmp_path: Path):
    with Store.create(tmp_path / "state") as store:
        first = store.commit(
            entry(program="p(1).\n", stats={"rounds": 3}, counters=[1, {"x": None}], inserted=2, deleted=1, facts=7),
            {},
            {"p": PAIRS},
        )
        second = store.commit(entry(program="ä", batch="17"), {}, {"p": PAIRS})
    with Store.open(tmp_path / "state") as store:
        assert store.versions() == [first, second]
        assert store.latest == second
        assert (first.stats, first.counters, first.batch) == ({"rounds": 3}, [1, {"x": None}], None)
        assert (first.inserted, first.deleted, first.facts, first.seconds) == (2, 1, 7, 0.25)
        assert second.batch == "17"
        assert second.time >= first.time
        assert [store.program(n) for n in (1, 2)] == ["p(1).\n", "ä"]


def test_relations_come_and_go(tmp_path: Path):
    numbers = pa.schema([("x", pa.int64()), ("y", pa.int64())])
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"a": plus(PAIRS, ("x", 1)), "b": plus(PAIRS, ("y", 2))}, {"a": PAIRS, "b": PAIRS})
        store.commit(entry(), {"b": minus(PAIRS, ("y", 2))}, {"a": PAIRS}, dropped=["b"])
        store.commit(entry(), {"a": plus(numbers, (7, 8))}, {"a": numbers})  # other types
        store.commit(entry(), {"b": plus(PAIRS, ("z", 3))}, {"a": numbers, "b": PAIRS})
        assert [v.relations for v in store.versions()] == [("a", "b"), ("a",), ("a",), ("a", "b")]
        with pytest.raises(KeyError):
            store.read(2, "b")
        feed = [(n, name, [row[-1] + str(row[0]) for row in rows_of(t)]) for n, name, t in store.changes(1, 4)]
        assert feed == [
            (1, "a", ["+x"]),
            (1, "b", ["+y"]),
            (2, "b", ["-y"]),
            (3, "a", ["+7"]),
            (4, "b", ["+z"]),
        ]
    with Store.open(tmp_path / "state") as store:
        store.lock()
        assert [list(contents(store, n, "a")) for n in (1, 2, 3, 4)] == [[("x", 1)], [("x", 1)], [(7, 8)], [(7, 8)]]
        assert list(contents(store, 4, "b")) == [("z", 3)]
        assert len(list((tmp_path / "state" / "relations").iterdir())) == 4
        store.vacuum(1)
        assert len(list((tmp_path / "state" / "relations").iterdir())) == 2
        assert list(contents(store, 4, "b")) == [("z", 3)]


def test_a_relation_that_is_forgotten_is_a_mistake(tmp_path: Path):
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {}, {"a": PAIRS})
        with pytest.raises(ValueError, match="`a` is neither"):
            store.commit(entry(), {}, {})
        with pytest.raises(ValueError, match="`c` is neither"):
            store.commit(entry(), {"c": plus(PAIRS)}, {"a": PAIRS})


def test_changes_of_origin_are_not_in_the_feed(tmp_path: Path):
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"a": plus(PAIRS, ("x", 1))}, {"a": PAIRS})
        store.commit(entry(), {"a": table(PAIRS, [("=", ("x", 1), ("derived", 4, 5))])}, {"a": PAIRS})
        assert contents(store, 2, "a") == {("x", 1): ("derived", 4, 5)}
        assert [n for n, _, _ in store.changes(1, 2)] == [1]


def test_needs_snapshot(tmp_path: Path):
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"a": plus(PAIRS, *(("x", n) for n in range(50_000)))}, {"a": PAIRS})
        assert not store.needs_snapshot("a")
        store.commit(entry(), {"a": plus(PAIRS, *(("y", n) for n in range(20_000)))}, {"a": PAIRS})
        assert not store.needs_snapshot("a")
        store.commit(entry(), {"a": plus(PAIRS, *(("z", n) for n in range(6_000)))}, {"a": PAIRS})
        assert store.needs_snapshot("a")


@pytest.mark.slow
def test_many_versions(tmp_path: Path, monkeypatch):
    # Enough for checkpoints, and for files of two levels to be merged.
    monkeypatch.setattr("evermat.store.delta_table.FAN", 4)
    monkeypatch.setattr("evermat.store.delta_table.CHECKPOINT_EVERY", 5)
    with Store.create(tmp_path / "state") as store:
        for number in range(1, 101):
            store.commit(entry(batch=str(number)), {"a": plus(PAIRS, ("x", number))}, {"a": PAIRS})
        files = [file for file in (tmp_path / "state").rglob("*") if file.is_file()]
        assert len(files) < 100
    with Store.open(tmp_path / "state") as store:
        assert [v.batch for v in store.versions()] == [str(n) for n in range(1, 101)]
        assert [len(contents(store, n, "a")) for n in (1, 15, 100)] == [1, 15, 100]
        assert [(n, t.num_rows) for n, _, t in store.changes(1, 100)] == [(n, 1) for n in range(1, 101)]
        store.lock()
        store.compact({"a": plus(PAIRS, *(("x", n) for n in range(1, 101)))}, "counters")
        assert store.latest.counters == "counters"
        files, size = store.vacuum(10)
        assert files > 5
        assert size > 0
        assert [len(contents(store, n, "a")) for n in (91, 95, 100)] == [91, 95, 100]
        store.commit(entry(), {"a": plus(PAIRS, ("x", 101))}, {"a": PAIRS})
        assert len(contents(store, 101, "a")) == 101
        assert [(n, t.num_rows) for n, _, t in store.changes(91, 101)] == [(n, 1) for n in range(91, 102)]


@pytest.mark.parametrize(("sizes", "merged"), [
    ([(0, 1)] * 3, 0), ([(0, 1)] * 4, 4), ([(0, 5000), *[(0, 1)] * 3], 3), ([(0, 10**6), *[(0, 1)] * 3], 0),
    ([(1, 9)] * 3 + [(0, 1)] * 4, 7), ([(1, 9)] * 2 + [(0, 1)] * 4, 4), ([(2, 9), (1, 9)] + [(0, 1)] * 4, 4),
])  # fmt: skip
def test_which_files_are_merged(monkeypatch, sizes, merged: int):
    monkeypatch.setattr("evermat.store.delta_table.FAN", 4)
    parts = [Part(str(n), 0, rows, n + 1, n + 1, level) for n, (level, rows) in enumerate(sizes)]
    assert mergeable(parts) == (parts[-merged:] if merged else [])


def test_a_store_without_a_version_is_never_seen(tmp_path: Path):
    with Store.create(tmp_path / "state") as store, pytest.raises(EvermatError, match="no version yet"):
        store.version(1)
    assert not list(tmp_path.iterdir())


def test_size_on_disk(tmp_path: Path):
    chance = random.Random(1)
    facts = sorted({(f"node{chance.randrange(5000)}", chance.randrange(10**6)) for _ in range(60_000)})
    rows = table(PAIRS, [("+", fact, ("derived", chance.randrange(1, 4), chance.randrange(3))) for fact in facts])
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"edge": rows}, {"edge": PAIRS})
    pq.write_table(rows.select(["x", "y"]), tmp_path / "plain.parquet", compression="zstd")
    size = sum(file.stat().st_size for file in (tmp_path / "state").rglob("*") if file.is_file())
    assert size < 1.5 * (tmp_path / "plain.parquet").stat().st_size


@pytest.mark.slow
def test_strings_that_do_not_repeat(tmp_path: Path):
    # Enough of them that Parquet gives up its dictionary unless it is handed one; either way they must read the same.
    schema = pa.schema([("x", pa.string()), ("y", pa.string()), ("z", pa.string())])
    n = 150_000
    distinct = pa.array([f"http://example.org/resource/{i:012}" for i in range(n)])
    rows = pa.table(
        {
            "x": distinct,
            "y": pa.array([f"y{i % 7}" for i in range(n)]),
            "z": distinct.dictionary_encode(),
            "_origin": pa.repeat("derived", n),
        }
    )
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {"r": rows}, {"r": schema})
        ((_, found),) = store.read(1, "r")
        for name in schema.names:
            assert pa.types.is_dictionary(found[name].type)
            assert found[name].cast(pa.string()).equals(rows[name].cast(pa.string()))
