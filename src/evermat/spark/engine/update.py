"""One update of a state on a cluster. Nothing that outlives it changes before `commit`: files are only ever added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from evermat.algebra import TooManyInstancesError
from evermat.engine.journal import Journal, Journaled
from evermat.engine.run import Run
from evermat.language import Stratum
from evermat.spark.engine.fact_sets import CountedFacts, Counting, FactSet, Positive, View
from evermat.spark.engine.rules import Bag
from evermat.spark.engine.state import State, StratumRules


class UpdateCounter:
    """A derivation counter during an update: the amounts of the state, and those of the update, which can be dropped."""

    def __init__(self, counted: CountedFacts) -> None:
        self._counted = counted
        self.changes = CountedFacts(counted.name, counted.workshop)

    @property
    def positive(self) -> View:
        """Facts that are counted at least once."""
        return Positive(self._counted.workshop, self._counted, self.changes)

    def add(self, facts: View | Bag) -> Counting:
        """Counts facts once more, when they are added to a set."""
        return Counting(self.changes, facts, 1)

    def subtract(self, facts: View | Bag) -> Counting:
        """Counts facts once less, when they are added to a set."""
        return Counting(self.changes, facts, -1)

    def commit(self) -> None:
        """The changes become the state's."""
        for name, files in self.changes.files.items():
            self._counted.append(name, files)


class _Growing:
    """A state as it grows by an update, for whoever counts facts."""

    def __init__(self, update: Update) -> None:
        self._update = update
        self.strata: Sequence[StratumRules] = update.state.strata

    @property
    def row_count(self) -> int:
        """How many facts there are with those that the update has added."""
        return self._update.state.row_count + self._update.added.size


class Update(Journaled):
    """One update: E⁻ and E⁺ cleaned of what changes nothing, the sets D and A, and whatever else an algorithm needs."""

    state: State

    def __init__(self, state: State, run: Run, deleted: FactSet, inserted: FactSet) -> None:
        self.state, self.run = state, run
        state.jobs.run = run
        self.overdeleted, self.added = self.new("D"), self.new("A")
        self.deleted, self.inserted = self.new("E-"), self.new("E+")
        for counter in (state.nonrecursive_counter, state.recursive_counter):
            counter.put_together()
        self.nonrecursive_counter = UpdateCounter(state.nonrecursive_counter)
        self.recursive_counter = UpdateCounter(state.recursive_counter)
        self.journal = Journal()  # of the graphs of closures, and of π
        self.figures: dict[str, int] = dict.fromkeys(("overdeleted", "rederived", "checked", "proved"), 0)
        self.deleted.replace((deleted & state.given) - inserted)
        self.inserted.replace(inserted - state.given)
        # What changes in the facts as they were given. Where equal terms are represented by one, E⁻ and E⁺ become changes of normal
        # forms as soon as the equalities are known.
        self.given_deleted, self.given_inserted = self.deleted.copy(), self.inserted.copy()
        self.before: View = state.materialised
        self.explicit_before: View = state.explicit
        self.axioms: View = state.explicit - self.deleted
        self.doubtful = self.nothing = self.new("nothing")
        self.renewed: set[Stratum] = set()  # strata whose rules mention terms that have other representatives now
        self.after: View = (state.materialised - self.overdeleted) | self.added  # I as it will be
        if state.representatives is not None:
            state.representatives.renaming.remember()

    def new(self, name: str) -> FactSet:
        """A working set, empty."""
        return FactSet(name, self.state.workshop)

    def release(self, *sets: FactSet) -> None:
        """Working sets that are needed no more."""
        for done in sets:
            done.clear()

    @contextmanager
    def attempt(self, stratum: Stratum, most: int) -> Iterator[None]:
        """Work on a stratum that is undone when it considers more instances; see the algebra."""
        counters = (self.nonrecursive_counter, self.recursive_counter)
        before = [dict(counter.changes.files) for counter in counters]
        entries, figures = len(self.journal.entries), dict(self.figures)
        try:
            with self.run.limited(most):
                yield
        except TooManyInstancesError:
            self.overdeleted.drop(stratum.relations)
            self.added.drop(stratum.relations)
            for counter, files in zip(counters, before, strict=True):
                counter.changes.files = files
            self.journal.undo(entries)
            self.figures = figures
            raise

    def strata(self) -> Iterator[StratumRules]:
        """The strata in order; takes note of each."""
        return self.run.strata(_Growing(self))

    def equality(self, stratum: StratumRules) -> Any:
        """A stratum with equality in this update."""
        from evermat.spark.engine.equality import EqualityUpdate  # noqa: PLC0415  (it is made of updates)

        return EqualityUpdate(self, stratum)

    def settle_equality(self) -> None:
        """The equalities are known: strata above may follow."""
        if self.state.representatives is not None:
            self.state.representatives.settle_update(self)

    def next_round(self) -> None:
        """A round begins; raises `LimitError` if a limit is reached."""
        self.run.next_round()

    def check_facts(self) -> None:
        """Raises `LimitError` if there are more facts than may be."""
        self.run.check_facts()

    @property
    def outgrown(self) -> bool:
        """An update ends where it began."""
        return False

    def result(self) -> tuple[FactSet, FactSet]:
        """The facts that I loses and gains when the update is committed."""
        return (self.overdeleted - self.added).listed(), (self.added - self.state.materialised).listed()

    def commit(self, lost: FactSet, gained: FactSet, write: Callable[[], None] = lambda: None) -> None:
        """I := (I ∖ D) ∪ A, E := (E ∖ E⁻) ∪ E⁺, given the `result`. Either all of it is done, or the state is as it was.

        `write` makes it durable, as the last thing that can fail.
        """
        state = self.state
        changes: list[tuple[FactSet, View, View]] = [(state.materialised, lost, gained)]
        changes.append((state.given, self.given_deleted, self.given_inserted))
        if state.explicit is not state.given:
            changes.append((state.explicit, self.deleted, self.inserted))
        changed = [(facts, facts.copy()) for facts, _, _ in changes]
        for (_, copy), (_, gone, come) in zip(changed, changes, strict=True):
            copy.change(gone, come)
        write()
        for facts, copy in changed:
            facts.take_over(copy)
        self.nonrecursive_counter.commit()
        self.recursive_counter.commit()
        self.journal.entries.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was not committed is forgotten; its files go with it."""
        if self.journal.entries:
            self.journal.undo()
            self.state.refresh_rules()
        self.run.leave()
