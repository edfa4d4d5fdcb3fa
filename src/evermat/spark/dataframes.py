"""Converts a caller's DataFrame to facts of a relation, and facts to a DataFrame.

Rows get from Spark to the driver as Parquet files in a scratch folder, which needs no memory of the driver's JVM and is not subject to its
limit for results. Rows get to Spark as Arrow. Only the DataFrame API is used, so that Spark Connect works as well.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import DataError, Problem, allow_pandas
from evermat.core import error_catalogue as errors
from evermat.io import column_text, conform, nullary, parquet_schema
from evermat.language import Relation, Type
from evermat.spark.input.arrow_files import ArrowFileFacts, exchanged
from evermat.spark.input.frame_columns import check_columns
from evermat.spark.input.read_errors import is_malformed
from evermat.spark.input.read_task import OUTCOME, FrameWriter, Outcome, write_facts
from evermat.spark.jobs import is_connect
from evermat.spark.row_files import RowFiles
from evermat.spark.scratch import Scratch
from evermat.spark.scratch_files import parquet_file, remove_files, remove_folder, uri_for_spark
from evermat.store import Location, ObjectPath

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_READ_ROWS = 1 << 20  # of a file that the driver holds at a time
_MOST_NUMBERS = 1 << 31  # that Spark counts in a second or two
_SENT_BYTES = 1 << 29  # of a table that become one local relation: Connect's limit for one is 3 GB
_PARTITION_ROWS = 1 << 18  # classic Spark would make a partition of every 10,000 rows
_SHOWN = 10  # errors of one frame that are reported
# What a view of Spark Connect reads is kept by its DataFrame, and by nothing else: until there is another view of that name in its session.
_viewed: dict[tuple[str, str], DataFrame] = {}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


# --- in ----------------------------------------------------------------------------------------------------


def is_dataframe(facts: object) -> bool:
    """Whether an object is a DataFrame of Spark, classic or Connect; without an imported pyspark there is none."""
    module = sys.modules.get("pyspark.sql")  # another thread may be importing it right now: then there is none yet
    return isinstance(facts, getattr(module, "DataFrame", ()))


def check_static(frame: DataFrame, name: str) -> None:
    """Raises a `DataError` for a DataFrame of Structured Streaming, whose rows cannot be read as facts."""
    if frame.isStreaming:
        raise DataError(Problem(errors.STREAM_AS_FACTS, {"name": name}))


def frame_tables(frame: DataFrame, relation: Relation, scratch: Scratch, name: str) -> Iterator[pa.Table]:
    """Yields the rows of a DataFrame, which errors call `name`, as Arrow tables of the relation; see `WrittenFrame`.

    Raises:
        DataError: it does not fit the relation.
    """
    if not relation.columns:
        check_static(frame, name)
        yield nullary(present=not frame.isEmpty())
        return
    written = WrittenFrame.of(frame, relation, scratch, name)
    try:
        yield from written.tables()
    finally:
        remove_folder(written.folder)


@dataclass(frozen=True)
class WrittenFrame:
    """The rows of a DataFrame, which errors call `name`, for a relation.

    The frame was computed once, into the scratch folder; if the driver does not see the rows there, they come through its memory. Rows are
    numbered in the order of its partitions, and errors are those of `conform` for one table of all rows. Columns and types are checked before
    anything is computed; values are checked piece by piece, so pieces before an error are not facts yet.
    """

    frame: DataFrame
    relation: Relation
    name: str
    names: tuple[str, ...]  # of the columns
    folder: Location
    files: RowFiles | None  # None if the driver does not see the rows

    @classmethod
    def of(cls, frame: DataFrame, relation: Relation, scratch: Scratch, name: str) -> WrittenFrame:
        """Computes a frame with columns; raises a `DataError` if these do not fit."""
        check_static(frame, name)
        schema = _arrow_schema(frame)
        check_columns(frame, schema, relation, name)
        folder = scratch.folder(relation.name)
        try:
            files = _written(frame, folder / "rows")
        except BaseException:
            remove_folder(folder)
            raise
        return cls(frame, relation, name, tuple(schema.names), folder, files)

    @property
    def rows(self) -> int:
        """How many there are in the files."""
        return 0 if self.files is None else self.files.rows

    def tables(self) -> Iterator[pa.Table]:
        """Yields the rows as Arrow tables of the relation."""
        if self.files is None:
            yield conform(self.frame.toArrow(), self.relation, self.name)
        else:
            yield from checked_pieces(_pieces(self.files.files, list(self.names)), self.relation, self.name)

    def again(self, frame: DataFrame) -> DataFrame:
        """The rows as a DataFrame that reads the files instead of computing them once more."""
        assert self.files is not None
        return self.files.frame(frame.sparkSession).toDF(*self.names)


def frame_files(frame: DataFrame, relation: Relation, scratch: Scratch, name: str) -> ArrowFileFacts:
    """The rows of a DataFrame as Arrow files of the relation, which tasks check and write: the driver sees none of them.

    Raises:
        DataError: it does not fit the relation; the row of a value that does not is unknown.
    """
    check_static(frame, name)
    folder = scratch.folder(relation.name)
    if not relation.columns:
        facts = nullary(present=not frame.isEmpty())
        write_facts(facts, folder / "0.arrow")
        return ArrowFileFacts([folder / "0.arrow"], facts.num_rows)
    allow_pandas()  # tasks over Arrow need it
    schema = _arrow_schema(frame)
    check_columns(frame, schema, relation, name)
    writer = FrameWriter(relation, tuple(schema.names), str(folder), name)
    rows = _with_positions(frame).mapInArrow(writer.__call__, OUTCOME).collect()
    outcomes = [Outcome.of(row) for row in rows]
    if found := {str(problem): problem for outcome in outcomes for problem in outcome.problems}:
        raise DataError(list(found.values())[:_SHOWN])
    return exchanged([outcome for outcome in outcomes if outcome.rows])


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    """The schema of the frame's rows in Arrow, for which no job runs."""
    from pyspark.sql.functions import lit  # noqa: PLC0415
    from pyspark.sql.types import CalendarIntervalType, YearMonthIntervalType  # noqa: PLC0415

    plain = _with_positions(frame)
    # Types of intervals without an Arrow type in Spark, which are refused under the name of Arrow's own type.
    intervals = [isinstance(f.dataType, CalendarIntervalType | YearMonthIntervalType) for f in plain.schema.fields]
    columns = [
        lit(None).alias(name) if is_interval else plain[name]
        for name, is_interval in zip(plain.columns, intervals, strict=True)
    ]
    types = plain.select(*columns).limit(0).toArrow().schema.types
    return pa.schema(
        (name, pa.month_day_nano_interval() if is_interval else type_)
        for name, type_, is_interval in zip(frame.columns, types, intervals, strict=True)
    )


