"""Spark Structured Streaming: streams that a materialisation follows.

A batch is processed once, however often Spark delivers it: the version that it makes says which batch it is, and both are committed together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from evermat.core import UpdateAlgorithm
from evermat.io import RdfOptions
from evermat.reasoning import check_algorithm
from evermat.runtime.ingest import read_change_files, relation_of
from evermat.runtime.stream import Follower, StreamedUpdate
from evermat.spark import ChangeFrames, arriving_files, check_stream, start_query, updates_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


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
        """Starts the query; batches take turns."""

        def in_turn(stream: str, batch: DataFrame, number: int) -> None:
            with self.turn:
                process(stream, batch, number)

        return start_query(
            frame,
            in_turn,
            checkpoint=self.checkpoint,
            available_now=self.available_now,
            interval=self.interval,
        )

    def carry_out(self, m: Follower, updates: Sequence[StreamedUpdate]) -> None:
        """Carries out the updates of a batch."""
        for _ in m.stream(updates, algorithm=self.algorithm, marking=self.marking, coalesce=self.coalesce):
            pass


def follow_frame(m: Follower, frame: DataFrame, relation: str | None, processing: BatchProcessing) -> StreamingQuery:
    """Starts a query that updates a materialisation with a stream of changes; see `Materialisation.follow`."""
    check_stream(frame)
    check_algorithm(processing.algorithm, m.program.strata)
    frames = ChangeFrames.of(frame, None if relation is None else relation_of(relation, m.program))

    def process(stream: str, batch: DataFrame, number: int) -> None:
        if number <= int(m.positions.get(stream, -1)):
            return
        relations = {name: one for name, one in m.program.relations.items() if not one.hidden}
        changes = frames.changes_of(batch.toArrow(), number, relations)
        if changes:
            processing.carry_out(m, [StreamedUpdate(changes.insert, changes.delete, (stream, str(number)))])

    return processing.start(frame, process)


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
    check_algorithm(processing.algorithm, m.program.strata)
    frame = arriving_files(spark, folder, files_per_batch)
    check_stream(frame)

    def process(stream: str, batch: DataFrame, number: int) -> None:
        done_batch, done = map(int, m.positions.get(stream, "-1/-1").split("/"))
        if number < done_batch:
            return
        files = list(enumerate(updates_in(batch)))
        if number == done_batch:
            files = files[done + 1 :]
        found = read_change_files([paths for _, paths in files], m.program, RdfOptions(base=base))
        updates = [
            StreamedUpdate(changes.insert, changes.delete, (stream, f"{number}/{index}"))
            for (index, _), changes in zip(files, found, strict=True)
        ]
        processing.carry_out(m, updates)

    return processing.start(frame, process)
