"""The driver's side of jobs over buckets: one job computes any number of targets, and reports their files.

Several threads may run jobs at once. The files of a job are in a folder of their own: if it fails, the folder is deleted, and with it what tasks
wrote of which the driver has no report.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import numpy as np
import pyarrow as pa

from evermat.columns import Batch, Dictionary
from evermat.core import Problem, Process, ResourceError, allow_pandas, check_stop, this_process
from evermat.core import error_catalogue as errors
from evermat.spark.engine.bucket_shuffle import to_buckets
from evermat.spark.engine.frame_pins import FramePins, release_all
from evermat.spark.engine.resources import TaskBudget, task_memory
from evermat.spark.engine.tasks import merge
from evermat.spark.engine.tasks.derive import Derivation, DeriveTask, GroupTask, InputFile, LoadTask
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
from evermat.spark.engine.tasks.task_table import MOST_CACHED
from evermat.spark.engine.tasks.worker import OUTCOME, SENT, Channel, Figures, SendTask, figures_of
from evermat.spark.jobs import is_connect, run_named
from evermat.spark.new_session import new_session
from evermat.spark.scratch import Scratch
from evermat.spark.scratch_files import is_seen, make_folder, remove_files, remove_folder
from evermat.store import Location, location_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Plans are small and always the same: adaptive execution gains nothing, and the tasks of a shuffle must be the buckets.
# A packet of facts is a row, and few of them make a batch.
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A task sends the same facts at every attempt, but not the same bytes: that is not a reason to fail a job.
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
}


@dataclass
class Job:
    """Derivations or files of facts, the channels that they are sent to, and the wanted targets."""

    what: str
    targets: list[Target]
    channels: list[Channel] = field(default_factory=list)
    derivations: list[Derivation] = field(default_factory=list)
    inputs: list[InputFile] = field(default_factory=list)
    tasks: int = 1
    first: SendTask | None = None  # produces the facts, if neither rules nor files do


@dataclass
class Found:
    """The result of one target: files with its facts and with amounts, and the number of facts."""

    facts: list[FactFile] = field(default_factory=list)
    amounts: list[FactFile] = field(default_factory=list)
    left: list[FactFile] = field(default_factory=list)  # facts whose consequences are not derived yet
    rows: int = 0


class Stage(Protocol):
    """The work of a task on its batches."""

    def __call__(self, batches: Iterable[pa.RecordBatch], /) -> Iterator[pa.RecordBatch]: ...


class Cluster:
    """Runs jobs on the caller's Spark.

    Args:
        spark: the caller's session; jobs run in another session, with other settings.
        scratch: a folder that driver and executors share.
        buckets: the number of parts that facts are divided into.
        check: called ten times a second while a job runs; raises to stop it.
        progress: called with the number of finished tasks.
        broadcast: how many facts of a relation each task may read whole; None for what suits its memory.

    Attributes:
        budget: How many facts a task holds.
        session: The session in which jobs run.
        caller_session: The caller's.
    """

    def __init__(
        self,
        spark: SparkSession,
        scratch: Scratch,
        buckets: int,
        check: Callable[[], None] = check_stop,
        progress: Callable[[str], None] | None = None,
        broadcast: int | None = None,
    ) -> None:
        self.session, self.caller_session = self._own_session(spark), spark
        self.budget = TaskBudget(self._task_memory(spark), broadcast)
        self.scratch, self.buckets = scratch, buckets
        self.check, self.progress = check, progress
        self.jobs = 0
        self._counting = threading.Lock()
        self._unneeded: deque[Location] = deque()  # objects that nothing refers to, which are deleted together
        self._failed: set[Location] = set()  # folders of failed jobs, whose cancelled tasks may have run on for a while
        self.folder = scratch.folder("facts")
        self.frame_pins = FramePins()
        release_all()

    def _own_session(self, spark: SparkSession) -> SparkSession:
        allow_pandas()
        session = new_session(spark)
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        return session

    def _task_memory(self, spark: SparkSession) -> int | None:
        return task_memory(spark)

    @contextmanager
    def results(self) -> Iterator[str]:
        """A new folder for the files of a job, which are adopted within the block; if it raises an error they are deleted.

        Raises:
            ResourceError: it cannot be made.
        """
        self.frame_pins.release()
        for left in list(self._failed):
            self._discard(left)
        self._delete_unneeded()
        folder = self.folder / f"job-{uuid4().hex[:12]}"
        with self.scratch.writing():
            make_folder(folder)
        try:
            yield str(folder)
        except BaseException:
            self._discard(folder)
            raise
        if isinstance(folder, Path):
            with suppress(OSError):  # it has files
                folder.rmdir()

    def _discard(self, folder: Location) -> None:
        """Deletes the folder of a failed job; later again, if a task has written to it meanwhile."""
        if remove_folder(folder):
            self._failed.discard(folder)
        else:
            self._failed.add(folder)

    def _delete_unneeded(self) -> None:
        files = []
        with suppress(IndexError):  # others may add some meanwhile
            while True:
                files.append(self._unneeded.popleft())
        remove_files(files)

    def count_job(self) -> None:
        with self._counting:
            self.jobs += 1

    def write(
        self, shape: Shape, facts: Batch, dictionary: Dictionary, amounts: Amounts | None = None
    ) -> Iterator[FactFile]:
        """Writes distinct facts of the driver, with amounts if there are any, to files of their buckets."""
        for bucket, columns in by_bucket(buckets_of(facts, shape, self.buckets, dictionary)):
            own = None if amounts is None else amounts[columns]
            table = to_arrow(np.ascontiguousarray(facts[:, columns]), shape, dictionary, own)
            yield self.adopt(write_file(table, str(self.folder), bucket))

    def run(self, job: Job, look: Callable[[], None]) -> tuple[list[Found], Figures]:
        """Runs a job: derive or load, shuffle, group and shuffle if there are aggregates, merge; `look` as for `execute`.

        Raises:
            ResourceError: Spark failed, the scratch folder is full, or the driver does not see the executors' files.
        """
        channels, targets = tuple(job.channels), tuple(job.targets)
        stages: list[Stage] = []
        if any(channel.groups is not None for channel in channels):
            stages.append(GroupTask(channels, self.buckets))
        if job.first is not None:
            stages.insert(0, job.first)
        elif job.inputs:
            stages.insert(0, LoadTask(channels, self.buckets, job.tasks, tuple(job.inputs)))
        elif channels:
            cached = self.budget.of(MOST_CACHED)
            stages.insert(0, DeriveTask(channels, self.buckets, job.tasks, tuple(job.derivations), cached))
        tasks = job.tasks if channels else self.buckets
        with self.results() as folder:
            at_once = self.budget.of(merge.AT_ONCE)
            stages.append(MergeTask(targets, channels, folder, self.buckets, bool(channels), at_once))
            return self.gather(self.execute(job.what, tasks, stages, look), len(targets))

    def gather(self, rows: Iterable[Any], targets: int) -> tuple[list[Found], Figures]:
        """Collects the outcomes of tasks with so many targets, within the block of their `results`."""
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
        """Runs stages one after the other, with shuffles to the buckets between them, and returns the outcomes of the last.

        `look` is called again and again meanwhile, and raises to stop the job: limits and signals hold for the caller.
        """
        self.count_job()
        frame = self.session.range(0, tasks, 1, tasks)
        for stage in stages[:-1]:
            frame = to_buckets(frame.mapInArrow(stage.__call__, SENT), self.buckets)
        frame = frame.mapInArrow(stages[-1].__call__, OUTCOME)
        check = self.checking(look)
        return run_named(self.session, what, frame.collect, self.scratch.path, progress=self.progress, check=check)

    def checking(self, look: Callable[[], None]) -> Callable[[], None]:
        """A check that also calls `look`."""

        def check() -> None:
            self.check()
            look()

        return check

    def close(self) -> None:
        """Closes the session. Over Connect its client would delay the end of the process if the server has ended."""
        if is_connect(self.session):
            for end in (self.session.client.release_session, self.session.client.close):
                with suppress(Exception):  # the server may have ended already
                    end()

    def adopt(self, file: FactFile) -> FactFile:
        """Has a file that a task has written deleted when nothing refers to it any more."""
        path = location_of(file.path)
        if not is_seen(path):
            raise ResourceError(Problem(errors.SCRATCH_NOT_SHARED, {"path": self.scratch.path}))
        if isinstance(path, Path):
            weakref.finalize(file, _remove, path, self.folder, this_process())
        else:  # at the end of the process all of the folder is deleted
            weakref.finalize(file, self._unneeded.append, path).atexit = False
        return file


def _remove(path: Path, root: Location, process: Process) -> None:
    """Deletes a file, and the folder of its job if it was the last one there; not in a process that was forked from that of the cluster."""
    if process.is_parent:
        return
    with suppress(OSError):
        path.unlink()
        if path.parent != root:
            path.parent.rmdir()


def total_rows(files: Sequence[FactFile]) -> int:
    """The number of facts in some files."""
    return sum(file.rows for file in files)
