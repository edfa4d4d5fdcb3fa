"""The shapes of tables 1 and 2: programs and their facts, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bench import maintenance
from bench.modular.data import Data, categories, places, random_dag, university
from bench.modular.programs import GRAPH, HARD_RULES, PLACES, SKOS
from bench.workloads import FULL, QUICK

Sizes = dict[str, int]


@dataclass(frozen=True)
class Shape:
    """A program and its facts."""

    name: str
    program: str
    facts: Callable[[bool], Data]
    wanted: float
    """How many times faster Mat-Mod is to be."""
    expected: Callable[[bool], Sizes] = lambda _quick: {}
    """Numbers of facts that are known from elsewhere."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Update algorithms that are not run, and why."""
    is_updated: bool = True


def workload(name: str) -> Shape:
    """A program of `bench.workloads` that has no transitive rule, in the size that is asked for."""
    known = {True: QUICK[name], False: FULL[name]}
    return Shape(
        name,
        known[False].programs["dl"],
        lambda quick: dict(known[quick].facts()),
        1 / 1.1,
        lambda quick: {known[quick].result: known[quick].expected.rows},
        is_updated=False,
    )


SHAPES = [
    Shape(
        "DAG-R",
        GRAPH,
        lambda quick: random_dag(500, 3_000) if quick else random_dag(10_000, 100_000),
        100,
        lambda quick: {"t": (QUICK if quick else FULL)["w1"].expected.rows},
        {"dred-c": "left out, for its counters alone are 8.8 billion instances"},
    ),
    Shape(
        "small DAG",
        GRAPH,
        lambda quick: random_dag(200, 1_000) if quick else random_dag(1_000, 10_000),
        1,
        lambda quick: {} if quick else {"t": 302_880},
    ),
    Shape("SKOS-like", SKOS, categories, 30),
    Shape("cliques", PLACES, places, 30),
    Shape("LUBM-like, hard rules", maintenance.UNIVERSITY + HARD_RULES, university, 3),
    workload("w4"),
    workload("w5"),
    workload("w6"),
]