def _with_positions(frame: DataFrame) -> DataFrame:
    """The frame with columns named by their positions: it may have two of one name, or names that differ only in case."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def _written(frame: DataFrame, folder: Location) -> RowFiles | None:
    """Files with the frame's rows in the order of its partitions; None if the driver does not see all of the rows.

    That is so if the folder is not shared with the executors or with the Connect server, which may not even be able to
    write there. An error of the frame itself is raised again when its rows are fetched in another way.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import Observation  # noqa: PLC0415
    from pyspark.sql.functions import count, lit  # noqa: PLC0415

    written = Observation()
    counted = _with_positions(frame).observe(written, count(lit(1)).alias("rows"))
    if isinstance(folder, ObjectPath):
        return RowFiles.of(counted, folder)
    try:
        files = RowFiles.of(counted, folder)
    except (PySparkException, Py4JError) as error:
        if is_malformed(error):
            raise
        return None
    except (OSError, pa.ArrowInvalid):  # an incomplete file
        return None
    return files if files.rows == written.get["rows"] else None


def _pieces(files: Sequence[Location], names: list[str]) -> Iterator[pa.Table]:
    """Yields the rows of the files under these names, and deletes each file that has been read."""
    for path in files:
        with parquet_file(path) as file:
            for batch in file.iter_batches(_READ_ROWS):
                yield pa.Table.from_batches([batch]).rename_columns(names)
        remove_files([path])


