"""Spark Structured Streaming: streams that a materialisation follows, and the changes of a state as a stream.

A batch is processed once, however often Spark delivers it: the version that it makes says which batch it is, and both are committed together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evermat.core import DataError, Problem, UpdateAlgorithm, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.spark import RELATION, STATE, Changed, ChangeSource, required
from evermat.store import open_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from evermat.runtime.stream import Follower, StreamedUpdate

# Spark's Python workers load this module for the source, again and again: what only the others need is imported by them.


@dataclass(frozen=True)
class BatchProcessing:
    """How the micro-batches of a streaming query become updates.

    Attributes:
        turn: Held while a batch is processed.
        checkpoint: The directory in which Spark records how far it is.
        available_now: Whether to process what has arrived, and end.
        interval: How often to look for more.
        algorithm: As for `Materialisation.update`.
        marking: As for `Materialisation.stream`.
        coalesce: As for `Materialisation.stream`.
    """

    turn: AbstractContextManager[Any]
    checkpoint: str | PathLike[str]
    available_now: bool = False
    interval: str | float | None = None
    algorithm: UpdateAlgorithm = "auto"
    marking: bool | None = None
    coalesce: bool = False

    def start(self, frame: DataFrame, process: Callable[[str, DataFrame, int], None]) -> StreamingQuery:
        """Starts the query; batches take turns."""
        from evermat.spark import start_query

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
    from evermat.reasoning import check_algorithm
    from evermat.runtime.ingest import relation_of
    from evermat.runtime.stream import StreamedUpdate
    from evermat.spark import ChangeFrames, check_stream

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
    from evermat.io import RdfOptions
    from evermat.reasoning import check_algorithm
    from evermat.runtime.ingest import read_change_files
    from evermat.runtime.stream import StreamedUpdate
    from evermat.spark import arriving_files, check_stream, updates_in

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


def register_source(spark: SparkSession) -> None:
    """Makes the changes of state directories a data source of a session: `spark.readStream.format("evermat")`, and `spark.read`.

    Rows have the columns of a relation, `_op` (`+` or `-`) and `_version`. Executors must see the state directory, and have Evermat installed.

        evermat.register_source(spark)
        spark.readStream.format("evermat").option("state", "state/").option("relation", "path").load()

    Options are `state`, the directory; `relation`; `startingVersion`: the first version whose changes are wanted, or `earliest`: all facts of the oldest
    version that is kept, as `+`, and then the changes, which is the default, or `latest`: what changes from now on; and without a stream
    `endingVersion`. A stream that falls so far behind that a version it needs is no longer kept ends with an error; with
    `failOnDataLoss=false` it goes on with the first version that is kept.
    """
    spark.dataSource.register(EvermatDataSource)


# --- the source ------------------------------------------------------------------------------------------------


class EvermatDataSource(ChangeSource):
    """The data source `evermat`."""

    def feed(self) -> StateFeed:
        return StateFeed(Path(required(self.options, STATE)), required(self.options, RELATION))


class StateFeed:
    """The changes of one relation of a state directory."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name

    @property
    def place(self) -> str:
        return str(self._path)

    @property
    def name(self) -> str:
        return self._name

    @property
    def columns(self) -> pa.Schema:
        with open_reader(self._path) as store:
            newest = store.latest
            known = [name for name in newest.relations if name not in newest.counters["hidden"]]
            if self._name not in known:
                help_ = did_you_mean(self._name, known)
                raise DataError(Problem(errors.NO_SUCH_RELATION, {"name": self._name}, help=help_))
            return store.schema(newest.number, self._name)

    @property
    def newest(self) -> int:
        with open_reader(self._path) as store:
            return store.latest.number

    @property
    def versions(self) -> list[Changed]:
        with open_reader(self._path) as store:
            return [Changed(version.number, version.inserted + version.deleted) for version in store.versions()]

    def check(self, version: int) -> None:
        with open_reader(self._path) as store:
            store.version(version)

    def content(self, version: int) -> pa.Table:
        from evermat.runtime.ingest import relation_of
        from evermat.runtime.memory_engine import restored
        from evermat.runtime.relation import Relation
        from evermat.runtime.saved_version import SavedVersion

        with open_reader(self._path) as store:
            saved = SavedVersion(store, version)
            relation = relation_of(self._name, saved.program)
            return Relation(relation, restored(saved, {self._name})).to_arrow()

    def changes(self, first: int, last: int) -> pa.Table | None:
        from evermat.runtime.change_history import changes_between

        return changes_between(self._path, first, last).get(self._name)
