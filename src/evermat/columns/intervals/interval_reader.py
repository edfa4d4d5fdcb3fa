"""A closure as intervals of numbers, and what can be asked of one that changes.

Nodes of a graph are numbered along a tree that covers most of it, so that what a node reaches are few intervals of numbers (Agrawal,
Borgida and Jagadish). A `Version` is the closure at one time. `Reach` reads two of them, before and after a change, and tells pairs apart by
where they are: those are the domains I, Δ and I ∪ Δ of a storage scheme, and those that deletions need.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from evermat.columns.graph.dynamic_graph import CHANGED, LIVE, LIVE_OR_CHANGED, Backwards, Edges, Nodes
from evermat.columns.kernels import interval_scan as kernels
from evermat.columns.kernels.interval_scan import ALL, BOTH, LESS
from evermat.columns.storage.table import Batch, Rows, as_rows

Places: TypeAlias = npt.NDArray[np.int64]
Values: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]
Chunk: TypeAlias = tuple[Nodes, Nodes]
Ranges: TypeAlias = tuple[Nodes, Nodes, Nodes]  # owners, begins, ends

#: classes of pairs: in both versions, in the earlier one only, in the later one only. A domain is some of them together.
KEPT: Final = 1
LOST: Final = 2
GAINED: Final = 4

#: so many ranges are found at once; fewer for few nodes, as new memory costs more than a small question
RANGES = 1 << 14
RANGES_PER_NODE = 1 << 8
#: so few keys are looked up one by one
FEW_KEYS = 8
#: if there are so few nodes, it is quicker to ask each whether it reaches a key than to search backwards
FEW_NODES = 1 << 15

_BITS = 64
_MARK = 16  # of nodes; not one that questions about connections use
_CLASSES = np.array([0, LOST, GAINED, KEPT], np.uint8)  # by the versions that have a pair: 1 the earlier, 2 the later
_NO_NODES: Nodes = np.empty(0, np.int32)
_NO_PLACES: Places = np.empty(0, np.int64)


class Listing(NamedTuple):
    """Some nodes, or whatever stands for them, sorted by their homes, such that a number's place among these is found in a few steps.

    Invariant: `table[b]` of the homes are less than `b << shift`, up to a b for which all of them are.
    """

    listed: Nodes
    homes: Nodes
    table: Nodes
    shift: int


class Version(NamedTuple):
    """The closure of a graph with nodes 0 … n - 1. Arrays that never change, so that it can be kept, saved, and sent elsewhere.

    Invariants: a node reaches the intervals `low[i] … high[i]`, ends included, for `i` from `starts[node]`, as many as `counts[node]`. They are
    sorted, disjoint and not adjacent. A node has the numbers `own[node] … home[node]`, which no other has; a node that reaches one of
    them reaches all of them. So it reaches another node if it reaches its home, and itself only if it lies on a cycle.
    `component[node]` is the least node of its strongly connected component, whose nodes have the same intervals, stored once.
    Numbers never change as long as `numbering` is the same, but a node may have given some of its own, never its home, to nodes that came
    later. Versions of the same numbering that follow from one another have slices of the same intervals.
    """

    component: Nodes
    starts: Places
    counts: Nodes
    low: Nodes
    high: Nodes
    own: Nodes
    home: Nodes
    order: Nodes  # the nodes, by their homes
    homes: Nodes
    table: Nodes
    shift: int  # a node got 1 << shift numbers
    top: int  # the least number that is above all
    numbering: int
    numbered: int  # how many intervals there were when the nodes were numbered

    @property
    def n(self) -> int:
        """How many nodes there are."""
        return len(self.home)

    @property
    def listing(self) -> Listing:
        """All nodes."""
        return Listing(self.order, self.homes, self.table, self.shift)

    @property
    def slices(self) -> tuple[Places, Nodes, Nodes, Nodes]:
        """What nodes reach, for kernels."""
        return self.starts, self.counts, self.low, self.high

    @property
    def intervals(self) -> int:
        """How many intervals there are in use."""
        return int(self.counts[self.component == np.arange(self.n, dtype=np.int32)].sum(dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(part.nbytes for part in self if isinstance(part, np.ndarray))


EMPTY: Final = Version(
    _NO_NODES, _NO_PLACES, *(_NO_NODES,) * 7, np.zeros(1, np.int32), shift=0, top=0, numbering=0, numbered=0
)  # fmt: skip


def table_of(homes: Nodes, shift: int) -> Nodes:
    """The table of a listing."""
    table = np.empty((int(homes[-1]) >> shift) + 2 if len(homes) else 1, np.int32)
    kernels.tabulate(homes, shift, table)
    return table


def listing_of(listed: Nodes, homes: Nodes) -> Listing:
    """Lists something by homes, which are not sorted yet and may repeat."""
    by_home = np.argsort(homes)
    listed, homes = listed[by_home], homes[by_home]
    spread = int(homes[-1]) // len(homes) if len(homes) else 0
    shift = max(spread.bit_length() - 1, 0)
    return Listing(listed, homes, table_of(homes, shift), shift)


def covers(version: Version, tails: Nodes, heads: Nodes) -> Mask:
    """Which tails reach their heads."""
    codes = np.zeros(len(tails), np.uint8)
    kernels.test_pairs_in(as_rows(tails), as_rows(heads), *version.slices, version.home, 1, codes)
    return codes.view(np.bool_)


class _Walk(NamedTuple):
    """A part of a domain: what the nodes of a version reach, alone, or together or not with what they reach in another version.

    Targets are the nodes from `least` to `limit`. With `kept` not None the versions have different numbers, and what is reached in the other
    counts only if it is reached there, too, or only if it is not.
    """

    version: Version
    other: Version
    operation: int
    least: int
    limit: int
    kept: bool | None = None


class _Targets(NamedTuple):
    """What a walk may lead to, as listed by the numbers of its version and, if these are different, of the other one; less than `size`."""

    listing: Listing
    other: Listing
    size: int


class Reach:
    """What nodes reach before and now.

    Without a version before, all pairs are KEPT. Nodes that there are not, such as -1, reach nothing and are reached by none.
    Pairs come in chunks: two arrays, not empty, of at most some length, that are valid until the next step.

    Who reaches a node is found along the edges, which are as they were when `now` was made; `changed` are all that have come or gone since the
    version before. Without them all nodes are looked at.
    """

    def __init__(self, edges: Edges | None, before: Version | None, now: Version, changed: Rows | None = None) -> None:
        self._edges, self.before, self.now = edges, before, now
        self._changed = _NO_NODES if before is None else changed
        self._backwards = None if edges is None else Backwards(edges)
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
        """The pairs of a domain that begin at some nodes: their places among these, and the targets."""
        nodes = as_rows(nodes)
        places = np.arange(len(nodes), dtype=np.int32)
        for walk in self._walks(domain):
            yield from _chunks(walk, nodes, places, self._targets(walk), chunk)

    def predecessors(self, nodes: Nodes, domain: int, chunk: int, begins: Mask | None = None) -> Iterator[Chunk]:
        """The pairs of a domain that end at some nodes and whose sources may begin them: their places among these, and the sources."""
        nodes = as_rows(nodes)
        if len(nodes) <= FEW_KEYS:
            yield from self._look_up(nodes, domain, chunk, begins)
            return
        for walk in self._walks(domain):
            sources, keys = self._sources_and_keys(walk, nodes, begins)
            for found, places in _chunks(walk, sources, sources, keys, chunk):
                yield places, found

    def _look_up(self, nodes: Nodes, domain: int, chunk: int, begins: Mask | None) -> Iterator[Chunk]:
        """The same for few nodes, one by one."""
        few = self.now.n <= FEW_NODES
        for i, node in enumerate(nodes.tolist()):
            if not 0 <= node < self.now.n:
                continue
            if self.before is None and self._backwards is not None:
                sources = _chosen(self._predecessors(node, self._backwards) if domain & KEPT else _NO_NODES, begins)
            else:
                every = np.arange(self.now.n, dtype=np.int32) if few else self._behind(nodes[i : i + 1], past=True)
                sources = _chosen(every, begins)
                classes = self.classes(sources, np.full(len(sources), node, np.int32))
                sources = sources[(classes & domain) != 0]
            for first in range(0, len(sources), chunk):
                part = sources[first : first + chunk]
                yield np.full(len(part), i, np.int32), part

    def _predecessors(self, node: int, backwards: Backwards) -> Nodes:
        """Who reaches a node, while there is one version: all from which edges lead there, itself only if it lies on a cycle."""
        found = backwards.search(node)
        return found if covers(self.now, found[:1], found[:1])[0] else found[1:]

    def facts(
        self, domain: int, chunk: int, values: Values, *, flipped: bool, apart: bool, begins: Mask | None = None
    ) -> Iterator[Batch]:
        """All pairs of a domain whose sources may begin them, in new batches: the values of their nodes, turned around if flipped.

        If they are read `apart`, which is for one version, pairs of nodes of the same component are left out.
        """
        for walk in self._walks(domain):
            sources, targets = _chosen(self._sources(walk), begins), self._targets(walk)
            if walk.kept is None:
                groups = np.where(self.cyclic[sources], self.now.component[sources], -1) if apart else _NO_NODES
                yield from _named(
                    walk, sources, targets.listing, groups, self.now.component, values, chunk, flipped=flipped
                )
                continue
            assert not apart
            for tails, heads in _chunks(walk, sources, sources, targets, chunk):
                yield values[np.stack([heads, tails] if flipped else [tails, heads])]

    @cached_property
    def cyclic(self) -> Mask:
        """Which nodes lie on a cycle now: those that reach themselves."""
        nodes = np.arange(self.now.n, dtype=np.int32)
        return covers(self.now, nodes, nodes)

    # ── Numbers of pairs ─────────────────────────────────────────────────────────────────────────────────────────

    def counts(self, nodes: Nodes, domain: int) -> Places:
        """How many pairs of a domain begin at each of some nodes."""
        nodes = as_rows(nodes)
        totals = np.zeros(len(nodes), np.int64)
        for walk in self._walks(domain):
            totals += _totals(walk, nodes, self._targets(walk))
        return totals

    def count(self, domain: int, begins: Mask | None = None) -> int:
        """How many pairs of a domain there are whose sources may begin them."""
        total = 0
        for walk in self._walks(domain):
            sources, weights = _representatives(walk, _chosen(self._sources(walk), begins))
            total += int(_totals(walk, sources, self._targets(walk)) @ weights)
        return total

    def backward_counts(self, nodes: Nodes, domain: int, begins: Mask | None = None) -> Places:
        """How many pairs of a domain end at each of some nodes, with sources that may begin them."""
        nodes = as_rows(nodes)
        totals = np.zeros(len(nodes), np.int64)
        for walk in self._walks(domain):
            sources, keys = self._sources_and_keys(walk, nodes, begins)
            if walk.kept is None:
                listed = keys.listing.listed
                steps = np.zeros(len(listed) + 1, np.int64)
                for _, begin, end in _ranges(walk, sources, keys.listing):
                    kernels.add_steps(begin, end, steps)
                totals[listed] += np.cumsum(steps[:-1])
            else:
                for _, places in _chunks(walk, sources, sources, keys, RANGES):
                    np.add.at(totals, places, 1)
        return totals

    # ── Domains ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _walks(self, domain: int) -> list[_Walk]:
        """The parts of a domain; they have no pair in common."""
        before, now = self.before, self.now
        if before is None:
            return [self._present] if domain & KEPT else []
        if domain == KEPT | GAINED or (before.n == 0 and domain & GAINED):
            return [self._present]
        walks = []
        is_same = before.numbering == now.numbering
        if domain & (KEPT | LOST) == KEPT | LOST:
            walks.append(_Walk(before, EMPTY, ALL, 0, before.n))
        elif domain & KEPT:
            walks.append(_Walk(before, now, BOTH if is_same else ALL, 0, before.n, None if is_same else True))
        elif domain & LOST:
            walks.append(_Walk(before, now, LESS if is_same else ALL, 0, before.n, None if is_same else False))
        if domain & GAINED and is_same:
            # Intervals may have covered the numbers of nodes that were not there yet.
            walks.append(_Walk(now, EMPTY, ALL, before.n, now.n))
            walks.append(_Walk(now, before, LESS, 0, before.n))
        elif domain & GAINED:
            walks.append(_Walk(now, before, ALL, 0, now.n, kept=False))
        return [walk for walk in walks if walk.least < walk.limit]

    @cached_property
    def _present(self) -> _Walk:
        """All that nodes reach now."""
        return _Walk(self.now, EMPTY, ALL, 0, self.now.n)

    @cached_property
    def _everything(self) -> _Targets:
        """All nodes that there are now."""
        return _Targets(self.now.listing, EMPTY.listing, self.now.n)

    def _targets(self, walk: _Walk) -> _Targets:
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
        return _Targets(listing, walk.other.listing, self.now.n)

    def _sources(self, walk: _Walk) -> Nodes:
        """All nodes that a walk may begin at."""
        if walk.least > 0:
            return self._behind(np.arange(walk.least, walk.limit, dtype=np.int32), past=False)
        version, other = walk.version, walk.other
        if walk.kept is False and self._edges is not None and self._changed is not None:
            # Who reached something over an edge that has gone still reaches the first such edge.
            tails = as_rows(self._edges.table.rows[self._changed, 0])
            sources = self._behind(tails, past=False)
            return sources[sources < version.n]
        chosen = version.counts > 0
        if walk.operation == LESS:
            n = min(version.n, other.n)
            chosen[:n] &= (version.starts[:n] != other.starts[:n]) | (version.counts[:n] != other.counts[:n])
        sources = np.flatnonzero(chosen).astype(np.int32)
        # The nodes of a component stand together: what they reach in both versions is compared once.
        return sources if walk.operation == ALL else sources[np.argsort(_groups(walk, sources), kind="stable")]

    def _sources_and_keys(self, walk: _Walk, nodes: Nodes, begins: Mask | None) -> tuple[Nodes, _Targets]:
        """The nodes that may reach some nodes on a walk; and these, as far as it may lead there, by their places."""
        places = np.flatnonzero((nodes >= walk.least) & (nodes < walk.limit)).astype(np.int32)
        keys = nodes[places]
        listing = other = listing_of(places, walk.version.home[keys])
        if walk.kept is not None:
            known = keys < walk.other.n
            other = listing_of(places[known], walk.other.home[keys[known]])
        sources = self._behind(keys, past=walk.version is self.before) if len(keys) else _NO_NODES
        return _chosen(sources, begins), _Targets(listing, other, len(nodes))

    def _behind(self, keys: Nodes, *, past: bool) -> Nodes:
        """Nodes that have numbers, among them all that reach one of the keys, now or in the past."""
        edges, changed = self._edges, self._changed if past else _NO_NODES
        if edges is None or changed is None:
            return np.arange(self.now.n, dtype=np.int32)
        state = edges.table.state
        held = state[changed]
        state[changed] |= np.uint16(CHANGED)
        try:
            nodes = edges.behind(keys, LIVE_OR_CHANGED if len(changed) else LIVE, _MARK)
        finally:
            state[changed] = held
        edges.marks[nodes] &= np.uint8(~_MARK & 255)
        return nodes[nodes < self.now.n]


# ── Walks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ranges(walk: _Walk, sources: Nodes, listing: Listing) -> Iterator[Ranges]:
    """The places of a walk's targets in a listing, in ranges for places of sources; valid until the next step."""
    if not len(listing.listed):
        return
    room = min(RANGES, RANGES_PER_NODE * len(sources))
    owner, begin, end = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    other = walk.other if walk.kept is None else EMPTY
    cursor = np.zeros(4, np.int64)
    while cursor[0] < len(sources):
        m = kernels.find_ranges(
            sources, *walk.version.slices, *other.slices, walk.operation,
            listing.homes, listing.table, listing.shift, cursor, owner, begin, end,
        )  # fmt: skip
        if m:
            yield owner[:m], begin[:m], end[:m]


