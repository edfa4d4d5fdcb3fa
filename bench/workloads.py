"""The workloads W1 to W6: recursive programs over integers, from generators with fixed seeds.

Every workload comes in two sizes, ``FULL`` and ``QUICK``; the answers of both are recorded here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.model import Answer, Workload

Rows = NDArray[np.int64]
Relations = Iterator[tuple[str, Rows]]


# --- facts ---------------------------------------------------------------------------------------


def distinct(rows: Rows) -> Rows:
    """The rows without repetitions, each where it occurs first."""
    positions = np.unique(rows, axis=0, return_index=True)[1]
    return rows[np.sort(positions)]


def table(*columns: Rows) -> Rows:
    """A relation from its columns."""
    return np.stack(columns, axis=1)


def dag_edges(nodes: int, edges: int, seed: int = 0) -> Rows:
    """Distinct random edges of an acyclic graph: each leads from a smaller number to a larger."""
    random = np.random.default_rng(seed)
    found = np.empty((0, 2), np.int64)
    while len(found) < edges:
        drawn = np.sort(random.integers(0, nodes, size=(2 * edges, 2)), axis=1)
        found = distinct(np.concatenate([found, drawn[drawn[:, 0] < drawn[:, 1]]]))
    return found[:edges]


def dag(nodes: int, edges: int) -> Relations:
    """A random acyclic graph."""
    yield "E", dag_edges(nodes, edges)


def chain(nodes: int) -> Relations:
    """0 → 1 → 2 → …"""
    start = np.arange(nodes - 1)
    yield "E", table(start, start + 1)


def components(count: int, nodes: int, chords: int) -> Relations:
    """Separate random trees, each with some further edges between any of its nodes."""
    random = np.random.default_rng(0)
    edges = []
    for first in range(0, count * nodes, nodes):
        for node in range(1, nodes):
            edges.append([int(random.integers(0, node)), node, first])
        for _ in range(chords):
            source, target = random.integers(0, nodes, 2)
            edges.append([int(source), int(target), first])
    placed = np.array([[u + first, v + first] for u, v, first in edges if u != v])
    yield "E", distinct(placed)


def weighted_dag(nodes: int, edges: int, span: int) -> Relations:
    """Edges at most ``span`` forward, with lengths 1 to 3."""
    random = np.random.default_rng(0)
    source = random.integers(0, nodes - 1, size=2 * edges)
    target = source + 1 + random.integers(0, span, size=2 * edges)
    kept = distinct(table(source, target)[target < nodes])[:edges]
    length = np.random.default_rng(1).integers(1, 4, len(kept))
    yield "B", table(kept[:, 0], kept[:, 1], length)


def family(people: int) -> Relations:
    """Child and parent: everybody's parent is near a third of their number; a fifth have two."""
    random = np.random.default_rng(0)
    pairs = []
    for child in range(1, people):
        near = child // 3
        pairs.append((child, int(random.integers(max(0, near - 2), max(1, near + 1)))))
        if random.random() < 0.2:
            pairs.append((child, int(random.integers(0, max(1, near + 1)))))
    yield "p", distinct(np.array(pairs))


def pointers(variables: int, objects: int, allocations: int, assignments: int, loads: int, stores: int) -> Relations:
    """Statements of a made-up program, at random."""
    random = np.random.default_rng(0)
    for name, count, bound in (
        ("alloc", allocations, objects),
        ("assign", assignments, variables),
        ("load", loads, variables),
        ("store", stores, variables),
    ):
        left = random.integers(0, variables, count)
        yield name, distinct(table(left, random.integers(0, bound, count)))


# --- programs ------------------------------------------------------------------------------------


def declarations(inputs: Mapping[str, int], result: str, columns: int) -> str:
    """The `.decl`, `.input` and `.output` lines of a `.dl` program."""
    lines = []
    for name, width in {**inputs, result: columns}.items():
        attributes = ", ".join(f"{attribute}:number" for attribute in "xyz"[:width])
        lines.append(f".decl {name}({attributes})")
    lines += [f".input {name}" for name in inputs]
    return "\n".join([*lines, f".output {result}", ""])


def imports(inputs: Mapping[str, int]) -> str:
    """The import lines of a Nemo program."""
    return "".join(
        f'@import {name} :- tsv {{ resource = "{name}.facts", format = ({", ".join(["int"] * width)}) }} .\n'
        for name, width in inputs.items()
    )


