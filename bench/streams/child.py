"""The process that is measured: ``python -m bench.streams.child TASK REPORT``."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import evermat
from bench.attempts import attempt
from bench.storage.steps import Step, keep
from bench.streams import data, paper
from bench.streams.published import PHASES
from bench.streams.steps import (
    ALONE,
    FOLLOWED,
    FRAME,
    MARKING,
    MEMORY,
    REFERENCE,
    SIZES,
    SMALL_SIZES,
    STATE,
    TOGETHER,
    Case,
    Task,
    summary,
)
from evermat import Materialisation
from evermat.columns.kernels.warm_up import warm_up
from evermat.core.error_catalogue import LIMIT_REACHED
from evermat.core.errors import LimitError, Problem


class Telling:
    """The report of a process."""

    def __init__(self, task: Task, report: Path) -> None:
        self.task, self._report = task, report

    def step(self, name: str, number: int, work: Callable[[Step], Any]) -> Step:
        """Does some work, which notes what it finds."""
        step = Step("stream", name, number)  # type: ignore[arg-type]
        keep(self._report, step)
        if not self.task.small:  # short as the step is, this would be longer
            gc.collect()
        if attempt(step, partial(work, step)) is not None:
            step.status = step.status if step.status == "wrong" else "ok"
            step.cpu = step.more.pop("cpu", step.cpu)
            step.wall = step.more.pop("wall", step.wall)
        keep(self._report, step)
        words = (self.task.section, self.task.subject, name, number, step.status, f"{step.cpu:.4f} s CPU")
        print(*words, file=sys.stderr, flush=True)
        return step


class Watch:
    """Ends a step that takes too long, between updates."""

    def __init__(self, limit: float) -> None:
        self._cpu, self._wall, self._limit = time.process_time(), time.perf_counter(), limit

    def check(self) -> None:
        if time.perf_counter() - self._wall > self._limit:
            self.give_up()

    def give_up(self) -> None:
        raise LimitError(Problem(LIMIT_REACHED, {"what": "seconds", "limit": f"{self._limit:g}"}))

    def stop(self, step: Step) -> None:
        """What was timed is over; what comes now only looks at it."""
        step.more["cpu"], step.more["wall"] = time.process_time() - self._cpu, time.perf_counter() - self._wall


# --- streams of the paper: trans, seq, map -----------------------------------------------------------------


SHORT = 8  # updates of a small size


def stream_of(task: Task) -> data.Stream:
    if task.section == "map":
        updates = int(task.subject)
        return data.drive(SHORT if task.small else updates, data.TRACKS[updates])
    return data.edges(task.section, int(task.subject), task.data, SHORT if task.small else data.UPDATES)


def counted(tell: Telling) -> bool:
    """Counts as the paper does, and by ourselves; then takes the time, with marking and without it in turns."""
    task, stream = tell.task, stream_of(tell.task)
    expected = stream.expected or facts_after(stream)
    ways = [tell.step(REFERENCE + way, 0, partial(by_paper, stream, way, expected)).ok for way in paper.WAYS]
    program = evermat.Program.parse(stream.program)
    done = partial(by_us, program, stream, task)
    # The first time everything is looked at, and whatever is made on first use is made.
    looked = [tell.step(name, 0, partial(done, on, expected)).ok for name, on in MARKING.items()]
    return all([*ways, *looked]) and all(
        tell.step(name, number, partial(done, on, None)).ok
        for number in range(1, task.repeat + 1)
        for name, on in MARKING.items()
    )


def references(facts: data.Facts) -> list[paper.Fact]:
    return [(name, *row) for name, rows in facts.items() for row in rows]


def facts_after(stream: data.Stream) -> list[int]:
    """How many derived facts there are after each update, by the paper's algorithm without marking."""
    step = Step("stream")  # type: ignore[arg-type]
    by_paper(stream, paper.OFF, None, step)
    return step.more["facts"]


def by_paper(stream: data.Stream, way: str, expected: list[int] | None, step: Step) -> Step:
    """The paper's algorithm: what it counts."""
    reference = paper.Stream(paper.rules_of(stream.rules), way)
    counts, facts = [], []
    for number, change in enumerate(stream.changes):
        # The first update is done before there is another.
        ahead = stream.changes[number + 1].delete if 0 < number < len(stream.changes) - 1 else {}
        counts.append(reference.update(references(change.delete), references(change.insert), references(ahead)))
        facts.append(sum(fact[0] in stream.derived for fact in reference.i.facts))
    step.facts, step.more["facts"] = facts[-1], facts
    step.more["applications"] = [{phase: asdict(count)[phase] for phase in PHASES} for count in counts]
    step.more["marks"] = {kind: sum(asdict(count)[kind] for count in counts) for kind in ("explicit", "implicit")}
    compare(step, facts, expected)
    return step


