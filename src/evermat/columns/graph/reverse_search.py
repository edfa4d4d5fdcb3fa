"""Which nodes lead to a node: searches against the edges of a closure, as they are or as they were at a moment."""

from __future__ import annotations

import numpy as np

from evermat.columns.graph.dynamic_graph import CHANGED, EdgeLists, Edges, Moment, ValuedNodes, listed_by_head
from evermat.columns.kernels import graphs as kernels
from evermat.columns.storage.arrays import Nodes
from evermat.columns.storage.readable_table import ReadableTable


class FrozenEdges(ValuedNodes):
    """The edges that were live at a moment, for readers in any thread, whatever becomes of the edges.

    Nothing is copied in advance. As long as no edge has changed, the links between edges are followed, which may change meanwhile: what was found
    counts only if none has. From then on the edges are listed that were live, once: those of now, with all changes since undone.
    """

    def __init__(self, edges: Edges, nodes: ReadableTable, moment: Moment) -> None:
        """`nodes`: those of the edges, which must have no others than at the moment, or more, and not change."""
        self._edges, self._moment = edges, moment
        self.nodes, self.linear = nodes, edges.linear
        self._lists: EdgeLists | None = None

    @property
    def all_nodes(self) -> ReadableTable:
        """Nodes that there were at the moment, and others since."""
        return self._edges.nodes

    @property
    def size(self) -> int:
        return self._moment.edges

    @property
    def nbytes(self) -> int:
        return self._edges.nbytes + (0 if self._lists is None else sum(part.nbytes for part in self._lists))

    def live_behind(self, seeds: Nodes) -> Nodes:
        """Some nodes and, after them, all from which edges led there."""
        change, nodes, edges = self._moment
        if self._lists is None and change.next is None:
            found = self._edges.linked_behind(seeds, nodes, edges)
            if found is not None and change.next is None:
                return found
        return search_lists(self.by_head(), seeds)

    def by_head(self) -> EdgeLists:
        """The tails of the edges into each node."""
        known = self._lists
        if known is None:
            known = self._lists = self._listed()
        return known

    def _listed(self) -> EdgeLists:
        change, nodes, edges = self._moment
        table = self._edges.table
        states = table.state[:edges].copy()
        changes = []
        # What is in the copy already has been noted before.
        while change.next is not None:
            changes.append(change)
            change = change.next
        for change in reversed(changes):
            known = change.edges < edges
            states[change.edges[known]] = change.states[known]
        return listed_by_head(table.rows[np.flatnonzero(states & np.uint16(CHANGED - 1))], nodes)


class ReverseSearch:
    """Searches one after the other, or several at a time.

    The links between edges are followed at first. When all searches together have found more nodes than there are edges, the edges are listed
    by their heads, which takes about as long: lists are read several times faster.
    """

    def __init__(self, edges: Edges | FrozenEdges) -> None:
        self._edges = edges
        self._found = 0
        self._lists: EdgeLists | None = None

    def search(self, node: int) -> Nodes:
        """A node and, after it, all others from which edges lead there."""
        seeds = np.array([node], np.int32)
        if self._lists is None:
            found = self._edges.live_behind(seeds)
            self._found += len(found)
            if self._found > self._edges.size:
                self._lists = self._edges.by_head()
            return found
        return search_lists(self._lists, seeds)

    @property
    def nbytes(self) -> int:
        return 0 if self._lists is None else sum(part.nbytes for part in self._lists)


def search_lists(lists: EdgeLists, seeds: Nodes) -> Nodes:
    """Some nodes and, after them, all others from which the listed edges lead there."""
    nodes = len(lists[0]) - 1
    out = np.empty(nodes + 1, np.int32)
    seeds = np.ascontiguousarray(seeds, np.int32)
    return out[: kernels.reach_listed(seeds, *lists, np.zeros(nodes, np.uint8), out)]
