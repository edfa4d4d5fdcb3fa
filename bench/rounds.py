"""A closure on Spark: ours against Spark alone. ``python -m bench.rounds [--quick] [--only linear,small,chain] [--ways pivot,loop,…]``.

*linear*: the closure of W1's graph by whole processes: our pivot, our rounds, the loops that one writes in PySpark and Spark's own recursion (`bench/peers/pyspark_loop.py`
says what these are). *small*: the same on a graph on which all of them finish. *chain*: a chain, where every round finds little: seconds for each round. All count the
result, on two cores and with the same memory; a time counts only if the count is right. CPU is that of all processes, those of Python that Java starts too.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.environment import environment
from bench.harness import DETAIL_CHARACTERS, ROOT, write_facts
from bench.model import Answer, Workload
from bench.report import preamble, save, table
from bench.scaling import RESULTS, closure
from bench.workloads import FULL, QUICK, dag_edges, w1, w2

PARTS = ("linear", "small", "chain")
CORES, MEMORY = 2, "8g"
PATIENCE = 600.0  # seconds for one process
PLACES = {
    "closure": ("--place", "cluster"),
    "pivot": ("--place", "pivot", "--algorithm", "seminaive"),
    "rounds": ("--place", "cluster", "--algorithm", "seminaive"),
}
"""Our ways, and how to ask for them."""
PEERS: Mapping[str, tuple[str, ...]] = {
    "loop": ("loop", "--partitions", "8", "--no-adaptive"),
    "kept": ("kept", "--partitions", "4", "--no-adaptive"),
    "recursive": ("recursive",),
}
"""Spark alone, with the settings that were chosen; bench/README.md says which were tried."""
WAYS = (*PLACES, *PEERS)
TITLES = {
    "closure": "Evermat, `--place cluster`: a closure",
    "pivot": "Evermat, `--place pivot --algorithm seminaive`",
    "rounds": "Evermat, `--place cluster --algorithm seminaive`",
    "loop": "PySpark, loop",
    "kept": "PySpark, loop, partitioned by the first column",
    "recursive": "Spark, `WITH RECURSIVE`",
}
PROGRAM = """
.decl edge(x:number, y:number) .input edge(filename="E.facts")
.decl path(x:number, y:number) .printsize path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""


@dataclass(frozen=True)
class Ended:
    """A process that has ended by itself (`code`), or was ended after `PATIENCE` seconds (None)."""

    code: int | None
    out: str
    error: str
    wall: float
    cpu: float


def adopt_orphans() -> None:
    """Has the system give us the processes whose parents end before them, where it can: only who waits for them knows their time."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def timed(command: list[str], folder: Path) -> Ended:
    """One process with all that it starts."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    before, started = os.times(), time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, error = process.communicate(timeout=PATIENCE)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, error = process.communicate()
        code = None
    wall = time.perf_counter() - started
    reap()
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Ended(code, out, error, wall, cpu)


