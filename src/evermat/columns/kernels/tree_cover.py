"""Kernels that estimate how much components of a graph reach, and that lay out a tree over them.

Components are numbered such that edges between them lead from a lower number to a higher one; the successors of c are
`successors[starts[c] : starts[c + 1]]`, as in `graphs`. So the components that c reaches are complete when all higher numbers are.
"""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from evermat.columns.kernels.graphs import _count_bits, lowest_bit
from evermat.kernels import compiled


@compiled("i4[::1], i4[::1], i8, f4[::1], f4[::1], f8[::1]")
def add_least_ranks(starts, successors, width, ranks, least, sums):
    """Adds the least ranks among the components that each one reaches, as many as `width`, to its sum; infinite if it reaches none.

    Afterwards the ranks of a component are the least among itself and what it reaches. `least` is scratch for one component.
    """
    words = np.uint64(width)
    for c in range(starts.size - 2, -1, -1):
        for k in range(words):
            least[k] = np.inf
        for e in range(starts[c], starts[c + 1]):
            other = np.uint64(successors[e]) * words
            for k in range(words):
                least[k] = min(least[k], ranks[other + k])
        own = np.uint64(c) * words
        total = 0.0
        for k in range(words):
            total += least[k]
            ranks[own + k] = min(least[k], ranks[own + k])
        sums[c] += total


@compiled("i4[::1], i4[::1], i8, u8[::1], u8[::1], i4[::1]")
def count_marks(starts, successors, width, rows, union, counts):
    """Adds to the counts how many marks there are in the components that each one reaches.

    Each component has a row of `width` words, in which the bits are its own marks; a bit is the mark of one component.
    Afterwards it also has the marks of what it reaches. `union` is scratch for one row.
    """
    words = np.uint64(width)
    for c in range(starts.size - 2, -1, -1):
        for k in range(words):
            union[k] = np.uint64(0)
        for e in range(starts[c], starts[c + 1]):
            other = np.uint64(successors[e]) * words
            for k in range(words):
                union[k] |= rows[other + k]
        own = np.uint64(c) * words
        total = np.uint64(0)
        for k in range(words):
            total += _count_bits(union[k])
            rows[own + k] |= union[k]
        counts[c] += np.int32(total)


@compiled("i4[::1], i8, i4[::1], u8[::1], i8[::1]")
def sum_sizes(active, count, bounds, rows, sizes):
    """Adds to the size of each source how many nodes it reaches; there is one word for each component, in which bit i stands for source i."""
    for i in range(count):
        c = active[i]
        word = rows[c]
        while word != np.uint64(0):
            sizes[lowest_bit(word)] += bounds[c + 1] - bounds[c]
            word &= word - np.uint64(1)


@compiled("i4[::1], i4[::1], i8, u8[::1], u8[::1]")
def count_runs(order, component, width, rows, before):
    """How many runs of nodes that follow each other in the order are reached, over all sources; a bit of a row stands for a source.

    `before` is scratch for one row, and 0 before.
    """
    total = np.uint64(0)
    for i in range(order.size):
        own = np.int64(component[order[i]]) * width
        for k in range(width):
            word = rows[own + k]
            total += _count_bits(word & ~before[k])
            before[k] = word
    return np.int64(total)


@compiled("i4[::1], i4[::1], f8[::1], i4[::1]")
def choose_parents(starts, successors, worth, parents):
    """The parent of each component: of those that have an edge to it, the one that is worth most, the last of several; -1 if there is none.

    Before, all parents are -1.
    """
    for c in range(starts.size - 1):
        for e in range(starts[c], starts[c + 1]):
            d = successors[e]
            if parents[d] < 0 or worth[c] >= worth[parents[d]]:
                parents[d] = c


@compiled("i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1], i4[::1]")
def lay_out(parents, starts, children, bounds, members, sizes, positions, out):
    """The nodes in post-order: those below a component, by its children in their order, then its own.

    The children of c are listed for key c + 1, the roots for key 0. A parent has a lower number than its children. Before,
    all sizes are 0; they become those of the subtrees, and the positions the first ones that the subtrees have.
    """
    for c in range(parents.size - 1, -1, -1):
        sizes[c] += bounds[c + 1] - bounds[c]
        if parents[c] >= 0:
            sizes[parents[c]] += sizes[c]
    for above in range(-1, parents.size):
        position = 0 if above < 0 else positions[above]
        for i in range(starts[above + 1], starts[above + 2]):
            positions[children[i]] = position
            position += sizes[children[i]]
        if above >= 0:
            for i in range(bounds[above], bounds[above + 1]):
                out[position] = members[i]
                position += 1