def by_us(
    program: evermat.Program, stream: data.Stream, task: Task, marking: bool, expected: list[int] | None, step: Step
) -> Step:
    """`Materialisation.stream`; what it counts and, if numbers are expected, whether it has them after each update."""
    step.more |= {"source": stream.source, "share": data.share_inserted_before(stream.changes)}
    m = program.materialise()
    first, *rest = [{"insert": change.insert, "delete": change.delete} for change in stream.changes]
    facts, stats = [], []
    watch = Watch(task.limit)
    for change in changes_of(m, [first], rest, algorithm=task.algorithm, marking=marking, limit_seconds=task.limit):
        stats.append(change.stats)
        if expected is not None:
            facts.append(sum(len(m[name]) for name in stream.derived))
        watch.check()
    watch.stop(step)
    step.facts = sum(len(m[name]) for name in stream.derived)
    step.more["applications"] = [{phase: one["applications"][phase] for phase in PHASES} for one in stats]
    marks = [one["marking"] for one in stats if marking]
    step.more["marks"] = {kind: sum(mark[kind] for mark in marks) for kind in ("explicit", "implicit")}
    step.more["reasons"] = sorted({mark["reason"] for mark in marks} - {""})
    compare(step, facts, expected)
    return step


def changes_of(m: Materialisation, *parts: Sequence[Any], **options: Any) -> Iterator[Any]:
    """What comes of updates whose parts are there one after the other."""
    for part in parts:
        yield from m.stream(part, **options)


def compare(step: Step, found: Sequence[int], expected: Sequence[int] | None) -> None:
    """A result with other facts than there should be is wrong, from some update on."""
    wrong = [i for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1]] if expected else []
    if wrong:
        step.status = "wrong"
        step.more["wrong"] = f"update {wrong[0] + 1}: {found[wrong[0]]} facts, not {expected[wrong[0]]}"  # type: ignore[index]


# --- shares ------------------------------------------------------------------------------------------------

SOME, FEWER = 12, 4
MANY = 100_000  # facts that a case derives and takes back in an update, from which on it has fewer updates


def shares(tell: Telling) -> bool:
    """A stream with marking and without it, in turns. The first time of each, all facts are looked at."""
    task, case = tell.task, Case.of(tell.task.subject)
    fewer = case.program == data.GRANTS and case.size * data.RESOURCES > MANY
    scale = SMALL_SCALE if task.small else 1.0
    stream = data.shared(case.program, case.size, case.share, FEWER if fewer else SOME, scale)
    program = evermat.Program.parse(stream.program)
    afresh = facts_of(program.materialise(stream.after))
    return all(
        tell.step(name, number, partial(going_soon, program, stream, task, on, None if number else afresh)).ok
        for number in range(task.repeat + 1)
        for name, on in MARKING.items()
    )


def facts_of(m: Materialisation) -> dict[str, set[tuple[Any, ...]]]:
    return {name: set(facts) for name, facts in m.items()}


def going_soon(
    program: evermat.Program,
    stream: data.Shared,
    task: Task,
    marking: bool,
    afresh: dict[str, set[tuple[Any, ...]]] | None,
    step: Step,
) -> Step:
    """`Materialisation.stream` over facts that are there; what it counts and, if facts are told, whether it has them in the end."""
    m = program.materialise(stream.facts)
    updates = [{"insert": change.insert, "delete": change.delete} for change in stream.changes]
    watch = Watch(task.limit)
    stats = []
    for change in m.stream(updates, algorithm=task.algorithm, marking=marking, limit_seconds=task.limit):
        stats.append(change.stats)
        watch.check()
    watch.stop(step)
    step.facts = sum(len(facts) for _, facts in m.items())
    step.more["applications"] = [{phase: one["applications"][phase] for phase in PHASES} for one in stats]
    if afresh is not None:
        found = facts_of(m)
        wrong = [
            f"{name}: {len(found[name] ^ rows)} facts differ" for name, rows in afresh.items() if found[name] != rows
        ]
        if wrong:
            step.status, step.more["wrong"] = "wrong", "; ".join(wrong)
    return step