def programs(
    inputs: Mapping[str, int], result: str, columns: int, *, dl: str, sql: str, nemo: str, asp: str
) -> dict[str, str]:
    """The same rules in every dialect, with what each needs around them."""
    return {
        "dl": declarations(inputs, result, columns) + dl.lstrip("\n"),
        "sql": sql.lstrip("\n"),
        "nemo": imports(inputs) + nemo.lstrip("\n"),
        "clingo": asp.lstrip("\n"),
    }


CLOSURE = programs(
    {"E": 2},
    "T",
    2,
    dl="""
T(x,y) :- E(x,y).
T(x,z) :- T(x,y), E(y,z).
""",
    sql="""
CREATE TABLE "T" AS WITH RECURSIVE t(a, b) AS (
    SELECT a, b FROM "E"
    UNION
    SELECT t.a, e.b FROM t JOIN "E" e ON e.a = t.b
) FROM t;
""",
    nemo="""
T(?x,?y) :- E(?x,?y) .
T(?x,?z) :- T(?x,?y), E(?y,?z) .
""",
    asp="""
t(X,Y) :- e(X,Y).
t(X,Z) :- t(X,Y), e(Y,Z).
""",
)

SYMMETRIC_CLOSURE = programs(
    {"E": 2},
    "T",
    2,
    dl="""
T(x,y) :- E(x,y).
T(x,y) :- E(y,x).
T(x,z) :- T(x,y), E(y,z).
T(x,z) :- T(x,y), E(z,y).
""",
    sql="""
CREATE TABLE "T" AS WITH RECURSIVE t(a, b) AS (
    (SELECT a, b FROM "E" UNION SELECT b, a FROM "E")
    UNION
    (SELECT t.a, e.b FROM t JOIN "E" e ON e.a = t.b
     UNION ALL
     SELECT t.a, e.a FROM t JOIN "E" e ON e.b = t.b)
) FROM t;
""",
    nemo="""
T(?x,?y) :- E(?x,?y) .
T(?x,?y) :- E(?y,?x) .
T(?x,?z) :- T(?x,?y), E(?y,?z) .
T(?x,?z) :- T(?x,?y), E(?z,?y) .
""",
    asp="""
t(X,Y) :- e(X,Y).
t(X,Y) :- e(Y,X).
t(X,Z) :- t(X,Y), e(Y,Z).
t(X,Z) :- t(X,Y), e(Z,Y).
""",
)

PATH_LENGTHS = programs(
    {"B": 3},
    "D",
    2,
    dl="""
D(y,z) :- B(0,y,z).
D(y,z1+z2) :- D(x,z1), B(x,y,z2).
""",
    sql="""
CREATE TABLE "D" AS WITH RECURSIVE d(a, b) AS (
    SELECT b, c FROM "B" WHERE a = 0
    UNION
    SELECT e.b, d.b + e.c FROM d JOIN "B" e ON e.a = d.a
) FROM d;
""",
    nemo="""
D(?y,?z) :- B(0,?y,?z) .
D(?y,?z1 + ?z2) :- D(?x,?z1), B(?x,?y,?z2) .
""",
    asp="""
d(Y,Z) :- b(0,Y,Z).
d(Y,Z1+Z2) :- d(X,Z1), b(X,Y,Z2).
""",
)

SAME_GENERATION = programs(
    {"p": 2},
    "sg",
    2,
    dl="""
sg(x,y) :- p(x,z), p(y,z).
sg(x,y) :- p(x,a), sg(a,b), p(y,b).
""",
    sql="""
CREATE TABLE "sg" AS WITH RECURSIVE s(a, b) AS (
    SELECT l.a, r.a FROM "p" l JOIN "p" r ON r.b = l.b
    UNION
    SELECT l.a, r.a FROM s JOIN "p" l ON l.b = s.a JOIN "p" r ON r.b = s.b
) FROM s;
""",
    nemo="""
sg(?x,?y) :- p(?x,?z), p(?y,?z) .
sg(?x,?y) :- p(?x,?a), sg(?a,?b), p(?y,?b) .
""",
    asp="""
sg(X,Y) :- p(X,Z), p(Y,Z).
sg(X,Y) :- p(X,A), sg(A,B), p(Y,B).
""",
)

