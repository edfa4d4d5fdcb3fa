"""States of relations that have no row for each fact: what is stored are inputs, and what comes back is everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat import Materialisation
from evermat.engine import Run
from evermat.runtime.query import query_version
from evermat.store import Store
from evermat.store.formats.format_2 import Reader
from evermat.testing import state_of
from tests.columns.test_scheme_updates import used
from tests.runtime.test_state_round_trip import assert_history, random_step
from tests.support.commands import Evermat
from tests.support.environment import LASTING
from tests.support.scheme_cases import parsed, schemes_of, told
from tests.support.schemes import use_schemes
from tests.support.states import QUICK, explicit_of, facts_at, refused, rows_of
from tests.support.strategies import Facts, Features, random_program
from tests.support.updates import applied, assert_counters_right, facts_of

__all__ = ["used"]

PROGRAM = """
.decl e(x:number, y:number)
.decl f(x:number, y:number)
.decl c(x:number, y:number)     c(x, y) :- e(x, y).  c(x, z) :- c(x, y), c(y, z).
.decl g(x:number, y:number)     g(x, y) :- f(x, y), !c(y, x).  g(x, z) :- g(x, y), c(y, z).
.decl t(x:number, y:number)     t(x, y) :- c(x, y).  t(x, y) :- g(x, y).  t(x, y) :- f(y, x), !c(x, y).
"""
SCHEMES = {"c", "g", "t"}
FACTS: Facts = {
    "e": {(i, i + 1) for i in range(1, 8)} | {(4, 2), (20, 21)},
    "f": {(9, 1), (3, 1), (20, 9)},
    "c": {(8, 9)},
    "t": {(1, 2), (0, 0)},
}
#: what is deleted and what is inserted
UPDATES: list[tuple[Facts, Facts]] = [
    ({}, {"e": {(9, 30)}}),
    ({"e": {(4, 5)}}, {"f": {(6, 6)}}),
    ({"e": {(20, 21), (4, 2)}, "c": {(8, 9)}}, {"e": {(21, 20), (4, 5)}, "c": {(8, 1)}}),
    ({"t": {(1, 2), (0, 0)}}, {"t": {(8, 8)}}),
    ({"e": {(1, 2)}}, {"c": {(1, 2)}, "e": {(50, 51)}, "f": {(60, 50)}}),
]
#: rules that come and go
REVISIONS = [
    (".decl loop(x:number) loop(x) :- c(x, x).", ""),
    ("t(x, y) :- f(x, y).", "t(x, y) :- c(x, y)."),  # a union of others
    ("c(y, x) :- c(x, y).", ""),  # another closure
    ("c(x, z) :- e(x, y), c(y, z).", "c(y, x) :- c(x, y). c(x, z) :- c(x, y), c(y, z)."),
]
QUERIES = [
    "c(1, x)",
    "t(x, 9)",
    "c(1, 9)",
    "c(9, 1)",
    "t(x, y), !c(x, y)",
    "g(x, y), t(y, x)",
    "t(x, x)",
    "f(x, y), n = count : { t(x, _) }",
    "n = count : { t(_, _) }",
    "c(x, _)",
]
LONG = ".decl e(x:number, y:number) .decl c(x:number, y:number) c(x, y) :- e(x, y). c(x, z) :- c(x, y), c(y, z). "
LONG += ".decl u(x:number, y:number) u(x, y) :- c(x, y). u(x, y) :- e(y, x)."


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder where nothing waits for a disk."""
    with TemporaryDirectory(dir=QUICK) as home:
        yield Path(home)


