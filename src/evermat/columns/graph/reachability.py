"""Which nodes of a graph are connected, without a walk for each of them.

Nodes are 0 … n - 1. Two nodes are *connected* if a path of at least one edge leads from the first to the second, so a node is connected to
itself only if it lies on a cycle. The nodes of a strongly connected component are connected to the same nodes; what is found out is found
out for components, and for a block of many sources at once, with a bit for each.

Graphs that change are served by the kernels `link`, `reach` and `edges_between`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from evermat.columns.kernels import graphs as kernels
from evermat.columns.storage.arrays import NO_NODES, Mask, Nodes, Words, as_rows
from evermat.core import check_stop

#: a block has at most so many sources, and fewer if rows of that many bits for all components would have more words than this
MOST_SOURCES = 4096
MOST_WORDS = 1 << 24
#: it pays to reverse the graph if there are so many times more sources than targets
REVERSE_IF_FEWER = 4

_BITS = 64
_NO_WORDS: Words = np.empty(0, np.uint64)


class Graph:
    """A directed graph, condensed to its strongly connected components. It never changes.

    Invariants: `component[v]` is the component of node v. Components are numbered in topological order: an edge between two of them
    leads from the lower number to the higher. `members[bounds[c] : bounds[c + 1]]` are the nodes of component c, ascending or descending.
    `successors[starts[c] : starts[c + 1]]` are the other components that edges lead to from c, each once. A component is `cyclic` if
    it has an edge inside: it has more than one node, or its node has an edge to itself.

    If `symmetric`, every edge may be used both ways. Then no edge leads from one component to another.
    """

    def __init__(self, nodes: int, tails: Nodes, heads: Nodes, *, symmetric: bool = False) -> None:
        tails, heads = as_rows(tails), as_rows(heads)
        assert len(tails) == len(heads)
        assert all(ends.min() >= 0 and ends.max() < nodes for ends in (tails, heads) if len(ends))
        self.nodes = nodes
        self.symmetric = symmetric
        self.component: Nodes = np.full(nodes, -1, np.int32)
        if symmetric:
            self._join(tails, heads)
        else:
            self._condense(tails, heads)

    @property
    def components(self) -> int:
        return len(self.cyclic)

    def _join(self, tails: Nodes, heads: Nodes) -> None:
        every = np.arange(self.nodes, dtype=np.int32)
        count = kernels.find_components(tails, heads, every.copy(), self.component)
        self.bounds, self.members = list_by_key(self.component, every, count)
        self.cyclic: Mask = np.zeros(count, np.bool_)
        self.cyclic[self.component[tails]] = True
        self.starts: Nodes = np.zeros(count + 1, np.int32)
        self.successors = NO_NODES

    def _condense(self, tails: Nodes, heads: Nodes) -> None:
        starts, lists = list_by_key(tails, heads, self.nodes)
        scratch = np.zeros((5, self.nodes), np.int32)
        count = kernels.find_strong_components(starts, lists, self.component, scratch)
        self.bounds, self.members = list_by_key(self.component, np.arange(self.nodes, dtype=np.int32), count)
        self.cyclic = np.zeros(count, np.bool_)
        self.starts = np.empty(count + 1, np.int32)
        seen = np.full(count, -1, np.int32)
        successors = np.empty(len(lists), np.int32)
        m = kernels.condense(
            starts, lists, self.component, self.bounds, self.members, seen, self.starts, successors, self.cyclic
        )
        self.successors = successors[:m]

    @cached_property
    def reversed(self) -> Graph:
        """The graph with all edges reversed, kept for the next call."""
        return self.reverse()

    def reverse(self) -> Graph:
        """The graph with all edges reversed. Its components are the same, numbered from the other end."""
        if self.symmetric:
            return self
        count = self.components
        reversed_ = Graph.__new__(Graph)
        reversed_.nodes = self.nodes
        reversed_.symmetric = False
        reversed_.component = count - 1 - self.component
        reversed_.members = self.members[::-1].copy()
        reversed_.bounds = self.nodes - self.bounds[::-1]
        reversed_.cyclic = self.cyclic[::-1].copy()
        tails = np.repeat(np.arange(count - 1, -1, -1, dtype=np.int32), np.diff(self.starts))
        reversed_.starts, reversed_.successors = list_by_key(count - 1 - self.successors, tails, count)
        return reversed_

    def select(self, nodes: Nodes) -> tuple[Nodes, Nodes]:
        """The listed nodes, each once, by component: (bounds, members)."""
        listed = np.zeros(self.nodes, np.bool_)
        listed[nodes] = True
        listed = listed[self.members]
        before = np.zeros(self.nodes + 1, np.int32)
        np.cumsum(listed, out=before[1:])
        return before[self.bounds], self.members[listed]


def list_by_key(keys: Nodes, values: Nodes, count: int) -> tuple[Nodes, Nodes]:
    """The values of each of `count` keys, one after the other, in order: where those of each key begin, and the values."""
    starts = np.zeros(count + 1, np.int32)
    lists = np.empty(len(values), np.int32)
    kernels.list_by_key(keys, values, starts, lists)
    return starts, lists


def _block_size(sources: int, components: int) -> int:
    """How many sources to treat at once; rows have at least one word."""
    return min(sources, MOST_SOURCES, max(MOST_WORDS // components, 1) * _BITS)


class Reached:
    """What is reached from a block of sources.

    Invariant: the rows of components that are not among the first `count` of `active` are 0.
    """

    def __init__(self, graph: Graph, size: int) -> None:
        self._graph = graph
        self.width = -(-size // _BITS)
        self.rows: Words = np.zeros(graph.components * self.width, np.uint64)
        self.active: Nodes = np.empty(graph.components, np.int32)
        self.count = 0
        self._flags: Words = np.zeros(-(-graph.components // _BITS), np.uint64)

    def start(self, sources: Nodes) -> None:
        """Go over to a block of sources."""
        graph = self._graph
        kernels.clear(self.active, self.count, self.width, self.rows)
        self.count = kernels.spread(
            graph.starts, graph.successors, graph.component, graph.cyclic, sources, self.width, self.rows, self._flags, self.active
        )  # fmt: skip


class Pairs:
    """Pairs of a source and a target (None: any node) that are connected in `more` but not in `less` (None: a graph without edges).

    Both graphs have the same nodes, and every edge of `less` is one of `more`.
    """

    def __init__(self, more: Graph, less: Graph | None, sources: Nodes, targets: Nodes | None) -> None:
        assert less is None or less.nodes == more.nodes
        targets = more.members if targets is None else targets
        # Pairs come in the order of their sources, unless these are few: a caller that stores them finds those of a source close together.
        self._is_reversed = len(sources) * REVERSE_IF_FEWER >= len(targets)
        if self._is_reversed:
            more, less, sources, targets = more.reversed, less and less.reversed, targets, sources
        self._more, self._less = more, less
        self._sources = more.select(sources)[1]  # by component, so that the sources of a block lead to much the same
        self._bounds, self._targets = more.select(targets)

    def count(self) -> int:
        return sum(
            kernels.count_pairs(
                reached.active, reached.count, self._bounds, self._targets, reached.width, reached.rows, component, less
            )
            for _, reached, component, less in self._blocks()
        )

    def chunks(self, size: int) -> Iterator[tuple[Nodes, Nodes]]:
        """The pairs, each once, at most `size` at a time and never none, as two arrays that are valid until the next step."""
        assert size > 0
        size = min(size, len(self._sources) * len(self._targets))
        out_sources, out_targets = np.empty(size, np.int32), np.empty(size, np.int32)
        for block, reached, component, less in self._blocks():
            cursor = np.zeros(3, np.int64)
            while cursor[0] < reached.count:
                check_stop()
                m = kernels.write_pairs(
                    reached.active, reached.count, self._bounds, self._targets, reached.width, reached.rows, component, less,
                    block, cursor, out_sources, out_targets,
                )  # fmt: skip
                if m:
                    found = out_sources[:m], out_targets[:m]
                    yield found[::-1] if self._is_reversed else found

    def _blocks(self) -> Iterator[tuple[Nodes, Reached, Nodes, Words]]:
        """Blocks of sources, what they reach, and what of that is to be left out: rows for the components of another graph."""
        more, less, sources = self._more, self._less, self._sources
        if not len(sources) or not len(self._targets):
            return
        size = _block_size(len(sources), more.components + (less.components if less else 0))
        reached = Reached(more, size)
        known = Reached(less, size) if less else None
        component, known_rows = (less.component, known.rows) if less and known else (NO_NODES, _NO_WORDS)
        for first in range(0, len(sources), size):
            check_stop()
            block = sources[first : first + size]
            reached.start(block)
            if known:
                known.start(block)
            yield block, reached, component, known_rows


def connected(graph: Graph, starts: Nodes, ends: Nodes) -> Mask:
    """For each i, whether starts[i] is connected to ends[i]."""
    starts, ends = as_rows(starts), as_rows(ends)
    assert len(starts) == len(ends)
    first, last = graph.component[starts], graph.component[ends]
    found: Mask = (first == last) & graph.cyclic[first]
    (open_,) = np.nonzero(first < last)  # no path leads from a higher number to a lower one
    if len(open_):
        found[open_] = _search(graph, starts[open_], ends[open_])
    return found


def _search(graph: Graph, starts: Nodes, ends: Nodes) -> Mask:
    _, sources = graph.select(starts)
    _, targets = graph.select(ends)
    if len(targets) < len(sources):
        graph, starts, ends = graph.reversed, ends, starts
        _, sources = graph.select(starts)
    size = _block_size(len(sources), graph.components)
    position = np.empty(graph.nodes, np.int32)
    position[sources] = np.arange(len(sources), dtype=np.int32)
    positions = position[starts]
    blocks = -(-len(sources) // size)
    bounds, by_block = list_by_key(positions // size, np.arange(len(starts), dtype=np.int32), blocks)
    reached = Reached(graph, size)
    found = np.empty(len(starts), np.bool_)
    for i in range(blocks):
        check_stop()
        reached.start(sources[i * size : (i + 1) * size])
        ids = by_block[bounds[i] : bounds[i + 1]]
        kernels.test_pairs(ids, positions, ends, i * size, graph.component, reached.width, reached.rows, found)
    return found
