"""One update of a state, for any engine: limits, attempts, rollback, and what of it a later update can take back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from evermat.algebra import OwnView, TooManyInstancesError
from evermat.engine.journal import Doubtful, Entry, Journal
from evermat.engine.run import Run
from evermat.engine.state import BaseState, StratumRulesT
from evermat.language import Stratum

StateT = TypeVar("StateT", bound=BaseState[Any, Any, Any, Any])


class _WorkingSet(Protocol):
    def __sub__(self, other: OwnView, /) -> Any: ...
    def drop(self, names: Iterable[str], /) -> None: ...


SetT = TypeVar("SetT", bound=_WorkingSet)
ListedT = TypeVar("ListedT")


class BaseUpdate(ABC, Generic[StateT, StratumRulesT, SetT, ListedT]):
    """One update: E⁻ and E⁺ cleaned of what changes nothing, the sets D and A, and working sets; see `algebra.Update`.

    Invariant: before `commit` nothing that outlives the update has changed, but for what the journal can undo.

    Attributes:
        given_deleted: What changes in the facts as they were given. Where equal terms are represented by one, E⁻ and E⁺ become changes of
            normal forms as soon as the equalities are known.
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
        """The strata in order; records which one is at work."""
        return self.run.strata(self.state)

    def next_round(self) -> None:
        """Begins a round; raises `LimitError` if a limit is reached."""
        self.run.next_round()

    def check_facts(self) -> None:
        """Raises `LimitError` if there are more facts than allowed."""
        self.run.check_facts()

    @property
    def outgrown(self) -> bool:
        """False: an update ends where it began."""
        return False

    def applying(self, phase: str) -> AbstractContextManager[None]:
        """Counts instances found meanwhile as applications of a phase."""
        return self.run.applying(phase)

    def meet(self, heads: OwnView) -> None:
        """Does nothing: what an update derives that holds already is not asked for."""

    def settle_equality(self) -> None:
        """Brings changes and rules into normal form, now that the equalities are known: strata above may follow."""
        representatives = self.state.representatives
        if representatives is not None:
            representatives.settle_update(self)
            if representatives.union_find.touched:
                self.renewed |= {rules.stratum for rules in self.state.strata if rules.refresh()}

    @contextmanager
    def attempt(self, stratum: Stratum, most: int) -> Iterator[None]:
        """Work on a stratum that is undone when it considers more instances; see the algebra."""
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
        """Brings counters and working sets, but for D and A, back to what they are now."""

    # ── The journal ──────────────────────────────────────────────────────────────────────────────────────────────

    def note_place(self) -> int:
        """A position in the journal."""
        return len(self.journal.entries)

    def notes_since(self, place: int) -> Sequence[Entry]:
        """The entries of the journal from a position on."""
        return self.journal.entries[place:]

    def take_back(self, notes: Sequence[Entry]) -> None:
        """Undoes what an earlier update has noted last."""
        self.journal.take_back(notes)

    def doubt_counters(self, stratum: Stratum) -> None:
        """Marks the counters of a stratum as not valid if the update is undone."""
        import numpy as np  # noqa: PLC0415  (limits and runs are loaded without it)

        self.journal.note(Doubtful(self.state, stratum), np.empty(0, np.int32), None)

    # ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def result(self) -> tuple[ListedT, ListedT]:
        """The facts that I loses and gains when the update is committed."""
        return (self.overdeleted - self.added).listed(), (self.added - self.state.materialised).listed()

    def changes(self, lost: ListedT, gained: ListedT) -> list[tuple[Any, OwnView, OwnView]]:
        """The sets that a commit changes, with what they lose and gain, given the `result`: I := (I ∖ D) ∪ A, E := (E ∖ E⁻) ∪ E⁺."""
        state = self.state
        changes = [(state.materialised, lost, gained), (state.given, self.given_deleted, self.given_inserted)]
        if state.explicit is not state.given:
            changes.append((state.explicit, self.deleted, self.inserted))
        return changes

    def roll_back(self) -> None:
        """Undoes what was not committed."""
        if self.journal.entries:
            self.journal.undo()
            self.state.refresh_rules()

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
