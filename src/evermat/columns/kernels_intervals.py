"""Kernels over intervals: closures as the numbers that each node reaches.

Nodes have numbers, and a node reaches the sorted, disjoint intervals `low[i] … high[i]`, ends included, of its *slice*:
`i` from `starts[node]`, as many as `counts[node]`. It reaches another node if they contain its `home`.
"""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from evermat.columns.jit import compiled

#: what to make of the intervals of two versions
ALL, BOTH, LESS = 0, 1, 2
#: how what a component reaches has changed
GREW, SHRANK = 1, 2


@compiled()
def _first_not_before(high, first, end, number):
    """The first of the intervals first … end that does not end before a number; `end` if all do."""
    while first < end:
        middle = (first + end) >> 1
        if high[middle] < number:
            first = middle + 1
        else:
            end = middle
    return first


@compiled()
def _contains(low, high, first, end, number):
    """Whether one of the intervals first … end contains a number."""
    found = _first_not_before(high, first, end, number)
    return found < end and low[found] <= number


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@compiled("i4[::1], i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i4[::1], i8, u1[::1]")
def test_pairs_in(tails, heads, starts, counts, low, high, home, bit, out):
    """Sets a bit for each pair of which the first node reaches the second; nodes that there are not are not reached."""
    for i in range(tails.size):
        tail, head = tails[i], heads[i]
        if 0 <= tail < home.size and 0 <= head < home.size:
            first = starts[tail]
            if _contains(low, high, first, first + counts[tail], home[head]):
                out[i] |= np.uint8(bit)


@compiled()
def _node(value, source, least, greatest, ids):
    """The node of a value, or its source, in a list of the rows of all pairs of these within bounds; -1 if there is none."""
    if value < least[0] or value > greatest[0] or source < least[1] or source > greatest[1]:
        return np.int64(-1)
    return np.int64(ids[value * (greatest[1] + 1) + source]) - 1


