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
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import hash_join as kernels
from evermat.columns.kernels import rows as row_kernels
from evermat.columns.kernels.hash_set import MAX_LOAD, scratch
from evermat.columns.storage.arrays import Batch, Mask, Numbers, Rows, Truth, as_batch, grown, lengthened
from evermat.core import ask_for, check_stop

if TYPE_CHECKING:
    from evermat.columns.storage.readable_table import ReadableTable

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
    """The rows from `base` on.

    Its arrays are extended or replaced by longer ones, links ahead of the heads that lead to them: a join reads them again for each chunk,
    heads first.
    """

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


class _Groups:
    """The groups of a table's rows and the rows of each group, for keys that are group numbers or for keys that are hashed.

    Invariants: rows below `bulk.end` are in the bulk, rows `bulk.end` … `seen` in the chains, the others not yet
    here; `recent.base == bulk.end`. Groups are 0 … `count`; with direct keys that bounds the keys seen.

    Readers use it while it grows: what belongs together is replaced by one assignment, and `seen` follows what it announces.
    """

    def __init__(self, *, direct: bool) -> None:
        self.direct = direct
        self.count = 0
        self.seen = 0
        empty = np.zeros(0, np.int32)
        self.tiers = (
            _Bulk(np.zeros(1, np.int32), np.zeros(kernels.PADDING, np.int32), 0),
            _Recent(0, np.zeros(1, np.int32), empty, empty),
        )
        # Never without slots: a search ends at an empty one.
        self.hash: tuple[Rows, npt.NDArray[np.uint32], int] = (np.zeros(32, np.int32), np.zeros(64, np.uint32), 6)

    @property
    def nbytes(self) -> int:
        (bulk, recent), (samples, slots, _) = self.tiers, self.hash
        arrays = (bulk.starts, bulk.segments, recent.heads, recent.links, recent.row_groups, samples)
        return sum(array.nbytes for array in arrays) + slots.nbytes

    def extend(self, table: ReadableTable, columns: Numbers, end: int, most: int) -> None:
        """Takes in the rows up to `end`; `most` is the greatest value of a direct key."""
        bulk, recent = self.tiers
        merge = end - bulk.end >= max(MERGE_AT_LEAST, MERGE_FRACTION * (bulk.end + self.count))
        self._find(table, columns, end, most, merge)
        if merge:
            self._merge(end)
        else:
            kernels.chain_rows(recent.row_groups, self.seen, end, recent.base, recent.heads, recent.links)
        self.seen = end

    def _find(self, table: ReadableTable, columns: Numbers, end: int, most: int, merge: bool) -> None:
        """Groups of the rows not yet seen, into `row_groups`; room for the groups and, for chains, the rows."""
        recent, rows, first = self.tiers[1], table.rows, self.seen
        size = end - recent.base
        recent.row_groups = grown(recent.row_groups, size)
        if size > len(recent.links) and not merge:
            recent.links = lengthened(recent.links, len(recent.row_groups))
        if self.direct:
            row_kernels.list_column(rows, int(columns[0]), first, end, recent.row_groups[first - recent.base : size])
            self.count = most + 1
        else:
            while first < end:
                samples, slots, bits = self.hash
                limit = min(len(samples), int(MAX_LOAD * len(slots)))
                first, self.count = kernels.assign_groups(
                    rows, columns, first, end, samples, self.count, limit,
                    slots, bits, scratch(), recent.row_groups, recent.base,
                )  # fmt: skip
                if first < end:
                    self._grow_hash(rows, columns)
        if not merge:
            recent.heads = grown(recent.heads, self.count)

    def _grow_hash(self, rows: npt.NDArray[np.int32] | Numbers, columns: Numbers) -> None:
        capacity = max(64, 2 * self.count)
        bits = math.ceil((capacity + 1) / MAX_LOAD - 1).bit_length()
        ask_for(4 << bits)
        samples, slots = lengthened(self.hash[0], capacity), np.zeros(1 << bits, np.uint32)
        kernels.fill_group_slots(rows, columns, samples, self.count, slots, bits)
        self.hash = samples, slots, bits

    def _merge(self, end: int) -> None:
        ask_for(4 * (end + self.count))
        old, recent = self.tiers
        # Groups that only older rows have may lie beyond those of the newer ones.
        starts = np.zeros(self.count + 2, np.int32)
        segments = np.empty(end + kernels.PADDING, np.int32)
        kernels.merge_rows(
            old.starts, old.segments, len(old.starts) - 1, recent.row_groups, recent.base, end - recent.base,
            starts, segments,
        )  # fmt: skip
        empty = np.zeros(0, np.int32)
        self.tiers = _Bulk(starts[:-1], segments, end), _Recent(end, np.zeros(self.count, np.int32), empty, empty)


