"""The facts of a stratum with equality on a cluster, while terms become equal: M of B/F≈ where everything counts as checked.

Proofs are not searched here: B/F≈ checks a few facts at a time, and every step would be a job. So an update recomputes such a stratum.
"""

from __future__ import annotations

from evermat.columns import UnionFind
from evermat.engine import DifferentValuesError, NormalRules
from evermat.spark.engine.equality_state import Representatives
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.rules import Bag, Rules
from evermat.spark.engine.state import State, StratumRules
from evermat.spark.engine.update import Update


class Known:
    """M, a part of the facts that rules may read, under a renaming."""

    def __init__(
        self,
        representatives: Representatives,
        union_find: UnionFind,
        held: FactSet,
        facts: View,
        rules: NormalRules[Rules],
        stratum: StratumRules,
    ) -> None:
        self._representatives, self._union_find, self._held = representatives, union_find, held
        self._own = stratum.stratum
        self.facts, self.rules = facts, rules

    def add(self, *facts: View | Bag) -> FactSet:
        new = FactSet("Δ", self._held.context)
        for found in map(self._held.add, facts):
            for name in found.names:
                new.append(name, found.only_added(name))
        return new

    def merge(self, delta: View) -> View | None:
        """Merges terms by the equalities in Δ; returns Δ in normal form, with the new facts of M, or None if no term changes."""
        pairs = self._representatives.merge(delta, self._union_find)
        if pairs is None:
            return None
        # A rewritten fact is never derived again: neither facts nor rules mention its old terms from now on.
        moved, new = self._representatives.rewrite(self._held, self._own.relations, pairs)
        return ((delta - moved) | new).listed()


class Materialised(Known):
    """I during a materialisation from scratch."""

    def __init__(self, state: State, stratum: StratumRules) -> None:
        assert state.representatives is not None
        known, held = state.representatives, state.materialised
        super().__init__(known, known.union_find, held, held, stratum.everything, stratum)
        self._state = state

    def finish(self) -> None:
        self._representatives.settle(self._state)


class Again(Known):
    """A materialisation of a stratum from scratch, under a renaming of its own."""

    def __init__(self, update: Update, stratum: StratumRules, below: View) -> None:
        representatives = update.state.representatives
        assert representatives is not None
        union_find, held = representatives.union_find.like(), update.new("again")
        rules = NormalRules(stratum.written, union_find.normal)
        super().__init__(representatives, union_find, held, held | below, rules, stratum)
        self._update, self._stratum = update, stratum

    def merge(self, delta: View) -> View | None:
        try:
            return super().merge(delta)
        except DifferentValuesError:
            self.adopt()  # why that follows is asked of the facts of the update
            raise

    def adopt(self) -> None:
        """Replaces the old materialisation and its renaming by the new ones."""
        update, materialised = self._update, self._update.state.materialised
        update.overdeleted.add(materialised.at(self._own) - self._held)
        update.added.add(self._held - materialised)
        self._representatives.rename_to(self._union_find, update.journal)
        self._stratum.everything.refresh()


class EqualityUpdate:
    """A stratum with equality in an update, which recomputes it."""

    def __init__(self, update: Update, stratum: StratumRules) -> None:
        self._update, self._stratum = update, stratum

    def again(self, below: View) -> Again:
        return Again(self._update, self._stratum, below)
