"""Micro-batches of `m.follow` that executors check and net, against the same through the driver: ``python -m bench.micro_batches [--rows N,N]``.

The facts are on a standalone cluster on this machine, with two workers of one core, so that the JVM of the driver runs no task. Each case has a process of its own,
which follows a small batch first, and then one batch of so many rows. *executors* is `m.follow`; *driver* brings the batch through `toArrow` and updates with it, as
`m.follow` does with small ones. Told are the time of the query, and the greatest resident memory of the driver meanwhile, of Python and of its JVM.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.environment import environment
from bench.report import preamble, save, table
from bench.scaling import RESULTS

PROGRAM = """
.decl edge(x:number, y:number)
.decl reverse(x:number, y:number)
reverse(y, x) :- edge(x, y).
"""
WAYS = ("executors", "driver")
ROWS = (100_000, 1_000_000, 3_000_000)
WARM_UP = 70_000  # more than the driver takes by itself
FILES = 4
DELETED = 10  # one row in so many deletes


def write_batch(folder: Path, first: int, rows: int) -> int:
    """Changes as Parquet: facts from a number on are inserted, and others deleted, which are not there; how many are inserted."""
    numbers = np.arange(first, first + rows)
    deletes = numbers % DELETED == 0
    changes = pa.table({"op": np.where(deletes, "-", "+"), "x": numbers, "y": numbers * 7919 % 1_000_003})
    folder.mkdir()
    size = -(-rows // FILES)
    for number in range(FILES):
        pq.write_table(changes.slice(number * size, size), folder / f"{number}.parquet")
    return rows - int(deletes.sum())


class Peak:
    """The greatest resident memory of a process from now on."""

    def __init__(self, process: int) -> None:
        self._place = Path("/proc", str(process))
        (self._place / "clear_refs").write_text("5", encoding="ascii")

    @property
    def megabytes(self) -> int:
        """Up to this moment."""
        lines = (self._place / "status").read_text(encoding="utf-8").splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return int(fields["VmHWM"].split()[0]) >> 10


def follow(way: str, m: Any, frame: Any, checkpoint: Path) -> None:
    """Follows everything that is there, as one batch."""
    import evermat
    from evermat.language import relation_names
    from evermat.spark.sink import ChangeFrames

    if way == "executors":
        m.follow(frame, relation="edge", checkpoint=checkpoint, available_now=True).awaitTermination()
        return
    names = relation_names(evermat.Program.parse(PROGRAM).compiled)
    frames = ChangeFrames.of(frame.schema, names["edge"])

    def each(batch: Any, number: int) -> None:
        changes = frames.changes_of(batch.toArrow(), number, names)
        m.update(changes.insert, changes.delete)

    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def measure(way: str, rows: int, master: str) -> dict[str, Any]:
    """One case, in this process."""
    import evermat
    from evermat.spark.launch.session import session

    with (
        tempfile.TemporaryDirectory(prefix="evermat-bench-") as made,
        session(master=master, memory=4 << 30, conf={}, name="bench") as spark,
    ):
        place = Path(made)
        java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001 - PySpark has no other way
        options = {"engine": spark, "place": "cluster", "scratch": str(place / "scratch")}
        with evermat.Program.parse(PROGRAM).materialise({"edge": [(-1, -1)]}, **options) as m:
            expected = 1
            for name, first, count in (("small", 0, WARM_UP), ("large", 1 << 30, rows)):
                expected += write_batch(place / name, first, count)
                frame = spark.readStream.schema("op string, x long, y long").parquet(str(place / name))
                peaks = {"python": Peak(os.getpid()), "jvm": Peak(java)}
                started = time.perf_counter()
                follow(way, m, frame, place / f"checkpoint-{name}")
                wall = time.perf_counter() - started
                found = {f"{what}_mb": peak.megabytes for what, peak in peaks.items()}
                if (len(m["edge"]), len(m["reverse"])) != (expected, expected):
                    raise SystemExit(f"{way}: {len(m['edge'])} and {len(m['reverse'])} of {expected} facts")
    return {"way": way, "rows": rows, "wall": round(wall, 1), "rows_per_second": round(rows / wall), **found}


def in_process(way: str, rows: int) -> dict[str, Any]:
    """One case, in a process of its own on a cluster of its own."""
    from tests.spark.standalone import cluster

    with tempfile.TemporaryDirectory(prefix="evermat-bench-") as home, cluster(Path(home), workers=2) as started:
        words = ["--way", way, "--rows", str(rows), "--master", started.master]
        command = [sys.executable, "-m", "bench.micro_batches", *words]
        done = subprocess.run(command, env=started.environment, check=True, stdout=subprocess.PIPE, text=True)
    print(done.stdout, file=sys.stderr, flush=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Measures all cases in turn, saves and prints them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--way", choices=WAYS, help="measure only this one, in this process, and print")
    parser.add_argument("--master", help="the cluster for --way")
    given = parser.parse_args()
    sizes = [int(size) for size in given.rows.split(",")]
    if given.way:
        print(json.dumps(measure(given.way, sizes[0], given.master)))
        return
    found = [in_process(way, rows) for rows, way in product(sizes, WAYS)]
    titles = ["rows", "through", "s", "rows/s", "Python, MB", "JVM, MB"]
    lines = [
        [
            f"{one['rows']:,}",
            one["way"],
            f"{one['wall']}",
            f"{one['rows_per_second']:,}",
            f"{one['python_mb']}",
            f"{one['jvm_mb']}",
        ]
        for one in found
    ]
    around = environment([], "python -m bench.micro_batches" + "".join(f" {word}" for word in sys.argv[1:]))
    told = "One batch of changes, one run each; memory is the driver's peak while it follows the batch."
    text = "\n\n".join(["# Micro-batches", preamble(around), told, table([titles, *lines])]) + "\n"
    print(text)
    if given.rows == parser.get_default("rows"):
        save(RESULTS, "micro_batches", around | {"measured": found}, [], text)


if __name__ == "__main__":
    main()
