"""How often each row of a table has been derived."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import dense_set as dense
from evermat.columns.kernels import hash_set as tuples
from evermat.columns.kernels import rows as row_kernels
from evermat.columns.storage.arrays import Batch, Numbers, Rows, as_rows, lengthened
from evermat.columns.storage.table import Table

Weights = Numbers
Counts = npt.NDArray[np.int32] | Numbers
Touched: TypeAlias = tuple[Rows, Counts]
"""Rows that were touched for the first time, and their counts before."""

INT32_MAX = int(np.iinfo(np.int32).max)
INT64_MAX = int(np.iinfo(np.int64).max)
_ONES: Weights = np.empty(0, np.int64)


class CountError(RuntimeError):
    """A count would become negative, or larger than 64 bits hold: an error in the engine, not in its input."""


class Counter:
    """One count per row of a table, 0 for rows never counted.

    Counts are int32 until one would exceed `bound`; then all become int64. Nothing wraps. `add` and `subtract`
    work through the rows in order; when one raises, those before the failing one have been counted.

    During an update rows can be *marked* as touched, in the count itself: so that learning which rows are touched for
    the first time costs no further look into memory. Rows are marked by `touch` only, and until `settle`.
    """

    def __init__(self, table: Table, *, bound: int = INT32_MAX) -> None:
        self.table = table
        self._bound = bound
        self._counts: Counts = np.zeros(0, np.int32)

    @property
    def wide(self) -> bool:
        return self._counts.dtype == np.int64

    @property
    def nbytes(self) -> int:
        """Bytes in use, for the rows that the table has."""
        return min(len(self._counts), self.table.count) * self._counts.itemsize

    def add(self, rows: Rows, weights: Weights | None = None) -> None:
        """Counts each listed row once more, or `weights[i]` times more; a row may be listed repeatedly."""
        self._change(rows, weights, 1)

    def subtract(self, rows: Rows, weights: Weights | None = None) -> None:
        self._change(rows, weights, -1)

    def add_tuples(self, batch: Batch, n: int, weights: Weights | None) -> None:
        """`add` for tuples; those that are not in the table are appended with state 0."""
        done = 0 if weights is not None else self.table.tally(batch, n, self)
        if done == 0 and weights is None and (arrays := self._direct(n)) is not None:
            done, self.table.count = dense.count_direct(batch, n, *arrays, self._bound, tuples.scratch())
        if done < n:
            self._change(self.table.locate(batch[:, done:n], tallying=True), weights, 1)

    def take_tally(self, rows: Any, count: int, high: Any, tally: Any) -> None:
        if len(self._counts) < self.table.count:
            self._grow()
        while (row := dense.read_tally(rows, count, high, tally, tuples.scratch(), self._counts, self._most)) < count:
            self._fail_or_widen(row, 1)

    def touch_tuples(self, batch: Batch, n: int, weights: Weights | None, sign: int) -> Touched:
        """`touch` for tuples; those that are not in the table are appended with state 0."""
        if weights is not None or (arrays := self._direct(n)) is None:
            return self.touch(self.table.locate(batch, n), weights, sign)
        touched, before = np.empty(n, np.int32), np.empty(n, np.int32)
        done, self.table.count, m = dense.touch_direct(
            batch, n, *arrays, self._bound, tuples.scratch(), sign, touched, before
        )
        if done == n:
            return touched[:m], before[:m]
        more, before_more = self.touch(self.table.locate(batch[:, done:n]), None, sign)
        return np.concatenate([touched[:m], more]), np.concatenate([before[:m], before_more])

    def _direct(self, n: int) -> tuple[Any, ...] | None:
        """What kernels need to count n tuples without looking for their rows first, where facts are dense."""
        arrays = None if self.wide else self.table.direct(n)
        if arrays is None:
            return None
        if len(self._counts) < len(self.table.rows):
            self._grow()
        return *arrays, self._counts

    def touch(self, rows: Rows, weights: Weights | None, sign: int) -> Touched:
        """Counts like `add` (sign 1) or `subtract` (-1), and mark; the rows that were not marked, and their counts before."""
        rows, weights = self._checked(rows, weights)
        touched = np.empty(len(rows), np.int32)
        before = np.empty(len(rows), self._counts.dtype)
        start, end, found = 0, len(rows), 0
        while start < end:
            start, more = row_kernels.touch_counts(
                self._counts, rows, weights, sign, start, self._most, touched[found:], before[found:]
            )
            found += more
            if start < end:
                self._fail_or_widen(rows[start], sign)
                before = before.astype(np.int64)
        return touched[:found], before[:found]

    def settle(self, rows: Rows) -> None:
        """Takes the marks off the rows."""
        row_kernels.settle_counts(self._counts, as_rows(rows))

    def restore(self, rows: Rows, counts: Counts) -> None:
        """Gives rows the counts that they had; they are not marked then."""
        if len(self._counts) < self.table.count:
            self._grow()
        if not self.wide and len(counts) and int(counts.max()) > self._bound:
            self._counts = self._counts.astype(np.int64)
        self._counts[rows] = counts

    def get(self, rows: Rows) -> Numbers:
        self.table.end_tally()
        rows = as_rows(rows)
        out = np.empty(len(rows), np.int64)
        row_kernels.get_counts(self._counts, rows, out)
        return out

    def clear(self) -> None:
        self.table.end_tally()
        self._counts = np.zeros(0, np.int32)

    def _change(self, rows: Rows, weights: Weights | None, sign: int) -> None:
        rows, weights = self._checked(rows, weights)
        start, end = 0, len(rows)
        while start < end:
            start = row_kernels.add_counts(self._counts, rows, weights, sign, start, self._most)
            if start < end:
                self._fail_or_widen(rows[start], sign)

    def _checked(self, rows: Rows, weights: Weights | None) -> tuple[Rows, Weights]:
        """The arguments as kernels take them; there is a count for every row then."""
        self.table.end_tally()
        rows = as_rows(rows)
        if weights is None:
            weights = _ONES
        else:
            weights = np.require(weights, np.int64, ("C", "W"))
            if len(weights) != len(rows):
                raise ValueError("as many weights as rows are needed")
            if len(weights) and int(weights.min()) < 0:
                raise ValueError("weights must not be negative")
        if len(self._counts) < self.table.count:
            self._grow()
        return rows, weights

    @property
    def _most(self) -> int:
        return INT64_MAX if self.wide else self._bound

    def _fail_or_widen(self, row: int, sign: int) -> None:
        """A count would leave what can be held."""
        if sign < 0:
            raise CountError(f"the count of row {row} would become negative")
        if self.wide:
            raise CountError(f"the count of row {row} exceeds 64 bits")
        self._counts = self._counts.astype(np.int64)

    def _grow(self) -> None:
        # As far as the table has room: then both grow at the same times. Untouched pages cost nothing.
        self._counts = lengthened(self._counts, len(self.table.rows))
