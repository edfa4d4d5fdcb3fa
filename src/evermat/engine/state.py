"""The state of a program, for any engine: valid counters, the work of strata, and rules in normal form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

from evermat.algebra import Counters, OwnView, View
from evermat.engine.rules import BaseStratumRules
from evermat.engine.run import Jobs, Run
from evermat.language import Program, Stratum


class _Counter(Protocol):
    def drop(self, name: str, /) -> None: ...


class _Representatives(Protocol):
    @property
    def union_find(self) -> Any: ...
    def count(self, facts: OwnView, name: str, /) -> int: ...
    def settle_update(self, update: Any, /) -> None: ...


FactsT = TypeVar("FactsT", bound=View)
CounterT = TypeVar("CounterT", bound=_Counter)
StratumRulesT = TypeVar("StratumRulesT", bound=BaseStratumRules[Any])
RepresentativesT = TypeVar("RepresentativesT", bound=_Representatives)


class BaseState(ABC, Generic[FactsT, CounterT, StratumRulesT, RepresentativesT]):
    """All facts of a program; see `algebra.State`.

    Invariant: `counters` says for every stratum which derivation counters equal those of a materialisation from scratch; an algorithm that
    does not maintain a counter makes it invalid.

    Attributes:
        explicit: E, in normal form where equal terms are represented by one.
        given: The explicit facts as asserted, not in normal form; the same set as E where every term represents itself.
        materialised: I.
        representatives: π and what depends on it; None where every term represents itself.
        jobs: The current run.
    """

    explicit: FactsT
    given: FactsT
    materialised: FactsT
    dictionary: Any
    nonrecursive_counter: CounterT
    recursive_counter: CounterT
    strata: Sequence[StratumRulesT]
    representatives: RepresentativesT | None

    def __init__(self, program: Program, run: Run) -> None:
        self.program, self.jobs = program, Jobs(run)
        self.counters: dict[Stratum, Counters] = dict.fromkeys(program.strata, Counters.NONE)
        self._work: dict[Stratum, int] = {}

    def share_counters(self, kept: Self) -> None:
        """Keeps the counters valid that were valid before a change of rules, for strata that are the same."""
        self._work = dict(kept._work)
        valid = {stratum.signature: counters for stratum, counters in kept.counters.items()}
        for stratum in self.counters:
            self.counters[stratum] = valid.get(stratum.signature, Counters.NONE)

    def record_counters(self, stratum: Stratum, valid: Counters) -> None:
        self.counters[stratum] = valid

    def valid_counters(self, stratum: Stratum) -> Counters:
        return self.counters[stratum]

    def reset_counters(self, stratum: Stratum) -> None:
        self.counters[stratum] = Counters.NONE
        for counter in (self.nonrecursive_counter, self.recursive_counter):
            for name in stratum.relations:
                counter.drop(name)

    def record_work(self, stratum: Stratum, instances: int) -> None:
        self._work[stratum] = instances

    def work(self, stratum: Stratum) -> int:
        """Estimated number of rule instances that derive a stratum from scratch; at least one for each fact."""
        return max(self._work.get(stratum, 0), sum(map(self.materialised.about, stratum.relations)))

    def refresh_rules(self) -> None:
        """Brings all rules into normal form, if terms have other representatives than before."""
        if self.representatives is not None:
            for stratum in self.strata:
                stratum.refresh()

    def count_facts_of(self, name: str) -> int:
        """Number of facts of a relation, expanded to all names."""
        if self.representatives is None:
            return self.materialised.count(name)
        return self.representatives.count(self.materialised, name)

    @property
    @abstractmethod
    def row_count(self) -> int:
        """Number of facts, as limits count them."""


StateT = TypeVar("StateT", bound=BaseState[Any, Any, Any, Any])


class _Readable(Protocol):
    """What readers need of a state, or of a version of it."""

    @property
    def dictionary(self) -> Any: ...
    @property
    def given(self) -> Any: ...
    @property
    def materialised(self) -> Any: ...
    @property
    def representatives(self) -> Any: ...
    def count_facts_of(self, name: str, /) -> int: ...


ReadableT = TypeVar("ReadableT", bound=_Readable)


class BaseSnapshot(Generic[ReadableT]):
    """The facts of a state, for readers."""

    def __init__(self, state: ReadableT) -> None:
        self._state, self._facts = state, state.materialised

    @property
    def dictionary(self) -> Any:
        return self._state.dictionary

    @property
    def union_find(self) -> Any:
        names = self._state.representatives
        return None if names is None else names.union_find

    def count(self, name: str, *, expanded: bool = True) -> int:
        return self._state.count_facts_of(name) if expanded else self._facts.count(name)

    def count_explicit(self, name: str) -> int:
        return int(self._state.given.count(name))
