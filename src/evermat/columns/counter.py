"""How often each row of a table has been derived."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evermat.columns import kernels
from evermat.columns.table import Rows, Table, as_rows

Weights = npt.NDArray[np.int64]

INT32_MAX = int(np.iinfo(np.int32).max)
INT64_MAX = int(np.iinfo(np.int64).max)
_ONES: Weights = np.empty(0, np.int64)


class CountError(RuntimeError):
    """A count would become negative, or larger than 64 bits hold: an error in the engine, not in its input."""


class Counter:
    """One count per row of a table, 0 for rows never counted.

    Counts are int32 until one would exceed `bound`; then all become int64. Nothing wraps. `add` and `subtract`
    work through the rows in order; when one raises, those before the failing one have been counted.
    """

    def __init__(self, table: Table, *, bound: int = INT32_MAX) -> None:
        self.table = table
        self._bound = bound
        self._counts: npt.NDArray[np.int32] | npt.NDArray[np.int64] = np.zeros(0, np.int32)

    @property
    def wide(self) -> bool:
        """Whether counts are int64."""
        return self._counts.dtype == np.int64

    @property
    def nbytes(self) -> int:
        """Bytes in use, for the rows that the table has."""
        return min(len(self._counts), self.table.count) * self._counts.itemsize

    def add(self, rows: Rows, weights: Weights | None = None) -> None:
        """Count each listed row once more, or `weights[i]` times more; a row may be listed repeatedly."""
        self._change(rows, weights, 1)

    def subtract(self, rows: Rows, weights: Weights | None = None) -> None:
        """Count each listed row once less, or `weights[i]` times less."""
        self._change(rows, weights, -1)

    def get(self, rows: Rows) -> npt.NDArray[np.int64]:
        """Counts of the rows."""
        rows = as_rows(rows)
        out = np.empty(len(rows), np.int64)
        kernels.get_counts(self._counts, rows, out)
        return out

    def clear(self) -> None:
        """All counts become 0."""
        self._counts = np.zeros(0, np.int32)

    def _change(self, rows: Rows, weights: Weights | None, sign: int) -> None:
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
        start, end = 0, len(rows)
        while start < end:
            most = INT64_MAX if self.wide else self._bound
            start = kernels.add_counts(self._counts, rows, weights, sign, start, most)
            if start < end:
                if sign < 0:
                    raise CountError(f"the count of row {rows[start]} would become negative")
                if self.wide:
                    raise CountError(f"the count of row {rows[start]} exceeds 64 bits")
                self._counts = self._counts.astype(np.int64)

    def _grow(self) -> None:
        # As far as the table has room: then both grow at the same times. Untouched pages cost nothing.
        larger = np.zeros(len(self.table.rows), self._counts.dtype)
        larger[: len(self._counts)] = self._counts
        self._counts = larger