@compiled(
    "i8[:,::1], i8, b1, i8, i8[::1], i8[::1], i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i4[::1], u1[::1]"
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
            if 0 <= head < home.size and _contains(low, high, begin, end, home[head]):
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
def _place(number, homes, table, shift):
    """How many of the homes are less than a number."""
    bucket = number >> shift
    if bucket >= table.size - 1:
        return np.int64(homes.size)
    at, end = np.int64(table[bucket]), np.int64(table[bucket + 1])
    while at < end:
        middle = (at + end) >> 1
        if homes[middle] < number:
            at = middle + 1
        else:
            end = middle
    return at


@compiled(
    "i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i8, "
    "i4[::1], i4[::1], i8, i8[::1], i4[::1], i4[::1], i4[::1]"
)
def find_ranges(
    sources, starts, counts, low, high, other_starts, other_counts, other_low, other_high, operation,
    homes, table, shift, cursor, out_owner, out_begin, out_end,
):  # fmt: skip
    """What nodes reach, as ranges of places in a list that is sorted by `homes`; returns how many ranges there are, none of them empty.

    By the operation it is all that they reach, or that of it which they reach, or do not reach, in another version, which has the
    same numbers: there, the same slice is the same intervals. The owner of a range is the place of its node among the sources;
    those that there are not reach nothing. A source that has the same slices as the one before it costs no more than its ranges. Stops when the buffers are full, and goes on from the cursor, which is 0 at first; there is no
    more when its first element is the number of sources.
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
            place = _place(begin, homes, table, shift)
            stop = _place(last + 1, homes, table, shift)
            if place < stop:
                out_owner[m] = i
                out_begin[m] = place
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
        place = begin[k] + offset
        many = min(end[k] - place, room - m)
        label = labels[owner[k]]
        for j in range(many):
            out_labels[m + j] = label
            out_listed[m + j] = listed[place + j]
        m += many
        if place + many < end[k]:
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
        place, stop = begin[k] + offset, np.int64(end[k])
        if group < 0:
            many = min(stop - place, room - m)
            for j in range(many):
                firsts[m + j] = label
                seconds[m + j] = names[place + j]
            m += many
            place += many
        else:
            while place < stop and m < room:
                if groups[place] != group:
                    firsts[m] = label
                    seconds[m] = names[place]
                    m += 1
                place += 1
        if place < stop:
            cursor[0], cursor[1] = k, place - begin[k]
            return m
        k += 1
        offset = np.int64(0)
    cursor[0], cursor[1] = k, 0
    return m


@compiled("i4[::1], i4[::1]")
def total_length(begin, end):
    """How much all ranges have together."""
    total = np.int64(0)
    for k in range(begin.size):
        total += end[k] - begin[k]
    return total


@compiled("i4[::1], i4[::1], i4[::1], i8[::1]")
def add_lengths(owner, begin, end, totals):
    """Adds the length of each range to the total of its owner."""
    for k in range(owner.size):
        totals[owner[k]] += end[k] - begin[k]


@compiled("i4[::1], i4[::1], i8[::1]")
def add_steps(begin, end, steps):
    """Adds 1 where a range begins and takes it away where it ends: the running sum tells how many ranges a place is in."""
    for k in range(begin.size):
        steps[begin[k]] += 1
        steps[end[k]] -= 1


# Versions with different numbers are compared by marks: bit i of a word for each node, or whatever is listed, stands for owner i.


@compiled("i4[::1], i4[::1], i4[::1], i4[::1], b1, u8[::1]")
def mark_ranges(owner, begin, end, listed, present, marks):
    """Sets the bit of the owner for all that is listed in a range, or clears all bits."""
    for k in range(owner.size):
        bit = np.uint64(1) << np.uint64(owner[k])
        for place in range(begin[k], end[k]):
            if present:
                marks[listed[place]] |= bit
            else:
                marks[listed[place]] = np.uint64(0)


@compiled("i4[::1], i4[::1], i4[::1], i4[::1], b1, u8[::1], i8[::1]")
def add_marked(owner, begin, end, listed, present, marks, totals):
    """Adds to the total of each owner how much of its ranges has its mark, or has it not."""
    for k in range(owner.size):
        shift = np.uint64(owner[k])
        for place in range(begin[k], end[k]):
            if ((marks[listed[place]] >> shift) & np.uint64(1) != np.uint64(0)) == present:
                totals[owner[k]] += 1


@compiled("i4[::1], i4[::1], i4[::1], i4[::1], b1, u8[::1], i8[::1], i4[::1], i4[::1], i4[::1]")
def write_marked(owner, begin, end, listed, present, marks, cursor, labels, out_labels, out_listed):
    """As `write_ranges`, but only what has the owner's mark, or has it not."""
    k, offset = cursor[0], cursor[1]
    m = 0
    while k < owner.size:
        shift = np.uint64(owner[k])
        for place in range(begin[k] + offset, end[k]):
            if ((marks[listed[place]] >> shift) & np.uint64(1) != np.uint64(0)) == present:
                if m == out_labels.size:
                    cursor[0], cursor[1] = k, place - begin[k]
                    return m
                out_labels[m] = labels[owner[k]]
                out_listed[m] = listed[place]
                m += 1
        k += 1
        offset = np.int64(0)
    cursor[0], cursor[1] = k, 0
    return m


# ── Numbers for nodes that have none ─────────────────────────────────────────────────────────────────────────────────


@compiled()
def _share(node, parent, own, home):
    """A node gets the lower half of what its parent can spare, if there is any; the parent's home is never given away."""
    spare = home[parent] - own[parent]
    if spare == 0 or home[node] >= 0:
        return False
    half = (spare + 1) >> 1
    own[node] = own[parent]
    home[node] = own[parent] + half - 1
    own[parent] += half
    return True


@compiled("i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i8, i8, i8, i4[::1], i4[::1], i4[::1]")
def number_fresh(tails, heads, starts, lists, roots, first, top, stride, own, home, queue):
    """Gives numbers to the nodes from `first` on, whose home is -1; returns the least number that is not given to any.

    Each gets a part of the numbers of a node with an edge to it that has some to spare: the edges from nodes that have numbers are given by
    tails and heads, those from the others are listed for each of these. What finds none gets `stride` numbers of its own, `roots` first.
    """
    found = done = 0
    for i in range(tails.size):
        if _share(heads[i], tails[i], own, home):
            queue[found] = heads[i]
            found += 1
    at = 0
    while True:
        while done < found:
            parent = queue[done]
            done += 1
            for e in range(starts[parent - first], starts[parent - first + 1]):
                if _share(lists[e], parent, own, home):
                    queue[found] = lists[e]
                    found += 1
        while at < roots.size and home[roots[at]] >= 0:
            at += 1
        if at == roots.size:
            return top
        own[roots[at]] = top
        top += stride
        home[roots[at]] = top - 1
        queue[found] = roots[at]
        found += 1


# ── What components reach ────────────────────────────────────────────────────────────────────────────────────────────
# A union is made on a stack of runs of intervals. `stack` has four rows: lower and upper ends of the runs one after the other, and twice the same
# to merge them into. Run k begins at `runs[k]`. A run is more than twice as long as the next, so there are few, and an
# interval is copied few times.


@compiled()
def _merge_runs(stack, runs, depth, top, to_one):
    """Merge the last runs while they are not much longer than the next, or all of them; returns their number and the last one's end."""
    low, high, spare_low, spare_high = stack[0], stack[1], stack[2], stack[3]
    while depth > 1:
        first, middle = runs[depth - 2], runs[depth - 1]
        if not to_one and middle - first > 2 * (top - middle):
            break
        a, b, m = first, middle, 0
        while a < middle or b < top:
            if b == top or (a < middle and low[a] <= low[b]):
                begin, end = low[a], high[a]
                a += 1
            else:
                begin, end = low[b], high[b]
                b += 1
            if m > 0 and begin <= spare_high[m - 1] + 1:
                spare_high[m - 1] = max(end, spare_high[m - 1])
            else:
                spare_low[m] = begin
                spare_high[m] = end
                m += 1
        for k in range(m):
            low[first + k] = spare_low[k]
            high[first + k] = spare_high[k]
        top = first + m
        depth -= 1
    return depth, top


@compiled()
def _push(low, high, first, count, stack, runs, depth, top):
    """Put intervals onto the stack, for which there is room."""
    if count == 0:
        return depth, top
    for k in range(count):
        stack[0, top + k] = low[first + k]
        stack[1, top + k] = high[first + k]
    runs[depth] = top
    return _merge_runs(stack, runs, depth + 1, top + count, False)


@compiled()
def _push_one(begin, end, stack, runs, depth, top):
    """Put an interval onto the stack, for which there is room."""
    stack[0, top] = begin
    stack[1, top] = end
    runs[depth] = top
    return _merge_runs(stack, runs, depth + 1, top + 1, False)


@compiled()
def _push_node(node, starts, counts, own, home, low, high, stack, runs, depth, top):
    """Put all that a node reaches, and the node, onto the stack, for which there is room."""
    first, end = starts[node], starts[node] + counts[node]
    depth, top = _push(low, high, first, counts[node], stack, runs, depth, top)
    if not _contains(low, high, first, end, home[node]):  # else it lies on a cycle, and is there already
        depth, top = _push_one(own[node], home[node], stack, runs, depth, top)
    return depth, top


@compiled()
def _holds(stack, runs, depth, top, number):
    """Whether intervals on the stack contain a number."""
    for k in range(depth):
        end = runs[k + 1] if k + 1 < depth else top
        if _contains(stack[0], stack[1], runs[k], end, number):
            return True
    return False


@compiled()
def _reach_anew(
    c, bounds, members, nodes, inner_starts, inner, outer_starts, outer, cyclic,
    starts, counts, own, home, low, high, stack, runs,
):  # fmt: skip
    """Put all that a component reaches onto the stack; returns the runs, where they end, and the room that is wanted if there is not enough."""
    room = stack.shape[1]
    depth = top = np.int64(0)
    if cyclic[c]:
        for i in range(bounds[c], bounds[c + 1]):
            if top == room:
                return depth, top, top + 1
            node = nodes[members[i]]
            depth, top = _push_one(own[node], home[node], stack, runs, depth, top)
    for e in range(inner_starts[c], inner_starts[c + 1]):
        node = nodes[members[bounds[inner[e]]]]
        # Whatever reaches a node reaches all that it reaches.
        if not _holds(stack, runs, depth, top, home[node]):
            if top + counts[node] >= room:
                return depth, top, top + counts[node] + 1
            depth, top = _push_node(node, starts, counts, own, home, low, high, stack, runs, depth, top)
    for e in range(outer_starts[c], outer_starts[c + 1]):
        node = outer[e]
        if not _holds(stack, runs, depth, top, home[node]):
            if top + counts[node] >= room:
                return depth, top, top + counts[node] + 1
            depth, top = _push_node(node, starts, counts, own, home, low, high, stack, runs, depth, top)
    return depth, top, np.int64(0)


@compiled()
def _reach_more(
    c, is_seed, first, end, bounds, members, nodes, inner_starts, inner, outer_starts, outer, cyclic, changed,
    starts, counts, own, home, low, high, gain_starts, gain_counts, gain_low, gain_high, stack, runs,
):  # fmt: skip
    """Put what a component may reach in addition to its intervals first … end onto the stack, when it can only have grown; returns as `_reach_anew`.

    It reaches what successors have gained; and where edges are new, which they are for seeds only, all that is reached over them. What is on the
    stack is reached by nodes that it reaches now: if a node is there, all that this reaches is there, or was reached before.
    """
    room = stack.shape[1]
    depth = top = np.int64(0)
    if is_seed and cyclic[c]:
        for i in range(bounds[c], bounds[c + 1]):
            node = nodes[members[i]]
            if not _contains(low, high, first, end, home[node]):
                if top == room:
                    return depth, top, top + 1
                depth, top = _push_one(own[node], home[node], stack, runs, depth, top)
    for e in range(inner_starts[c], inner_starts[c + 1]):
        d = inner[e]
        node = nodes[members[bounds[d]]]
        is_new = is_seed and not _contains(low, high, first, end, home[node])
        if (is_new or changed[d] != 0) and not _holds(stack, runs, depth, top, home[node]):
            many = counts[node] if is_new else gain_counts[d]
            if top + many >= room:
                return depth, top, top + many + 1
            if is_new:
                depth, top = _push_node(node, starts, counts, own, home, low, high, stack, runs, depth, top)
            else:
                depth, top = _push(gain_low, gain_high, gain_starts[d], many, stack, runs, depth, top)
    if is_seed:
        for e in range(outer_starts[c], outer_starts[c + 1]):
            node = outer[e]
            if not _contains(low, high, first, end, home[node]) and not _holds(stack, runs, depth, top, home[node]):
                if top + counts[node] >= room:
                    return depth, top, top + counts[node] + 1
                depth, top = _push_node(node, starts, counts, own, home, low, high, stack, runs, depth, top)
    return depth, top, np.int64(0)


@compiled()
def _subtract(stack, top, low, high, first, end):
    """What the one run on the stack has that the intervals first … end have not, in its spare rows; returns how many intervals these are."""
    m = 0
    for k in range(top):
        begin, last = np.int64(stack[0, k]), np.int64(stack[1, k])
        first = _first_not_before(high, first, end, begin)
        while first < end and low[first] <= last:
            if begin < low[first]:
                stack[2, m] = begin
                stack[3, m] = low[first] - 1
                m += 1
            begin = np.int64(high[first]) + 1
            if begin > last:
                break
            first += 1
        if begin <= last:
            stack[2, m] = begin
            stack[3, m] = last
            m += 1
    return m


@compiled()
def _unite(first, end, more_low, more_high, many, low, high, used):
    """Append the union of the intervals first … end and of others; returns where it ends."""
    k, at = 0, used
    while first < end or k < many:
        if k == many or (first < end and low[first] < more_low[k]):
            begin, last = low[first], high[first]
            first += 1
        else:
            begin, last = more_low[k], more_high[k]
            k += 1
        if at > used and begin <= high[at - 1] + 1:
            high[at - 1] = max(last, high[at - 1])
        else:
            low[at] = begin
            high[at] = last
            at += 1
    return at


@compiled()
def _copy(low, high, count, out_low, out_high, at):
    """Append the first intervals, as many as `count`; returns where they end."""
    for k in range(count):
        out_low[at + k] = low[k]
        out_high[at + k] = high[k]
    return at + count


@compiled()
def _are_same(low, high, first, other_low, other_high, count):
    """Whether the intervals from the first on are others."""
    for k in range(count):  # noqa: SIM110  (a loop is what can be compiled)
        if low[first + k] != other_low[k] or high[first + k] != other_high[k]:
            return False
    return True


@compiled(
    "i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], b1[::1], u1[::1], u1[::1], "
    "i8[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i4[:,::1], i8[::1], i8[::1]"
)
def close(
    bounds, members, nodes, inner_starts, inner, outer_starts, outer, cyclic, seeds, changed,
    starts, counts, own, home, low, high, gain_starts, gain_counts, gain_low, gain_high, stack, runs, progress,
):  # fmt: skip
    """Compute what components of a part of a graph reach, from the last to the first.

    Components, and the `members` in them, are numbers within the part; `nodes` tells which nodes these are. The components that edges lead to from a
    component are listed in `inner`, nearest first, if they are in the part, and by one node for each edge in `outer` if not. A component is
    computed again if it is a seed, or one that it leads to has changed: by `seeds`, what it reaches may only have grown, or it may have shrunk as well.
    If then it has other intervals than before, these are appended, and it is `changed` itself. So what is told by slices never changes.
    Of a component that has grown it is told what it has *gained*, so that whoever reaches it takes over that and no more; all, if its nodes
    were not of one component before.

    `progress` has the next component, how many intervals there are, room that is wanted on the stack, room that is wanted for
    intervals, how many components have been computed, how many intervals are gained, and room that is wanted for these. If there is not enough room
    it returns, to be called again; else the next component is -1.
    """
    c, used, gained = progress[0], progress[1], progress[5]
    while c >= 0:
        how = np.int64(seeds[c])
        for e in range(inner_starts[c], inner_starts[c + 1]):
            how |= np.int64(changed[inner[e]])
        if how == 0:
            c -= 1
            continue
        lone = nodes[members[bounds[c]]]
        first, count = starts[lone], np.int64(counts[lone])
        alike = True
        for i in range(bounds[c], bounds[c + 1]):
            node = nodes[members[i]]
            if starts[node] != first or counts[node] != count:
                alike = False
        grows = (how & SHRANK) == 0
        adds = grows and alike
        if adds:
            depth, top, wanted = _reach_more(
                c, seeds[c] != 0, first, first + count, bounds, members, nodes, inner_starts, inner, outer_starts, outer, cyclic, changed,
                starts, counts, own, home, low, high, gain_starts, gain_counts, gain_low, gain_high, stack, runs,
            )  # fmt: skip
            wanted = max(wanted, top + count)  # so many pieces may be left by `_subtract`
        else:
            depth, top, wanted = _reach_anew(
                c, bounds, members, nodes, inner_starts, inner, outer_starts, outer, cyclic,
                starts, counts, own, home, low, high, stack, runs,
            )  # fmt: skip
        if wanted > stack.shape[1]:
            progress[0], progress[1], progress[2], progress[5] = c, used, wanted, gained
            return
        depth, top = _merge_runs(stack, runs, depth, top, True)
        found_low, found_high = stack[0], stack[1]
        if adds:
            top = _subtract(stack, top, low, high, first, first + count)
            found_low, found_high = stack[2], stack[3]
            is_same = top == 0
        else:
            is_same = alike and count == top and _are_same(low, high, first, found_low, found_high, top)
        if not is_same:
            if used + count + top > low.size or gained + top > gain_low.size:
                progress[0], progress[1], progress[3], progress[5] = c, used, used + count + top, gained
                progress[6] = gained + top
                return
            if grows:
                gain_starts[c] = gained
                gain_counts[c] = top
                gained = _copy(found_low, found_high, top, gain_low, gain_high, gained)
            if adds:
                ends = _unite(first, first + count, found_low, found_high, top, low, high, used)
            else:
                ends = _copy(found_low, found_high, top, low, high, used)
            for i in range(bounds[c], bounds[c + 1]):
                starts[nodes[members[i]]] = used
                counts[nodes[members[i]]] = ends - used
            used = ends
            changed[c] = GREW if grows else SHRANK
        progress[4] += 1
        c -= 1
    progress[0], progress[1], progress[5] = c, used, gained


@compiled("i4[::1], i8[::1], i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i4[::1]")
def copy_slices(nodes, starts, counts, places, low, high, out_low, out_high):
    """Copy the slices of nodes to new places."""
    for i in range(nodes.size):
        start, place = starts[nodes[i]], places[i]
        for k in range(counts[nodes[i]]):
            out_low[place + k] = low[start + k]
            out_high[place + k] = high[start + k]
