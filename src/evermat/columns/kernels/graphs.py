"""Kernels over graphs: their components, what is reached from many nodes at once, and graphs that change.

Nodes are 0 … n - 1. A list for each node, or for each component, is held in two arrays: those of k are `lists[starts[k] : starts[k + 1]]`.

What is reached from a *block* of sources is held as one row of `width` words for each component, in which bit i stands for source i
of the block. Components are numbered such that edges between them lead from a lower number to a higher one.
"""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from evermat.kernels import JIT_DISABLED, compiled

if JIT_DISABLED:

    def lowest_bit(word: Any) -> Any:
        """The number of the lowest bit that is set in a word of 64 bits, which is not 0."""
        word = int(word)
        return np.uint64((word & -word).bit_length() - 1)

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def lowest_bit(_typing: Any, word: Any) -> Any:
        """The number of the lowest bit that is set in a word of 64 bits, which is not 0."""

        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.uint64(word), generate


# ── Components ───────────────────────────────────────────────────────────────────────────────────────────────────────


@compiled("i4[::1], i4[::1], i4[::1], i4[::1]")
def list_by_key(keys, values, starts, lists):
    """Lists the values of each key, in order; `starts` has one element more than there are keys, all 0."""
    for i in range(keys.size):
        starts[keys[i] + 1] += 1
    for k in range(1, starts.size):
        starts[k] += starts[k - 1]
    for i in range(keys.size):
        k = keys[i]
        lists[starts[k]] = values[i]
        starts[k] += 1
    for k in range(starts.size - 1, 0, -1):  # each start has become the end
        starts[k] = starts[k - 1]
    starts[0] = 0


@compiled("i4[::1], i4[::1], i4[::1], i4[:,::1]")
def find_strong_components(starts, heads, component, scratch):
    """The strongly connected component of each node, by Tarjan's algorithm; returns how many there are.

    They are numbered such that edges between them lead from a lower number to a higher one. Before, `component` is -1 and the
    first row of the scratch, which has five rows of one element for each node, is 0.
    """
    number, low, pending, path, stack = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    seen = depth = waiting = count = 0
    for root in range(component.size):
        if number[root] != 0:
            continue
        v = root
        enter = True
        while True:
            if enter:
                seen += 1
                number[v] = low[v] = seen
                pending[v] = starts[v]
                path[depth] = stack[waiting] = v
                depth += 1
                waiting += 1
                enter = False
            if pending[v] < starts[v + 1]:
                w = heads[pending[v]]
                pending[v] += 1
                if number[w] == 0:
                    v = w
                    enter = True
                elif component[w] < 0:
                    low[v] = min(low[v], number[w])
                continue
            if low[v] == number[v]:
                while True:
                    waiting -= 1
                    component[stack[waiting]] = count
                    if stack[waiting] == v:
                        break
                count += 1
            depth -= 1
            if depth == 0:
                break
            before = path[depth - 1]
            low[before] = min(low[before], low[v])
            v = before
    for v in range(component.size):  # a component was complete after all that it leads to
        component[v] = count - 1 - component[v]
    return count


