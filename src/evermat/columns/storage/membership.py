"""How a table finds tuples: a hash of rows, a bitmap over all possible tuples, a list of their rows, or a tally while they are counted.

Where the values of all columns are small and facts are many of the possible tuples, facts are *dense*: an array with a position for every tuple within
[low, high] is then smaller and faster than a hash. A bitmap is the smallest, but does not know rows; a list of rows does.
"""

from __future__ import annotations

import math
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import dense_set as dense
from evermat.columns.kernels import hash_set as tuples
from evermat.columns.storage.arrays import Batch, Mask, Numbers, Rows, zeros_in_large_pages

if TYPE_CHECKING:
    from evermat.columns.storage.counter import Counter
    from evermat.columns.storage.readable_table import ReadableTable
    from evermat.columns.storage.table import Table

Bounds: TypeAlias = Numbers

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

INT32 = np.iinfo(np.int32)
INT64 = np.iinfo(np.int64)
_LEAST_SLOT_BITS = 6


class Form(Enum):
    """How a table may represent dense facts: not at all, by bits as long as rows are not asked for, or by their rows."""

    HASH = auto()
    BITMAP = auto()
    ROWS = auto()


class Membership(Protocol):
    """The tuples of a table, all of them.

    `low` and `high` are the values that a column may have without another representation or width.
    """

    is_dense: ClassVar[bool]
    low: Bounds
    high: Bounds

    @property
    def nbytes(self) -> int:
        """Bytes in use."""

    def insert(self, table: Table, batch: Batch, start: int, n: int, bits: int, out: Rows, /) -> tuple[int, int]:
        """Appends those of the tuples start … n that are absent to the table's rows, with state `bits`; writes the rows of all to `out`, if it has room.

        Returns the first tuple that is not done, less than 0 if its values do not fit, else because something is full; and the number of rows.
        """

    def find(self, table: ReadableTable, batch: Batch, n: int, out: Rows, /) -> None:
        """Writes the row of each of n tuples to `out`, -1 if it is absent; the table may be one that was captured when it had fewer rows."""

    def is_full(self, count: int) -> bool:
        """Whether it has no room for more than so many tuples."""

    def release(self) -> None:
        """Frees its memory, before another representation is made."""


class HashedRows:
    """A hash of rows."""

    is_dense: ClassVar[bool] = False

    def __init__(self, table: Table, capacity: int = 0) -> None:
        """All rows of a table, with room for so many."""
        self._bits = self._bits_for(max(capacity, table.count))
        self._slots = zeros_in_large_pages(1 << self._bits, np.uint32)
        self._most = int(tuples.MAX_LOAD * len(self._slots))  # one slot must stay empty for searches to end
        if table.count:
            tuples.fill_slots(table.rows, table.count, self._slots, self._bits, tuples.scratch())
        limits = INT64 if table.wide else INT32
        self.low: Bounds = np.full(table.arity, limits.min, np.int64)
        self.high: Bounds = np.full(table.arity, limits.max, np.int64)

    @staticmethod
    def _bits_for(capacity: int) -> int:
        slots = math.ceil((capacity + 1) / tuples.MAX_LOAD)
        return min(max((slots - 1).bit_length(), _LEAST_SLOT_BITS), 32)

    @classmethod
    def size_for(cls, capacity: int) -> int:
        """Bytes of a hash with room for so many rows."""
        return 4 << cls._bits_for(capacity)

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes

    def insert(self, table: Table, batch: Batch, start: int, n: int, bits: int, out: Rows) -> tuple[int, int]:
        rows = table.rows
        return tuples.insert_hashed(  # type: ignore[no-any-return]
            batch, start, n, rows, table.state, table.count, min(len(rows), self._most),
            self.low, self.high, self._slots, self._bits, bits, tuples.scratch(), out,
        )  # fmt: skip

    def find(self, table: ReadableTable, batch: Batch, n: int, out: Rows) -> None:
        tuples.find_hashed(batch, n, table.rows, table.count, self._slots, self._bits, tuples.scratch(), out)

    def is_full(self, count: int) -> bool:
        return count >= self._most

    def release(self) -> None:
        self._slots = np.zeros(0, np.uint32)


class _Dense:
    """What representations with a position for every possible tuple have in common."""

    is_dense: ClassVar[bool] = True

    def __init__(self, high: Bounds, positions: npt.NDArray[Any]) -> None:
        self.low: Bounds = np.zeros(len(high), np.int64)
        self.high, self._positions = high, positions

    @property
    def nbytes(self) -> int:
        return self._positions.nbytes

    def is_full(self, count: int) -> bool:
        del count
        return False

    def release(self) -> None:
        self._positions = self._positions[:0].copy()


