"""`evermat update`, `query`, `log` and `vacuum`: commands over a state directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import evermat
from evermat.api.materialisation import Materialisation
from evermat.cli.answer_writer import write_answer
from evermat.cli.block_pandas import allow_pandas
from evermat.cli.ontology import tell_skipped
from evermat.cli.progress import showing_progress
from evermat.cli.run import SparkOptions, announcing_compilation, spark_session, write_stats
from evermat.cli.signals import check_signals, say_when_stopped
from evermat.core import DataError, PhaseTimer, Problem, ResourceError
from evermat.engine.run import Limits
from evermat.io import FileChanges, RdfOptions, read_update, updates_of, write_changes
from evermat.runtime.change import Change, together
from evermat.runtime.persistence import ask_state
from evermat.store import Version


def update_state(
    state: Path,
    files: Sequence[Path],
    algorithm: str,
    limits: Limits,
    phases: PhaseTimer,
    changes_out: Path | None,
    stats: Path | None,
    spark: SparkOptions | None = None,
    base: str | None = None,
    *,
    skip_malformed: bool = False,
) -> None:
    """Makes every file a version, or two of RDF that belong together. All files are read before the first is applied, so that an error in one changes nothing."""
    with announcing_compilation(), opened_state(state, phases, spark) as m:
        with phases.during("read"):
            pairs = updates_of(files)
            skipped: dict[str, int] = {}
            updates = _read(pairs, m, RdfOptions(base=base, skip=skip_malformed), skipped)
        tell_skipped(skipped)
        done: list[Change] = []
        for pair, update in zip(pairs, updates, strict=True):
            with _after_commit(f"version {m.version} is committed" if done else ""):
                done.append(_apply(m, " ".join(map(str, pair)), update, algorithm, limits))
        committed = f"version {m.version} is committed"
        if changes_out is not None:
            with _after_commit(committed), phases.during("write"):
                write_changes(together(done), changes_out)
        if stats is not None:
            told = [change.stats for change in done]
            write_stats(told[0] if len(told) == 1 else {"updates": told}, stats, committed)


@contextmanager
def opened_state(state: Path, phases: PhaseTimer, spark: SparkOptions | None) -> Iterator[Materialisation]:
    """The state, for writing; on a cluster, if there are options for one."""
    with ExitStack() as stack:
        if spark is None:
            with phases.during("read"):
                opened = evermat.open(state, write=True)
        else:
            allow_pandas()
            show = stack.enter_context(showing_progress())
            session = stack.enter_context(spark_session(str(state), spark, phases, show))
            with phases.during("read"):
                opened = evermat.open(state, write=True, engine=session, scratch=spark.scratch)
        yield stack.enter_context(opened)


def _read(
    updates: Sequence[Sequence[Path]], m: Materialisation, options: RdfOptions, skipped: dict[str, int]
) -> list[FileChanges]:
    """The changes in all files; what is wrong with any of them is reported together."""
    found: list[FileChanges] = []
    problems: list[Problem] = []
    for files in updates:
        check_signals()  # reading may wait for long: a pipe, a terminal
        try:
            found.append(read_update(files, m.program, options, skipped))
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    return found


def _apply(m: Materialisation, name: str, update: FileChanges, algorithm: str, limits: Limits) -> Change:
    check_signals()
    change = m.update(
        update.insert,
        update.delete,
        algorithm,
        limit_rounds=limits.rounds,
        limit_facts=limits.facts,
        limit_seconds=limits.seconds,
        memory=limits.memory,
    )
    change.stats["version"] = m.version
    say_when_stopped(f"the state is at version {m.version}")
    print(
        f"version {m.version}: {name}: {change.inserted.total:,} facts inserted, {change.deleted.total:,} deleted",
        file=sys.stderr,
    )
    return change


@contextmanager
def _after_commit(committed: str) -> Iterator[None]:
    """What fails after the versions are committed says so."""
    try:
        yield
    except (ResourceError, DataError) as error:
        problems = [replace(problem, help=problem.help or committed) for problem in error.problems]
        raise type(error)(problems) from None


def query_state(state: Path, text: str, version: int | None, format_: str, *, representatives: bool) -> None:
    """Answers a query about a version."""
    with announcing_compilation():
        answer = ask_state(state, version, text, representatives=representatives)
    write_answer(answer, format_, sys.stdout.buffer)
    if answer.undefined:
        bindings = "1 binding was" if answer.undefined == 1 else f"{answer.undefined:,} bindings were"
        print(f"warning: <query>: {bindings} dropped because something had no value", file=sys.stderr)


def show_log(state: Path) -> None:
    """Prints a line for every version."""
    head = ("version", "time", "algorithm", "inserted", "deleted", "facts", "seconds")
    rows = [head, *(_line(version) for version in evermat.versions(state))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    left = {1, 2}
    for row in rows:
        cells = [c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        print("  ".join(cells).rstrip())


def _line(version: Version) -> tuple[str, ...]:
    time = version.time.astimezone().isoformat(sep=" ", timespec="seconds")
    counts = (f"{n:,}" for n in (version.inserted, version.deleted, version.facts))
    return str(version.number), time, version.algorithm, *counts, f"{version.seconds:.3f}"


def vacuum_state(state: Path, keep: int) -> None:
    """Forgets old versions."""
    files, size = evermat.vacuum(state, keep)
    print(f"{files:,} files with {size:,} bytes removed", file=sys.stderr)