# --- policies: latency, structured, arrival ----------------------------------------------------------------

SIZE, UPDATES, FEW, FIRST = 100, 400, 12, 5
SMALL_SCALE = 0.01
LOADS = (0.25, 0.5, 0.8, 1.2, 2.0, 4.0)  # times what can be done when updates follow one another
SMALL_LOADS = (0.5, 2.0)


class Subject:
    """A policy that is materialised, and changes."""

    def __init__(self, name: str, task: Task) -> None:
        self.task, self.policy = task, data.POLICIES[name](SMALL_SCALE if task.small else 1.0)
        self.churn = data.Churn(self.policy)
        self.program = evermat.Program.parse(self.policy.program)
        self.m = self._materialise()

    def _materialise(self) -> Materialisation:
        there = self.churn.there
        return self.program.materialise({name: self.policy.named(name, rows) for name, rows in there.items()})

    def updates(self, count: int, size: int = SIZE) -> list[dict[str, data.Facts]]:
        """The next updates."""
        taken = [self.churn.take(size) for _ in range(count)]
        return [{"insert": change.insert, "delete": change.delete} for change in taken]

    def check(self, step: Step) -> None:
        """Compares with what is derived afresh, which is no part of what is measured."""
        afresh = {name: len(facts) for name, facts in self._materialise().items()}
        found = {name: len(facts) for name, facts in self.m.items()}
        step.facts = sum(found.values())
        if found != afresh:
            step.status, step.more["wrong"] = "wrong", f"{found}, not {afresh}"


def given(updates: Iterable[dict[str, data.Facts]]) -> int:
    """Facts of updates."""
    return sum(len(rows) for update in updates for facts in update.values() for rows in facts.values())


def in_turn(subject: Subject, updates: list[dict[str, data.Facts]], step: Step) -> Step:
    """Updates that are all there: how long each takes."""
    latencies: list[float] = []
    watch = Watch(subject.task.limit)
    last = begun = time.perf_counter()
    for _ in subject.m.stream(updates, limit_seconds=subject.task.limit):
        now = time.perf_counter()
        latencies.append(now - last)
        last = now
        watch.check()
    watch.stop(step)
    step.more |= summary(latencies, given(updates), last - begun)
    subject.check(step)
    return step


def latency(tell: Telling) -> bool:
    """Updates of a policy in memory, and with a state directory."""
    count = FEW if tell.task.small else UPDATES
    subject = Subject(tell.task.subject, tell.task)
    for place in (MEMORY, STATE):
        folder = tempfile.TemporaryDirectory(prefix="bench-") if place == STATE else nullcontext("")
        with folder as path:
            if path:
                subject.m.save(Path(path) / "state")
            list(subject.m.stream(subject.updates(FIRST)))  # whatever is made on first use is made
            done = tell.step(place, 0, partial(in_turn, subject, subject.updates(count))).ok
            subject.m.close()
        if not done:
            return False
    return True


