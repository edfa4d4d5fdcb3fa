"""How the paths of a graph change when edges are inserted or deleted.

Whatever is asked is about *changed* edges, and is answered within the part of the graph that they can matter to: from nodes that reach one
of them to nodes that one of them reaches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evermat.columns.graph.dynamic_graph import CHANGED, LIVE, LIVE_OR_CHANGED, Edges
from evermat.columns.graph.reachability import Graph, Pairs, connected
from evermat.columns.storage.arrays import NO_NODES, Batch, Mask, Nodes, Numbers, Rows, Truth

CHUNK = 1 << 15
_TO, _FROM, _AHEAD, _WITHIN = 1, 2, 4, 8  # marks of nodes


@dataclass(frozen=True, eq=False)
class Connections:
    """Pairs of nodes: those from sources to targets that some edges connect, but that the `kept` ones among them do not connect alone.

    Arrays only, so that it can be sent elsewhere. `kept` None: all that are connected.
    """

    values: Numbers  # of each node
    tails: Nodes
    heads: Nodes
    kept: Mask | None
    sources: Nodes
    targets: Nodes
    symmetric: bool = False

    def __bool__(self) -> bool:
        return len(self.sources) > 0 and len(self.targets) > 0

    @cached_property
    def _pairs(self) -> Pairs:
        more = Graph(len(self.values), self.tails, self.heads, symmetric=self.symmetric)
        less = None
        if self.kept is not None and self.kept.any():
            less = Graph(len(self.values), self.tails[self.kept], self.heads[self.kept], symmetric=self.symmetric)
        return Pairs(more, less, self.sources, self.targets)

    def count(self) -> int:
        return self._pairs.count() if self else 0

    def greatest(self) -> tuple[int, int]:
        """The greatest values that occur in pairs, as their first and as their second."""
        return int(self.values[self.sources].max()), int(self.values[self.targets].max())

    def batches(self) -> Iterator[Batch]:
        """The values of the pairs, each pair once, in batches that are valid until the next step."""
        if not self:
            return
        buffer = np.empty((2, CHUNK), np.int64)
        for sources, targets in self._pairs.chunks(CHUNK):
            n = len(sources)
            batch = buffer if n == CHUNK else np.empty((2, n), np.int64)
            np.take(self.values, sources, out=batch[0], mode="clip")
            np.take(self.values, targets, out=batch[1], mode="clip")
            yield batch


NO_CONNECTIONS = Connections(np.empty(0, np.int64), NO_NODES, NO_NODES, None, NO_NODES, NO_NODES)


def gained(edges: Edges, inserted: Rows) -> Connections:
    """Pairs that are connected, but would not be without some edges."""
    return _difference(edges, inserted, LIVE)


def lost(edges: Edges, deleted: Rows) -> Connections:
    """Pairs that are not connected any more, but were with some edges, which are deleted."""
    return _difference(edges, deleted, LIVE_OR_CHANGED)


def _difference(edges: Edges, changed: Rows, more: Truth) -> Connections:
    """Pairs that edges of `more` connect, but not without those that have changed."""
    if not len(changed):
        return NO_CONNECTIONS
    with _in_question(edges, changed):
        ends = edges.table.rows[changed]
        to, away = edges.behind(ends[:, 0], more, _TO), edges.ahead(ends[:, 1], more, _FROM)
        edges.ahead(to, more, _AHEAD)
        nodes = edges.behind(away, more, _WITHIN, within=_AHEAD)
        rows = edges.between(nodes, _WITHIN, more)
        kept = (edges.table.state[rows] & CHANGED) == 0
        return _numbered(edges, nodes, rows, kept, to, away)


def still(edges: Edges, tails: npt.NDArray[Any], heads: npt.NDArray[Any], deleted: Rows) -> Connections:
    """Pairs that are connected, among those that depended on some edges as in `depending`."""
    if not len(tails):
        return NO_CONNECTIONS
    with _in_question(edges, deleted):
        to, away, nodes, left = _left(edges, tails, heads)
        inside = edges.marks & _WITHIN
        return _numbered(edges, nodes, left, None, to[inside[to] != 0], away[inside[away] != 0])


def depending(edges: Edges, tails: npt.NDArray[Any], heads: npt.NDArray[Any], deleted: Rows) -> Connections:
    """Pairs with a path over one of some edges, given by tails and heads; `deleted` are edges that existed until now.

    The graph is laid out twice, before such an edge and behind it, so that paths over one lead from the one to the other.
    """
    if not len(tails):
        return NO_CONNECTIONS
    with _in_question(edges, deleted):
        more, ends = LIVE_OR_CHANGED, edges.table.rows
        to, away = edges.behind(tails, more, _TO), edges.ahead(heads, more, _FROM)
        before, behind = ends[edges.between(to, _TO, more)], ends[edges.between(away, _FROM, more)]
        position = edges.number(to)
        first, crossing = position[before], position[tails]
        position = edges.number(away) + np.int32(len(to))
        second, crossed = position[behind], position[heads]
        return Connections(
            edges.values_of(np.concatenate([to, away])),
            np.concatenate([first[:, 0], crossing, second[:, 0]]),
            np.concatenate([first[:, 1], crossed, second[:, 1]]),
            None,
            np.flatnonzero(edges.may_begin(to)).astype(np.int32),
            np.arange(len(to), len(to) + len(away), dtype=np.int32),
        )


def may_depend(edges: Edges, tails: npt.NDArray[Any], heads: npt.NDArray[Any], deleted: Rows) -> Rows:
    """Edges on any path that now connects a pair which depended, or may have depended, on some edges as in `depending`."""
    if not len(tails):
        return NO_NODES
    with _in_question(edges, deleted):
        return _left(edges, tails, heads)[-1]


def _left(edges: Edges, tails: npt.NDArray[Any], heads: npt.NDArray[Any]) -> tuple[Nodes, Nodes, Nodes, Rows]:
    """Nodes that reached some edges, nodes that these reached, and the nodes and edges that are left between the two."""
    to, away = edges.behind(tails, LIVE_OR_CHANGED, _TO), edges.ahead(heads, LIVE_OR_CHANGED, _FROM)
    edges.ahead(to, LIVE, _AHEAD)
    nodes = edges.behind(away, LIVE, _WITHIN, within=_AHEAD)
    return to, away, nodes, edges.between(nodes, _WITHIN, LIVE)


def on_paths(edges: Edges, tails: Nodes, heads: Nodes) -> Rows:
    """The edges on any path from a tail to any of the heads."""
    with _in_question(edges, NO_NODES):
        edges.ahead(tails, LIVE, _AHEAD)
        nodes = edges.behind(heads, LIVE, _WITHIN, within=_AHEAD)
        return edges.between(nodes, _WITHIN, LIVE)


def are_connected(edges: Edges, rows: Rows, tails: Nodes, heads: Nodes) -> Mask:
    """Which tails are connected with their heads by some edges."""
    ends = edges.table.rows[rows]
    nodes = np.concatenate([ends.ravel(), tails, heads])
    position = edges.number(nodes)
    return connected(Graph(len(nodes), position[ends[:, 0]], position[ends[:, 1]]), position[tails], position[heads])


@contextmanager
def _in_question(edges: Edges, changed: Rows) -> Iterator[None]:
    """Marks edges as changed, and takes that and all marks of nodes back."""
    edges.table.state[changed] |= np.uint16(CHANGED)
    try:
        yield
    finally:
        edges.table.state[changed] &= np.uint16(CHANGED - 1)
        edges.marks[: edges.nodes.count] = 0


def _numbered(edges: Edges, nodes: Nodes, rows: Rows, kept: Mask | None, to: Nodes, away: Nodes) -> Connections:
    """A part of the graph with nodes renumbered."""
    position, ends = edges.number(nodes), edges.table.rows[rows]
    return Connections(
        edges.values_of(nodes),
        position[ends[:, 0]],
        position[ends[:, 1]],
        kept,
        position[to[edges.may_begin(to)]],
        position[away],
        edges.symmetric,
    )
