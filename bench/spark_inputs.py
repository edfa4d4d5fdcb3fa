"""Inputs that Spark reads: ``python -m bench.spark_inputs [--rows N] [--rounds N]``.

Whole runs of `evermat run`, interleaved; told is the least time of the phase `read` and of CPU. *uri*: the same files by a local path and by a URI of `viewfs`, which only
Spark can read. *rows*: Parquet by `IO=spark`, of which tasks write facts (`--place cluster`), or the driver checks all rows (`--place driver`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

PROGRAM = ".decl edge(x:number, y:number) .input edge({}) .printsize edge"
FORMATS = {
    "text": 'filename="edge.csv"',
    "parquet": 'filename="edge.parquet"',
    "IO=spark": 'IO=spark, format=parquet, path="edge.parquet"',
}
FILES = 8


def make_files(folder: Path, rows: int) -> None:
    """Random edges, as text and as Parquet in several files."""
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.integers(0, rows, rows) for name in ("x", "y")})
    csv.write_csv(table, folder / "edge.csv", csv.WriteOptions(include_header=False, delimiter="\t"))
    (folder / "edge.parquet").mkdir()
    size = rows // FILES + 1
    for number in range(FILES):
        pq.write_table(table.slice(number * size, size), folder / "edge.parquet" / f"{number}.parquet")


def run(folder: Path, parameters: str, *options: str) -> dict[str, float]:
    """Seconds of one run: those of its phase `read`, and of CPU in all processes."""
    program, stats = folder / "program.dl", folder / "stats.json"
    program.write_text(PROGRAM.format(parameters), encoding="utf-8")
    command = [sys.executable, "-m", "evermat", "run", str(program), "--engine", "spark", "--stats", str(stats)]
    link = f"spark.hadoop.fs.viewfs.mounttable.far.link./in={folder.as_uri()}"
    before, started = os.times(), time.perf_counter()
    subprocess.run([*command, "--conf", link, *options], check=True, capture_output=True, cwd=folder)
    wall, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"read": json.loads(stats.read_text(encoding="utf-8"))["seconds"]["read"], "wall": wall, "cpu": cpu}


def best(folder: Path, cases: dict[str, tuple[str, ...]], rounds: int) -> dict[str, dict[str, float]]:
    """The least of each figure, of runs in turn."""
    found: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for name, case in cases.items():
            took = run(folder, *case)
            least = found.setdefault(name, took)
            found[name] = {key: round(min(least[key], took[key]), 2) for key in took}
    return found


def inputs(folder: Path, rows: int, rounds: int) -> dict[str, Any]:
    """All figures, and the ratios that are wanted: at most 1.2 of a URI to a path, at least 2 of the driver to executors."""
    make_files(folder, rows)
    found: dict[str, Any] = {"rows": rows}
    for name, parameters in FORMATS.items():
        took = best(
            folder,
            {"path": (parameters, "-F", str(folder)), "uri": (parameters, "-F", "viewfs://far/in")},
            rounds,
        )
        found[name] = took | {"ratio": {key: round(took["uri"][key] / took["path"][key], 2) for key in took["uri"]}}
    spark = FORMATS["IO=spark"]
    places = {place: (spark, "-F", str(folder), "--place", place) for place in ("driver", "cluster")}
    took = best(folder, places, rounds)
    ratio = {key: round(took["driver"][key] / took["cluster"][key], 2) for key in took["driver"]}
    return found | {"places": took | {"ratio": ratio}}


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=20_000_000)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(inputs(Path(folder), chosen.rows, chosen.rounds), indent=2))


if __name__ == "__main__":
    main()
