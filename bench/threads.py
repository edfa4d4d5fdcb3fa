"""Readers and updates at the same time: ``python -m bench.threads [--quick] [--only PART,…] [--against OTHER/src]``.

Four parts: queries by four threads while updates run, beside one thread without updates; updates beside four readers, beside updates
alone; how long another thread has to wait for the interpreter during a large update; and what a snapshot costs. With `--against`, W1–W6, updates and queries in one thread, beside another version of the sources.

Two threads of one process share the interpreter, so that the wall time of an update grows with the readers beside it whatever they do.
So its CPU seconds are told, those of its thread alone, and its wall time beside readers that always ask and beside readers that ask 50
times in a second.

One interpreter executes the Python code of one thread at a time. If a share p of a query is Python code, and updates take a share u of the interpreter's
time, then readers together get at most (1 - u) / p of the queries of one thread. So what the threads get done together is told in units of
what one thread gets done alone: queries / queries alone + updates / updates alone. And the same readers are measured beside a thread that
does nothing but hold the interpreter, as often and as long as the updates compute: about what is possible beside them.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import evermat
from bench import two_trees
from bench.environment import environment
from bench.report import preamble, save, table
from bench.scaling import RESULTS
from bench.updates import pairs
from evermat.columns.kernels.warm_up import warm_up

READERS = 4
PARTS = ("queries", "update", "pause", "snapshot")
PROGRAM = """
.decl now(v:number)
.decl a(x:number, y:number)
.decl b(y:number, z:number)
.decl r(x:number, z:number)
.decl n(x:number, k:number)
r(x, z) :- a(x, y), b(y, z).
n(x, k) :- a(x, _), k = count : { r(x, _) }.
"""
#: queries whose answers have equally many rows at every version
QUERIES = {
    "lookup": "now(v), x = v * 1000 + 1500, r(x, z)",
    "join": "now(v), a(x, y), b(y, z), z < 100",
    "count": "now(v), k = count : { r(_, _) }",
    "large": "now(v), k = count : { a(x, y), b(y, z), b(y, w), z < w }",  # joins of FAN² times as many rows as there are in `a`
}
FAN, CHANGED = 10, 1000
PACE = 50  # queries in a second of a reader that does not always ask
RELATIONS = 100
TARGETS = {"queries": 1.0, "update": 1.3, "pause": 20.0, "snapshot": 50.0, "against": 1.02}


class Subject:
    """A materialisation that is updated: each update moves the marker and as many facts of `a` as it inserts, it deletes."""

    def __init__(self, size: int) -> None:
        self.many, self.facts = size // FAN, size // 10
        y = np.repeat(np.arange(self.many), FAN)
        given = {"now": [(0,)], "a": self._facts_from(0, self.facts), "b": pairs(y, np.arange(len(y)) % 1000)}
        self.m = evermat.Program.parse(PROGRAM).materialise(given, counters="both", schemes="plain")
        self.version = 0
        self.rows = {name: len(self.m.query(text)) for name, text in QUERIES.items()}

    def _facts_from(self, first: int, count: int) -> Any:
        x = np.arange(first, first + count)
        return pairs(x, x % self.many)

    def update(self) -> None:
        first = self.version * CHANGED
        self.m.update(
            {"now": [(self.version + 1,)], "a": self._facts_from(first + self.facts, CHANGED)},
            {"now": [(self.version,)], "a": self._facts_from(first, CHANGED)},
        )
        self.version += 1

    def ask(self, name: str) -> None:
        """Asks, and checks that the answer is that of one version."""
        found = len(self.m.query(QUERIES[name]))
        if found != self.rows[name]:
            raise SystemExit(f"{name}: {found} rows, not {self.rows[name]}: not those of one version")


@contextmanager
def running(call: Callable[[], None], threads: int, *, pace: float = 0) -> Iterator[list[int]]:
    """Within the block, some threads call again and again; how often each of them did."""
    stop, counts = threading.Event(), [0] * threads
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            while not stop.is_set():
                call()
                counts[number] += 1
                if pace:
                    stop.wait(1 / pace)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield counts
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    if errors:
        raise errors[0]


class Holder:
    """Holds the interpreter for some CPU seconds, so often in a second."""

    def __init__(self, seconds: float, rate: float) -> None:
        self._seconds, self._pause, self._due = seconds, 1 / rate, time.perf_counter()

    def __call__(self) -> None:
        end = time.thread_time() + self._seconds
        while time.thread_time() < end:
            pass
        self._due += self._pause
        time.sleep(max(0.0, self._due - time.perf_counter()))


def measure_queries(subject: Subject, seconds: float, rounds: int) -> list[dict[str, Any]]:
    """Queries in a second by one thread alone, and by four while updates run, in turns."""
    found = []
    for query in QUERIES:
        alone, together, updates, lonely, held = [], [], [], [], []
        for _ in range(rounds):
            cpu = statistics.median(_updates(subject, 5)[0]) / 1e3
            with running(lambda: subject.ask(query), 1) as counts:  # noqa: B023
                time.sleep(seconds)
            alone.append(sum(counts) / seconds)
            with running(subject.update, 1) as made:
                time.sleep(seconds / 3)
            lonely.append(3 * made[0] / seconds)
            with running(subject.update, 1) as made, running(lambda: subject.ask(query), READERS) as counts:  # noqa: B023
                time.sleep(seconds)
            together.append(sum(counts) / seconds)
            updates.append(made[0] / seconds)
            with (
                running(Holder(cpu, max(updates[-1], 1 / seconds)), 1),
                running(lambda: subject.ask(query), READERS) as counts,  # noqa: B023
            ):
                time.sleep(seconds)
            held.append(sum(counts) / seconds)
        ratio = statistics.median(b / a for a, b in zip(alone, together, strict=True))
        share = statistics.median(b / a for a, b in zip(lonely, updates, strict=True))
        found.append(
            {
                "part": "queries",
                "query": query,
                "alone": round(statistics.median(alone), 1),
                "together": round(statistics.median(together), 1),
                "updates": round(statistics.median(updates), 1),
                "ratio": round(ratio, 3),
                "share": round(share, 3),
                "work": round(ratio + share, 3),
                "held": round(statistics.median(b / a for a, b in zip(alone, held, strict=True)), 3),
            }
        )
        print(found[-1], file=sys.stderr)
    return found


def _updates(subject: Subject, count: int) -> tuple[list[float], list[float]]:
    """CPU milliseconds of this thread, and wall milliseconds, of each update."""
    cpu, wall = [], []
    for _ in range(count):
        began, started = time.thread_time(), time.perf_counter()
        subject.update()
        cpu.append(1e3 * (time.thread_time() - began))
        wall.append(1e3 * (time.perf_counter() - started))
    return cpu, wall


def measure_update(subject: Subject, count: int, rounds: int) -> list[dict[str, Any]]:
    """Updates alone, beside readers that always ask, and beside some that ask from time to time, in turns."""
    ways: dict[str, tuple[int, float]] = {"alone": (0, 0), "always": (READERS, 0), "paced": (READERS, PACE)}
    found = []
    for query in QUERIES:
        times: dict[str, tuple[list[float], list[float]]] = {way: ([], []) for way in ways}
        for _ in range(rounds):
            for way, (threads, pace) in ways.items():
                with running(lambda: subject.ask(query), threads, pace=pace):  # noqa: B023
                    for kind, values in zip(times[way], _updates(subject, count), strict=True):
                        kind += values
        medians = {way: [statistics.median(kind) for kind in both] for way, both in times.items()}
        for way, (cpu, wall) in medians.items():
            found.append(
                {
                    "part": "update",
                    "query": query,
                    "readers": way,
                    "cpu_ms": round(cpu, 2),
                    "wall_ms": round(wall, 2),
                    "cpu_ratio": round(cpu / medians["alone"][0], 3),
                    "wall_ratio": round(wall / medians["alone"][1], 3),
                }
            )
            print(found[-1], file=sys.stderr)
    return found


def measure_pause(subject: Subject, rounds: int) -> list[dict[str, Any]]:
    """How long a thread that always has something to do waits for the interpreter during updates that delete and insert many facts."""
    rows = list(zip(range(10**8, 10**8 + subject.facts), range(subject.facts), strict=True))
    pauses, taken = [], []
    for _ in range(rounds):
        stop, beats = threading.Event(), [time.perf_counter()]

        def beat(stop: threading.Event = stop, beats: list[float] = beats) -> None:
            while not stop.is_set():
                beats.append(time.perf_counter())
                stop.wait(0.0005)

        thread = threading.Thread(target=beat)
        thread.start()
        started = time.perf_counter()
        subject.m.update({"a": rows})
        subject.m.update(None, {"a": rows})
        taken.append(1e3 * (time.perf_counter() - started))
        stop.set()
        thread.join()
        pauses.append(1e3 * max(b - a for a, b in itertools.pairwise(beats)))
    found = {
        "part": "pause",
        "facts": 2 * len(rows),
        "update_ms": round(statistics.median(taken), 1),
        "longest_ms": round(statistics.median(pauses), 1),
    }
    print(found, file=sys.stderr)
    return [found]


def measure_snapshot(rounds: int) -> list[dict[str, Any]]:
    """Microseconds of a snapshot of many relations: one like the last one, and the first after an update or a change of rules."""
    text = "".join(
        f".decl r{i}(x:number) .decl s{i}(x:number) s{i}(x + 1) :- r{i}(x).\n" for i in range(RELATIONS // 2)
    )
    m: Any = evermat.Program.parse(text).materialise({f"r{i}": [(1,), (2,)] for i in range(RELATIONS // 2)})
    if not hasattr(m, "snapshot"):
        print("there are no snapshots in this version", file=sys.stderr)
        return []

    def once() -> float:
        started = time.perf_counter_ns()
        s = m.snapshot()
        taken = time.perf_counter_ns() - started
        s.close()
        return taken / 1e3

    number = iter(range(10**9))
    before: dict[str, Callable[[], object]] = {
        "again": lambda: None,
        "after an update": lambda: m.update({"r0": [(next(number) + 10,)]}),
        "after an update of all relations": lambda: m.update(
            {f"r{i}": [(next(number) + 10,)] for i in range(RELATIONS // 2)}
        ),
        "after a change of rules": lambda: m.update(add_rules=f"s0({next(number) + 10}) :- r0(1)."),
    }
    found = []
    for way, prepare in before.items():
        times = []
        for _ in range(rounds if way != "after a change of rules" else max(3, rounds // 20)):
            prepare()
            times.append(once())
        found.append(
            {
                "part": "snapshot",
                "when": way,
                "relations": RELATIONS,
                "min_us": round(min(times), 1),
                "median_us": round(statistics.median(times), 1),
            }
        )
        print(found[-1], file=sys.stderr)
    return found


def busy_seconds() -> float:
    """CPU seconds of all processes of the machine; 0 where it does not tell."""
    try:
        ticks = [
            int(number) for number in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        ]
    except (OSError, ValueError):
        return 0.0
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def taken_by_others(call: Callable[[], None]) -> float:
    """Carries out a call; how many cores other processes kept busy meanwhile, which are not there for its threads."""
    started, busy, own = time.perf_counter(), busy_seconds(), time.process_time()
    call()
    return round(max(0.0, busy_seconds() - busy - time.process_time() + own) / (time.perf_counter() - started), 2)


def render(around: dict[str, Any], found: list[dict[str, Any]], against: dict[str, Any]) -> str:
    """A table for each part."""
    parts = ["# Readers and updates at the same time", preamble(around)]
    if "others" in around:
        parts.append(
            f"Meanwhile other processes kept {around['others']} cores busy. If these are more than some tenths, threads beside each other get "
            "more of the machine than one thread, and wall times and queries in a second say little; CPU times are of use."
        )
    if rows := [one for one in found if one["part"] == "queries"]:
        parts += [
            "## Queries in a second",
            f"One thread without updates, and {READERS} threads in sum while another one updates without a pause. "
            "Beside each other, as what one thread gets done alone: the readers, the updates, and both. "
            f"Wanted: as much as one thread, {TARGETS['queries']} or more. "
            "*Held*: the readers beside a thread that does nothing but hold the interpreter, as often and as long as the updates compute. "
            "A lookup is Python code throughout, so that its readers can get no more than what updates leave of the interpreter.",
            table(
                [
                    [
                        "query",
                        "one thread",
                        "four threads and updates",
                        "updates in a second",
                        "readers",
                        "updates",
                        "both",
                        "held",
                    ],
                    *(
                        [
                            r["query"],
                            *(
                                str(r.get(k, ""))
                                for k in ("alone", "together", "updates", "ratio", "share", "work", "held")
                            ),
                        ]
                        for r in rows
                    ),
                ]
            ),
        ]
    if rows := [one for one in found if one["part"] == "update"]:
        parts += [
            "## An update beside readers",
            f"Updates of {2 * CHANGED:,} facts; medians. Readers: none, {READERS} that always ask, {READERS} that ask {PACE} times in a second each. "
            f"CPU is that of the thread that updates. Wanted: {TARGETS['update']} or less. "
            "Wall time beside readers that always ask is what the interpreter leaves to one of five threads.",
            table(
                [
                    ["query", "readers", "CPU, ms", "wall, ms", "CPU, ratio", "wall, ratio"],
                    *(
                        [
                            r["query"],
                            r["readers"],
                            *(str(r[k]) for k in ("cpu_ms", "wall_ms", "cpu_ratio", "wall_ratio")),
                        ]
                        for r in rows
                    ),
                ]
            ),
        ]
    if rows := [one for one in found if one["part"] == "pause"]:
        parts += [
            "## The interpreter during a large update",
            f"The longest time for which another thread does not get it; medians. Wanted: {TARGETS['pause']:g} ms or less.",
            table(
                [
                    ["facts", "updates, ms", "longest pause, ms"],
                    *([f"{r['facts']:,}", str(r["update_ms"]), str(r["longest_ms"])] for r in rows),
                ]
            ),
        ]
    if rows := [one for one in found if one["part"] == "snapshot"]:
        parts += [
            "## A snapshot",
            f"`m.snapshot()` of {RELATIONS} relations. Wanted: {TARGETS['snapshot']:g} µs or less.",
            table(
                [["when", "min, µs", "median, µs"], *([r["when"], str(r["min_us"]), str(r["median_us"])] for r in rows)]
            ),
        ]
    if against:
        parts += [
            "## One thread, beside another version",
            f"CPU seconds, medians, in turns; the ratio is the median of those of neighbours. Wanted: {TARGETS['against']} or less.",
            table(
                [
                    ["job", "before, s", "now, s", "ratio", "lowest", "highest"],
                    *(
                        [
                            job,
                            f"{t['before']:.3f}",
                            f"{t['now']:.3f}",
                            f"{t['ratio']:.3f}",
                            f"{t['least']:.2f}",
                            f"{t['most']:.2f}",
                        ]
                        for job, t in against.items()
                    ),
                ]
            ),
        ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measures, saves, prints. What is not measured now is kept from the last time."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default=",".join(PARTS), help="parts, or `none`")
    options.add_argument("--against", type=Path, help="the directory `src` of another version")
    options.add_argument("--jobs", default="", help="with --against, some of the jobs")
    options.add_argument("--repeat", type=int, help="rounds of each part, and of each job")
    chosen = options.parse_args()
    only = [] if chosen.only == "none" else chosen.only.split(",")
    if unknown := [part for part in only if part not in PARTS]:
        options.error(f"unknown: {', '.join(unknown)}")
    rounds = chosen.repeat or (1 if chosen.quick else 7)
    name = "threads-quick" if chosen.quick else "threads"
    file = RESULTS / f"{name}.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"measured": [], "against": {}}
    found = [one for one in before["measured"] if one["part"] not in only]
    if only:
        warm_up()
        subject = Subject(20_000 if chosen.quick else 400_000)
        for _ in range(5):
            subject.update()
            for query in QUERIES:
                subject.ask(query)
        gc.collect()

        def measure() -> None:
            nonlocal found
            if "queries" in only:
                found += measure_queries(subject, 0.3 if chosen.quick else 3.0, rounds)
            if "update" in only:
                found += measure_update(subject, 3 if chosen.quick else 20, rounds)
            if "pause" in only:
                found += measure_pause(subject, rounds)
            if "snapshot" in only:
                found += measure_snapshot(30 if chosen.quick else 2000)

        others = {"others": taken_by_others(measure)}
    else:
        others = {}
    against = before["against"]
    if chosen.against is not None:
        ours = Path(evermat.__file__).resolve().parent.parent
        some = [job for job in chosen.jobs.split(",") if job]
        against = against | two_trees.compare(ours, chosen.against.resolve(), rounds, quick=chosen.quick, only=some)
    found.sort(key=lambda one: PARTS.index(one["part"]))
    around = environment([], "python -m bench.threads" + "".join(f" {a}" for a in sys.argv[1:])) | others
    text = render(around, found, against)
    save(RESULTS, name, around | {"measured": found, "against": against}, [], text)
    print(text)


if __name__ == "__main__":
    main()
