"""The edges of a closure: a graph that facts enter and leave.

An edge stands for external facts of a closure's members (see `language.patterns.closures`) and for steps of its bases. Where a storage scheme holds the closure,
external facts that rules only copy from relations below have no rows of their own: edges stand for the facts that are copied. A linear closure, R = X ∘ B*, has values
twice: as *sources*, from which external facts lead to the values proper, between which steps lead on. So in every closure
its facts are the pairs that paths connect, in a linear one those that begin at a source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from evermat.columns.graph.reachability import list_by_key
from evermat.columns.kernels import graphs as kernels
from evermat.columns.storage.arrays import Batch, Mask, Nodes, Numbers, Rows, Truth, as_rows, lengthened
from evermat.columns.storage.latch import Latch
from evermat.columns.storage.readable_table import ReadableTable
from evermat.columns.storage.table import STATES, Table
from evermat.language import Closure, Copy, Member

States: TypeAlias = npt.NDArray[np.uint16]
EdgeLists: TypeAlias = tuple[Nodes, Nodes]
"""Where the tails of the edges into each node begin, and these one after the other."""

CHANGED = 1 << 15  # of an edge's state: it is in question now. The other bits say what it stands for.
_STATES = np.arange(STATES, dtype=np.uint32)
LIVE: Truth = ((_STATES & (CHANGED - 1)) != 0).astype(np.uint8)
LIVE_OR_CHANGED: Truth = (_STATES != 0).astype(np.uint8)


class Part(NamedTuple):
    """Facts that are edges, reversed if flipped: external ones of a member, or those of a relation below, as steps of a base or because they are copied."""

    relation: str
    flipped: bool
    is_below: bool
    from_source: bool

    def oriented(self, batch: Batch) -> Batch:
        """Facts as edges, or edges as facts."""
        return np.ascontiguousarray(batch[::-1]) if self.flipped else batch


def parts_of(closure: Closure, copies: Iterable[Copy] = (), *, reverse: bool = False) -> list[Part]:
    """The parts of a closure, or of one with all edges reversed. A symmetric one has each external fact in both directions."""
    assert not reverse or not closure.bases, "the sources of a linear closure are where its edges begin"
    members = [part for member in closure.members for part in _external(closure, member, reverse, is_below=False)]
    bases = [Part(base.relation, base.flipped, is_below=True, from_source=False) for base in closure.bases]
    sources = dict.fromkeys(copy.source for copy in copies)
    return members + bases + [part for one in sources for part in _external(closure, one, reverse, is_below=True)]


def _external(closure: Closure, member: Member, reverse: bool, *, is_below: bool) -> list[Part]:
    """The parts of external facts that a relation has, in each direction that counts."""
    turns = (False, True) if closure.symmetric else (False,)
    return [
        Part(member.relation, (member.flipped != turn) != reverse, is_below, from_source=bool(closure.bases))
        for turn in turns
    ]


class _Links:
    """The first edge out of each node, or into it, and the next one of each edge; -1 ends a chain. `column`: the end that these edges lead to."""

    def __init__(self, column: int) -> None:
        self.column = column
        self.first: Nodes = np.empty(0, np.int32)
        self.next: Nodes = np.empty(0, np.int32)

    def make_room(self, nodes: int, edges: int) -> None:
        if len(self.first) < nodes:
            self.first = lengthened(self.first, nodes + nodes // 8 + 16, -1)
        if len(self.next) < edges:
            self.next = lengthened(self.next, edges + edges // 8 + 16, -1)


class EdgeChange:
    """Edges that have changed, and their states before; then the next change. The last one has not happened yet.

    Its holder can undo all that has happened since. It leads to later changes only, so changes that are not kept are freed.
    """

    __slots__ = ("edges", "next", "states")

    def __init__(self) -> None:
        self.next: EdgeChange | None = None

    def happen(self, edges: Rows, states: States) -> EdgeChange:
        """Is the change of some edges from now on, which is made only then; returns the next one."""
        self.edges, self.states = edges, states
        self.next = after = EdgeChange()  # last: a reader that sees it sees the others
        return after


class Moment(NamedTuple):
    """A time at which an update was committed: the first change after it, and how many nodes and linked edges there were."""

    change: EdgeChange
    nodes: int
    edges: int


def _keys(values: Numbers, *, source: bool) -> Batch:
    keys = np.empty((2, len(values)), np.int64)
    keys[0], keys[1] = values, source
    return keys


class ValuedNodes:
    """The nodes of a closure: rows of a value, and whether it is a source."""

    nodes: ReadableTable
    linear: bool

    def find_nodes(self, values: Numbers, *, source: bool) -> Nodes:
        """The nodes of some values, or the sources; -1 where there is none."""
        return self.nodes.find(_keys(values, source=source))

    def find_ends(self, tails: Numbers, heads: Numbers) -> tuple[Nodes, Nodes]:
        """The nodes of the ends of pairs, of which the first are sources in a linear closure; -1 where there is none."""
        n = len(tails)
        keys = np.zeros((2, 2 * n), np.int64)
        keys[0, :n], keys[0, n:], keys[1, :n] = tails, heads, self.linear
        nodes = self.nodes.find(keys)
        return nodes[:n], nodes[n:]

    def values_of(self, nodes: Nodes) -> Numbers:
        values: Numbers = self.nodes.rows[nodes, 0].astype(np.int64)
        return values

    def may_begin(self, nodes: Nodes) -> Mask:
        """Which nodes the paths of facts may begin at."""
        begins: Mask = self.nodes.rows[nodes, 1] == 1 if self.linear else np.ones(len(nodes), np.bool_)
        return begins


class Edges(ValuedNodes):
    """The edges of one closure, between numbered nodes.

    Invariants: each edge has one row in `table`, with a bit of its state for each part of which it is a fact; one without any is not there.
    The edges of a node are linked, in both directions. Other threads may read what there was at a `moment` while edges change: so links, nodes and
    rows are only ever added, and a change of states is in the list of changes before it is made.
    """

    nodes: Table

    def __init__(self, closure: Closure, copies: Iterable[Copy] = (), *, reverse: bool = False) -> None:
        self._closure, self.reverse = closure, reverse
        self.parts = parts_of(closure, copies, reverse=reverse)
        self.linear, self.symmetric = bool(closure.bases), closure.symmetric
        self.noted: Callable[[Edges, Rows, States], None] | None = None  # is called with states before they change
        latch = Latch(shared=True)  # readers find nodes while others are inserted, and updates that fail change nothing
        self.nodes, self.table = Table(2, latch=latch), Table(2, latch=latch)  # the latter of (tail, head)
        self._out, self._in = _Links(1), _Links(0)
        self.marks, self.positions = np.empty(0, np.uint8), np.empty(0, np.int32)  # for questions about the graph
        self._linked = 0
        self._next_change = EdgeChange()

    @property
    def nbytes(self) -> int:
        arrays = (self._out.first, self._in.first, self._out.next, self._in.next, self.marks, self.positions)
        return self.nodes.nbytes + self.table.nbytes + sum(array.nbytes for array in arrays)

    @property
    def all_nodes(self) -> Table:
        """Nodes that there are; none is ever removed."""
        return self.nodes

    @property
    def size(self) -> int:
        """How many edges there are, or were."""
        return self.table.count

    # ── Changes ──────────────────────────────────────────────────────────────────────────────────────────────────

    def insert(self, number: int, facts: Batch) -> Rows:
        """Inserts facts of a part as edges; returns the edges that are new."""
        edges = self.table.locate(self._ends(number, facts, add=True))
        self._link()
        return self._change(edges, number, present=True)

    def remove(self, number: int, facts: Batch) -> Rows:
        """Removes facts of a part; returns the edges that are deleted by it."""
        return self._change(self.find(number, facts), number, present=False)

    def remove_all(self) -> Rows:
        edges = self.everything()
        self._note(edges, self.table.state[edges])
        self.table.state[edges] = 0
        return edges

    def spell_out(self, copies: Iterable[Copy]) -> None:
        """What was there because it is copied is there as external facts of the members that it is copied into."""
        states, members = self.table.state, {member.relation: member for member in self._closure.members}
        for copy in copies:
            into = members[copy.rule.head.relation.name]
            copied = _external(self._closure, copy.source, self.reverse, is_below=True)
            external = _external(self._closure, into, self.reverse, is_below=False)
            for old, new in zip(copied, external, strict=True):
                states[(states & (1 << self.parts.index(old))) != 0] |= np.uint16(1 << self.parts.index(new))
        self.parts = parts_of(self._closure, reverse=self.reverse)
        states &= np.uint16((1 << len(self.parts)) - 1)

    def find(self, number: int, facts: Batch) -> Rows:
        """The edges of those facts of a part that have one; it may be there for other reasons."""
        ends = self._ends(number, facts, add=False)
        edges = self.table.find(np.ascontiguousarray(ends[:, (ends >= 0).all(axis=0)]))
        return edges[edges >= 0]

    def get(self, edges: Rows) -> States:
        states: States = self.table.state[edges]
        return states

    def restore(self, edges: Rows, states: States) -> None:
        self.table.state[edges] = states

    def _change(self, edges: Rows, number: int, *, present: bool) -> Rows:
        """Sets or clears the bit of a part; returns the edges that are inserted or deleted by it."""
        states, bit = self.table.state, np.uint16(1 << number)
        edges = _distinct(edges[((states[edges] & bit) != 0) != present])
        before = states[edges]
        self._note(edges, before)
        after = before | bit if present else before & ~bit
        states[edges] = after
        changed: Rows = edges[(before != 0) != (after != 0)]
        return changed

    def _note(self, edges: Rows, states: States) -> None:
        """Notes the states of edges that are about to change."""
        if len(edges):
            self._next_change = self._next_change.happen(edges, states)
            if self.noted is not None:
                self.noted(self, edges, states)

    def moment(self) -> Moment:
        """The present: an update is over, or has not begun."""
        if self._linked < self.table.count or len(self._in.first) < self.nodes.count:
            self._link()  # an update was interrupted before it did
        return Moment(self._next_change, self.nodes.count, self._linked)

    def _link(self) -> None:
        """Puts new edges into the lists of their nodes."""
        for links in (self._out, self._in):
            links.make_room(self.nodes.count, self.table.count)
        if len(self.marks) < self.nodes.count:
            self.marks, self.positions = (lengthened(a, len(self._out.first)) for a in (self.marks, self.positions))
        kernels.link(
            self.table.rows, self._linked, self.table.count,
            self._out.first, self._out.next, self._in.first, self._in.next,
        )  # fmt: skip
        self._linked = self.table.count

    # ── Nodes ────────────────────────────────────────────────────────────────────────────────────────────────────

    def ends_of(self, number: int, facts: Batch) -> tuple[Nodes, Nodes]:
        """The nodes of facts of a part, all of which have nodes."""
        tails, heads = self._ends(number, facts, add=False).astype(np.int32)
        assert int(min(tails.min(initial=0), heads.min(initial=0))) >= 0
        return tails, heads

    def _ends(self, number: int, facts: Batch, *, add: bool) -> Batch:
        """The nodes of facts; with `add` missing ones are inserted, else they are -1."""
        part = self.parts[number]
        tails, heads = part.oriented(facts)
        find = self.nodes.locate if add else self.nodes.find
        ends = find(_keys(tails, source=part.from_source)), find(_keys(heads, source=False))
        return np.stack(ends).astype(np.int64)

    def number(self, nodes: Nodes) -> Nodes:
        """The positions of nodes in a list of them, by node; of other nodes it says nothing. Valid until the next call."""
        self.positions[nodes] = np.arange(len(nodes), dtype=np.int32)  # the last of several holds
        return self.positions

    # ── Facts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def facts_of(self, number: int, edges: Rows) -> tuple[Rows, Batch]:
        """Those of some edges that are facts of a part, and these facts."""
        chosen = edges[(self.table.state[edges] & (1 << number)) != 0]
        return chosen, self.parts[number].oriented(self.values_of(self.table.rows[chosen].T))

    def everything(self) -> Rows:
        return np.flatnonzero(self.table.state[: self.table.count]).astype(np.int32)

    # ── Searches ─────────────────────────────────────────────────────────────────────────────────────────────────

    def ahead(self, seeds: npt.NDArray[Any], truth: Truth, mark: int, within: int = 0) -> Nodes:
        """Some nodes and all that can be reached from them, over edges of `truth` and nodes marked `within`; they are marked."""
        return self._reach(seeds, truth, self._out, mark, within, self.marks)

    def behind(self, seeds: npt.NDArray[Any], truth: Truth, mark: int, within: int = 0) -> Nodes:
        """Some nodes and all from which they can be reached."""
        return self._reach(seeds, truth, self._in, mark, within, self.marks)

    def live_behind(self, seeds: Nodes) -> Nodes:
        """Some nodes and, after them, all from which live edges lead there; leaves no marks, so several may search at a time."""
        found = self.linked_behind(seeds, self.nodes.count, self._linked)
        assert found is not None
        return found

    def linked_behind(self, seeds: Nodes, nodes: int, edges: int) -> Nodes | None:
        """The same among so many nodes and linked edges, which may have changed meanwhile; None if there are more."""
        out = np.empty(nodes, np.int32)
        given = np.ascontiguousarray(seeds, np.int32), self.table.rows, self.table.state, LIVE
        found = kernels.reach(*given, self._in.first, self._in.next, 0, edges, np.zeros(nodes, np.uint8), 1, 0, out)
        return out[:found] if found >= 0 else None

    def _reach(
        self, seeds: npt.NDArray[Any], truth: Truth, links: _Links, mark: int, within: int, marks: npt.NDArray[np.uint8]
    ) -> Nodes:
        out = np.empty(self.nodes.count, np.int32)
        found = kernels.reach(
            np.ascontiguousarray(seeds, np.int32), self.table.rows, self.table.state, truth,
            links.first, links.next, links.column, self._linked, marks, mark, within, out,
        )  # fmt: skip
        return out[:found]

    def between(self, nodes: Nodes, mark: int, truth: Truth) -> Rows:
        """The edges of `truth` from some nodes to marked ones."""
        given = (nodes, self.marks, mark, self.table.rows, self.table.state, truth, self._out.first, self._out.next)
        out = np.empty(kernels.edges_between(*given, np.empty(0, np.int32)), np.int32)
        kernels.edges_between(*given, out)
        return out

    def by_head(self) -> EdgeLists:
        """The tails of the live edges into each node."""
        return listed_by_head(self.table.rows[self.everything()], self.nodes.count)


def listed_by_head(edges: npt.NDArray[Any], nodes: int) -> EdgeLists:
    """The tails of some edges, given by tails and heads."""
    return list_by_key(as_rows(edges[:, 1]), as_rows(edges[:, 0]), nodes)


def _distinct(rows: Rows) -> Rows:
    """The rows, each once, in order; np.unique is slow."""
    ordered = np.sort(rows)
    return ordered[np.r_[True, ordered[1:] != ordered[:-1]]] if len(ordered) else ordered
