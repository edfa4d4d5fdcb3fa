"""Is the time linear in the derivations? Closures of ever larger DAGs, and CPU per derivation.

Random DAGs with ten edges for each node; their numbers of nodes are chosen so that the derivations
of the linear program about double from one to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.checksum import mix
from bench.model import Answer, Measurement, Peer, Workload
from bench.peers import peer_evermat
from bench.report import best, preamble, table
from bench.workloads import CLOSURE, Relations, Rows, dag, dag_edges
from bench.workloads import table as columns

DEGREE = 10
FULL_NODES = (2_500, 3_690, 5_440, 8_000)
QUICK_NODES = (300, 445, 655, 965)


def variant() -> Peer:
    """Evermat deriving fact after fact, without the shortcuts for closures it recognises."""
    return peer_evermat.peer(options=("--algorithm", "seminaive", "--schemes", "plain"))


def closure(edges: Rows, nodes: int) -> tuple[Answer, int]:
    """The closure of a DAG and the rule instances of its linear program, by bit sets.

    An answer of its own making, so that the measured engine is not checked against itself.
    """
    reach = np.zeros((nodes, nodes // 8 + 1), np.uint8)
    successors = np.bincount(edges[:, 0], minlength=nodes)
    rows = checksum = 0
    instances = len(edges)
    for source in range(nodes - 1, -1, -1):
        for target in edges[edges[:, 0] == source, 1]:
            reach[source] |= reach[target]
            reach[source, target // 8] |= np.uint8(1 << (target % 8))
        reached = np.flatnonzero(np.unpackbits(reach[source], bitorder="little"))
        rows += len(reached)
        instances += int(successors[reached].sum())
        checksum += mix(columns(np.full_like(reached, source), reached))
    return Answer(rows, checksum % 2**64), instances


def workloads(quick: bool) -> list[tuple[Workload, int]]:
    """The DAGs in order of size, each with its number of rule instances."""
    made = []
    for nodes in QUICK_NODES if quick else FULL_NODES:
        answer, instances = closure(dag_edges(nodes, DEGREE * nodes), nodes)
        name = f"dag{nodes}"

        def facts(nodes: int = nodes) -> Relations:
            return dag(nodes, DEGREE * nodes)

        workload = Workload(name, f"closure, {nodes} nodes", "T", 2, CLOSURE, facts, answer)
        made.append((workload, instances))
    return made


def render_scaling(
    environment: dict[str, Any],
    sizes: Sequence[tuple[Workload, int]],
    measurements: Sequence[Measurement],
) -> str:
    """One row for each size; nanoseconds per derivation should stay about the same."""
    rows = [["workload", "facts", "rule instances", "derivations told", "reasoning CPU, s", "ns each"]]
    for workload, instances in sizes:
        m = best(measurements, "evermat", workload.name)
        line = [workload.name, f"{workload.expected.rows:,}", f"{instances:,}"]
        if m is None or m.status != "ok":
            rows.append([*line, "", m.status if m else "", ""])
            continue
        derivations, seconds = m.phases.extra["derivations"], m.phases.cpu["reason"]
        each = f"{1e9 * seconds / derivations:.1f}" if derivations else ""
        rows.append([*line, f"{derivations:,}", f"{seconds:.3f}", each])
    return "\n\n".join(["# Time by derivations", preamble(environment), table(rows)]) + "\n"


def default_name(quick: bool) -> str:
    """The name of the result files."""
    return "scaling-quick" if quick else "scaling"


RESULTS = Path("bench") / "results"
