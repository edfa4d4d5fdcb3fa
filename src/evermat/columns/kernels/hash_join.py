"""Kernels of an index: from keys to groups, and from a group to its rows.

A *group* is a number for a key: the key itself where keys are small nonnegative numbers, else the order in which
the key first appeared, found through a hash like that of `hash_set`. All else sees only groups.

The rows of a group lie in two parts. *Bulk*: `segments[starts[g] : starts[g + 1]]`, ascending. *Recent*: a chain,
descending, from `heads[g]` through `links[row - base]`; both hold the row id plus one, and 0 ends the chain. Every
bulk row is below `base`, every recent one is not.

Readers may search and join while rows are entered: a slot leads to a group only after its sample is written, a head to a row only after its link
is. A group whose sample is a row that the reader does not know has none of its rows. A link that lies beyond the reader's array of links is in a
longer one that has replaced it.
"""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from evermat.columns.kernels.hash_set import BLOCK, _mix, _split, ask_slots, candidate
from evermat.columns.kernels.rows import lower_bound
from evermat.kernels import MANY, compiled, prefetch, publish

#: how many keys ahead of the current one its group's data is asked for
_AHEAD = 8
#: spare elements at the end of segments and outputs
PADDING = 8


@compiled("i8[:,::1], i8, i8, i4[::1]", steps="n", least=MANY)
def groups_direct(keys, n, groups, out):
    """Group of each of n keys that are their own group numbers; -1 outside 0 … groups."""
    for i in range(n):
        key = keys[0, i]
        out[i] = key if (key >= 0) & (key < groups) else -1


@compiled()
def _hash_columns(rows, row, columns, shift):
    h = np.uint64(0)
    for c in range(columns.size):
        h = _mix(h, np.uint64(np.int64(rows[row, columns[c]])))
    return _split(h, shift)


@compiled()
def _has_key(rows, row, columns, keys, i):
    same = True
    for c in range(columns.size):
        same &= np.int64(rows[row, columns[c]]) == keys[c, i]
    return same


@compiled()
def _have_same_key(rows, row, other, columns):
    same = True
    for c in range(columns.size):
        same &= rows[row, columns[c]] == rows[other, columns[c]]
    return same


_FIND = "i8[:,::1], i8, {}[:,::1], i8, i8[::1], i4[::1], u4[::1], i8, u8[:,::1], i4[::1]"


@compiled(_FIND.format("i4"), _FIND.format("i8"), steps="n")
def groups_hashed(keys, n, rows, count, columns, samples, slots, bits, scratch, out):
    """Group of each of n keys that one of the first `count` rows has, -1 where there is none; `samples[g]` is the first row of group g."""
    shift = np.uint64(bits)
    positions, tags = scratch[0], scratch[1]
    for first in range(0, n, BLOCK):
        m = min(BLOCK, n - first)
        ask_slots(keys, first, m, slots, shift, positions, tags)
        for b in range(m):
            position, group = candidate(slots, positions[b], tags[b], shift)
            while group >= 0 and not (
                samples[group] < count and _has_key(rows, samples[group], columns, keys, first + b)
            ):
                position, group = candidate(slots, position + np.uint64(1), tags[b], shift)
            out[first + b] = group


_ASSIGN = "{}[:,::1], i8[::1], i8, i8, i4[::1], i8, i8, u4[::1], i8, u8[:,::1], i4[::1], i8"


@compiled(_ASSIGN.format("i4"), _ASSIGN.format("i8"), steps="first:end")
def assign_groups(rows, columns, first, end, samples, groups, limit, slots, bits, scratch, out, base):
    """Group of each row first … end into `out[row - base]`, new groups for new keys; returns (next row, groups).

    Stops early when there are `limit` groups.
    """
    shift = np.uint64(bits)
    positions, tags = scratch[0], scratch[1]
    for block in range(first, end, BLOCK):
        m = min(BLOCK, end - block)
        for b in range(m):
            position, tag = _hash_columns(rows, block + b, columns, shift)
            positions[b] = position
            tags[b] = tag
            prefetch(slots, position)
        for b in range(m):
            row = block + b
            position, group = candidate(slots, positions[b], tags[b], shift)
            while group >= 0 and not _have_same_key(rows, samples[group], row, columns):
                position, group = candidate(slots, position + np.uint64(1), tags[b], shift)
            if group < 0:
                if groups == limit:
                    return row, groups
                group = groups
                samples[group] = row
                publish()
                slots[position] = np.uint32(np.uint64(group + 1) | tags[b])
                groups += 1
            out[row - base] = group
    return end, groups


_FILL = "{}[:,::1], i8[::1], i4[::1], i8, u4[::1], i8"


