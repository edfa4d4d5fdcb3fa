"""Kernels over rows and counters."""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from evermat.kernels import FEW, MANY, compiled


@compiled()
def lower_bound(numbers, first, end, number):
    """The first position in first … end of sorted numbers whose number is not less than a given one; `end` if all are."""
    while first < end:
        middle = (first + end) >> 1
        if numbers[middle] < number:
            first = middle + 1
        else:
            end = middle
    return first


@compiled("i4[:,::1], i8, i4[::1], i8[:,::1], i8", "i8[:,::1], i8, i4[::1], i8[:,::1], i8", steps="ids", least=MANY)
def gather_rows(rows, column, ids, out, j):
    """out[j, i] = rows[ids[i], column]."""
    for i in range(ids.size):
        out[j, i] = rows[ids[i], column]


@compiled("i8[:,::1], i8, i4[::1], i8[:,::1], i8", steps="ids", least=MANY)
def gather_batch(batch, column, ids, out, j):
    """out[j, i] = batch[column, ids[i]]."""
    for i in range(ids.size):
        out[j, i] = batch[column, ids[i]]


_JOINED = "{}[:,::1], i4[::1], i8[:,::1], i8[:,::1], i4[::1], i8[:,::1], i8[:,::1]"


@compiled(_JOINED.format("i4"), _JOINED.format("i8"), steps="ids", least=FEW)
def gather_joined(rows, ids, binds, outer, positions, carry, out):
    """Bindings that a join has extended, all columns at once: so others run meanwhile, and there is one call.

    out[j, i] = rows[ids[i], column] for each (column, j) of `binds`, and out[j, i] = outer[k, positions[i]] for each (k, j) of `carry`.
    """
    for b in range(binds.shape[0]):
        column, j = binds[b, 0], binds[b, 1]
        for i in range(ids.size):
            out[j, i] = rows[ids[i], column]
    for b in range(carry.shape[0]):
        k, j = carry[b, 0], carry[b, 1]
        for i in range(ids.size):
            out[j, i] = outer[k, positions[i]]


@compiled("i8[:,::1], i8[::1], i4[::1]", steps="ids", least=FEW)
def compress_rows(batch, live, ids):
    """batch[j, i] = batch[j, ids[i]] for each j in `live`; `ids` ascend, so that nothing is overwritten too early."""
    for b in range(live.size):
        j = live[b]
        for i in range(ids.size):
            batch[j, i] = batch[j, ids[i]]


@compiled("u2[::1], i8, i8, u1[::1]", steps="first:end", least=MANY)
def count_rows(state, first, end, truth):
    """How many of the rows first … end have a state that is true."""
    m = 0
    for row in range(first, end):
        m += np.int64(truth[state[row]])
    return m


@compiled("i4[:,::1], i8, i8, i8, i8[:,::1], i8", "i8[:,::1], i8, i8, i8, i8[:,::1], i8", steps="first:end", least=MANY)
def copy_column(rows, column, first, end, out, j):
    """out[j, i] = rows[first + i, column]."""
    for i in range(first, end):
        out[j, i - first] = rows[i, column]


@compiled("i4[:,::1], i8, i8, i8, i4[::1]", "i8[:,::1], i8, i8, i8, i4[::1]", steps="first:end", least=MANY)
def list_column(rows, column, first, end, out):
    """out[i] = rows[first + i, column]."""
    for i in range(first, end):
        out[i - first] = rows[i, column]


@compiled("i8[:,::1], i8, i8, i8, i8", steps="first:end", least=MANY)
def fill_row(batch, j, first, end, value):
    """batch[j, i] = value for i from first to end."""
    for i in range(first, end):
        batch[j, i] = value


@compiled("i4[::1], i4[::1]", steps="ids", least=MANY)
def pick_existing(ids, out):
    """The listed rows that are not -1, in order; returns how many."""
    m = 0
    for i in range(ids.size):
        out[m] = ids[i]
        m += np.int64(ids[i] >= 0)
    return m


