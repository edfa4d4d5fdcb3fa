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
from evermat.core import check_session
from evermat.language import RANGES, MalformedTermError, Relation, Row, Type, is_term, is_unicode, term_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_SHOWN_ROWS = 10
_BATCH = 1 << 17  # rows of a batch
_TOO_LARGE = 2**1024 - 2**970  # the least integer that no float is near enough to


class EncodedRows(ABC):
    """Rows as an engine encodes them, which do not change.

    Attributes:
        relation: Their columns.
        dictionary: What they are encoded with.
    """

    def __init__(self, relation: Relation, dictionary: Dictionary) -> None:
        self.relation, self.dictionary = relation, dictionary

    @abstractmethod
    def count(self) -> int:
        """How many rows these are."""

    @abstractmethod
    def chunks(self) -> Iterator[Batch]:
        """The rows, some at a time; each batch is valid until the next step."""

    @abstractmethod
    def found(self, row: Batch) -> bool:
        """Whether an encoded row is among them."""

    def knows(self, symbol: str) -> bool:
        """Whether a symbol may occur: looking a row up must not add its symbols to a dictionary that holds them all."""
        return self.dictionary.lookup(symbol) >= 0

    def decoded(self, batch: Batch) -> list[pa.ChunkedArray]:
        """The columns of some of the rows."""
        return [decode_arrow(batch[i], type_, self.dictionary) for i, type_ in enumerate(self.relation.types)]

    @property
    def title(self) -> str:
        """What a table of them is headed with."""
        return f"{self.relation.name}: {self.count():,} facts"


class Tabular(ABC):
    """Rows with named and typed columns. Iteration is in no particular order."""

    @abstractmethod
    def _rows(self) -> EncodedRows:
        """The rows as they are now; asked for once by each call, which so sees one version of them."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return _names(self._rows())

    def __len__(self) -> int:
        return self._rows().count()

    def __iter__(self) -> Iterator[Row]:
        rows = self._rows()
        yield from decoded_rows(rows.chunks(), rows.relation.types, rows.dictionary)

    def __contains__(self, row: object) -> bool:
        rows = self._rows()
        if not isinstance(row, tuple) or not suits(row, rows.relation):
            return False
        fact = [
            _as_held(value) if type_ is Type.TERM else value
            for value, type_ in zip(row, rows.relation.types, strict=True)
        ]
        if any(isinstance(value, str) and not (is_unicode(value) and rows.knows(value)) for value in fact):
            return False
        return rows.found(encode_rows([fact], rows.relation.types, rows.dictionary))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow record batches, one after the other: they are never all in memory."""
        import pyarrow as pa

        from evermat.io import arrow_schema, nullary

        rows = self._rows()
        if not rows.relation.columns:
            yield from nullary(present=rows.count() > 0).to_batches()
            return
        schema = arrow_schema(rows.relation)
        for chunk in rows.chunks():
            for first in range(0, chunk.shape[1], _BATCH):
                columns = rows.decoded(chunk[:, first : first + _BATCH])
                yield from pa.Table.from_arrays(columns, schema=schema).to_batches()

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return arrow_table(self._rows())

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame; needs polars."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """The rows as a DataFrame of the caller's SparkSession; an `unsigned` is a decimal there."""
        check_session("spark", spark)
        from evermat.spark import to_frame

        rows = self._rows()
        return to_frame(spark, arrow_table(rows), rows.relation)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface: DuckDB, polars, pandas and others read the rows directly."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        rows = self._rows()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in _names(rows))
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row) + "</tr>"
            for row in islice(decoded_rows(rows.chunks(), rows.relation.types, rows.dictionary), _SHOWN_ROWS)
        )
        caption = f"<caption>{html.escape(rows.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _as_held(value: Any) -> str:
    """A term as relations contain it; a text that is none, which an old state may contain, as it is."""
    try:
        return term_of(value)
    except MalformedTermError:
        return str(value)


def _names(rows: EncodedRows) -> list[str]:
    return [column.name for column in rows.relation.columns]


def arrow_table(rows: EncodedRows) -> pa.Table:
    """Rows as an Arrow table."""
    import pyarrow as pa

    from evermat.io import arrow_schema, nullary

    relation = rows.relation
    if not relation.columns:
        return nullary(present=rows.count() > 0)
    batch = np.empty((relation.arity, rows.count()), np.int64)
    first = 0
    for chunk in rows.chunks():
        batch[:, first : (first := first + chunk.shape[1])] = chunk
    return pa.Table.from_arrays(rows.decoded(batch), schema=arrow_schema(relation))


def decoded_rows(batches: Iterable[Batch], types: Sequence[Type], dictionary: Dictionary) -> Iterator[Row]:
    """The rows of batches as values."""
    for batch in batches:
        yield from decode_rows(batch, types, dictionary)


def suits(row: tuple[Any, ...], relation: Relation) -> bool:
    """Whether a row has the columns of a relation, each with a value of its type."""
    return len(row) == relation.arity and all(map(is_value, row, relation.types))


def is_value(value: Any, type_: Type) -> bool:
    """Whether a Python value is one of a type."""
    if type_ is Type.SYMBOL:
        return isinstance(value, str) and (value.isascii() or is_unicode(value)) and not is_term(value)
    if type_ is Type.TERM:
        return is_term(value) or isinstance(value, str)
    if isinstance(value, bool | np.bool_):
        return False
    if type_ is Type.FLOAT:
        if isinstance(value, int):
            return -_TOO_LARGE < value < _TOO_LARGE
        return isinstance(value, float | np.floating | np.integer) and not math.isnan(value)
    low, high = RANGES[type_]
    return isinstance(value, int | np.integer) and low <= int(value) <= high
