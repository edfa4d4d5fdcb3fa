"""Walks: the pairs of one part of a domain, found in the intervals of one version, or of two that are compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from evermat.columns.intervals.interval_version import EMPTY, Listing, Version
from evermat.columns.kernels import interval_scan as kernels
from evermat.columns.kernels.interval_scan import ALL
from evermat.columns.storage.arrays import NO_NODES, Batch, Nodes, Numbers, Words

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
                out = _room_for(min(size, kernels.total_length(begin, end)))
            cursor = np.zeros(2, np.int64)
            while cursor[0] < len(owner):
                m = kernels.write_ranges(owner, begin, end, listed, cursor, labels, *out)
                yield out[0][:m], out[1][:m]
        return
    out = _room_for(size)
    for first, marks, found in _marked(walk, sources, targets):
        for some in found:
            cursor = np.zeros(2, np.int64)
            while cursor[0] < len(some[0]):
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
