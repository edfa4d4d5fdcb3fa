"""Rows of a table: which of them a literal reads."""

from __future__ import annotations

from typing import NamedTuple

from evermat.columns.storage.arrays import Batch, Mask, Rows, Truth
from evermat.columns.storage.table import Table


class Selection(NamedTuple):
    """Rows of a table: those in lo … hi whose state satisfies `truth` (None: all).

    Where a few rows are read one after the other, not looked up, they may be listed instead.
    """

    lo: int
    hi: int
    truth: Truth | None = None
    rows: Rows | None = None

    @property
    def is_range(self) -> bool:
        """Whether it is all rows from lo to hi: for listed ones these only count."""
        return self.truth is None and self.rows is None

    @property
    def empty(self) -> bool:
        """Whether there can be no row."""
        return self.hi <= self.lo


def contains(table: Table, batch: Batch, n: int, selection: Selection) -> Mask:
    """Which tuples are among the selected rows."""
    lo, hi, truth, _ = selection
    if lo == 0 and hi >= table.count:
        return table.contains(batch, truth, n)
    rows = table.find(batch, n)
    present = (rows >= lo) & (rows < hi)
    if truth is not None and table.count:
        present &= truth[table.state[rows]] != 0
    return present


def count_rows(table: Table, selection: Selection, *, stop_at_first: bool) -> int:
    """How many rows are selected, or 1 if any is."""
    lo, hi, truth, _ = selection
    if truth is None:
        return max(hi - lo, 0)
    count = 0
    for rows in table.scan(truth, lo, hi):
        count += len(rows)
        if stop_at_first:
            break
    return count
