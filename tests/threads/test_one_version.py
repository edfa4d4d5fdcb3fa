"""Whoever reads keeps the version that it began with: iterations, answers and snapshots, whatever the same thread does meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import evermat
from evermat import Materialisation
from evermat.columns.state import reclaim
from tests.support.environment import LONG
from tests.support.schemes import use_schemes
from tests.support.states import refused
from tests.threads.equalities import Equalities
from tests.threads.graphs import Graph, StoredGraph
from tests.threads.reads import EXPORTS, as_set, checked, checked_whole, rows_of
from tests.threads.workload import RULES, START, Version, Workload
from tests.threads.world import STEADY, Source, World, started

pytestmark = pytest.mark.skipif(not STEADY, reason="needs snapshots")

TEXT = """
.decl a(x:number)
.decl b(x:number, y:symbol)
b(x + 1, cat("s", to_string(x))) :- a(x).
"""
WORKLOADS: dict[str, type[Workload]] = {"graph": Graph, "schemes": StoredGraph, "equality": Equalities}
UPDATES = 1000 if LONG else 60


@pytest.fixture
def m() -> Materialisation:
    return evermat.Program.parse(TEXT).materialise({"a": [(i,) for i in range(50)]})


def _b(numbers: Any) -> set[tuple[int, str]]:
    return {(i + 1, f"s{i}") for i in numbers}


def advance(world: World, part: int) -> None:
    """Makes the next step of a part."""
    step = world.workload.step(part, world.ledger.done[part])
    world.ledger.begun[part] += 1
    world.m.update(step.insert, step.delete, add_rules=step.add_rules, remove_rules=step.remove_rules)
    world.ledger.done[part] += 1


@pytest.fixture(params=WORKLOADS)
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    if request.param == "schemes":
        use_schemes(monkeypatch)
    return started(WORKLOADS[request.param](7), tmp_path, threaded=False)


@pytest.fixture(params=["reclaimed", "kept"])
def reclaimed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was deleted is reclaimed after every third update, or never."""
    chance = Random(3)
    due = request.param == "reclaimed"
    monkeypatch.setattr(reclaim.Waste, "is_due", lambda _self, _state: due and chance.random() < 1 / 3)


# --- iterations ------------------------------------------------------------------------------------------------------


def test_updates_within_an_iteration(m: Materialisation) -> None:
    """Each row is read once, those that are inserted meanwhile are not, and those that are deleted are."""
    found = []
    for (x,) in m["a"]:
        found.append(x)
        m.update({"a": [(x + 1000,)]}, {"a": [(x,), (x + 1,)]})
    assert sorted(found) == list(range(50))
    assert set(m["a"]) == {(x + 1000,) for x in range(50)}
    assert set(m["b"]) == _b(range(1000, 1050))


def test_updates_within_batches_of_an_answer(m: Materialisation) -> None:
    found = []
    for batch in m.query_batches("b(x, y), a(x), z = cat(y, y)"):
        found += rows_of(batch)
        m.update({"a": [(1000 + len(found),)]}, {"a": [(x,) for x in range(40)]})
    assert sorted(found) == sorted((x, f"s{x - 1}", f"s{x - 1}" * 2) for x in range(1, 50))


def test_updates_after_batches_of_an_answer_were_asked_for(m: Materialisation) -> None:
    """The call decides, or the first step; both are before the update."""
    batches = m.query_batches("b(x, y)")
    first = rows_of(next(batches))
    m.update({"a": [(1000,)]}, {"a": [(x,) for x in range(40)]})
    assert {row for batch in batches for row in rows_of(batch)} | set(first) == _b(range(50))


@pytest.mark.parametrize("form", EXPORTS)
def test_updates_within_an_export(m: Materialisation, form: Callable[[Any], Any]) -> None:
    found = []
    for table in form(m["b"]):
        m.update({"a": [(1000,)]}, {"a": [(x,) for x in range(40)]})
        found += rows_of(table)
    assert as_set(found) == _b(range(50))


def test_iterations_that_nobody_ends(m: Materialisation) -> None:
    """They may stay open or be dropped; what they have not read yet is still what it was."""
    open_ones: list[tuple[Iterator[Any], set[Any]]] = []
    numbers = set(range(50))
    for i in range(20):
        rows = iter(m["b"])
        open_ones.append((rows, _b(numbers) - {next(rows)}))
        numbers = numbers - {i, i + 1} | {100 + i}
        m.update({"a": [(100 + i,)]}, {"a": [(i,), (i + 1,)]})
        if i % 3 == 0:
            del open_ones[0]
    for rows, left in open_ones:
        assert as_set(rows) == left
    assert set(m["b"]) == _b(numbers)


