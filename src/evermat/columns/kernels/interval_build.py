"""Kernels that give nodes numbers, and compute the intervals of those that they reach; what these are, `interval_scan` says."""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from evermat.columns.kernels.interval_scan import contains
from evermat.columns.kernels.rows import lower_bound
from evermat.kernels import compiled

#: how what a component reaches has changed
GREW, SHRANK = 1, 2


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
def _unite(low, high, first, end, more_low, more_high, other, other_end, out_low, out_high, begin):
    """Writes the union of the intervals first … end and of others, from `begin` on; returns where it ends."""
    at = begin
    while first < end or other < other_end:
        if other == other_end or (first < end and low[first] < more_low[other]):
            least, most = low[first], high[first]
            first += 1
        else:
            least, most = more_low[other], more_high[other]
            other += 1
        if at > begin and least <= out_high[at - 1] + 1:
            out_high[at - 1] = max(most, out_high[at - 1])
        else:
            out_low[at] = least
            out_high[at] = most
            at += 1
    return at


@compiled()
def _copy(low, high, first, count, out_low, out_high, at):
    """Copies intervals, as many as `count`, to `at`; returns where they end."""
    for k in range(count):
        out_low[at + k] = low[first + k]
        out_high[at + k] = high[first + k]
    return at + count


@compiled()
def _merge_runs(stack, runs, depth, top, to_one):
    """Merges the last runs while they are not much longer than the next, or all of them; returns their number and the last one's end."""
    low, high, spare_low, spare_high = stack[0], stack[1], stack[2], stack[3]
    while depth > 1:
        first, middle = runs[depth - 2], runs[depth - 1]
        if not to_one and middle - first > 2 * (top - middle):
            break
        m = _unite(low, high, first, middle, low, high, middle, top, spare_low, spare_high, 0)
        top = _copy(spare_low, spare_high, 0, m, low, high, first)
        depth -= 1
    return depth, top


@compiled()
def _push(low, high, first, count, stack, runs, depth, top):
    """Puts intervals onto the stack, for which there is room."""
    if count == 0:
        return depth, top
    runs[depth] = top
    return _merge_runs(stack, runs, depth + 1, _copy(low, high, first, count, stack[0], stack[1], top), False)


@compiled()
def _push_one(begin, end, stack, runs, depth, top):
    """Puts an interval onto the stack, for which there is room."""
    stack[0, top] = begin
    stack[1, top] = end
    runs[depth] = top
    return _merge_runs(stack, runs, depth + 1, top + 1, False)


@compiled()
def _push_node(node, starts, counts, own, home, low, high, stack, runs, depth, top):
    """Puts all that a node reaches, and the node, onto the stack, for which there is room."""
    first, end = starts[node], starts[node] + counts[node]
    depth, top = _push(low, high, first, counts[node], stack, runs, depth, top)
    if not contains(low, high, first, end, home[node]):  # else it lies on a cycle, and is there already
        depth, top = _push_one(own[node], home[node], stack, runs, depth, top)
    return depth, top


@compiled()
def _holds(stack, runs, depth, top, number):
    for k in range(depth):
        end = runs[k + 1] if k + 1 < depth else top
        if contains(stack[0], stack[1], runs[k], end, number):
            return True
    return False


@compiled()
def _recompute_reach(
    c, bounds, members, nodes, inner_starts, inner, outer_starts, outer, cyclic,
    starts, counts, own, home, low, high, stack, runs,
):  # fmt: skip
    """Puts all that a component reaches onto the stack; returns the runs, where they end, and the room that is wanted if there is not enough."""
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
    """Puts what a component may reach in addition to its intervals first … end onto the stack, when it can only have grown; returns as `_recompute_reach`.

    It reaches what successors have gained; and where edges are new, which they are for seeds only, all that is reached over them. What is on the
    stack is reached by nodes that it reaches now: if a node is there, all that this reaches is there, or was reached before.
    """
    room = stack.shape[1]
    depth = top = np.int64(0)
    if is_seed and cyclic[c]:
        for i in range(bounds[c], bounds[c + 1]):
            node = nodes[members[i]]
            if not contains(low, high, first, end, home[node]):
                if top == room:
                    return depth, top, top + 1
                depth, top = _push_one(own[node], home[node], stack, runs, depth, top)
    for e in range(inner_starts[c], inner_starts[c + 1]):
        d = inner[e]
        node = nodes[members[bounds[d]]]
        is_new = is_seed and not contains(low, high, first, end, home[node])
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
            if not contains(low, high, first, end, home[node]) and not _holds(stack, runs, depth, top, home[node]):
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
        first = lower_bound(high, first, end, begin)
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
    """Computes what components of a part of a graph reach, from the last to the first.

    Components, and the `members` in them, are numbers within the part; `nodes` lists which nodes these are. The components that edges lead to from a
    component are listed in `inner`, nearest first, if they are in the part, and by one node for each edge in `outer` if not. A component is
    computed again if it is a seed, or one that it leads to has changed: by `seeds`, what it reaches may only have grown, or it may have shrunk as well.
    If then it has other intervals than before, these are appended, and it is `changed` itself. So slices that were read before stay valid.
    Of a component that has grown, what it has *gained* is recorded, so that components that reach it take over that and no more; all, if its nodes
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
            depth, top, wanted = _recompute_reach(
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
                gained = _copy(found_low, found_high, 0, top, gain_low, gain_high, gained)
            if adds:
                ends = _unite(low, high, first, first + count, found_low, found_high, 0, top, low, high, used)
            else:
                ends = _copy(found_low, found_high, 0, top, low, high, used)
            for i in range(bounds[c], bounds[c + 1]):
                starts[nodes[members[i]]] = used
                counts[nodes[members[i]]] = ends - used
            used = ends
            changed[c] = GREW if grows else SHRANK
        progress[4] += 1
        c -= 1
    progress[0], progress[1], progress[5] = c, used, gained


@compiled("i4[::1], i8[::1], i4[::1], i8[::1], i4[::1], i4[::1], i4[::1], i4[::1]")
def copy_slices(nodes, starts, counts, positions, low, high, out_low, out_high):
    """Copies the slices of nodes to new positions."""
    for i in range(nodes.size):
        _copy(low, high, starts[nodes[i]], counts[nodes[i]], out_low, out_high, positions[i])
