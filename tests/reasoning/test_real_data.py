"""Real graphs and update streams with known results, where there are any.

They are read from the folder that the environment variable EVERMAT_DATA names; without it these tests are skipped.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

import evermat
from tests.support.environment import DATA, NEEDS_DATA
from tests.support.updates import ALGORITHMS

CLOSURE = """
.decl edge, path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
NONLINEAR = CLOSURE.replace("path(x, y), edge(y, z)", "path(x, y), path(y, z)")

pytestmark = NEEDS_DATA


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.mark.slow
def test_closures_of_real_graphs_have_the_published_sizes() -> None:
    sizes = {row["file"]: int(row["computed_TC"]) for row in table(DATA / "graphs" / "EXPECTED-TC.tsv")}
    program = evermat.Program.parse(CLOSURE)
    checked = 0
    for name, size in sizes.items():
        if size > 5_000_000:  # the larger ones belong into a benchmark
            continue
        with gzip.open(DATA / "graphs" / f"{name}.gz", "rt", encoding="utf-8") as file:
            edges = [tuple(map(int, line.split())) for line in file]
        assert len(program.materialise({"edge": edges})["path"]) == size, name
        checked += 1
    assert checked >= 4


@pytest.mark.parametrize("algorithm", ALGORITHMS[1:])
@pytest.mark.parametrize("stream", ["u10", "u40", "u80"])
def test_update_streams_have_the_known_counts_after_every_step(stream: str, algorithm: str) -> None:
    (path,) = (DATA / "marking").glob(f"trans_*_{stream}.tsv")
    counts = {int(r["step"]): r for r in table(DATA / "marking" / "EXPECTED-COUNTS.tsv") if r["file"] == path.name}
    steps: dict[int, dict[str, list[tuple[int, int]]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        step, sign, x, y = line.split("\t")
        steps.setdefault(int(step), {"+": [], "-": []})[sign].append((int(x), int(y)))
    m = evermat.Program.parse(NONLINEAR).materialise()
    for step, change in steps.items():
        m.update(insert={"edge": change["+"]}, delete={"edge": change["-"]}, algorithm=algorithm)
        expected = counts[step]
        assert len(m["edge"]) == int(expected["edges"])
        assert len(m["path"]) == int(expected["paths(trans)_or_4x_edges(seq)"])
