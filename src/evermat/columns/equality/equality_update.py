"""The facts of a stratum with equality while terms become equal, or cease to be: M of B/F≈ in its several forms."""

from __future__ import annotations

from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt

from evermat.columns.equality.equality_state import Representatives
from evermat.columns.equality.expansion import all_names
from evermat.columns.equality.rewritten_facts import RewrittenFacts
from evermat.columns.equality.union_find import UnionFind
from evermat.columns.evaluation.rules import Bag, Rules
from evermat.columns.state.datasets import AppendedRows
from evermat.columns.state.state import State
from evermat.columns.state.stratum import StratumRules
from evermat.columns.state.update import Update
from evermat.columns.state.views import Listed, View
from evermat.columns.state.working_sets import WorkingSet
from evermat.columns.storage.arrays import NO_ROWS, Numbers, Rows, grown
from evermat.engine import DifferentValuesError, NormalRules

_DELTA = 1 << 15  # the bit of Δ during a materialisation from scratch


class _Delta:
    """Δ as rules need it: a set."""

    def __init__(self, held: WorkingSet) -> None:
        self.held = held

    def hold(self, facts: View) -> WorkingSet:
        self.held.replace(facts)
        return self.held

    def renew(self, delta: View, moved: View, new: View) -> WorkingSet:
        """Δ without facts that were rewritten, and with the results."""
        found: dict[str, list[Rows]] = {name: [(delta - moved).rows(name)] for name in list(delta.names)}
        for name in list(new.names):
            found.setdefault(name, []).append(new.rows(name))
        return self.hold(Listed(delta.tables, found))


class Materialised:
    """I during a materialisation from scratch."""

    def __init__(self, state: State, stratum: StratumRules) -> None:
        assert state.representatives is not None
        self._state, self._representatives = state, state.representatives
        self._own = stratum.stratum
        self.facts: View = state.materialised
        self.rules: NormalRules[Rules] = stratum.everything
        self._delta = _Delta(WorkingSet("Δ", _DELTA, state.tables, state.jobs.run))

    def add(self, *facts: View | Bag) -> View:
        new: View = reduce(or_, map(self._state.materialised.add, facts))
        simple = isinstance(new, AppendedRows) and all(map(self._state.materialised.holds_all, new.names))
        return new if simple else self._delta.hold(new)

    def merge(self, delta: View) -> View | None:
        merged = self._representatives.merge(delta)
        if merged is None:
            return None
        materialised, rewritten = self._state.materialised, self._representatives.rewritten
        moved = rewritten.schema.mentioning(materialised.at(self._own), merged.losers)
        for name in list(moved.names):
            materialised.remove(name, moved.rows(name))
        return self._delta.renew(delta, moved, materialised.add(rewritten.normal(moved)))

    def finish(self) -> None:
        self._delta.held.clear()
        self._representatives.settle(self._state)


class EqualityUpdate:
    """A stratum with equality in an update."""

    def __init__(self, update: Update, stratum: StratumRules) -> None:
        assert update.state.representatives is not None
        self.update, self.stratum = update, stratum
        self.representatives: Representatives = update.state.representatives
        self.rules: NormalRules[Rules] = stratum.everything
        self.possible: NormalRules[Rules] = stratum.possible

    def normal(self, facts: View) -> Listed:
        return self.representatives.rewritten.normal(facts)

    def names(self, facts: View) -> Listed:
        """Line 29: c ≈ c for the terms in some facts that have other names."""
        schema, union_find = self.representatives.schema, self.representatives.union_find
        terms = schema.terms_in(facts) if union_find else np.empty(0, np.int64)
        return schema.reflexive(terms[union_find.sizes(terms) > 1])

    def depending_on_names(self, unproved: View, live: View) -> Listed:
        """Lines 9–11: facts that mention a term that has other names, of which it is not proved that they are equal."""
        schema, union_find = self.representatives.schema, self.representatives.union_find
        terms = schema.reflexive_terms(unproved)
        return schema.mentioning(live.at(self.stratum.stratum), terms[union_find.sizes(terms) > 1])

    def proofs(self, below: View, blocked: View) -> Proofs:
        return Proofs(self, below, blocked)

    def grown(self) -> Grown:
        return Grown(self)

    def again(self, below: View) -> Again:
        return Again(self, below)

    def rename_to(self, terms: Numbers, union_find: UnionFind) -> None:
        """All names of some things have the representatives that another renaming gives them."""
        self.representatives.assign(terms, union_find.of(terms), self.update.journal)
        self.rules.refresh()
        self.possible.refresh()