@compiled(_FILL.format("i4"), _FILL.format("i8"), steps="groups")
def fill_group_slots(rows, columns, samples, groups, slots, bits):
    """Enters the groups 0 … groups into empty slots."""
    shift = np.uint64(bits)
    last = (np.uint64(1) << shift) - np.uint64(1)
    for group in range(groups):
        position, tag = _hash_columns(rows, samples[group], columns, shift)
        while slots[position] != 0:
            position = (position + np.uint64(1)) & last
        slots[position] = np.uint32(np.uint64(group + 1) | tag)


_SPAN = "{}[:,::1], i8, i8, i8"


@compiled(_SPAN.format("i4"), _SPAN.format("i8"), steps="first:end", least=MANY)
def span_of_column(rows, column, first, end):
    """(least, greatest) value of a column in the rows first … end; (0, -1) if there are none."""
    if first == end:
        return np.int64(0), np.int64(-1)
    least = most = np.int64(rows[first, column])
    for row in range(first, end):
        least = min(least, np.int64(rows[row, column]))
        most = max(most, np.int64(rows[row, column]))
    return least, most


@compiled("i4[::1], i8, i8, i8, i4[::1], i4[::1]", steps="first:end", least=MANY)
def chain_rows(row_groups, first, end, base, heads, links):
    """Puts the rows first … end in front of their groups' chains."""
    for row in range(first, end):
        group = row_groups[row - base]
        links[row - base] = heads[group]
        publish()
        heads[group] = row + 1


@compiled("i4[::1], i4[::1], i8, i4[::1], i8, i8, i4[::1], i4[::1]")
def merge_rows(old_starts, old_segments, old_groups, row_groups, base, recent, starts, segments):
    """Bulk of the old bulk's rows and of the rows base … base + recent.

    `starts`, zeroed, has one element per group and two more; while rows are entered, `starts[g + 1]` is
    where the next row of g goes, so that in the end it is where group g + 1 starts.
    """
    groups = starts.size - 2
    for r in range(recent):
        starts[row_groups[r] + 2] += 1
    for g in range(old_groups):
        starts[g + 2] += old_starts[g + 1] - old_starts[g]
    for g in range(groups):
        starts[g + 2] += starts[g + 1]
    for g in range(old_groups):
        size = old_starts[g + 1] - old_starts[g]
        to, source = starts[g + 1], old_starts[g]
        for j in range(size):
            segments[to + j] = old_segments[source + j]
        starts[g + 1] = to + size
    for r in range(recent):
        group = row_groups[r]
        segments[starts[group + 1]] = base + r
        starts[group + 1] += 1


@compiled()
def _clip(segments, first, end, lo, hi):
    """The part of a segment with rows in lo … hi."""
    if first < end and segments[first] < lo:
        first = lower_bound(segments, first, end, lo)
    if first < end and segments[end - 1] >= hi:
        end = lower_bound(segments, first, end, hi)
    return first, end


@compiled()
def _open(group, starts, segments, heads, lo, hi, clipped, chains):
    """Where the segment of a group begins and ends, and the head of its chain; group -1 becomes greater than any."""
    group = np.uint64(np.int64(group))
    position = end = chain = np.int64(0)
    if group < np.uint64(starts.size - 1):
        position, end = np.int64(starts[group]), np.int64(starts[group + np.uint64(1)])
        if clipped:
            position, end = _clip(segments, position, end, lo, hi)
    if chains and group < np.uint64(heads.size):
        chain = np.int64(heads[group])
    return position, end, chain


@compiled()
def _ask_ahead(groups, i, n, starts, segments, heads, chains):
    """Asks for the data of later keys. A group beyond the arrays does no harm: asking never faults."""
    if i + 2 * _AHEAD < n:
        later = groups[np.uint64(i + 2 * _AHEAD)]
        prefetch(starts, later)
        if chains:
            prefetch(heads, later)
    if i + _AHEAD < n:
        soon = np.uint64(np.int64(groups[np.uint64(i + _AHEAD)]))
        if soon < np.uint64(starts.size):
            prefetch(segments, starts[soon])


@compiled()
def _copy(segments, position, i, out_i, out_row, m, size):
    """Pairs for `size` rows from `position` on, eight at a time.

    Segments and outputs are PADDING longer than what they hold, so that what is copied too much lies there or is
    overwritten by what comes next.
    """
    p, m = np.uint64(position), np.uint64(m)
    for _ in range(0, size, PADDING):
        for j in range(PADDING):
            out_row[m + np.uint64(j)] = segments[p + np.uint64(j)]
        for j in range(PADDING):
            out_i[m + np.uint64(j)] = i
        p += np.uint64(PADDING)
        m += np.uint64(PADDING)


