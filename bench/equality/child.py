"""The process that is measured: ``python -m bench.equality.child TASK REPORT``."""

from __future__ import annotations

import contextlib
import gc
import resource
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.attempts import attempt
from bench.equality.shapes import SHAPES
from bench.equality.steps import EQUALITY, REWRITE, SEARCHED, Step, Task, What, keep
from bench.equality.stored import Tables, facts_of
from evermat import Materialisation
from evermat.columns.kernels.warm_up import warm_up

LITTLE = 20.0  # seconds that materialising may take in all before it is repeated no more
BEGIN = 320_000  # deleted facts with which the search for the equilibrium begins, if there are so many
REFINED = 1  # further sizes that the search tries between the last two
SPARE = 1.3  # of the memory that may be used, after which the system says no: evermat itself looks only now and then


def drawn(facts: Tables, count: int, seed: int) -> Tables:
    """Facts at random from all relations alike."""
    total = sum(len(table) for table in facts.values())
    chosen = np.sort(np.random.default_rng((seed, count)).choice(total, count, replace=False))
    found: Tables = {}
    start = 0
    for name, table in facts.items():
        own = chosen[(chosen >= start) & (chosen < start + len(table))] - start
        start += len(table)
        if len(own):
            found[name] = table.take(own)
    return found


class Subject:
    """The shape's facts, materialised for one algorithm and updated by it again and again."""

    def __init__(self, task: Task, algorithm: str, report: Path) -> None:
        shape = SHAPES[task.shape]
        self.algorithm, self.task, self.report = algorithm, task, report
        self.explicit = facts_of(shape, small=task.small)
        self.rewriting = EQUALITY[algorithm] == REWRITE
        self.program = shape.program(EQUALITY[algorithm])
        self.m: Materialisation | None = None

    @property
    def most(self) -> int:
        """More facts than that are not deleted."""
        return sum(len(table) for table in self.explicit.values()) // 2

    def materialise(self) -> bool:
        """As often as it takes little time; whether it could be done."""
        taken = 0.0
        for sample in range(self.task.repeat):
            self.m = None
            step, m = self._step(
                Step("materialise", self.algorithm, sample=sample),
                partial(self.program.materialise, self.explicit, **self._limits),
            )
            self.m = m
            if m is None:
                return False
            step.more = {
                "explicit": m.stats["explicit"],
                "rules": sum(len(stratum.rules) for stratum in self.program.strata),
                "peak_mb": m.stats["peak_rss_mb"],
            }
            self._over(step)
            taken += step.wall
            if taken > LITTLE:
                break
        return True

    def round(self, size: int, sample: int) -> tuple[Step, Step | None]:
        """Deletes facts, and puts them back if that could be done."""
        chosen = drawn(self.explicit, size, sample)
        deleting = self._update("delete", size, sample, chosen)
        return deleting, self._update("insert", size, sample, chosen) if deleting.ok else None

    def _update(self, what: What, size: int, sample: int, chosen: Tables) -> Step:
        assert self.m is not None
        given: dict[str, Any] = {what: chosen, "algorithm": self.algorithm, **self._limits}
        step, change = self._step(Step(what, self.algorithm, size, sample), partial(self.m.update, **given))
        if change is not None:
            figures = ("overdeleted", "checked", "proved", "rederived", "deleted", "inserted", "rounds")
            step.more = {name: change.stats[name] for name in figures if name in change.stats}
            step.more["algorithms"] = sorted({stratum["algorithm"] for stratum in change.stats["strata"]})
            del change
            self._over(step)
        return step

    def _step(self, step: Step, work: Callable[[], Any]) -> tuple[Step, Any]:
        """Does some work and notes what it took; None instead of a result if it was given up."""
        keep(self.report, step)
        gc.collect()
        done = attempt(step, work)
        if done is None:
            keep(self.report, step)
        else:
            stats = done.stats
            step.reason_cpu, step.reason_wall = stats["cpu_seconds"]["reason"], stats["seconds"]["reason"]
            step.derivations = stats["derivations"]
        return step, done

    def _over(self, step: Step) -> None:
        """Counts what there is, which is no part of the work, and tells."""
        assert self.m is not None
        step.facts = sum(len(facts) for facts in self.m.values())
        if self.rewriting:
            step.representatives = sum(len(facts.representatives) for facts in self.m.values())
        step.status = "ok"
        keep(self.report, step)
        print(step.what, step.algorithm, step.size, f"{step.cpu:.3f} s CPU", step.facts, file=sys.stderr, flush=True)

    @property
    def _limits(self) -> dict[str, Any]:
        return {"limit_seconds": self.task.limit, "memory": int(self.task.memory * 1e9)}


def update_all(subject: Subject) -> None:
    """All sizes, each with a first sample that makes indexes, and as many others as there is time for."""
    for size in subject.task.sizes:
        if size > subject.most:
            continue
        left = subject.task.limit
        for sample in range(subject.task.samples + 1):
            deleting, inserting = subject.round(size, sample)
            if inserting is not None and not inserting.ok:
                return  # the facts are no longer those that there should be
            left -= deleting.wall + (inserting.wall if inserting is not None else left)
            if left < 0:
                break


def equilibrium(subjects: list[Subject]) -> None:
    """Deletions of twice as many facts each, until the first algorithm takes longer than the second; then some between the last two.

    Each algorithm has facts of its own, so that none finds indexes that the other has left, or has thrown away.
    """
    begin = min(BEGIN, subjects[0].most // 32)
    for subject in subjects:
        subject.round(begin, SEARCHED)  # makes indexes; a sample that does not count

    def is_slower(size: int) -> bool | None:
        """Whether the first takes longer, all samples together; None if one of them was given up."""
        taken = [0.0 for _ in subjects]
        for sample in range(SEARCHED):
            for i, subject in enumerate(subjects):
                deleting, inserting = subject.round(size, sample)
                if inserting is None or not inserting.ok:
                    return None
                taken[i] += deleting.cpu
        return taken[0] >= taken[1]

    low, high = 0, begin
    while not (slower := is_slower(high)):
        low, high = high, 2 * high
        if slower is None or high > subjects[0].most:
            return
    for _ in range(REFINED):
        middle = (low + high) // 2
        slower = is_slower(middle)
        if slower is None:
            return
        low, high = (low, middle) if slower else (middle, high)


def main() -> None:
    """Does the task. Exit code 3: something was given up."""
    task, report = Task.of(sys.argv[1]), Path(sys.argv[2])
    with contextlib.suppress(ValueError, OSError):  # not every system can limit memory
        most = int(SPARE * task.memory * 1e9)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warm_up()
    subjects = [Subject(task, algorithm, report) for algorithm in task.algorithms]
    if not all(subject.materialise() for subject in subjects):
        sys.exit(3)
    if task.sizes:
        for subject in subjects:
            update_all(subject)
    elif len(subjects) == 2:
        equilibrium(subjects)


if __name__ == "__main__":
    main()
