"""What a user reads when a folder is not what it should be, or somebody else is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from evermat.core import error_catalogue as errors
from evermat.core.errors import EvermatError, ProgramError, StateError
from evermat.store import Store, open_reader
from tests.store.models import PAIRS, SCHEMAS, contents, entry, everything, plus, small_state


def told(path: Path, action=Store.open) -> str:
    with pytest.raises(StateError) as raised:
        action(path)
    assert raised.value.exit_code == 5
    return raised.value.problems[0].message


def test_not_a_state(tmp_path: Path):
    missing, empty, full, file = tmp_path / "m", tmp_path / "e", tmp_path / "f", tmp_path / "x"
    empty.mkdir()
    full.mkdir()
    (full / "letter.txt").write_text("dear")
    file.write_text("{}")
    for path in (missing, empty, full, file):
        assert told(path) == f"`{path}` is not a state of evermat"
    for path in (full, file):
        assert told(path, Store.create) == f"`{path}` is not a state of evermat"
    assert (full / "letter.txt").read_text() == "dear"
    assert {p.name for p in tmp_path.iterdir()} == {"e", "f", "x"}
    small_state(empty)  # in place of an empty folder
    assert told(empty, Store.create) == f"`{empty}` already holds a state"


def test_another_format(tmp_path: Path):
    path = tmp_path / "state"
    small_state(path, 1)
    (path / "evermat.json").write_text('{"format": 3, "kind": "evermat state"}\n')
    assert told(path) == (f"the state `{path}` has the format 3, but this version of evermat knows only the format 2")
    assert told(path, open_reader) == (
        f"the state `{path}` has the format 3, but this version of evermat knows only the format 1 and 2"
    )
    for text in ("", "[]", "{", '{"format": 1}', '{"format": true, "kind": "evermat state"}', "\xff"):
        (path / "evermat.json").write_bytes(text.encode("latin-1"))
        assert told(path).startswith(f"`{path / 'evermat.json'}` is damaged: it ")


def test_versions_that_are_not_there(tmp_path: Path):
    path = tmp_path / "state"
    small_state(path, 5)
    with Store.open(path) as store:
        store.lock()
        for number in (0, -1, 6, 7):
            assert told(path, lambda _, n=number: store.version(n)) == (
                f"there is no version {number}: the state has versions 1 to 5"
            )
        store.vacuum(4)
        assert told(path, lambda _: store.version(1)) == "version 1 is no longer kept: the state has versions 2 to 5"
        assert told(path, lambda _: store.read(7, "edge")) == "there is no version 7: the state has versions 2 to 5"
        assert told(path, lambda _: list(store.changes(1, 3))) == (
            "version 1 is no longer kept: the state has versions 2 to 5"
        )
        store.vacuum(1)
        assert told(path, lambda _: store.version(9)) == "there is no version 9: the state has only version 5"
        for keep in (0, -1, "", "x", "0d", "1.5", "3 d", "d", "٣"):
            with pytest.raises(ProgramError) as raised:
                store.vacuum(keep)
            assert raised.value.problems[0].message == f"`{keep}` does not say how many versions to keep"


def test_two_writers(tmp_path: Path):
    path = tmp_path / "state"
    small_state(path, 2)
    with Store.open(path) as one, Store.open(path) as two:
        one.lock()
        one.lock()
        assert told(path, lambda _: two.lock()) == f"the state `{path}` is locked by another writer"
        with pytest.raises(RuntimeError):
            two.commit(entry(), {}, SCHEMAS)
        one.commit(entry(), {"edge": plus(PAIRS, ("z", 1))}, SCHEMAS)
        assert two.latest.number == 2  # a reader stays where it is
        assert [v.number for v in two.versions()] == [1, 2]
        one.close()
        two.lock()
        assert told(path, lambda _: two.commit(entry(), {}, SCHEMAS)) == (
            f"the state `{path}` is at version 3, but this update was computed from version 2"
        )
        assert two.refresh().number == 3
        assert two.commit(entry(), {}, SCHEMAS).number == 4


@pytest.mark.slow
def test_a_writer_in_another_process(tmp_path: Path):
    path = tmp_path / "state"
    small_state(path, 1)
    script = "import sys; from evermat.store import Store\ns = Store.open(sys.argv[1]); s.lock(); print(1, flush=True); input()"
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with Store.open(path) as store:
            assert told(path, lambda _: store.lock()).endswith("is locked by another writer")
            other.kill()
            other.wait()
            store.lock()


def test_a_new_state_does_not_replace_one_that_came_first(tmp_path: Path):
    path = tmp_path / "state"
    with Store.create(path) as slow:
        right = small_state(path, 2)
        assert told(path, lambda _: slow.commit(entry(), {}, SCHEMAS)) == f"`{path}` already holds a state"
    assert [p.name for p in tmp_path.iterdir()] == ["state"]
    with Store.open(path) as store:
        assert everything(store) == right


def test_what_crashed_creations_leave_is_removed(tmp_path: Path):
    left = Store.create(tmp_path / "state")
    with Store.create(tmp_path / "state"):
        assert len(list(tmp_path.iterdir())) == 2  # the other is at work
    assert left._lock is not None
    left._target = None  # so that closing is like being killed
    left.close()
    with Store.create(tmp_path / "state") as store:
        store.commit(entry(), {}, SCHEMAS)
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


@pytest.mark.slow
def test_readers_and_vacuum(tmp_path: Path):
    path = tmp_path / "state"
    small_state(path, 4)
    with Store.open(path) as reader, Store.open(path) as writer:
        writer.lock()
        right = contents(writer, 4, "edge")
        writer.compact({"edge": plus(PAIRS, *right)}, None)
        writer.vacuum(1)
        assert contents(reader, 4, "edge") == right  # the files that it knew are gone, the version is not
    small_state(path.with_name("other"), 4)
    with Store.open(path.with_name("other")) as reader, Store.open(path.with_name("other")) as writer:
        writer.lock()
        writer.vacuum(1)
        assert "version 2 is no longer kept" in told(path, lambda _: contents(reader, 2, "edge"))
    small_state(path.with_name("third"), 4)
    with Store.open(path.with_name("third")) as reader, Store.open(path.with_name("third")) as writer:
        writer.lock()
        feed = reader.changes(1, 4)
        writer.vacuum(1)
        assert "version 1 is no longer kept" in told(path, lambda _: list(feed))


def test_another_program_writes_to_a_table(tmp_path: Path):
    path = tmp_path / "state"
    right = small_state(path, 4)
    with Store.open(path) as store:
        store.lock()
        store.commit(entry(), {"path": plus(PAIRS, ("z", 1))}, SCHEMAS)
        table = DeltaTable(path / "relations" / "path")
        row = {"x": "f", "y": 1, "_origin": "explicit", "_nonrecursive": 1, "_recursive": 1, "_op": "+", "_version": 6}
        write_deltalake(table, pa.Table.from_pylist([row]), mode="append")
        with Store.open(path) as reader:
            assert contents(reader, 5, "path").keys() == {*right[4]["path"], ("z", 1)}
        assert told(path, lambda _: store.commit(entry(), {"path": plus(PAIRS, ("z", 2))}, SCHEMAS)).endswith(
            "another program wrote to this table"
        )
        store.commit(entry(), {"path": plus(PAIRS, ("z", 2))}, SCHEMAS)
        assert contents(store, 6, "path").keys() == {*right[4]["path"], ("z", 1), ("z", 2)}


def test_a_crash_before_the_newest_entry_is_recorded(tmp_path: Path):
    path = tmp_path / "state"
    right = small_state(path, 2)
    record = path / "commits" / "_newest"
    text = record.read_text()
    for left in ("", text[:4], text.replace("1", "7"), None):
        record.unlink() if left is None else record.write_text(left)
        with Store.open(path) as store:
            assert everything(store) == right
            store.lock()
        assert record.read_text() == text


def test_nothing_to_tidy_in_a_new_state(tmp_path: Path):
    with Store.create(tmp_path / "state") as store:
        assert told(tmp_path, lambda _: store.vacuum(1)) == "there is no version 0: the state has no version yet"
        assert (
            told(tmp_path, lambda _: store.compact({}, None)) == "there is no version 0: the state has no version yet"
        )


def test_all_kinds_are_of_the_state():
    kinds = [kind for kind in errors.KINDS if 500 <= kind.code < 600]
    assert [kind.code for kind in kinds] == list(range(500, 512))
    assert issubclass(StateError, EvermatError)
