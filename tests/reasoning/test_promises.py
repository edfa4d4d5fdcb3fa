"""What the papers promise of the algorithms, beyond the right result: Examples 1–3 of *Optimised maintenance*."""

from __future__ import annotations

from random import Random

import pytest

import evermat
from evermat.testing import state_of
from tests.support.engines import Engine, on_engines, randomly
from tests.support.strategies import Features, random_program
from tests.support.updates import random_update

EXAMPLE_1 = """
.decl R(x:symbol, y:symbol)
.decl S(x:symbol, y:symbol)
S(y1, y2) :- R(x, y1), R(x, y2).
"""
EXAMPLE_2 = """
.decl B(s:symbol, t:symbol, n:number)
.decl D(s:symbol, n:number)
D(y, z) :- B("a", y, z).
D(y, z) :- D(x, z1), B(x, y, z2), z = z1 + z2.
"""
EXAMPLE_3 = """
.decl A(x:symbol)
.decl B(x:symbol, y:symbol)
A(y) :- A(x), B(x, y).
"""


def example_1(engine: Engine, n: int):
    facts = [(f"a{i}", "b") for i in range(n)] + [(f"a{i}", f"c{i}") for i in range(n)]
    m = engine.materialise(EXAMPLE_1, {"R": facts}, counters="both")
    return m, {"R": [(f"a{i}", f"c{i}") for i in range(n)]}


def example_2(engine: Engine, n: int):
    facts = [("a", "b0", 1), *(("a", f"c{i}", 1) for i in range(n))]
    facts += [(f"b{i}", f"d{j}", 1) for i in range(n) for j in range(n)]
    m = engine.materialise(EXAMPLE_2, {"B": facts}, counters="both")
    return m, {"B": [("a", "b0", 1)]}


def work(engine: Engine, example, n: int, algorithm: str) -> int:
    """How many facts rules looked at."""
    m, deleted = example(engine, n)
    stats = m.update(delete=deleted, algorithm=algorithm).stats
    return sum(asked["matches"] for asked in stats["asked"].values())


def backward(stats) -> int:
    """How often rules were evaluated backwards."""
    return sum(stats["asked"][kind]["calls"] for kind in ("backward", "supports") if kind in stats["asked"])


@pytest.mark.slow
@pytest.mark.parametrize("example", [example_1, example_2])
@on_engines
def test_dred_with_counters_looks_at_a_linear_number_of_facts(engine: Engine, example) -> None:
    small, large = work(engine, example, 20, "dred-c"), work(engine, example, 80, "dred-c")
    assert large <= 4.5 * small
    # DRed pays for rederivation: it looks at a quadratic number.
    assert work(engine, example, 80, "dred") >= 8 * work(engine, example, 20, "dred")


@pytest.mark.parametrize("example", [example_1, example_2])
@on_engines
def test_dred_with_counters_evaluates_nothing_backwards(engine: Engine, example) -> None:
    m, deleted = example(engine, 10)
    assert backward(m.update(delete=deleted, algorithm="dred-c").stats) == 0
    m, deleted = example(engine, 10)
    assert backward(m.update(delete=deleted, algorithm="dred").stats) > 0


@pytest.mark.slow
@on_engines
def test_example_3_overdeletes_exactly_two_facts(engine: Engine) -> None:
    facts = {"A": [("a",), ("b",), ("d",)], "B": [("a", "c"), ("b", "c"), ("c", "d"), ("d", "e")]}
    figures = {}
    for algorithm in ("dred", "dred-c", "bf", "bf-c"):
        m = engine.materialise(EXAMPLE_3, facts, counters="both")
        change = m.update(delete={"A": [("a",)]}, algorithm=algorithm)
        assert set(change.deleted["A"]) == {("a",)}
        assert set(m["A"]) == {("b",), ("c",), ("d",), ("e",)}
        figures[algorithm] = (change.stats["overdeleted"], change.stats["rederived"])
    assert figures["dred-c"] == (2, 1)  # A(a) and A(c); A(c) comes back
    assert figures["dred"][0] == 4
    assert figures["bf"] == figures["bf-c"] == (1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["bf", "bf-c"])
@randomly(memory=40, spark=2)
def test_backward_forward_deletes_exactly(engine: Engine, algorithm: str, rng: Random) -> None:
    random = random_program(rng, Features(aggregates=False))
    m = engine.materialise(random.text, random.facts, counters="both")
    delete, insert = random_update(rng, random.relations, random.facts)
    pure = {name: rows - insert.get(name, set()) for name, rows in delete.items()}
    only_deleted = m.update(delete=pure, algorithm=algorithm)
    hidden = [r for r in m.program.relations.values() if r.hidden or r.name in state_of(m).stored_by_schemes]
    if not hidden and not random.text.count("!"):  # what comes by a negation is no deletion, and is not counted here
        assert only_deleted.stats["overdeleted"] == only_deleted.stats["deleted"]
    assert only_deleted.stats["rederived"] == 0


@pytest.mark.slow
@randomly(memory=40, spark=2, schemes=0)  # the promise is one of facts that are stored by rows
def test_without_recursion_dred_with_counters_does_what_counting_does(engine: Engine, rng: Random) -> None:
    random = random_program(rng, Features(recursion=False))
    delete, insert = random_update(rng, random.relations, random.facts)
    figures, seed = [], rng.random()
    for algorithm in ("counting", "dred-c"):
        engine.repeat(seed)
        stats = (
            engine.materialise(random.text, random.facts, counters="both")
            .update(insert=insert, delete=delete, algorithm=algorithm)
            .stats
        )
        assert backward(stats) == 0
        figures.append(
            (
                stats["derivations"],
                stats["overdeleted"],
                stats["rederived"],
                stats["asked"].get("forward", {}).get("matches", 0),
            )
        )
    assert figures[0] == figures[1]


@randomly(memory=40, spark=2)
def test_an_empty_update_asks_nothing(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    m = engine.materialise(random.text, random.facts)
    change = m.update(insert=random.facts, delete={}, algorithm="dred-c")  # all of it is there already
    assert not change
    assert change.stats["asked"] == {}


def test_facts_in_question_are_looked_for_where_few_match() -> None:
    """Whether somebody may still do something is asked of the groups that they are in, not of all groups that may do it."""
    text = """
    .decl member(u:number, g:number)
    .decl grants(g:number, r:number)
    .decl can(u:number, r:number)
    can(u, r) :- member(u, g), grants(g, r).
    """
    facts = {
        "member": [(u, u % 200) for u in range(2000)],
        "grants": [(g, r) for g in range(200) for r in range(5)],
    }
    m = evermat.Program.parse(text).materialise(facts)
    stats = m.update(delete={"member": [(u, u % 200) for u in range(50)]}, algorithm="bf").stats
    assert stats["deleted"] == 300
    assert (
        sum(asked["matches"] for asked in stats["asked"].values()) < 2000
    )  # 250 facts in question, 200 groups for each
