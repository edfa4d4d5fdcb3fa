"""Small updates of many facts: ``python -m bench.updates [--quick]``.

An update of 1,000 facts that touches 10,000 derivations, inserted and deleted again by every algorithm, where there are 20 M facts and where
there are 2 M: once most of them explicit, once half of them derived by the rule that is maintained. Both sizes are held in memory at once and
updated in turns, so that noise of the machine hits both alike. Told are milliseconds of whole calls of `update`, after a first one that makes
the indexes.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa

import evermat
from bench.environment import environment
from bench.report import preamble, save, table
from bench.scaling import RESULTS
from evermat.columns.kernels.warm_up import warm_up

PROGRAM = """
.decl a(x:number, y:number)
.decl b(y:number, z:number)
.decl r(x:number, z:number)
r(x, z) :- a(x, y), b(y, z).
"""
ALGORITHMS = ("auto", "counting", "dred", "dred-c", "bf", "bf-c")
COUNTERS = {"dred": "none", "dred-c": "both", "bf": "none", "bf-c": "both", "auto": "both", "counting": "both"}
FAN = 10  # facts of b for each y
CHANGED = 1_000
SHAPES = {"explicit": (1.0, 0.0005), "derived": (0.5, 0.05)}  # how many of the facts are in b, and how many in a
TARGET_MS, TARGET_RATIO = 20, 2


def facts(size: int, shape: str) -> dict[str, pa.Table]:
    """Facts of b in no order, each y with ten z; and of a."""
    rng = np.random.default_rng(0)
    many, few = (int(share * size) for share in SHAPES[shape])
    many //= FAN
    y = rng.permutation(np.repeat(np.arange(many), FAN))
    z = np.empty(len(y), np.int64)
    order = np.argsort(y, kind="stable")
    z[order] = (rng.integers(0, many, many)[:, None] + np.arange(FAN) * (many // FAN)).ravel() % many
    return {"a": pairs(np.arange(few), rng.integers(0, many, few)), "b": pairs(y, z)}


def pairs(first: np.ndarray, second: np.ndarray) -> pa.Table:
    """Two columns as an Arrow table."""
    return pa.table({"c0": first, "c1": second})


class Subject:
    """A materialisation of some size that is updated again and again."""

    def __init__(self, size: int, shape: str, algorithm: str, changed: int) -> None:
        given = facts(size, shape)
        self.many, self._next = len(given["b"]) // FAN, len(given["a"])
        self.algorithm, self.changed = algorithm, changed
        started = time.perf_counter()
        self.m = evermat.Program.parse(PROGRAM).materialise(given, counters=COUNTERS[algorithm], schemes="plain")
        self.seconds = time.perf_counter() - started
        self.facts = sum(len(self.m[name]) for name in self.m)
        self.chosen: set[str] = set()
        self._rng = np.random.default_rng(1)

    def round(self) -> dict[str, dict[str, float]]:
        """Inserts facts that were never there and deletes them again: milliseconds of each."""
        x = np.arange(self._next, self._next + self.changed)
        self._next += self.changed
        new = {"a": pairs(x, self._rng.integers(0, self.many, self.changed))}
        before = len(self.m["r"])
        found = {"insert": self._timed(insert=new)}
        if len(self.m["r"]) != before + FAN * self.changed:
            raise SystemExit(f"{self.algorithm}: {len(self.m['r']) - before} facts more after inserting")
        found["delete"] = self._timed(delete=new)
        if len(self.m["r"]) != before:
            raise SystemExit(f"{self.algorithm}: {len(self.m['r']) - before} facts more after deleting")
        return found

    def _timed(self, **given: Any) -> dict[str, float]:
        cpu, wall = time.process_time(), time.perf_counter()
        change = self.m.update(**given, algorithm=self.algorithm)
        taken = {"wall": 1e3 * (time.perf_counter() - wall), "cpu": 1e3 * (time.process_time() - cpu)}
        self.chosen |= {stratum["algorithm"] for stratum in change.stats["strata"]}
        return taken


def measure(shape: str, algorithm: str, sizes: list[int], changed: int, rounds: int) -> list[dict[str, Any]]:
    """Updates the sizes in turns."""
    subjects = [Subject(size, shape, algorithm, changed) for size in sizes]
    firsts = [subject.round() for subject in subjects]
    for subject in subjects:
        subject.round()
    taken: list[list[dict[str, dict[str, float]]]] = [[] for _ in subjects]
    gc.collect()
    for _ in range(rounds):
        for subject, times in zip(subjects, taken, strict=True):
            times.append(subject.round())
    found = []
    for subject, first, times in zip(subjects, firsts, taken, strict=True):
        one: dict[str, Any] = {
            "shape": shape,
            "algorithm": algorithm,
            "facts": subject.facts,
            "materialise_s": round(subject.seconds, 2),
            "chosen": sorted(subject.chosen),
        }
        for what in ("insert", "delete"):
            one[what] = {
                "first_ms": round(first[what]["wall"], 1),
                **{
                    f"{name}_{kind}_ms": round(of([t[what][kind] for t in times]), 2)
                    for kind in ("wall", "cpu")
                    for name, of in (("min", min), ("median", statistics.median), ("max", max))
                },
            }
        found.append(one)
        print(one, file=sys.stderr)
    return found


def render(around: dict[str, Any], found: list[dict[str, Any]], changed: int) -> str:
    """One row for each algorithm, size and kind of update."""
    rows = [
        [
            "most facts",
            "algorithm",
            "facts",
            "update",
            "first, ms",
            "min, ms",
            "median, ms",
            "max, ms",
            "min CPU, ms",
            "median CPU, ms",
            "ratio of min CPU",
        ]
    ]
    least: dict[tuple[str, ...], float] = {}  # that of the smaller size, which comes first
    for one in found:
        for what in ("insert", "delete"):
            t = one[what]
            key, cpu = (one["shape"], one["algorithm"], what), t["min_cpu_ms"]
            ratio = cpu / least[key] if key in least else None
            least.setdefault(key, cpu)
            times = [t[k] for k in ("first_ms", "min_wall_ms", "median_wall_ms", "max_wall_ms", "min_cpu_ms")]
            rows.append(
                [
                    one["shape"],
                    one["algorithm"],
                    f"{one['facts']:,}",
                    what,
                    *map(str, times),
                    str(t["median_cpu_ms"]),
                    f"{ratio:.2f}" if ratio else "",
                ]
            )
    worst = max(one[what]["min_wall_ms"] for one in found for what in ("insert", "delete"))
    told = (
        f"Updates of {changed:,} facts of `a` that touch {FAN * changed:,} derivations of `r(x, z) :- a(x, y), b(y, z)`. "
        f"Wanted: under {TARGET_MS} ms, and within {TARGET_RATIO}× of the same on a tenth of the facts. "
        f"The slowest minimum is {worst} ms."
    )
    return "\n\n".join(["# Small updates of many facts", preamble(around), told, table(rows)]) + "\n"


def main() -> None:
    """Measures, saves, prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--rounds", type=int)
    options.add_argument("--algorithms", default=",".join(ALGORITHMS))
    chosen = options.parse_args()
    sizes = [20_000, 200_000] if chosen.quick else [2_000_000, 20_000_000]
    changed = CHANGED // 10 if chosen.quick else CHANGED
    warm_up()
    found: list[dict[str, Any]] = []
    for shape in SHAPES:
        for algorithm in chosen.algorithms.split(","):
            found += measure(shape, algorithm, sizes, changed, chosen.rounds or (3 if chosen.quick else 15))
    around = environment([], "python -m bench.updates" + "".join(f" {a}" for a in sys.argv[1:]))
    text = render(around, found, changed)
    save(RESULTS, "updates-quick" if chosen.quick else "updates", around | {"measured": found}, [], text)
    print(text)


if __name__ == "__main__":
    main()
