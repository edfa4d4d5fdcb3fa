"""Kernels that read intervals: closures as the numbers that each node reaches. Those that make them are in `interval_build`.

Nodes have numbers, and a node reaches the sorted, disjoint intervals `low[i] … high[i]`, ends included, of its *slice*:
`i` from `starts[node]`, as many as `counts[node]`. It reaches another node if they contain its `home`.
"""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from evermat.columns.kernels.rows import lower_bound
from evermat.kernels import compiled

#: what to make of the intervals of two versions
ALL, BOTH, LESS = 0, 1, 2


@compiled()
def contains(low, high, first, end, number):
    """Whether one of the intervals first … end contains a number."""
    found = lower_bound(high, first, end, number)
    return found < end and low[found] <= number


@compiled("i4[::1], i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i4[::1], i8, u1[::1]", steps="tails")
def test_pairs_in(tails, heads, starts, counts, low, high, home, bit, out):
    """Sets a bit for each pair of which the first node reaches the second; nodes that there are not are not reached."""
    for i in range(tails.size):
        tail, head = tails[i], heads[i]
        if 0 <= tail < home.size and 0 <= head < home.size:
            first = starts[tail]
            if contains(low, high, first, first + counts[tail], home[head]):
                out[i] |= np.uint8(bit)


@compiled()
def _node(value, source, least, greatest, ids):
    """The node of a value, or its source, in a list of the rows of all pairs of these within bounds; -1 if there is none."""
    if value < least[0] or value > greatest[0] or source < least[1] or source > greatest[1]:
        return np.int64(-1)
    return np.int64(ids[value * (greatest[1] + 1) + source]) - 1


@compiled(
    "i8[:,::1], i8, b1, i8, i8[::1], i8[::1], i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i4[::1], u1[::1]", steps="n"
)  # fmt: skip
def test_facts(facts, n, flipped, source, least, greatest, ids, starts, counts, low, high, home, out):
    """Sets to 1 what belongs to a fact whose first value's node reaches the second's, or the other way round; `source`: 1 if it begins at a source.

    Facts that follow one another often have the same first value: what its node reaches is looked for once.
    """
    first, second = (1, 0) if flipped else (0, 1)
    begin = end = np.int64(0)
    for i in range(n):
        if i == 0 or facts[first, i] != facts[first, i - 1]:
            tail = _node(facts[first, i], source, least, greatest, ids)
            begin = end = np.int64(0)
            if 0 <= tail < home.size:
                begin = starts[tail]
                end = begin + counts[tail]
        if begin < end:
            head = _node(facts[second, i], np.int64(0), least, greatest, ids)
            if 0 <= head < home.size and contains(low, high, begin, end, home[head]):
                out[i] = np.uint8(1)


@compiled("i4[::1], i8, i4[::1]")
def tabulate(homes, shift, table):
    """table[b] = how many of the sorted numbers are less than b << shift."""
    at = 0
    for b in range(table.size):
        least = b << shift
        while at < homes.size and homes[at] < least:
            at += 1
        table[b] = at


@compiled()
def _position(number, homes, table, shift):
    """How many of the homes are less than a number."""
    bucket = number >> shift
    if bucket >= table.size - 1:
        return np.int64(homes.size)
    return lower_bound(homes, np.int64(table[bucket]), np.int64(table[bucket + 1]), number)