class Pair:
    """A state with storage schemes and one without, to which the same is done."""

    def __init__(self, home: Path, text: str = PROGRAM, facts: Facts = FACTS, schemes: str = "auto") -> None:
        self.paths = home / "schemes", home / "plain"
        self.recorded: dict[int, Facts] = {}
        self.materialise(text, facts, schemes)

    def materialise(self, text: str, facts: Facts, schemes: str) -> None:
        """Another materialisation, saved over what is there."""
        self.made = [parsed(text).materialise(facts, counters="both", schemes=s) for s in (schemes, "plain")]
        for m, path in zip(self.made, self.paths, strict=True):
            m.save(path)
        self.note()

    @property
    def m(self) -> Materialisation:
        return self.made[0]

    def each(self, action: Callable[[Materialisation], Any]) -> list[Any]:
        """What an action says of either."""
        return [action(m) for m in self.made]

    def update(self, **changes: Any) -> None:
        """The same update of both; they tell the same of it."""
        change, expected = self.each(lambda m: m.update(**changes))
        assert told(change) == told(expected)
        self.note()

    def open_again(self, version: int | None = None) -> None:
        """Closes both, and opens them."""
        self.close()
        self.made = [evermat.open(path, version) for path in self.paths]

    def close(self) -> None:
        self.each(lambda m: m.close())

    def note(self) -> None:
        """The newest version is what there is."""
        ours, theirs = self.each(facts_of)
        assert ours == theirs
        assert self.each(explicit_of)[0] == explicit_of(self.made[1])
        number, same = self.each(lambda m: m.version)
        assert number == same
        self.recorded[number] = theirs

    def assert_alike(self, oldest: int = 1) -> None:
        """Both directories tell the same: versions, facts, changes and answers."""
        numbers = range(oldest, max(self.recorded) + 1)
        figures, expected = (
            [(v.number, v.inserted, v.deleted, v.facts) for v in evermat.versions(path)] for path in self.paths
        )
        assert figures == expected
        assert [(figure[0], figure[3]) for figure in figures] == [
            (number, sum(map(len, self.recorded[number].values()))) for number in numbers
        ]
        for number in numbers:
            assert facts_at(self.paths[0], number) == self.recorded[number]
        self.assert_changes_alike()
        for text in QUERIES[:2]:
            answer, right = (query_version(path, None, text, Run()) for path in self.paths)
            if answer.columns:
                assert sorted(answer) == sorted(right), text
            else:
                assert bool(answer) == bool(right), text

    def assert_changes_alike(self) -> None:
        """The same changes, versions in order."""
        changes, expected = (
            {name: rows_of(table) for name, table in evermat.changes(path).items()} for path in self.paths
        )
        assert {n: sorted(rows) for n, rows in changes.items()} == {n: sorted(rows) for n, rows in expected.items()}
        for rows in changes.values():
            assert [row[-1] for row in rows] == sorted(row[-1] for row in rows)


def stored_rows(path: Path, name: str, version: int | None = None) -> int:
    """How many rows of a relation a state holds."""
    with Store.open(path) as store:
        number = store.latest.number if version is None else version
        return sum(table.num_rows for _, table in store.read(number, name))


@pytest.mark.slow
def test_every_version_comes_back(folder: Path) -> None:
    pair = Pair(folder)
    explicit = FACTS
    for number, (delete, insert) in enumerate(UPDATES):
        if number % 3 == 1:
            pair.open_again()
            assert {name for name, table in state_of(pair.m).tables.items() if table.scheme is not None} == SCHEMES
            assert_counters_right(pair.m, explicit)
        pair.update(insert=insert, delete=delete)
        explicit = applied(explicit, delete, insert)
    pair.close()
    pair.assert_alike()


def test_the_state_holds_inputs_only(folder: Path) -> None:
    edges = {(i, i + 1) for i in range(40)}
    path = folder / "state"
    with parsed(LONG).materialise({"e": edges, "u": {(1, 3), (50, 50)}}) as m:
        assert schemes_of(m) == {"c": "intervals", "u": "union"}
        m.save(path)
        assert (len(m["c"]), len(m["u"])) == (820, 861)
        assert (stored_rows(path, "c"), stored_rows(path, "u")) == (
            0,
            42,
        )  # all of c is copied; edges turned are no copy for a union
        m.update({"e": {(40, 41)}}, {"e": {(20, 21)}, "u": {(1, 3)}})
        counts = {name: len(m[name]) for name in m}
    assert (stored_rows(path, "c"), stored_rows(path, "u")) == (0, 45)  # what came, and what went
    assert (stored_rows(path, "c", 1), stored_rows(path, "u", 1)) == (0, 42)
    assert [(v.facts, v.inserted, v.deleted) for v in evermat.versions(path)] == [
        (40 + 820 + 861, 40 + 820 + 861, 0),
        (sum(counts.values()), 1 + 20 + 21, 1 + 21 * 20 + (21 * 20 + 1)),
    ]
    with evermat.open(path) as found:
        assert {name: len(found[name]) for name in found} == counts
        assert explicit_of(found)["u"] == {(50, 50)}


