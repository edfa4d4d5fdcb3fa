"""Which facts a literal reads: rows of a table, or a domain of facts.

The storage paper has the domains I, Δ and I ∪ Δ. With deletion there are three kinds of facts during an update: those that
hold before and after it, those that hold only before, those that hold only after; and likewise in a round of a stratum that is computed from
scratch, where the facts of the last round are Δ. A *domain* is any of them together; each kind has one state word, so that a view over states is
a domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from evermat.columns.storage.arrays import Batch, Mask, Rows, Truth
from evermat.columns.storage.readable_table import ReadableTable
from evermat.columns.storage.table import ADDED, DELETED, MATERIALISED, STATES


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


def contains(table: ReadableTable, batch: Batch, n: int, selection: Selection) -> Mask:
    """Which tuples are among the selected rows."""
    lo, hi, truth, _ = selection
    if lo == 0 and hi >= table.count:
        return table.contains(batch, truth, n)
    rows = table.find(batch, n)
    present = (rows >= lo) & (rows < hi)
    if truth is not None and table.count:
        present &= truth[table.state[rows]] != 0
    return present


def count_rows(table: ReadableTable, selection: Selection, *, stop_at_first: bool) -> int:
    """How many rows are selected, or 1 if any is."""
    lo, hi, truth, _ = selection
    if truth is None:
        return max(hi - lo, 0)
    if stop_at_first:
        return int(any(len(rows) for rows in table.scan(truth, lo, hi)))
    return table.count_between(lo, hi, truth)


#: kinds of facts: before and after, only before, only after
KEPT: Final = 1
LOST: Final = 2
GAINED: Final = 4
BEFORE, AFTER, ANY = KEPT | LOST, KEPT | GAINED, KEPT | LOST | GAINED
#: the state word of each kind, in an update
IN_UPDATE: Mapping[int, int] = {KEPT: MATERIALISED, LOST: MATERIALISED | DELETED, GAINED: ADDED}


def domain_of(truth: Truth, states: Mapping[int, int] = IN_UPDATE) -> int:
    """The kinds of facts that satisfy a view over states."""
    return sum(kind for kind, state in states.items() if truth[state])


@lru_cache
def rows_in(domain: int) -> Truth:
    """Which states of rows of a plain table are in a domain."""
    states = np.arange(STATES, dtype=np.uint32)
    before = (states & MATERIALISED) != 0
    after = (before & ((states & DELETED) == 0)) | ((states & ADDED) != 0)
    inside = np.zeros(STATES, np.bool_)
    for kind, holds in ((KEPT, before & after), (LOST, before & ~after), (GAINED, after & ~before)):
        if domain & kind:
            inside |= holds
    return inside.astype(np.uint8)
