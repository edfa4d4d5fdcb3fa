"""What a state knows of equal terms: π, the explicit facts behind normal forms, and rules in normal form.

In a state with equality the table of a relation holds facts of two kinds: those in normal form, of which I and E are made, and explicit facts as they
were *given*, under whatever names. The normal forms of the given facts are E. Invariants between updates: I and E are
in normal form for π; a fact is in E iff it is the normal form of a given one; `_elsewhere` lists exactly the given facts that are not in normal form, under
their normal forms (the index that line 40 of B/F≈ asks for).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evermat.columns.equality.frozen_representatives import FrozenRepresentatives
from evermat.columns.equality.renaming import Ids
from evermat.columns.equality.rewritten_facts import RewrittenFacts, TermSchema
from evermat.columns.equality.union_find import Assigned, Changed, Merged, UnionFind
from evermat.columns.state.datasets import Dataset
from evermat.columns.state.views import Listed, View
from evermat.columns.storage.arrays import NO_ROWS, Rows, Truth
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.table import STATES, Table
from evermat.engine import Journal
from evermat.language import EQUALITY_CLASSES, TERM_NAMES, Program, Rule, terms_of

if TYPE_CHECKING:
    from evermat.columns.state.state import State
    from evermat.columns.state.update import Update

_LIVE = 1  # the bit of pairs that are in `_elsewhere`
_IS_LIVE: Truth = np.zeros(STATES, np.uint8)
_IS_LIVE[_LIVE] = 1


class Representatives:
    """π of a state, and what depends on it."""

    def __init__(self, program: Program, tables: Mapping[str, Table], dictionary: Dictionary) -> None:
        self.schema = TermSchema(program, tables, dictionary)
        self.union_find = UnionFind(dictionary)
        self.rewritten = RewrittenFacts(self.schema, self.union_find)
        self._counts: dict[str, int] = {}  # of the expanded facts of this version, for all who read it
        self.pending: Callable[[], Any] = lambda: None  # what the last update changed in names, if it may be asked for
        self._lists_names = TERM_NAMES.name in tables
        self._elsewhere = {name: Table(2, latch=tables[name].latch) for name in self.schema.columns}

    def share(self, other: Representatives) -> None:
        """Knows what another knows, of which this has the tables."""
        self.union_find = other.union_find
        self.rewritten = RewrittenFacts(self.schema, self.union_find)
        self._elsewhere |= {name: table for name, table in other._elsewhere.items() if name in self._elsewhere}

    @property
    def pairs(self) -> Iterable[Table]:
        """The tables of normal forms and given facts; pairs that are over have state 0."""
        return self._elsewhere.values()

    def count(self, facts: Dataset, name: str) -> int:
        """Number of facts of a relation that the facts of I represent, as of before the running update."""
        return self.frozen().count(facts, name)

    # --- versions --------------------------------------------------------------------------------------------------
    def frozen(self) -> FrozenRepresentatives:
        """What there is to read as of before the running update, for ever; in constant time.

        Any thread may ask, but not while facts are committed: facts and names belong together.
        """
        return FrozenRepresentatives(self.schema, self.union_find.frozen(), self._counts)

    def commit(self, counted: Mapping[str, int] | None) -> None:
        """Makes what an update has changed the version that is read; `counted`: how many expanded facts relations have more, if that is known."""
        self.union_find.remember()
        if counted is None:
            self._counts = {}
        else:
            known = dict(self._counts)  # at once: readers go on counting
            self._counts = {name: count + counted.get(name, 0) for name, count in known.items()}

    # --- names -----------------------------------------------------------------------------------------------------
    def names_of(self, given: Mapping[str, list[Rows]], rules: Iterable[Rule] = ()) -> dict[str, list[Rows]]:
        """The facts of NAMES that given facts and rules bring along: every term has its own name."""
        if not self._lists_names:
            return {}
        schema = self.schema
        mentioned = schema.dictionary.encode(sorted({term for rule in rules for term in terms_of(rule)}))
        found = schema.terms_in(Listed(schema.tables, {n: rows for n, rows in given.items() if n != TERM_NAMES.name}))
        terms = np.concatenate([found, mentioned]).astype(np.int64)  # which of them is there twice does not matter
        return {TERM_NAMES.name: [schema.tables[TERM_NAMES.name].locate(np.array([terms, terms]))]}

    # --- the materialisation from scratch ------------------------------------------------------------------------
    def settle(self, state: State) -> None:
        """After the equalities are known: E becomes the normal forms of what was given, and rules are brought into normal form."""
        for name in self.schema.columns:
            rows = state.given.rows(name)
            normal = self.rewritten.is_normal(name, rows)
            if not normal.all():
                if not state.materialised.count(name):
                    state.put_last(name, rows[normal])
                    rows = state.given.rows(name)
                    normal = self.rewritten.is_normal(name, rows)
                homes = self.rewritten.normal_rows(name, rows[~normal])
                state.explicit.remove(name, rows[~normal])
                state.explicit.add(Listed(self.schema.tables, {name: [homes]}))
                self._note(name, homes, rows[~normal])
        self.list_classes(state)
        state.refresh_rules()

    def list_classes(self, state: State) -> None:
        """Says in the relation CLASSES who stands for whom."""
        names, representatives = self.union_find.others()
        if len(names):
            rows = self.schema.tables[EQUALITY_CLASSES.name].locate(np.array([names, representatives]))
            state.materialised.add(Listed(self.schema.tables, {EQUALITY_CLASSES.name: [rows]}))

    def take_over(self, state: State) -> None:
        """After facts have been loaded, with bits for those that were given and those of I: everything else follows."""
        classes = self.schema.tables[EQUALITY_CLASSES.name].take(state.materialised.rows(EQUALITY_CLASSES.name))
        if classes.shape[1]:
            own = np.unique(classes[1])
            self.union_find.assign(np.concatenate([classes[0], own]), np.concatenate([classes[1], own]))
        for name in self.schema.tables:
            rows = state.given.rows(name)
            normal = self.rewritten.is_normal(name, rows)
            homes = self.rewritten.normal_rows(name, rows[~normal])
            state.explicit.add(Listed(self.schema.tables, {name: [rows[normal], homes]}))
            if len(homes):
                self._note(name, homes, rows[~normal])
                state.materialised.remove(name, rows[~normal])
        state.refresh_rules()

    def _note(self, name: str, homes: Rows, given: Rows) -> None:
        pairs = self._elsewhere[name].locate(np.array([homes, given], np.int64))
        self._elsewhere[name].set_bits(pairs, _LIVE)

    # --- explicit facts ------------------------------------------------------------------------------------------
    def given_of(self, update: Update, front: View) -> Listed:
        """Line 40: the given facts, but for deleted ones, whose normal forms are among some facts."""
        left = update.state.given - update.deleted
        found: dict[str, list[Rows]] = {}
        for name in list(front.names):
            homes = front.rows(name)
            parts = [homes]
            if (pairs := self._elsewhere.get(name)) is not None:
                joined = pairs.index((0,)).join(homes.astype(np.int64)[np.newaxis], _IS_LIVE)
                parts += [pairs.rows[rows, 1].astype(np.int32) for _, rows in joined]
            found[name] = [rows[left.mask(name, rows)] for rows in parts]
        return Listed(self.schema.tables, found)

    # --- changes in an update ------------------------------------------------------------------------------------
    def merge(self, facts: View, journal: Journal | None = None) -> Merged | None:
        """Makes terms equal of which some facts say so; None if nothing is new.

        Raises:
            DifferentValuesError: they are literals of different values.
        """
        merged = self.rewritten.merge(facts)
        if merged is not None and journal is not None:
            journal.note(self, NO_ROWS, merged)
        return merged

    def assign(self, terms: Ids, representatives: Ids, journal: Journal) -> None:
        """Gives all names of some things new representatives."""
        if len(terms):
            journal.note(self, NO_ROWS, self.union_find.assign(terms, representatives))

    def restore(self, rows: Rows, values: Any) -> None:
        """Undoes a step; for a journal."""
        if isinstance(values, Merged):
            self.union_find.part(values)
        elif isinstance(values, Assigned):
            self.union_find.take_back(values)
        else:
            name, live = values
            self._elsewhere[name].clear_bits(rows, _LIVE)
            self._elsewhere[name].set_bits(rows[live], _LIVE)

    def settle_update(self, update: Update) -> None:
        """Brings E⁻, E⁺ and CLASSES into normal form, after the equalities of an update are known."""
        changed = self.union_find.changed()
        for name in self.schema.columns:
            self._settle_explicit(update, name, changed)
        self._settle_classes(update, changed)

    def _settle_explicit(self, update: Update, name: str, changed: Changed) -> None:
        """E⁻ and E⁺ of a relation become what changes in the normal forms of the given facts."""
        state = update.state
        deleted, inserted = (sets.rows(name) for sets in (update.given_deleted, update.given_inserted))
        moved = self.schema.mentioning_in(state.given, name, changed.terms)
        moved = moved[~np.isin(moved, deleted)]
        if not len(deleted) and not len(inserted) and not len(moved):
            return
        before, after = np.concatenate([deleted, moved]), np.concatenate([inserted, moved])
        old_homes, homes = self._old_normal_rows(name, before, changed), self.rewritten.normal_rows(name, after)
        self._move(name, update.journal, (before, old_homes), (after, homes))
        affected = np.unique(np.concatenate([old_homes, homes]))
        still = state.given.mask(name, affected) & ~np.isin(affected, deleted) | np.isin(affected, inserted)
        still &= self.rewritten.is_normal(name, affected)
        still |= self._elsewhere[name].index((0,)).exists(affected[np.newaxis], _IS_LIVE)
        was = state.explicit.mask(name, affected)
        update.deleted.put(name, affected[was & ~still])
        update.inserted.put(name, affected[still & ~was])

    def _old_normal_rows(self, name: str, rows: Rows, changed: Changed) -> Rows:
        table, columns = self.schema.tables[name], self.schema.columns[name]
        batch = table.take(rows)
        if not batch.size:
            return rows
        for column in columns:
            batch[column] = changed.old_of(batch[column], self.union_find)
        return table.locate(batch)

    def _move(self, name: str, journal: Journal, before: tuple[Rows, Rows], after: tuple[Rows, Rows]) -> None:
        """Takes given facts out from under their old normal forms, and puts given facts under their new ones."""
        pairs = self._elsewhere[name]
        for (given, homes), live in ((before, False), (after, True)):
            other = given != homes
            rows = pairs.locate(np.array([homes[other], given[other]], np.int64))
            journal.note(self, rows, (name, (pairs.state[rows] & _LIVE) != 0))
            if live:
                pairs.set_bits(rows, _LIVE)
            else:
                pairs.clear_bits(rows, _LIVE)

    def _settle_classes(self, update: Update, changed: Changed) -> None:
        table = self.schema.tables[EQUALITY_CLASSES.name]
        for target, representatives in ((update.overdeleted, changed.old), (update.added, changed.new)):
            others = changed.terms != representatives
            if others.any():
                rows = table.locate(np.array([changed.terms[others], representatives[others]]))
                target.add(Listed(self.schema.tables, {EQUALITY_CLASSES.name: [rows]}))