@compiled(
    "i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i8, "
    "i4[::1], i4[::1], i8, i8[::1], i4[::1], i4[::1], i4[::1]"
)
def find_ranges(
    sources, starts, counts, low, high, other_starts, other_counts, other_low, other_high, operation,
    homes, table, shift, cursor, out_owner, out_begin, out_end,
):  # fmt: skip
    """What nodes reach, as ranges of positions in a list that is sorted by `homes`; returns how many ranges there are, none of them empty.

    By the operation it is all that they reach, or that of it which they reach, or do not reach, in another version, which has the
    same numbers: there, the same slice is the same intervals. The owner of a range is the position of its node among the sources;
    those that there are not reach nothing. A source that has the same slices as the one before it costs no more than its ranges. Stops when the buffers are full, and goes on from the cursor, which is 0 at first; all is done
    when its first element is the number of sources.
    """
    i, a, b, least = cursor[0], cursor[1], cursor[2], cursor[3]
    room = out_owner.size
    m = 0
    # The slices of the source before, and where its ranges are, if they are complete.
    last_first = last_end = last_other_first = last_other_end = np.int64(-1)
    last_begin = last_stop = 0
    while i < sources.size:
        node = sources[i]
        first = end = other_first = other_end = np.int64(0)
        if 0 <= node < starts.size:
            first = starts[node]
            end = first + counts[node]
            if node < other_starts.size:
                other_first = other_starts[node]
                other_end = other_first + other_counts[node]
        is_same = first == other_first and end == other_end
        if operation == LESS and is_same:
            end = first
        two = operation != ALL and not is_same
        if (
            a == b == least == 0 and m + last_stop - last_begin <= room
            and last_first == first and last_end == end and last_other_first == other_first and last_other_end == other_end
        ):  # fmt: skip
            for k in range(last_begin, last_stop):
                out_owner[m] = i
                out_begin[m] = out_begin[k]
                out_end[m] = out_end[k]
                m += 1
            i += 1
            continue
        is_whole = a == b == least == 0
        last_begin = m
        a += first
        b += other_first
        while a < end and m < room:
            begin, last = max(np.int64(low[a]), least), np.int64(high[a])
            if not two:
                a += 1
            else:
                while b < other_end and other_high[b] < begin:
                    b += 1
                if operation == BOTH:
                    if b == other_end:
                        a = end
                        break
                    if other_low[b] > last:
                        a += 1
                        continue
                    begin = max(begin, np.int64(other_low[b]))
                    if other_high[b] < last:
                        last = np.int64(other_high[b])
                        b += 1
                    else:
                        a += 1
                elif b == other_end or other_low[b] > last:
                    a += 1
                else:
                    if other_high[b] >= last:
                        a += 1
                    least = np.int64(other_high[b]) + 1
                    last = np.int64(other_low[b]) - 1
                    if last < begin:
                        continue
            position = _position(begin, homes, table, shift)
            stop = _position(last + 1, homes, table, shift)
            if position < stop:
                out_owner[m] = i
                out_begin[m] = position
                out_end[m] = stop
                m += 1
        if a < end:
            cursor[0], cursor[1], cursor[2], cursor[3] = i, a - first, b - other_first, least
            return m
        last_stop = m
        last_first, last_end = first if is_whole else np.int64(-1), end
        last_other_first, last_other_end = other_first, other_end
        i += 1
        a = b = least = np.int64(0)
    cursor[0], cursor[1], cursor[2], cursor[3] = i, 0, 0, 0
    return m


@compiled("i4[::1], i4[::1], i4[::1], i4[::1], i8[::1], i4[::1], i4[::1], i4[::1]")
def write_ranges(owner, begin, end, listed, cursor, labels, out_labels, out_listed):
    """All that is listed in the ranges, with the label of its range's owner; returns how much.

    Stops when the buffers are full, and goes on from the cursor, which is 0 at first; there is no more when its first element
    is the number of ranges.
    """
    k, offset = cursor[0], cursor[1]
    room = out_labels.size
    m = 0
    while k < owner.size:
        position = begin[k] + offset
        many = min(end[k] - position, room - m)
        label = labels[owner[k]]
        for j in range(many):
            out_labels[m + j] = label
            out_listed[m + j] = listed[position + j]
        m += many
        if position + many < end[k]:
            cursor[0], cursor[1] = k, offset + many
            return m
        k += 1
        offset = 0
    cursor[0], cursor[1] = k, 0
    return m


