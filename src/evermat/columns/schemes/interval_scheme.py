"""Closures as intervals: the pairs that a graph connects, without a row for any of them.

The graph is that of the closure's external facts (see `graph.dynamic_graph`); for each of its nodes the numbers of those that it reaches are kept, as
intervals (see `intervals.interval_index`). While an update is under way both versions are there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from evermat.columns.graph.dynamic_graph import Edges, Moment
from evermat.columns.graph.reverse_search import FrozenEdges
from evermat.columns.intervals.interval_index import Intervals
from evermat.columns.intervals.interval_reader import Reach
from evermat.columns.intervals.interval_walk import Version, covers
from evermat.columns.kernels import interval_scan as kernels
from evermat.columns.schemes.scheme import Counts, Freeze, Kinds, in_domain
from evermat.columns.schemes.value_directory import Mentions
from evermat.columns.storage.arrays import Batch, Mask, Nodes, Numbers, Rows, Truth, as_batch
from evermat.columns.storage.readable_table import ReadableTable
from evermat.columns.storage.selection import ANY, IN_UPDATE, KEPT, domain_of


class Pairs(Protocol):
    """The pairs of a closure, in the direction of its edges: what its members have in common."""

    @property
    def edges(self) -> Edges | FrozenEdges:
        """The nodes by their values."""

    @property
    def states(self) -> Mapping[int, int]:
        """The state word of each kind of pairs."""

    @property
    def changes(self) -> bool:
        """Whether there are two versions."""

    @property
    def before(self) -> Version | None:
        """The earlier version, if there are two."""

    @property
    def now(self) -> Version:
        """The later version, or the only one."""

    @property
    def nbytes(self) -> int:
        """Bytes in use."""

    def reach(self) -> Reach:
        """Both versions as they are now; what is read from it later is the same."""

    def begins(self) -> Mask | None:
        """The nodes that pairs may begin at; None: all."""

    def count(self, domain: int) -> int:
        """How many pairs there are."""

    def frozen(self, freeze: Freeze) -> Pairs:
        """The pairs that are committed."""


class ClosedPairs:
    """The pairs of a closure whose edges change; see `Pairs`."""

    def __init__(self, edges: Edges, order: Nodes | None = None) -> None:
        """What the edges connect; `order`: that of `tree_cover.cover`, if it is known."""
        self.edges = edges
        self.intervals = Intervals(edges)
        self.intervals.build(order)
        edges.nodes.look_for_dense_facts()
        self.states = IN_UPDATE
        self._origin: tuple[Version, Rows] | None = None
        self._counted: dict[int, int] = {}
        self._reach: Reach | None = None
        self._begins = np.empty(0, np.bool_)
        self.settle()

    def begin(self) -> None:
        """Begins an update, if it has not begun yet: from now on there are two versions."""
        if self.intervals.before is None:
            self.intervals.begin()

    def change(self, inserted: Rows, deleted: Rows) -> None:
        self._counted.clear()
        self.intervals.change(inserted, deleted)

    def end(self, *, keep: bool) -> None:
        """Ends an update: keeps the new version, or the old one."""
        if self._origin is not None:
            self.end_rounds()
        if self.intervals.before is not None:
            self._counted.clear()
            if keep:
                self.intervals.merge()
                self.edges.nodes.look_for_dense_facts()
            else:
                self.intervals.undo()
            if not keep or self.intervals.now is not self.intervals.settled:
                self.settle()

    # ── Readers in other threads ─────────────────────────────────────────────────────────────────────────────────

    def settle(self) -> None:
        """Commits the present version: readers see it from now on. Cheap."""
        self.intervals.settle()
        self._moment: Moment = self.edges.moment()
        self._frozen: FrozenPairs | None = None

    def frozen(self, freeze: Freeze) -> FrozenPairs:
        """The pairs that are committed; the same object until others are, so that what is found out for one reader is there for the next."""
        known = self._frozen
        if known is None:
            edges = FrozenEdges(self.edges, freeze(self.edges.nodes), self._moment)
            known = self._frozen = FrozenPairs(edges, self.intervals.settled)
        return known

    # ── Rounds ───────────────────────────────────────────────────────────────────────────────────────────────────

    def begin_rounds(self, states: Mapping[int, int], edges: Rows) -> None:
        """Distinguishes the facts of one round from earlier ones, by states, until the rounds end; `edges` are those before the update."""
        if self.intervals.before is not None:  # an update is under way
            self._origin = self.intervals.before, edges
        self.states = states

    def next_round(self, inserted: Rows) -> None:
        """Begins a round: the facts of the last one are as any other; some edges are inserted."""
        self.intervals.merge()
        self.intervals.begin()
        self.change(inserted, np.empty(0, np.int32))

    def end_rounds(self) -> None:
        """Ends the rounds: an update that is under way has the versions before it and now."""
        self.states = IN_UPDATE
        self._counted.clear()
        self.intervals.merge()
        self.edges.nodes.look_for_dense_facts()
        if self._origin is None:
            self.settle()
        else:
            before, edges = self._origin
            self._origin = None
            self.intervals.resume(before, np.setxor1d(edges, self.edges.everything()).astype(np.int32))

    @property
    def nbytes(self) -> int:
        return self.intervals.nbytes + self.edges.nbytes + (0 if self._reach is None else self._reach.nbytes)

    @property
    def changes(self) -> bool:
        return self.intervals.before is not None

    @property
    def before(self) -> Version | None:
        return self.intervals.before

    @property
    def now(self) -> Version:
        return self.intervals.now

    def reach(self) -> Reach:
        known = self._reach
        if known is None or known.before is not self.intervals.before or known.now is not self.intervals.now:
            known = self._reach = self.intervals.reach()
        return known

    def begins(self) -> Mask | None:
        if not self.edges.linear:
            return None
        if len(self._begins) != self.edges.nodes.count:
            self._begins = self.edges.may_begin(np.arange(self.edges.nodes.count, dtype=np.int32))
        return self._begins

    def count(self, domain: int) -> int:
        if not self.changes:
            domain = KEPT if domain & KEPT else 0
        if domain not in self._counted:
            self._counted[domain] = self.reach().count(domain, self.begins()) if domain else 0
        return self._counted[domain]


class FrozenPairs:
    """The pairs of a closure as they were when an update was committed, for readers in any thread; see `Pairs`.

    Nothing in it changes, but for what is found out when it is asked for, which is the same for every thread that does.
    """

    states = IN_UPDATE
    changes = False
    before = None

    def __init__(self, edges: FrozenEdges, now: Version) -> None:
        self.edges, self.now = edges, now
        self._reach = Reach(edges, None, now)
        self._count: int | None = None

    @property
    def nbytes(self) -> int:
        return self.now.nbytes + self.edges.nbytes

    def reach(self) -> Reach:
        return self._reach

    @cached_property
    def _begins(self) -> Mask:
        return self.edges.may_begin(np.arange(self.edges.nodes.count, dtype=np.int32))

    def begins(self) -> Mask | None:
        return self._begins if self.edges.linear else None

    def count(self, domain: int) -> int:
        if not domain & KEPT:
            return 0
        if self._count is None:
            self._count = self._reach.count(KEPT, self.begins())
        return self._count

    def frozen(self, freeze: Freeze) -> FrozenPairs:
        del freeze
        return self


class ClosedRelation:
    """A member of a closure; see `scheme.Scheme`. `flipped`: its facts are the pairs reversed.

    If it is read `apart`, facts are left out that hold reversed as well, those of a strongly connected component; while an update is under way
    none are.
    """

    name = "intervals"

    def __init__(self, pairs: Pairs, *, flipped: bool, apart: bool = False) -> None:
        self.pairs, self.flipped, self._apart = pairs, flipped, apart

    def apart_from_reversed(self) -> ClosedRelation:
        """The same without pairs that the member holds reversed."""
        return ClosedRelation(self.pairs, flipped=self.flipped, apart=True)

    def frozen(self, rows: ReadableTable, freeze: Freeze) -> ClosedRelation:
        del rows  # edges stand for them
        return ClosedRelation(self.pairs.frozen(freeze), flipped=self.flipped)

    @property
    def mentions(self) -> Mentions:
        return Mentions(self.pairs.edges.all_nodes, 1)

    def leaves(self) -> tuple[ClosedRelation]:
        return (self,)

    def as_closure(self) -> ClosedRelation:
        return self

    def about(self, domain: int) -> int:
        return self.count(domain)

    @property
    def nbytes(self) -> int:
        """What all members share."""
        return self.pairs.nbytes

    def domain(self, truth: Truth) -> int:
        return domain_of(truth, self.pairs.states)

    def is_changed(self, changed: Collection[str]) -> bool:
        del changed
        return self.pairs.changes

    def kinds(self, facts: Batch, n: int) -> Kinds:
        if not self.pairs.changes:
            return self._held(facts, n)
        ends = self.pairs.edges.find_ends(*self._in_order(facts[0, :n], facts[1, :n]))
        return self.pairs.reach().classes(*ends)

    def holds(self, fact: Batch) -> bool:
        return bool(self._held(fact, 1)[0])

    def _held(self, facts: Batch, n: int) -> Kinds:
        """Which of n facts there are while there is one version: KEPT, or 0."""
        edges, now = self.pairs.edges, self.pairs.now
        positions = edges.nodes.direct_rows()
        if positions is None:
            return covers(now, *edges.find_ends(*self._in_order(facts[0, :n], facts[1, :n]))).view(np.uint8)
        held = np.zeros(n, np.uint8)
        kernels.test_facts(as_batch(facts), n, self.flipped, int(edges.linear), *positions, *now.slices, now.home, held)
        return held

    def scan(self, domain: int, chunk: int) -> Iterator[Batch]:
        edges, apart = self.pairs.edges, self._apart and not self.pairs.changes
        values = edges.values_of(np.arange(edges.nodes.count, dtype=np.int32))
        begins = self.pairs.begins()
        return self.pairs.reach().facts(domain, chunk, values, flipped=self.flipped, apart=apart, begins=begins)

    def _wanted(self, reach: Reach, tails: Nodes, heads: Nodes) -> Any:
        """Which pairs are read; None: all."""
        if not self._apart or self.pairs.changes or not np.count_nonzero(reach.cyclic[tails]):
            return None
        component = reach.now.component
        return np.flatnonzero(component[tails] != component[heads])

    def join(
        self, columns: tuple[int, ...], keys: Batch, n: int, domain: int, chunk: int
    ) -> Iterator[tuple[Rows, Batch]]:
        reach = self.pairs.reach()
        if len(columns) == 2:
            held = np.flatnonzero(self.kinds(keys, n) & np.uint8(domain)).astype(np.int32)
            wanted = self._wanted(reach, *self.pairs.edges.find_ends(*self._in_order(*keys[:2, held])))
            held = held if wanted is None else held[wanted]
            if len(held):
                yield held, np.ascontiguousarray(keys[:2, held])
            return
        forwards = (columns[0] == 0) != self.flipped
        known = self._tails(keys[0, :n]) if forwards else self._heads(keys[0, :n])
        found = (
            reach.successors(known, domain, chunk)
            if forwards
            else reach.predecessors(known, domain, chunk, self.pairs.begins())
        )
        for positions, others in found:
            tails, heads = (known[positions], others) if forwards else (others, known[positions])
            wanted = self._wanted(reach, tails, heads)
            if wanted is None:
                yield positions, self._facts(tails, heads)
            elif len(wanted):
                yield positions[wanted], self._facts(tails[wanted], heads[wanted])

    def counts(self, columns: tuple[int, ...], keys: Batch, n: int, domain: int) -> Counts:
        if len(columns) == 2:
            return in_domain(self, keys, n, domain).astype(np.int64)
        reach = self.pairs.reach()
        if (columns[0] == 0) != self.flipped:
            return reach.counts(self._tails(keys[0, :n]), domain)
        return reach.backward_counts(self._heads(keys[0, :n]), domain, self.pairs.begins())

    def count(self, domain: int) -> int:
        return self.pairs.count(domain & ANY)

    def changed(self, kind: int) -> Batch | ChangedPairs:
        if not self.pairs.changes:
            return np.empty((2, 0), np.int64)
        return ChangedPairs(self, kind)

    def _in_order(self, first: Any, second: Any) -> tuple[Any, Any]:
        return (second, first) if self.flipped else (first, second)

    def _tails(self, values: Numbers) -> Nodes:
        return self.pairs.edges.find_nodes(values, source=self.pairs.edges.linear)

    def _heads(self, values: Numbers) -> Nodes:
        return self.pairs.edges.find_nodes(values, source=False)

    def _facts(self, tails: Nodes, heads: Nodes) -> Batch:
        facts = np.empty((2, len(tails)), np.int64)
        nodes = self.pairs.edges.nodes
        for to, ends in enumerate(self._in_order(tails, heads)):
            nodes.gather(0, ends, facts, to)
        return facts


class ChangedPairs:
    """Facts of a closure that an update inserts, or deletes, by its two versions; see `scheme.DeferredFacts`.

    It has what never changes: versions and the values of nodes. Edges, and how the relation is stored, will be others when it is read.
    """

    def __init__(self, relation: ClosedRelation, kind: int) -> None:
        pairs = relation.pairs
        self._reach, self._kind = Reach(None, pairs.before, pairs.now), kind
        self._flipped, self._linear = relation.flipped, pairs.edges.linear
        self._nodes = pairs.edges.nodes.rows[: pairs.now.n]

    @property
    def _begins(self) -> Mask | None:
        return self._nodes[:, 1] == 1 if self._linear else None

    @cached_property
    def count(self) -> int:
        return self._reach.count(self._kind, self._begins)

    def batch(self) -> Batch:
        values = self._nodes[:, 0].astype(np.int64)
        found = self._reach.facts(
            self._kind, 1 << 16, values, flipped=self._flipped, apart=False, begins=self._begins
        )  # fmt: skip
        return np.concatenate([np.empty((2, 0), np.int64), *found], axis=1)