class Bitmap(_Dense):
    """A bit for every possible tuple. Does not know rows."""

    @classmethod
    def of(cls, table: Table, high: Bounds) -> Bitmap:
        """All rows of a table, for values up to these."""
        words = zeros_in_large_pages((possible_tuples(high) + 63) // 64, np.uint64)
        dense.fill_bitmap(table.rows, table.count, high, words)
        return cls(high, words)

    @classmethod
    def of_tally(cls, tally: Tally) -> Bitmap:
        bits = np.packbits(tally.counts, bitorder="little")
        words = np.zeros((len(bits) + 7) // 8, np.uint64)
        words.view(np.uint8)[: len(bits)] = bits
        return cls(tally.high, words)

    def insert(self, table: Table, batch: Batch, start: int, n: int, bits: int, out: Rows) -> tuple[int, int]:
        assert not out.size
        return dense.insert_bitmap(  # type: ignore[no-any-return]
            batch, start, n, table.rows, table.state, table.count, len(table.rows),
            self.low, self.high, self._positions, bits,
        )  # fmt: skip

    def find(self, *_: object) -> None:
        raise AssertionError("a bitmap does not know rows")

    def contains(self, batch: Batch, n: int) -> Mask:
        out = np.empty(n, np.bool_)
        dense.test_bitmap(batch, n, self.low, self.high, self._positions, out)
        return out


class DirectRows(_Dense):
    """The row of every possible tuple."""

    @classmethod
    def of(cls, table: Table, high: Bounds) -> DirectRows:
        """All rows of a table, for values up to these."""
        rows = zeros_in_large_pages(possible_tuples(high), np.int32)
        dense.fill_direct(table.rows, table.count, high, rows)
        return cls(high, rows)

    def insert(self, table: Table, batch: Batch, start: int, n: int, bits: int, out: Rows) -> tuple[int, int]:
        return dense.insert_direct(  # type: ignore[no-any-return]
            batch, start, n, table.rows, table.state, table.count, len(table.rows),
            self.low, self.high, self._positions, bits, tuples.scratch(), out,
        )  # fmt: skip

    def find(self, table: ReadableTable, batch: Batch, n: int, out: Rows) -> None:
        dense.find_direct(batch, n, table.count, self.low, self.high, self._positions, out)

    @property
    def arrays(self) -> tuple[Bounds, Bounds, npt.NDArray[Any]]:
        """Bounds of values, and the rows of all tuples within them, for kernels."""
        return self.low, self.high, self._positions


class Tally(_Dense):
    """A small number for every possible tuple, while tuples are counted one after the other. Does not know rows.

    Only `Table.tally` adds to it: a table ends it before any other operation.
    """

    def __init__(self, table: Table, high: Bounds, owner: Counter) -> None:
        super().__init__(high, np.zeros(possible_tuples(high), np.uint8))
        dense.fill_tally(table.rows, table.count, high, self._positions)
        self.owner = owner

    @property
    def counts(self) -> npt.NDArray[Any]:
        return self._positions

    def insert(self, *_: object) -> tuple[int, int]:
        raise AssertionError("a tally only counts")

    def find(self, *_: object) -> None:
        raise AssertionError("a tally does not know rows")

    def count(self, table: Table, batch: Batch, n: int) -> tuple[int, int]:
        """Counts n tuples, and appends absent ones; returns as `insert`."""
        return dense.count_tally(  # type: ignore[no-any-return]
            batch, n, table.rows, table.state, table.count, self.low, self.high, self._positions, tuples.scratch()
        )

    def widen(self, high: Bounds) -> None:
        wider = np.zeros(possible_tuples(high), np.uint8)
        before = self._positions.reshape([int(h) + 1 for h in self.high])
        wider.reshape([int(h) + 1 for h in high])[tuple(map(slice, before.shape))] = before
        self._positions, self.high = wider, high


def possible_tuples(high: Bounds) -> int:
    """Number of tuples with values from 0 to these."""
    return math.prod(int(h) + 1 for h in high)


def most_positions(form: Form, facts: int) -> int:
    """Number of possible tuples up to which so many facts count as dense."""
    if form is Form.BITMAP:
        return max(BITS_ALWAYS, BITS_PER_FACT * facts)
    return max(PLACES_PER_FACT * facts, min(PLACES_PER_FACT_IF_SHORT * facts, SHORT))


def most_tallies(facts: int) -> int:
    """The same for a tally."""
    return min(BITS_PER_FACT * facts, max(TALLY_PER_FACT * facts, TALLY_ALWAYS))