def arrival(tell: Telling) -> bool:
    """Updates of all sizes one after the other; and of one size at several rates, one by one and coalesced."""
    task = tell.task
    subject = Subject(task.subject, task)
    usual = 0.0
    for size in SMALL_SIZES if task.small else SIZES:
        count = FEW if task.small else max(min(UPDATES, 200_000 // size), 40)
        list(subject.m.stream(subject.updates(FIRST, size)))
        updates = subject.updates(count, size)
        step = tell.step(f"size {size}", size, partial(in_turn, subject, updates))
        if not step.ok:
            return False
        if size == SIZE:
            usual = step.more["updates_per_second"]
    for load in SMALL_LOADS if task.small else LOADS:
        for name, coalesce in ((ALONE, False), (TOGETHER, True)):
            updates = subject.updates(FEW if task.small else UPDATES)
            work = partial(at_rate, subject, updates, load * usual, coalesce)
            if not tell.step(f"{name}, load {load:g}", 0, work).ok:
                return False
    return True


def paced(updates: Sequence[Any], rate: float, due: list[float]) -> Iterator[Any]:
    """Updates, each when it is due: so many in a second. One that is taken late was due all the same."""
    begun = time.perf_counter()
    for number, update in enumerate(updates):
        due.append(begun + number / rate)
        time.sleep(max(due[-1] - time.perf_counter(), 0))
        yield update


def at_rate(subject: Subject, updates: list[dict[str, data.Facts]], rate: float, coalesce: bool, step: Step) -> Step:
    """Updates that arrive: how long after it was due each is done."""
    due: list[float] = []
    latencies: list[float] = []
    changes = 0
    watch = Watch(subject.task.limit)
    begun = time.perf_counter()
    for change in subject.m.stream(paced(updates, rate, due), coalesce=coalesce, limit_seconds=subject.task.limit):
        now = time.perf_counter()
        latencies += [now - when for when in due[len(latencies) : len(latencies) + change.stats["updates"]]]
        changes += 1
        watch.check()
    watch.stop(step)
    step.more |= summary(latencies, given(updates), time.perf_counter() - begun)
    step.more |= {"rate": rate, "changes": changes}
    subject.check(step)
    return step


# --- Structured Streaming ----------------------------------------------------------------------------------

BATCHES, FEW_BATCHES = 60, 4


def structured(tell: Telling) -> bool:
    """Updates as files: a query of Spark's reads rows of Parquet, or hands files over. Each file is a batch."""
    from evermat.spark.launch.session import session

    count = FEW_BATCHES if tell.task.small else BATCHES
    conf = {"spark.sql.streaming.numRecentProgressUpdates": str(FIRST + count + 10)}
    with session(master="local[2]", memory=2 << 30, conf=conf, name="bench") as spark:
        return all(by_batches(tell, spark, kind, place, count).ok for kind in FOLLOWED for place in (MEMORY, STATE))


def by_batches(tell: Telling, spark: Any, kind: str, place: str, count: int) -> Step:
    """One stream, from its beginning to its end."""
    subject = Subject(tell.task.subject, tell.task)
    with tempfile.TemporaryDirectory(prefix="bench-") as path:
        folder = Path(path)
        if place == STATE:
            subject.m.save(folder / "state")
        updates = subject.updates(FIRST + count)
        write_changes(updates, folder / "changes")
        step = tell.step(f"{kind}, {place}", 0, partial(followed, subject, spark, kind, folder, updates))
        subject.m.close()
    return step


def write_changes(updates: Sequence[dict[str, data.Facts]], folder: Path) -> None:
    """A file of changes for each update, of any relations. Spark takes the oldest first."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    for number, update in enumerate(updates):
        rows = [
            {"op": sign, "relation": relation, "values": list(row)}
            for sign, facts in (("+", update["insert"]), ("-", update["delete"]))
            for relation, all_rows in facts.items()
            for row in all_rows
        ]
        file = folder / f"{number:06d}.parquet"
        parquet.write_table(pa.Table.from_pylist(rows), file)
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))


def followed(
    subject: Subject, spark: Any, kind: str, folder: Path, updates: list[dict[str, data.Facts]], step: Step
) -> Step:
    """The batches of a query: how long each takes, and how much of that we do ourselves. The first ones do not count."""
    how = {"checkpoint": folder / "checkpoint", "available_now": True}
    changes, watch = folder / "changes", Watch(subject.task.limit)
    if kind == FRAME:
        reader = spark.readStream.schema("op string, relation string, values array<string>")
        frame = reader.option("maxFilesPerTrigger", 1).parquet(str(changes))
        query = subject.m.follow(frame, **how)
    else:
        query = subject.m.follow_files(spark, changes, files_per_batch=1, **how)
    if not query.awaitTermination(int(subject.task.limit)):
        query.stop()
        watch.give_up()
    watch.stop(step)
    batches = [progress["durationMs"] for progress in query.recentProgress if progress["numInputRows"]][FIRST:]
    latencies = [batch["triggerExecution"] / 1000 for batch in batches]
    step.more |= summary(latencies, given(updates[FIRST:]), sum(latencies))
    step.more["update_p50"] = sorted(batch["addBatch"] for batch in batches)[len(batches) // 2] / 1000
    subject.check(step)
    return step


DO = {
    "trans": counted,
    "seq": counted,
    "map": counted,
    "shares": shares,
    "latency": latency,
    "structured": structured,
    "arrival": arrival,
}


def main() -> None:
    """Does the task. Exit code 3: something was given up, or was wrong."""
    warm_up()
    task = Task.of(sys.argv[1])
    if not DO[task.section](Telling(task, Path(sys.argv[2]))):
        sys.exit(3)


if __name__ == "__main__":
    main()
