"""Closures: the modules of rules that close relations, over the graph of their external facts.

The graph is in this process, whichever engine has the facts; how it gets at them is the engine's business (`Access`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

from evermat.algebra import Bag, OwnView, Take, View
from evermat.columns.graph import delta_reachability as delta_graph
from evermat.columns.graph.delta_reachability import Connections
from evermat.columns.graph.dynamic_graph import Edges
from evermat.columns.storage.arrays import NO_ROWS, Batch, Mask, Nodes, Rows
from evermat.language import Closure, Copy


class Access(Protocol):
    """The facts of an engine."""

    def facts(self, view: OwnView, relation: str) -> Batch:
        """The facts of a relation that are in a view; of one with a storage scheme, its inputs."""

    def below(self, view: OwnView, relation: str) -> Batch:
        """The facts of a relation that are in a view, however it is stored."""

    def listed(self, facts: Mapping[str, list[Batch]]) -> View:
        """Facts of I, by relation, as a view."""

    def mask(self, view: OwnView, relation: str, facts: Batch) -> Mask:
        """Which facts of I are in a view."""

    def pairs(self, closure: Closure, connections: Connections) -> Bag:
        """The facts of the members of a closure that are connected."""


class ClosureModule:
    """A closure of a stratum; see `algebra.Module`.

    `isolated`: no other recursive rules derive its relations. Then a fact is external iff it has nonrecursive derivations.
    `copies`: rules whose heads are external facts without rows; only where a storage scheme holds the closure, or will perhaps.
    """

    only_recomputed = False

    def __init__(self, closure: Closure, access: Access, *, isolated: bool) -> None:
        self.closure, self.access, self.isolated = closure, access, isolated
        self.copies: tuple[Copy, ...] = ()
        self.names = frozenset(member.relation for member in closure.members)
        self.reads = self.names | {base.relation for base in closure.bases}
        self.clear()

    def clear(self) -> None:
        self.edges = Edges(self.closure, self.copies)
        self.is_valid = False
        self._has_below = False
        self._is_preloaded = False  # whether external facts are known from which nothing was derived yet

    def begin(self) -> None:
        self._is_preloaded = self.is_valid
        if not self._is_preloaded:
            self.clear()

    def recomputed(self, update: Any, facts: Any) -> ClosureModule:
        del update, facts
        return ClosureModule(self.closure, self.access, isolated=self.isolated)

    def settle(self) -> None:
        """All is derived: there is nothing to do."""

    def add(self, take: Take, present: OwnView, delta: OwnView) -> View:
        self.load_below(present)
        self.is_valid = self.isolated  # else other rules may derive, in the same run, facts that are there already
        inserted = self.insert(delta)
        if self._is_preloaded:
            inserted, self._is_preloaded = self.edges.everything(), False
        return take(self.pairs(delta_graph.gained(self.edges, inserted)))

    def rebuild(self, external: OwnView, present: OwnView, *, reverse: bool = False) -> None:
        """Has these external facts, and what is present below; in a graph with reversed edges, if a storage scheme asks for it."""
        self.clear()
        self.edges = Edges(self.closure, self.copies, reverse=reverse)
        self.load_below(present)
        self.insert(external)
        self.is_valid = True

    def load_below(self, present: OwnView) -> Rows:
        """What is present below becomes edges, if it is not yet; returns the new edges."""
        if self._has_below:
            return NO_ROWS
        self._has_below = True
        return self.insert(present, below=True)

    def forget_below(self) -> None:
        """No edges are there any more: what is below is to be loaded again."""
        self._has_below = False

    def spell_out_copies(self) -> None:
        """External facts all have rows from now on."""
        self.edges.spell_out(self.copies)
        self.copies = ()

    def insert(self, facts: OwnView, *, below: bool = False) -> Rows:
        """Facts of members become external; or those of relations `below` become steps, or what is copied. Returns the new edges."""
        return _all(self.edges.insert(number, batch) for number, batch in self.facts_in(facts, below=below))

    def remove(self, facts: OwnView, *, below: bool = False) -> Rows:
        """Makes facts not external; returns the edges that are deleted by it."""
        return _all(self.edges.remove(number, batch) for number, batch in self.facts_in(facts, below=below))

    def facts_in(self, view: OwnView, *, below: bool = False) -> Iterator[tuple[int, Batch]]:
        """The facts of each part that are in a view, by the number of the part."""
        names, read = set(view.names), dict[str, Batch]()
        for number, part in enumerate(self.edges.parts):
            if part.is_below == below and part.relation in names:
                if part.relation not in read:
                    access = self.access.below if below else self.access.facts
                    read[part.relation] = access(view, part.relation)
                if read[part.relation].shape[1]:
                    yield number, read[part.relation]

    def pairs(self, connections: Connections) -> Bag:
        return self.access.pairs(self.closure, connections)

    def during(self, update: Any, gone: dict[str, Any], come: dict[str, Any]) -> ClosureUpdate:
        return ClosureUpdate(self, update, gone["delta_positive"], come["delta_positive"])


def closure_modules(closures: Iterable[Closure], access: Access, plain: Collection[str]) -> list[ClosureModule]:
    """The modules of the closures of a stratum; `plain` are the relations that its other recursive rules derive."""
    return [
        ClosureModule(closure, access, isolated=not any(member.relation in plain for member in closure.members))
        for closure in closures
    ]


class ClosureUpdate:
    """A closure in an update; see `algebra.ModuleUpdate`."""

    def __init__(self, module: ClosureModule, update: Any, deleted: OwnView, inserted: OwnView) -> None:
        self._module, self._edges, self._update = module, module.edges, update
        self._deleted_steps, self._inserted_steps = deleted, inserted
        self._deleted_edges: list[Rows] = []  # all edges that this update deletes
        self._deleted: list[tuple[Nodes, Nodes]] = []  # the ends of all facts and steps that were deleted
        self._forgotten = NO_ROWS  # those of facts that are not external any more, although they may hold
        self._cut, self._cut_facts = NO_ROWS, update.deleted  # what was cut last
        self._has_lost_steps = False
        self._edges.noted = update.journal.note

    # ── DRed^c-Mod ───────────────────────────────────────────────────────────────────────────────────────────────

    def lost_by_change(self) -> Bag:
        deleted = self._lose_steps()
        return self._depending(*self._ends_of_edges(deleted), deleted)

    def delete(self, delta: OwnView) -> Bag:
        deleted = self._lose(delta)
        return self._depending(*self._ends_of(delta), deleted)

    def _depending(self, tails: Nodes, heads: Nodes, deleted: Rows) -> Bag:
        self._deleted.append((tails, heads))
        return self._module.pairs(delta_graph.depending(self._edges, tails, heads, deleted))

    def rederive(self) -> Bag:
        """Red: pairs that are still connected, when no deleted fact is external any more."""
        self._lose(self._update.overdeleted)
        tails, heads = (_all(ends[i] for ends in self._deleted) for i in (0, 1))
        return self._module.pairs(delta_graph.still(self._edges, tails, heads, _all(self._deleted_edges)))

    def _ends_of(self, facts: OwnView) -> tuple[Nodes, Nodes]:
        ends = [self._edges.ends_of(number, batch) for number, batch in self._module.facts_in(facts)]
        return _all(tails for tails, _ in ends), _all(heads for _, heads in ends)

    def _ends_of_edges(self, edges: Rows) -> tuple[Nodes, Nodes]:
        tails, heads = self._edges.table.rows[edges].T.astype(np.int32)
        return tails, heads

    # ── B/F^c-Mod ────────────────────────────────────────────────────────────────────────────────────────────────

    def forget(self, facts: OwnView) -> None:
        if self._module.isolated:
            self._forgotten = self._lose(facts)

    def cut(self, delta: OwnView) -> Bag:
        cut = _all([self._forgotten, self._lose_steps(), self._lose(delta)])
        self._forgotten, self._cut, self._cut_facts = NO_ROWS, cut, delta
        return self._module.pairs(delta_graph.lost(self._edges, cut))

    def touched(self) -> View:
        """External facts that now connect what may have been connected over what was cut; an edge may stand for several facts."""
        if self._module.isolated:
            return self._unfounded(NO_ROWS)
        ends = self._ends_of(self._cut_facts), self._ends_of_edges(self._cut)
        tails, heads = (_all(one[i] for one in ends) for i in (0, 1))
        return self._unfounded(delta_graph.may_depend(self._edges, tails, heads, self._cut))

    def supports(self, goals: OwnView) -> View:
        """External facts on paths between the ends of the goals, as far as they have no nonrecursive derivations."""
        if self._module.isolated:
            return self._unfounded(NO_ROWS)
        return self._unfounded(_all(self._on_paths(number, facts) for number, facts in self._module.facts_in(goals)))

    def prove(self, goals: OwnView, proved: OwnView) -> View:
        """Goals that edges which surely hold connect."""
        found: dict[str, list[Batch]] = {}
        for number, facts in self._module.facts_in(goals):
            known = self._known(self._on_paths(number, facts), proved)
            holds = delta_graph.are_connected(self._edges, known, *self._edges.ends_of(number, facts))
            found.setdefault(self._edges.parts[number].relation, []).append(facts[:, holds])
        return self._module.access.listed(found)

    def _on_paths(self, number: int, facts: Batch) -> Rows:
        return delta_graph.on_paths(self._edges, *self._edges.ends_of(number, facts))

    def _known(self, edges: Rows, proved: OwnView) -> Rows:
        """Those of some edges that are steps, or facts that are proved or have nonrecursive derivations."""
        if self._module.isolated:
            return edges
        certain = proved | self._positive
        known = []
        for number, part in enumerate(self._edges.parts):
            chosen, facts = self._edges.facts_of(number, edges)
            known.append(chosen if part.is_below else chosen[self._module.access.mask(certain, part.relation, facts)])
        return _all(known)

    def _unfounded(self, edges: Rows) -> View:
        """The external facts of some edges that have no nonrecursive derivations."""
        found: dict[str, list[Batch]] = {}
        for number, part in enumerate(self._edges.parts):
            if not part.is_below:
                _, facts = self._edges.facts_of(number, edges)
                founded = self._module.access.mask(self._positive, part.relation, facts)
                found.setdefault(part.relation, []).append(facts[:, ~founded])
        return self._module.access.listed(found)

    @property
    def _positive(self) -> Any:
        return self._update.nonrecursive_counter.positive

    # ── Both ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def note(self, facts: OwnView) -> None:
        """Facts that hold become external: they connect nothing that was not connected."""
        self._module.insert(facts)

    def gained_by_change(self) -> Bag:
        inserted = self._module.insert(self._inserted_steps, below=True)
        return self._module.pairs(delta_graph.gained(self._edges, inserted))

    def add(self, delta: OwnView) -> Bag:
        return self._module.pairs(delta_graph.gained(self._edges, self._module.insert(delta)))

    def _lose(self, facts: OwnView, *, below: bool = False) -> Rows:
        """Makes facts not external, or steps not there; returns the edges that are deleted by it."""
        deleted = self._module.remove(facts, below=below)
        self._deleted_edges.append(deleted)
        return deleted

    def _lose_steps(self) -> Rows:
        """Deletes what lower strata have deleted, once; returns the deleted edges."""
        if self._has_lost_steps:
            return NO_ROWS
        self._has_lost_steps = True
        return self._lose(self._deleted_steps, below=True)


def _all(rows: Iterable[Rows]) -> Rows:
    return np.concatenate([NO_ROWS, *rows])