@compiled("i4[::1],", steps="ids", least=MANY)
def first_descent(ids):
    """The first position of a listed row that is not greater than the one ahead of it; `ids.size` if there is none."""
    i = 1
    while i < ids.size and ids[i] > ids[i - 1]:
        i += 1
    return min(i, ids.size)


@compiled("b1[::1], i4[::1]", steps="ids", least=MANY)
def mark_rows(inside, ids):
    """Marks the listed rows."""
    for i in range(ids.size):
        inside[ids[i]] = True


@compiled("b1[::1], i4[::1], b1[::1]", steps="ids", least=MANY)
def test_marks(inside, ids, out):
    """Whether each listed row is marked."""
    for i in range(ids.size):
        out[i] = inside[ids[i]]


#: of truth tables, none of which is large enough for others to run meanwhile
_TRUTH = 1 << 20


@compiled("u1[::1], u1[::1], u1[::1]", steps="out", least=_TRUTH)
def subtract_truth(left, right, out):
    """Where the left truth table is true, and the right one is not."""
    for i in range(out.size):
        out[i] = left[i] & ~right[i]


_MOST_INSTANCES = 9.2e18


@compiled("i8[::1], i8[::1]", "i8[::1], b1[::1]", steps="weights", least=MANY)
def multiply_weights(weights, factors):
    """weights[i] *= factors[i]; returns whether the products fit, and does nothing if one does not."""
    for i in range(weights.size):
        if np.float64(weights[i]) * np.float64(factors[i]) > _MOST_INSTANCES:
            return False
    for i in range(weights.size):
        weights[i] *= np.int64(factors[i])
    return True


@compiled("u2[::1], i4[::1], i8, i8", steps="ids", least=MANY)
def change_bits(state, ids, keep, add):
    """Sets state = state & keep | add for the listed rows."""
    for i in range(ids.size):
        state[ids[i]] = (np.int64(state[ids[i]]) & keep) | add


@compiled("u2[::1], i4[::1], u1[::1], i8, i4[::1]", steps="ids", least=MANY)
def claim_rows(state, ids, blocked, bits, out):
    """Sets `bits` in each listed row whose state is not blocked (then it is), and list it; returns how many."""
    m = 0
    for i in range(ids.size):
        row = ids[i]
        before = np.int64(state[row])
        out[m] = row
        free = np.int64(blocked[before] == 0)
        state[row] = before | (bits * free)
        m += free
    return m


@compiled("u2[::1], i4[::1], u1[::1], i4[::1]", steps="ids", least=MANY)
def filter_rows(state, ids, truth, out):
    """The listed rows whose state is true, in order; returns how many."""
    m = 0
    for i in range(ids.size):
        row = ids[i]
        out[m] = row
        m += np.int64(truth[state[row]])
    return m


@compiled("u2[::1], i4[::1], i8, b1[::1]", steps="ids", least=MANY)
def test_bits(state, ids, bits, out):
    """Whether each listed row has one of some bits."""
    for i in range(ids.size):
        out[i] = (np.int64(state[ids[i]]) & bits) != 0


@compiled("u2[::1], i4[::1], i8, i8, u1[::1], b1[::1]", steps="ids", least=MANY)
def test_rows(state, ids, first, end, truth, out):
    """Whether each listed row is one of first … end, and its state true; an empty `truth` stands for all states."""
    every = truth.size == 0
    for i in range(ids.size):
        row = ids[i]
        inside = first <= row < end
        out[i] = inside if every or not inside else truth[state[row]] != 0


@compiled("i4[::1], b1[::1], b1, i4[::1]", steps="ids", least=MANY)
def pick_rows(ids, mask, wanted, out):
    """The listed rows whose mask is as wanted, in order; returns how many."""
    m = 0
    for i in range(ids.size):
        out[m] = ids[i]
        m += np.int64(mask[i] == wanted)
    return m


