"""What tables have in common with what readers have captured of them: rows that never change, and a state word of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import rows as row_kernels
from evermat.columns.storage.arrays import EVERY_STATE, Batch, Mask, Numbers, Rows, Truth, as_batch, as_rows
from evermat.columns.storage.index import Index, Keys
from evermat.core import ask_for, check_stop

if TYPE_CHECKING:
    from evermat.columns.schemes.scheme import Scheme

_COUNTED = 1 << 24  # rows that are counted between two looks at limits


class ReadableTable(ABC):
    """A table, for reading.

    Attributes:
        count: How many rows there are: what lies behind them in `rows` and `state` is not part of them.
        indexed: What indexes are made of, by columns. A table and those that have captured its rows share it; a table that is cleared gets another.
        scheme: Where it is not None, the rows are not the relation's facts but its inputs, from which these follow; see `columns.schemes`.
    """

    arity: int
    count: int
    rows: npt.NDArray[np.int32] | Numbers
    state: npt.NDArray[np.uint16]
    scheme: Scheme | None
    indexed: dict[tuple[int, ...], Keys]

    def __len__(self) -> int:
        return self.count

    @property
    def wide(self) -> bool:
        return self.rows.dtype == np.int64

    # ── Finding ──────────────────────────────────────────────────────────────────────────────────────────────────

    def index(self, columns: tuple[int, ...]) -> Index:
        """The index on these columns, built when first asked for."""
        keys = self.indexed.get(columns)
        if keys is None:
            keys = self.indexed.setdefault(columns, Keys(columns))  # unless another thread was faster
        return Index(self, columns, keys)

    def has_index(self, columns: tuple[int, ...]) -> bool:
        """Whether an index on these columns was asked for."""
        return columns in self.indexed

    @abstractmethod
    def find(self, batch: Batch, n: int | None = None) -> Rows:
        """Row of each tuple, -1 where it is absent."""

    @abstractmethod
    def direct_rows(self) -> tuple[Any, Any, Any] | None:
        """Bounds of values, and the rows of all tuples within them, for kernels that find dense facts without the table; None if there is no such list.

        There may be later rows among them, from `count` on.
        """

    @abstractmethod
    def _test(self, batch: Batch, n: int) -> Mask | None:
        """Whether each tuple has a row, where that is known without knowing rows; None if it is not."""

    def contains(self, batch: Batch, view: Truth | None = None, n: int | None = None) -> Mask:
        """Whether each tuple is in the table, with a state that satisfies the view."""
        batch = as_batch(batch)
        n = batch.shape[1] if n is None else n
        if view is None and (tested := self._test(batch, n)) is not None:
            return tested
        rows = self.find(batch, n)
        present = np.empty(n, np.bool_)
        state = self.state
        row_kernels.test_rows(state, rows, 0, len(state), EVERY_STATE if view is None else view, present)
        return present

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────

    def filter(self, rows: Rows, view: Truth | None) -> Rows:
        """Those of the rows that satisfy the view, in order; the argument itself if there is no view."""
        if view is None:
            return rows
        rows = as_rows(rows)
        out = np.empty(len(rows), np.int32)
        return out[: row_kernels.filter_rows(self.state, rows, view, out)]

    def scan(self, view: Truth | None, first: int = 0, end: int | None = None, chunk: int = 1 << 17) -> Iterator[Rows]:
        """The rows first … end that satisfy the view, ascending, in chunks (each a new array).

        `end` is fixed at the first step; states are read as the chunks are made.
        """
        end = self.count if end is None else min(end, self.count)
        while first < end:
            if view is None:
                stop = min(end, first + chunk)
                yield np.arange(first, stop, dtype=np.int32)
                first = stop
                continue
            out = np.empty(min(chunk, end - first), np.int32)
            first, m = row_kernels.scan_rows(self.state, first, end, view, out)
            if m:
                yield out[:m]

    def count_between(self, first: int, end: int, view: Truth) -> int:
        """How many of the rows first … end satisfy the view."""
        count, end = 0, min(end, self.count)
        for start in range(first, end, _COUNTED):
            check_stop()
            count += row_kernels.count_rows(self.state, start, min(start + _COUNTED, end), view)
        return count

    def gather(self, column: int, rows: Rows, out: Batch, to: int) -> None:
        """out[to, i] = the column's value in row rows[i]."""
        row_kernels.gather_rows(self.rows, column, rows, out, to)

    def take(self, rows: Rows) -> Batch:
        """The tuples of the rows, as a batch."""
        rows = as_rows(rows)
        ask_for(8 * self.arity * len(rows))
        out = np.empty((self.arity, len(rows)), np.int64)
        for column in range(self.arity):
            row_kernels.gather_rows(self.rows, column, rows, out, column)
        return out
