"""The driver's side of jobs over buckets: one job computes any number of targets, and tells which files hold them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from evermat.columns import Batch, Dictionary
from evermat.core import EvermatError, Problem, ResourceError, allow_pandas, check_stop
from evermat.core import error_catalogue as errors
from evermat.spark.engine.tasks.derive import Derivation, DeriveTask, GivenFile, GroupTask, LoadTask
from evermat.spark.engine.tasks.merge import MergeTask, Target
from evermat.spark.engine.tasks.serialization import (
    Amounts,
    FactFile,
    Shape,
    buckets_of,
    by_bucket,
    to_arrow,
    write_file,
)
from evermat.spark.engine.tasks.worker import OUTCOME, SENT, Channel, Figures, SendTask, figures_of
from evermat.spark.jobs import failure, is_connect, named, run_watched
from evermat.spark.scratch import Scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Plans are small and always the same: nothing is to be gained from looking at them again while they run, and
# the tasks of a shuffle must be the buckets. A packet of facts is a row, and few of them make a batch.
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # What a task sends is the same facts at every attempt, but not the same bytes: that is not a reason to give a job up.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
}


@dataclass
class Job:
    """What is to be derived, where it goes, and what is wanted of it."""

    what: str
    targets: list[Target]
    channels: list[Channel] = field(default_factory=list)
    derivations: list[Derivation] = field(default_factory=list)
    given: list[GivenFile] = field(default_factory=list)
    tasks: int = 1
    first: SendTask | None = None  # what finds facts, if rules and files do not


@dataclass
class Found:
    """What there is of one target: files with its facts and with amounts, and how many facts there are."""

    facts: list[FactFile] = field(default_factory=list)
    amounts: list[FactFile] = field(default_factory=list)
    left: list[FactFile] = field(default_factory=list)  # facts from which more may follow
    rows: int = 0


class Stage(Protocol):
    """What tasks do with the batches that they are given."""

    def __call__(self, batches: Iterable[pa.RecordBatch], /) -> Iterator[pa.RecordBatch]: ...


class Cluster:
    """Runs jobs on the caller's Spark.

    Args:
        spark: the caller's session; jobs run in a session of our own beside it, with settings of our own.
        scratch: a folder that driver and executors share.
        buckets: how many parts facts are divided into.
        check: called ten times a second while a job runs; raises to stop it.
        progress: told how far a job has come.
    """

    def __init__(
        self,
        spark: SparkSession,
        scratch: Scratch,
        buckets: int,
        check: Callable[[], None] = check_stop,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        allow_pandas()
        self.session = spark.newSession()
        for name, value in _SETTINGS.items():
            self.session.conf.set(name, value)
        self.scratch, self.buckets = scratch, buckets
        self.check, self.progress = check, progress
        self.jobs = 0
        self._known: set[str] = set()  # paths of files that are referred to
        self._has_failed = False
        self.folder = scratch.folder("facts")

    def write(
        self, shape: Shape, facts: Batch, dictionary: Dictionary, amounts: Amounts | None = None
    ) -> Iterator[FactFile]:
        """Writes facts of the driver, each of which is there once, to files of their buckets; with amounts if there are any."""
        for bucket, places in by_bucket(buckets_of(facts, shape, self.buckets, dictionary)):
            own = None if amounts is None else amounts[places]
            table = to_arrow(np.ascontiguousarray(facts[:, places]), shape, dictionary, own)
            yield self.adopt(write_file(table, Path(self.folder), bucket))

    def run(self, job: Job, look: Callable[[], None]) -> tuple[list[Found], Figures]:
        """Runs a job: derive or load, shuffle, group and shuffle if there are aggregates, merge; `look` as for `execute`.

        Raises:
            ResourceError: Spark gave up, the scratch folder is full, or the driver does not see what executors wrote.
        """
        channels, targets = tuple(job.channels), tuple(job.targets)
        merge_task = MergeTask(targets, channels, str(self.folder), self.buckets, receives=bool(channels))
        stages: list[Stage] = [merge_task]
        if any(channel.groups is not None for channel in channels):
            stages.insert(0, GroupTask(channels, self.buckets))
        if job.first is not None:
            stages.insert(0, job.first)
        elif job.given:
            stages.insert(0, LoadTask(channels, self.buckets, job.tasks, tuple(job.given)))
        elif channels:
            stages.insert(0, DeriveTask(channels, self.buckets, job.tasks, tuple(job.derivations)))
        tasks = job.tasks if channels else self.buckets
        return self.gather(self.execute(job.what, tasks, stages, look), len(targets))

    def gather(self, rows: Iterable[Any], targets: int) -> tuple[list[Found], Figures]:
        """What tasks have told of so many targets."""
        found = [Found() for _ in range(targets)]
        figures = Figures()
        for row in rows:
            if row["what"] == "figures":
                figures.add(figures_of(row["payload"]))
                continue
            target = found[row["target"]]
            if row["what"] == "facts":
                target.rows += row["rows"]
            if row["path"]:
                file = self.adopt(FactFile(row["path"], row["rows"], row["bucket"]))
                {"facts": target.facts, "amounts": target.amounts, "left": target.left}[row["what"]].append(file)
        return found, figures

    def execute(
        self, what: str, tasks: int, stages: Sequence[Stage], look: Callable[[], None] = lambda: None
    ) -> list[Any]:
        """Runs stages one after the other, with a shuffle to the buckets in between; what the last one tells.

        `look` is called meanwhile, again and again, and raises to stop it: limits and signals hold for the caller.
        """

        def check() -> None:
            self.check()
            look()

        self.jobs += 1
        if self._has_failed:  # cancelled tasks may have gone on for a while
            self._sweep()
        frame = self.session.range(0, tasks, 1, tasks)
        for stage in stages[:-1]:
            frame = frame.mapInArrow(stage.__call__, SENT).repartitionById(self.buckets, "bucket")
        frame = frame.mapInArrow(stages[-1].__call__, OUTCOME)
        try:
            with named(self.session, what):
                return run_watched(self.session, frame.collect, progress=self.progress, check=check)
        except BaseException as error:
            self._has_failed = True
            self._sweep()
            if isinstance(error, EvermatError) or not isinstance(error, Exception):
                raise
            raise failure(error, what, self.scratch.path) from error

    def close(self) -> None:
        """Lets go of the session. Over Connect its client would hold the end of the process up, if the server is gone by then."""
        if is_connect(self.session):
            for end in (self.session.client.release_session, self.session.client.close):
                with suppress(Exception):  # the server may be gone already
                    end()

    def _sweep(self) -> None:
        """Removes files that the driver does not know: tasks of a job that failed have left them."""
        with suppress(OSError):  # the folder may be what failed
            for path in self.folder.iterdir():
                if str(path) not in self._known:
                    _remove(str(path), self._known)

    def adopt(self, file: FactFile) -> FactFile:
        """A file that a task has written; it is removed when nothing refers to it any more."""
        try:
            Path(file.path).stat()
        except OSError as error:
            raise ResourceError(Problem(errors.SCRATCH_NOT_SHARED, {"path": self.scratch.path})) from error
        self._known.add(file.path)
        weakref.finalize(file, _remove, file.path, self._known)
        return file


def _remove(path: str, known: set[str]) -> None:
    known.discard(path)
    with suppress(OSError):
        Path(path).unlink()


def total_rows(files: Sequence[FactFile]) -> int:
    """How many facts are in some files."""
    return sum(file.rows for file in files)


def default_buckets(spark: SparkSession) -> int:
    """As many buckets as keep all cores busy, without giving each much to start up for."""
    if is_connect(spark):
        return 4
    return max(2, min(2 * int(spark.sparkContext.defaultParallelism), 1024))
