"""The lines of text files, as tasks write them: the same text as files of this machine have, one file for each task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import allow_pandas
from evermat.io import FORMATS, arrow_schema, nullary
from evermat.language import Io, Type
from evermat.spark.output.target import file_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TEXTS = (Type.SYMBOL, Type.TERM)


class LineWriter:
    """Turns batches of facts into texts without their last newline, which Spark adds."""

    def __init__(self, io: Io) -> None:
        self._io = io

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        io = self._io
        schema = arrow_schema(io.relation)
        for batch in batches:
            if not batch.num_rows:
                continue
            columns = [pc.cast(column, field.type) for column, field in zip(batch.columns, schema, strict=True)]
            text = text_of([pa.RecordBatch.from_arrays(columns, schema=schema)], io)
            io = replace(io, headers=False)
            yield pa.RecordBatch.from_pydict({"value": pa.array([text.decode().removesuffix("\n")], pa.string())})


def text_of(batches: list[pa.RecordBatch], io: Io) -> bytes:
    """Facts in the format that the name of an output says; raises a `DataError` if it cannot hold them."""
    sink = BytesIO()
    file = file_of(io)
    file.format.write(sink, io, batches, file.path)
    return sink.getvalue()


def line_frame(frame: DataFrame, io: Io) -> DataFrame:
    """The lines of the facts in a DataFrame, which has columns."""
    allow_pandas()  # tasks over Arrow need it
    return frame.mapInArrow(LineWriter(io).__call__, "value string")


def nullary_frame(spark: SparkSession, io: Io, *, present: bool) -> DataFrame:
    """The lines of a relation without columns."""
    text = text_of(nullary(present=present).to_batches() if present else [], io).decode()
    return spark.createDataFrame([(text.removesuffix("\n"),)] if text else [], "value string").coalesce(1)


def check_lines(frame: DataFrame, io: Io) -> None:
    """Raises a `DataError` if plain text cannot hold one of the facts."""
    if file_of(io).format is not FORMATS["text"] or io.rfc4180:
        return
    wrong = None
    for column in io.relation.columns:
        if column.type in _TEXTS:
            # A regular expression would need the delimiter escaped as Java does it.
            found = frame[column.name].contains(io.delimiter) | frame[column.name].rlike("[\r\n]")
            wrong = found if wrong is None else wrong | found
    if wrong is not None:
        rows = frame.where(wrong).limit(1).toArrow()
        if rows.num_rows:
            schema = arrow_schema(io.relation)
            columns = [pc.cast(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
            text_of(pa.Table.from_arrays(columns, schema=schema).to_batches(), io)
