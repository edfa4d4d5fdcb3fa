"""Equality by representatives (*Combining rewriting and incremental materialisation maintenance for Datalog programs with equality*)."""

from __future__ import annotations

from typing import Protocol

from evermat.algebra.rules import Rules
from evermat.algebra.sets import OwnFacts, OwnView, View, WorkingSet


class NormalRules(Protocol):
    """Rules under a renaming of terms, which may change."""

    @property
    def rules(self) -> Rules:
        """The rules in normal form: their terms are representatives."""

    def refresh(self) -> set[int]:
        """Brings the rules into normal form again; returns the numbers of those that have changed."""


class Known(Protocol):
    """Facts that are known, M, in normal form for a renaming of terms, γ."""

    @property
    def facts(self) -> View:
        """M, and what rules may read besides: facts of lower strata."""

    @property
    def rules(self) -> NormalRules:
        """Γ: the rules of the stratum, under γ."""

    def add(self, *facts: OwnFacts) -> View:
        """Adds facts to M and returns those that were new."""

    def merge(self, delta: OwnView) -> View | None:
        """Makes terms equal in γ that some facts of M equate, and brings M into normal form again.

        Returns those facts in normal form, with whatever else is new in M; None if all these terms were equal already.
        """


class Again(Known, Protocol):
    """A materialisation of a stratum from scratch, under a renaming of its own."""

    def adopt(self) -> None:
        """Puts the difference to I into D and A; π becomes γ."""


class Grown(Known, Protocol):
    """The materialisation of a stratum, while facts are added; γ is π."""

    def finish(self) -> None:
        """Marks the end: no facts are added any more. In a run from scratch the equalities are known then: strata above may follow."""


class Proofs(Known, Protocol):
    """The proved part of the new materialisation; γ begins as the identity. A derived fact is in M if its representative was checked."""

    @property
    def checked(self) -> WorkingSet:
        """C: facts of I whose provability is in question."""

    @property
    def complete(self) -> WorkingSet:
        """Checked facts of which everything that they represent is proved."""

    def begin(self, front: OwnView) -> View:
        """Proves what needs no proof by recursive rules of all that new checked facts represent; returns what is new in M."""

    def disproved(self) -> View:
        """Checked facts of which nothing that they represent is proved."""

    def adopt(self) -> None:
        """Algorithm 2: D keeps what does not hold any more, A takes what is new, and π becomes γ where it was doubtful."""


class EqualityUpdate(Protocol):
    """A stratum with equality in an update."""

    @property
    def rules(self) -> NormalRules:
        """π(Π)."""

    @property
    def possible(self) -> NormalRules:
        """π(Π) with all instances over representatives that stand for some over names: a rule may ask whether two names differ."""

    def normal(self, facts: OwnView) -> View:
        """Facts in normal form for π."""

    def names(self, facts: OwnView) -> View:
        """The facts c ≈ c for the terms c in some facts that have other names."""

    def depending_on_names(self, unproved: OwnView, live: OwnView) -> View:
        """Of live facts those that mention a term c with other names for which c ≈ c is among the unproved."""

    def proofs(self, below: OwnView, blocked: OwnView) -> Proofs:
        """The search for proofs; they may use facts of lower strata, and must not meet others."""

    def grown(self) -> Grown:
        """The new materialisation, for insertion."""

    def again(self, below: OwnView) -> Again:
        """A materialisation from scratch over facts of lower strata."""