def reap() -> None:
    """Waits for whatever the process has left; it is ended soon by what it has lost."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass


def ours(way: str, folder: Path) -> dict[str, Any]:
    """The closure by one of our ways."""
    (folder / "program.dl").write_text(PROGRAM, encoding="utf-8")
    spark = ["--engine", "spark", "--master", f"local[{CORES}]", "--conf", f"spark.driver.memory={MEMORY}"]
    command = ["run", "program.dl", *spark, *PLACES[way], "--stats", f"{way}.json"]
    ended = timed([sys.executable, "-m", "evermat", *command], folder)
    if ended.code != 0:
        return failure(ended)
    stats = json.loads((folder / f"{way}.json").read_text(encoding="utf-8"))
    places = {stratum["place"] for stratum in stats["strata"] if "path" in stratum["relations"]}
    if places != {way}:
        return {"status": "failed", "detail": f"computed elsewhere: {', '.join(sorted(places))}"}
    count = int(ended.out.split("path\t")[1].split()[0])
    return success(ended, count, stats["rounds"], stats["seconds"]["reason"])


def theirs(way: str, folder: Path) -> dict[str, Any]:
    """The closure by Spark alone."""
    sizes = ["--master", f"local[{CORES}]", "--memory", MEMORY]
    ended = timed([sys.executable, "-m", "bench.peers.pyspark_loop", "E.facts", *PEERS[way], *sizes], folder)
    if ended.code != 0:
        return failure(ended)
    told = json.loads(ended.out.splitlines()[-1])
    return success(ended, told["count"], told["rounds"], told["reason"])


def success(ended: Ended, count: int, rounds: int, reason: float) -> dict[str, Any]:
    """What is kept of a process that has told its result."""
    times = {"wall": round(ended.wall, 2), "cpu": round(ended.cpu, 2), "reason": round(reason, 2)}
    return {"status": "ok", "count": count, "rounds": rounds, **times}


def failure(ended: Ended) -> dict[str, Any]:
    """What is kept of a process that has not."""
    if ended.code is None:
        return {"status": "timeout", "detail": f"stopped after {PATIENCE:g} s"}
    return {"status": "failed", "detail": f"exit code {ended.code}: {ended.error.strip()[-DETAIL_CHARACTERS:]}"}


def small_dag(nodes: int) -> Workload:
    """A graph that is small enough for all; its closure is computed without any engine."""
    return w1(closure(dag_edges(nodes, 10 * nodes), nodes)[0], nodes, 10 * nodes)


def chain(nodes: int) -> Workload:
    """A chain, of which only the number of pairs is known."""
    return w2(Answer(nodes * (nodes - 1) // 2, 0), nodes)


def measure(part: str, ways: list[str], folder: Path, quick: bool) -> Iterator[dict[str, Any]]:
    """One part by every way."""
    if part == "linear":
        workload = QUICK["w1"] if quick else FULL["w1"]
    elif part == "small":
        workload = small_dag(100 if quick else 1_000)
    else:
        workload = chain(20 if quick else 200)
    place = folder / part
    write_facts(workload, place)
    for way in ways:
        if part == "chain" and way not in {"rounds", "loop", "kept"}:
            continue
        found = ours(way, place) if way in PLACES else theirs(way, place)
        if found["status"] == "ok" and found["count"] != workload.expected.rows:
            found["status"], found["detail"] = "wrong", f"{found['count']:,} facts"
        yield {"way": way, "expected": workload.expected.rows, **found}


def render(around: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    parts = ["# Rounds on Spark", preamble(around)]
    for part, title in (("linear", "W1"), ("small", "A graph for all")):
        if rows := [one for one in found if one["part"] == part]:
            parts.append(
                f"## {title}\n\nThe closure of a random DAG, {rows[0]['expected']:,} facts; seconds. Reasoning is without Spark's start."
            )
            head = [["way", "wall", "CPU", "reasoning", "rounds"]]
            parts.append(table(head + [[TITLES[one["way"]], *_cells(one)] for one in rows]))
            parts += _troubles(rows)
        if part == "linear" and rows:
            wall = {one["way"]: one["wall"] for one in rows if one["status"] == "ok"}
            loops = [wall[way] for way in ("loop", "kept") if way in wall]
            head = [["the faster loop / ours, wall", "ratio", "wanted"]]
            cells = [
                [TITLES[way], f"{min(loops) / wall[way]:.2f}" if loops and way in wall else "–", f"at least {wanted}"]
                for way, wanted in (("pivot", 5), ("rounds", 1.5))
            ]
            parts.append(table(head + cells))
    if rows := [one for one in found if one["part"] == "chain"]:
        parts.append(
            f"## Many small rounds\n\nThe closure of a chain, {rows[0]['expected']:,} facts. Wanted of ours: under 0.4 seconds of reasoning for each round."
        )
        head = [["way", "wall", "CPU", "reasoning", "rounds", "seconds per round"]]
        cells = [
            [TITLES[r["way"]], *_cells(r), f"{r['reason'] / r['rounds']:.3f}" if r["status"] == "ok" else "–"]
            for r in rows
        ]
        parts.append(table(head + cells))
        parts += _troubles(rows)
    return "\n\n".join(parts) + "\n"


def _cells(one: dict[str, Any]) -> list[str]:
    if one["status"] != "ok":
        return [one["status"], "", "", ""]
    return [str(one["wall"]), str(one["cpu"]), str(one["reason"]), str(one["rounds"] or "–")]


def _troubles(rows: list[dict[str, Any]]) -> list[str]:
    told = [f"- {TITLES[r['way']]}: {' '.join(r['detail'].split())}" for r in rows if r["status"] != "ok"]
    return ["\n".join(told)] if told else []


def main() -> None:
    """Measures, saves, prints. What is not measured now is kept from the last time."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default=",".join(PARTS), help="parts")
    options.add_argument("--ways", default=",".join(WAYS), help=", ".join(WAYS))
    chosen = options.parse_args()
    only, ways = chosen.only.split(","), chosen.ways.split(",")
    if unknown := [name for name in only if name not in PARTS] + [name for name in ways if name not in WAYS]:
        options.error(f"unknown: {', '.join(unknown)}")
    name = "rounds-quick" if chosen.quick else "rounds"
    file = RESULTS / f"{name}.json"
    before = json.loads(file.read_text(encoding="utf-8"))["measured"] if file.exists() else []
    around = environment([], "python -m bench.rounds" + "".join(f" {a}" for a in sys.argv[1:]))
    found = [one for one in before if one["part"] not in only or one["way"] not in ways]
    adopt_orphans()
    with tempfile.TemporaryDirectory() as folder:
        for part in only:
            for one in measure(part, ways, Path(folder), chosen.quick):
                found.append({"part": part, "date": around["date"], **one})
                print(found[-1], file=sys.stderr)
    found.sort(key=lambda one: (PARTS.index(one["part"]), WAYS.index(one["way"])))
    text = render(around, found)
    save(RESULTS, name, around | {"measured": found}, [], text)
    print(text)


if __name__ == "__main__":
    main()
