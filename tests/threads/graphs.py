"""Workloads over a graph: recursion, negation, aggregates, computed symbols, numbers that outgrow their columns, RDF and changes of rules."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

from tests.threads.workload import Facts, Question, Workload, closure, marker, wave

AT, BOTH = "<http://e/at>", "<http://e/both>"


def _mark(part: int, step: int) -> str:
    return f"<http://e/{part}/{marker(step)}>"


def _term(part: int) -> str:
    return f"<http://e/part{part}>"


def _joined(facts: Facts) -> set[tuple[Any, ...]]:
    """Markers, and paths of two steps."""
    pairs = {(x, z) for x, y in facts["edge"] for w, z in facts["edge"] if y == w}
    return {(p, n, x, z) for p, n in facts["now"] for x, z in pairs}


class Graph(Workload):
    """Paths in a graph to which both parts have edges, also from one to the other."""

    text = """
.prefix e: <http://e/>
.decl now(part:number, step:number)
.decl edge(x:symbol, y:symbol)
.decl weight(x:symbol, w:number)
.decl path(x:symbol, y:symbol)
.decl node(x:symbol)
.decl apart(x:symbol, y:symbol)
.decl fan(x:symbol, n:number)
.decl total(n:number)
.decl heaviest(n:number)
.decl stamp(part:number, step:number, x:symbol)
.decl label(x:symbol, y:symbol)
.decl extra(x:symbol, y:symbol)
.decl connected()
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
node(x) :- edge(x, _).
node(y) :- edge(_, y).
apart(x, y) :- node(x), node(y), !path(x, y).
fan(x, n) :- node(x), n = count : { path(x, _) }.
total(n) :- n = sum w : { weight(_, w) }.
heaviest(n) :- n = max w : { weight(_, w) }.
stamp(p, n, x) :- now(p, n), node(x).
label(x, cat(x, "@", to_string(n))) :- node(x), now(0, n).
connected() :- path("0.0", "1.0").
e:both(s, t) :- e:at(e:part0, s), e:at(e:part1, t).
.output path
.output now
"""
    back = "path(y, x) :- edge(x, y), weight(x, _)."
    reversed_, indirect = "extra(x, y) :- edge(y, x).", "extra(x, y) :- path(x, y), !edge(x, y)."
    heavy, loop = "node(x) :- weight(x, _).", "late(x) :- path(x, x)."
    choices = (
        frozenset(),
        frozenset({reversed_, loop}),
        frozenset({reversed_, indirect}),
        frozenset({indirect, heavy, loop}),
        frozenset({back, heavy}),
    )
    late: ClassVar[Mapping[str, str]] = {"late": ".decl late(x:symbol)"}
    questions = (
        Question("now(p, n)", lambda f: f["now"]),
        Question("now(p, n), edge(x, y), edge(y, z)", lambda f: {(p, n, x, y, z) for p, n, x, z in _joined(f) for y in _middle(f, x, z)}),
        Question("now(p, n), path(x, y), !edge(x, y)", lambda f: {(p, n, *row) for p, n in f["now"] for row in f["path"] - f["edge"]}),
        Question("path(x, y), edge(y, _), now(0, _)", lambda f: {row for row in f["path"] if any(x == row[1] for x, _ in f["edge"])}),
        Question('path("0.3", y)', lambda f: {(y,) for x, y in f["path"] if x == "0.3"}),
        Question('path(x, "nothing has this name")', lambda _: ()),
        Question('now(p, n), node(x), !edge(x, "1.2")', lambda f: {(p, n, x) for p, n in f["now"] for (x,) in f["node"] if (x, "1.2") not in f["edge"]}),
        Question('stamp(p, n, x), y = cat(x, "?", to_string(n))', lambda f: {(p, n, x, f"{x}?{n}") for p, n, x in f["stamp"]}),
        Question("label(x, y), now(1, n), strlen(y) > 2, z = cat(to_string(n), y)", lambda f: {(x, y, n, f"{n}{y}") for x, y in f["label"] for p, n in f["now"] if p == 1}),
        Question("now(p, n), k = count : { path(_, _) }, s = sum w : { weight(_, w) }", lambda f: {(p, n, len(f["path"]), sum(w for _, w in f["weight"])) for p, n in f["now"]}),
        Question("n = count : { apart(x, _), label(x, _) }", lambda f: {(len({(x, y, z) for x, y in f["apart"] for w, z in f["label"] if x == w}),)}),
        Question("fan(x, n), n > 2, weight(x, w), v = w / 2 + n", lambda f: {(x, n, w, w // 2 + n) for x, n in f["fan"] for y, w in f["weight"] if x == y and n > 2}),
        Question("connected(), now(0, n)", lambda f: {(n,) for p, n in f["now"] if p == 0 and f["connected"]}),
        Question('path("0.0", "1.0")', lambda f: f["connected"]),
        Question("extra(x, y), now(2, n)", lambda f: {(x, y, n) for x, y in f["extra"] for p, n in f["now"] if p == 2}),
        Question("heaviest(w), weight(x, w)", lambda f: {(w, x) for (w,) in f["heaviest"] for x, v in f["weight"] if v == w}),
        Question("e:both(s, t), now(p, n)", lambda f: {(s, t, p, n) for s, t in f[BOTH] for p, n in f["now"]}),
    )  # fmt: skip

    def owned(self, part: int, step: int, rng: Random) -> dict[str, set[tuple[Any, ...]]]:
        first = wave(step, 12)
        names = [f"{part}.{first + i}" for i in range(5)]
        edges = {(x, y) for x, y in pairwise(names) if rng.random() < 0.8}
        edges |= {(rng.choice(names), rng.choice(names)) for _ in range(2)}
        edges.add((rng.choice(names), f"{1 - part}.{rng.randrange(12)}"))
        wide = 1 << 36 if step // 10 % 3 == 2 else 1
        weights = {(x, wide * rng.randrange(100) + part) for x in rng.sample(names, 3)}
        return {"edge": edges, "weight": weights, AT: {(_term(part), _mark(part, step))}}

    def derive(self, facts: dict[str, set[tuple[Any, ...]]], rules: frozenset[str]) -> None:
        edge, weight = facts["edge"], facts["weight"]
        heavy = {x for x, _ in weight}
        facts["path"] = path = self._paths(edge, heavy, rules)
        nodes = {end for pair in edge for end in pair} | (heavy if self.heavy in rules else set())
        facts["node"] = {(x,) for x in nodes}
        facts["apart"] = {(x, y) for x in nodes for y in nodes} - path
        facts["fan"] = {(x, sum(x == y for y, _ in path)) for x in nodes}
        facts["total"] = {(sum(w for _, w in weight),)}
        facts["heaviest"] = {(max(w for _, w in weight),)}
        facts["stamp"] = {(p, n, x) for p, n in facts["now"] for x in nodes}
        facts["label"] = {(x, f"{x}@{n}") for p, n in facts["now"] if p == 0 for x in nodes}
        facts["extra"] = {(y, x) for x, y in edge} if self.reversed_ in rules else set()
        if self.indirect in rules:
            facts["extra"] |= path - edge
        facts["connected"] = {()} if ("0.0", "1.0") in path else set()
        if "late" in facts and self.loop in rules:
            facts["late"] = {(x,) for x, y in path if x == y}
        at = dict(facts[AT])
        facts[BOTH] = {(at[_term(0)], at[_term(1)])}

    def _paths(self, edge: set[tuple[Any, ...]], heavy: set[Any], rules: frozenset[str]) -> set[tuple[Any, Any]]:
        """Paths begin with an edge, or with a reversed one of a heavy node; then they follow edges."""
        begun = set(edge) | ({(y, x) for x, y in edge if x in heavy} if self.back in rules else set())
        further = closure(edge)  # type: ignore[arg-type]
        return begun | {(x, z) for x, y in begun for w, z in further if y == w}


def _middle(facts: Facts, x: str, z: str) -> list[str]:
    return [y for w, y in facts["edge"] if w == x and (y, z) in facts["edge"]]


class SmallGraph(Graph):
    """A part of it, for engines that take long for each rule."""

    text = """
