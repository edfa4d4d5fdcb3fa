"""Starts the processes that are measured."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from bench.harness import DETAIL_CHARACTERS, launched
from bench.storage.running import status_of
from bench.storage.steps import Step, kept
from bench.streams import data
from bench.streams.steps import OFF, ON, SHARED_BY, SHARES, SIZES, SMALL_SIZES, Case, Task

ROUNDS = 10  # so many steps of a process may take all the time that a step may take


@dataclass
class Ran:
    """One process, with what it told."""

    section: str
    subject: str
    algorithm: str
    status: str
    """`ok`, `timeout`, `memory`, `wrong` or `failed`."""
    steps: list[Step]
    detail: str = ""
    peak_mb: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data for the results file."""
        return asdict(self)

    @classmethod
    def of(cls, told: dict[str, Any]) -> Ran:
        """From its JSON form."""
        return cls(**{**told, "steps": [Step(**s) for s in told["steps"]]})

    def named(self, name: str) -> list[Step]:
        """The steps of a name that could be done."""
        return [step for step in self.steps if step.ok and step.name == name]

    @property
    def first(self) -> dict[str, Step]:
        """What was counted, by name."""
        return {step.name: step for step in reversed(self.steps) if step.ok}


def run(task: Task) -> Ran:
    """One process, to its end or to its limits."""
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        usage_file, report = Path(place) / "usage.json", Path(place) / "report.jsonl"
        command = [sys.executable, "-m", "bench.streams.child", str(task), str(report)]
        said = launched(command, usage_file, task.limit * ROUNDS + 60)
        ran = Ran(task.section, task.subject, task.algorithm, "failed", kept(report), said[-DETAIL_CHARACTERS:])
        if usage_file.exists():
            usage = json.loads(usage_file.read_text(encoding="utf-8"))
            ran.peak_mb = usage["peak_mb"]
            ran.status = status_of(ran, usage)  # type: ignore[arg-type]
        if ran.status == "ok":
            ran.detail = ""
        return ran


def tasks(task: Task, algorithms: Sequence[str], sizes: Sequence[int]) -> Iterator[Task]:
    """The processes of a section."""
    if task.section in (data.TRANS, data.SEQ, "map"):
        subjects = list(data.TRACKS) if task.section == "map" else sizes
        for subject in subjects[:1] if task.section == "map" and task.small else subjects:
            for algorithm in algorithms:
                yield replace(task, subject=str(subject), algorithm=algorithm)
    elif task.section == "shares":
        all_cases = product(data.SHARED, SMALL_SIZES if task.small else SIZES, SHARES)
        for case, algorithm in product(all_cases, SHARED_BY):
            yield replace(task, subject=str(Case(*case)), algorithm=algorithm)
    elif task.section in ("structured", "arrival"):
        yield replace(task, subject=data.NESTED)
    else:
        for subject in data.POLICIES:
            yield replace(task, subject=subject)


def dearer(ran: Ran) -> list[int]:
    """The updates for which more rules are applied with marking than without it. There must be none."""
    counts = [
        [sum(one.values()) for one in ran.first[name].more["applications"]] for name in (OFF, ON) if name in ran.first
    ]
    return (
        [number for number, (off, on) in enumerate(zip(*counts, strict=True), 1) if on > off]
        if len(counts) == 2
        else []
    )


def mistakes(all_ran: Sequence[Ran]) -> list[str]:
    """What must not be, in words."""
    found = [
        f"{ran.section} {ran.subject}, {step.name}: {step.more.get('wrong', '')}"
        for ran in all_ran
        for step in ran.steps
        if step.status == "wrong"
    ]
    found += [
        f"{ran.section} {ran.subject}, {ran.algorithm}: more rules are applied with marking in the updates {', '.join(map(str, more))}"
        for ran in all_ran
        if (more := dearer(ran))
    ]
    return found