def test_an_answer_stays(m: Materialisation) -> None:
    answers = [m.query("b(x, y), x > 10"), m.query('a(3), y = cat("new ", "symbol")'), m.query("a(x), !b(x, _)")]
    m.update({"a": [(1000,)]}, {"a": [(x,) for x in range(40)]})
    m.update(add_rules='b(7, "x") :- a(_).')
    assert [set(answer) for answer in answers] == [_b(range(10, 50)), {("new symbol",)}, {(0,)}]


# --- snapshots -------------------------------------------------------------------------------------------------------


def test_a_snapshot_reads_one_version(m: Materialisation, tmp_path: Path) -> None:
    with m.snapshot() as s:
        m.update({"a": [(1000,)]}, {"a": [(x,) for x in range(40)]})
        m.update(add_rules=".decl c(x:number) c(x) :- a(x).")
        assert list(s) == ["a", "b"]
        assert list(m) == ["a", "b", "c"]
        assert set(s["b"]) == _b(range(50))
        assert len(s["b"]) == 50
        assert (41, "s40") in s["b"]
        assert (1001, "s1000") not in s["b"]
        assert set(s.query("a(x), x < 3")) == {(0,), (1,), (2,)}
        assert {row for batch in s.query_batches("a(x), x < 3") for row in rows_of(batch)} == {(0,), (1,), (2,)}
        assert s.version is None
        for form in EXPORTS:
            assert as_set(row for table in form(s["b"]) for row in rows_of(table)) == _b(range(50))
        with pytest.raises(evermat.ProgramError):
            s.query("c(x)")
        with pytest.raises(KeyError):
            s["c"]
        assert set(m.query("c(x)")) == set(m["a"])


def test_a_snapshot_of_a_snapshot_or_of_none_is_an_error_not_a_wrong_answer(m: Materialisation) -> None:
    s = m.snapshot()
    relation, rows, answer = s["b"], iter(s["b"]), s.query("b(x, y)")
    next(rows)
    batches = s.query_batches("b(x, y)")
    next(batches)
    s.close()
    s.close()  # nothing is left to do
    for use in (
        lambda: s.query("a(x)"),
        lambda: list(s.query_batches("a(x)")),
        lambda: len(s["a"]),
        lambda: set(s["a"]),
        lambda: s["a"].to_arrow(),
        lambda: len(relation),
        lambda: (1,) in relation,
        lambda: set(relation),
        lambda: list(s.triples()),
        lambda: s.write_outputs("nowhere"),
        lambda: s.export("nowhere.nt"),
    ):
        with pytest.raises(evermat.EvermatError, match="snapshot"):
            use()
    assert set(answer) == _b(range(50))  # an answer has its rows
    assert set(m["b"]) == _b(range(50))