.decl now(part:number, step:number)
.decl edge(x:symbol, y:symbol)
.decl path(x:symbol, y:symbol)
.decl stamp(part:number, step:number, x:symbol)
.decl extra(x:symbol, y:symbol)
.decl fan(x:symbol, n:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
stamp(p, n, x) :- now(p, n), edge(x, _).
fan(x, n) :- edge(x, _), n = count : { path(x, _) }.
.output path
.output now
"""
    choices = (frozenset(), frozenset({Graph.reversed_}), frozenset({Graph.reversed_, Graph.indirect}))
    late: ClassVar[Mapping[str, str]] = {}
    questions = tuple(Graph.questions[number] for number in (0, 1, 2, 4, 5, 14))

    def owned(self, part: int, step: int, rng: Random) -> dict[str, set[tuple[Any, ...]]]:
        return {"edge": super().owned(part, step, rng)["edge"]}

    def derive(self, facts: dict[str, set[tuple[Any, ...]]], rules: frozenset[str]) -> None:
        edge = facts["edge"]
        facts["path"] = path = self._paths(edge, set(), rules)
        nodes = {x for x, _ in edge}
        facts["stamp"] = {(p, n, x) for p, n in facts["now"] for x in nodes}
        facts["fan"] = {(x, sum(x == y for y, _ in path)) for x in nodes}
        facts["extra"] = {(y, x) for x, y in edge} if self.reversed_ in rules else set()
        if self.indirect in rules:
            facts["extra"] |= path - edge


class StoredGraph(Graph):
    """The same, with a closure that every rule follows, which can be intervals, and copies of it, which can be unions."""

    text = (
        Graph.text.replace("path(x, z) :- path(x, y), edge(y, z).", "path(x, z) :- path(x, y), path(y, z).")
        + """
.decl copy(x:symbol, y:symbol)
.decl either(x:symbol, y:symbol)
copy(x, y) :- path(x, y).
either(x, y) :- path(x, y).
either(x, y) :- extra(x, y).
"""
    )
    questions = (
        *Graph.questions,
        Question("now(p, n), copy(x, y), !edge(x, y)", lambda f: {(p, n, *row) for p, n in f["now"] for row in f["path"] - f["edge"]}),
        Question('either(x, "0.5"), now(0, n)', lambda f: {(x, n) for x, y in f["either"] for p, n in f["now"] if y == "0.5" and p == 0}),
        Question("n = count : { either(_, _) }", lambda f: {(len(f["either"]),)}),
    )  # fmt: skip

    def derive(self, facts: dict[str, set[tuple[Any, ...]]], rules: frozenset[str]) -> None:
        super().derive(facts, rules)
        facts["copy"], facts["either"] = facts["path"], facts["path"] | facts["extra"]

    def _paths(self, edge: set[tuple[Any, ...]], heavy: set[Any], rules: frozenset[str]) -> set[tuple[Any, Any]]:
        begun = set(edge) | ({(y, x) for x, y in edge if x in heavy} if self.back in rules else set())
        return closure(begun)  # type: ignore[arg-type]