def test_a_state_remembers_what_was_asked_for(folder: Path) -> None:
    for asked in ("auto", "plain"):
        with parsed(PROGRAM).materialise(FACTS, schemes=asked) as m:
            m.save(folder / asked)
    for asked in ("auto", "plain"):
        with evermat.open(folder / asked) as found:
            assert state_of(found).schemes == asked
            assert state_of(found).stored_by_schemes == (SCHEMES if asked == "auto" else set())


@pytest.mark.slow
def test_a_state_is_read_whatever_would_be_chosen_now(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state is opened where bounds are as usual, and updated: relations stay as they are stored."""
    pair = Pair(folder)
    monkeypatch.undo()
    pair.open_again()
    for delete, insert in UPDATES[:2]:
        pair.update(insert=insert, delete=delete)
    assert state_of(pair.m).stored_by_schemes == SCHEMES
    pair.close()
    pair.assert_alike()


@pytest.mark.slow
def test_an_old_version_becomes_the_newest_by_saving_it(folder: Path) -> None:
    pair = Pair(folder)
    for delete, insert in UPDATES[1:3]:
        pair.update(insert=insert, delete=delete)
    pair.open_again(version=2)
    pair.close()
    for m, path in zip(pair.made, pair.paths, strict=True):
        assert facts_of(m) == pair.recorded[2]
        m.save(path)
    pair.note()
    assert pair.m.version == 4
    pair.update(insert={"e": {(9, 9)}}, delete={"e": {(2, 3)}})
    pair.close()
    pair.assert_alike()


@LASTING
@pytest.mark.parametrize("first", ["auto", "plain"])
def test_saving_over_a_state_that_is_stored_otherwise(folder: Path, first: str) -> None:
    pair = Pair(folder, schemes=first)
    second = "plain" if first == "auto" else "auto"
    for schemes, facts in [
        (second, FACTS),  # nothing changes but how it is stored
        (first, FACTS | {"e": {(1, 2), (2, 3)}, "c": {(3, 1)}}),
    ]:
        pair.close()
        pair.materialise(PROGRAM, facts, schemes)
        assert state_of(pair.m).stored_by_schemes == (SCHEMES if schemes == "auto" else set())
        pair.open_again()
        pair.update(insert={"e": {(3, 30)}, "f": {(3, 31)}}, delete={"e": {(2, 3)}, "t": {(1, 2)}})
    pair.close()
    pair.assert_alike()
    same = evermat.versions(pair.paths[0])[1]
    assert (same.inserted, same.deleted) == (0, 0)


@LASTING
def test_rules_that_come_and_go(folder: Path) -> None:
    pair = Pair(folder)
    for number, (come, gone) in enumerate(REVISIONS):
        pair.update(insert=UPDATES[number][1], add_rules=come, remove_rules=gone)
        if number == 1:
            pair.open_again()
    pair.close()
    pair.assert_alike()


@LASTING
@pytest.mark.parametrize("keep", [1, 2])
def test_vacuum(folder: Path, keep: int) -> None:
    pair = Pair(folder)
    for delete, insert in UPDATES[:3]:
        pair.update(insert=insert, delete=delete)
    pair.close()
    for path in pair.paths:
        evermat.vacuum(path, keep)
    pair.open_again()
    pair.update(insert={"e": {(1, 60)}}, delete={"e": {(5, 6)}})
    pair.close()
    pair.assert_alike(oldest=4 - keep + 1)


@pytest.mark.slow
def test_what_changed_rules_changed_is_known_of_the_first_kept_version(folder: Path) -> None:
    """What inputs mean depends on the rules: the version before the first one that is kept stays, for the changes."""
    pair = Pair(folder)
    pair.update(add_rules="c(y, x) :- c(x, y).")
    pair.update(insert={"e": {(1, 60)}})
    pair.close()
    for path in pair.paths:
        evermat.vacuum(path, 2)
        assert refused(lambda: evermat.changes(path, 1)) == (  # noqa: B023
            "error[E506]: version 1 is no longer kept: the state has versions 2 to 3"
        )
    changes, expected = ({n: sorted(rows_of(t)) for n, t in evermat.changes(p).items()} for p in pair.paths)
    assert changes == expected
    assert {row[-1] for rows in changes.values() for row in rows} == {2, 3}


@pytest.mark.slow
def test_snapshots_and_compaction(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.store.delta_table.FAN", 2)
    monkeypatch.setattr("evermat.store.store._MANY_ROWS", 2)
    pair = Pair(folder)
    for number, (delete, insert) in enumerate(UPDATES):
        pair.update(insert=insert, delete=delete)
        if number == 2:
            pair.open_again()
    pair.close()
    pair.assert_alike()


@LASTING
def test_queries_about_versions(folder: Path, evermat_command: Evermat) -> None:
    pair = Pair(folder)
    pair.update(delete={"e": {(4, 5)}}, insert={"f": {(6, 6)}})
    pair.close()
    for number, text in enumerate(QUERIES):
        options = ("--version", 1 + number % 2, "--format", ("table", "csv", "jsonl")[number % 3])
        ours, theirs = (evermat_command("query", "--state", path, text, *options) for path in pair.paths)
        assert (ours.code, ours.err) == (0, "")
        assert ours.out == theirs.out
    done = evermat_command("query", "--state", pair.paths[0], "c(1, x), x < 4", "--version", 1)
    assert done == (0, "x\n-\n2\n3\n", "")


def test_a_query_loads_only_what_it_needs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(folder)
    pair.close()
    read: list[str] = []
    original = Reader.read

    def reading(self: Reader, version: int, name: str) -> Any:
        read.append(name)
        return original(self, version, name)

    monkeypatch.setattr(Reader, "read", reading)
    for text, expected in [
        ("c(1, x)", {"c", "e"}),
        ("g(x, 2)", {"g", "c", "e"}),
        ("t(x, y)", {"t", "g", "c", "e"}),
        ("e(x, y)", {"e"}),
    ]:
        read.clear()
        list(query_version(pair.paths[0], None, text, Run()))
        assert set(read) == expected


def test_figures_and_commands(folder: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(folder)
    pair.close()
    (folder / "c.txt").write_text("+\te\t9\t30\n-\te\t4\t5\n")
    said = [evermat_command("update", "--state", path, folder / "c.txt") for path in pair.paths]
    assert said[0] == said[1]
    logs = [evermat_command("log", "--state", path).out.splitlines() for path in pair.paths]
    shown = [[(line.split()[0], *line.split()[4:7]) for line in lines[1:]] for lines in logs]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 2
    changes, expected = ({n: sorted(rows_of(t)) for n, t in evermat.changes(p, 2, 2).items()} for p in pair.paths)
    assert changes == expected


@pytest.mark.slow
def test_an_update_that_is_not_written_changes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair(folder)

    def commit(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "commit", commit)
        for m in pair.made:
            with pytest.raises((OSError, evermat.EvermatError)):
                m.update({"e": {(8, 1), (9, 77)}}, {"e": {(2, 3)}})
    assert facts_of(pair.m) == pair.recorded[1]
    assert not state_of(pair.m).tables["c"].scheme.pairs.changes
    for delete, insert in UPDATES[:2]:
        pair.update(insert=insert, delete=delete)
    pair.close()
    pair.assert_alike()


@LASTING
@settings(max_examples=2, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_random_states_are_alike(rng: Random) -> None:
    random = random_program(rng, Features(closures=1.0, unions=0.6))
    explicit = random.facts
    with TemporaryDirectory(dir=QUICK) as home, pytest.MonkeyPatch.context() as patch:
        use_schemes(patch)
        patch.setattr("evermat.store.delta_table.FAN", rng.randint(2, 8))
        patch.setattr("evermat.store.store._MANY_ROWS", rng.choice([0, 5, 1000]))
        path = Path(home) / "state"
        m = evermat.Program.parse(random.text).materialise(explicit, counters=rng.choice(["none", "both"]))
        m.save(path)
        recorded = {1: facts_of(m)}
        for _ in range(2):
            if rng.random() < 0.5:
                m.close()
                m = evermat.open(path)
            random, explicit = random_step(rng, m, random, explicit)
            recorded[m.version] = facts_of(m)
            again = evermat.Program.parse(random.text).materialise(explicit, schemes="plain")
            assert facts_of(again) == facts_of(m)
        m.close()
        assert_history(path, recorded)
