"""What is saved comes back, version by version: facts, where they come from, and their counters."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat import Materialisation
from evermat.algebra import Counters
from evermat.testing import state_of
from tests.support.environment import LONG
from tests.support.states import CHAIN, PROGRAM, QUICK, assert_recomputed, explicit_of, facts_at, rows_of, saved
from tests.support.strategies import Facts, RandomProgram, random_program
from tests.support.updates import ALGORITHMS, applied, assert_right, facts_of, random_revision, random_update

EXAMPLES = 100 if LONG else 8

ALL_TYPES = """
.decl value(u:unsigned, f:float, s:symbol, n:number)
.decl copy(u:unsigned, f:float, s:symbol, n:number)
.decl some()
copy(u, f, s, n) :- value(u, f, s, n).
some() :- value(_, _, _, _).
"""
VALUES = {
    (2**64 - 1, -1.5e300, "é\n\t\0\"'", -(2**63)),
    (2**63, 5e-324, "", 2**63 - 1),
    (0, float("inf"), "🦀 " * 100, 0),
    (1, 0.1, "a", -1),
}


def random_step(rng: Random, m: Materialisation, random: RandomProgram, explicit: Facts) -> tuple[RandomProgram, Facts]:
    """A random update, sometimes of rules too; returns what there is afterwards."""
    gone, come = [], []
    if rng.random() < 0.3:
        random, gone, come = random_revision(rng, random)
    delete, insert = random_update(rng, random.relations, explicit)
    rules = {"add_rules": "\n".join(come), "remove_rules": "\n".join(gone)}
    m.update(insert, delete, algorithm=rng.choice(ALGORITHMS[1:]), **rules)
    return random, applied(explicit, delete, insert)


def assert_same(found: Materialisation, m: Materialisation, random: RandomProgram, explicit: Facts) -> None:
    """A materialisation that was opened is the one in memory, and right; it knows no counters that the other does not."""
    assert facts_of(found) == facts_of(m)
    assert explicit_of(found) == explicit_of(m) == explicit
    assert_right(found, random, explicit)
    assert [s.relations for s in found.program.strata] == [s.relations for s in m.program.strata]
    for mine, other in zip(found.program.strata, m.program.strata, strict=True):
        assert state_of(found).valid_counters(mine) <= state_of(m).valid_counters(other)


def assert_history(path: Path, recorded: dict[int, Facts], oldest: int = 1) -> None:
    """Every version holds what was recorded, and says so; changes are the differences."""
    versions = evermat.versions(path)
    assert [v.number for v in versions] == list(range(oldest, max(recorded) + 1))
    for version in versions:
        number = version.number
        assert facts_at(path, number) == recorded[number]
        assert version.facts == sum(map(len, recorded[number].values()))
        assert version.facts == facts_before(recorded, number) + version.inserted - version.deleted
    changes = {name: rows_of(table) for name, table in evermat.changes(path).items()}
    numbers = range(oldest, max(recorded) + 1)
    expected = {n: difference(recorded.get(n - 1, {}), recorded[n], n) for n in numbers}
    assert_changes(changes, [row for n in numbers for row in expected[n]])
    first, last = oldest, max(recorded) - 1
    if first <= last:
        some = {name: rows_of(table) for name, table in evermat.changes(path, first, last).items()}
        assert_changes(some, [row for n in range(first, last + 1) for row in expected[n]])


def assert_changes(changes: dict[str, list[tuple]], expected: list[tuple]) -> None:
    """No change is told twice, and versions come in order."""
    assert sorted([(name, *row) for name, rows in changes.items() for row in rows], key=str) == sorted(
        expected, key=str
    )
    for rows in changes.values():
        assert [row[-1] for row in rows] == sorted(row[-1] for row in rows)


def facts_before(recorded: dict[int, Facts], number: int) -> int:
    return sum(map(len, recorded.get(number - 1, {}).values()))


def difference(before: Facts, after: Facts, number: int) -> list[tuple]:
    """What makes one version of another, as rows of the change feed."""
    found = []
    for name, facts in after.items():
        found += [(name, *fact, "+", number) for fact in facts - before.get(name, set())]
        found += [(name, *fact, "-", number) for fact in before.get(name, set()) - facts]
    return found


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_every_version_comes_back(rng: Random) -> None:
    random = random_program(rng)
    explicit = random.facts
    m = evermat.Program.parse(random.text).materialise(explicit, counters=rng.choice(["none", "nonrecursive", "both"]))
    with TemporaryDirectory(dir=QUICK) as home:
        path = Path(home) / "state"
        m.save(path)
        recorded = {1: facts_of(m)}
        for _ in range(rng.randint(1, 3)):
            with evermat.open(path) as found:
                assert_same(found, m, random, explicit)
            random, explicit = random_step(rng, m, random, explicit)
            recorded[m.version] = facts_of(m)
        m.close()
        with evermat.open(path, write=True) as found:
            assert found.version == max(recorded)
            assert_same(found, m, random, explicit)
            for _ in range(2):
                random, explicit = random_step(rng, found, random, explicit)
                assert_right(found, random, explicit)
                recorded[found.version] = facts_of(found)
        assert_history(path, recorded)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_compaction_and_vacuum_change_no_version(rng: Random) -> None:
    random = random_program(rng)
    explicit = random.facts
    m = evermat.Program.parse(random.text).materialise(explicit, counters=rng.choice(["none", "both"]))
    with TemporaryDirectory(dir=QUICK) as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr("evermat.store.delta_table.FAN", rng.randint(2, 4))
        patch.setattr("evermat.store.store._MANY_ROWS", rng.randint(0, 5))
        path = Path(home) / "state"
        m.save(path)
        recorded, oldest = {1: facts_of(m)}, 1
        for _ in range(3):
            if rng.random() < 0.3:
                keep = rng.randint(1, 3)
                m.close()
                evermat.vacuum(path, keep)
                oldest = max(oldest, max(recorded) - keep + 1)
                m = evermat.open(path)
            random, explicit = random_step(rng, m, random, explicit)
            recorded[m.version] = facts_of(m)
        with evermat.open(path) as found:
            assert_same(found, m, random, explicit)
        m.close()
        assert_history(path, recorded, oldest)
        evermat.vacuum(path, 1)
        assert_history(path, recorded, max(recorded))
        with evermat.open(path) as found:
            assert_right(found, random, explicit)
            random, explicit = random_step(rng, found, random, explicit)
            assert_right(found, random, explicit)


def test_values_of_all_types_come_back(tmp_path: Path) -> None:
    m = evermat.Program.parse(ALL_TYPES).materialise({"value": VALUES})
    m.save(tmp_path / "state")
    recorded = {1: facts_of(m)}
    for value in sorted(VALUES):
        m.update(delete={"value": [value]})
        recorded[m.version] = facts_of(m)
    m.update({"value": VALUES})
    recorded[m.version] = facts_of(m)
    for version, facts in recorded.items():
        assert facts_at(tmp_path / "state", version) == facts
    changes = evermat.changes(tmp_path / "state", 6, 6)
    assert changes["copy"].schema.types[:-2] == m["copy"].to_arrow().schema.types
    assert {row[:-2] for row in rows_of(changes["copy"])} == VALUES
    assert rows_of(changes["some"]) == [("+", 6)]


def test_zero_keeps_its_sign(tmp_path: Path) -> None:
    m = evermat.Program.parse(".decl a(x:float)").materialise({"a": [(0.0,)]})
    m.save(tmp_path / "state")
    m.update({"a": [(-0.0,)]})
    assert sorted(map(str, facts_at(tmp_path / "state")["a"])) == sorted(map(str, m["a"]))
    assert len(evermat.open(tmp_path / "state")["a"]) == len(m["a"])


def test_rdf_terms_come_back(tmp_path: Path) -> None:
    text = """
    .prefix ex: <http://example.org/>
    .decl ex:knows(x:term, y:term)
    .decl far(x:term, y:term)
    far(x, y) :- ex:knows(x, y).
    far(x, z) :- far(x, y), ex:knows(y, z).
    ex:knows(ex:ann, ex:bob).
    ex:knows(ex:bob, "Cäsar"@de).
    """
    with evermat.Program.parse(text).materialise() as m:
        m.save(tmp_path / "state")
        m.update(remove_rules='.prefix ex: <http://example.org/> ex:knows(ex:bob, "Cäsar"@de).')
    assert facts_at(tmp_path / "state") == facts_of(m)
    assert len(facts_at(tmp_path / "state", 1)["far"]) == 3
    with evermat.open(tmp_path / "state") as found:
        found.update(add_rules='.prefix ex: <http://example.org/> ex:knows(ex:bob, "Dora").')
        assert len(found["far"]) == 3


def test_nothing_is_derived_when_a_state_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with saved(tmp_path / "state") as m:
        expected = facts_of(m)

    def derive(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("evermat.engine.run.Run.derived", derive)
    monkeypatch.setattr("evermat.engine.run.Run.next_round", derive)
    assert facts_at(tmp_path / "state") == expected


@pytest.mark.parametrize("algorithm", ["bf-c", "dred", "dred-c-mod", "auto"])
def test_counters_that_were_valid_are_valid_again(tmp_path: Path, algorithm: str) -> None:
    with saved(tmp_path / "state") as m, evermat.open(tmp_path / "state") as found:
        assert set(state_of(found).counters.values()) == {Counters.BOTH, Counters.MODULAR}
        m.update({"edge": [(5, 0)]}, algorithm=algorithm)
        expected = list(state_of(m).counters.values())
    with evermat.open(tmp_path / "state") as found:
        assert list(state_of(found).counters.values()) == expected
        assert_recomputed(found)


def test_counters_of_other_rules_are_not_taken_for_those_of_all(tmp_path: Path) -> None:
    """What is stored counts the rules that are in no closure; DRed^c counts all, and writes only what changes."""
    with saved(tmp_path / "state") as m:
        m.update({"edge": [(5, 0)]}, algorithm="dred-c")
        assert set(state_of(m).counters.values()) == {Counters.BOTH}
    with evermat.open(tmp_path / "state") as found:
        assert set(state_of(found).counters.values()) == {Counters.BOTH, Counters.NONRECURSIVE}
        assert_recomputed(found)


def test_counters_made_again_are_kept_with_the_next_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    with evermat.Program.parse(PROGRAM).materialise({"edge": CHAIN}, counters="none") as m:
        m.save(path)
        m.update({"edge": [(5, 0)]}, algorithm="bf-c")
        assert set(state_of(m).counters.values()) == {Counters.NONRECURSIVE}
        with evermat.open(path) as found:
            assert set(state_of(found).counters.values()) == {Counters.NONE}
        monkeypatch.setattr("evermat.store.store._MANY_ROWS", 0)
        m.update({"edge": [(0, 0), (5, 9)]}, algorithm="bf-c")
    with evermat.open(path) as found:
        assert Counters.NONRECURSIVE in state_of(found).counters.values()
        assert_recomputed(found)


@pytest.mark.slow
def test_rules_added_and_removed_are_there_again(tmp_path: Path) -> None:
    with saved(tmp_path / "state") as m:
        m.update(add_rules=".decl loop(x:number) loop(x) :- path(x, x). edge(5, 0).")
        m.update(remove_rules="path(x, y) :- edge(x, y).")
        m.update(delete={"edge": [(5, 0)]})
        expected = facts_of(m)
    assert facts_at(tmp_path / "state") == expected
    assert len(facts_at(tmp_path / "state", 2)["loop"]) == 6
    assert "loop" not in facts_at(tmp_path / "state", 1)
    with evermat.open(tmp_path / "state") as m:
        m.update(add_rules="path(a, b) :- edge(a, b).")
        assert set(m["path"]) == {(x, y) for x in range(6) for y in range(6) if x < y}
        assert_recomputed(m, PROGRAM + ".decl loop(x:number) loop(x) :- path(x, x).")


@pytest.mark.parametrize("algorithm", ["dred", "bf-c"])
def test_a_rule_that_only_renames_variables_loses_nothing(tmp_path: Path, algorithm: str) -> None:
    declarations = ".decl a(x:number) .decl b(x:number, y:number) .decl c(x:number, n:number) "
    rule, same = (f"c({x}, n) :- a({x}), n = count : {{ b({x}, _) }}." for x in "xy")
    facts = {"a": {(1,), (2,)}, "b": {(1, 1), (1, 2), (2, 2)}}
    with evermat.Program.parse(declarations + rule).materialise(facts, counters="both") as m:
        m.save(tmp_path / "state")
        m.update(add_rules=same, remove_rules=rule)
    with evermat.open(tmp_path / "state") as m:
        m.update(delete={"b": [(1, 1)]}, algorithm=algorithm)
        assert_recomputed(m, declarations + same)


@pytest.mark.slow
def test_an_old_version_becomes_the_newest_by_saving_it(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with saved(path) as m:
        m.update(delete={"edge": CHAIN})
    with evermat.open(path, version=1) as old:
        old.close()
        old.save(path)
        assert old.version == 3
        assert facts_at(path) == facts_of(old) == facts_at(path, 1)
        old.update({"edge": [(9, 9)]})
    with evermat.open(path) as m:
        assert m.version == 4
        assert_recomputed(m)


def test_saving_again_where_it_is_changes_nothing(tmp_path: Path) -> None:
    with saved(tmp_path / "state") as m:
        m.save(tmp_path / "state")
        (tmp_path / "link").symlink_to("state")
        m.save(tmp_path / "link")
        assert m.version == 1


def test_a_closed_materialisation_is_only_in_memory(tmp_path: Path) -> None:
    m = saved(tmp_path / "state")
    m.close()
    m.close()
    assert m.version is None
    m.update({"edge": [(8, 9)]})
    assert (8, 9) in m["path"]
    assert [v.number for v in evermat.versions(tmp_path / "state")] == [1]


def test_saving_elsewhere_moves_on_there(tmp_path: Path) -> None:
    m = saved(tmp_path / "one")
    m.save(tmp_path / "two")
    m.update({"edge": [(8, 9)]})
    assert (8, 9) not in facts_at(tmp_path / "one")["edge"]
    assert (8, 9) in facts_at(tmp_path / "two")["edge"]
    with evermat.open(tmp_path / "one", write=True) as other:  # nobody locks it any more
        assert other.version == 1
    m.close()
