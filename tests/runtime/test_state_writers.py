"""One writer at a time, readers whenever they like, and what saving over a state makes of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import evermat
from tests.support.states import CHAIN, PROGRAM, assert_recomputed, facts_at, refused, rows_of, saved, tree
from tests.support.updates import facts_of

ROOT = Path(__file__).parent.parent.parent

# Every version n has the edges (0, 1) to (0, n).
WRITER = """
import sys, evermat
m = evermat.open(sys.argv[1], write=True)
print(m.version, flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        m.update({"edge": [(0, m.version + 1)]})
    print(m.version, flush=True)
"""


class Writer:
    """A writer in another process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.version = self.wait()

    def begin(self, updates: int) -> None:
        self.process.stdin.write(f"{updates}\n")
        self.process.stdin.flush()

    def wait(self) -> int:
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return int(line)


@contextmanager
def other_writer(path: Path) -> Iterator[Writer]:
    command = [sys.executable, "-c", WRITER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as process:
        try:
            yield Writer(process)
        finally:
            process.kill()


def locked(path: Path) -> str:
    return f"error[E502]: the state `{path}` is locked by another writer\n  = note: a state has one writer at a time"


def moved_on(path: Path, found: int, seen: int) -> str:
    return (
        f"error[E504]: the state `{path}` is at version {found}, "
        f"but this update was computed from version {seen}\n"
        "  = note: open the state again and repeat the update"
    )


def test_a_second_writer_is_refused_and_nothing_is_mixed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as one, evermat.open(path) as two:
        before = facts_of(two)
        assert refused(lambda: two.update({"edge": [(7, 7)]})) == locked(path)
        one.update({"edge": [(8, 8)]})
        assert refused(lambda: two.update({"edge": [(7, 7)]})) == locked(path)
        assert refused(lambda: evermat.open(path, write=True)) == locked(path)
        assert refused(lambda: evermat.vacuum(path, 1)) == locked(path)
        one.close()
        for _ in range(2):
            assert refused(lambda: two.update({"edge": [(7, 7)]})) == moved_on(path, 2, 1)
        assert facts_of(two) == before
        assert two.version == 1
        with evermat.open(path, write=True) as three:  # whom the one that was refused does not keep out
            three.update({"edge": [(9, 9)]})
            assert_recomputed(three)
            assert set(three["edge"]) == CHAIN | {(8, 8), (9, 9)}
    assert facts_at(path)["edge"] == CHAIN | {(8, 8), (9, 9)}


@pytest.mark.slow
def test_a_writer_in_another_process_keeps_others_out_until_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "state"
    saved(path, {(0, 1)}).close()
    with evermat.open(path) as late, other_writer(path) as other:
        unsaved = evermat.Program.parse(PROGRAM).materialise({"edge": CHAIN})
        assert refused(lambda: late.update({"edge": [(7, 7)]})) == locked(path)
        assert refused(lambda: unsaved.save(path)) == locked(path)
        assert unsaved.version is None
        other.begin(2)
        assert other.wait() == 3
        other.process.kill()
        other.process.wait()
        assert refused(lambda: late.update({"edge": [(7, 7)]})) == moved_on(path, 3, 1)
        with evermat.open(path) as m:
            m.update({"edge": [(0, 4)]})
            assert m.version == 4
            assert set(m["edge"]) == {(0, 1), (0, 2), (0, 3), (0, 4)}
            assert_recomputed(m)


@pytest.mark.slow
def test_readers_see_whole_versions_while_another_writes(tmp_path: Path) -> None:
    path = tmp_path / "state"
    saved(path, {(0, 1)}).close()
    seen = set()
    with evermat.open(path) as early, other_writer(path) as other:
        other.begin(10)
        while not seen or max(seen) < 5:
            with evermat.open(path) as m:
                assert set(m["edge"]) == {(0, n) for n in range(1, m.version + 1)}
                assert set(m["reach"]) == {(0, m.version), *((n, 0) for n in range(1, m.version + 1))}
                assert_recomputed(m)
                seen.add(m.version)
            assert other.process.poll() is None
        assert set(early["edge"]) == {(0, 1)}  # who has opened a version stays with it
        assert other.wait() == 11
    assert len(seen) > 1


def test_the_first_update_makes_a_reader_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "state"
    saved(path).close()
    with evermat.open(path) as one:
        with evermat.open(path, write=True):
            pass
        one.update({"edge": [(7, 7)]})
        assert refused(lambda: evermat.open(path, write=True)) == locked(path)


def test_an_update_that_fails_does_not_make_a_version(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as m:
        before = facts_of(m)
        assert "`edge`" in refused(lambda: m.update({"edge": [("a", "b")]}), exit_code=3)
        assert refused(lambda: m.update({"edge": [(7, 8)]}, limit_facts=1), exit_code=4)
        assert refused(lambda: m.update(add_rules="path(x, y) :- nothing(x, y)."), exit_code=2)
        assert (facts_of(m), m.version) == (before, 1)
        m.update({"edge": [(7, 8)]})
        assert m.version == 2
    assert [v.number for v in evermat.versions(path)] == [1, 2]


def test_an_old_version_is_read_only(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as m:
        m.update({"edge": [(7, 7)]})
        newest = facts_of(m)
    message = "error[E507]: version 1 is read-only\n  = note: only the newest version, 2, can be updated"
    for write in (False, True):
        with evermat.open(path, version=1, write=write) as old:
            assert set(old["edge"]) == CHAIN
            assert refused(lambda: old.update({"edge": [(9, 9)]})) == message
            assert refused(lambda: old.save(path)) == message
            assert set(old["edge"]) == CHAIN
    with evermat.open(path, version=2) as m:
        assert facts_of(m) == newest
        m.update({"edge": [(9, 9)]})
        assert m.version == 3


def test_saving_over_a_state_makes_the_next_version(tmp_path: Path) -> None:
    path = tmp_path / "state"
    saved(path).close()
    with evermat.Program.parse(PROGRAM).materialise({"edge": [(0, 1), (1, 0)]}, counters="both") as m:
        m.save(path)
        assert m.version == 2
        m.update({"edge": [(3, 3)]}, algorithm="bf-c")
        assert_recomputed(m)
        expected = facts_of(m)
    with evermat.open(path) as found:
        assert facts_of(found) == expected
        assert_recomputed(found)
    assert facts_at(path, 1)["edge"] == CHAIN
    changes = evermat.changes(path, 2, 2)
    assert sorted(rows_of(changes["edge"])) == [(1, 0, "+", 2), *((x, y, "-", 2) for x, y in sorted(CHAIN) if x)]
    second = evermat.versions(path)[1]
    told = [row for table in changes.values() for row in rows_of(table)]
    assert second.inserted == sum(row[-2] == "+" for row in told)
    assert second.deleted == sum(row[-2] == "-" for row in told)


@pytest.mark.slow
def test_saving_over_a_state_may_add_and_drop_relations(tmp_path: Path) -> None:
    path = tmp_path / "state"
    saved(path).close()
    other = ".decl edge(x:number, y:number) .decl back(x:number, y:number) back(y, x) :- edge(x, y)."
    with evermat.Program.parse(other).materialise({"edge": [(0, 1), (5, 5)]}) as m:
        m.save(path)
        m.update({"edge": [(6, 6)]})
    assert facts_at(path) == {"edge": {(0, 1), (5, 5), (6, 6)}, "back": {(1, 0), (5, 5), (6, 6)}}
    assert set(facts_at(path, 1)) == {"edge", "path", "node", "apart", "reach"}
    changes = evermat.changes(path, 2, 2)
    assert set(changes) == {"edge", "back", "path", "node", "apart", "reach"}  # and none that rewriting made
    assert {row[:2] for row in rows_of(changes["path"])} == facts_at(path, 1)["path"]
    with evermat.Program.parse(PROGRAM).materialise({"edge": CHAIN}) as m:
        m.save(path)
    assert facts_at(path) == facts_at(path, 1)
    assert set(facts_at(path, 2)) == {"edge", "back"}
    evermat.vacuum(path, 1)
    with evermat.open(path) as m:
        assert_recomputed(m)


@pytest.mark.slow
def test_saving_over_a_state_may_change_types_and_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "state"
    versions = [
        (".decl a(x:number) .decl b(x:number) b(x) :- a(x).", {(1,), (2,)}),
        (".decl a(x:symbol) .decl b(x:symbol) b(x) :- a(x).", {("1",), ("s",)}),
        (".decl a(name:symbol) .decl b(name:symbol) b(x) :- a(x).", {("s",), ("t",)}),
        (".decl a(name:term) .decl b(name:term) b(x) :- a(x).", {('"s"@en',)}),
        (".decl a(name:symbol, n:number) .decl b(n:number) b(x) :- a(_, x).", {("s", 1)}),
        (".decl a(x:number) .decl b(x:number) b(x) :- a(x).", {(1,), (3,)}),
    ]
    for text, facts in versions:
        with evermat.Program.parse(text).materialise({"a": facts}) as m:
            m.save(path)
    for number, (_, facts) in enumerate(versions, 1):
        assert facts_at(path, number)["a"] == facts
        assert facts_at(path, number)["b"] == {fact[-1:] for fact in facts}
    with evermat.open(path) as m:
        m.update({"a": [(7,)]}, {"a": [(1,)]})
    assert facts_at(path)["b"] == {(3,), (7,)}
    for version in evermat.versions(path):
        before = sum(map(len, facts_at(path, version.number - 1).values())) if version.number > 1 else 0
        assert version.facts == before + version.inserted - version.deleted


def test_what_is_no_state_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letters"
    path.mkdir()
    (path / "letter.txt").write_text("dear")
    m = evermat.Program.parse(PROGRAM).materialise({"edge": CHAIN})
    assert refused(lambda: m.save(path)) == (
        f"error[E500]: `{path}` is not a state of evermat\n  = note: it has no file `evermat.json`"
    )
    assert refused(lambda: m.save(path / "letter.txt")).startswith(
        f"error[E500]: `{path / 'letter.txt'}` is not a state of evermat\n"
    )
    assert tree(tmp_path) == {"letters/letter.txt": b"dear"}
    assert m.version is None
    m.update({"edge": [(7, 7)]})  # in memory all goes on


def test_an_empty_folder_and_one_that_is_not_there_become_states(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "a" / "b" / "c"):
        with saved(path) as m:
            assert m.version == 1
        assert facts_at(path) == facts_of(m)


def test_a_materialisation_that_nobody_holds_locks_nothing(tmp_path: Path) -> None:
    saved(tmp_path / "state")
    with evermat.open(tmp_path / "state", write=True) as m:
        assert m.version == 1


def test_changes_where_columns_became_others(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for text, facts in ((".decl a(x:number)", [(1,)]), (".decl a(x:symbol)", [("s",)])):
        with evermat.Program.parse(text).materialise({"a": facts}) as m:
            m.save(path)
    assert rows_of(evermat.changes(path, 1, 1)["a"]) == [(1, "+", 1)]
    assert rows_of(evermat.changes(path, 2, 2)["a"]) == [("s", "+", 2)]
    assert refused(lambda: evermat.changes(path)) == (
        f"error[E509]: cannot read `{path}`: `a` has other columns since version 2: "
        "ask for the changes until then and from then on"
    )
    with evermat.Program.parse(".decl a(y:symbol)").materialise({"a": [("t",)]}) as m:
        m.save(path)
    changes = evermat.changes(path, 2)["a"]
    assert changes.column_names == ["y", "_op", "_version"]
    assert sorted(rows_of(changes)) == [("s", "+", 2), ("s", "-", 3), ("t", "+", 3)]
