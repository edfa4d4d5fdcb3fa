"""The shapes of tables 1 to 3: programs, their facts, and what is measured of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.modular.data import Data, categories, random_dag
from bench.modular.programs import CLOSURE, GRAPH, SKOS
from bench.storage import data, programs
from bench.workloads import FULL, QUICK

Protocol = Literal["load", "updates", "queries"]
PROTOCOLS: tuple[Protocol, ...] = ("load", "updates", "queries")
"""Materialising (table 2), that and three insertions (table 1), and queries (table 3)."""

BROADER = ".decl broader, broaderTransitive(x:number, y:number) " + CLOSURE.replace("t(", "broaderTransitive(").replace(
    " e(", " broader("
)


@dataclass(frozen=True)
class Shape:
    """A program and its facts, in a small size and in a full one."""

    name: str
    program: str
    facts: Callable[[bool], Data]
    """Those of the small size, or of the full one."""
    asked: Mapping[str, str]
    """Relations that are stored by schemes, and that queries ask; for each the explicit relation that has facts in it. The first is the one that is weighed."""
    protocols: tuple[Protocol, ...] = ("load",)
    expected: Mapping[bool, int] = field(default_factory=dict)
    """How many facts the first of them has in the small size and in the full one, where that is known from elsewhere."""
    has_plain: bool = True
    """Whether plain tables are tried."""
    is_wanted: bool = True
    """Whether its queries are among those that must not take much longer than on plain tables; others are told, no more."""

    @property
    def weighed(self) -> str:
        return next(iter(self.asked))


W1, SMALL, LARGE, WIDE, ROADS = "w1", "skos-small", "skos-large", "skos-500k", "roads"
RULES, MANY_RULES = "skos-rules", "skos-rules-large"
RELATIONS, MANY_RELATIONS = "relations", "relations-large"
GRAPHS = "graph "  # begins the names of those that are read from files

CLOSED = {"t": "e"}
NARROWER = {"broaderTransitive": "broader"}
SKOS_ASKED = {"broaderTransitive": "broader", "semanticRelation": "broader"}
GROUPS, CLOSURES, OTHERS = 6, 3, 3
SMALL_FIELDS, LARGE_FIELDS = [(5, 1000, 5), (4_000, 5, 8)], [(6, 1500, 5), (20_000, 5, 8)]
TINY_FIELDS = [(2, 40, 5), (30, 5, 8)]

SHAPES = {
    shape.name: shape
    for shape in (
        Shape(
            W1,
            GRAPH,
            lambda small: random_dag(500, 3_000) if small else random_dag(10_000, 100_000),
            CLOSED,
            ("load", "updates", "queries"),
            {True: QUICK["w1"].expected.rows, False: FULL["w1"].expected.rows},
        ),
        Shape(
            SMALL,
            BROADER,
            lambda small: {"broader": data.fields(TINY_FIELDS if small else SMALL_FIELDS)},
            NARROWER,
            ("updates", "queries"),
        ),
        Shape(
            LARGE,
            BROADER,
            lambda small: {"broader": data.fields(TINY_FIELDS if small else LARGE_FIELDS, seed=1)},
            NARROWER,
            ("updates",),
        ),
        Shape(
            WIDE,
            BROADER,
            lambda small: {
                "broader": data.thesaurus(2_000, 4_000, 8) if small else data.thesaurus(500_000, 1_000_000, 18)
            },
            NARROWER,
        ),
        Shape(
            ROADS,
            GRAPH,
            lambda small: {"e": data.roads(12 if small else 250)},
            CLOSED,
            expected={True: 5_476, False: 909_066_227},
            has_plain=False,
        ),
        Shape(RULES, SKOS, categories, SKOS_ASKED, ("load", "queries")),
        Shape(
            MANY_RULES,
            SKOS,
            lambda small: data.concepts(data.fields(TINY_FIELDS if small else SMALL_FIELDS, seed=2)),
            SKOS_ASKED,
        ),
        Shape(
            RELATIONS,
            programs.relations(GROUPS, CLOSURES, OTHERS),
            lambda small: data.relations(GROUPS, 300 if small else 15_000, (CLOSURES, OTHERS)),
            {"any": "edge_0_0"},
            ("load", "queries"),
        ),
        Shape(
            MANY_RELATIONS,
            programs.relations(GROUPS, CLOSURES, OTHERS),
            lambda small: data.relations(GROUPS, 300 if small else 120_000, (CLOSURES, OTHERS)),
            {"any": "edge_0_0"},
            ("load", "queries"),
            is_wanted=False,
        ),
    )
}


def shapes(folder: str | None) -> dict[str, Shape]:
    """All shapes, and the real graphs that are in a folder."""
    graphs = [
        Shape(
            GRAPHS + name,
            GRAPH,
            lambda _small, file=file: {"e": data.read_graph(file)},  # type: ignore[misc]
            CLOSED,
            expected={True: pairs, False: pairs},
            has_plain=False,
        )
        for name, file, pairs in (data.known_graphs(Path(folder)) if folder else ())
    ]
    return SHAPES | {shape.name: shape for shape in graphs}
