"""Starts the processes that are measured, and looks whether they agree."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.equality.shapes import UOBM
from bench.equality.steps import ALGORITHMS, EQUALITY, SEARCHED, Step, Task, kept
from bench.harness import DETAIL_CHARACTERS, launched

COMPARED = ("bf-eq", "remat-eq")  # which of which takes as long as the other there


@dataclass
class Ran:
    """One process, with what it told."""

    algorithms: tuple[str, ...]
    status: str
    """`ok`, `timeout`, `memory`, `failed`, or `skipped`."""
    steps: list[Step]
    detail: str = ""
    peak_mb: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data for the results file."""
        return asdict(self)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Ran:
        """From its JSON form."""
        return cls(**{**data, "algorithms": tuple(data["algorithms"]), "steps": [Step(**s) for s in data["steps"]]})

    @property
    def is_materialised(self) -> bool:
        """Whether it came to updates at all."""
        return any(step.what == "materialise" and step.ok for step in self.steps)


def run(task: Task) -> Ran:
    """One process, to its end or to its limits. Each step may take its time, a size twice that."""
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        usage_file, report = Path(place) / "usage.json", Path(place) / "report.jsonl"
        seconds = task.limit * (2 + 2 * (len(task.sizes) or 4)) * len(task.algorithms) + 60
        command = [sys.executable, "-m", "bench.equality.child", str(task), str(report)]
        said = launched(command, usage_file, seconds)
        ran = Ran(task.algorithms, "failed", kept(report), said[-DETAIL_CHARACTERS:])
        if usage_file.exists():
            usage = json.loads(usage_file.read_text(encoding="utf-8"))
            ran.peak_mb = usage["peak_mb"]
            given_up = {step.status for step in ran.steps} - {"ok", "begun"}
            if usage["timeout"]:
                ran.status = "timeout"
            elif usage["exit"] in (0, 3):
                ran.status = "memory" if "memory" in given_up else "timeout" if given_up else "ok"
            elif usage["exit"] == -9 or "MemoryError" in ran.detail:
                ran.status = "memory"
        if ran.status == "ok":
            ran.detail = ""
        return ran


def measure(task: Task, algorithms: Sequence[str]) -> Iterator[Ran]:
    """A shape by all algorithms, each in a process; on `uobm` also where two of them take the same time.

    What could not be materialised for one algorithm is not tried again for another that needs the same.
    """
    if task.shape == UOBM and set(COMPARED) <= set(algorithms):
        yield run(replace(task, algorithms=COMPARED, sizes=(), repeat=1))
    hopeless: set[str] = set()
    for algorithm in ALGORITHMS:
        if algorithm not in algorithms:
            continue
        if EQUALITY[algorithm] in hopeless:
            yield Ran((algorithm,), "skipped", [], "it could not be materialised before")
            continue
        ran = run(replace(task, algorithms=(algorithm,)))
        if not ran.is_materialised:
            hopeless.add(EQUALITY[algorithm])
        yield ran


def searched(steps: Sequence[Step]) -> dict[int, tuple[float, float]]:
    """CPU seconds of both algorithms by the number of facts deleted, averages of the samples that both have done."""
    cpu: dict[int, dict[str, list[float]]] = {}
    for step in steps:
        if step.what == "delete" and step.ok and step.sample < SEARCHED:
            cpu.setdefault(step.size, {}).setdefault(step.algorithm, []).append(step.cpu)
    found = {}
    for size, times in sorted(cpu.items()):
        ours, again = (times.get(name, []) for name in COMPARED)
        if both := min(len(ours), len(again)):
            found[size] = sum(ours[:both]) / both, sum(again[:both]) / both
    return found


def equilibrium(steps: Sequence[Step]) -> tuple[int, bool] | None:
    """How many facts are deleted where both algorithms take the same time; or, and then false, the most that was tried, where the first was faster.

    Between the two sizes around it, the ratio of the times is taken for a straight line.
    """
    ratios = [(size, ours / again) for size, (ours, again) in searched(steps).items()]
    if not ratios:
        return None
    for before, (size, ratio) in enumerate(ratios, start=-1):
        if ratio >= 1:
            if before < 0:
                return size, True
            less, below = ratios[before]
            return round(less + (size - less) * (1 - below) / (ratio - below)), True
    return ratios[-1][0], False


def disagreements(shape: str, all_ran: Sequence[Ran]) -> list[str]:
    """Numbers of facts that should be the same and are not. Times of wrong results are worth nothing."""
    found: dict[tuple[str, int, int], dict[int, list[str]]] = {}
    for ran in all_ran:
        for step in ran.steps:
            if step.ok:  # what is put back, is as it was
                key = ("delete", step.size, step.sample) if step.what == "delete" else ("all", 0, 0)
                found.setdefault(key, {}).setdefault(step.facts, []).append(step.algorithm)
    return [
        f"{shape}: after deleting {size:,} facts (sample {sample}): "
        + ", ".join(f"{count:,} facts by {' and '.join(dict.fromkeys(who))}" for count, who in counts.items())
        for (_, size, sample), counts in found.items()
        if len(counts) > 1
    ]
