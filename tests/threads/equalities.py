"""A workload in which terms become equal, and cease to be."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from random import Random
from typing import Any, ClassVar

from tests.threads.workload import Question, Workload, wave

SAME = "<http://www.w3.org/2002/07/owl#sameAs>"


def _term(number: int) -> str:
    return f"<http://e/{number}>"


class Equalities(Workload):
    """Terms with a common key are equal; what holds of one holds of all of them."""

    text = """
.pragma "equality" "rewrite"
.prefix e: <http://e/>
.decl now(part:number, step:number)
.decl key(x:term, k:number)
.decl knows(x:term, y:term)
.decl friend(x:term, y:term)
.decl stamp(part:number, step:number, x:term)
.decl extra(x:term, y:term)
.decl alone(x:term)
x = y :- key(x, k), key(y, k).
friend(x, z) :- knows(x, y), knows(y, z).
stamp(p, n, x) :- now(p, n), knows(x, _).
alone(x) :- knows(x, _), !key(x, 3).
"""
    reversed_, joined = "extra(x, y) :- knows(y, x).", "extra(x, y) :- key(x, k), knows(x, y), k > 2."
    choices = (frozenset(), frozenset({reversed_}), frozenset({reversed_, joined}))
    late: ClassVar[Mapping[str, str]] = {}
    questions = (
        Question("now(p, n)", lambda f: f["now"]),
        Question("now(p, n), knows(x, y)", lambda f: {(p, n, *row) for p, n in f["now"] for row in f["knows"]}),
        Question("now(p, n), friend(x, y), key(x, k)", lambda f: {(p, n, x, y, k) for p, n in f["now"] for x, y in f["friend"] for z, k in f["key"] if z == x}),
        Question("knows(<http://e/5>, y)", lambda f: {(y,) for x, y in f["knows"] if x == _term(5)}),
        Question("now(0, n), extra(x, <http://e/unknown>)", lambda _: ()),
        Question("stamp(p, n, x), alone(x)", lambda f: {row for row in f["stamp"] if row[2:] in f["alone"]}),
        Question("knows(x, y), !key(x, 3), now(1, n)", lambda f: {(x, y, n) for x, y in f["knows"] for p, n in f["now"] if p == 1 and (x, 3) not in f["key"]}),
    )  # fmt: skip

    def owned(self, part: int, step: int, rng: Random) -> dict[str, set[tuple[Any, ...]]]:
        first = wave(step, 5) + 10 * part
        terms = [_term(first + i) for i in range(5)]
        keys = {(rng.choice(terms), rng.randrange(6)) for _ in range(4)}
        knows = {(rng.choice(terms), _term(rng.randrange(20))) for _ in range(3)}
        return {"key": keys, "knows": knows}

    def derive(self, facts: dict[str, set[tuple[Any, ...]]], rules: frozenset[str]) -> None:
        key, now = facts["key"], facts["now"]
        classes = _classes(key)

        def expanded(rows: set[tuple[Any, ...]], *columns: int) -> set[tuple[Any, ...]]:
            return {
                new
                for row in rows
                for new in product(*(classes.get(v, {v}) if i in columns else {v} for i, v in enumerate(row)))
            }

        facts["key"] = key = expanded(key, 0)
        facts["knows"] = knows = expanded(facts["knows"], 0, 1)
        facts["friend"] = {(x, z) for x, y in knows for w, z in knows if y == w}
        people = {x for x, _ in knows}
        facts["stamp"] = {(p, n, x) for p, n in now for x in people}
        facts["alone"] = {(x,) for x in people if (x, 3) not in key}
        facts["extra"] = {(y, x) for x, y in knows} if self.reversed_ in rules else set()
        if self.joined in rules:
            facts["extra"] |= {(x, y) for x, y in knows if any(z == x and k > 2 for z, k in key)}
        facts[SAME] = {(x, y) for terms in classes.values() for x in terms for y in terms}


def _classes(key: set[tuple[Any, ...]]) -> dict[str, set[str]]:
    """The terms that are equal to each term that has a key, itself included."""
    classes: dict[str, set[str]] = {}
    for number in {k for _, k in key}:
        terms = {x for x, k in key if k == number}
        together = terms.union(*(classes.get(x, set()) for x in terms))
        classes.update(dict.fromkeys(together, together))
    return classes