class Grown:
    """(I ∖ D) ∪ A, to which facts are added while γ is π."""

    def __init__(self, equality: EqualityUpdate) -> None:
        self._equality, self._update = equality, equality.update
        state, update = self._update.state, self._update
        self.facts: View = (state.materialised - update.overdeleted) | update.added
        self.rules = equality.rules
        self._found = update.new("NA")
        self._delta = _Delta(update.new("ΔA"))

    def add(self, *facts: View | Bag) -> View:
        for some in facts:
            self._found.add(some)
        delta = self._delta.hold(self._found - self.facts)
        self._update.added.add(delta)
        self._found.clear()
        return delta

    def merge(self, delta: View) -> View | None:
        update, representatives = self._update, self._equality.representatives
        merged = representatives.merge(delta, update.journal)
        if merged is None:
            return None
        moved = representatives.schema.mentioning(self.facts.at(self._equality.stratum.stratum), merged.losers)
        update.added.discard(moved)
        update.overdeleted.add(moved & update.state.materialised)
        new = (representatives.rewritten.normal(moved) - self.facts).listed()
        return self._delta.renew(delta, moved, update.added.add(new))

    def finish(self) -> None:
        self._update.release(self._found, self._delta.held)


class Again:
    """A materialisation from scratch, under a renaming of its own."""

    def __init__(self, equality: EqualityUpdate, below: View) -> None:
        self._equality, self._update = equality, equality.update
        schema = equality.representatives.schema
        self._rewritten = RewrittenFacts(schema, UnionFind(schema.dictionary))
        self._held = self._update.new("again")
        self._delta = _Delta(self._update.new("Δ"))
        self.facts: View = self._held | below
        self.rules = NormalRules(equality.stratum.written, self._rewritten.union_find.normal)

    def add(self, *facts: View | Bag) -> View:
        return self._delta.hold(reduce(or_, map(self._held.add, facts)))

    def merge(self, delta: View) -> View | None:
        try:
            merged = self._rewritten.merge(delta)
        except DifferentValuesError:
            self.adopt()  # why that follows is asked of the facts of the update
            raise
        if merged is None:
            return None
        moved = self._rewritten.schema.mentioning(self._held, merged.losers)
        self._held.discard(moved)
        return self._delta.renew(delta, moved, self._held.add(self._rewritten.normal(moved)))

    def adopt(self) -> None:
        update, own = self._update, self._equality.stratum.stratum
        materialised = update.state.materialised
        update.overdeleted.add(materialised.at(own) - self._held)
        update.added.add(self._held - materialised)
        old, new = self._equality.representatives.union_find, self._rewritten.union_find
        touched = np.unique(np.concatenate([*old.others(), *new.others()]))
        self._equality.rename_to(touched, new)
        update.release(self._held, self._delta.held)


