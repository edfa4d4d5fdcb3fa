"""The process that is measured: ``python -m bench.storage.child TASK REPORT``."""

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
import pyarrow as pa

import evermat
from bench.attempts import attempt
from bench.modular.data import Data
from bench.modular.runs import tables
from bench.storage.asking import Question, checksum, questions
from bench.storage.shapes import shapes
from bench.storage.steps import Step, Task, What, keep
from evermat import Materialisation
from evermat.columns.kernels.warm_up import warm_up
from evermat.core.memory import peak_bytes, resident_bytes

LITTLE = 20.0  # seconds that materialising, or queries of a kind, may take in all before they are repeated no more
SPARE = 1.3  # of the memory that may be used, after which the system says no: evermat itself looks only now and then
INSERTIONS, INSERTED, INSERTED_SMALL = 3, 1_000, 20


def forget_peak() -> None:
    """From now on the peak is that of what follows; where the system does not let us, it is that of the whole process."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def apart(facts: Data, relation: str, size: int) -> tuple[Data, list[Data]]:
    """Facts of a relation drawn at random, for each insertion some, and all facts without them."""
    rows = facts[relation]
    order = np.random.default_rng(0).permutation(len(rows))
    drawn = [{relation: rows[order[i * size : (i + 1) * size]]} for i in range(INSERTIONS)]
    return facts | {relation: rows[np.sort(order[INSERTIONS * size :])]}, drawn


class Subject:
    """The facts of a shape, to be materialised, updated and asked."""

    def __init__(self, task: Task, report: Path) -> None:
        self.task, self.report, self.shape = task, report, shapes(task.data)[task.shape]
        self.program = evermat.Program.parse(self.shape.program)
        self.facts = self.shape.facts(task.small)
        self.m: Materialisation | None = None
        self._before = 0

    def warm_up(self) -> None:
        """Does all there is to do with a few facts: what Python loads on first use is no part of what is measured."""
        few = tables({name: rows[:10] for name, rows in self.facts.items()})
        m = self.program.materialise(few, schemes=self.task.schemes)
        m.update(delete=few)
        m.update(insert=few)
        for relation in self.shape.asked:
            len(m.query(f"{relation}(x, y)"))
            sum(batch.num_rows for batch in m.query_batches(f"{relation}(x, y)"))

    def materialise(self, facts: Data, number: int = 0, expected: int | None = None) -> Step:
        """Anew, from nothing but the facts."""
        self.m = None
        given = tables(facts)
        gc.collect()
        self._before = resident_bytes()
        work = partial(self.program.materialise, given, schemes=self.task.schemes, **self._limits)
        step = Step("materialise", number=number)
        self.m = self._step(step, work)
        if self.m is not None:
            stats = self.m.stats
            step.reason_cpu = stats["cpu_seconds"]["reason"]
            step.more = {"explicit": stats["explicit"], "schemes": stats["schemes"]}
            self._over(step)
            if expected not in (None, len(self.m[self.shape.weighed])):
                step.status = "wrong"
                keep(self.report, step)
        return step

    def update(self, what: What, number: int, facts: dict[str, pa.Table]) -> Step:
        """Inserts or deletes facts."""
        assert self.m is not None
        given: dict[str, Any] = {what: facts, **self._limits}
        step = Step(what, number=number)
        change = self._step(step, partial(self.m.update, **given))
        if change is not None:
            step.reason_cpu = change.stats["cpu_seconds"]["reason"]
            step.more = {name: change.stats[name] for name in ("inserted", "deleted") if name in change.stats}
            step.more["algorithms"] = sorted({stratum["algorithm"] for stratum in change.stats["strata"]})
            del change
            self._over(step)
        return step

    def ask(self, relation: str, question: Question) -> None:
        """All queries of a kind, several times, if they take little time."""
        m = self.m
        assert m is not None

        def all_of(numbers: range) -> int:
            return sum(question.ask(m, number) for number in numbers)

        counted = range(question.first, question.first + question.count)
        known: tuple[int, int] | None = None
        taken = 0.0
        for number in range(self.task.repeat):
            step = Step("query", f"{relation}, {question.kind}", number)
            keep(self.report, step)
            if number == 0:
                all_of(range(question.first))
            rows = self._step(step, partial(all_of, counted))
            if rows is None:
                return
            taken += step.wall
            step.cpu, step.wall = step.cpu / question.count, step.wall / question.count
            known = known or checksum(question, m)
            step.facts, step.checksum = rows, known[1]
            step.status = "ok" if rows == known[0] else "wrong"
            self._tell(step)
            if taken > LITTLE:
                return

    def _step(self, step: Step, work: Callable[[], Any]) -> Any:
        """Does some work and notes what it took; None instead of a result if it was given up."""
        keep(self.report, step)
        if step.what != "query":  # which leaves nothing behind, and is far shorter than collecting
            gc.collect()
        forget_peak()
        done = attempt(step, work)
        step.peak = max(peak_bytes() - self._before, 0)
        if done is None:
            self._tell(step)
        return done

    def _over(self, step: Step) -> None:
        """Counts and weighs what there is, which is no part of the work, and tells."""
        assert self.m is not None
        gc.collect()
        step.grown = max(resident_bytes() - self._before, 0)
        step.peak = max(step.peak, step.grown)
        step.facts = sum(len(facts) for facts in self.m.values())
        step.stored = self.m.stats["stored_bytes"]
        step.status = "ok"
        self._tell(step)

    def _tell(self, step: Step) -> None:
        keep(self.report, step)
        words = (step.what, step.name, step.number, step.status, f"{step.cpu:.4f} s CPU", step.facts)
        print(self.task.shape, self.task.schemes, *words, file=sys.stderr, flush=True)

    @property
    def _limits(self) -> dict[str, Any]:
        return {"limit_seconds": self.task.limit, "memory": int(self.task.memory * 1e9)}


def load(subject: Subject) -> bool:
    """Materialises, as often as it takes little time; whether it could be done."""
    taken = 0.0
    for number in range(subject.task.repeat):
        step = subject.materialise(subject.facts, number, subject.shape.expected.get(subject.task.small))
        taken += step.wall
        if subject.m is None or taken > LITTLE:
            break
    return subject.m is not None


def change(subject: Subject) -> bool:
    """Materialises all facts but some, inserts these in three parts, and deletes them again."""
    size = INSERTED_SMALL if subject.task.small else INSERTED
    rest, drawn = apart(subject.facts, subject.shape.asked[subject.shape.weighed], size)
    subject.materialise(rest)
    if subject.m is None:
        return False
    parts = [tables(part) for part in drawn]
    rounds = [*(("insert", i) for i in range(INSERTIONS)), *(("delete", i) for i in reversed(range(INSERTIONS)))]
    return all(subject.update(what, i, parts[i]).ok for what, i in rounds)  # type: ignore[arg-type]


def ask(subject: Subject) -> bool:
    """Materialises and asks."""
    subject.materialise(subject.facts, expected=subject.shape.expected.get(subject.task.small))
    if subject.m is None:
        return False
    for relation, base in subject.shape.asked.items():
        for question in questions(relation, base, subject.facts[base]):
            subject.ask(relation, question)
    return True


DO = {"load": load, "updates": change, "queries": ask}


def main() -> None:
    """Does the task. Exit code 3: something was given up."""
    task, report = Task.of(sys.argv[1]), Path(sys.argv[2])
    with contextlib.suppress(ValueError, OSError):  # not every system can limit memory
        most = int(SPARE * task.memory * 1e9)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    warm_up()
    subject = Subject(task, report)
    subject.warm_up()
    if not DO[task.protocol](subject):
        sys.exit(3)


if __name__ == "__main__":
    main()
