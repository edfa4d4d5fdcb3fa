"""Kernels that find and append tuples through a hash of rows. Those for dense facts are in `dense_set`.

*Slots* of the hash are 32 bits wide: 0 is empty; else the low `shift` bits are the row id plus one and the bits
above are a tag out of the tuple's hash. There are `1 << shift` slots. As the table is never more than
`MAX_LOAD` full, row ids always fit; and the smaller the table, the wider the tag: with 32 million slots, 127 of
128 tuples that only share a slot are distinguished without looking at their row.

A block of tuples is worked on in three passes (ask for the slots; walk to the first candidate and ask for its
row; compare), so that the cache misses of a block overlap.

A reader may search while the writer inserts: slots are entered and never changed, and the reader passes by those whose rows it does not know.
"""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evermat.kernels import MANY, compiled, prefetch

MAX_LOAD = 0.7
#: tuples worked on together; measured: 32 beats 16, 64 and 128
BLOCK = 32

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def scratch() -> npt.NDArray[np.uint64]:
    """Working space for a kernel that takes `scratch`."""
    return np.empty((2, BLOCK), np.uint64)


@compiled()
def _mix(h, value):
    h = (h ^ value) * _FACTOR
    return h ^ (h >> _HALF)


@compiled()
def _split(h, shift):
    """(home slot, shifted tag) of a hash."""
    word = (h * _FACTOR) >> _HALF
    return word >> (_HALF - shift), (word << shift) & _LOW


@compiled()
def _hash_batch(batch, i, shift):
    h = np.uint64(0)
    for c in range(batch.shape[0]):
        h = _mix(h, np.uint64(batch[np.uint64(c), np.uint64(i)]))
    return _split(h, shift)


@compiled()
def ask_slots(batch, first, m, slots, shift, positions, tags):
    """Pass one for tuples first … first+m: their home slots and tags."""
    for b in range(m):
        position, tag = _hash_batch(batch, first + b, shift)
        positions[b] = position
        tags[b] = tag
        prefetch(slots, position)


@compiled()
def _hash_row(rows, row, shift):
    h = np.uint64(0)
    for c in range(rows.shape[1]):
        h = _mix(h, np.uint64(np.int64(rows[row, c])))
    return _split(h, shift)


@compiled()
def _same(batch, i, rows, row):
    row, i = np.uint64(row), np.uint64(i)
    for c in range(batch.shape[0]):  # noqa: SIM110  numba has no generator expressions here
        if np.int64(rows[row, np.uint64(c)]) != batch[np.uint64(c), i]:
            return False
    return True


@compiled()
def _outside(batch, start, n, low, high):
    """Whether some value lies outside its column's [low, high]."""
    outside = False
    for c in range(batch.shape[0]):
        least, most = low[c], high[c]
        for i in range(start, n):
            outside |= (batch[c, i] < least) | (batch[c, i] > most)
    return outside


@compiled()
def candidate(slots, position, tag, shift):
    """The first slot from `position` on that has this tag, and its row; or the empty slot that ends the search, and -1."""
    last = (np.uint64(1) << shift) - np.uint64(1)
    position &= last
    slot = np.uint64(slots[position])
    while slot != np.uint64(0) and ((slot ^ tag) >> shift) != np.uint64(0):
        position = (position + np.uint64(1)) & last
        slot = np.uint64(slots[position])
    return position, np.int64(slot & last) - 1


@compiled()
def _seek(batch, first, m, rows, slots, shift, positions, tags):
    """Passes one and two for tuples first … first+m: `positions` and `tags` of the first candidate or empty slot."""
    ask_slots(batch, first, m, slots, shift, positions, tags)
    for b in range(m):
        position, row = candidate(slots, positions[b], tags[b], shift)
        positions[b] = position
        if row >= 0:
            prefetch(rows, row * batch.shape[0])


@compiled()
def _settle(batch, i, rows, count, slots, shift, position, tag):
    """Pass three: (position, row) of the tuple among the first `count` rows, or the empty slot that ends the search and -1."""
    position, row = candidate(slots, position, tag, shift)
    while row >= 0 and (row >= count or not _same(batch, i, rows, row)):
        position, row = candidate(slots, position + np.uint64(1), tag, shift)
    return position, row


