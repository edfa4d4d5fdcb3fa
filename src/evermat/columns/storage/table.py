"""The facts of one relation: rows of integers, a state word per row, and the means to find a tuple.

Batches of tuples are int64 arrays of shape [arity, capacity], C-contiguous, so that each column is
contiguous; `n` says how many tuples are in it (default: all). A buffer that is reused is passed whole with `n`:
a slice of it would not be contiguous and would be copied. Row ids are int32 arrays. Results are new arrays
unless it says otherwise. The module is one class, whose invariants hold between its methods; it is long for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import dense_set as dense
from evermat.columns.kernels import hash_set as tuples
from evermat.columns.kernels import rows as row_kernels
from evermat.columns.storage.arrays import NO_ROWS, Batch, Mask, Numbers, Rows, Truth, as_batch, as_rows
from evermat.columns.storage.latch import Latch
from evermat.columns.storage.membership import (
    INT32,
    INT64,
    Bitmap,
    DirectRows,
    Form,
    HashedRows,
    Membership,
    Tally,
    most_positions,
    most_tallies,
    possible_tuples,
)
from evermat.columns.storage.readable_table import ReadableTable
from evermat.core import ask_for, check_stop

#: what outlives an update. Where equal terms are represented by one, given facts are distinguished from their normal forms, which are then E.
EXPLICIT, MATERIALISED, NORMAL = 1, 2, 4
#: D and A, what an update deletes and adds
DELETED, ADDED = 1 << 15, 1 << 14
#: for the other working sets of an update; where no terms are represented by others, NORMAL too
FREE = [1 << i for i in range(3, 14)]


if TYPE_CHECKING:
    from evermat.columns.schemes.scheme import Scheme
    from evermat.columns.storage.counter import Counter
    from evermat.columns.storage.index import Index, Keys


STATES = 1 << 16

_MAX_ROWS = int(INT32.max)
PIECE = 1 << 20  # tuples that are added between two looks at limits


class TableFullError(MemoryError):
    """A relation has more facts than a row id can number."""


_UNSHARED = Latch()


class Table(ReadableTable):
    """The facts of one relation, for its one writer. Others read what they have captured of it; see `frozen_table`.

    Invariants: rows 0 … count are pairwise distinct tuples and never move or change; `rows` and `state` are
    replaced when the table grows or widens, so they are fetched again after every operation that may append.
    Exactly one representation of membership (see `membership`) is in use, and covers all rows.
    """

    def __init__(self, arity: int, *, dense: bool = True, latch: Latch = _UNSHARED) -> None:
        self.arity, self.latch = arity, latch
        self.scheme: Scheme | None = None
        self.count = 0
        # New with every set of rows, and ahead of what finds them: by this, readers know whether it finds their rows.
        self.indexed: dict[tuple[int, ...], Keys] = {}
        self._indexes: dict[tuple[int, ...], Index] = {}
        self.rows: npt.NDArray[np.int32] | Numbers = np.empty((16, arity), np.int32)
        self.state: npt.NDArray[np.uint16] = np.zeros(16, np.uint16)
        self._form = Form.BITMAP if dense else Form.HASH
        self.members: Membership = HashedRows(self)
        self._next_try = 64  # number of facts at which to look again whether a tally is possible
        self._next_look = 1  # number of facts at which to look again whether they are dense

    def clear(self) -> None:
        """Becomes empty. Row numbers and indexes that were taken from it are not valid any more."""
        self.__init__(self.arity, dense=self._form is not Form.HASH, latch=self.latch)  # type: ignore[misc]

    @property
    def nbytes(self) -> int:
        """Bytes in use: rows and states as far as they are filled, membership and indexes in full."""
        rows = self.count * (self.arity * self.rows.itemsize + self.state.itemsize)
        return rows + self.members.nbytes + sum(keys.nbytes for keys in list(self.indexed.values()))

    def index(self, columns: tuple[int, ...]) -> Index:
        found = self._indexes.get(columns)
        if found is None:
            found = self._indexes[columns] = super().index(columns)
        return found

    def adopt(self, rows: npt.NDArray[np.int32] | Numbers, state: npt.NDArray[np.uint16], like: Table) -> None:
        """Takes facts, each once, with their states, while it is empty; arrays are its own from then on. It finds them as another table does."""
        assert not self.count
        if not len(rows):
            return
        self.rows, self.state, self.count = rows, state, len(rows)
        self._form = like._form
        if not self._try_dense():
            self._use_hash(self.count)

    def forget_indexes(self) -> None:
        """Indexes are built again when they are asked for: a table that is not needed goes at once, without those that refer to it."""
        self.indexed.clear()
        self._indexes.clear()

    # ── Finding and appending ────────────────────────────────────────────────────────────────────────────────────

    def add_new(self, batch: Batch, bits: int, n: int | None = None) -> tuple[int, int]:
        """Appends the tuples that are not in the table, each once, with state `bits`; returns the first new row and their number."""
        batch = as_batch(batch)
        self.end_tally()
        first = self.count
        self._append(batch, batch.shape[1] if n is None else n, bits, NO_ROWS)
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
        batch = as_batch(batch)
        n = batch.shape[1] if n is None else n
        self._need_rows()
        out = np.empty(n, np.int32)
        self.members.find(self, batch, n, out)
        return out

    def _test(self, batch: Batch, n: int) -> Mask | None:
        self.end_tally()
        return self.members.contains(batch, n) if isinstance(self.members, Bitmap) else None

    def _append(self, batch: Batch, n: int, bits: int, out: Rows) -> None:
        """Appends absent tuples and writes the rows of all to `out`, if it has room; there must not be a tally."""
        start = 0
        while start < n:
            end = min(start + PIECE, n)
            at, self.count = self.members.insert(self, batch, start, end, bits, out)
            if at == end:
                if (start := end) < n:
                    check_stop()
            elif at < 0:
                self._make_fit(batch, start, end)
            else:
                start = at
                # A bitmap would not know the rows that are asked for.
                self._make_room(n - at, stay_hashed=out.size > 0 and self._form is Form.BITMAP)

    def direct(self, more: int) -> tuple[Any, ...] | None:
        """Arrays for kernels that find rows of dense facts without the table, with room for so many new ones; None if facts are not dense."""
        self._need_rows(at_all_times=False)
        members = self.members
        if not isinstance(members, DirectRows) or self.wide or not self._has_room(more):
            return None
        return self.rows, self.state, self.count, *members.arrays

    def look_for_dense_facts(self) -> None:
        """Lists the rows of all possible tuples, if the facts are dense: they may not have been when there were few."""
        self._need_rows()
        if not isinstance(self.members, DirectRows) and self.count >= self._next_look:
            self._next_look = 2 * self.count
            self._try_dense()

    def direct_rows(self) -> tuple[Any, Any, Any] | None:
        return self.members.arrays if isinstance(self.members, DirectRows) else None

    def tally(self, batch: Batch, n: int, owner: Counter) -> int:
        """Counts the tuples for `owner`, appending absent ones with state 0, as long as that is done best by a tally.

        Returns how many have been counted. The owner gets the counts when the tally ends, at the latest when rows are asked for.
        """
        while self._has_room(n) and (tally := self._tally_of(owner)) is not None:
            done, self.count = tally.count(self, batch, n)
            if done >= 0:
                return done
            if not self._widen_tally(tally, batch, n):
                self.end_tally()
                self._make_fit(batch, 0, n)
        return 0

    def _tally_of(self, owner: Counter) -> Tally | None:
        """A tally, where the facts are dense and a list of rows would not lie in a near cache."""
        if isinstance(self.members, Tally) and self.members.owner is owner:
            return self.members
        self.end_tally()
        is_bitmap = isinstance(self.members, Bitmap)
        if self._form is not Form.BITMAP or self.wide or (not is_bitmap and self.count < self._next_try):
            return None
        self._next_try = 2 * self.count
        low, high = self._range()
        size = possible_tuples(high)
        if size <= dense.FAR and int(low.min(initial=0)) >= 0:
            self._form = Form.ROWS
            if not self._use_dense(low, high) and is_bitmap:
                self._use_hash(self.count)
        if not dense.FAR < size <= most_tallies(self.count) or int(low.min(initial=0)) < 0:
            return None
        self._release_members()
        self.members = tally = Tally(self, high, owner)
        return tally

    def _widen_tally(self, tally: Tally, batch: Batch, n: int) -> bool:
        """Makes a tally fit the values of the first n tuples; returns whether that is possible."""
        low, ample = self._ample_range(batch, 0, n)
        too_large = possible_tuples(ample) > most_tallies(self.count) or int(ample.max(initial=0)) > INT32.max
        if too_large or int(low.min(initial=0)) < 0:
            return False
        tally.widen(ample)
        return True

    def end_tally(self) -> None:
        """Gives the counts of a tally, if there is one, to their owner and continues with a bitmap."""
        tally = self.members
        if isinstance(tally, Tally):
            self.members = Bitmap.of_tally(tally)
            tally.owner.take_tally(self.rows, self.count, tally.high, tally.counts)

    def _make_room(self, more: int, *, stay_hashed: bool) -> None:
        """Grows whatever is full, for some of `more` tuples."""
        wanted = self.count + more
        if self.count == len(self.rows):
            self._reserve(max(wanted, 2 * self.count))
        if self.members.is_full(self.count) and (stay_hashed or not self._try_dense()):
            self._use_hash(wanted)  # at least doubled, being a power of two

    def expect(self, more: int, greatest: tuple[int, ...]) -> None:
        """Makes room for so many tuples, with values that are not greater than these: growing step by step costs more than adding."""
        self.end_tally()
        if len(self.rows) < self.count + more:
            self._reserve(self.count + more)
        if not self.members.is_dense:
            low, high = self._range()
            self._use_dense(np.minimum(low, 0), np.maximum(high, greatest), self.count + more)

    def _has_room(self, more: int) -> bool:
        """Whether there is room for so many new rows; it is made, unless there would be too many."""
        if len(self.rows) - self.count < more:
            self._reserve(max(self.count + more, 2 * self.count))
        return len(self.rows) - self.count >= more

    def _reserve(self, capacity: int) -> None:
        """Room for `capacity` rows. Pages that are never written cost no memory."""
        if self.count >= _MAX_ROWS:
            raise TableFullError(f"more than {_MAX_ROWS} facts in one relation")
        capacity = min(max(capacity, 64), _MAX_ROWS)
        ask_for(self.count * (self.arity * self.rows.itemsize + self.state.itemsize))
        rows, state = np.empty((capacity, self.arity), self.rows.dtype), np.empty(capacity, np.uint16)
        rows[: self.count] = self.rows[: self.count]
        state[: self.count] = self.state[: self.count]
        self.rows, self.state = rows, state  # both or, if memory is short, neither

    def _make_fit(self, batch: Batch, start: int, n: int) -> None:
        """Changes the representation so that it can hold the values of the tuples start … n."""
        if self.members.is_dense:
            if not self._use_dense(*self._ample_range(batch, start, n)):
                self._use_hash(self.count)
        else:
            self.widen()

    def _ample_range(self, batch: Batch, start: int, n: int) -> tuple[Numbers, Numbers]:
        """The range of each column, widened for the tuples start … n.

        A column that outgrew its range gets more than it needs, so that rebuilding is rare.
        """
        known = self.members.high
        low, high = self.members.low.copy(), known.copy()
        tuples.range_of_batch(batch, start, n, low, high)
        spare = np.where(known < 1024, known + 1, known // 8)
        return low, np.where(high > known, np.maximum(high, known + spare), high)

    # ── Representations of membership ────────────────────────────────────────────────────────────────────────────

    def _try_dense(self) -> bool:
        """Goes over to one of the representations for dense facts, if they are."""
        return self.count > 0 and self._use_dense(*self._range())

    def _range(self) -> tuple[Numbers, Numbers]:
        """The least and the greatest value of each column, or what a representation allows for."""
        if self.members.is_dense:
            return self.members.low, self.members.high
        low = np.full(self.arity, INT64.max, np.int64)
        high = np.full(self.arity, INT64.min, np.int64)
        tuples.range_of_rows(self.rows, 0, self.count, low, high)
        return low, high

    def _use_dense(self, low: Numbers, high: Numbers, facts: int | None = None) -> bool:
        """Builds the bitmap or, where rows are asked for, the list of rows; unless there would be too much of it for so many facts."""
        facts = self.count if facts is None else facts
        if self._form is Form.HASH or (self.arity and int(low.min()) < 0):
            return False
        if possible_tuples(high) > most_positions(self._form, facts):
            return False
        if not (self.wide or all(int(h) <= INT32.max for h in high)):
            return False
        ask_for(possible_tuples(high) // 8 if self._form is Form.BITMAP else 4 * possible_tuples(high))
        self._release_members()
        self.members = (Bitmap if self._form is Form.BITMAP else DirectRows).of(self, high)
        return True

    def _use_hash(self, capacity: int) -> None:
        ask_for(HashedRows.size_for(max(capacity, self.count)) - self.members.nbytes)
        self._release_members()
        self.members = HashedRows(self, capacity)

    def _release_members(self) -> None:
        """Frees the memory of a representation ahead of building another, unless readers may need it, or an update that fails then."""
        if not self.latch.shared:
            self.members.release()

    def find_rows(self) -> None:
        """Will find rows from now on."""
        self._need_rows()

    def _need_rows(self, *, at_all_times: bool = True) -> None:
        """Gives up the bitmap, which does not know rows, for good: a caller that asks for rows once will ask again."""
        self.end_tally()
        if self._form is Form.BITMAP:
            members = self.members
            is_bitmap = isinstance(members, Bitmap)
            if at_all_times or is_bitmap:
                self._form = Form.ROWS
                if is_bitmap and not self._use_dense(members.low, members.high):
                    self._use_hash(self.count)

    def widen(self) -> None:
        """Holds rows as int64 from now on."""
        if self.wide:
            return
        self.end_tally()
        rows = np.empty((len(self.rows), self.arity), np.int64)
        rows[: self.count] = self.rows[: self.count]
        self.rows = rows
        if not self.members.is_dense:
            self.members.low.fill(INT64.min)
            self.members.high.fill(INT64.max)

    def copy_states(self) -> None:
        """Leaves the array of states to those who have captured it."""
        ask_for(self.count * self.state.itemsize)
        state = np.empty(len(self.state), np.uint16)
        state[: self.count] = self.state[: self.count]
        self.state = state

    # ── States ───────────────────────────────────────────────────────────────────────────────────────────────────

    def claim(self, rows: Rows, blocked: Truth, bits: int) -> Rows:
        """Sets `bits` in each row whose state is not blocked; the rows that were, each once, in order.

        `blocked` is true for every state that has `bits`.
        """
        rows = as_rows(rows)
        out = np.empty(len(rows), np.int32)
        return out[: row_kernels.claim_rows(self.state, rows, blocked, bits, out)]

    def set_bits(self, rows: Rows, bits: int) -> None:
        """Puts the rows into the datasets `bits`."""
        row_kernels.change_bits(self.state, as_rows(rows), STATES - 1, bits)

    def clear_bits(self, rows: Rows, bits: int) -> None:
        """Takes the rows out of the datasets `bits`."""
        row_kernels.change_bits(self.state, as_rows(rows), STATES - 1 - bits, 0)

    def set_bits_between(self, first: int, end: int, bits: int) -> None:
        """Puts the rows first … end into the datasets `bits`."""
        self.state[first : min(end, self.count)] |= np.uint16(bits)