# Two atoms of `pt` in one body: the rows of the last round must meet all rows found so far, which
# a plain recursive expression cannot say. DuckDB's USING KEY can, but took longer than this loop.
POINTS_TO = programs(
    {"alloc": 2, "assign": 2, "load": 2, "store": 2},
    "pt",
    2,
    dl="""
pt(y,x) :- alloc(y,x).
pt(y,x) :- assign(y,z), pt(z,x).
pt(y,w) :- load(y,x), pt(x,z), pt(z,w).
pt(z,w) :- store(y,x), pt(y,z), pt(x,w).
""",
    sql="""
CREATE TABLE old(a BIGINT, b BIGINT);
CREATE TABLE delta AS SELECT DISTINCT a, b FROM "alloc";
CREATE VIEW pt AS FROM old UNION ALL FROM delta;
-- repeat
CREATE TABLE fresh AS
SELECT found.a, found.b FROM (
    SELECT DISTINCT * FROM (
        SELECT s.a, p.b FROM "assign" s JOIN delta p ON p.a = s.b
        UNION ALL
        SELECT l.a, q.b FROM "load" l JOIN delta p ON p.a = l.b JOIN pt q ON q.a = p.b
        UNION ALL
        SELECT l.a, q.b FROM "load" l JOIN old p ON p.a = l.b JOIN delta q ON q.a = p.b
        UNION ALL
        SELECT p.b, q.b FROM "store" s JOIN delta p ON p.a = s.a JOIN pt q ON q.a = s.b
        UNION ALL
        SELECT p.b, q.b FROM "store" s JOIN old p ON p.a = s.a JOIN delta q ON q.a = s.b
    ) AS every(a, b)
) AS found ANTI JOIN pt ON pt.a = found.a AND pt.b = found.b;
INSERT INTO old FROM delta;
TRUNCATE delta;
INSERT INTO delta FROM fresh;
DROP TABLE fresh;
""",
    nemo="""
pt(?y,?x) :- alloc(?y,?x) .
pt(?y,?x) :- assign(?y,?z), pt(?z,?x) .
pt(?y,?w) :- load(?y,?x), pt(?x,?z), pt(?z,?w) .
pt(?z,?w) :- store(?y,?x), pt(?y,?z), pt(?x,?w) .
""",
    asp="""
pt(Y,X) :- alloc(Y,X).
pt(Y,X) :- assign(Y,Z), pt(Z,X).
pt(Y,W) :- load(Y,X), pt(X,Z), pt(Z,W).
pt(Z,W) :- store(Y,X), pt(Y,Z), pt(X,W).
""",
)


# --- workloads -----------------------------------------------------------------------------------


def _family(
    name: str, title: str, result: str, texts: Mapping[str, str], facts: Callable[..., Relations]
) -> Callable[..., Workload]:
    """A maker of one workload in any size, given the answer for that size."""

    def make(expected: Answer, *size: int) -> Workload:
        return Workload(name, title, result, 2, texts, partial(facts, *size), expected)

    return make


w1 = _family("w1", "closure of a random DAG", "T", CLOSURE, dag)
w2 = _family("w2", "closure of a chain", "T", CLOSURE, chain)
w3 = _family("w3", "symmetric and transitive closure", "T", SYMMETRIC_CLOSURE, components)
w4 = _family("w4", "lengths of paths from one node", "D", PATH_LENGTHS, weighted_dag)
w5 = _family("w5", "same generation", "sg", SAME_GENERATION, family)
w6 = _family("w6", "points-to analysis", "pt", POINTS_TO, pointers)

FULL: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        w1(Answer(22_136_233, 8_948_755_572_950_159_492), 10_000, 100_000),
        w2(Answer(1_999_000, 3_764_696_010_291_803_932), 2_000),
        w3(Answer(1_800_000, 14_123_018_143_200_206_527), 20, 300, 15),
        w4(Answer(4_340_807, 6_810_608_665_239_120_284), 20_000, 100_000, 1_000),
        w5(Answer(1_343_809, 1_308_229_109_169_981_392), 1_500),
        w6(Answer(3_774_149, 1_682_582_743_417_887_664), 20_000, 200, 20_000, 60_000, 1_000, 1_000),
    )
}

QUICK: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        w1(Answer(53_732, 16_104_061_328_449_657_400), 500, 3_000),
        w2(Answer(44_850, 17_022_761_574_271_074_439), 300),
        w3(Answer(14_400, 6_979_837_391_177_121_786), 4, 60, 5),
        w4(Answer(172_583, 16_735_472_604_727_269_651), 1_000, 5_000, 50),
        w5(Answer(19_113, 17_064_610_515_129_292_957), 200),
        w6(Answer(44_997, 7_193_991_326_594_919_593), 1_000, 50, 1_000, 2_500, 60, 60),
    )
}
