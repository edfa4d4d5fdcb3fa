"""The closure of a graph at one time, as intervals of numbers.

Nodes of a graph are numbered along a tree that covers most of it, so that what a node reaches are few intervals of numbers (Agrawal,
Borgida and Jagadish).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from evermat.columns.kernels import interval_scan as kernels
from evermat.columns.storage.arrays import NO_NODES, Mask, Nodes, Numbers, as_rows

_NO_PLACES: Numbers = np.empty(0, np.int64)


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
        """How many nodes there are."""
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
        """Bytes of all arrays."""
        return sum(part.nbytes for part in self if isinstance(part, np.ndarray))


EMPTY: Final = Version(
    NO_NODES, _NO_PLACES, *(NO_NODES,) * 7, np.zeros(1, np.int32), shift=0, top=0, numbering=0, numbered=0
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