_FIND = "i8[:,::1], i8, {}[:,::1], i8, u4[::1], i8, u8[:,::1], i4[::1]"


@compiled(_FIND.format("i4"), _FIND.format("i8"), steps="n")
def find_hashed(batch, n, rows, count, slots, bits, scratch, out):
    """Row of each of n tuples among the first `count` rows into `out`, -1 where there is none."""
    shift = np.uint64(bits)
    positions, tags = scratch[0], scratch[1]
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        _seek(batch, first, m, rows, slots, shift, positions, tags)
        for b in range(m):
            _, row = _settle(batch, first + b, rows, count, slots, shift, positions[b], tags[b])
            out[first + b] = row


_INSERT = "i8[:,::1], i8, i8, {}[:,::1], u2[::1], i8, i8, i8[::1], i8[::1], u4[::1], i8, i8, u8[:,::1], i4[::1]"


@compiled(_INSERT.format("i4"), _INSERT.format("i8"), steps="start:n")
def insert_hashed(batch, start, n, rows, state, count, limit, low, high, slots, bits, mark, scratch, out):
    """Appends those of the tuples start … n that are absent, with state `mark`; returns (next tuple, count).

    Stops early when the table has `limit` rows. (-1, count) if some value is outside [low, high]; nothing is
    done then. `out`, unless it is empty, gets the row of each tuple.
    """
    if _outside(batch, start, n, low, high):
        return -1, count
    shift = np.uint64(bits)
    k = batch.shape[0]
    wanted = out.size > 0
    positions, tags = scratch[0], scratch[1]
    for first in range(start, n, BLOCK):
        m = min(BLOCK, n - first)
        _seek(batch, first, m, rows, slots, shift, positions, tags)
        for b in range(m):
            i = first + b
            position, row = _settle(batch, i, rows, count, slots, shift, positions[b], tags[b])
            if row < 0:
                if count == limit:
                    return i, count
                row = count
                for c in range(k):
                    rows[row, c] = batch[c, i]
                state[row] = mark
                slots[position] = np.uint32(np.uint64(row + 1) | tags[b])
                count += 1
            if wanted:
                out[i] = row
    return n, count


@compiled("i4[:,::1], i8, u4[::1], i8, u8[:,::1]", "i8[:,::1], i8, u4[::1], i8, u8[:,::1]", steps="count")
def fill_slots(rows, count, slots, bits, scratch):
    """Enters the distinct rows 0 … count into empty slots."""
    shift = np.uint64(bits)
    last = (np.uint64(1) << shift) - np.uint64(1)
    positions, tags = scratch[0], scratch[1]
    for first in range(0, count, BLOCK):
        m = min(BLOCK, count - first)
        for b in range(m):
            position, tag = _hash_row(rows, first + b, shift)
            positions[b] = position
            tags[b] = tag
            prefetch(slots, position)
        for b in range(m):
            position = positions[b]
            while slots[position] != 0:
                position = (position + np.uint64(1)) & last
            slots[position] = np.uint32(np.uint64(first + b + 1) | tags[b])


_RANGE = "{}[:,::1], i8, i8, i8[::1], i8[::1]"


@compiled(_RANGE.format("i4"), _RANGE.format("i8"), steps="first:last", least=MANY)
def range_of_rows(rows, first, last, low, high):
    """Widens each column's [low, high] to hold the rows first … last."""
    for row in range(first, last):
        for c in range(rows.shape[1]):
            low[c] = min(low[c], np.int64(rows[row, c]))
            high[c] = max(high[c], np.int64(rows[row, c]))


@compiled("i8[:,::1], i8, i8, i8[::1], i8[::1]", steps="start:n", least=MANY)
def range_of_batch(batch, start, n, low, high):
    """Widens each column's [low, high] to hold the tuples start … n."""
    for c in range(batch.shape[0]):
        least, most = low[c], high[c]
        for i in range(start, n):
            least = min(least, batch[c, i])
            most = max(most, batch[c, i])
        low[c] = least
        high[c] = most
