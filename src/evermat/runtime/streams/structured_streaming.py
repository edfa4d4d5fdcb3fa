"""Spark Structured Streaming: streams that a materialisation follows.

A batch is processed once, however often Spark delivers it: the version that it makes says which batch it is, and both are committed together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat.core import (
    DataError,
    Problem,
    UpdateAlgorithm,
    check_session,
    count_argument,
    seconds_argument,
    wrong_argument,
)
from evermat.core import error_catalogue as errors
from evermat.io import RdfOptions, fail, updates_of
from evermat.language import relation_names
from evermat.reasoning import check_algorithm
from evermat.runtime.facts.ingest import read_change_files, relation_of
from evermat.runtime.streams.folder_stream import order_of
from evermat.runtime.streams.stream import Follower, StreamedUpdate
from evermat.spark import FEW_ROWS, ChangeFrames, changes_by_tasks, is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

_FILE_COLUMNS = "path string, modificationTime timestamp, length bigint, content binary"
_GLOB = re.compile(r"([\\*?\[\]{}])")  # special characters in a path that Spark reads
_FOR_EVER = "36500d"  # else Spark leaves out files that are much older than the newest


@dataclass(frozen=True)
class BatchProcessing:
    """How the micro-batches of a streaming query become updates; see `Materialisation.follow`."""

    turn: AbstractContextManager[Any]  # held while a batch is processed
    checkpoint: str | PathLike[str]
    available_now: bool = False
    interval: str | float | None = None
    algorithm: UpdateAlgorithm = "auto"
    marking: bool | None = None
    coalesce: bool = False

    def start(self, frame: DataFrame, process: Callable[[str, DataFrame, int], None]) -> StreamingQuery:
        """Starts a query whose batches, in a thread of Spark's, take turns with those of other queries.

        The name of the stream is made of the id in the checkpoint: it survives restarts, and differs for another checkpoint, whose batches are
        numbered from the beginning. If `process` raises an error, the query ends with it, and its batch is repeated after a restart.
        """
        if not isinstance(self.interval, str):
            seconds_argument("interval", self.interval)
        if self.available_now and self.interval is not None:
            raise wrong_argument("`available_now` ends when everything is processed: it has no `interval`")
        started: Future[str] = Future()  # the first batch may be processed before `start` has returned

        def each(batch: DataFrame, number: int) -> None:
            stream = f"spark:{started.result()}"
            with self.turn:
                process(stream, batch, number)

        writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", fspath(self.checkpoint))
        if self.available_now:
            writer = writer.trigger(availableNow=True)
        elif self.interval is not None:
            every = self.interval if isinstance(self.interval, str) else f"{round(self.interval * 1000)} milliseconds"
            writer = writer.trigger(processingTime=every)
        try:
            query = writer.start()
            started.set_result(query.id)
        except BaseException as error:
            started.set_exception(RuntimeError(f"the query was not started: {error}"))  # no batch may wait for ever
            raise
        return query

    def carry_out(self, m: Follower, updates: Sequence[StreamedUpdate]) -> None:
        for _ in m.stream(updates, algorithm=self.algorithm, marking=self.marking, coalesce=self.coalesce):
            pass


def _check_stream(frame: DataFrame) -> None:
    """Raises a `DataError` for a DataFrame that is not a stream, or whose batches are processed elsewhere."""
    if is_connect(frame.sparkSession):
        why = "it is one of Spark Connect, which has batches processed elsewhere"
        raise DataError(Problem(errors.NO_STREAM, {"why": why}))
    if not frame.isStreaming:
        raise DataError(Problem(errors.NO_STREAM, {"why": "it is an ordinary one, which `update` takes"}))


def follow_frame(m: Follower, frame: DataFrame, relation: str | None, processing: BatchProcessing) -> StreamingQuery:
    """Starts a query that updates a materialisation with a stream of changes; see `Materialisation.follow`."""
    _check_stream(frame)
    check_algorithm(processing.algorithm, m.program.strata)
    frames = ChangeFrames.of(frame.schema, None if relation is None else relation_of(relation, m.program))

    def process(stream: str, batch: DataFrame, number: int) -> None:
        if number <= int(m.positions.get(stream, -1)):
            return
        position, names = (stream, str(number)), relation_names(m.program)
        # A limit costs no more than the whole of a small batch, and no count of it is needed first.
        rows = batch.limit(FEW_ROWS + 1).toArrow()
        if rows.num_rows > FEW_ROWS:
            del rows
            with changes_by_tasks(frames, batch, number, names) as large:
                processing.carry_out(m, [StreamedUpdate(large.insert, large.delete, position)])
        elif changes := frames.changes_of(rows, number, names):
            processing.carry_out(m, [StreamedUpdate(changes.insert, changes.delete, position)])

    return processing.start(frame, process)


def _arriving_files(spark: SparkSession, folder: str | PathLike[str], files_per_batch: int | None) -> DataFrame:
    """The files that appear in a folder, as a stream of their paths.

    Spark lists the folder and writes into the checkpoint which files belong to which batch; a file is seen once, whatever becomes of it later.
    """
    path = Path(folder).resolve()
    if not path.is_dir():
        raise fail(errors.CANNOT_READ, path=folder, why="there is no such folder", what="changes are")
    reader = spark.readStream.format("binaryFile").schema(_FILE_COLUMNS).option("maxFileAge", _FOR_EVER)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    # The contents are not selected, so Spark does not read them.
    return reader.load("file://" + _GLOB.sub(r"\\\1", str(path))).select("path")


def _updates_in(batch: DataFrame) -> list[list[Path]]:
    """The updates that the files of a batch are, in the order of their names; always the same for the same files."""
    # As a set: if one name has a bracket in it, Spark lists the others twice.
    paths = {Path(row.path.removeprefix("file:")) for row in batch.collect()}
    return updates_of(sorted(paths, key=lambda path: order_of(path.name)))


def follow_files(
    m: Follower,
    spark: SparkSession,
    folder: str | PathLike[str],
    processing: BatchProcessing,
    *,
    files_per_batch: int | None = None,
    base: str | None = None,
) -> StreamingQuery:
    """Starts a query that updates a materialisation with change files; see `Materialisation.follow_files`.

    A position is the number of a batch, and the last update of it that is done: after a crash amid a batch the rest of it is done.
    """
    check_session("spark", spark)
    check_algorithm(processing.algorithm, m.program.strata)
    count_argument("files_per_batch", files_per_batch, 1)
    frame = _arriving_files(spark, folder, files_per_batch)
    _check_stream(frame)

    def process(stream: str, batch: DataFrame, number: int) -> None:
        done_batch, done = map(int, m.positions.get(stream, "-1/-1").split("/"))
        if number < done_batch:
            return
        files = list(enumerate(_updates_in(batch)))
        if number == done_batch:
            files = files[done + 1 :]
        found = read_change_files([paths for _, paths in files], m.program, RdfOptions(base=base))
        updates = [
            StreamedUpdate(changes.insert, changes.delete, (stream, f"{number}/{index}"))
            for (index, _), changes in zip(files, found, strict=True)
        ]
        processing.carry_out(m, updates)

    return processing.start(frame, process)
