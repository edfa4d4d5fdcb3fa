"""Algorithms and engines agree with each other, and it does not matter how changes are cut into updates."""

from __future__ import annotations

from random import Random

import pytest

import evermat
from tests.support.engines import PLACES, Engine, randomly, using
from tests.support.strategies import Facts, Features, random_program, random_query
from tests.support.updates import ALGORITHMS, applied, assert_counters_right, facts_of, random_update


@pytest.mark.slow
@randomly(memory=50, spark=1)
def test_all_algorithms_report_the_same_change(engine: Engine, rng: Random) -> None:
    recursion = rng.random() < 0.7
    random = random_program(rng, Features(recursion=recursion))
    delete, insert = random_update(rng, random.relations, random.facts)
    changes = []
    for algorithm in ALGORITHMS[recursion:]:  # Counting comes first, and does no recursion
        change = engine.materialise(random.text, random.facts).update(insert=insert, delete=delete, algorithm=algorithm)
        changes.append({n: (set(change.inserted[n]), set(change.deleted[n])) for n in change.inserted})
    assert all(change == changes[0] for change in changes)


@pytest.mark.slow
@randomly(memory=50, spark=2)
def test_any_split_into_updates_gives_the_same(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    explicit = random.facts
    steps = []
    for _ in range(4):
        delete, insert = random_update(rng, random.relations, explicit)
        steps += [
            ("delete", name, row) for name, rows in delete.items() for row in sorted(rows - insert.get(name, set()))
        ]
        steps += [("insert", name, row) for name, rows in insert.items() for row in sorted(rows)]
        explicit = applied(explicit, delete, insert)
    algorithm = rng.choice(ALGORITHMS[1:])
    results = []
    for _ in range(2):
        m = engine.materialise(random.text, random.facts)
        position = 0
        while position < len(steps):
            size = rng.randint(1, len(steps))
            batch = {"insert": {}, "delete": {}}
            for kind, name, row in steps[position : position + size]:  # within an update the last word counts
                other = "delete" if kind == "insert" else "insert"
                batch[kind].setdefault(name, set()).add(row)
                batch[other].get(name, set()).discard(row)
            m.update(**batch, algorithm=algorithm)
            position += size
        results.append(facts_of(m))
    assert results[0] == results[1] == facts_of(engine.materialise(random.text, explicit))


@randomly(memory=0, spark=4, engines=["spark"])
def test_engines_answer_queries_alike(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    m = engine.materialise(random.text, random.facts)
    expected = evermat.Program.parse(random.text).materialise(random.facts)
    for _ in range(5):
        text, _types = random_query(rng, random.relations)
        undefined = list(m.undefined())
        assert set(m.query(text)) == set(expected.query(text)), text
        assert list(m.undefined()) == undefined


DECLARATIONS = """
.decl e(x:number, y:number)
.decl f(x:number, s:symbol)
.decl node(x:number)
.decl blocked(x:number)
.decl path(x:number, y:number)
.decl connected(x:number, y:number)
.decl level(x:number, y:number)
.decl label(s:symbol, x:number)
.decl apart(x:number, y:number)
.decl size(x:number, n:number)
node(x) :- e(x, _).
node(x) :- f(x, _).
blocked(x) :- f(x, "s0"), !e(x, x).
"""
PARTS = (
    "path(x, y) :- e(x, y). path(x, z) :- path(x, y), e(y, z), !blocked(z).",
    "connected(x, y) :- e(x, y). connected(x, y) :- e(y, x). connected(x, z) :- connected(x, y), connected(y, z).",
    "level(x, y) :- f(x, s), f(y, s), !blocked(x). level(x, y) :- e(a, x), level(a, b), e(b, y), x != y.",
    "label(s, x) :- f(x, s). label(s, y) :- label(s, x), e(x, y). label(s, x) :- label(s, x), path(x, x).",
    "apart(x, y) :- node(x), node(y), !path(x, y), !connected(x, y).",
    "size(x, n) :- node(x), n = count : { path(x, _) }. size(x, n) :- node(x), n = sum y : { level(x, y) }.",
)


@pytest.mark.slow
@randomly(memory=0, spark=1, engines=[*PLACES], few=100)
def test_engines_agree_on_larger_data(engine: Engine, rng: Random) -> None:
    """Hundreds of facts, so that every bucket, packet and file has some of them."""
    text = DECLARATIONS + "\n".join(rng.sample(PARTS, rng.randint(1, 3)))
    nodes, facts = rng.randint(15, 25), rng.randint(30, 80)

    def some(count: int) -> Facts:
        edges = {(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(count)}
        return {"e": edges, "f": {(rng.randrange(nodes), f"s{rng.randrange(nodes)}") for _ in range(count)}}

    explicit = some(facts)
    counters = rng.choice(["none", "both"])
    expected = evermat.Program.parse(text).materialise(explicit, counters=counters)
    m = engine.materialise(text, explicit, counters)
    assert facts_of(m) == facts_of(expected)
    delete = {name: set(rng.sample(sorted(rows), 5)) for name, rows in explicit.items()}
    insert = some(5)
    for one in (m, expected):
        one.update(insert=insert, delete=delete, algorithm=rng.choice(ALGORITHMS[1:]))
    assert facts_of(m) == facts_of(expected)


@pytest.mark.slow
def test_a_stratum_that_goes_on_elsewhere_considers_each_instance_once() -> None:
    """Rules with two recursive atoms, in the driver and then in tasks: Δ is some of the facts, which lie anywhere in their files."""
    text = """
    .decl r(c0:number, c1:symbol, c2:symbol) .decl s(c0:symbol, c1:number)
    s(y, 1) :- r(-1, "é", y).
    r(2, y, y) :- s(y, x), r(w, y, y).
    """
    places = set()
    for seed in range(40):
        rng = Random(seed)
        names = ["", "a", "é", "b", "c"]
        explicit = {
            "r": {(rng.randint(-1, 1), rng.choice(names), rng.choice(names)) for _ in range(12)},
            "s": {(rng.choice(names), rng.randint(-1, 2)) for _ in range(7)},
        }
        with using("auto", rng) as engine:
            m = engine.materialise(text, explicit, "both")
            assert_counters_right(m, explicit)
            places |= {stratum["place"] for stratum in m.stats["strata"]}
    assert {"driver, then task", "driver, then pivot"} & places