def _marked(walk: _Walk, sources: Nodes, targets: _Targets) -> Iterator[tuple[int, Words, Iterator[Ranges]]]:
    """The same where versions have different numbers, for blocks of sources: where a block begins, marks of what the other version has, ranges."""
    other = _Walk(walk.other, EMPTY, ALL, 0, walk.other.n)
    marks = np.zeros(targets.size, np.uint64)
    for first in range(0, len(sources), _BITS):
        block = sources[first : first + _BITS]
        for present in (True, False):
            for owner, begin, end in _ranges(other, block, targets.other):
                kernels.mark_ranges(owner, begin, end, targets.other.listed, present, marks)
            if present:
                yield first, marks, _ranges(walk, block, targets.listing)


def _chunks(walk: _Walk, sources: Nodes, labels: Nodes, targets: _Targets, size: int) -> Iterator[Chunk]:
    """The pairs of a walk: labels of the sources, and what is listed for targets."""
    assert size > 0
    listed = targets.listing.listed
    if walk.kept is None:
        out = _room_for(0)
        for owner, begin, end in _ranges(walk, sources, targets.listing):
            if len(out[0]) < size:
                out = _room_for(min(size, kernels.total_length(begin, end)))
            cursor = np.zeros(2, np.int64)
            while cursor[0] < len(owner):
                m = kernels.write_ranges(owner, begin, end, listed, cursor, labels, *out)
                yield out[0][:m], out[1][:m]
        return
    out = _room_for(size)
    for first, marks, found in _marked(walk, sources, targets):
        for ranges in found:
            cursor = np.zeros(2, np.int64)
            while cursor[0] < len(ranges[0]):
                m = kernels.write_marked(*ranges, listed, walk.kept, marks, cursor, labels[first:], *out)
                if m:
                    yield out[0][:m], out[1][:m]