@compiled("i4[::1], i4[::1], i4[::1], i8[::1], i8[::1], i8[::1], i4[::1], i4[::1], b1, i8, i8[:,::1]")
def write_facts(owner, begin, end, cursor, labels, names, apart, groups, flipped, filled, out):
    """As `write_ranges`, but the names of what is listed, into a batch of facts that is filled up to some column; returns how far it is then.

    An owner's label comes first, or last if the facts are flipped. Where `apart` is not empty, what is listed in the group that it has for the
    owner is left out; in -1 there is nothing.
    """
    k, offset = cursor[0], cursor[1]
    room = out.shape[1]
    firsts, seconds = (out[1], out[0]) if flipped else (out[0], out[1])
    m = filled
    while k < owner.size:
        label = labels[owner[k]]
        group = apart[owner[k]] if apart.size > 0 else -1
        position, stop = begin[k] + offset, np.int64(end[k])
        if group < 0:
            many = min(stop - position, room - m)
            for j in range(many):
                firsts[m + j] = label
                seconds[m + j] = names[position + j]
            m += many
            position += many
        else:
            while position < stop and m < room:
                if groups[position] != group:
                    firsts[m] = label
                    seconds[m] = names[position]
                    m += 1
                position += 1
        if position < stop:
            cursor[0], cursor[1] = k, position - begin[k]
            return m
        k += 1
        offset = np.int64(0)
    cursor[0], cursor[1] = k, 0
    return m


@compiled("i4[::1], i4[::1], i4[::1], i8[::1]")
def add_lengths(owner, begin, end, totals):
    """Adds the length of each range to the total of its owner."""
    for k in range(owner.size):
        totals[owner[k]] += end[k] - begin[k]


@compiled("i4[::1], i4[::1], i8[::1]")
def add_steps(begin, end, steps):
    """Adds 1 where a range begins and takes it away where it ends: the running sum is the number of ranges that a position is in."""
    for k in range(begin.size):
        steps[begin[k]] += 1
        steps[end[k]] -= 1


# Versions with different numbers are compared by marks: bit i of a word for each node, or whatever is listed, stands for owner i.


@compiled("i4[::1], i4[::1], i4[::1], i4[::1], b1, u8[::1]")
def mark_ranges(owner, begin, end, listed, present, marks):
    """Sets the bit of the owner for all that is listed in a range, or clears all bits."""
    for k in range(owner.size):
        bit = np.uint64(1) << np.uint64(owner[k])
        for position in range(begin[k], end[k]):
            if present:
                marks[listed[position]] |= bit
            else:
                marks[listed[position]] = np.uint64(0)


@compiled("i4[::1], i4[::1], i4[::1], i4[::1], b1, u8[::1], i8[::1]")
def add_marked(owner, begin, end, listed, present, marks, totals):
    """Adds to the total of each owner how much of its ranges has its mark, or has it not."""
    for k in range(owner.size):
        shift = np.uint64(owner[k])
        for position in range(begin[k], end[k]):
            if ((marks[listed[position]] >> shift) & np.uint64(1) != np.uint64(0)) == present:
                totals[owner[k]] += 1


@compiled("i4[::1], i4[::1], i4[::1], i4[::1], b1, u8[::1], i8[::1], i4[::1], i4[::1], i4[::1]")
def write_marked(owner, begin, end, listed, present, marks, cursor, labels, out_labels, out_listed):
    """As `write_ranges`, but only what has the owner's mark, or has it not."""
    k, offset = cursor[0], cursor[1]
    m = 0
    while k < owner.size:
        shift = np.uint64(owner[k])
        for position in range(begin[k] + offset, end[k]):
            if ((marks[listed[position]] >> shift) & np.uint64(1) != np.uint64(0)) == present:
                if m == out_labels.size:
                    cursor[0], cursor[1] = k, position - begin[k]
                    return m
                out_labels[m] = labels[owner[k]]
                out_listed[m] = listed[position]
                m += 1
        k += 1
        offset = np.int64(0)
    cursor[0], cursor[1] = k, 0
    return m
