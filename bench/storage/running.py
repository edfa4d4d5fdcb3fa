"""Starts the processes that are measured, and looks whether they agree."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.harness import DETAIL_CHARACTERS, launched
from bench.storage.shapes import Shape
from bench.storage.steps import SCHEMES, Step, Task, kept

ROUNDS = 10  # so many steps of a process may take all the time that a step may take


@dataclass
class Ran:
    """One process, with what it told."""

    shape: str
    protocol: str
    schemes: str
    status: str
    """`ok`, `timeout`, `memory`, `wrong` or `failed`."""
    steps: list[Step]
    detail: str = ""
    peak_mb: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data for the results file."""
        return asdict(self)

    @classmethod
    def of(cls, data: dict[str, Any]) -> Ran:
        """From its JSON form."""
        return cls(**{**data, "steps": [Step(**s) for s in data["steps"]]})


def run(task: Task) -> Ran:
    """One process, to its end or to its limits."""
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        usage_file, report = Path(place) / "usage.json", Path(place) / "report.jsonl"
        command = [sys.executable, "-m", "bench.storage.child", str(task), str(report)]
        said = launched(command, usage_file, task.limit * ROUNDS + 60)
        ran = Ran(task.shape, task.protocol, task.schemes, "failed", kept(report), said[-DETAIL_CHARACTERS:])
        if usage_file.exists():
            usage = json.loads(usage_file.read_text(encoding="utf-8"))
            ran.peak_mb = usage["peak_mb"]
            ran.status = status_of(ran, usage)
        if ran.status == "ok":
            ran.detail = ""
        return ran


def status_of(ran: Ran, usage: dict[str, Any]) -> str:
    """How a process ended, in one word."""
    told = {step.status for step in ran.steps} - {"ok", "begun"}
    if usage["timeout"]:
        return "timeout"
    if usage["exit"] in (0, 3):
        by_weight = (("wrong", "wrong"), ("memory", "memory"), ("time", "timeout"))
        return next((word for status, word in by_weight if status in told), "ok")
    return "memory" if usage["exit"] == -9 or "MemoryError" in ran.detail else "failed"


def measure(task: Task, shape: Shape) -> Iterator[Ran]:
    """With schemes and on plain tables, each in a process."""
    for schemes in SCHEMES if shape.has_plain else SCHEMES[:1]:
        yield run(replace(task, schemes=schemes))


def disagreements(all_ran: Sequence[Ran]) -> list[str]:
    """Numbers of facts, or answers, that should be the same and are not. Times of wrong results are worth nothing."""
    found: dict[tuple[object, ...], dict[tuple[int, int], list[str]]] = {}
    for ran in all_ran:
        for step in ran.steps:
            if step.ok:
                number = step.number if step.what in ("insert", "delete") else 0
                key = (ran.shape, ran.protocol, step.what, step.name, number)
                found.setdefault(key, {}).setdefault((step.facts, step.checksum), []).append(ran.schemes)
    return [
        f"{', '.join(str(part) for part in key if part != '')}: "
        + "; ".join(f"{facts:,} ({total:x}) by {' and '.join(dict.fromkeys(who))}" for (facts, total), who in results.items())
        for key, results in found.items()
        if len(results) > 1
    ]  # fmt: skip