class Proofs:
    """What is proved of the new materialisation: (γ, M), of the facts that are represented by checked ones.

    Invariants: M (`_proved`) is in normal form for γ, and π(G) is checked for every G in M; `_counts[F]` is the number of facts G in M with π(G) = F;
    a checked fact is `complete` iff M holds γ(G) for all G that it represents, which are as many as the products of the numbers of different terms
    γ(d), for d with π(d) = c, over the terms c in it. `_delayed` are proved facts whose π(G) is not checked.
    """

    def __init__(self, equality: EqualityUpdate, below: View, blocked: View) -> None:
        self._equality, self._update = equality, equality.update
        self._representatives = equality.representatives
        self._below, self._blocked = below, blocked
        schema, update = self._representatives.schema, self._update
        self._schema, self._pi = schema, self._representatives.rewritten
        self._gamma = RewrittenFacts(schema, UnionFind(schema.dictionary))
        self.rules = NormalRules(equality.stratum.written, self._gamma.union_find.normal)
        self.checked, self.complete = update.new("C"), update.new("complete")
        self._proved, self._found = update.new("P"), update.new("NP")
        self._delta = _Delta(update.new("ΔP"))
        self.facts: View = self._proved | below
        self._counts: dict[str, npt.NDArray[np.int32]] = {}
        # How many merges there were among the names of a term.
        self._merged = np.zeros(len(schema.dictionary), np.int32)
        self._delayed: dict[str, list[tuple[Rows, Rows]]] = {}

    def begin(self, front: View) -> View:
        """Line 40: proves facts that are given, or were proved before they were asked for, and are represented by new checked ones."""
        self._found.add(self._representatives.given_of(self._update, front))
        axioms = self._equality.stratum.nonrecursive_written
        asked = [name for name in front.names if name in axioms.heads]
        if asked:
            names = all_names(Listed(self._schema.tables, {n: [front.rows(n)] for n in asked}), self._pi)
            self._found.add(axioms.derivable(names, self._below, self._blocked))
        for name, waiting in self._delayed.items():
            kept = []
            for rows, homes in waiting:
                asked_for = self.checked.mask(name, homes)
                self._found.add(Listed(self._schema.tables, {name: [rows[asked_for]]}))
                if not asked_for.all():
                    kept.append((rows[~asked_for], homes[~asked_for]))
            waiting[:] = kept
        return self._prove()

    def add(self, *facts: View | Bag) -> View:
        """Proves facts, or delays them; the new ones."""
        for some in facts:
            self._found.add(some)
        return self._prove()

    def _prove(self) -> WorkingSet:
        """Algorithm 7, for all that was found."""
        new: dict[str, list[Rows]] = {}
        for name in list(self._found.names):
            derived = self._found.rows(name)
            normal = self._gamma.normal_rows(name, derived)
            rows = normal[~self._proved.mask(name, normal)]
            if normal is not derived:  # several facts may have become one
                rows = np.unique(rows)
            homes = self._pi.normal_rows(name, rows)
            asked_for = self.checked.mask(name, homes)
            if not asked_for.all():
                self._delayed.setdefault(name, []).append((rows[~asked_for], homes[~asked_for]))
            new[name] = [rows[asked_for]]
            self._count(name, homes[asked_for], 1)
        self._found.clear()
        found = Listed(self._schema.tables, new)
        self._proved.add(found)
        self._complete(found)
        return self._delta.hold(found)

    def merge(self, delta: View) -> View | None:
        """Algorithm 6: makes terms equal of which Δ says so; Δ in normal form."""
        merged = self._gamma.merge(delta)
        if merged is None:
            return None
        np.add.at(self._merged, self._pi.union_find.of(merged.losers), 1)
        moved = self._schema.mentioning(self._proved, merged.losers)
        for name in list(moved.names):
            self._count(name, self._pi.normal_rows(name, moved.rows(name)), -1)
        self._proved.discard(moved)
        self._found.add(moved)
        delta = delta.listed()
        new = self._prove().listed()
        # With fewer different terms, fewer facts are needed for what they represent to be complete.
        self._complete(self._schema.mentioning(self._proved, self._gamma.union_find.of(merged.winners)))
        return self._delta.renew(delta, moved, new)

    def _count(self, name: str, homes: Rows, amount: int) -> None:
        self._counts[name] = grown(self._counts.get(name, NO_ROWS), self._schema.tables[name].count)
        np.add.at(self._counts[name], homes, amount)

    def _complete(self, proved: View) -> None:
        """Finds out whether what represents some proved facts is complete."""
        found: dict[str, list[Rows]] = {}
        for name in list(proved.names):
            homes = self._pi.normal_rows(name, proved.rows(name))
            needed = np.ones(len(homes), np.int64)
            if self._pi.union_find and name in self._schema.columns:
                batch = self._schema.tables[name].take(homes)
                for column in self._schema.columns[name]:
                    terms = batch[column]
                    needed *= self._pi.union_find.sizes(terms) - self._merged_of(terms)
            found[name] = [homes[self._counts[name][homes] == needed]]
        self.complete.add(Listed(self._schema.tables, found))

    def _merged_of(self, terms: Numbers) -> Numbers:
        merged = np.zeros(len(terms), np.int64)
        inside = terms < len(self._merged)
        merged[inside] = self._merged[terms[inside]]
        return merged

    def disproved(self) -> Listed:
        found: dict[str, list[Rows]] = {}
        for name in list(self.checked.names):
            rows = self.checked.rows(name)
            counts = self._counts.get(name)
            found[name] = [rows if counts is None else rows[counts[rows] == 0]]
        return Listed(self._schema.tables, found)

    def adopt(self) -> None:
        """Algorithm 2: I and π become what was proved, where it was doubtful."""
        update = self._update
        doubtful = update.overdeleted.at(self._equality.stratum.stratum).listed()
        terms = self._schema.reflexive_terms(doubtful)
        names, _ = self._pi.union_find.names(terms[self._pi.union_find.sizes(terms) > 1])
        update.overdeleted.discard((doubtful & self._proved).listed())
        self._equality.rename_to(names, self._gamma.union_find)
        new = (update.state.materialised - update.overdeleted) | update.added
        update.added.add((self._pi.normal(self._proved) - new).listed())
        update.release(self.checked, self.complete, self._proved, self._found, self._delta.held)
