"""What a cluster does for a closure, and how little the driver needs. ``python -m bench.traffic [--quick] [--only workers,large]``.

*workers*: the closure of a random DAG on a standalone cluster on this machine, with one worker and with two, each with one core: jobs, facts and bytes that go from task to
task for each fact derived, bytes of a stored fact. *large*: a result of 5 GB (16 bytes a fact) by a driver that may use 1 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.environment import environment
from bench.harness import write_facts
from bench.report import preamble, save, table
from bench.rounds import PLACES, PROGRAM, adopt_orphans, small_dag
from bench.scaling import RESULTS

PARTS = ("workers", "large")

PRODUCT = """
.decl a(x:number) .input a
.decl b(y:number) .input b
.decl p(x:number, y:number) .printsize p
p(x, y) :- a(x), b(y).
"""


def run(folder: Path, environment: dict[str, str], *options: str) -> dict[str, Any]:
    """One run of the whole command, and what it tells."""
    command = [sys.executable, "-m", "evermat", "run", "program.dl", "--engine", "spark", "--stats", "stats.json"]
    started = time.perf_counter()
    done = subprocess.run([*command, *options], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    wall = time.perf_counter() - started
    stats = json.loads((folder / "stats.json").read_text(encoding="utf-8"))
    wanted = ("jobs", "rounds", "derived", "derivations", "sent_facts", "sent_bytes", "stored_bytes", "peak_rss_mb")
    return {
        "wall": round(wall, 2),
        "reason": round(stats["seconds"]["reason"], 2),
        "said": done.stdout.split(),
        "facts": sum(stats["facts"].values()),
        **{name: stats[name] for name in wanted},
    }


def workers(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """The same closure with one worker and with two."""
    from tests.spark.standalone import cluster

    workload = small_dag(200 if quick else 3_000)
    place = folder / "workers"
    write_facts(workload, place)
    (place / "program.dl").write_text(PROGRAM, encoding="utf-8")
    for count in (1, 2):
        home = folder / f"cluster{count}"
        home.mkdir()
        with cluster(home, workers=count) as started:
            for way, asked in PLACES.items():
                options = ("--master", started.master, "--scratch", str(folder / "scratch"), *asked)
                told = run(place, started.environment, *options)
                if told["said"] != ["path", str(workload.expected.rows)]:
                    raise SystemExit(f"wrong: {told['said']}")
                yield {"workers": count, "way": way, **told}


def large(folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """A product of two small relations."""
    place = folder / "large"
    place.mkdir()
    sizes = (200, 160) if quick else (20_000, 16_000)
    for name, size in zip("ab", sizes, strict=True):
        np.savetxt(place / f"{name}.facts", np.arange(size), fmt="%d")
    (place / "program.dl").write_text(PRODUCT, encoding="utf-8")
    told = run(place, dict(os.environ), "--master", "local[2]", "--place", "cluster", "--memory", "1g")
    if told["said"] != ["p", str(sizes[0] * sizes[1])]:
        raise SystemExit(f"wrong: {told['said']}")
    yield told


def render(around: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    parts = ["# Traffic on Spark", preamble(around)]
    if rows := [one for one in found if one["part"] == "workers"]:
        parts.append(
            f"## Workers\n\nThe closure of a random DAG, {rows[0]['derived']:,} facts derived by {rows[0]['derivations']:,} instances, on a standalone cluster on one machine; each worker has one core. "
            "Sent is what goes from task to task, loading included."
        )
        head = [
            [
                "way",
                "workers",
                "reasoning s",
                "rounds",
                "jobs",
                "facts sent per derived",
                "bytes sent per derived",
                "bytes stored per fact",
            ]
        ]
        cells = [
            [
                r["way"],
                str(r["workers"]),
                str(r["reason"]),
                str(r["rounds"]),
                str(r["jobs"]),
                f"{r['sent_facts'] / r['derived']:.2f}",
                f"{r['sent_bytes'] / r['derived']:.1f}",
                f"{r['stored_bytes'] / r['facts']:.1f}",
            ]
            for r in rows
        ]
        parts.append(table(head + cells))
    if rows := [one for one in found if one["part"] == "large"]:
        parts.append(
            "## A large result, a small driver\n\n`--place cluster --memory 1g`: half of it is the heap of the JVM, the other half is all that the driver's Python may use. A fact counts 16 bytes."
        )
        head = [["facts", "result, GB", "driver's Python, peak MB", "stored MB", "reasoning s", "whole process s"]]
        cells = [
            [
                f"{r['facts']:,}",
                f"{16 * r['facts'] / 1e9:.2f}",
                str(r["peak_rss_mb"]),
                f"{r['stored_bytes'] / 1e6:,.0f}",
                str(r["reason"]),
                str(r["wall"]),
            ]
            for r in rows
        ]
        parts.append(table(head + cells))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measures, saves, prints. What is not measured now is kept from the last time."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default=",".join(PARTS))
    chosen = options.parse_args()
    only = chosen.only.split(",")
    name = "traffic-quick" if chosen.quick else "traffic"
    file = RESULTS / f"{name}.json"
    before = json.loads(file.read_text(encoding="utf-8"))["measured"] if file.exists() else []
    around = environment([], "python -m bench.traffic" + "".join(f" {a}" for a in sys.argv[1:]))
    found = [one for one in before if one["part"] not in only]
    adopt_orphans()
    with tempfile.TemporaryDirectory() as folder:
        for part, measure in zip(PARTS, (workers, large), strict=True):
            for one in measure(Path(folder), chosen.quick) if part in only else ():
                found.append({"part": part, "date": around["date"], **one})
                print(found[-1], file=sys.stderr)
    found.sort(key=lambda one: PARTS.index(one["part"]))
    text = render(around, found)
    save(RESULTS, name, around | {"measured": found}, [], text)
    print(text)


if __name__ == "__main__":
    main()
