"""Kernels that find, append and count tuples of dense facts: with a bit, a row or a small count for every possible tuple.

The *position* of a tuple is its number among all possible ones, [0, high] for each column. All of them refuse values outside of that
range; the caller makes the range wide enough, or changes to a hash.
"""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from evermat.columns.kernels.hash_set import BLOCK, _outside
from evermat.kernels import compiled, prefetch


@compiled()
def _bit_of(batch, i, high):
    position = np.int64(0)
    for c in range(batch.shape[0]):
        position = position * (high[c] + 1) + batch[c, i]
    return position


@compiled()
def _bit_of_row(rows, row, high):
    position = np.int64(0)
    for c in range(rows.shape[1]):
        position = position * (high[c] + 1) + np.int64(rows[row, c])
    return position


@compiled()
def _is_inside(batch, i, low, high):
    inside = True
    for c in range(batch.shape[0]):
        inside &= (batch[c, i] >= low[c]) & (batch[c, i] <= high[c])
    return inside


@compiled()
def _insert_pairs(batch, start, stop, rows, state, count, width, words, mark):
    """`insert_bitmap` for two columns. Unsigned subscripts spare the test for negative ones."""
    zero, one = np.uint64(0), np.uint64(1)
    end = np.uint64(count)
    for block in range(start, stop, BLOCK):
        block_end = min(block + BLOCK, stop)
        for j in range(block, block_end):
            prefetch(words, (np.uint64(batch[0, j]) * width + np.uint64(batch[1, j])) >> np.uint64(6))
        for j in range(block, block_end):
            first, second = batch[zero, np.uint64(j)], batch[one, np.uint64(j)]
            position = np.uint64(first) * width + np.uint64(second)
            word = words[position >> np.uint64(6)]
            bit = one << (position & np.uint64(63))
            rows[end, zero] = first
            rows[end, one] = second
            state[end] = mark
            words[position >> np.uint64(6)] = word | bit
            end += np.uint64((word & bit) == zero)
    return np.int64(end)


_BITMAP = "i8[:,::1], i8, i8, {}[:,::1], u2[::1], i8, i8, i8[::1], i8[::1], u8[::1], i8"


@compiled(_BITMAP.format("i4"), _BITMAP.format("i8"), steps="start:n")
def insert_bitmap(batch, start, n, rows, state, count, limit, low, high, words, mark):
    """As `insert_hashed`, for a table whose tuples are the bits of `words`; without row ids.

    Each tuple is written behind the last row and counted only if it is new: there is no branch to mispredict.
    """
    if _outside(batch, start, n, low, high):
        return -1, count
    k = batch.shape[0]
    i = start
    while i < n and count < limit:
        stop = min(n, i + limit - count)  # room for all of these, should they all be new
        if k == 2:
            count = _insert_pairs(batch, i, stop, rows, state, count, np.uint64(high[1] + 1), words, mark)
        else:
            for j in range(i, stop):
                position = _bit_of(batch, j, high)
                word = words[position >> 6]
                bit = np.uint64(1) << np.uint64(position & 63)
                for c in range(k):
                    rows[count, c] = batch[c, j]
                state[count] = mark
                words[position >> 6] = word | bit
                count += np.int64((word & bit) == np.uint64(0))
        i = stop
    return i, count


#: a list of more rows than this does not lie in a near cache: what is needed of it is asked for ahead
FAR = 1 << 18


@compiled(inline="always")
def _seek_positions(batch, first, m, high, ids, positions):
    """The positions in `ids` of the tuples first … first+m. Column by column, so that it takes few instructions for each."""
    for b in range(m):
        positions[b] = np.uint64(0)
    for c in range(batch.shape[0]):
        width = np.uint64(high[c] + 1)
        for b in range(m):
            positions[b] = positions[b] * width + np.uint64(batch[c, first + b])
    if ids.size > FAR:
        for b in range(m):
            prefetch(ids, positions[b])


@compiled(inline="always")
def _append_direct(batch, j, rows, state, count, ids, position, mark):
    """Appends tuple j; its row plus one."""
    for c in range(batch.shape[0]):
        rows[np.uint64(count), np.uint64(c)] = batch[np.uint64(c), np.uint64(j)]
    state[np.uint64(count)] = mark
    ids[position] = count + 1
    return np.int32(count + 1)