@compiled("b1[::1], b1, i4[::1]", steps="mask", least=MANY)
def list_positions(mask, wanted, out):
    """The positions at which a mask is as wanted; returns how many."""
    m = 0
    for i in range(mask.size):
        out[m] = i
        m += np.int64(mask[i] == wanted)
    return m


@compiled("u2[::1], i8, i8, u1[::1], i4[::1]", steps="first:end", least=MANY)
def scan_rows(state, first, end, truth, out):
    """The rows first … end whose state is true; returns (next row, how many); stops when `out` is full."""
    m = 0
    row = first
    while row < end and m < out.size:
        stop = min(end, row + out.size - m)
        for r in range(row, stop):
            out[m] = r
            m += np.int64(truth[state[r]])
        row = stop
    return row, m


@compiled("i8[:,::1], i8, u8[::1], u8[::1]", steps="n", least=MANY)
def masks_of(batch, n, masks, out):
    """out[i] = the bits that the masks of all values of tuple i have in common, none for a value without a mask; returns all bits that any has."""
    found = np.uint64(0)
    for i in range(n):
        common = ~np.uint64(0)
        for c in range(batch.shape[0]):
            value = batch[c, i]
            common &= masks[value] if 0 <= value < masks.size else np.uint64(0)
        out[i] = common
        found |= common
    return found


_COUNTER = "{}[::1], i4[::1], {}, i8, i8, i8"
_SHARED = "Array(i8, 1, 'C', readonly=True)"  # weights of many batches alike


@compiled(
    _COUNTER.format("i4", "i8[::1]"),
    _COUNTER.format("i8", "i8[::1]"),
    _COUNTER.format("i8", _SHARED),
    steps="ids",
    least=MANY,
)
def add_counts(counts, ids, weights, sign, start, most):
    """counts[ids[i]] += sign * weight from i = start on; an empty `weights` stands for ones.

    Returns ids.size, or the i at which a count would leave 0 … most; nothing is done from that i on.
    """
    weighted = weights.size > 0
    for i in range(start, ids.size):
        row = ids[i]
        before = np.int64(counts[row])
        weight = weights[i] if weighted else np.int64(1)
        # compared without adding, which might wrap
        if (sign > 0 and weight > most - before) or (sign < 0 and weight > before):
            return i
        counts[row] = before + sign * weight
    return ids.size


_TOUCH = "{0}[::1], i4[::1], i8[::1], i8, i8, i8, i4[::1], {0}[::1]"


@compiled(_TOUCH.format("i4"), _TOUCH.format("i8"), steps="ids", least=MANY)
def touch_counts(counts, ids, weights, sign, start, most, touched, before):
    """As `add_counts`, and marks what it counts: a marked count c is held as ~c, which is negative.

    Returns (where it stopped, m); the first m of `touched` and `before` are the rows that were not marked, and their counts.
    """
    weighted = weights.size > 0
    m = 0
    for i in range(start, ids.size):
        row = np.uint64(ids[i])
        held = counts[row]
        count = ~held if held < 0 else held
        weight = weights[i] if weighted else np.int64(1)
        if weight > (most - count if sign > 0 else count):
            return i, m
        touched[np.uint64(m)] = ids[i]
        before[np.uint64(m)] = count
        counts[row] = ~(count + sign * weight)
        m += np.int64(held >= 0)
    return ids.size, m


@compiled("i4[::1], i4[::1]", "i8[::1], i4[::1]", steps="ids", least=MANY)
def settle_counts(counts, ids):
    """The listed rows are marked no more."""
    for i in range(ids.size):
        held = counts[ids[i]]
        counts[ids[i]] = ~held if held < 0 else held


@compiled("i4[::1], i4[::1], i8[::1]", "i8[::1], i4[::1], i8[::1]", steps="ids", least=MANY)
def get_counts(counts, ids, out):
    """Counts of the listed rows; a row beyond the end counts 0."""
    for i in range(ids.size):
        row = ids[i]
        held = counts[row] if row < counts.size else 0
        out[i] = ~held if held < 0 else held
