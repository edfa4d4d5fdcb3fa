"""States and what works on them: runs from scratch, and updates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from evermat.algebra.counters import Counter, Counters, UpdateCounter
from evermat.algebra.equality import EqualityUpdate, Grown
from evermat.algebra.rules import StratumRules
from evermat.algebra.sets import OwnView, Set, WorkingSet
from evermat.language import Stratum


class TooManyInstancesError(Exception):
    """An attempt has considered more rule instances than it may."""


class State(Protocol):
    """What outlives a run: the explicit facts, the materialisation, the counters."""

    @property
    def explicit(self) -> Set:
        """E; in normal form where equal terms are represented by one."""

    @property
    def given(self) -> Set:
        """E under the names that it was given with."""

    @property
    def materialised(self) -> Set:
        """I."""

    @property
    def stored_by_schemes(self) -> Collection[str]:
        """Relations that storage schemes hold."""

    @property
    def sums_counts(self) -> bool:
        """Whether counters are sums of what updates have counted: those of an update cannot be taken out again."""

    def grown(self, stratum: Any) -> Grown:
        """I of a stratum with equality, and π, while it is materialised from scratch."""

    @property
    def checks_equality(self) -> bool:
        """Whether proofs can be looked for in a stratum with equality; else it is recomputed by every update."""

    @property
    def nonrecursive_counter(self) -> Counter:
        """C_nr: explicit facts and instances of nonrecursive rules."""

    @property
    def recursive_counter(self) -> Counter:
        """C_r: instances of recursive rules."""

    @property
    def strata(self) -> Sequence[StratumRules]:
        """The strata in the order of evaluation."""

    def record_counters(self, stratum: Stratum, valid: Counters) -> None:
        """Records which counters of a stratum are valid from now on."""

    def valid_counters(self, stratum: Stratum) -> Counters:
        """The counters of a stratum that are valid."""

    def reset_counters(self, stratum: Stratum) -> None:
        """Sets the counters of a stratum to 0; none is valid then."""

    def record_work(self, stratum: Stratum, instances: int) -> None:
        """Records the number of rule instances by which a stratum was derived from scratch."""

    def work(self, stratum: Stratum) -> int:
        """Estimated number of rule instances that derive a stratum from scratch."""


class Rounds(Protocol):
    """A run or an update, as far as both begin rounds."""

    @property
    def outgrown(self) -> bool:
        """Whether there are more facts or rounds than are allowed here: the rest is to be done elsewhere; an update never is."""

    def next_round(self) -> None:
        """Begins a round; raises `LimitError` if a limit is reached."""

    def check_facts(self) -> None:
        """Raises `LimitError` if there are more facts than allowed; for a last round that adds many."""


class Run(Rounds, Protocol):
    """One job over a state: limits, progress, statistics."""

    @property
    def derivations(self) -> int:
        """Number of rule instances considered."""

    def strata(self, state: Any) -> Iterator[StratumRules]:
        """The strata in order; records which one is at work."""


class Update(Rounds, Protocol):
    """One update: E⁻ and E⁺ cleaned of what changes nothing, D and A, and working sets. Left without commit, all is rolled back."""

    figures: dict[str, int]

    @property
    def state(self) -> State:
        """The state that is updated."""

    deleted: Any
    """E⁻: as given until the equalities are known, then what changes in normal forms. Where an update is done in steps, that of a step."""

    inserted: Any
    """E⁺, likewise."""

    @property
    def renewed(self) -> set[Stratum]:
        """Strata whose rules mention terms that have another representative than before."""

    before: OwnView
    """I as the update finds it; where it is done in steps, as this step finds it."""

    explicit_before: OwnView
    """E, likewise."""

    axioms: OwnView
    """What is explicit before, less what is deleted."""

    @property
    def nothing(self) -> WorkingSet:
        """No facts."""

    doubtful: OwnView
    """Facts that have lost derivations before the update began, in whatever way."""

    def meet(self, heads: OwnView) -> None:
        """Records facts that insertion has derived, whether they are new or not."""

    def note_place(self) -> int:
        """A position in the journal of changes to counters and graphs."""

    def notes_since(self, place: int) -> Any:
        """The entries of the journal from a position on, to be kept beyond the update."""

    def doubt_counters(self, stratum: Stratum) -> None:
        """Marks the counters of a stratum, counted in the midst of the update, as not valid if it is undone."""

    def take_back(self, notes: Any) -> None:
        """Undoes changes to counters and graphs that an earlier update made last."""

    def applying(self, phase: str) -> AbstractContextManager[None]:
        """Counts rule instances found forwards meanwhile as applications of a phase: `deletions`, `forward`; else `insertions`."""

    def equality(self, stratum: Any) -> EqualityUpdate:
        """A stratum with equality in this update."""

    def settle_equality(self) -> None:
        """Marks the equalities as known: strata above may follow."""

    @property
    def overdeleted(self) -> WorkingSet:
        """D."""

    @property
    def added(self) -> WorkingSet:
        """A."""

    @property
    def nonrecursive_counter(self) -> UpdateCounter:
        """C_nr."""

    @property
    def recursive_counter(self) -> UpdateCounter:
        """C_r."""

    def new(self, name: str) -> WorkingSet:
        """An empty working set."""

    def attempt(self, stratum: Stratum, most: int) -> AbstractContextManager[None]:
        """Work on a stratum that, as soon as more instances are considered, is undone and ends with `TooManyInstancesError`."""

    def release(self, *sets: Any) -> None:
        """Frees working sets that are not needed any more."""

    def strata(self) -> Iterator[StratumRules]:
        """The strata in order; records which one is at work."""