_DIRECT = "i8[:,::1], i8, i8, {}[:,::1], u2[::1], i8, i8, i8[::1], i8[::1], i4[::1], i8, u8[:,::1], i4[::1]"


@compiled(_DIRECT.format("i4"), _DIRECT.format("i8"), steps="start:n")
def insert_direct(batch, start, n, rows, state, count, limit, low, high, ids, mark, scratch, out):
    """As `insert_hashed`, for a table that has the row of every possible tuple in `ids`, plus one; 0 where there is none."""
    if _outside(batch, start, n, low, high):
        return -1, count
    positions = scratch[0]
    wanted = out.size > 0
    for first in range(start, n, BLOCK):
        m = min(BLOCK, n - first)
        _seek_positions(batch, first, m, high, ids, positions)
        for b in range(m):
            row = ids[positions[b]]
            if row == 0:
                if count == limit:
                    return first + b, count
                row = _append_direct(batch, first + b, rows, state, count, ids, positions[b], mark)
                count += 1
            if wanted:
                out[np.uint64(first + b)] = row - 1
    return n, count


_COUNTED = "i8[:,::1], i8, i4[:,::1], u2[::1], i8, i8[::1], i8[::1], i4[::1], i4[::1], i8, u8[:,::1]"


@compiled(inline="always")
def _ask_counts_ahead(m, ids, positions, counts):
    if counts.size > 4 * FAR:  # a row beyond that is seldom in a near cache
        for b in range(m):
            prefetch(counts, max(ids[positions[b]] - 1, 0))


@compiled(_COUNTED, steps="n")
def count_direct(batch, n, rows, state, count, low, high, ids, counts, most, scratch):
    """`insert_direct`, with state 0 and room for all, that counts each tuple's row once more: (where it stopped, count).

    Stops where a count is `most`, or at once if some value is outside [low, high].
    """
    if _outside(batch, 0, n, low, high):
        return 0, count
    positions = scratch[0]
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        _seek_positions(batch, first, m, high, ids, positions)
        _ask_counts_ahead(m, ids, positions, counts)
        for b in range(m):
            row = ids[positions[b]]
            if row == 0:
                row = _append_direct(batch, first + b, rows, state, count, ids, positions[b], 0)
                count += 1
            before = np.int64(counts[np.uint64(row - 1)])
            if before == most:
                return first + b, count
            counts[np.uint64(row - 1)] = before + 1
    return n, count


@compiled(_COUNTED + ", i8, i4[::1], i4[::1]", steps="n")
def touch_direct(batch, n, rows, state, count, low, high, ids, counts, most, scratch, sign, touched, before):
    """As `count_direct`, by `sign`, and marks what it counts like `touch_counts`: (where it stopped, count, m)."""
    if _outside(batch, 0, n, low, high):
        return 0, count, 0
    positions = scratch[0]
    found = np.uint64(0)
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        _seek_positions(batch, first, m, high, ids, positions)
        _ask_counts_ahead(m, ids, positions, counts)
        for b in range(m):
            row = ids[positions[b]]
            if row == 0:
                row = _append_direct(batch, first + b, rows, state, count, ids, positions[b], 0)
                count += 1
            row -= 1
            held = np.int64(counts[np.uint64(row)])
            after = (held if held < 0 else ~held) - sign  # the count is ~after
            if after >= 0 or after < ~most:
                return first + b, count, np.int64(found)
            if held >= 0:
                touched[found] = row
                before[found] = held
                found += np.uint64(1)
            counts[np.uint64(row)] = after
    return n, count, np.int64(found)


@compiled()
def _tally_pairs(batch, n, rows, state, count, width, tally):
    """`count_tally` for two columns. Unsigned subscripts spare the test for negative ones."""
    zero, one = np.uint64(0), np.uint64(1)
    end = np.uint64(count)
    for block in range(0, n, BLOCK):
        block_end = min(block + BLOCK, n)
        for j in range(block, block_end):
            prefetch(tally, np.uint64(batch[0, j]) * width + np.uint64(batch[1, j]))
        for j in range(block, block_end):
            first, second = batch[zero, np.uint64(j)], batch[one, np.uint64(j)]
            position = np.uint64(first) * width + np.uint64(second)
            before = np.uint64(tally[position])
            if before == np.uint64(255):
                return j, np.int64(end)
            rows[end, zero] = first
            rows[end, one] = second
            state[end] = 0
            new = np.uint64(before == zero)
            tally[position] = before + one + new
            end += new
    return n, np.int64(end)


