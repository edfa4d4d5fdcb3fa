"""What a reader has captured of a table: its rows and their states at one moment, whatever becomes of the table."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from evermat.columns.storage.arrays import Batch, Mask, Rows, as_batch
from evermat.columns.storage.membership import Bitmap, DirectRows, Membership, Tally
from evermat.columns.storage.readable_table import ReadableTable
from evermat.columns.storage.table import Table

if TYPE_CHECKING:
    from evermat.columns.schemes.scheme import Scheme


class FrozenTable(ReadableTable):
    """The rows of a table when it was captured, for any number of threads.

    The table's rows never change, and it leaves the array of states to those who captured it before it changes what they may see. Rows are found
    by what the table finds its own by, which may know later rows: they are passed by. Where that is not possible, because the table has
    become another one or cannot find rows while it is written to, rows are found by what is built for this purpose.
    """

    def __init__(self, table: Table) -> None:
        """Captures a table, without its scheme; the caller holds its latch."""
        self.arity, self.count = table.arity, table.count
        self.scheme: Scheme | None = None
        self._table, self.indexed = table, table.indexed
        self.rows, self.state = table.rows, table.state  # after the number of rows: they may have become more meanwhile
        self._own: Table | None = None
        self._building = Lock()

    def find(self, batch: Batch, n: int | None = None) -> Rows:
        batch = as_batch(batch)
        n = batch.shape[1] if n is None else n
        members = self._members()
        if members is None:
            return self._own_table().find(batch, n)
        out = np.empty(n, np.int32)
        members.find(self, batch, n, out)
        return out

    def direct_rows(self) -> tuple[Any, Any, Any] | None:
        members = self._members()
        return members.arrays if isinstance(members, DirectRows) else None

    def _test(self, batch: Batch, n: int) -> Mask | None:
        table, latch = self._table, self._table.latch
        with latch.lock:
            members = table.members
            if isinstance(members, Bitmap) and not latch.writing and self._is_current() and table.count == self.count:
                return members.contains(batch, n)
        return None

    def _is_current(self) -> bool:
        """Whether the table has these rows, and perhaps more."""
        return self._table.indexed is self.indexed

    def _members(self) -> Membership | None:
        """What finds rows of the table; None if it finds none, or not these."""
        if self._own is not None:
            return None
        table, latch = self._table, self._table.latch
        members = table.members
        if isinstance(members, Bitmap | Tally):
            with latch.lock:
                if latch.writing:
                    latch.want_rows(table)
                    return None
                table.find_rows()
                members = table.members
        return members if self._is_current() else None

    def _own_table(self) -> Table:
        """A table of these rows alone."""
        with self._building:
            if self._own is None:
                made = Table(self.arity, dense=False)
                made.adopt(self.rows[: self.count], self.state[: self.count], made)
                self._own = made
            return self._own
