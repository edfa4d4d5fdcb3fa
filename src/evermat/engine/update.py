"""One update of a state, for any engine: limits, attempts, rollback, and journal entries that a later update can undo."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from evermat.algebra import OwnView, TooManyInstancesError
from evermat.engine.journal import Doubtful, Entry, Journal
from evermat.engine.run import Run
from evermat.engine.state import StateT, StratumRulesT
from evermat.language import Stratum


class _WorkingSet(Protocol):
    def __sub__(self, other: OwnView, /) -> Any: ...
    def drop(self, names: Iterable[str], /) -> None: ...


SetT = TypeVar("SetT", bound=_WorkingSet)
ListedT = TypeVar("ListedT")


class BaseUpdate(ABC, Generic[StateT, StratumRulesT, SetT, ListedT]):
    """One update: E⁻ and E⁺ without facts that change nothing, the sets D and A, and working sets; see `algebra.Update`.

    Invariant: before `commit` nothing that outlives the update has changed, except for changes that the journal can undo.

    Attributes:
        given_deleted: Deleted facts as asserted. Where equal terms are represented by one, E⁻ and E⁺ become changes of normal forms as
            soon as the equalities are known.
        renewed: Strata whose rules mention terms that have other representatives now.
    """

    overdeleted: SetT
    added: SetT
    deleted: OwnView
    inserted: OwnView
    given_deleted: OwnView
    given_inserted: OwnView
    before: OwnView
    explicit_before: OwnView

    def __init__(self, state: StateT, run: Run) -> None:
        self.state, self.run = state, run
        state.jobs.run = run
        self.journal = Journal()
        self.figures: dict[str, int] = dict.fromkeys(("overdeleted", "rederived", "checked", "proved"), 0)
        self.before, self.explicit_before = state.materialised, state.explicit
        self.renewed: set[Stratum] = set()
        if state.representatives is not None:
            state.representatives.union_find.remember()

    # ── Work on strata ───────────────────────────────────────────────────────────────────────────────────────────

    def strata(self) -> Iterator[StratumRulesT]:
        return self.run.strata(self.state)

    def next_round(self) -> None:
        self.run.next_round()

    def check_facts(self) -> None:
        self.run.check_facts()

    @property
    def outgrown(self) -> bool:
        """False: an update ends where it began."""
        return False

    def applying(self, phase: str) -> AbstractContextManager[None]:
        return self.run.applying(phase)

    def meet(self, heads: OwnView) -> None:
        """Does nothing: no algorithm asks which derived facts of an update held before."""

    def settle_equality(self) -> None:
        """Brings changes and rules into normal form once the equalities are known, before higher strata are evaluated."""
        representatives = self.state.representatives
        if representatives is not None:
            representatives.settle_update(self)
            if representatives.union_find.touched:
                self.renewed |= {rules.stratum for rules in self.state.strata if rules.refresh()}

    @contextmanager
    def attempt(self, stratum: Stratum, most: int) -> Iterator[None]:
        """Undoes the block's work on a stratum if it considers more instances; see the algebra."""
        undo, entries, figures = self._savepoint(), len(self.journal.entries), dict(self.figures)
        try:
            with self.run.limited(most):
                yield
        except TooManyInstancesError:
            self.overdeleted.drop(stratum.relations)
            self.added.drop(stratum.relations)
            self.journal.undo(entries)
            self.state.refresh_rules()
            undo()
            self.figures = figures
            raise

    @abstractmethod
    def _savepoint(self) -> Callable[[], None]:
        """Returns a function that restores counters and working sets, except for D and A, as they are now."""

    # ── The journal ──────────────────────────────────────────────────────────────────────────────────────────────

    def note_place(self) -> int:
        return len(self.journal.entries)

    def notes_since(self, place: int) -> Sequence[Entry]:
        return self.journal.entries[place:]

    def take_back(self, notes: Sequence[Entry]) -> None:
        self.journal.take_back(notes)

    def doubt_counters(self, stratum: Stratum) -> None:
        import numpy as np  # noqa: PLC0415  (limits and runs are loaded without it)

        self.journal.note(Doubtful(self.state, stratum), np.empty(0, np.int32), None)

    # ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def result(self) -> tuple[ListedT, ListedT]:
        """Facts that a commit deletes from I and inserts into it."""
        return (self.overdeleted - self.added).listed(), (self.added - self.state.materialised).listed()

    def changes(self, lost: ListedT, gained: ListedT) -> list[tuple[Any, OwnView, OwnView]]:
        """The sets that a commit of the `result` changes, with deleted and inserted facts: I := (I ∖ D) ∪ A, E := (E ∖ E⁻) ∪ E⁺."""
        state = self.state
        changes = [(state.materialised, lost, gained), (state.given, self.given_deleted, self.given_inserted)]
        if state.explicit is not state.given:
            changes.append((state.explicit, self.deleted, self.inserted))
        return changes

    def roll_back(self) -> None:
        """Undoes all uncommitted changes."""
        if self.journal.entries:
            self.journal.undo()
            self.state.refresh_rules()
            if self.state.representatives is not None:
                self.state.representatives.union_find.remember()

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
