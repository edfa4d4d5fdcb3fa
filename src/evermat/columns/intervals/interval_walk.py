"""The closure of a graph at one time, as intervals of numbers; and walks: the pairs of one part of a domain, found in one version or in two.

Nodes of a graph are numbered along a tree that covers most of it, so that what a node reaches are few intervals of numbers (Agrawal,
Borgida and Jagadish).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from evermat.columns.kernels import interval_scan as kernels
from evermat.columns.kernels.interval_scan import ALL
from evermat.columns.storage.arrays import NO_NODES, Batch, Mask, Nodes, Numbers, Words, as_rows
from evermat.core import check_stop

_NO_NUMBERS: Numbers = np.empty(0, np.int64)


class Listing(NamedTuple):
    """Some nodes, or whatever stands for them, sorted by their homes, such that a number's position among these is found in a few steps.

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
    Numbers never change as long as `numbering` is the same, but a node may have given some of its own, never its home, to nodes that were
    inserted later. Versions of the same numbering that follow from one another have slices of the same intervals.
    """

    component: Nodes
    starts: Numbers
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
        return len(self.home)

    @property
    def listing(self) -> Listing:
        """All nodes."""
        return Listing(self.order, self.homes, self.table, self.shift)

    @property
    def slices(self) -> tuple[Numbers, Nodes, Nodes, Nodes]:
        """What nodes reach, for kernels."""
        return self.starts, self.counts, self.low, self.high

    @property
    def intervals(self) -> int:
        """How many intervals there are in use."""
        return int(self.counts[self.component == np.arange(self.n, dtype=np.int32)].sum(dtype=np.int64))

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self if isinstance(part, np.ndarray))


EMPTY: Final = Version(
    NO_NODES, _NO_NUMBERS, *(NO_NODES,) * 7, np.zeros(1, np.int32), shift=0, top=0, numbering=0, numbered=0
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


Chunk: TypeAlias = tuple[Nodes, Nodes]
Ranges: TypeAlias = tuple[Nodes, Nodes, Nodes]  # owners, begins, ends

#: so many ranges are found at once; fewer for few nodes, as new memory costs more than a small question
RANGES = 1 << 14
RANGES_PER_NODE = 1 << 8

_BITS = 64


class Walk(NamedTuple):
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


class Targets(NamedTuple):
    """What a walk may lead to, as listed by the numbers of its version and, if these are different, of the other one; less than `size`."""

    listing: Listing
    other: Listing
    size: int


def ranges(walk: Walk, sources: Nodes, listing: Listing) -> Iterator[Ranges]:
    """The positions of a walk's targets in a listing, in ranges for positions of sources; valid until the next step."""
    if not len(listing.listed):
        return
    room = min(RANGES, RANGES_PER_NODE * len(sources))
    owner, begin, end = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    other = walk.other if walk.kept is None else EMPTY
    cursor = np.zeros(4, np.int64)
    while cursor[0] < len(sources):
        check_stop()
        m = kernels.find_ranges(
            sources, *walk.version.slices, *other.slices, walk.operation,
            listing.homes, listing.table, listing.shift, cursor, owner, begin, end,
        )  # fmt: skip
        if m:
            yield owner[:m], begin[:m], end[:m]


def _marked(walk: Walk, sources: Nodes, targets: Targets) -> Iterator[tuple[int, Words, Iterator[Ranges]]]:
    """The same where versions have different numbers, for blocks of sources: where a block begins, marks of what the other version has, ranges."""
    other = Walk(walk.other, EMPTY, ALL, 0, walk.other.n)
    marks = np.zeros(targets.size, np.uint64)
    for first in range(0, len(sources), _BITS):
        block = sources[first : first + _BITS]
        for present in (True, False):
            for owner, begin, end in ranges(other, block, targets.other):
                kernels.mark_ranges(owner, begin, end, targets.other.listed, present, marks)
            if present:
                yield first, marks, ranges(walk, block, targets.listing)


def chunks(walk: Walk, sources: Nodes, labels: Nodes, targets: Targets, size: int) -> Iterator[Chunk]:
    """The pairs of a walk: labels of the sources, and what is listed for targets."""
    assert size > 0
    listed = targets.listing.listed
    if walk.kept is None:
        out = _room_for(0)
        for owner, begin, end in ranges(walk, sources, targets.listing):
            if len(out[0]) < size:
                out = _room_for(min(size, int(np.sum(end - begin, dtype=np.int64))))
            cursor = np.zeros(2, np.int64)
            while cursor[0] < len(owner):
                check_stop()
                m = kernels.write_ranges(owner, begin, end, listed, cursor, labels, *out)
                yield out[0][:m], out[1][:m]
        return
    out = _room_for(size)
    for first, marks, found in _marked(walk, sources, targets):
        for some in found:
            cursor = np.zeros(2, np.int64)
            while cursor[0] < len(some[0]):
                check_stop()
                m = kernels.write_marked(*some, listed, walk.kept, marks, cursor, labels[first:], *out)
                if m:
                    yield out[0][:m], out[1][:m]


def named(
    walk: Walk,
    sources: Nodes,
    listing: Listing,
    apart: Nodes,
    component: Nodes,
    values: Numbers,
    size: int,
    *,
    flipped: bool,
) -> Iterator[Batch]:
    """The pairs of a walk in batches of values; `apart`: for each source the component that is left out, or -1; or for none of them."""
    labels, names = values[sources], values[listing.listed]
    groups = component[listing.listed] if len(apart) else NO_NODES
    out, filled = np.empty((2, size), np.int64), 0
    for some in ranges(walk, sources, listing):
        cursor = np.zeros(2, np.int64)
        while cursor[0] < len(some[0]):
            check_stop()
            filled = kernels.write_facts(*some, cursor, labels, names, apart, groups, flipped, filled, out)
            if filled == size:
                yield out
                out, filled = np.empty((2, size), np.int64), 0
    if filled:
        yield np.ascontiguousarray(out[:, :filled])


def _room_for(size: int) -> Chunk:
    return np.empty(size, np.int32), np.empty(size, np.int32)


def totals(walk: Walk, sources: Nodes, targets: Targets) -> Numbers:
    """How many pairs of a walk begin at each source."""
    sums = np.zeros(len(sources), np.int64)
    if walk.kept is None:
        for some in ranges(walk, sources, targets.listing):
            kernels.add_lengths(*some, sums)
        return sums
    for first, marks, found in _marked(walk, sources, targets):
        for some in found:
            kernels.add_marked(*some, targets.listing.listed, walk.kept, marks, sums[first:])
    return sums


def groups_of(walk: Walk, sources: Nodes) -> Numbers:
    """Numbers that are the same for nodes which reach the same on a walk."""
    groups = walk.version.component[sources].astype(np.int64)
    if walk.other.n:
        groups <<= 32
        (known,) = np.nonzero(sources < walk.other.n)
        groups[known] += 1 + walk.other.component[sources[known]].astype(np.int64)
    return groups


def representatives(walk: Walk, sources: Nodes) -> tuple[Nodes, Numbers]:
    """One of the nodes that reach the same on a walk, for each of them how many these are."""
    groups = groups_of(walk, sources)
    order = np.argsort(groups, kind="stable")
    groups = groups[order]
    (firsts,) = np.nonzero(np.r_[True, groups[1:] != groups[:-1]][: len(groups)])
    return sources[order[firsts]], np.diff(np.r_[firsts, len(groups)]).astype(np.int64)
