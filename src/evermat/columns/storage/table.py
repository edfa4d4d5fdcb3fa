"""The facts of one relation: rows of integers, a state word per row, and the means to find a tuple.

Batches of tuples are handed over as int64 arrays of shape [arity, capacity], C-contiguous, so that each column is
contiguous; `n` says how many tuples are in it (default: all). A buffer that is reused is passed whole with `n`:
a slice of it would not be contiguous and would be copied. Row ids are int32 arrays. Results are new arrays
unless it says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import dense_set as dense
from evermat.columns.kernels import hash_set as tuples
from evermat.columns.kernels import rows as row_kernels

#: what outlives an update. Where equal terms are represented by one, what is given is told from its normal form, which is then E.
EXPLICIT, MATERIALISED, NORMAL = 1, 2, 4
#: D and A, what an update deletes and adds
DELETED, ADDED = 1 << 15, 1 << 14
#: for the other working sets of an update; where no terms are represented by others, NORMAL too
FREE = [1 << i for i in range(3, 14)]


if TYPE_CHECKING:
    from evermat.columns.schemes.scheme import Scheme
    from evermat.columns.storage.index import Index

Batch: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.int32]
#: truth value (0 or 1) of a view for each of the 65,536 states
Truth: TypeAlias = npt.NDArray[np.uint8]

STATES = 1 << 16
#: a bitmap may have so many bits per fact, and this many in any case
BITS_PER_FACT = 64
BITS_ALWAYS = 1 << 20
#: a list of the rows of all possible tuples may be this many times as long as there are facts; more so if it is short
PLACES_PER_FACT = 4
PLACES_PER_FACT_IF_SHORT = 32
SHORT = 1 << 22
#: a tally may have so many bytes per fact; as many as a bitmap has bits while it is small
TALLY_PER_FACT = 16
TALLY_ALWAYS = 1 << 24

_INT32 = np.iinfo(np.int32)
_INT64 = np.iinfo(np.int64)
_MAX_ROWS = int(_INT32.max)
_NO_ROWS: Rows = np.empty(0, np.int32)
_LEAST_SLOT_BITS = 6


def as_batch(batch: Batch) -> Batch:
    """The batch itself if kernels can take it, else a copy that they can."""
    if batch.dtype == np.int64 and batch.flags.carray:
        return batch
    return np.array(batch, dtype=np.int64, order="C", ndmin=2)


def as_rows(rows: Rows) -> Rows:
    """The row ids as kernels take them."""
    if rows.dtype == np.int32 and rows.flags.carray:
        return rows
    return np.array(rows, dtype=np.int32)


class TableFullError(MemoryError):
    """A relation has more facts than a row id can number."""


class _Form(Enum):
    """How a table may represent dense facts: not at all, by bits as long as nobody asks for rows, or by their rows."""

    HASH = auto()
    BITMAP = auto()
    ROWS = auto()


class Tallied(Protocol):
    """Whoever has tuples counted by a tally."""

    def take_tally(self, rows: Any, count: int, high: Any, tally: Any) -> None:
        """Takes over the counts of the first `count` rows."""


class Table:
    """The facts of one relation.

    Invariants: rows 0 … count are pairwise distinct tuples and never move or change; `rows` and `state` are
    replaced when the table grows or widens, so they are fetched anew after every operation that may append.
    Exactly one of four representations of tuple membership is in use, and covers all rows: `_words`, a bitmap over all
    possible tuples within [low, high], which does not know their rows; `_tally`, the same with a small number instead of a bit, while
    tuples are counted as they come; `_ids`, a list of the rows of all possible tuples; or `_slots`, a hash of rows.
    With a `scheme` the rows are not the relation's facts but its inputs, from which these follow; see `columns.schemes`.
    """

    def __init__(self, arity: int, *, dense: bool = True) -> None:
        self.arity = arity
        self.scheme: Scheme | None = None
        self.count = 0
        self.rows: npt.NDArray[np.int32] | npt.NDArray[np.int64] = np.empty((16, arity), np.int32)
        self.state: npt.NDArray[np.uint16] = np.zeros(16, np.uint16)
        self._indexes: dict[tuple[int, ...], Index] = {}
        self._form = _Form.BITMAP if dense else _Form.HASH
        self._words: npt.NDArray[np.uint64] | None = None
        self._ids: npt.NDArray[np.int32] | None = None
        self._tally: npt.NDArray[np.uint8] | None = None
        self._tallied: Tallied | None = None  # whose tally it is
        self._next_try = 64  # number of facts at which to look again whether a tally is possible
        self._next_look = 1  # number of facts at which to look again whether they are dense
        self._slots: npt.NDArray[np.uint32] = np.zeros(1 << _LEAST_SLOT_BITS, np.uint32)
        self._slot_bits = _LEAST_SLOT_BITS
        # What each column may hold without a change of representation or width.
        self._low: npt.NDArray[np.int64] = np.full(arity, _INT32.min, np.int64)
        self._high: npt.NDArray[np.int64] = np.full(arity, _INT32.max, np.int64)

    def clear(self) -> None:
        """Becomes empty. Whoever has noted rows or indexes must forget them."""
        self.__init__(self.arity, dense=self._form is not _Form.HASH)  # type: ignore[misc]

    def __len__(self) -> int:
        return self.count

    @property
    def wide(self) -> bool:
        """Whether rows are int64."""
        return self.rows.dtype == np.int64

    @property
    def nbytes(self) -> int:
        """Bytes in use: rows and states as far as they are filled, membership and indexes in full."""
        rows = self.count * (self.arity * self.rows.itemsize + self.state.itemsize)
        members = sum(part.nbytes for part in (self._words, self._tally, self._ids, self._slots) if part is not None)
        return rows + members + sum(index.nbytes for index in self._indexes.values())

    def index(self, columns: tuple[int, ...]) -> Index:
        """The index on these columns, made when first asked for."""
        found = self._indexes.get(columns)
        if found is None:
            from evermat.columns.storage.index import Index  # noqa: PLC0415  (indexes are over tables)

            found = self._indexes[columns] = Index(self, columns)
        return found

    # ── Finding and appending ────────────────────────────────────────────────────────────────────────────────────

    def add_new(self, batch: Batch, bits: int, n: int | None = None) -> tuple[int, int]:
        """Append the tuples that are not in the table, each once, with state `bits`: (first new row, how many)."""
        batch = as_batch(batch)
        first = self.count
        self._append(batch, batch.shape[1] if n is None else n, bits, _NO_ROWS)
        return first, self.count - first

    def locate(self, batch: Batch, n: int | None = None, *, tallying: bool = False) -> Rows:
        """Row of each tuple; absent ones are appended with state 0. With `tallying`, a tally may follow."""
        batch = as_batch(batch)
        n = batch.shape[1] if n is None else n
        self._need_rows(at_all_times=not tallying)
        out = np.empty(n, np.int32)
        self._append(batch, n, 0, out)
        return out

    def find(self, batch: Batch, n: int | None = None) -> Rows:
        """Row of each tuple, -1 where it is absent."""
        batch = as_batch(batch)
        n = batch.shape[1] if n is None else n
        self._need_rows()
        out = np.empty(n, np.int32)
        if self._ids is not None:
            dense.find_direct(batch, n, self._low, self._high, self._ids, out)
        else:
            tuples.find_hashed(batch, n, self.rows, self._slots, self._slot_bits, tuples.scratch(), out)
        return out

    def contains(self, batch: Batch, view: Truth | None = None, n: int | None = None) -> npt.NDArray[np.bool_]:
        """Whether each tuple is in the table, with a state that satisfies the view."""
        batch = as_batch(batch)
        n = batch.shape[1] if n is None else n
        self.end_tally()
        if view is None and self._words is not None:
            out = np.empty(n, np.bool_)
            dense.test_bitmap(batch, n, self._low, self._high, self._words, out)
            return out
        rows = self.find(batch, n)
        present = rows >= 0
        if view is not None and self.count:
            present &= view[self.state[rows]] != 0  # for -1 this reads the last state; it is absent anyway
        return present

    def _append(self, batch: Batch, n: int, bits: int, out: Rows) -> None:
        self.end_tally()
        start = 0
        while start < n:
            if self._words is not None:
                at, self.count = dense.insert_bitmap(
                    batch, start, n, self.rows, self.state, self.count, len(self.rows),
                    self._low, self._high, self._words, bits,
                )  # fmt: skip
            elif self._ids is not None:
                at, self.count = dense.insert_direct(
                    batch, start, n, self.rows, self.state, self.count, len(self.rows),
                    self._low, self._high, self._ids, bits, tuples.scratch(), out,
                )  # fmt: skip
            else:
                # One slot must stay empty for searches to end, whatever the load.
                limit = min(len(self.rows), int(tuples.MAX_LOAD * len(self._slots)))
                at, self.count = tuples.insert_hashed(
                    batch, start, n, self.rows, self.state, self.count, limit,
                    self._low, self._high, self._slots, self._slot_bits, bits, tuples.scratch(), out,
                )  # fmt: skip
            if at == n:
                return
            if at < 0:
                self._make_fit(batch, start, n)
            else:
                start = at
                # A bitmap would not know the rows that are asked for.
                self._make_room(n - at, stay_hashed=out.size > 0 and self._form is _Form.BITMAP)

    def direct(self, coming: int) -> tuple[Any, ...] | None:
        """Arrays for kernels that find rows of dense facts by themselves, with room for so many new ones; None if there are none."""
        self._need_rows(at_all_times=False)
        if self._ids is None or self.wide or not self._has_room(coming):
            return None
        return self.rows, self.state, self.count, self._low, self._high, self._ids

    def look_for_places(self) -> None:
        """List the rows of all possible tuples, if the facts are dense: they may not have been when there were few. Rows are asked for then."""
        self._need_rows()
        if self._ids is None and self.count >= self._next_look:
            self._next_look = 2 * self.count
            self._try_dense()

    def places(self) -> tuple[Any, Any, Any] | None:
        """Bounds of values, and the rows of all tuples within them, for kernels that find dense facts by themselves; None if there are none."""
        return None if self._ids is None else (self._low, self._high, self._ids)

    def tally(self, batch: Batch, n: int, owner: Tallied) -> int:
        """Count the tuples for `owner`, appending absent ones with state 0, as long as that is done best by a tally.

        Returns how many have been counted. The owner learns the counts when the tally ends, at the latest when somebody asks for rows.
        """
        done = -1
        while done < 0:
            if not self._has_room(n) or (self._tallied is not owner and not self._begin_tally(owner)):
                return 0
            done, self.count = dense.count_tally(
                batch, n, self.rows, self.state, self.count, self._low, self._high, self._tally, tuples.scratch()
            )
            if done < 0 and not self._widen_tally(batch, n):
                self.end_tally()
                self._make_fit(batch, 0, n)
        return done

    def _begin_tally(self, owner: Tallied) -> bool:
        """Where the facts are dense, and a list of rows would not lie in a near cache."""
        self.end_tally()
        if self._form is not _Form.BITMAP or self.wide or (self._words is None and self.count < self._next_try):
            return False
        self._next_try = 2 * self.count
        low, high = self._range()
        size = math.prod(int(h) + 1 for h in high)
        if size <= dense.FAR and int(low.min(initial=0)) >= 0:
            self._form = _Form.ROWS
            if not self._use_dense(low, high) and self._words is not None:
                self._use_hash(self.count)
        if not dense.FAR < size <= self._most_tallies or int(low.min(initial=0)) < 0:
            return False
        self._words, self._slots = None, np.zeros(0, np.uint32)
        self._low, self._high = np.zeros(self.arity, np.int64), high
        self._tally = np.zeros(size, np.uint8)
        dense.fill_tally(self.rows, self.count, high, self._tally)
        self._tallied = owner
        return True

    @property
    def _most_tallies(self) -> int:
        return min(BITS_PER_FACT * self.count, max(TALLY_PER_FACT * self.count, TALLY_ALWAYS))

    def _widen_tally(self, batch: Batch, n: int) -> bool:
        """Make the tally fit the values of the first n tuples."""
        assert self._tally is not None
        low, ample = self._ample_range(batch, 0, n)
        size = math.prod(int(h) + 1 for h in ample)
        if size > self._most_tallies or int(low.min(initial=0)) < 0 or int(ample.max(initial=0)) > _INT32.max:
            return False
        wider = np.zeros(size, np.uint8)
        before = self._tally.reshape([int(h) + 1 for h in self._high])
        wider.reshape([int(h) + 1 for h in ample])[tuple(map(slice, before.shape))] = before
        self._tally, self._high = wider, ample
        return True

    def end_tally(self) -> None:
        """Hand the counts to their owner and go on with a bitmap."""
        if self._tally is not None and self._tallied is not None:
            owner, tally = self._tallied, self._tally
            self._tally = self._tallied = None
            owner.take_tally(self.rows, self.count, self._high, tally)
            bits = np.packbits(tally, bitorder="little")
            self._words = np.zeros((len(bits) + 7) // 8, np.uint64)
            self._words.view(np.uint8)[: len(bits)] = bits

    def _make_room(self, coming: int, *, stay_hashed: bool) -> None:
        """Grow whatever is full, for some of `coming` tuples."""
        wanted = self.count + coming
        if self.count == len(self.rows):
            self._reserve(max(wanted, 2 * self.count))
        full = not self._dense and self.count >= int(tuples.MAX_LOAD * len(self._slots))
        if full and (stay_hashed or not self._try_dense()):
            self._use_hash(wanted)  # at least doubled, being a power of two

    def expect(self, coming: int, greatest: tuple[int, ...]) -> None:
        """Make room for so many tuples, with values that are not greater than these: growing step by step costs more than adding."""
        self.end_tally()
        if len(self.rows) < self.count + coming:
            self._reserve(self.count + coming)
        if not self._dense:
            low, high = self._range()
            self._use_dense(np.minimum(low, 0), np.maximum(high, greatest), self.count + coming)

    def _has_room(self, coming: int) -> bool:
        """Whether there is room for so many new rows; it is made, unless there would be too many."""
        if len(self.rows) - self.count < coming:
            self._reserve(max(self.count + coming, 2 * self.count))
        return len(self.rows) - self.count >= coming

    def _reserve(self, capacity: int) -> None:
        """Room for `capacity` rows. Pages that are never written cost no memory."""
        if self.count >= _MAX_ROWS:
            raise TableFullError(f"more than {_MAX_ROWS} facts in one relation")
        capacity = min(max(capacity, 64), _MAX_ROWS)
        rows = np.empty((capacity, self.arity), self.rows.dtype)
        rows[: self.count] = self.rows[: self.count]
        self.rows = rows
        state = np.empty(capacity, np.uint16)
        state[: self.count] = self.state[: self.count]
        self.state = state

    def _make_fit(self, batch: Batch, start: int, n: int) -> None:
        """Change the representation so that it can hold the values of the tuples start … n."""
        if self._dense:
            if not self._use_dense(*self._ample_range(batch, start, n)):
                self._use_hash(self.count)
        else:
            self.widen()

    def _ample_range(self, batch: Batch, start: int, n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The range of each column, widened for the tuples start … n.

        A column that outgrew its range gets more than it needs, so that rebuilding is rare.
        """
        low, high = self._low.copy(), self._high.copy()
        tuples.range_of_batch(batch, start, n, low, high)
        spare = np.where(self._high < 1024, self._high + 1, self._high // 8)
        return low, np.where(high > self._high, np.maximum(high, self._high + spare), high)

    # ── Representations of membership ────────────────────────────────────────────────────────────────────────────

    @property
    def _dense(self) -> bool:
        return self._words is not None or self._ids is not None

    def _try_dense(self) -> bool:
        """Go over to one of the representations for dense facts, if they are."""
        return self.count > 0 and self._use_dense(*self._range())

    def _range(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The least and the greatest value of each column, or what a representation allows for."""
        if self._dense:
            return self._low, self._high
        low = np.full(self.arity, _INT64.max, np.int64)
        high = np.full(self.arity, _INT64.min, np.int64)
        tuples.range_of_rows(self.rows, 0, self.count, low, high)
        return low, high

    def _use_dense(self, low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], facts: int | None = None) -> bool:
        """Build the bitmap or, where rows are asked for, the list of rows; unless there would be too much of it for so many facts."""
        facts = self.count if facts is None else facts
        if self._form is _Form.HASH or (self.arity and int(low.min()) < 0):
            return False
        size = math.prod(int(h) + 1 for h in high)
        bitmap = self._form is _Form.BITMAP
        if bitmap:
            most = max(BITS_ALWAYS, BITS_PER_FACT * facts)
        else:
            most = max(PLACES_PER_FACT * facts, min(PLACES_PER_FACT_IF_SHORT * facts, SHORT))
        if size > most or not (self.wide or all(int(h) <= _INT32.max for h in high)):
            return False
        self._words = self._ids = None  # freed before the new one is made; filled at once, as in `_use_hash`
        if bitmap:
            self._words = np.empty((size + 63) // 64, np.uint64)
            self._words.fill(0)
            dense.fill_bitmap(self.rows, self.count, high, self._words)
        else:
            self._ids = np.empty(size, np.int32)
            self._ids.fill(0)
            dense.fill_direct(self.rows, self.count, high, self._ids)
        self._slots = np.zeros(0, np.uint32)
        self._low = np.zeros(self.arity, np.int64)
        self._high = high
        return True

    def _use_hash(self, capacity: int) -> None:
        """(Re)build the hash with room for `capacity` rows."""
        slots = math.ceil((max(capacity, self.count) + 1) / tuples.MAX_LOAD)
        self._slot_bits = min(max((slots - 1).bit_length(), _LEAST_SLOT_BITS), 32)
        self._slots = np.zeros(0, np.uint32)  # freed before the new one is made
        # Not np.zeros: filled at once, a large array lies in large pages, which searches at random need.
        self._slots = np.empty(1 << self._slot_bits, np.uint32)
        self._slots.fill(0)
        tuples.fill_slots(self.rows, self.count, self._slots, self._slot_bits, tuples.scratch())
        self._words = self._ids = None
        limits = _INT64 if self.wide else _INT32
        self._low = np.full(self.arity, limits.min, np.int64)
        self._high = np.full(self.arity, limits.max, np.int64)

    def _need_rows(self, *, at_all_times: bool = True) -> None:
        """Who asks for rows once will ask again: the bitmap, which does not know them, is given up for good."""
        self.end_tally()
        if self._form is _Form.BITMAP and (at_all_times or self._words is not None):
            self._form = _Form.ROWS
            if self._words is not None and not self._use_dense(self._low, self._high):
                self._use_hash(self.count)

    def widen(self) -> None:
        """Hold rows as int64 from now on."""
        if self.wide:
            return
        self.end_tally()
        rows = np.empty((len(self.rows), self.arity), np.int64)
        rows[: self.count] = self.rows[: self.count]
        self.rows = rows
        if not self._dense:
            self._low.fill(_INT64.min)
            self._high.fill(_INT64.max)

    # ── States ───────────────────────────────────────────────────────────────────────────────────────────────────

    def claim(self, rows: Rows, blocked: Truth, bits: int) -> Rows:
        """Set `bits` in each row whose state is not blocked; the rows that were, each once, in order.

        `blocked` is true for every state that has `bits`.
        """
        rows = as_rows(rows)
        out = np.empty(len(rows), np.int32)
        return out[: row_kernels.claim_rows(self.state, rows, blocked, bits, out)]

    def set_bits(self, rows: Rows, bits: int) -> None:
        """Put the rows into the datasets `bits`."""
        row_kernels.change_bits(self.state, as_rows(rows), STATES - 1, bits)

    def clear_bits(self, rows: Rows, bits: int) -> None:
        """Take the rows out of the datasets `bits`."""
        row_kernels.change_bits(self.state, as_rows(rows), STATES - 1 - bits, 0)

    def set_bits_between(self, first: int, end: int, bits: int) -> None:
        """Put the rows first … end into the datasets `bits`."""
        self.state[first : min(end, self.count)] |= np.uint16(bits)

    def clear_bits_between(self, first: int, end: int, bits: int) -> None:
        """Take the rows first … end out of the datasets `bits`."""
        self.state[first : min(end, self.count)] &= np.uint16(STATES - 1 - bits)

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

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────

    def gather(self, column: int, rows: Rows, out: Batch, to: int, base: int = 0) -> None:
        """out[to, i] = the column's value in row rows[i] + base."""
        row_kernels.gather_rows(self.rows, column, rows, base, out, to)

    def read(self, column: int, first: int, end: int, out: Batch, to: int) -> None:
        """out[to, i] = the column's value in row first + i, up to `end`."""
        row_kernels.read_rows(self.rows, column, first, end, out, to)

    def take(self, rows: Rows) -> Batch:
        """The tuples of the rows, as a batch."""
        rows = as_rows(rows)
        out = np.empty((self.arity, len(rows)), np.int64)
        for column in range(self.arity):
            row_kernels.gather_rows(self.rows, column, rows, 0, out, column)
        return out
