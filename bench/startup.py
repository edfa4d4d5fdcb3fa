"""How long short jobs take: ``python -m bench.startup``.

Whole processes, best of three by wall time: help, a program of three rules with ten facts (warm, and the very first time on a machine,
with empty caches), and a generated program of 5,000 rules, checked and run on tiny data.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.environment import environment
from bench.report import preamble, save, table
from bench.scaling import RESULTS

SMALL = """
.decl e(x:symbol, y:symbol)
.decl t(x:symbol, y:symbol)
.decl far(x:symbol)
t(x, y) :- e(x, y).
t(x, z) :- t(x, y), e(y, z).
far(y) :- t("n0", y), !e("n0", y).
.output t
.output far
""" + "".join(f'e("n{i}", "n{i + 1}").\n' for i in range(10))


def generated(rules: int, relations: int = 1000) -> str:
    """A program with many rules and few facts."""
    rng = random.Random(1)
    lines = [f".decl r{i}(x:number, y:number)" for i in range(relations)]
    lines += [f"r{i}({i}, {i + 1})." for i in range(relations // 10)]
    for number in range(rules):
        head, first, second = (rng.randrange(relations) for _ in range(3))
        lines.append(f"r{head}(x, z) :- r{first}(x, y), r{second}(y, z), x < z + {number}.")
    return "\n".join([*lines, f".output r{relations - 1}", ""])


def timed(arguments: list[str], folder: Path, repeat: int = 3, *, cold: bool = False) -> dict[str, float]:
    """The best of some runs of a command; cold ones begin with empty caches."""
    best = {"wall": float("inf"), "cpu": float("inf")}
    for number in range(repeat):
        variables = dict(os.environ)
        if cold:
            fresh = folder / f"cache{number}"
            variables |= {"XDG_CACHE_HOME": str(fresh), "NUMBA_CACHE_DIR": str(fresh)}
        before, started = os.times(), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "evermat", *arguments], cwd=folder, env=variables, check=True, capture_output=True
        )
        after, wall = os.times(), time.perf_counter() - started
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        best = min(best, {"wall": round(wall, 2), "cpu": round(cpu, 2)}, key=lambda t: t["wall"])
    return best


def main() -> None:
    """Measures, saves, prints."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "small.dl").write_text(SMALL, encoding="utf-8")
        (folder / "large.dl").write_text(generated(5000), encoding="utf-8")
        timed(["run", "small.dl", "--engine", "memory"], folder, 1)  # whatever is cached between runs is cached now
        found: dict[str, Any] = {
            "--help": timed(["--help"], folder),
            "3 rules, 10 facts": timed(["run", "small.dl", "--engine", "memory"], folder),
            "3 rules, 10 facts, first time ever": timed(
                ["run", "small.dl", "--engine", "memory"], folder, 2, cold=True
            ),
            "5,000 rules: check": timed(["check", "large.dl"], folder),
            "5,000 rules: run": timed(["run", "large.dl", "--engine", "memory"], folder),
        }
    around = environment([], "python -m bench.startup")
    rows = [["job", "wall, s", "CPU, s"], *([job, str(t["wall"]), str(t["cpu"])] for job, t in found.items())]
    text = "\n\n".join(["# Short jobs", preamble(around), table(rows)]) + "\n"
    save(RESULTS, "startup", around | {"measured": found}, [], text)
    print(text)


if __name__ == "__main__":
    main()
