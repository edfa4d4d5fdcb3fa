"""What can be asked of a closure that changes: `Reach` reads two versions of its intervals, before and after a change.

Pairs are told apart by the versions that have them: these are the domains I, Δ and I ∪ Δ of a storage scheme, and those that deletions need.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evermat.columns.graph.dynamic_graph import CHANGED, LIVE, LIVE_OR_CHANGED, Edges
from evermat.columns.graph.reverse_search import FrozenEdges, ReverseSearch
from evermat.columns.intervals import interval_walk as walks
from evermat.columns.intervals.interval_walk import EMPTY, Chunk, Listing, Targets, Version, Walk, covers, listing_of
from evermat.columns.kernels import interval_scan as kernels
from evermat.columns.kernels.interval_scan import ALL, BOTH, LESS
from evermat.columns.storage.arrays import NO_NODES, Batch, Mask, Nodes, Numbers, Rows, as_rows
from evermat.columns.storage.selection import GAINED, KEPT, LOST

#: so few keys are looked up one by one
FEW_KEYS = 8
#: if there are so few nodes, it is quicker to ask each whether it reaches a key than to search backwards
FEW_NODES = 1 << 15

_MARK = 16  # of nodes; not one that questions about connections use
_CLASSES = np.array([0, LOST, GAINED, KEPT], np.uint8)  # by the versions that have a pair: 1 the earlier, 2 the later


class Reach:
    """What nodes reach before and now.

    Without a version before, all pairs are KEPT. Nodes that there are not, such as -1, reach nothing and are reached by none.
    Pairs come in chunks: two arrays, not empty, of at most some length, that are valid until the next step.

    The nodes that reach a node are found along the edges, which are as they were when `now` was made; `changed` are all that were inserted or deleted since the
    version before. Without them all nodes are looked at.
    """

    def __init__(
        self,
        edges: Edges | FrozenEdges | None,
        before: Version | None,
        now: Version,
        changed: Rows | None = None,
    ) -> None:
        assert before is None or not isinstance(edges, FrozenEdges), "one version is frozen at a time"
        self._edges, self.before, self.now = edges, before, now
        self._changed = NO_NODES if before is None else changed
        self._backwards = None if edges is None else ReverseSearch(edges)
        self._fresh: Listing | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept to answer questions faster."""
        return 0 if self._backwards is None else self._backwards.nbytes

    # ── Pairs that are known ─────────────────────────────────────────────────────────────────────────────────────

    def classes(self, tails: Nodes, heads: Nodes) -> npt.NDArray[np.uint8]:
        """The class of each pair, 0 if it is in neither version."""
        tails, heads = as_rows(tails), as_rows(heads)
        if self.before is None:
            return covers(self.now, tails, heads).view(np.uint8)  # KEPT
        codes = np.zeros(len(tails), np.uint8)
        for bit, version in ((1, self.before), (2, self.now)):
            kernels.test_pairs_in(tails, heads, *version.slices, version.home, bit, codes)
        return _CLASSES[codes]

    # ── Pairs that are looked for ────────────────────────────────────────────────────────────────────────────────

    def successors(self, nodes: Nodes, domain: int, chunk: int) -> Iterator[Chunk]:
        """The pairs of a domain that begin at some nodes: their positions among these, and the targets."""
        nodes = as_rows(nodes)
        positions = np.arange(len(nodes), dtype=np.int32)
        for walk in self._walks(domain):
            yield from walks.chunks(walk, nodes, positions, self._targets(walk), chunk)

    def predecessors(self, nodes: Nodes, domain: int, chunk: int, begins: Mask | None = None) -> Iterator[Chunk]:
        """The pairs of a domain that end at some nodes and whose sources may begin them: their positions among these, and the sources."""
        nodes = as_rows(nodes)
        if len(nodes) <= FEW_KEYS:
            yield from self._look_up(nodes, domain, chunk, begins)
            return
        for walk in self._walks(domain):
            sources, keys = self._sources_and_keys(walk, nodes, begins)
            for found, positions in walks.chunks(walk, sources, sources, keys, chunk):
                yield positions, found

    def _look_up(self, nodes: Nodes, domain: int, chunk: int, begins: Mask | None) -> Iterator[Chunk]:
        """The same for few nodes, one by one."""
        few = self.now.n <= FEW_NODES
        for i, node in enumerate(nodes.tolist()):
            if not 0 <= node < self.now.n:
                continue
            if self.before is None and self._backwards is not None:
                sources = _chosen(self._predecessors(node, self._backwards) if domain & KEPT else NO_NODES, begins)
            else:
                every = np.arange(self.now.n, dtype=np.int32) if few else self._behind(nodes[i : i + 1], past=True)
                sources = _chosen(every, begins)
                classes = self.classes(sources, np.full(len(sources), node, np.int32))
                sources = sources[(classes & domain) != 0]
            for first in range(0, len(sources), chunk):
                part = sources[first : first + chunk]
                yield np.full(len(part), i, np.int32), part

    def _predecessors(self, node: int, backwards: ReverseSearch) -> Nodes:
        """Who reaches a node, while there is one version: all from which edges lead there, itself only if it lies on a cycle."""
        found = backwards.search(node)
        return found if covers(self.now, found[:1], found[:1])[0] else found[1:]

    def facts(
        self, domain: int, chunk: int, values: Numbers, *, flipped: bool, apart: bool, begins: Mask | None = None
    ) -> Iterator[Batch]:
        """All pairs of a domain whose sources may begin them, in new batches: the values of their nodes, reversed if flipped.

        If they are read `apart`, which is for one version, pairs of nodes of the same component are left out.
        """
        for walk in self._walks(domain):
            sources, targets = _chosen(self._sources(walk), begins), self._targets(walk)
            if walk.kept is None:
                groups = np.where(self.cyclic[sources], self.now.component[sources], -1) if apart else NO_NODES
                yield from walks.named(
                    walk, sources, targets.listing, groups, self.now.component, values, chunk, flipped=flipped
                )
                continue
            assert not apart
            for tails, heads in walks.chunks(walk, sources, sources, targets, chunk):
                yield values[np.stack([heads, tails] if flipped else [tails, heads])]

    @cached_property
    def cyclic(self) -> Mask:
        """Which nodes lie on a cycle now: those that reach themselves."""
        nodes = np.arange(self.now.n, dtype=np.int32)
        return covers(self.now, nodes, nodes)

    # ── Numbers of pairs ─────────────────────────────────────────────────────────────────────────────────────────

    def counts(self, nodes: Nodes, domain: int) -> Numbers:
        """How many pairs of a domain begin at each of some nodes."""
        nodes = as_rows(nodes)
        totals = np.zeros(len(nodes), np.int64)
        for walk in self._walks(domain):
            totals += walks.totals(walk, nodes, self._targets(walk))
        return totals

    def count(self, domain: int, begins: Mask | None = None) -> int:
        """How many pairs of a domain there are whose sources may begin them."""
        total = 0
        for walk in self._walks(domain):
            sources, weights = walks.representatives(walk, _chosen(self._sources(walk), begins))
            total += int(walks.totals(walk, sources, self._targets(walk)) @ weights)
        return total

    def backward_counts(self, nodes: Nodes, domain: int, begins: Mask | None = None) -> Numbers:
        """How many pairs of a domain end at each of some nodes, with sources that may begin them."""
        nodes = as_rows(nodes)
        totals = np.zeros(len(nodes), np.int64)
        for walk in self._walks(domain):
            sources, keys = self._sources_and_keys(walk, nodes, begins)
            if walk.kept is None:
                listed = keys.listing.listed
                steps = np.zeros(len(listed) + 1, np.int64)
                for _, begin, end in walks.ranges(walk, sources, keys.listing):
                    kernels.add_steps(begin, end, steps)
                totals[listed] += np.cumsum(steps[:-1])
            else:
                for _, positions in walks.chunks(walk, sources, sources, keys, walks.RANGES):
                    np.add.at(totals, positions, 1)
        return totals

    # ── Domains ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _walks(self, domain: int) -> list[Walk]:
        """The parts of a domain; they have no pair in common."""
        before, now = self.before, self.now
        if before is None:
            return [self._present] if domain & KEPT else []
        if domain == KEPT | GAINED or (before.n == 0 and domain & GAINED):
            return [self._present]
        parts = []
        is_same = before.numbering == now.numbering
        if domain & (KEPT | LOST) == KEPT | LOST:
            parts.append(Walk(before, EMPTY, ALL, 0, before.n))
        elif domain & KEPT:
            parts.append(Walk(before, now, BOTH if is_same else ALL, 0, before.n, None if is_same else True))
        elif domain & LOST:
            parts.append(Walk(before, now, LESS if is_same else ALL, 0, before.n, None if is_same else False))
        if domain & GAINED and is_same:
            # Intervals may have covered the numbers of nodes that were not there yet.
            parts.append(Walk(now, EMPTY, ALL, before.n, now.n))
            parts.append(Walk(now, before, LESS, 0, before.n))
        elif domain & GAINED:
            parts.append(Walk(now, before, ALL, 0, now.n, kept=False))
        return [walk for walk in parts if walk.least < walk.limit]

    @cached_property
    def _present(self) -> Walk:
        """All that nodes reach now."""
        return Walk(self.now, EMPTY, ALL, 0, self.now.n)

    @cached_property
    def _everything(self) -> Targets:
        """All nodes that there are now."""
        return Targets(self.now.listing, EMPTY.listing, self.now.n)

    def _targets(self, walk: Walk) -> Targets:
        """All nodes that a walk may lead to."""
        if walk is self._present:
            return self._everything
        if walk.least > 0:
            if self._fresh is None:
                nodes = np.arange(walk.least, walk.limit, dtype=np.int32)
                self._fresh = listing_of(nodes, self.now.home[nodes])
            listing = self._fresh
        elif walk.operation == LESS and self.before is not None:
            listing = self.before.listing  # no others than there were
        else:
            listing = walk.version.listing
        return Targets(listing, walk.other.listing, self.now.n)

    def _sources(self, walk: Walk) -> Nodes:
        """All nodes that a walk may begin at."""
        if walk.least > 0:
            return self._behind(np.arange(walk.least, walk.limit, dtype=np.int32), past=False)
        version, other = walk.version, walk.other
        if walk.kept is False and isinstance(self._edges, Edges) and self._changed is not None:
            # A node that reached something over a deleted edge still reaches the first such edge.
            tails = as_rows(self._edges.table.rows[self._changed, 0])
            sources = self._behind(tails, past=False)
            return sources[sources < version.n]
        chosen = version.counts > 0
        if walk.operation == LESS:
            n = min(version.n, other.n)
            chosen[:n] &= (version.starts[:n] != other.starts[:n]) | (version.counts[:n] != other.counts[:n])
        sources = np.flatnonzero(chosen).astype(np.int32)
        # The nodes of a component stand together: what they reach in both versions is compared once.
        return sources if walk.operation == ALL else sources[np.argsort(walks.groups_of(walk, sources), kind="stable")]

    def _sources_and_keys(self, walk: Walk, nodes: Nodes, begins: Mask | None) -> tuple[Nodes, Targets]:
        """The nodes that may reach some nodes on a walk; and these, as far as it may lead there, by their positions."""
        positions = np.flatnonzero((nodes >= walk.least) & (nodes < walk.limit)).astype(np.int32)
        keys = nodes[positions]
        listing = other = listing_of(positions, walk.version.home[keys])
        if walk.kept is not None:
            known = keys < walk.other.n
            other = listing_of(positions[known], walk.other.home[keys[known]])
        sources = self._behind(keys, past=walk.version is self.before) if len(keys) else NO_NODES
        return _chosen(sources, begins), Targets(listing, other, len(nodes))

    def _behind(self, keys: Nodes, *, past: bool) -> Nodes:
        """Nodes that have numbers, among them all that reach one of the keys, now or in the past."""
        edges, changed = self._edges, self._changed if past else NO_NODES
        if edges is None or changed is None:
            return np.arange(self.now.n, dtype=np.int32)
        if self.before is None or isinstance(edges, FrozenEdges):
            nodes = edges.live_behind(keys)
            return nodes[nodes < self.now.n]
        state = edges.table.state
        held = state[changed]
        state[changed] |= np.uint16(CHANGED)
        try:
            nodes = edges.behind(keys, LIVE_OR_CHANGED if len(changed) else LIVE, _MARK)
        finally:
            state[changed] = held
        edges.marks[nodes] &= np.uint8(~_MARK & 255)
        return nodes[nodes < self.now.n]


def _chosen(nodes: Nodes, begins: Mask | None) -> Nodes:
    return nodes if begins is None else nodes[begins[nodes]]
