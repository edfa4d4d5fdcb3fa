"""`evermat run`: read, materialise, write."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import evermat
from evermat.cli.ontology import report_left_out, report_skipped
from evermat.cli.options import LimitOptions
from evermat.cli.progress import showing_progress
from evermat.cli.signals import check_signals, say_when_stopped
from evermat.cli.watchdog import be_patient, limited
from evermat.core import (
    EvermatError,
    PhaseTimer,
    SavedPositions,
    Which,
    awaiting_reader,
    open_output,
    replace_output,
    reported,
    wrong_argument,
)
from evermat.runtime import (
    SparkOptions,
    announced_compilation,
    check_outputs,
    check_spark_outputs,
    spark_outputs,
    spark_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reached_version(state: Path) -> str:
    """Tells the newest version on the disk, of which its writer may not know yet; empty if there is none."""
    with suppress(EvermatError):
        return f"the state is at version {evermat.versions(state)[-1].number}"
    return ""


@dataclass(frozen=True)
class Saving:
    """The state directory in which all facts are saved, if there is one, and how."""

    state: Path | None
    keep: str | None
    positions: SavedPositions
    reached: str = ""  # the version that the state has before

    @staticmethod
    def of(state: Path | None, versions: str | None, *, keep: bool, reset: bool) -> Saving:
        """Checks the options before anything is computed."""
        if keep and reset:
            raise wrong_argument("positions of streams cannot be both kept and reset")
        if state is None and (versions is not None or keep or reset):
            raise wrong_argument("`--keep`, `--keep-positions` and `--reset-positions` need a state: `--state DIR`")
        positions: SavedPositions = "keep" if keep else "reset" if reset else "refuse"
        if state is not None:
            from evermat.runtime import check_save

            check_save(state, positions, versions)
        return Saving(state, versions, positions, "" if state is None else reached_version(state))

    def written(self) -> str:
        """The version that the state has now, if that is a new one."""
        reached = "" if self.state is None else reached_version(self.state)
        return "" if reached == self.reached else reached


def run_program(
    program: evermat.Program,
    spark: SparkOptions | None,
    timer: PhaseTimer,
    *,
    directory: Path | str,
    export: Path | None,
    export_facts: Which,
    representatives: bool,
    saving: Saving,
    stats: Path | None,
    limits: LimitOptions,
    rdf: Sequence[str],
    spent: float = 0.0,
    **options: Any,
) -> None:
    """Does the whole job: outputs go to a directory, triples, all facts and statistics to a place of their own if there is one.

    Nothing is written unless everything went well. A state is going to be updated: its derivations are counted. Of the limit of time
    some seconds are `spent` already. `options` are those of `evermat.Program.materialise`.
    """
    check_outputs(program.compiled, directory, spark=spark is not None)
    with ExitStack() as limiting, ExitStack() as stack:
        show = stack.enter_context(showing_progress())
        stack.enter_context(announced_compilation(say))

        def progress(text: str) -> None:
            check_signals()
            show(text)

        engine: str | SparkSession = "memory"
        writer: SparkSession | None = None
        if spark is not None:
            engine = stack.enter_context(started_spark(program.compiled.source.name, spark, timer, progress))
            options |= {"scratch": spark.scratch, "buckets": spark.buckets, "broadcast": spark.broadcast}
            be_patient()
            if spark_outputs(program.compiled, directory):
                writer = engine
        limiting.enter_context(limited(limits.limit_seconds, limits.memory, spent))
        if writer is not None:
            check_spark_outputs(program.compiled, directory, writer)
        m = program.materialise(
            engine=engine,
            rdf=rdf,
            counters="none" if saving.state is None else "both",
            progress=progress,
            timer=timer,
            **asdict(limits),
            **options,
        )
        if not m.on_cluster and writer is None:
            stack.close()  # Spark has done its part
        stack.callback(m.close)
        check_signals()
        for position, count in m.undefined():
            report_undefined(position, count, m.undefined_expressions(position))
        report_skipped(m.skipped)

        say_when_stopped(saving.written)

        def save() -> None:
            if saving.state is not None:
                m.save(saving.state, keep=saving.keep, positions=saving.positions)
            if writer is None:
                limiting.close()  # from here on all is complete

        def after_commit() -> None:
            limiting.close()
            say_when_stopped(lambda: " and ".join(filter(None, (saving.written(), "all output files are written"))))

        left_out = m.write_outputs(
            directory,
            spark=writer,
            export=export,
            facts=export_facts,
            representatives=representatives,
            before_commit=save,
            after_commit=after_commit,
        )
        for path, count in left_out.items():
            report_left_out(path, count)
        if stats is not None:
            write_stats(m.stats, stats)


@contextmanager
def started_spark(
    name: str, options: SparkOptions, timer: PhaseTimer, progress: Callable[[str], None]
) -> Iterator[SparkSession]:
    """A session for the block; what its start takes is added to the timer."""
    progress("starting Spark")
    with ExitStack() as stack:
        with timer.during("start"):
            session: AbstractContextManager[SparkSession] = spark_session(name, options, say)
            spark = stack.enter_context(session)
        yield spark


def say(text: str) -> None:
    """Prints a line for the user, beside results."""
    print(text, file=sys.stderr)


def report_undefined(position: str, count: int, expressions: Sequence[str] = ()) -> None:
    """Prints that one of some expressions had no value."""
    bindings = "1 binding was" if count == 1 else f"{count:,} bindings were"
    what = " or ".join(f"`{expression}`" for expression in expressions[:3]) or "something"
    say(f"warning: {position}: {bindings} dropped because {what} had no value")


def write_stats(stats: dict[str, Any], path: Path, rest: str = "all other outputs are complete") -> None:
    """Writes the statistics as one JSON object, whole or not at all; a device or pipe is filled, not replaced."""
    target = Path(os.path.realpath(path))
    special = target.exists() and not target.is_file()
    part = target if special else target.parent / f".{target.name}.part"
    try:
        with reported(path, rest), awaiting_reader() if special else nullcontext():
            with open_output(part, "wb") as file:
                file.write((json.dumps(stats, indent=2) + "\n").encode())
            if not special:
                replace_output(part, target)
    finally:
        if not special:
            with suppress(OSError):
                part.unlink(missing_ok=True)
