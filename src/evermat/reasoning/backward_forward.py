"""B/F, backward/forward: exact deletion, set at a time.

Before a fact is deleted it is *checked*: backward chaining looks at the facts that could derive it, forward chaining proves what follows from
facts that surely hold. Only facts without a proof are deleted, so nothing is ever put back. Keeps no counters: that a fact
has a nonrecursive derivation is found by evaluating rules backwards.

The papers check fact by fact; here a frontier is checked at once. C are the checked facts, P those of them that are proved, Y facts that are proved but
were never asked for, X those whose supports have been looked up. Invariant: when a check ends, each of its goals is
proved, or every unproved fact of C is in X, and then no unproved goal has a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from evermat.algebra import ModuleUpdate, Rules, StratumRules, Update, View, WorkingSet
from evermat.language import Stratum
from evermat.reasoning.insertion import Views, insert

AddAxioms: TypeAlias = Callable[[WorkingSet, View], None]
"""Adds to a set those of some facts that need no recursive derivation."""


def maintain(update: Update, views: Views, stratum: StratumRules) -> None:
    """Processes one stratum: extends D and A by its facts."""
    nonrecursive = stratum.nonrecursive
    lost, gained = nonrecursive.regroup(views.old, views.new, views.gone, views.come)
    touched = update.new("ND")
    touched.add(update.deleted.at(stratum.stratum))
    touched.add(update.doubtful.at(stratum.stratum))
    touched.add(lost)
    with update.applying("deletions"):
        touched.add(nonrecursive.consequences(views.old, **views.gone))

    def add_axioms(found: WorkingSet, facts: View) -> None:
        """Adds those of some facts that are explicit, or that a surviving nonrecursive instance derives."""
        found.add(facts & update.axioms)
        found.add(nonrecursive.derivable((facts - found).listed(), views.surviving, views.blocked))

    delete_unproved(update, views, stratum, touched, add_axioms)
    found = update.new("NA")
    found.add(update.inserted.at(stratum.stratum))
    found.add(gained)
    found.add(nonrecursive.consequences(views.new, **views.come))
    insert(update, views, stratum, found)
    update.release(touched, found)


def delete_unproved(
    update: Update, views: Views, stratum: StratumRules, touched: WorkingSet, add_axioms: AddAxioms
) -> None:
    """DELETEUNPROVED: D grows by exactly the facts of the stratum that do not hold any more."""
    recursive = stratum.recursive
    with update.applying("deletions"):
        touched.add(recursive.consequences(views.old, **views.gone))
    delta = update.new("ΔD")
    checking = Checking(update, views, stratum.stratum, recursive, add_axioms)
    while goals := (touched - update.overdeleted - checking.proved).listed():
        update.next_round()
        checking.check(goals)
        if not delta.replace(goals - checking.proved):
            break
        with update.applying("deletions"):
            touched.add(recursive.consequences(views.surviving, views.blocked, delta_positive=delta))
        update.overdeleted.add(delta)
    update.figures["overdeleted"] += update.overdeleted.at(stratum.stratum).size
    checking.finish()
    update.release(delta)


class Checking:
    """The search for proofs in one stratum, by recursive rules and, where there are, by closures in their place."""

    def __init__(
        self,
        update: Update,
        views: Views,
        stratum: Stratum,
        recursive: Rules,
        add_axioms: AddAxioms,
        closures: Sequence[ModuleUpdate] = (),
    ) -> None:
        self._update, self._views, self._recursive, self._add_axioms = update, views, recursive, add_axioms
        self._closures = closures
        self.checked, self.proved = update.new("C"), update.new("P")
        self._delayed, self._expanded = update.new("Y"), update.new("X")
        self._proving = update.new("ΔP")
        # Proofs use proved facts of this stratum and whatever survives below it.
        self._known = self.proved | views.surviving.below(stratum)

    def check(self, goals: View) -> None:
        """CHECK: looks for proofs of the goals until all are proved or nothing is left to look at."""
        views = self._views
        front = self.checked.add(goals)
        while True:
            self._saturate(front)
            frontier = (self.checked - self.proved - self._expanded).listed()
            if not (goals - self.proved) or not frontier:
                return
            self._update.next_round()
            self._expanded.add(frontier)
            front = self.checked.add(self._recursive.supports(frontier, views.surviving, views.blocked))
            for closure in self._closures:
                front = front | self.checked.add(closure.supports(frontier))

    def _saturate(self, front: View) -> None:
        """SATURATE: proves what is an axiom or was proved before it was asked for, and what follows from it."""
        found = self._update.new("NP")
        found.add(front & self._delayed)
        self._add_axioms(found, front - found)
        self._add_connected(found)
        while self._proving.replace((found & self.checked) - self.proved):
            self._delayed.add(found - self.checked)
            self.proved.add(self._proving)
            with self._update.applying("forward"):
                found.add(self._recursive.consequences(self._known, self._views.blocked, delta_positive=self._proving))
            self._add_connected(found)
        self._delayed.add(found - self.checked)
        self._update.release(found)

    def _add_connected(self, found: WorkingSet) -> None:
        """Adds the facts in question that follow, by closures, from what is proved."""
        for closure in self._closures:
            found.add(closure.prove((self.checked - self.proved).listed(), self.proved | found))

    def finish(self) -> None:
        """Frees the sets; C, P, Y and X are relative to D, which is final for this stratum."""
        self._update.figures["checked"] += self.checked.size
        self._update.figures["proved"] += self.proved.size
        self._update.release(self.checked, self.proved, self._delayed, self._expanded, self._proving)
