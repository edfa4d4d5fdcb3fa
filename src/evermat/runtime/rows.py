"""Rows of a table as users see them: what facts of a relation and answers to a query have in common."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.encoding import decode_arrow, decode_rows, encode_rows
from evermat.columns.storage.selection import Selection, contains
from evermat.columns.storage.table import Table
from evermat.language import Relation, Row
from evermat.runtime.ingest import suits

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_SHOWN_ROWS = 10
_BATCH = 1 << 17  # rows of a batch


class Tabular(ABC):
    """Some rows of a table with named and typed columns. Iteration is in no particular order."""

    def __init__(self, relation: Relation, table: Table, dictionary: Dictionary) -> None:
        self._relation, self._table, self._dictionary = relation, table, dictionary

    @abstractmethod
    def _selection(self) -> Selection:
        """Which rows of the table these are, as things are now."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _title(self) -> str:
        """What a table of them is headed with."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self._relation.columns]

    def _chunks(self) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
        """The rows, some at a time; each is valid until the next step."""
        lo, hi, truth, _ = self._selection()
        for rows in self._table.scan(truth, lo, hi):
            yield self._table.take(rows)

    def __iter__(self) -> Iterator[Row]:
        for chunk in self._chunks():
            yield from decode_rows(chunk, self._relation.types, self._dictionary)

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, tuple) or not suits(row, self._relation):
            return False
        if any(isinstance(value, str) and self._dictionary.lookup(value) < 0 for value in row):
            return False  # asking must not make a symbol known
        batch = encode_rows([row], self._relation.types, self._dictionary)
        return self._found(batch)

    def _found(self, fact: np.ndarray[Any, np.dtype[np.int64]]) -> bool:
        """Whether a fact is among them."""
        return bool(contains(self._table, fact, 1, self._selection())[0])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Arrow batches with these columns, one after the other: never all rows at once."""
        import pyarrow as pa  # noqa: PLC0415

        from evermat.io import arrow_schema, nullary  # noqa: PLC0415

        if not self._relation.columns:
            yield from nullary(present=len(self) > 0).to_batches()
            return
        for chunk in self._chunks():
            for first in range(0, chunk.shape[1], _BATCH):
                part = chunk[:, first : first + _BATCH]
                columns = [decode_arrow(part[i], t, self._dictionary) for i, t in enumerate(self._relation.types)]
                yield from pa.Table.from_arrays(columns, schema=arrow_schema(self._relation)).to_batches()

    def to_arrow(self) -> pa.Table:
        """An Arrow table with these columns."""
        import pyarrow as pa  # noqa: PLC0415

        from evermat.io import arrow_schema, nullary  # noqa: PLC0415

        if not self._relation.columns:
            return nullary(present=len(self) > 0)
        rows = np.empty((self._relation.arity, len(self)), np.int64)
        first = 0
        for chunk in self._chunks():
            rows[:, first : (first := first + chunk.shape[1])] = chunk
        columns = [decode_arrow(rows[i], type_, self._dictionary) for i, type_ in enumerate(self._relation.types)]
        return pa.Table.from_arrays(columns, schema=arrow_schema(self._relation))

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """A polars data frame; needs polars."""
        import polars as pl  # noqa: PLC0415

        return pl.DataFrame(self.to_arrow())

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """A DataFrame of the caller's SparkSession; an `unsigned` is a decimal there."""
        from evermat.spark.dataframes import to_frame  # noqa: PLC0415

        return to_frame(spark, self.to_arrow(), self._relation)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface: DuckDB, polars, pandas and others read them directly."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        rows = [row for row, _ in zip(self, range(_SHOWN_ROWS), strict=False)]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(str(v))}</td>" for v in row) + "</tr>" for row in rows)
        more = f"<caption>{html.escape(self._title())}</caption>"
        return f"<table>{more}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
