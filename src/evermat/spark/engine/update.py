"""One update of a state on a cluster. Before `commit` it only adds files: nothing else changes that outlives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evermat.engine import BaseUpdate, Run
from evermat.spark.engine.fact_sets import CountedFacts, Counting, FactSet, Positive, View
from evermat.spark.engine.rules import Bag
from evermat.spark.engine.state import State, StratumRules


class UpdateCounter:
    """A derivation counter during an update: the amounts of the state, and those of the update, which can be rolled back."""

    def __init__(self, counted: CountedFacts) -> None:
        self._counted = counted
        self.changes = CountedFacts(counted.name, counted.context)

    @property
    def positive(self) -> View:
        return Positive(self._counted.context, self._counted, self.changes)

    def add(self, facts: View | Bag) -> Counting:
        return Counting(self.changes, facts, 1)

    def subtract(self, facts: View | Bag) -> Counting:
        return Counting(self.changes, facts, -1)

    def commit(self) -> None:
        for name, files in self.changes.files.items():
            self._counted.append(name, files)


class _Growing:
    """A state with the facts that an update has added, for limits on facts."""

    def __init__(self, update: Update) -> None:
        self._update = update
        self.strata: Sequence[StratumRules] = update.state.strata

    @property
    def row_count(self) -> int:
        return self._update.state.row_count + self._update.added.size


class Update(BaseUpdate[State, StratumRules, FactSet, FactSet]):
    """One update on a cluster: its sets are files, which are deleted with it."""

    deleted: FactSet
    inserted: FactSet
    given_deleted: FactSet
    given_inserted: FactSet
    before: View
    explicit_before: View

    def __init__(self, state: State, run: Run, deleted: FactSet, inserted: FactSet) -> None:
        super().__init__(state, run)
        self.overdeleted, self.added = self.new("D"), self.new("A")
        self.deleted, self.inserted = self.new("E-"), self.new("E+")
        for counter in (state.nonrecursive_counter, state.recursive_counter):
            counter.compact()
        self.nonrecursive_counter = UpdateCounter(state.nonrecursive_counter)
        self.recursive_counter = UpdateCounter(state.recursive_counter)
        self.deleted.replace((deleted & state.given) - inserted)
        self.inserted.replace(inserted - state.given)
        self.given_deleted, self.given_inserted = self.deleted.copy(), self.inserted.copy()
        self.axioms: View = state.explicit - self.deleted
        self.doubtful = self.nothing = self.new("nothing")
        self.after: View = (state.materialised - self.overdeleted) | self.added  # I as it will be

    def new(self, name: str) -> FactSet:
        return FactSet(name, self.state.context)

    def release(self, *sets: FactSet) -> None:
        for done in sets:
            done.clear()

    def _savepoint(self) -> Callable[[], None]:
        counters = (self.nonrecursive_counter, self.recursive_counter)
        before = [dict(counter.changes.files) for counter in counters]

        def undo() -> None:
            for counter, files in zip(counters, before, strict=True):
                counter.changes.files = files

        return undo

    def strata(self) -> Iterator[StratumRules]:
        return self.run.strata(_Growing(self))

    def equality(self, stratum: StratumRules) -> Any:
        """A stratum with equality in this update: proofs are not searched on a cluster, so it is not all of the algebra's `EqualityUpdate`."""
        from evermat.spark.engine.equality import EqualityUpdate  # noqa: PLC0415  (it is made of updates)

        return EqualityUpdate(self, stratum)

    def commit(self, lost: FactSet, gained: FactSet, write: Callable[[], None] = lambda: None) -> None:
        """Changes I, E and counters atomically by the `result`; `write` makes it durable, as the last step that can fail."""
        changes = self.changes(lost, gained)
        changed = [(facts, facts.copy()) for facts, _, _ in changes]
        for (_, copy), (_, deleted, inserted) in zip(changed, changes, strict=True):
            copy.change(deleted, inserted)
        write()
        for facts, copy in changed:
            facts.take_over(copy)
        self.nonrecursive_counter.commit()
        self.recursive_counter.commit()
        self.journal.entries.clear()

    def __exit__(self, *error: object) -> None:
        self.roll_back()
        self.run.leave()