class Keys:
    """What indexes on the same columns of the same rows share: rows are taken in as they are asked for, by one thread at a time."""

    def __init__(self, columns: tuple[int, ...]) -> None:
        self.columns: Numbers = np.array(columns, np.int64)
        self.groups = _Groups(direct=len(columns) == 1)
        self._least = 0
        self._most = -1
        self._building = Lock()

    @property
    def nbytes(self) -> int:
        return self.groups.nbytes

    def refresh(self, table: ReadableTable) -> None:
        """Takes in the rows that a table has, or had when a reader captured it, in addition."""
        with self._building:
            groups, end = self.groups, table.count
            if end <= groups.seen:
                return
            if len(self.columns) == 1:
                groups = self._chosen(groups, table, end)
            groups.extend(table, self.columns, end, self._most)
            self.groups = groups

    def _chosen(self, groups: _Groups, table: ReadableTable, end: int) -> _Groups:
        """The groups to extend: others that are empty, if it changes whether keys are their own groups.

        It changes back from hashed to direct only when there are a quarter more rows, as rebuilding costs all.
        """
        least, most = kernels.span_of_column(table.rows, int(self.columns[0]), groups.seen, end)
        self._least = min(self._least, least)
        self._most = max(self._most, most)
        dense = self._least >= 0 and self._most < max(DIRECT_ALWAYS, DIRECT_PER_ROW * end)
        if dense == groups.direct:
            return groups
        if dense and end < (1 + MERGE_FRACTION) * groups.tiers[0].end + MERGE_AT_LEAST:
            return groups
        return _Groups(direct=dense)


class Index:
    """An index on `columns` of `table`, in this order.

    What a reader has captured of a table is read through the index of the table itself: rows that it does not have are left out.
    """

    def __init__(self, table: ReadableTable, columns: tuple[int, ...], keys: Keys | None = None) -> None:
        if not columns:
            raise ValueError("an index needs at least one column")
        self.table, self.columns = table, columns
        self._keys = Keys(columns) if keys is None else keys

    def refresh(self) -> None:
        """Takes in the rows appended since the last use."""
        self._keys.refresh(self.table)

    # ── Use ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _groups_of(self, keys: Batch, n: int | None, lo: int, hi: int) -> tuple[Rows, _Groups] | None:
        """The group of each of n keys, -1 where there is none, and what has their rows; None if there are no keys or no rows in lo … hi."""
        keys = as_batch(keys)
        n = keys.shape[1] if n is None else n
        if n == 0 or lo >= hi:
            return None
        if self._keys.groups.seen < hi:  # rows beyond `hi` would only have to be skipped
            self.refresh()
        groups = self._keys.groups
        out = np.empty(n, np.int32)
        if groups.direct:
            kernels.groups_direct(keys, n, groups.count, out)
        else:
            samples, slots, bits = groups.hash
            kernels.groups_hashed(
                keys, n, self.table.rows, hi, self._keys.columns, samples, slots, bits, scratch(), out
            )
        return out, groups

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
        found = self._groups_of(keys, n, lo, hi)
        return iter(()) if found is None else self._join(found[0], *found[1].tiers, view, lo, hi, chunk)

    def _join(
        self, groups: Rows, bulk: _Bulk, recent: _Recent, view: Truth | None, lo: int, hi: int, chunk: int
    ) -> Iterator[tuple[Rows, Rows]]:
        table, n = self.table, len(groups)
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
        found = self._groups_of(keys, n, lo, hi)
        if found is None:
            return np.zeros(keys.shape[1] if n is None else n, np.int64)
        groups, (bulk, recent) = found[0], found[1].tiers
        out = np.empty(len(groups), np.int64)
        done = 0
        while done < len(groups):
            done = kernels.count_matches(
                groups, done, len(groups), bulk.starts, bulk.segments, recent.heads, recent.links, recent.base,
                lo, hi, self.table.state, _EVERY if view is None else view, most, BUDGET, out,
            )  # fmt: skip
            check_stop()
        return out
