"""The parts that materialise: by modules and instance by instance, beside DuckDB, and real graphs."""

from __future__ import annotations

import csv
import gzip
import tempfile
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import evermat
from bench.harness import measure
from bench.maintenance import arrow
from bench.model import Measurement, Peer, Workload
from bench.modular.programs import GRAPH, NONLINEAR
from bench.modular.runs import MODULAR, SEMINAIVE, Took, agree, sizes_of, tables, tell, timed
from bench.modular.shapes import Shape
from bench.peers import peer_duckdb, peer_evermat
from bench.workloads import FULL, QUICK

LITTLE = 30.0  # seconds that all runs of one algorithm on one shape may take before it is repeated no more

# --- materialisation ---------------------------------------------------------------------------------------


def measure_materialisation(shape: Shape, quick: bool, limit: float, repeat: int) -> dict[str, Any]:
    """Mat-Mod and Mat in turns, each until its runs have taken long enough; of each the best."""
    program = evermat.Program.parse(shape.program)
    facts = tables(shape.facts(quick))
    taken: dict[str, list[Took]] = {MODULAR: [], SEMINAIVE: []}
    found: dict[str, Any] = {
        "shape": shape.name,
        "wanted": round(shape.wanted, 2),
        "closures": [closure.kind for stratum in program.strata for closure in stratum.closures],
    }
    for _ in range(repeat):
        for algorithm, all_took in taken.items():
            if sum(took.wall for took in all_took) > LITTLE:
                continue
            m, took = timed(
                partial(program.materialise, facts, algorithm=algorithm, schemes="plain", limit_seconds=limit)
            )
            all_took.append(took)
            tell(shape.name, algorithm, took)
            if m is not None:
                agree(f"{shape.name} by {algorithm}", sizes_of(m), shape.expected(quick) | found.get("facts", {}))
                found |= {"facts": sizes_of(m), "explicit": m.stats["explicit"]}
                found |= {f"{algorithm}_instances": m.stats["derivations"], f"{algorithm}_mb": m.stats["peak_rss_mb"]}
            del m
    for algorithm, all_took in taken.items():
        found[algorithm] = asdict(min(all_took, key=lambda took: took.reason)) | {"runs": len(all_took)}
    return found


# --- beside DuckDB -----------------------------------------------------------------------------------------


def peers() -> list[Peer]:
    """Evermat by modules, and DuckDB."""
    return [peer_evermat.peer(options=("--algorithm", MODULAR, "--schemes", "plain")), peer_duckdb.PEER]


def closures(quick: bool) -> list[Workload]:
    """The closures among the workloads, with nonlinear rules for us."""
    known = QUICK if quick else FULL
    return [replace(known[name], programs={**known[name].programs, "dl": text}) for name, text in NONLINEAR.items()]


def measure_duckdb(quick: bool, limit: float, repeat: int) -> list[Measurement]:
    """Both engines, each in processes of its own; results are compared with the recorded ones."""
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        return measure(
            peers(),
            closures(quick),
            work=Path(work),
            repeat=repeat,
            timeout=limit,
            tell=lambda m: tell(m.workload, m.engine, m.status, m.phases.cpu, m.cpu, m.detail),
        )


def measure_warm(quick: bool, repeat: int) -> dict[str, dict[str, Any]]:
    """The same in this process, which has loaded all kernels: what reasoning takes where it is not the first."""
    found = {}
    for workload in closures(quick):
        program, facts = evermat.Program.parse(workload.programs["dl"]), tables(dict(workload.facts()))
        all_took = []
        for _ in range(repeat):
            m, took = timed(partial(program.materialise, facts, algorithm=MODULAR, schemes="plain"))
            agree(workload.name, sizes_of(m), {workload.result: workload.expected.rows})
            all_took.append(took)
            del m
        found[workload.name] = asdict(min(all_took, key=lambda took: took.reason))
    return found


# --- graphs ------------------------------------------------------------------------------------------------


def measure_graphs(data: Path, quick: bool, limit: float) -> list[dict[str, Any]]:
    """The closure of every graph that there is; the smaller ones only, if it is to be quick."""
    program = evermat.Program.parse(GRAPH)
    found = []
    with (data / "graphs" / "EXPECTED-TC.tsv").open(encoding="utf-8") as file:
        known = list(csv.DictReader(file, delimiter="\t"))
    for one in known:
        expected = int(one["computed_TC"])
        if quick and expected > 1_000_000:
            continue
        text = gzip.decompress((data / "graphs" / f"{one['file']}.gz").read_bytes())
        facts = {"e": arrow(np.array(text.split(), np.int64).reshape(-1, 2))}
        m, took = timed(partial(program.materialise, facts, algorithm=MODULAR, schemes="plain", limit_seconds=limit))
        tell(one["graph"], took)
        found.append(
            {
                "graph": one["graph"],
                "edges": len(m["e"]) if m else None,
                "expected": expected,
                "pairs": len(m["t"]) if m else None,
                "took": asdict(took),
            }
        )
        del m
    return found
