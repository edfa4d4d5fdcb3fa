"""Who leads to a node: searches backwards over the edges of a closure, as long as these stay as they are."""

from __future__ import annotations

import numpy as np

from evermat.columns.graph.dynamic_graph import Edges, Nodes
from evermat.columns.kernels import graphs as kernels
from evermat.columns.storage.table import as_rows


class Backwards:
    """Searches one after the other, or several at a time.

    The links between edges are followed at first. When all searches together have found more nodes than there are edges, the edges are listed
    by their heads, which takes about as long: lists are read several times faster.
    """

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._found = 0
        self._lists: tuple[Nodes, Nodes] | None = None

    def search(self, node: int) -> Nodes:
        """A node and, after it, all others from which edges lead there."""
        if self._lists is None:
            found = self._edges.live_behind(node)
            self._found += len(found)
            if self._found > self._edges.table.count:
                self._lists = self._listed()
            return found
        n = self._edges.nodes.count
        out = np.empty(n + 1, np.int32)
        return out[: kernels.reach_listed(node, *self._lists, np.zeros(n, np.uint8), out)]

    def _listed(self) -> tuple[Nodes, Nodes]:
        """The tails of the edges into each node, one after the other, and where those of each begin."""
        tails, heads = self._edges.table.rows[self._edges.everything()].T
        starts, lists = np.zeros(self._edges.nodes.count + 1, np.int32), np.empty(len(tails), np.int32)
        kernels.list_by_key(as_rows(heads), as_rows(tails), starts, lists)
        return starts, lists

    @property
    def nbytes(self) -> int:
        """Bytes of the lists."""
        return 0 if self._lists is None else sum(part.nbytes for part in self._lists)
