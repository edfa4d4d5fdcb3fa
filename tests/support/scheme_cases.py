"""Programs that the tests of storage schemes share, and how a relation is read in every way."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import evermat
from evermat import Materialisation
from evermat.runtime.change import Change
from tests.support.strategies import Facts

EDGES = {(1, 2), (2, 3), (3, 4), (4, 3), (5, 5), (6, 1)}
CLOSED = EDGES | {(1, 3), (1, 4), (2, 4), (3, 3), (4, 4), (6, 2), (6, 3), (6, 4)}
NODES = range(10)

DECLARED = ".decl e(x:number, y:number) .decl f(x:number, y:number) .decl t(x:number, y:number) "
CLOSE = "t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z). "


class Case(NamedTuple):
    """A program, its explicit facts, the facts that relations have then, and how these are stored."""

    text: str
    facts: Facts
    expected: Facts
    schemes: dict[str, str]


CLOSURES = {
    "transitive": Case(DECLARED + CLOSE, {"e": EDGES}, {"t": CLOSED}, {"t": "intervals"}),
    "left": Case(
        DECLARED + "t(x, y) :- e(x, y). t(x, z) :- t(x, y), e(y, z).",
        {"e": EDGES},
        {"t": CLOSED},
        {"t": "intervals"},
    ),
    "right": Case(
        DECLARED + "t(x, y) :- e(x, y). t(x, z) :- e(x, y), t(y, z).",
        {"e": EDGES},
        {"t": CLOSED},
        {"t": "intervals"},
    ),
    "left from other edges": Case(
        DECLARED + "t(x, y) :- f(x, y). t(x, z) :- e(y, z), t(x, y).",
        {"e": EDGES, "f": {(0, 1), (7, 3), (3, 9)}},
        {"t": {(0, 1), (0, 2), (0, 3), (0, 4), (7, 3), (7, 4), (3, 9)}},
        {"t": "intervals"},
    ),
    "right to other edges": Case(
        DECLARED + "t(x, y) :- f(x, y). t(x, z) :- t(y, z), e(x, y).",
        {"e": EDGES, "f": {(2, 8), (4, 9)}},
        {"t": {(1, 8), (2, 8), (6, 8), (1, 9), (2, 9), (3, 9), (4, 9), (6, 9)}},
        {"t": "intervals"},
    ),
    "steps backwards": Case(
        DECLARED + "t(x, y) :- f(x, y). t(x, z) :- t(x, y), e(z, y).",
        {"e": EDGES, "f": {(8, 2), (0, 5)}},
        {"t": {(8, 2), (8, 1), (8, 6), (0, 5)}},
        {"t": "intervals"},
    ),
    "symmetric": Case(
        DECLARED + CLOSE + "t(y, x) :- t(x, y).",
        {"e": {(1, 2), (3, 2), (5, 5), (6, 7)}},
        {"t": {(x, y) for group in [(1, 2, 3), (5,), (6, 7)] for x in group for y in group}},
        {"t": "intervals"},
    ),
    "inverse": Case(
        ".decl t(x:number, y:number) .decl narrower(x:number, y:number) "
        "t(x, z) :- t(x, y), t(y, z). narrower(y, x) :- t(x, y). t(y, x) :- narrower(x, y).",
        {"t": {(1, 2), (4, 4)}, "narrower": {(3, 2), (5, 3)}},
        {
            "t": {(1, 2), (1, 3), (1, 5), (2, 3), (2, 5), (3, 5), (4, 4)},
            "narrower": {(2, 1), (3, 1), (5, 1), (3, 2), (5, 2), (5, 3), (4, 4)},
        },
        {"t": "intervals", "narrower": "intervals"},
    ),
    "alike": Case(
        ".decl t(x:number, y:number) .decl same(x:number, y:number) "
        "t(x, z) :- t(x, y), t(y, z). same(x, y) :- t(x, y). t(x, y) :- same(x, y).",
        {"t": {(1, 2)}, "same": {(2, 3)}},
        {"t": {(1, 2), (2, 3), (1, 3)}, "same": {(1, 2), (2, 3), (1, 3)}},
        {"t": "intervals", "same": "intervals"},
    ),
    "over a closure": Case(
        DECLARED + ".decl c(x:number, y:number) c(x, y) :- e(x, y). c(x, z) :- c(x, y), c(y, z). "
        "t(x, y) :- f(x, y). t(x, z) :- t(x, y), c(y, z).",
        {"e": EDGES, "f": {(0, 1), (7, 3)}},
        {"c": CLOSED, "t": {(0, 1), (0, 2), (0, 3), (0, 4), (7, 3), (7, 4)}},
        {"c": "intervals", "t": "intervals"},
    ),
    "of a closure, turned": Case(
        DECLARED + ".decl c(x:number, y:number) c(x, y) :- e(x, y). c(x, z) :- c(x, y), c(y, z). "
        "t(y, x) :- c(x, y), f(x, _). t(x, z) :- t(x, y), t(y, z).",
        {"e": {(1, 2), (2, 3), (4, 1)}, "f": {(1, 0), (2, 0)}},
        {"c": {(1, 2), (2, 3), (4, 1), (1, 3), (4, 2), (4, 3)}, "t": {(2, 1), (3, 1), (3, 2)}},
        {"c": "intervals", "t": "intervals"},
    ),
    "explicit facts": Case(
        DECLARED + CLOSE,
        {"e": {(1, 2), (3, 4)}, "t": {(2, 3), (1, 2), (1, 4), (9, 9)}},
        {"t": {(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4), (9, 9)}},
        {"t": "intervals"},
    ),
    "other recursive rules": Case(
        DECLARED + CLOSE + "t(x, y) :- t(y, x), f(x, y).",
        {"e": {(1, 2), (2, 3), (3, 5)}, "f": {(3, 1), (9, 9), (5, 6)}},
        {"t": {(x, y) for x in (1, 2, 3) for y in (1, 2, 3, 5)}},
        {"t": "intervals"},
    ),
    "nothing": Case(DECLARED + CLOSE, {}, {"t": set()}, {"t": "intervals"}),
}

#: relations that read t in every way that a rule can
READERS = """
.decl node(x:number)
.decl from_one(y:number)        from_one(y) :- t(1, y).
.decl to_three(x:number)        to_three(x) :- t(x, 3).
.decl one_to_three()            one_to_three() :- t(1, 3).
.decl three_to_one()            three_to_one() :- t(3, 1).
.decl some()                    some() :- t(_, _).
.decl loop(x:number)            loop(x) :- t(x, x).
.decl forwards(x:number, y:number)  forwards(x, y) :- node(x), t(x, y).
.decl backwards(x:number, y:number) backwards(x, y) :- node(y), t(x, y).
.decl held(x:number, y:number)  held(x, y) :- node(x), node(y), t(x, y).
.decl apart(x:number, y:number) apart(x, y) :- node(x), node(y), !t(x, y).
.decl last(x:number)            last(x) :- node(x), !t(x, _).
.decl first(x:number)           first(x) :- node(x), !t(_, x).
.decl tails(x:number)           tails(x) :- t(x, _).
.decl reaches(x:number, n:number)   reaches(x, n) :- node(x), n = count : { t(x, _) }.
.decl reached(x:number, n:number)   reached(x, n) :- node(x), n = count : { t(_, x) }.
.decl loops(n:number)           loops(n) :- n = count : { t(x, x) }.
.decl pairs(n:number)           pairs(n) :- n = count : { t(_, _) }.
.decl farthest(x:number, n:number)  farthest(x, n) :- node(x), n = max y : { t(x, y) }.
.decl twice(x:number, z:number) twice(x, z) :- t(x, y), t(y, z).
.decl meet(x:number, z:number)  meet(x, z) :- t(x, y), t(z, y), x < z.
"""


def read_by_rules(t: set[tuple[int, int]]) -> Facts:
    """What `READERS` derive from the facts of t."""
    nodes = set(NODES)
    ahead = {x: {y for a, y in t if a == x} for x in nodes}
    behind = {y: {x for x, b in t if b == y} for y in nodes}
    return {
        "from_one": {(y,) for y in ahead[1]},
        "to_three": {(x,) for x in behind[3]},
        "one_to_three": {()} if (1, 3) in t else set(),
        "three_to_one": {()} if (3, 1) in t else set(),
        "some": {()} if t else set(),
        "loop": {(x,) for x, y in t if x == y},
        "forwards": t,
        "backwards": t,
        "held": t,
        "apart": {(x, y) for x in nodes for y in nodes} - t,
        "last": {(x,) for x in nodes if not ahead[x]},
        "first": {(x,) for x in nodes if not behind[x]},
        "tails": {(x,) for x, _ in t},
        "reaches": {(x, len(ahead[x])) for x in nodes},
        "reached": {(x, len(behind[x])) for x in nodes},
        "loops": {(sum(x == y for x, y in t),)},
        "pairs": {(len(t),)},
        "farthest": {(x, max(ahead[x])) for x in nodes if ahead[x]},
        "twice": {(x, z) for x, y in t for z in ahead[y]},
        "meet": {(x, z) for x, y in t for z in behind[y] if x < z},
    }


@cache
def parsed(text: str) -> evermat.Program:
    """The program of a text."""
    return evermat.Program.parse(text)


def schemes_of(m: Materialisation) -> dict[str, str]:
    """The storage schemes of relations that have one."""
    return {name: made["scheme"] for name, made in m.stats["schemes"].items() if made["scheme"] != "plain"}


def told(change: Change) -> dict[str, Any]:
    """All that a change tells which does not depend on how facts are stored; nothing is told twice."""
    found: dict[str, Any] = {key: change.stats[key] for key in ("inserted", "deleted", "explicit")}
    for side, changes in (("inserted", change.inserted), ("deleted", change.deleted)):
        rows = {name: sorted(changes[name]) for name in changes}
        assert {name: len(changes[name]) for name in changes} == {name: len(set(r)) for name, r in rows.items()}
        assert changes.total == sum(map(len, rows.values()))
        found[f"{side} facts"] = {name: some for name, some in rows.items() if some}
    assert bool(change) == bool(change.inserted.total or change.deleted.total)
    return found