def _named(
    walk: _Walk,
    sources: Nodes,
    listing: Listing,
    apart: Nodes,
    component: Nodes,
    values: Values,
    size: int,
    *,
    flipped: bool,
) -> Iterator[Batch]:
    """The pairs of a walk in batches of values; `apart`: for each source the component that is left out, or -1; or for none of them."""
    labels, names = values[sources], values[listing.listed]
    groups = component[listing.listed] if len(apart) else _NO_NODES
    out, filled = np.empty((2, size), np.int64), 0
    for ranges in _ranges(walk, sources, listing):
        cursor = np.zeros(2, np.int64)
        while cursor[0] < len(ranges[0]):
            filled = kernels.write_facts(*ranges, cursor, labels, names, apart, groups, flipped, filled, out)
            if filled == size:
                yield out
                out, filled = np.empty((2, size), np.int64), 0
    if filled:
        yield np.ascontiguousarray(out[:, :filled])


def _room_for(size: int) -> Chunk:
    return np.empty(size, np.int32), np.empty(size, np.int32)


def _totals(walk: _Walk, sources: Nodes, targets: _Targets) -> Places:
    """How many pairs of a walk begin at each source."""
    totals = np.zeros(len(sources), np.int64)
    if walk.kept is None:
        for ranges in _ranges(walk, sources, targets.listing):
            kernels.add_lengths(*ranges, totals)
        return totals
    for first, marks, found in _marked(walk, sources, targets):
        for ranges in found:
            kernels.add_marked(*ranges, targets.listing.listed, walk.kept, marks, totals[first:])
    return totals


def _groups(walk: _Walk, sources: Nodes) -> Places:
    """Numbers that are the same for nodes which reach the same on a walk."""
    groups = walk.version.component[sources].astype(np.int64)
    if walk.other.n:
        groups <<= 32
        (known,) = np.nonzero(sources < walk.other.n)
        groups[known] += 1 + walk.other.component[sources[known]].astype(np.int64)
    return groups


def _representatives(walk: _Walk, sources: Nodes) -> tuple[Nodes, Places]:
    """One of the nodes that reach the same on a walk, for each of them how many these are."""
    groups = _groups(walk, sources)
    order = np.argsort(groups, kind="stable")
    groups = groups[order]
    (firsts,) = np.nonzero(np.r_[True, groups[1:] != groups[:-1]][: len(groups)])
    return sources[order[firsts]], np.diff(np.r_[firsts, len(groups)]).astype(np.int64)


def _chosen(nodes: Nodes, begins: Mask | None) -> Nodes:
    return nodes if begins is None else nodes[begins[nodes]]
