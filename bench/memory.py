"""Bytes for each binary fact: ``python -m bench.memory [--quick]``.

The closure of workload W1 is held in memory with one index and no counters, and with two indexes, tuple hash and both
counters. Told are the bytes of all arrays, filled or not beyond the last row, and by how much the process grew.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from bench.environment import environment
from bench.report import preamble, save, table
from bench.scaling import RESULTS
from bench.workloads import dag
from evermat.algebra import Counters
from evermat.columns.kernels.warm_up import warm_up
from evermat.columns.state.state import State
from evermat.core.memory import resident_bytes
from evermat.core.source import Source
from evermat.engine.run import Run
from evermat.language.compile import compile_program
from evermat.reasoning.materialise import SEMINAIVE, materialise_stratum

PROGRAM = """
.decl E(x:number, y:number)
.decl T(x:number, y:number)
T(x, y) :- E(x, y).
T(x, z) :- T(x, y), E(y, z).
"""


def measured(nodes: int, edges: int, counters: Counters, indexes: list[tuple[int, ...]]) -> dict[str, Any]:
    """Materialises the closure, makes the indexes, and weighs everything."""
    program = compile_program(Source("memory", PROGRAM))
    run = Run()
    before = resident_bytes()
    state = State(program, run)
    state.load("E", np.ascontiguousarray(np.array(next(rows for _, rows in dag(nodes, edges))).T))
    for stratum in run.strata(state):
        materialise_stratum(state, run, stratum, counters, SEMINAIVE)
    closure = state.tables["T"]
    for columns in indexes:
        closure.index(columns).refresh()
    facts = sum(t.count for t in state.tables.values())
    return {
        "counters": counters.name.lower(),
        "indexes": len(indexes),
        "facts": facts,
        "bytes_per_fact": round(state.nbytes / facts, 1),
        "process_bytes_per_fact": round((resident_bytes() - before) / facts, 1),
    }


def main() -> None:
    """Measures, saves, prints."""
    quick = "--quick" in sys.argv
    size = (2_000, 20_000) if quick else (10_000, 100_000)
    warm_up()
    found = [
        measured(*size, Counters.NONE, [(0,)]),
        measured(*size, Counters.BOTH, [(0,), (1,)]),
    ]
    around = environment([], "python -m bench.memory" + (" --quick" if quick else ""))
    rows = [
        ["counters", "indexes on the closure", "facts", "bytes for each fact", "growth of the process for each fact"]
    ]
    rows += [
        [
            f["counters"],
            str(f["indexes"]),
            f"{f['facts']:,}",
            str(f["bytes_per_fact"]),
            str(f["process_bytes_per_fact"]),
        ]
        for f in found
    ]
    text = "\n\n".join(["# Memory", preamble(around), table(rows)]) + "\n"
    save(RESULTS, "memory-quick" if quick else "memory", around | {"measured": found}, [], text)
    print(text)


if __name__ == "__main__":
    main()