@compiled()
def _root(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@compiled("i4[::1], i4[::1], i4[::1], i4[::1]")
def find_components(tails, heads, parent, component):
    """The component of each node if edges may be used both ways, by union and find; returns how many there are.

    Before, each node is its own parent. A parent is never greater than its child, so the roots are found in order.
    """
    for i in range(tails.size):
        v, w = _root(parent, tails[i]), _root(parent, heads[i])
        parent[max(v, w)] = min(v, w)
    count = 0
    for v in range(parent.size):
        if parent[v] == v:
            component[v] = count
            count += 1
        else:
            component[v] = component[parent[v]]
    return count


@compiled("i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], b1[::1]")
def condense(starts, heads, component, bounds, members, seen, out_starts, out, cyclic):
    """The successors of each component, each once, and whether it has an edge inside; returns how many successors there are.

    The members of each component are listed in `bounds` and `members`. Before, `seen` is -1 and `cyclic` false for each component.
    """
    m = 0
    for c in range(cyclic.size):
        out_starts[c] = m
        seen[c] = c
        for i in range(bounds[c], bounds[c + 1]):
            for e in range(starts[members[i]], starts[members[i] + 1]):
                d = component[heads[e]]
                if d == c:
                    cyclic[c] = True
                elif seen[d] != c:
                    seen[d] = c
                    out[m] = d
                    m += 1
    out_starts[cyclic.size] = m
    return m


# ── What is reached from a block of sources ──────────────────────────────────────────────────────────────────────────


@compiled(inline="always")
def _flag(flags, c):
    flags[c >> np.uint64(6)] |= np.uint64(1) << (c & np.uint64(63))


@compiled("i4[::1], i4[::1], i4[::1], b1[::1], i4[::1], i8, u8[::1], u8[::1], i4[::1]")
def spread(starts, successors, component, cyclic, sources, width, rows, flags, active):
    """Fills the rows of all components that a path from the sources leads to, and list these; returns how many there are.

    Afterwards bit i of a row is set if a path of at least one edge leads from source i to the nodes of the component. Before, rows and
    flags are 0; the flags are again afterwards. Only rows of components that are listed are touched. The list ascends; it also
    has the components of the sources, whatever leads there.
    """
    zero, one, six, low = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)
    words = np.uint64(width)
    position, last = np.uint64(flags.size), zero
    for i in range(sources.size):
        c = np.uint64(component[sources[i]])
        bit = np.uint64(i)
        rows[c * words + (bit >> six)] |= one << (bit & low)
        _flag(flags, c)
        position = min(position, c >> six)
        last = max(last, c >> six)
    m = zero
    while position <= last and position < np.uint64(flags.size):
        word = flags[position]
        if word == zero:
            position += one
            continue
        flags[position] = word & (word - one)
        c = (position << six) + lowest_bit(word)
        active[m] = c
        m += one
        for e in range(starts[c], starts[c + one]):
            d = np.uint64(successors[np.uint64(e)])
            for k in range(words):
                rows[d * words + k] |= rows[c * words + k]
            _flag(flags, d)
            last = max(last, d >> six)
    # A source has reached itself so far by no edge at all, unless it lies on a cycle.
    for i in range(sources.size):
        c = np.uint64(component[sources[i]])
        if not cyclic[c]:
            bit = np.uint64(i)
            rows[c * words + (bit >> six)] &= ~(one << (bit & low))
    return np.int64(m)


@compiled("i4[::1], i8, i8, u8[::1]")
def clear(active, count, width, rows):
    """Sets the rows of the listed components to 0."""
    for i in range(count):
        first = np.int64(active[i]) * width
        for k in range(first, first + width):
            rows[k] = np.uint64(0)


@compiled("i4[::1], i8, i4[::1], i4[::1], i8, u8[::1], i4[::1], u8[::1], i4[::1], i8[::1], i4[::1], i4[::1]")
def write_pairs(
    active, count, bounds, targets, width, rows, component, less, sources, cursor, out_sources, out_targets
):
    """Pairs of a source and a target that it reaches in `rows` but not in `less`; returns how many.

    The targets in each component are listed in `bounds` and `targets`; `active` lists the components that are reached. `less`
    has rows for the components of another graph, given by `component`; it is empty if that graph has no edges. Stops
    when the buffers are full, and goes on from the cursor, which is 0 at first; all is done when its first element is `count`.
    """
    zero, one, six = np.uint64(0), np.uint64(1), np.uint64(6)
    full = ~zero
    room = np.uint64(out_sources.size)
    words = np.uint64(width)
    i, at = cursor[0], cursor[1]  # position in the list of components, and among the targets of that one
    position = np.uint64(cursor[2]) >> six  # the word
    skip = np.uint64(cursor[2]) & np.uint64(63)  # bits of it that are done
    m = zero
    while i < count:
        c = np.uint64(active[i])
        row = c * words
        for j in range(bounds[c] + at, bounds[c + one]):
            target = targets[np.uint64(j)]
            other = np.uint64(component[target]) * words if less.size else zero
            begin = m
            while position < words:
                word = rows[row + position]
                if less.size:
                    word &= ~less[other + position]
                word &= full << skip
                skip = zero
                base = position << six
                if word == full and room - m >= np.uint64(64):
                    for bit in range(np.uint64(64)):
                        out_sources[m + bit] = sources[base + bit]
                    m += np.uint64(64)
                    word = zero
                while word != zero and m < room:
                    out_sources[m] = sources[base + lowest_bit(word)]
                    m += one
                    word &= word - one
                if word != zero:
                    break
                position += one
            for k in range(begin, m):
                out_targets[k] = target
            if position < words:
                cursor[0] = i
                cursor[1] = j - bounds[c]
                cursor[2] = (position << six) + lowest_bit(word)
                return np.int64(m)
            position = zero
        at = 0
        i += 1
    cursor[0] = count
    return np.int64(m)


@compiled(inline="always")
def _count_bits(word):
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled("i4[::1], i8, i4[::1], i4[::1], i8, u8[::1], i4[::1], u8[::1]")
def count_pairs(active, count, bounds, targets, width, rows, component, less):
    """How many pairs there are for `write_pairs`."""
    total = np.uint64(0)
    words = np.uint64(width)
    for i in range(count):
        c = np.uint64(active[i])
        if less.size:
            for j in range(bounds[c], bounds[c + np.uint64(1)]):
                other = np.uint64(component[targets[np.uint64(j)]]) * words
                for k in range(words):
                    total += _count_bits(rows[c * words + k] & ~less[other + k])
        else:
            bits = np.uint64(0)
            for k in range(words):
                bits += _count_bits(rows[c * words + k])
            total += bits * np.uint64(bounds[c + np.uint64(1)] - bounds[c])
    return np.int64(total)