def test_a_snapshot_is_held_while_everything_changes(world: World, reclaimed: None) -> None:
    """Facts come and go and come again, numbers outgrow their columns, rules change; memory is reclaimed."""
    rng, held = Random(1), list[tuple[Any, Version]]()
    chosen = world.workload.always()
    for number in range(UPDATES):
        if number % max(10, UPDATES // 20) == 0:
            held.append((world.m.snapshot(), world.ledger.all_done()))
        advance(world, RULES if number % 7 == 6 else rng.randrange(2))
        if held:
            s, version = rng.choice(held)
            checked(world, s, version, rng.sample(chosen, 1))
            if rng.random() < 0.05:
                s.close()
                held.remove((s, version))
    gc.collect()
    for s, version in held:
        assert checked_whole(world, s) == version
        for question in world.workload.questions:
            assert set(s.query(question.text)) == set(question.answer(world.workload.facts(version))), question.text
    world.m.close()
    for s, version in held:
        assert checked_whole(world, s) == version
        s.close()
    assert checked_whole(world, world.m) == world.ledger.all_done()


def test_a_snapshot_outlives_its_state_directory(tmp_path: Path) -> None:
    world = started(Graph(5), tmp_path, state=True, threaded=False)
    with world.m.snapshot() as s:
        assert s.version == 1
        advance(world, 0)
        world.m.save(tmp_path / "other")
        advance(world, 1)
        with world.m.snapshot() as later:
            assert later.version == 2  # the other directory has one version before
            world.m.close()
            assert checked_whole(world, s) == START
            assert checked_whole(world, later) == (1, 1, 0)
        assert s.version == 1


def test_snapshots_of_both_sides_of_every_change(world: World, reclaimed: None) -> None:
    """A change lists, whenever it is read, what lies between the two versions."""
    rng, changes = Random(2), []
    for _ in range(15):
        before = world.m.snapshot()
        part = rng.choice([0, 1, RULES])
        step = world.workload.step(part, world.ledger.done[part])
        change = world.m.update(step.insert, step.delete, add_rules=step.add_rules, remove_rules=step.remove_rules)
        world.ledger.begun[part] += 1
        world.ledger.done[part] += 1
        changes.append((before, change, world.m.snapshot()))
    for before, change, after in changes:
        for name in after:
            old, new = set(before[name]) if name in before else set(), set(after[name])
            assert set(change.inserted[name]) == new - old
            assert set(change.deleted[name]) == old - new


@pytest.mark.parametrize("where", ["facts", "derivation", "rules", "forbidden", "limit"])
def test_an_update_that_fails_while_snapshots_are_held(world: World, where: str) -> None:
    """Neither the snapshots nor what is read later have anything of it."""
    failing: dict[str, dict[str, Any]] = {
        "facts": {"insert": {"now": [("x", 1)]}},
        "derivation": {"insert": {"now": [(9, 9)]}, "limit_rounds": 0},
        "rules": {"insert": {"now": [(9, 9)]}, "add_rules": "now(p, n) :- nothing(p, n)."},
        "forbidden": {"insert": {"now": [(9, 9)]}, "add_rules": ".decl bad(n:number) forbidden bad(n) :- now(9, n)."},
        "limit": {"insert": {"now": [(9, i) for i in range(100)]}, "limit_facts": 1},
    }
    advance(world, 0)
    with world.m.snapshot() as s:
        with pytest.raises(evermat.EvermatError):
            world.m.update(**failing[where])
        with world.m.snapshot() as now:
            assert checked_whole(world, now) == checked_whole(world, s) == (1, 0, 0)
        advance(world, 1)
        advance(world, RULES)
        assert checked_whole(world, s) == (1, 0, 0)
    assert checked_whole(world, world.m) == (1, 1, 1)


def test_a_snapshot_asks_what_the_dictionary_does_not_know_yet(m: Materialisation) -> None:
    """Symbols that come after it was made, by facts or by queries, are not in it."""
    with m.snapshot() as s:
        m.update({"a": [(77,)]})
        assert (78, "s77") not in s["b"]
        assert not s.query('b(_, "s77")')
        assert set(s.query('b(x, y), !b(_, "s77"), x < 2')) == {(1, "s0")}
        assert set(s.query('x = cat("s", "77"), a(0)')) == {("s77",)}
        assert not s.query('b(_, cat("s", "77"))')


def test_dense_numbers_become_sparse_and_wide_while_a_snapshot_is_held() -> None:
    m = evermat.Program.parse(".decl a(x:number, y:number) .decl b(y:number) b(y) :- a(_, y).").materialise(
        {"a": [(i, i % 7) for i in range(100)]}
    )
    with m.snapshot() as s:
        relation, expected = s["a"], {(i, i % 7) for i in range(100)}
        for shift in (10**3, 10**6, 2**31, 2**40, 2**62):
            m.update(
                {"a": [(i + shift, i * shift % 2**60) for i in range(100)]}, {"a": [(i, i % 7) for i in range(50)]}
            )
            assert set(relation) == set(s["a"]) == expected
            assert {(y,) for _, y in expected} == set(s["b"])
            assert set(s.query("a(x, y), b(y), x > 90")) == {(x, y) for x, y in expected if x > 90}
            assert (shift, 0) not in s["a"]
            assert (99, 1) in s["a"]
    assert len(m["a"]) == 550


def test_a_source_that_is_fixed_is_read_in_every_way(world: World) -> None:
    from tests.threads.reads import OF_SNAPSHOTS, RDF

    with world.m.snapshot() as s:
        for part in (0, RULES, 1):
            advance(world, part)
        source = Source.fixed(world, s, START)
        for read in OF_SNAPSHOTS:
            if isinstance(world.workload, Graph) or read not in RDF:
                for number in range(4):
                    for _ in read(source, Random(f"{read.__name__} {number}")):
                        pass


# --- two states ------------------------------------------------------------------------------------------------------


def test_a_second_writer_of_a_state_in_this_process_is_refused(tmp_path: Path) -> None:
    world = started(Graph(1), tmp_path, state=True, threaded=False)
    with evermat.open(tmp_path / "state") as other:
        text = refused(lambda: other.update({"edge": [("x", "y")]}))
        assert text.startswith(f"error[E502]: the state `{tmp_path / 'state'}` is locked")
        assert refused(lambda: evermat.open(tmp_path / "state", write=True)) == text
        assert checked_whole(world, other) == START
    world.close()
