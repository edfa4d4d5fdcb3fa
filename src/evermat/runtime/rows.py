"""Rows as users see them: what the facts of a relation, the answer to a query and what an update changed have in common."""

from __future__ import annotations

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from evermat.columns import Batch, Dictionary, decode_arrow, decode_rows, encode_rows
from evermat.language import RANGES, Relation, Row, Type

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_SHOWN_ROWS = 10
_BATCH = 1 << 17  # rows of a batch
_TOO_LARGE = 2**1024 - 2**970  # the least integer that no float is near enough to


class Tabular(ABC):
    """Rows with named and typed columns. Iteration is in no particular order."""

    def __init__(self, relation: Relation, dictionary: Dictionary | None = None) -> None:
        self._relation, self._encoding = relation, dictionary

    @property
    def _dictionary(self) -> Dictionary:
        """What the rows are encoded with now; those whose encoding changes override this."""
        assert self._encoding is not None
        return self._encoding

    @abstractmethod
    def _chunks(self) -> tuple[Dictionary, Iterator[Batch]]:
        """What the rows are encoded with, and the rows, some at a time; each batch is valid until the next step."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _found(self, row: Batch) -> bool:
        """Whether an encoded row is among them."""

    @property
    def _title(self) -> str:
        """What a table of them is headed with."""
        return f"{self._relation.name}: {len(self):,} facts"

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self._relation.columns]

    def __iter__(self) -> Iterator[Row]:
        dictionary, chunks = self._chunks()
        return decoded_rows(chunks, self._relation.types, dictionary)

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, tuple) or not suits(row, self._relation):
            return False
        if any(isinstance(value, str) and not self._knows(value) for value in row):
            return False
        return self._found(encode_rows([row], self._relation.types, self._dictionary))

    def _knows(self, symbol: str) -> bool:
        """Whether a symbol may occur: looking a row up must not add its symbols to a dictionary that holds them all."""
        return self._dictionary.lookup(symbol) >= 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow record batches, one after the other: they are never all in memory."""
        import pyarrow as pa

        from evermat.io import arrow_schema, nullary

        if not self._relation.columns:
            yield from nullary(present=len(self) > 0).to_batches()
            return
        schema = arrow_schema(self._relation)
        dictionary, chunks = self._chunks()
        for chunk in chunks:
            for first in range(0, chunk.shape[1], _BATCH):
                yield from pa.Table.from_arrays(
                    self._decoded(chunk[:, first : first + _BATCH], dictionary), schema=schema
                ).to_batches()

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        import pyarrow as pa

        from evermat.io import arrow_schema, nullary

        if not self._relation.columns:
            return nullary(present=len(self) > 0)
        rows = np.empty((self._relation.arity, len(self)), np.int64)
        first = 0
        dictionary, chunks = self._chunks()
        for chunk in chunks:
            rows[:, first : (first := first + chunk.shape[1])] = chunk
        return pa.Table.from_arrays(self._decoded(rows, dictionary), schema=arrow_schema(self._relation))

    def _decoded(self, batch: Batch, dictionary: Dictionary) -> list[pa.ChunkedArray]:
        return [decode_arrow(batch[i], type_, dictionary) for i, type_ in enumerate(self._relation.types)]

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame; needs polars."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """The rows as a DataFrame of the caller's SparkSession; an `unsigned` is a decimal there."""
        from evermat.spark import to_frame

        return to_frame(spark, self.to_arrow(), self._relation)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface: DuckDB, polars, pandas and others read the rows directly."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row) + "</tr>"
            for row in islice(self, _SHOWN_ROWS)
        )
        caption = f"<caption>{html.escape(self._title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def decoded_rows(batches: Iterable[Batch], types: Sequence[Type], dictionary: Dictionary) -> Iterator[Row]:
    """The rows of batches as values."""
    for batch in batches:
        yield from decode_rows(batch, types, dictionary)


def suits(row: tuple[Any, ...], relation: Relation) -> bool:
    """Whether a row has the columns of a relation, each with a value of its type."""
    return len(row) == relation.arity and all(map(is_value, row, relation.types))


def is_value(value: Any, type_: Type) -> bool:
    """Whether a Python value is one of a type."""
    if type_ in (Type.SYMBOL, Type.TERM):
        return isinstance(value, str) and (value.isascii() or is_unicode(value))
    if isinstance(value, bool | np.bool_):
        return False
    if type_ is Type.FLOAT:
        if isinstance(value, int):
            return -_TOO_LARGE < value < _TOO_LARGE
        return isinstance(value, float | np.floating | np.integer) and not math.isnan(value)
    low, high = RANGES[type_]
    return isinstance(value, int | np.integer) and low <= int(value) <= high


def is_unicode(text: str) -> bool:
    """Whether a text has an encoding: half of a surrogate pair is not a character: it could not be written anywhere."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
