"""`evermat update` and `log`: commands over a state directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import evermat
from evermat.cli.ontology import report_skipped
from evermat.cli.options import LimitOptions
from evermat.cli.progress import showing_progress
from evermat.cli.run import reached_version, say, started_spark, write_stats
from evermat.cli.signals import check_signals, say_when_stopped
from evermat.cli.watchdog import be_patient, limited
from evermat.core import DataError, EvermatError, PhaseTimer, ResourceError, UpdateAlgorithm
from evermat.runtime import SparkOptions, announced_compilation


def update_state(
    state: Path,
    files: Sequence[Path],
    algorithm: UpdateAlgorithm,
    limits: LimitOptions,
    timer: PhaseTimer,
    changes_out: Path | None,
    stats: Path | None,
    spark: SparkOptions | None = None,
    base: str | None = None,
    keep: str | None = None,
    *,
    skip_malformed: bool = False,
) -> None:
    """Makes every file a version, or two of RDF that belong together."""
    waits = limits.limit_seconds
    with (
        limited(None, limits.memory, longest_wait=waits),
        announced_compilation(say),
        opened_state(state, timer, spark, keep) as m,
    ):
        with timer.during("read"):
            updates = m.update_files(files, algorithm, base=base, skip_malformed=skip_malformed, **asdict(limits))
        done: list[evermat.Change] = []
        before = reached_version(state)
        say_when_stopped(lambda: reached if (reached := reached_version(state)) != before else "")
        while True:
            check_signals()
            with _after_commit(f"version {m.version} is committed" if done else ""):
                change = next(updates, None)
            if change is None:
                break
            done.append(change)
            report_skipped(change.stats["skipped"])
            report_version(m, " ".join(change.stats["files"]), change)
        committed = f"version {m.version} is committed"
        if changes_out is not None:
            with _after_commit(committed), timer.during("write"):
                evermat.Change.combined(done).write(changes_out)
        if stats is not None:
            told = [change.stats for change in done]
            write_stats(told[0] if len(told) == 1 else {"updates": told}, stats, committed)


def report_version(m: evermat.Materialisation, name: str, change: evermat.Change) -> None:
    """Prints what a version changed."""
    inserted = "1 fact" if change.inserted.total == 1 else f"{change.inserted.total:,} facts"
    say(f"version {m.version}: {name}: {inserted} inserted, {change.deleted.total:,} deleted")


@contextmanager
def opened_state(
    state: Path, timer: PhaseTimer, spark: SparkOptions | None, keep: str | None = None
) -> Iterator[evermat.Materialisation]:
    """The state, for writing; on a cluster, if there are options for one."""
    with ExitStack() as stack:
        if spark is None:
            with timer.during("read"):
                opened = evermat.open(state, write=True, keep=keep)
        else:
            be_patient()
            show = stack.enter_context(showing_progress())
            session = stack.enter_context(started_spark(str(state), spark, timer, show))
            with timer.during("read"):
                opened = evermat.open(
                    state,
                    write=True,
                    keep=keep,
                    engine=session,
                    scratch=spark.scratch,
                    buckets=spark.buckets,
                    broadcast=spark.broadcast,
                )
        yield stack.enter_context(opened)


@contextmanager
def _after_commit(committed: str) -> Iterator[None]:
    """Has what fails in the block report the versions that are committed."""
    try:
        yield
    except (ResourceError, DataError) as error:
        raise with_help(error, committed) from None


def with_help(error: EvermatError, help_: str) -> EvermatError:
    """The error, whose problems say what is true of the state."""
    return type(error)(replace(problem, help=problem.help or help_) for problem in error.problems)


def show_log(state: Path) -> None:
    """Prints a line for every version."""
    head = ("version", "time", "algorithm", "inserted", "deleted", "facts", "seconds")
    rows = [head, *(_line(version) for version in evermat.versions(state))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    left = {1, 2}
    for row in rows:
        cells = [c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        print("  ".join(cells).rstrip())


def _line(version: evermat.Version) -> tuple[str, ...]:
    time = version.time.astimezone().isoformat(sep=" ", timespec="seconds")
    counts = (f"{n:,}" for n in (version.inserted, version.deleted, version.facts))
    return str(version.number), time, version.algorithm, *counts, f"{version.seconds:.3f}"
