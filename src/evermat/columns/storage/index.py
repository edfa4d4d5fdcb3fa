"""The rows of a key: an index on some columns of a table.

Keys are mapped to *groups* (see `kernels.hash_join`): directly where the key is one column of fairly dense nonnegative
numbers, else through a hash. The rows of a group lie in a sorted bulk part and in a chain of recent rows; the recent
ones are merged into the bulk when there are many, so that the cost per row is constant in the long run and a few
new rows cost only what they touch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import hash_join as kernels
from evermat.columns.kernels.hash_set import MAX_LOAD, scratch
from evermat.columns.storage.arrays import Batch, Mask, Numbers, Rows, Truth, as_batch, grown, lengthened
from evermat.columns.storage.table import Table
from evermat.core import ask_for, check_stop

CHUNK = 1 << 16
#: recent rows are merged when they are this fraction of all that a merge has to read, or at least so many
MERGE_FRACTION = 0.25
MERGE_AT_LEAST = 4096
#: keys are used as group numbers if they are below this, or below so many times the number of rows
DIRECT_ALWAYS = 1 << 16
DIRECT_PER_ROW = 4
#: rows that a kernel looks at between two looks at limits
BUDGET = 1 << 25

_INT64_MAX = int(np.iinfo(np.int64).max)
_EVERY: Truth = np.empty(0, np.uint8)


@dataclass
class _Bulk:
    """Never changed once made: a join that has begun keeps its own."""

    starts: npt.NDArray[np.int32]
    segments: npt.NDArray[np.int32]
    end: int  # the rows below it are here


@dataclass
class _Recent:
    """The rows from `base` on. Its arrays are extended or replaced; a join reads them again for each chunk."""

    base: int
    heads: npt.NDArray[np.int32]
    links: npt.NDArray[np.int32]
    row_groups: npt.NDArray[np.int32]


class _Buffers:
    """Output buffers for joins; a join has its own while it runs, as joins may be nested."""

    def __init__(self) -> None:
        self._free: dict[int, list[tuple[Rows, Rows]]] = {}

    def acquire(self, chunk: int) -> tuple[Rows, Rows]:
        free = self._free.get(chunk)
        try:
            if free:
                return free.pop()
        except IndexError:  # another thread took the last one
            pass
        size = chunk + kernels.PADDING
        return np.empty(size, np.int32), np.empty(size, np.int32)

    def release(self, chunk: int, buffers: tuple[Rows, Rows]) -> None:
        free = self._free.setdefault(chunk, [])
        if len(free) < 16:
            free.append(buffers)


_buffers = _Buffers()


class Index:
    """An index on `columns` of `table`, in this order.

    Invariants: rows below `_bulk.end` are in the bulk, rows `_bulk.end` … `_seen` in the chains, the others not yet
    in the index; `_recent.base == _bulk.end`. Groups are 0 … `_groups`; with direct keys that bounds the keys seen.
    """

    def __init__(self, table: Table, columns: tuple[int, ...]) -> None:
        if not columns:
            raise ValueError("an index needs at least one column")
        self.table = table
        self.columns = columns
        self._column_array: Numbers = np.array(columns, np.int64)
        self._direct = len(columns) == 1
        self._least = 0
        self._most = -1
        self._clear()

    def _clear(self) -> None:
        self._groups = 0
        self._seen = 0
        self._bulk = _Bulk(np.zeros(1, np.int32), np.zeros(kernels.PADDING, np.int32), 0)
        self._recent = _Recent(0, np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32))
        # Never without slots: a search ends at an empty one.
        self._samples = np.zeros(32, np.int32)
        self._slots = np.zeros(64, np.uint32)
        self._slot_bits = 6

    @property
    def nbytes(self) -> int:
        bulk, recent = self._bulk, self._recent
        arrays = (bulk.starts, bulk.segments, recent.heads, recent.links, recent.row_groups, self._samples)
        return sum(array.nbytes for array in arrays) + self._slots.nbytes

    # ── Catching up with the table ───────────────────────────────────────────────────────────────────────────────

    def refresh(self) -> None:
        """Takes in the rows appended since the last use."""
        end = self.table.count
        if end == self._seen:
            return
        if len(self.columns) == 1:
            self._choose_groups(end)
        bulk = self._bulk
        threshold = max(MERGE_AT_LEAST, MERGE_FRACTION * (bulk.end + self._groups))
        merge = end - bulk.end >= threshold
        self._find_groups(end, merge)
        if merge:
            self._merge(end)
        else:
            recent = self._recent
            kernels.chain_rows(recent.row_groups, self._seen, end, recent.base, recent.heads, recent.links)
        self._seen = end

    def _choose_groups(self, end: int) -> None:
        """Decides whether keys are their own groups, and rebuilds the index if that changes.

        It changes back from hashed to direct only when there are a quarter more rows, as rebuilding costs all.
        """
        least, most = kernels.span_of_column(self.table.rows, self.columns[0], self._seen, end)
        self._least = min(self._least, least)
        self._most = max(self._most, most)
        dense = self._least >= 0 and self._most < max(DIRECT_ALWAYS, DIRECT_PER_ROW * end)
        if dense == self._direct:
            return
        if dense and end < (1 + MERGE_FRACTION) * self._bulk.end + MERGE_AT_LEAST:
            return
        self._clear()
        self._direct = dense

    def _find_groups(self, end: int, merge: bool) -> None:
        """Groups of the rows not yet seen, into `row_groups`; room for the groups and, for chains, the rows."""
        recent, rows, first = self._recent, self.table.rows, self._seen
        size = end - recent.base
        recent.row_groups = grown(recent.row_groups, size)
        if size > len(recent.links) and not merge:
            recent.links = lengthened(recent.links, len(recent.row_groups))
        if self._direct:
            recent.row_groups[first - recent.base : size] = rows[first:end, self.columns[0]]
            self._groups = self._most + 1
        else:
            while first < end:
                limit = min(len(self._samples), int(MAX_LOAD * len(self._slots)))
                first, self._groups = kernels.assign_groups(
                    rows, self._column_array, first, end, self._samples, self._groups, limit,
                    self._slots, self._slot_bits, scratch(), recent.row_groups, recent.base,
                )  # fmt: skip
                if first < end:
                    self._grow_hash()
        if not merge:
            recent.heads = grown(recent.heads, self._groups)

    def _grow_hash(self) -> None:
        capacity = max(64, 2 * self._groups)
        bits = math.ceil((capacity + 1) / MAX_LOAD - 1).bit_length()
        ask_for(4 << bits)
        self._samples = lengthened(self._samples, capacity)
        self._slot_bits, self._slots = bits, np.zeros(1 << bits, np.uint32)
        kernels.fill_group_slots(
            self.table.rows, self._column_array, self._samples, self._groups, self._slots, self._slot_bits
        )

    def _merge(self, end: int) -> None:
        ask_for(4 * (end + self._groups))
        old, recent = self._bulk, self._recent
        # Groups that only older rows have may lie beyond those of the newer ones.
        starts = np.zeros(self._groups + 2, np.int32)
        segments = np.empty(end + kernels.PADDING, np.int32)
        kernels.merge_rows(
            old.starts, old.segments, len(old.starts) - 1, recent.row_groups, recent.base, end - recent.base,
            starts, segments,
        )  # fmt: skip
        self._bulk = _Bulk(starts[:-1], segments, end)
        empty = np.zeros(0, np.int32)
        self._recent = _Recent(end, np.zeros(self._groups, np.int32), empty, empty)

    # ── Use ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _groups_of(self, keys: Batch, n: int | None, lo: int, hi: int) -> Rows | None:
        """The group of each of n keys, -1 where there is none; None if there are no keys or no rows in lo … hi."""
        keys = as_batch(keys)
        n = keys.shape[1] if n is None else n
        if n == 0 or lo >= hi:
            return None
        if self._seen < hi:  # rows beyond `hi` would only have to be skipped
            self.refresh()
        out = np.empty(n, np.int32)
        if self._direct:
            kernels.groups_direct(keys, n, self._groups, out)
        else:
            kernels.groups_hashed(
                keys, n, self.table.rows, self._column_array, self._samples, self._slots, self._slot_bits,
                scratch(), out,
            )  # fmt: skip
        return out

    def join(
        self,
        keys: Batch,
        view: Truth | None = None,
        *,
        lo: int = 0,
        hi: int | None = None,
        n: int | None = None,
        chunk: int = CHUNK,
    ) -> Iterator[tuple[Rows, Rows]]:
        """Pairs (i, row): for each key i, ascending, the rows in lo … hi with that key that satisfy the view.

        They are yielded in chunks of at most `chunk` pairs, never empty, as two int32 arrays that are valid until the next
        step of this iterator. The keys and the rows that take part are fixed at the call; the table may grow while
        the iterator runs. States are read as the chunks are made.
        """
        hi = self.table.count if hi is None else min(hi, self.table.count)
        groups = self._groups_of(keys, n, lo, hi)
        return iter(()) if groups is None else self._join(groups, view, lo, hi, chunk)

    def _join(self, groups: Rows, view: Truth | None, lo: int, hi: int, chunk: int) -> Iterator[tuple[Rows, Rows]]:
        bulk, recent, table, n = self._bulk, self._recent, self.table, len(groups)
        cursor = np.zeros(5, np.int64)
        buffers = out_i, out_row = _buffers.acquire(chunk)
        try:
            while cursor[0] < n:
                found = bulk.starts, bulk.segments, recent.heads, recent.links, recent.base
                if view is None:
                    m = kernels.join_all(groups, n, cursor, *found, lo, hi, out_i, out_row)
                else:
                    m = kernels.join_view(groups, n, cursor, *found, lo, hi, table.state, view, BUDGET, out_i, out_row)
                check_stop()
                if m:
                    yield out_i[:m], out_row[:m]
        finally:
            _buffers.release(chunk, buffers)

    def exists(
        self, keys: Batch, view: Truth | None = None, *, lo: int = 0, hi: int | None = None, n: int | None = None
    ) -> Mask:
        """Whether there is a row in lo … hi with each key that satisfies the view; stops at the first."""
        found: Mask = self.counts(keys, view, lo=lo, hi=hi, n=n, most=1) != 0
        return found

    def counts(
        self,
        keys: Batch,
        view: Truth | None = None,
        *,
        lo: int = 0,
        hi: int | None = None,
        n: int | None = None,
        most: int = _INT64_MAX,
    ) -> Numbers:
        """Number of rows in lo … hi with each key that satisfy the view, counted up to `most`."""
        hi = self.table.count if hi is None else min(hi, self.table.count)
        groups = self._groups_of(keys, n, lo, hi)
        if groups is None:
            return np.zeros(keys.shape[1] if n is None else n, np.int64)
        bulk, recent = self._bulk, self._recent
        out = np.empty(len(groups), np.int64)
        done = 0
        while done < len(groups):
            done = kernels.count_matches(
                groups, done, len(groups), bulk.starts, bulk.segments, recent.heads, recent.links, recent.base,
                lo, hi, self.table.state, _EVERY if view is None else view, most, BUDGET, out,
            )  # fmt: skip
            check_stop()
        return out