def checked_pieces(pieces: Iterator[pa.Table], relation: Relation, name: str) -> Iterator[pa.Table]:
    """Yields the pieces in the relation's form; after one that does not fit, the others are only checked for problems."""
    before = 0
    found: dict[str, Problem] = {}
    for piece in pieces:
        start = before
        before += piece.num_rows
        try:
            table = conform(piece, relation, name, lambda row, start=start: f"row {start + row + 1}")  # type: ignore[misc]
        except DataError as error:
            for problem in error.problems:
                # For one table each column's error is its first NULL, or else its first misfit; so it is for all pieces together.
                column = problem.details["where"].split(", ", 1)[1]
                if column not in found or (
                    problem.kind is errors.NULL_VALUE and found[column].kind is not errors.NULL_VALUE
                ):
                    found[column] = problem
            continue
        if not found:
            yield table
    if found:
        in_order = [column_text(relation, position) for position in range(relation.arity)]
        raise DataError([found[column] for column in in_order if column in found])


# --- out ---------------------------------------------------------------------------------------------------


def to_frame(spark: SparkSession, table: pa.Table, relation: Relation) -> DataFrame:
    """The facts of a relation as a DataFrame.

    A `number` is a long, an `unsigned` a decimal(20,0), a `float` a double, a `symbol` or `term` a string. A relation
    without columns is a DataFrame without columns: it has one row if its fact holds, else none.
    """
    if not relation.columns:
        return spark.range(min(table.num_rows, 1)).select()
    schema = parquet_schema(relation)
    columns = [pc.cast(column, field.type) for column, field in zip(table.columns, schema, strict=True)]
    sent = pa.Table.from_arrays(columns, schema=schema)
    if not sent.num_rows:
        return _empty(spark, relation)
    rows = max(1, _SENT_BYTES * sent.num_rows // sent.nbytes)
    frames = []
    for begin in range(0, sent.num_rows, rows):
        # One chunk, for classic Spark makes at least one partition of each.
        piece = sent.slice(begin, rows).combine_chunks()
        frames.append(spark.createDataFrame(piece).coalesce(piece.num_rows // _PARTITION_ROWS + 1))
    return reduce(lambda one, other: one.union(other), frames)


def numbers_of_tasks(spark: SparkSession, tasks: int, rows: int, per_number: float = 0.5) -> DataFrame:
    """A number for each task, of which Spark believes that they become so many rows.

    Spark estimates the rows of a function by its input rows, and would broadcast billions of facts for a join. Hence the numbers are
    filtered from a larger range, of which Spark does not know how many are left: as many as there are rows, divided by `per_number`.
    """
    size = max(1, int(min(rows / per_number, _MOST_NUMBERS) / tasks))
    return spark.range(0, tasks * size, 1, tasks).where(f"id % {size} = 0").selectExpr(f"id div {size} as id")


def from_files(
    spark: SparkSession, relation: Relation, added: Sequence[str], removed: Sequence[str] = ()
) -> DataFrame | None:
    """The facts in Parquet files, without those in others, as a DataFrame that Spark itself reads: only what a query needs, and of true size.

    None if Spark cannot read such files: of floats they have the bits.
    """
    if not relation.columns or any(type_ is Type.FLOAT for type_ in relation.types):
        return None
    facts = _scanned(spark, relation, added)
    if removed:
        gone = _scanned(spark, relation, removed)
        same = reduce(lambda one, other: one & other, [facts[name] == gone[name] for name in facts.columns])
        facts = facts.join(gone, same, "left_anti")
    return facts.select(
        *(
            _as_unsigned(facts[name]).alias(column.name)
            if column.type is Type.UNSIGNED
            else facts[name].alias(column.name)
            for name, column in zip(facts.columns, relation.columns, strict=True)
        )
    )


def _as_unsigned(bits: Column) -> Column:
    from pyspark.sql.functions import lit, when  # noqa: PLC0415

    number = bits.cast("decimal(20,0)")
    return when(bits >= 0, number).otherwise((number + lit(str(2**64)).cast("decimal(20,0)")).cast("decimal(20,0)"))


def _scanned(spark: SparkSession, relation: Relation, files: Sequence[str]) -> DataFrame:
    text = (Type.SYMBOL, Type.TERM)
    schema = ", ".join(f"c{i} {'string' if type_ in text else 'bigint'}" for i, type_ in enumerate(relation.types))
    return spark.read.schema(schema).parquet(*(uri_for_spark(Path(file)) for file in files))


def from_tasks(
    spark: SparkSession,
    relation: Relation,
    reader: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    tasks: int,
    rows: int,
) -> DataFrame:
    """The facts of a relation as a DataFrame whose tasks produce so many rows, about: task i gets the number i."""
    numbers = numbers_of_tasks(spark, tasks, rows)
    if not relation.columns:
        return numbers.mapInArrow(reader, "present boolean").select()
    return numbers.mapInArrow(reader, _empty(spark, relation).schema)


def _empty(spark: SparkSession, relation: Relation) -> DataFrame:
    """An empty DataFrame of a relation. It has Spark's own types, for Connect infers none from an empty Arrow table."""
    from pyspark.sql.types import DecimalType, DoubleType, LongType, StringType, StructField, StructType  # noqa: PLC0415

    types = {Type.NUMBER: LongType(), Type.UNSIGNED: DecimalType(20, 0), Type.FLOAT: DoubleType()}
    fields = [StructField(column.name, types.get(column.type, StringType())) for column in relation.columns]
    return spark.createDataFrame([], StructType(fields))


def create_views(tables: Mapping[str, DataFrame], prefix: str = "") -> dict[str, str]:
    """Creates or replaces temporary views of DataFrames, named after their relations; returns the names of the views in SQL.

    Any name is possible in backticks; plain words have none. SQL ignores case, though: of relations whose names differ only
    in case the first has its name as a view, the next has `_2` after it, and so on.
    """
    own = {(prefix + relation).lower() for relation in tables}
    taken: set[str] = set()
    views = {}
    for relation, frame in tables.items():
        name, number = prefix + relation, 1
        while name.lower() in taken or (number > 1 and name.lower() in own):
            number += 1
            name = f"{prefix}{relation}_{number}"
        taken.add(name.lower())
        views[relation] = name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
        replace_view(frame, views[relation])
    return views


def replace_view(frame: DataFrame, view: str) -> None:
    """Creates or replaces a temporary view; its name is as in SQL."""
    frame.createOrReplaceTempView(view if view.startswith("`") else f"`{view}`")
    if is_connect(frame.sparkSession):
        _viewed[frame.sparkSession.session_id, view.strip("`").lower()] = frame


def end_view(spark: SparkSession, view: str, why: str) -> None:
    """Has a temporary view raise an error whenever it is read; one that does not exist any more stays away."""
    from pyspark.sql.functions import lit, raise_error  # noqa: PLC0415

    if not spark.catalog.tableExists(view):
        return
    fields = spark.table(view).schema.fields
    refused = spark.range(1).select(*(raise_error(lit(why)).cast(field.dataType).alias(field.name) for field in fields))
    # A count needs no column, but this filter.
    replace_view(refused.where(raise_error(lit(why)).cast("boolean")), view)


def drop_view(spark: SparkSession, view: str) -> None:
    """Removes a temporary view."""
    spark.catalog.dropTempView(view.strip("`").replace("``", "`"))
    if is_connect(spark):
        _viewed.pop((spark.session_id, view.strip("`").lower()), None)
