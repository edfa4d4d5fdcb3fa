"""Spark Structured Streaming: streams that a materialisation follows, and the changes of a state as a stream.

A batch is processed once, however often Spark delivers it: the version that it makes says which batch it is, and both are committed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from evermat.core import DataError, Problem, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.spark.streaming.change_source import RELATION, STATE, Changed, ChangeSource, required
from evermat.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from evermat.api.materialisation import Materialisation
    from evermat.io import FileChanges, RdfOptions
    from evermat.language import Relation
    from evermat.runtime.stream import StreamedUpdate

# Spark's Python workers load this module for the source, again and again: what only the others need is imported by them.


def follow_frame(
    m: Materialisation,
    frame: DataFrame,
    *,
    checkpoint: str | PathLike[str],
    relation: str | None = None,
    available_now: bool = False,
    interval: str | float | None = None,
    algorithm: str = "auto",
    marking: bool | None = None,
    coalesce: bool = False,
) -> StreamingQuery:
    """Starts a query that updates a materialisation with a stream of changes: every micro-batch that is not empty is one update.

    The stream has a column `op`, which is `+` for a fact to insert and `-` for one to delete, and either the columns of `relation`, in any order, or
    `relation` and `values`, an array of texts as they would stand in a file of changes. The rows of a batch have no order. If one of them
    inserts a fact and another deletes it, the batch is refused, unless the stream has a column `sequence`: then the greatest decides.

    If the materialisation has a state directory, each batch changes it exactly once, whatever crashes: open the state again and follow the same
    stream with the same checkpoint. Without one that holds as long as this process lives; another process has to begin with a new checkpoint.
    A batch that is wrong changes nothing and ends the query with its error; it comes again when the query is started again.

    Batches are processed in this process, by a thread of Spark's, and all rows of a batch come here. Several queries may follow streams for one
    materialisation: their batches take turns. Nobody else may use the materialisation while a batch is processed.

    Args:
        m: what is to be kept true; its facts may be here or on the cluster.
        frame: a streaming DataFrame, of `spark.readStream`.
        checkpoint: the folder in which Spark notes how far it is. It belongs to this stream and this materialisation.
        relation: the relation that changes; None if the stream says so in each row.
        available_now: process what is there now, in as many batches as the source makes of it, and end.
        interval: how often to look for more, in seconds or as Spark spells it, `"1 minute"`; as soon as a batch is done if left out.
        algorithm: as for `Materialisation.update`.
        marking: as for `Materialisation.stream`; of batches none is there before the one ahead of it is done.
        coalesce: likewise.

    Returns:
        Spark's query: `awaitTermination`, `stop`, `lastProgress`, `exception`.

    Raises:
        DataError: the DataFrame is no stream, or its columns do not fit; there is no such relation.
        ProgramError: there is no such algorithm, or it cannot maintain this program.
    """
    from evermat.reasoning.maintain import check_algorithm  # noqa: PLC0415
    from evermat.runtime.ingest import relation_of  # noqa: PLC0415
    from evermat.runtime.stream import StreamedUpdate  # noqa: PLC0415
    from evermat.spark.streaming.query import check_stream, start  # noqa: PLC0415
    from evermat.spark.streaming.sink import ChangeFrames  # noqa: PLC0415

    check_stream(frame)
    check_algorithm(algorithm, m.program.strata)
    frames = ChangeFrames.of(frame, None if relation is None else relation_of(relation, m.program))

    def process(stream: str, batch: DataFrame, number: int) -> None:
        with m.turn:
            if number <= int(m.positions.get(stream, -1)):
                return
            changes = frames.changes(batch, number, _relations(m))
            if changes:
                update = StreamedUpdate(changes.insert, changes.delete, (stream, str(number)))
                _carry_out(m, [update], algorithm, marking=marking, coalesce=coalesce)

    return start(frame, process, checkpoint=checkpoint, available_now=available_now, interval=interval)


def follow_files(
    m: Materialisation,
    spark: SparkSession,
    folder: str | PathLike[str],
    *,
    checkpoint: str | PathLike[str],
    files_per_batch: int | None = None,
    base: str | None = None,
    available_now: bool = False,
    interval: str | float | None = None,
    algorithm: str = "auto",
    marking: bool | None = None,
    coalesce: bool = False,
) -> StreamingQuery:
    """Starts a query that updates a materialisation with the files of changes that appear in a folder.

    The files are those of `evermat update`: text, `.jsonl`, `.parquet`, and `.add.nt` and `.del.nt` or any other RDF. Each is one update, or two of
    RDF that belong together and come in one batch; within a batch they are taken in the order of their names. A file must be whole when it
    appears: write it elsewhere and move it into the folder. Names that begin with `.` or `_` are not looked at. A file is read once; what becomes
    of it later does not matter once its batch is done.

    All files of a batch are read before the first of them changes anything, so that an error in one of them changes nothing. Each update is
    done exactly once, as `follow_frame` says; after a crash amid a batch the rest of it is done.

    Args:
        m: what is to be kept true; its facts may be here or on the cluster.
        spark: who looks for files.
        folder: the folder, which this process and all executors see.
        checkpoint: the folder in which Spark notes how far it is. It belongs to this stream and this materialisation.
        files_per_batch: at most so many files, the oldest first, are taken at a time; all that are there if left out.
        base: what relative IRIs in RDF are relative to.
        available_now: process what is there now and end.
        interval: how often to look for more, in seconds or as Spark spells it, `"1 minute"`; as soon as a batch is done if left out.
        algorithm: as for `Materialisation.update`.
        marking: as for `Materialisation.stream`: look at the next file of the batch.
        coalesce: as for `Materialisation.stream`: the files of a batch become one update, or a few if there are many.

    Returns:
        Spark's query.

    Raises:
        DataError: there is no such folder.
        ProgramError: there is no such algorithm, or it cannot maintain this program.
    """
    from evermat.io import RdfOptions  # noqa: PLC0415
    from evermat.reasoning.maintain import check_algorithm  # noqa: PLC0415
    from evermat.runtime.stream import StreamedUpdate  # noqa: PLC0415
    from evermat.spark.streaming.file_source import arriving_files, updates_in  # noqa: PLC0415
    from evermat.spark.streaming.query import check_stream, start  # noqa: PLC0415

    check_algorithm(algorithm, m.program.strata)
    frame = arriving_files(spark, folder, files_per_batch)
    check_stream(frame)

    def process(stream: str, batch: DataFrame, number: int) -> None:
        with m.turn:
            done_batch, done = _position(m.positions.get(stream, "-1/-1"))
            if number < done_batch:
                return
            files = list(enumerate(updates_in(batch)))
            if number == done_batch:
                files = files[done + 1 :]
            found = _read([paths for _, paths in files], m, RdfOptions(base=base))
            updates = [
                StreamedUpdate(changes.insert, changes.delete, (stream, f"{number}/{index}"))
                for (index, _), changes in zip(files, found, strict=True)
            ]
            _carry_out(m, updates, algorithm, marking=marking, coalesce=coalesce)

    return start(frame, process, checkpoint=checkpoint, available_now=available_now, interval=interval)


def register_source(spark: SparkSession) -> None:
    """Makes the changes of state directories a data source of a session: `spark.readStream.format("evermat")`, and `spark.read`.

    Rows have the columns of a relation, `_op` (`+` or `-`) and `_version`. Executors must see the state directory, and have Evermat installed.

        evermat.register_source(spark)
        spark.readStream.format("evermat").option("state", "state/").option("relation", "path").load()

    Options are `state`, the directory; `relation`; `startingVersion`: the first version whose changes are wanted, or `earliest`: all facts of the oldest
    version that is kept, as `+`, and then the changes, which is the default, or `latest`: what changes from now on; and without a stream
    `endingVersion`. A stream that falls so far behind that a version it needs is removed by `vacuum` ends with an error.
    """
    spark.dataSource.register(EvermatDataSource)


def _relations(m: Materialisation) -> dict[str, Relation]:
    return {name: m.program.relations[name] for name in m}


def _carry_out(
    m: Materialisation, updates: Sequence[StreamedUpdate], algorithm: str, *, marking: bool | None, coalesce: bool
) -> None:
    for _ in m.stream(updates, algorithm=algorithm, marking=marking, coalesce=coalesce):
        pass


def _position(text: str) -> tuple[int, int]:
    """The number of a batch, and the last update of it that is done."""
    batch, _, index = text.partition("/")
    return int(batch), int(index)


def _read(updates: Iterable[Sequence[Path]], m: Materialisation, options: RdfOptions) -> list[FileChanges]:
    """The changes in all files; what is wrong with any of them is told together."""
    from evermat.io import read_update  # noqa: PLC0415

    found: list[FileChanges] = []
    problems: list[Problem] = []
    for paths in updates:
        try:
            found.append(read_update(paths, m.program, options))
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    return found


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
        with Store.open(self._path) as store:
            newest = store.latest
            known = [name for name in newest.relations if name not in newest.counters["hidden"]]
            if self._name not in known:
                help_ = did_you_mean(self._name, known)
                raise DataError(Problem(errors.NO_SUCH_RELATION, {"name": self._name}, help=help_))
            return store.schema(newest.number, self._name)

    @property
    def newest(self) -> int:
        with Store.open(self._path) as store:
            return store.latest.number

    @property
    def versions(self) -> list[Changed]:
        with Store.open(self._path) as store:
            return [Changed(version.number, version.inserted + version.deleted) for version in store.versions()]

    def check(self, version: int) -> None:
        with Store.open(self._path) as store:
            store.version(version)

    def content(self, version: int) -> pa.Table:
        from evermat.api.materialisation import Facts  # noqa: PLC0415
        from evermat.runtime.ingest import relation_of  # noqa: PLC0415
        from evermat.runtime.persistence import load, program_of  # noqa: PLC0415

        with Store.open(self._path) as store:
            program = program_of(store, version)
            relation = relation_of(self._name, program)
            return Facts(relation, load(store, version, program, {self._name})).to_arrow()

    def changes(self, first: int, last: int) -> pa.Table | None:
        from evermat.runtime.change_history import changes_between  # noqa: PLC0415

        return changes_between(self._path, first, last).get(self._name)
