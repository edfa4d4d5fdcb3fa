"""Parquet out through executors against the same through the driver: ``python -m bench.spark_outputs [--rows N] [--repeat R]``.

Facts on a cluster are written by `.output r(IO=spark, format="parquet")` and by `.output r(filename="r.parquet")`, in turn, by one process. Told are the best of each
by wall time, CPU with that of all processes, and how far the memory of the driver rises meanwhile. Another process writes a tenth of the rows: what the driver
holds should not depend on them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, Self

from bench.environment import environment
from bench.report import preamble, save, table
from bench.scaling import RESULTS
from evermat.core import resident_bytes

PROGRAM = ".decl r(x:{type}, y:{type}) .output r({output})"
TYPES = {"number": "{}", "symbol": "concat('http://example.org/node/', {})"}
WAYS = {"executors": 'IO=spark, format="parquet", path="r", mode="overwrite"', "driver": 'filename="r.parquet"'}


def cpu_of_all() -> float:
    """CPU seconds of this process and of all below it, those included that have ended."""
    parents, spent = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            process = int(stat.parent.name)
            parents[process], spent[process] = int(fields[1]), sum(map(int, fields[11:15]))
    own, total = os.getpid(), 0
    for process, ticks in spent.items():
        above: int | None = process
        while above is not None and above != own:
            above = parents.get(above)
        total += ticks if above == own else 0
    return total / os.sysconf("SC_CLK_TCK")


class Peak:
    """The greatest resident memory of this process within a block, above that at its beginning."""

    def __enter__(self) -> Self:
        self._ended = threading.Event()
        self.before = self.most = resident_bytes()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.most = max(self.most, resident_bytes())

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def rise(self) -> int:
        """In MB."""
        return (self.most - self.before) >> 20


def measure(type_: str, rows: int, repeat: int) -> dict[str, Any]:
    """Both ways in turn, in this process."""
    import pyarrow.dataset

    import evermat
    from evermat.spark.launch.session import session

    best: dict[str, Any] = {}
    programs = {way: evermat.Program.parse(PROGRAM.format(type=type_, output=output)) for way, output in WAYS.items()}
    with (
        tempfile.TemporaryDirectory(prefix="evermat-bench-") as place,
        session(master="local[2]", memory=4 << 30, conf={}, name="bench") as spark,
    ):
        columns = (TYPES[type_].format(value) for value in ("id * 7919 % 1000003", "id"))
        frame = spark.range(rows).selectExpr(
            *(f"{column} AS {name}" for column, name in zip(columns, "xy", strict=True))
        )
        both = {
            way: program.materialise({"r": frame}, engine=spark, place="cluster", scratch=f"{place}/scratch")
            for way, program in programs.items()
        }
        for turn in range(repeat + 1):  # the first warms up
            for way, m in both.items():
                folder = Path(place, way)
                cpu, started = cpu_of_all(), time.perf_counter()
                with Peak() as peak:
                    m.write_outputs(folder)
                wall, cpu = time.perf_counter() - started, cpu_of_all() - cpu
                written = pyarrow.dataset.dataset(
                    folder / ("r" if way == "executors" else "r.parquet"), format="parquet"
                )
                if written.count_rows() != rows:
                    raise SystemExit(f"{way}: {written.count_rows()} of {rows} rows")
                shutil.rmtree(folder)
                found = {"wall": round(wall, 2), "cpu": round(cpu, 2), "rise_mb": peak.rise}
                if turn and (way not in best or wall < best[way]["wall"]):
                    best[way] = found
        for m in both.values():
            m.close()
    return {"type": type_, "rows": rows, **best}


def main() -> None:
    """Measures all rows, and a tenth of them, and saves both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--type", choices=TYPES, help="measure only this type and these rows, in this process, and print"
    )
    given = parser.parse_args()
    if given.type:
        print(json.dumps(measure(given.type, given.rows, given.repeat)))
        return
    found = []
    for type_, rows in product(TYPES, (given.rows // 10, given.rows)):
        options = {"--type": type_, "--rows": str(rows), "--repeat": str(given.repeat)}
        command = [
            sys.executable,
            "-m",
            "bench.spark_outputs",
            *(word for option in options.items() for word in option),
        ]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    lines = [
        [
            one["type"],
            f"{one['rows']:,}",
            *(str(one[way][what]) for way in WAYS for what in ("wall", "cpu", "rise_mb")),
            f"{one['driver']['wall'] / one['executors']['wall']:.2f}",
            f"{one['driver']['cpu'] / one['executors']['cpu']:.2f}",
        ]
        for one in found
    ]
    titles = [f"{way} {what}" for way in WAYS for what in ("s", "CPU s", "MB more")]
    around = environment([], "python -m bench.spark_outputs" + "".join(f" {a}" for a in sys.argv[1:]))
    head = ["columns", "rows", *titles, "ratio", "CPU ratio"]
    told = "Seconds and MB; the ratios are those of the driver to executors. Wanted: at least 2."
    text = "\n\n".join(["# Outputs of Spark", preamble(around), told, table([head, *lines])]) + "\n"
    print(text)
    if given.rows == parser.get_default("rows"):
        save(RESULTS, "spark_outputs", around | {"measured": found}, [], text)


if __name__ == "__main__":
    main()