_TIERS = "i4[::1], i8, i8[::1], i4[::1], i4[::1], i4[::1], i4[::1], i8, i8, i8"


@compiled(_TIERS + ", i4[::1], i4[::1]", steps="n", least=MANY)
def join_all(groups, n, cursor, starts, segments, heads, links, base, lo, hi, out_i, out_row):
    """Pairs (i, row) for the rows in lo … hi of each groups[i]; returns how many were written.

    Stops when the output is full but for its padding, or longer links are needed. `cursor` says where to go on: the key, whether it has been
    begun, the position in its segment and the segment's end, the position in its chain; cursor[0] == n at the end.
    """
    i, begun, position, end, chain = cursor[0], cursor[1], cursor[2], cursor[3], cursor[4]
    room = out_i.size - PADDING
    clipped = lo > 0 or hi < base
    chains = links.size > 0 and hi > base
    m = 0
    while i < n and m < room:
        if begun == 0:
            _ask_ahead(groups, i, n, starts, segments, heads, chains)
            position, end, chain = _open(groups[np.uint64(i)], starts, segments, heads, lo, hi, clipped, chains)
            begun = 1
        take = min(end - position, room - m)
        _copy(segments, position, i, out_i, out_row, m, take)
        m += take
        position += take
        while chain > lo and m < room:
            row = chain - 1
            if row - base >= links.size:
                room = 0
                break
            out_i[m] = i
            out_row[m] = row
            m += np.int64(row < hi)
            chain = np.int64(links[row - base])
        if position == end and chain <= lo:
            i += 1
            begun = 0
    cursor[0], cursor[1], cursor[2], cursor[3], cursor[4] = i, begun, position, end, chain
    return m


@compiled(_TIERS + ", u2[::1], u1[::1], i8, i4[::1], i4[::1]", steps="n")
def join_view(groups, n, cursor, starts, segments, heads, links, base, lo, hi, state, truth, most, out_i, out_row):
    """As `join_all`, for the rows whose state is true in `truth`; also stops when it has looked at `most` rows of segments."""
    i, begun, position, end, chain = cursor[0], cursor[1], cursor[2], cursor[3], cursor[4]
    room = out_i.size - PADDING
    clipped = lo > 0 or hi < base
    chains = links.size > 0 and hi > base
    m = 0
    while i < n and m < room and most > 0:
        if begun == 0:
            _ask_ahead(groups, i, n, starts, segments, heads, chains)
            position, end, chain = _open(groups[np.uint64(i)], starts, segments, heads, lo, hi, clipped, chains)
            begun = 1
        while position < end and m < room and most > 0:
            take = min(end - position, room - m)  # room for all of these, should they all qualify
            for j in range(position, position + take):
                row = np.uint64(np.int64(segments[np.uint64(j)]))
                out_i[np.uint64(m)] = i
                out_row[np.uint64(m)] = row
                m += np.int64(truth[np.uint64(state[row])])
            position += take
            most -= take
        while chain > lo and m < room:
            row = chain - 1
            if row - base >= links.size:
                room = 0
                break
            out_i[m] = i
            out_row[m] = row
            if row < hi:
                m += np.int64(truth[state[row]])
            chain = np.int64(links[row - base])
        if position == end and chain <= lo:
            i += 1
            begun = 0
    cursor[0], cursor[1], cursor[2], cursor[3], cursor[4] = i, begun, position, end, chain
    return m


_COUNT = "i4[::1], i8, i8, i4[::1], i4[::1], i4[::1], i4[::1], i8, i8, i8, u2[::1], u1[::1], i8, i8, i8[::1]"


@compiled(_COUNT, steps="begin:n")
def count_matches(groups, begin, n, starts, segments, heads, links, base, lo, hi, state, truth, most, budget, out):
    """Number of rows of each groups[i] from `begin` on in lo … hi and in the view, counted up to `most`.

    An empty `truth` stands for all rows. Returns where to go on: n, unless more than `budget` rows were looked at or longer links are needed.
    """
    every = truth.size == 0
    for i in range(begin, n):
        if budget < 0:
            return i
        _ask_ahead(groups, i, n, starts, segments, heads, True)
        first, end, chain = _open(groups[i], starts, segments, heads, lo, hi, True, True)
        found = np.int64(0)
        if every:
            found = end - first
        else:
            budget += first
            while first < end and found < most:
                found += np.int64(truth[state[segments[first]]])
                first += 1
            budget -= first
        while chain > lo and found < most:
            row = chain - 1
            if row - base >= links.size:
                return i
            if row < hi and (every or truth[state[row]]):
                found += 1
            chain = np.int64(links[row - base])
        out[i] = min(found, most)
    return n