@compiled("i4[::1], i4[::1], i4[::1], i8, i4[::1], i8, u8[::1], b1[::1]", steps="ids")
def test_pairs(ids, positions, ends, base, component, width, rows, out):
    """Of each listed pair, whether the source with bit position - base reaches its end."""
    for i in range(ids.size):
        pair = ids[i]
        bit = np.int64(positions[pair]) - base
        word = rows[np.int64(component[ends[pair]]) * width + (bit >> 6)]
        out[pair] = (word >> np.uint64(bit & 63)) & np.uint64(1) != np.uint64(0)


# ── Graphs that change ───────────────────────────────────────────────────────────────────────────────────────────────
# An edge is a row (tail, head) of a table. It is live if the truth of its state is not 0. The edges out of a node are a
# chain, from `head_out[node]` through `next_out[edge]`, and so are those into it; -1 ends a chain. Edges that are not
# live stay in the chains.


@compiled("i4[:,::1], i8, i8, i4[::1], i4[::1], i4[::1], i4[::1]", steps="first:end")
def link(rows, first, end, head_out, next_out, head_in, next_in):
    """Puts the edges first … end in front of the chains of their nodes."""
    for edge in range(first, end):
        tail, head = rows[edge, 0], rows[edge, 1]
        next_out[edge] = head_out[tail]
        head_out[tail] = edge
        next_in[edge] = head_in[head]
        head_in[head] = edge


@compiled("i4[::1], i4[:,::1], u2[::1], u1[::1], i4[::1], i4[::1], i8, i8, u1[::1], i8, i8, i4[::1]")
def reach(seeds, rows, state, truth, head, next_, column, edges, marks, mark, within, out):
    """Visits, breadth first, the seeds and all that live edges lead to from them; returns how many nodes were visited.

    Chains have so many edges: -1 if more are being linked meanwhile, of which the caller knows nothing.

    A node is visited if its marks lack the bit `mark` and have all bits of `within`: it gets the bit, and is appended to `out`, which has
    room for all of them. Forwards, it takes the chains of the edges out of nodes, and column 1; backwards, those into nodes, and 0.
    """
    m = 0
    for i in range(seeds.size):
        held = np.int64(marks[seeds[i]])
        if (held & mark) == 0 and (held & within) == within:
            marks[seeds[i]] = held | mark
            out[m] = seeds[i]
            m += 1
    done = 0
    while done < m:
        edge = head[out[done]]
        done += 1
        while edge >= 0:
            if edge >= edges:
                return -1
            node = rows[edge, column]
            held = np.int64(marks[node])
            if (held & mark) == 0 and (held & within) == within and truth[state[edge]] != 0:
                marks[node] = held | mark
                out[m] = node
                m += 1
            edge = next_[edge]
    return m


@compiled("i4[::1], i4[::1], i4[::1], u1[::1], i4[::1]")
def reach_listed(seeds, starts, lists, seen, out):
    """The same over lists of what edges lead to. Before, `seen` is 0; `out` has room for one more than there are nodes.

    Whether a node has been seen is hard to predict, so there is no branch: each is written to `out`, and stays there if it is new.
    """
    m = done = 0
    for i in range(seeds.size):
        out[m] = seeds[i]
        m += 1 - np.int64(seen[seeds[i]])
        seen[seeds[i]] = 1
    while done < m:
        node = out[done]
        done += 1
        for e in range(starts[node], starts[node + 1]):
            other = lists[e]
            out[m] = other
            m += 1 - np.int64(seen[other])
            seen[other] = 1
    return m


@compiled("i4[::1], u1[::1], i8, i4[:,::1], u2[::1], u1[::1], i4[::1], i4[::1], i4[::1]")
def edges_between(nodes, marks, mark, rows, state, truth, head_out, next_out, out):
    """The live edges from the listed nodes, which are distinct, to nodes that have the bit `mark`; returns how many there are.

    Writes no more of them than there is room for: called with an empty `out`, it counts.
    """
    m = 0
    for i in range(nodes.size):
        edge = head_out[nodes[i]]
        while edge >= 0:
            if (np.int64(marks[rows[edge, 1]]) & mark) != 0 and truth[state[edge]] != 0:
                if m < out.size:
                    out[m] = edge
                m += 1
            edge = next_out[edge]
    return m
