"""The closure of a graph that changes, as intervals of numbers: built, maintained while edges are inserted and deleted, renumbered.

This is the storage scheme for transitive relations of Zhang, Hu, Nenov and Horrocks (*Optimised storage for Datalog reasoning*), and the deletion
that they leave open. Numbers that nodes own for life replace the statuses and sets of fresh numbers there: see `Version`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evermat.columns.graph.dynamic_graph import LIVE, Edges
from evermat.columns.graph.reachability import Graph, list_by_key
from evermat.columns.intervals.interval_reader import Reach
from evermat.columns.intervals.interval_walk import EMPTY, Version, covers, table_of
from evermat.columns.intervals.tree_cover import cover
from evermat.columns.kernels import interval_build as kernels
from evermat.columns.storage.arrays import NO_NODES, Mask, Nodes, Numbers, Rows, as_rows, lengthened
from evermat.core import check_stop

#: a node gets so many numbers, a power of two, or fewer if there would be too many
STRIDE = 64
#: all is rebuilt if so many times the edges that change, or the nodes that are new, are more than there are
REBUILD_SHARE = 2
#: or if there are so many times more intervals than when the nodes were numbered, and so many more
GROWTH = 2
GROWTH_AT_LEAST = 10_000
#: greater numbers are not given; one more must still be a number
MOST_NUMBERS = (1 << 31) - 2

_INSIDE, _ANYWHERE = 16, 32  # marks of nodes; not those that questions about connections use
_RUNS = 64  # each is more than twice as long as the next


class _Arena:
    """Intervals that are appended, and never change then."""

    def __init__(self, low: Nodes = NO_NODES, high: Nodes = NO_NODES) -> None:
        self.low, self.high, self.used = low, high, len(low)

    def reserve(self, room: int) -> None:
        """Makes room for so many. Arrays that were taken from it before stay as they are."""
        if room > len(self.low):
            room = max(room, self.used + self.used // 2, 256)
            self.low, self.high = (lengthened(a[: self.used], room) for a in (self.low, self.high))

    def trim(self) -> None:
        if self.used < len(self.low):
            self.low, self.high = self.low[: self.used].copy(), self.high[: self.used].copy()

    @property
    def intervals(self) -> tuple[Nodes, Nodes]:
        return self.low[: self.used], self.high[: self.used]


class _Draft:
    """A version that is being made: arrays of its own for the properties of nodes."""

    def __init__(self, version: Version, nodes: int) -> None:
        self.component = np.arange(nodes, dtype=np.int32)
        self.component[: version.n] = version.component
        self.starts, self.counts = lengthened(version.starts, nodes), lengthened(version.counts, nodes)
        self.own, self.home = lengthened(version.own, nodes, -1), lengthened(version.home, nodes, -1)


class Intervals:
    """The closure of the edges that are there.

    Invariants: `now` is the closure of the edges at the last change, `before` that at the last `begin`, if that has not been settled by
    `merge` or `undo` since. Both have all nodes that there were then. Versions never change: what changes is which of them is `now`.
    `settled` is the version that is committed, for readers in other threads: what it holds does not change before `settle`.
    """

    def __init__(self, edges: Edges, now: Version = EMPTY) -> None:
        self.edges = edges
        self.now = self.settled = now
        self.before: Version | None = None
        self.recomputed = 0  # components whose intervals have been computed since the beginning
        self._arena = _Arena(now.low, now.high)
        self._changed: list[Rows] = []
        self._numbering = now.numbering  # the last that there was

    @property
    def nbytes(self) -> int:
        """Bytes in use; what both versions have counts once."""
        arrays: dict[int, Any] = {}
        for part in (*self.now, *(self.before or ()), self._arena.low, self._arena.high):
            if isinstance(part, np.ndarray):
                whole = part.base if isinstance(part.base, np.ndarray) else part
                arrays[id(whole)] = whole
        return sum(array.nbytes for array in arrays.values())

    def reach(self) -> Reach:
        """What can be asked of the closure before and now, until the edges change."""
        return Reach(self.edges, self.before, self.now, np.concatenate([NO_NODES, *self._changed]))

    # ── Before and now ───────────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Keeps the present version, from which later changes are distinguished."""
        self.before, self._changed = self.now, []

    def merge(self) -> None:
        """Drops the version before."""
        self.before, self._changed = None, []
        if self._arena.used > 2 * self.now.intervals:
            self._compact()

    def settle(self) -> None:
        """Commits the present version."""
        self.settled = self.now

    def undo(self) -> None:
        """Restores the version before. The edges are as they were then; nodes inserted since lose their numbers."""
        assert self.before is not None
        if self.before.numbering != self.now.numbering:
            self._arena = _Arena(self.before.low, self.before.high)
        self.now, self.before, self._changed = self.before, None, []

    def resume(self, before: Version, changed: Rows) -> None:
        """Distinguishes the present from an earlier version again, since which some edges were inserted or deleted."""
        self.before, self._changed = before, [changed]

    def _next_numbering(self) -> int:
        self._numbering += 1
        return self._numbering

    def _compact(self) -> None:
        """Stores the intervals of this version only. Slices are others then, so it counts as renumbered."""
        now = self.now
        (filled,) = np.nonzero(now.counts)
        # Nodes that have the same slice, because they are of one component or like each other, keep one.
        _, nodes, slices = np.unique(now.starts[filled], return_index=True, return_inverse=True)
        nodes = filled[nodes]
        ends = np.cumsum(now.counts[nodes], dtype=np.int64)
        positions = ends - now.counts[nodes]
        low, high = (np.empty(int(ends[-1]) if len(ends) else 0, np.int32) for _ in range(2))
        kernels.copy_slices(nodes.astype(np.int32), now.starts, now.counts, positions, now.low, now.high, low, high)
        starts = np.zeros(now.n, np.int64)
        starts[filled] = positions[slices]
        self._arena = _Arena(low, high)
        self.now = now._replace(starts=starts, low=low, high=high, numbering=self._next_numbering())

    # ── Changes ──────────────────────────────────────────────────────────────────────────────────────────────────

    def change(self, inserted: Rows, deleted: Rows) -> None:
        """Takes account of inserted and deleted edges, given by rows whose states are the new ones already."""
        edges, n = self.edges, self.edges.nodes.count
        rows = np.concatenate([as_rows(inserted), as_rows(deleted)])
        is_live = LIVE[edges.table.state[rows]] != 0
        inserted, deleted = rows[is_live], rows[~is_live]
        if self.before is not None:
            self._changed.append(rows)
        fresh = n - self.now.n
        if (
            not self.now.n
            or fresh * REBUILD_SHARE > self.now.n
            or len(rows) * REBUILD_SHARE > np.count_nonzero(edges.table.state[: edges.table.count])
            or self.now.top + (fresh << self.now.shift) > MOST_NUMBERS
        ):
            self.build()
            return
        tails, heads = _ends(edges, inserted)
        if fresh:
            self._number(n, tails, heads)
        grown = tails[~covers(self.now, tails, heads)]
        shrunk = _ends(edges, deleted)[0]
        if len(grown) or len(shrunk):
            self._maintain(grown, shrunk)
            intervals = self.now.intervals
            if intervals > max(GROWTH * self.now.numbered, self.now.numbered + GROWTH_AT_LEAST):
                self.build()

    def _number(self, n: int, tails: Nodes, heads: Nodes) -> None:
        """Numbers for nodes that have none, some of whose edges are given: all that are live. So far they reach nothing."""
        now, first = self.now, self.now.n
        draft = _Draft(now, n)
        is_fresh = heads >= first
        tails, heads = tails[is_fresh], heads[is_fresh]
        is_old = tails < first
        starts, lists = list_by_key(tails[~is_old] - np.int32(first), heads[~is_old], n - first)
        has_parent = np.zeros(n - first, np.bool_)
        has_parent[heads - first] = True
        roots = first + np.argsort(has_parent, kind="stable")
        top = kernels.number_fresh(
            tails[is_old], heads[is_old], starts, lists, roots.astype(np.int32), first, now.top, 1 << now.shift,
            draft.own, draft.home, np.empty(n - first, np.int32),
        )  # fmt: skip
        fresh = first + np.argsort(draft.home[first:])
        positions = np.searchsorted(now.homes, draft.home[fresh])
        homes = np.insert(now.homes, positions, draft.home[fresh])
        self.now = now._replace(
            component=draft.component, starts=draft.starts, counts=draft.counts, own=draft.own, home=draft.home,
            order=np.insert(now.order, positions, fresh.astype(np.int32)), homes=homes,
            table=table_of(homes, now.shift), top=top,
        )  # fmt: skip

    def _maintain(self, grown: Nodes, shrunk: Nodes) -> None:
        """What nodes reach, after edges were inserted from some to nodes that these did not reach, and deleted from others.

        Only for nodes that reach one of them anything can be different: one that reached it over a deleted edge reaches that edge's
        tail. For the same reason a strongly connected component is among them with all its nodes, or not at all.
        """
        edges = self.edges
        nodes = np.sort(edges.behind(np.concatenate([grown, shrunk]), LIVE, _INSIDE))
        edges.marks[: edges.nodes.count] |= np.uint8(_ANYWHERE)
        tails, heads = _ends(edges, edges.between(nodes, _ANYWHERE, LIVE))
        is_inside = (edges.marks[heads] & _INSIDE) != 0
        edges.marks[: edges.nodes.count] &= np.uint8(~(_INSIDE | _ANYWHERE) & 255)
        position = edges.number(nodes)
        from_source = self._are_sources(tails)
        outward = tails[from_source], heads[from_source]
        is_inside &= ~from_source
        leads_out = ~is_inside & ~from_source
        tails = position[tails]
        graph = Graph(len(nodes), tails[is_inside], position[heads[is_inside]])
        outer = list_by_key(graph.component[tails[leads_out]], heads[leads_out], graph.components)
        seeds = np.zeros(graph.components, np.uint8)
        seeds[graph.component[position[grown]]] |= np.uint8(kernels.GREW)
        seeds[graph.component[position[shrunk]]] |= np.uint8(kernels.SHRANK)
        draft = _Draft(self.now, self.now.n)
        sources = nodes[self._are_sources(nodes)]
        seeds[graph.component[position[sources]]] = 0
        self._close(draft, self.now.own, self.now.home, graph, nodes, outer, seeds)
        self._close_sources(draft, self.now.own, self.now.home, sources, *outward)
        self.now = self.now._replace(component=draft.component, starts=draft.starts, counts=draft.counts)
        self._take_over()

    def build(self, order: Nodes | None = None) -> None:
        """Rebuilds all, with new numbers; in the order that `cover` finds for all nodes, if it is not known."""
        edges, n = self.edges, self.edges.nodes.count
        nodes = np.arange(n, dtype=np.int32)
        tails, heads = _ends(edges, edges.everything())
        from_source = self._are_sources(tails)
        graph = Graph(n, tails[~from_source], heads[~from_source])
        order = cover(graph) if order is None else order
        shift = min(STRIDE, max((MOST_NUMBERS // 2) // max(n, 1), 1)).bit_length() - 1
        homes = (np.arange(1, n + 1, dtype=np.int64) << shift).astype(np.int32) - np.int32(1)
        home = np.empty(n, np.int32)
        home[order] = homes
        own = home - np.int32((1 << shift) - 1)
        self._arena = _Arena()
        draft = _Draft(EMPTY, n)
        outer = np.zeros(graph.components + 1, np.int32), NO_NODES
        seeds = np.full(graph.components, kernels.SHRANK, np.uint8)
        self._close(draft, own, home, graph, nodes, outer, seeds)
        self._close_sources(draft, own, home, nodes[self._are_sources(nodes)], tails[from_source], heads[from_source])
        self._arena.trim()
        low, high = self._arena.intervals
        self.now = Version(
            draft.component, draft.starts, draft.counts, low, high, own, home, order, homes, table_of(homes, shift),
            shift, n << shift, self._next_numbering(), 0,
        )  # fmt: skip
        self.now = self.now._replace(numbered=self.now.intervals)

    def _are_sources(self, nodes: Nodes) -> Mask:
        """Which nodes are only sources: edges lead from them, and none to them."""
        return self.edges.may_begin(nodes) if self.edges.linear else np.zeros(len(nodes), np.bool_)

    def _close_sources(
        self, draft: _Draft, own: Nodes, home: Nodes, sources: Nodes, tails: Nodes, heads: Nodes
    ) -> None:  # fmt: skip
        """Computes what sources reach, given their edges, when it is known what all other nodes reach.

        Most often the steps from the node of the same value lead where the edges of a source lead: then it reaches the same, which is not stored again.
        """
        if not len(sources):
            return
        edges = self.edges
        twins = edges.find_nodes(edges.values_of(sources), source=False)
        position = edges.number(sources)
        of_source = position[tails]
        steps = edges.table.find(np.stack([twins[of_source], heads]).astype(np.int64))
        is_step = (steps >= 0) & (LIVE[edges.table.state[steps]] != 0)
        common = np.bincount(of_source[is_step], minlength=len(sources))
        degrees = np.bincount(of_source, minlength=len(sources))
        like = (common == degrees) & (common > 0)  # a source without a twin has nothing in common with one
        like[like] = degrees[like] == self._degrees(twins[like])
        draft.starts[sources[like]], draft.counts[sources[like]] = draft.starts[twins[like]], draft.counts[twins[like]]
        others = ~like
        rest = sources[others]
        position = edges.number(rest)
        is_rest = others[of_source]
        graph = Graph(len(rest), NO_NODES, NO_NODES)
        outer = list_by_key(graph.component[position[tails[is_rest]]], heads[is_rest], graph.components)
        self._close(draft, own, home, graph, rest, outer, np.full(len(rest), kernels.SHRANK, np.uint8))

    def _degrees(self, nodes: Nodes) -> Numbers:
        """How many edges lead from each of some different nodes."""
        edges = self.edges
        edges.marks[: edges.nodes.count] |= np.uint8(_ANYWHERE)
        tails, _ = _ends(edges, edges.between(nodes, _ANYWHERE, LIVE))
        edges.marks[: edges.nodes.count] &= np.uint8(~_ANYWHERE & 255)
        position = edges.number(nodes)
        return np.bincount(position[tails], minlength=len(nodes))

    def _close(
        self, draft: _Draft, own: Nodes, home: Nodes, graph: Graph, nodes: Nodes, outer: tuple[Nodes, Nodes],
        seeds: npt.NDArray[np.uint8],
    ) -> None:  # fmt: skip
        """Computes what the nodes of a part of the graph reach: by the graph within it, and edges that lead out of its components."""
        least = np.minimum(graph.members[graph.bounds[:-1]], graph.members[graph.bounds[1:] - 1])
        draft.component[nodes] = nodes[least[graph.component]]
        inner = _nearest_first(graph)
        changed = np.zeros(graph.components, np.uint8)
        arena = self._arena
        gained = _Arena()
        gain_starts, gain_counts = np.empty(graph.components, np.int64), np.empty(graph.components, np.int32)
        stack, runs = np.empty((4, 1024), np.int32), np.empty(_RUNS, np.int64)
        progress = np.array([graph.components - 1, arena.used, 0, 0, 0, 0, 0], np.int64)
        while progress[0] >= 0:
            check_stop()
            kernels.close(
                graph.bounds, graph.members, nodes, *inner, *outer, graph.cyclic, seeds, changed,
                draft.starts, draft.counts, own, home, arena.low, arena.high,
                gain_starts, gain_counts, gained.low, gained.high, stack, runs, progress,
            )  # fmt: skip
            arena.used, gained.used = int(progress[1]), int(progress[5])
            arena.reserve(int(progress[3]))
            gained.reserve(int(progress[6]))
            if progress[2] > stack.shape[1]:
                stack = np.empty((4, 2 * int(progress[2])), np.int32)
        self.recomputed += int(progress[4])

    def _take_over(self) -> None:
        """All versions have the intervals that there are, so that arrays that have become too short are freed."""
        low, high = self._arena.intervals
        self.now = self.now._replace(low=low, high=high)

        def longer(version: Version) -> Version:
            if version.numbering != self.now.numbering:
                return version
            return version._replace(low=low[: len(version.low)], high=high[: len(version.high)])

        before, settled = self.before, self.settled
        self.settled = longer(settled)
        if before is not None:
            self.before = self.settled if before is settled else longer(before)


def _ends(edges: Edges, rows: Rows) -> tuple[Nodes, Nodes]:
    ends: Any = edges.table.rows[rows]
    return as_rows(ends[:, 0]), as_rows(ends[:, 1])


def _nearest_first(graph: Graph) -> tuple[Nodes, Nodes]:
    """The components that edges lead to from each, in topological order: the later ones are often reached by the earlier."""
    count = graph.components
    tails = np.repeat(np.arange(count, dtype=np.int32), np.diff(graph.starts))
    starts, tails = list_by_key(graph.successors, tails, count)
    heads = np.repeat(np.arange(count, dtype=np.int32), np.diff(starts))
    return list_by_key(tails, heads, count)
