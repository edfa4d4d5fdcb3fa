"""Derivation counters, and which of them are valid."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from evermat.algebra.sets import OwnFacts, View


class Counters(IntEnum):
    """Which derivation counters of a stratum are kept and valid.

    `MODULAR`: C_nr, and C_r of the recursive rules that are in no closure. `BOTH`: C_nr, and C_r of all recursive rules; where there
    are no closures the two are the same, and it is called `BOTH`.
    """

    NONE = 0
    NONRECURSIVE = 1
    MODULAR = 2
    BOTH = 3

    @property
    def recursive(self) -> bool:
        """Whether recursive derivations are counted, of whatever rules."""
        return self > Counters.NONRECURSIVE

    def include(self, needed: Counters) -> bool:
        """Whether an algorithm that needs some counters has them here."""
        return self == needed or (self > needed and not needed.recursive)

    def common(self, other: Counters) -> Counters:
        """The counters that are valid where either may be."""
        return self if self == other else min(self, other, Counters.NONRECURSIVE)

    def by_modules(self) -> Counters:
        """The counters kept of a stratum whose recursive rules are split into modules, if these are requested."""
        return Counters.MODULAR if self.recursive else self


class Counter(Protocol):
    """The number of derivations of each fact; never overflows silently."""

    def add(self, facts: OwnFacts) -> OwnFacts:
        """Returns the facts touched, for `Set.add`, which must read them: every occurrence (each fact of a view once) is counted by then.

        Facts that are in the set already may be left out.
        """


class UpdateCounter(Counter, Protocol):
    """A counter during an update: journaled, so that it can be rolled back."""

    def subtract(self, facts: OwnFacts) -> OwnFacts:
        """As `add`, for occurrences that are lost."""

    @property
    def positive(self) -> View:
        """Facts counted at least once; only used intersected with something small."""