@compiled("i8[:,::1], i8, i4[:,::1], u2[::1], i8, i8[::1], i8[::1], u1[::1], u8[:,::1]", steps="n")
def count_tally(batch, n, rows, state, count, low, high, tally, scratch):
    """Appends absent tuples, with state 0, and counts each in the tally: (where it stopped, count).

    The tally of a tuple is 0 where it is absent, else one more than its count. Stops before it would exceed 255; -1 if some
    value is outside [low, high]. There is room for all. Without branches, as in `insert_bitmap`.
    """
    if _outside(batch, 0, n, low, high):
        return -1, count
    k = batch.shape[0]
    if k == 2:
        return _tally_pairs(batch, n, rows, state, count, np.uint64(high[1] + 1), tally)
    positions = scratch[0]
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        _seek_positions(batch, first, m, high, tally, positions)
        for b in range(m):
            before = np.int64(tally[positions[b]])
            if before == 255:
                return first + b, count
            for c in range(k):
                rows[np.uint64(count), np.uint64(c)] = batch[np.uint64(c), np.uint64(first + b)]
            state[np.uint64(count)] = 0
            new = np.int64(before == 0)
            tally[positions[b]] = before + 1 + new
            count += new
    return n, count


_TALLY = "i4[:,::1], i8, i8[::1], u1[::1]"


@compiled(_TALLY, steps="count")
def fill_tally(rows, count, high, tally):
    """Enters the rows 0 … count, each with a count of 0."""
    for row in range(count):
        tally[_bit_of_row(rows, row, high)] = 1


_READ = _TALLY + ", u8[:,::1], {}[::1], i8"


@compiled(_READ.format("i4"), _READ.format("i8"), steps="count")
def read_tally(rows, count, high, tally, scratch, counts, most):
    """Adds the tally to the counts of the rows 0 … count; the first row whose count would exceed `most`, or `count`."""
    positions = scratch[0]
    for first in range(0, count, BLOCK):
        m = min(BLOCK, count - first)
        for b in range(m):
            positions[b] = _bit_of_row(rows, first + b, high)
            prefetch(tally, positions[b])
        for b in range(m):
            more = np.int64(tally[positions[b]]) - 1
            if more > most - np.int64(counts[first + b]):
                return first + b
            counts[first + b] += more
            tally[positions[b]] = 1
    return count


@compiled("i8[:,::1], i8, i8, i8[::1], i8[::1], i4[::1], i4[::1]", steps="n")
def find_direct(batch, n, count, low, high, ids, out):
    """Row of each of n tuples among the first `count` rows into `out`, -1 where there is none."""
    for i in range(n):
        row = ids[_bit_of(batch, i, high)] - 1 if _is_inside(batch, i, low, high) else -1
        out[i] = row if row < count else -1


@compiled("i4[:,::1], i8, i8[::1], i4[::1]", "i8[:,::1], i8, i8[::1], i4[::1]", steps="count")
def fill_direct(rows, count, high, ids):
    """Enters the rows 0 … count."""
    for row in range(count):
        ids[_bit_of_row(rows, row, high)] = row + 1


@compiled("i8[:,::1], i8, i8[::1], i8[::1], u8[::1], b1[::1]", steps="n")
def test_bitmap(batch, n, low, high, words, out):
    """Whether each of n tuples is present."""
    for i in range(n):
        if _is_inside(batch, i, low, high):
            position = _bit_of(batch, i, high)
            out[i] = (words[position >> 6] >> np.uint64(position & 63)) & np.uint64(1) != np.uint64(0)
        else:
            out[i] = False


@compiled("i4[:,::1], i8, i8[::1], u8[::1]", "i8[:,::1], i8, i8[::1], u8[::1]", steps="count")
def fill_bitmap(rows, count, high, words):
    """Sets the bits of the rows 0 … count."""
    for row in range(count):
        position = _bit_of_row(rows, row, high)
        words[position >> 6] |= np.uint64(1) << np.uint64(position & 63)
