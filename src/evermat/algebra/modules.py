"""Modules: recursive rules with an algorithm of their own (*Modular materialisation of Datalog programs*), and stored relations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from evermat.algebra.sets import OwnFacts, OwnView, View, WorkingSet

Take: TypeAlias = Callable[[OwnFacts], View]
"""Adds facts to a set and returns those that were new to it and to all that it is a part of."""


class Module(Protocol):
    """Some recursive rules of a stratum, Π, with an algorithm of their own.

    `language.patterns.closures` defines the rules that a closure stands for. Its *external* facts X are those of its relations that are
    explicit, or that other rules derive; its *internal* ones follow from them by its own rules. Invariant between updates, while it is
    valid: the facts of its relations in I are the consequences of X by Π; and X holds every fact that is explicit or that another rule derives.
    It may hold more: a fact that only Π derives any more costs time and does no harm.
    """

    def add(self, take: Take, present: OwnView, delta: OwnView) -> View:
        """Add, Definition 3: takes the smallest J with Π[I ∪ J : Δ ∪ J] ⊆ I ∪ J, where I is `present`; returns the facts of J that are new.

        Δ are facts from elsewhere: they become external.
        """

    def recomputed(self, update: Any, facts: WorkingSet) -> Module:
        """The same rules without facts, to recompute everything into a set beside the materialisation."""

    def settle(self) -> None:
        """Marks the end of derivation: the facts derived last are not asked for any more."""

    @property
    def only_recomputed(self) -> bool:
        """Whether an update can only recompute everything."""

    def begin(self) -> None:
        """Begins a materialisation from scratch: without facts, but perhaps for those that were used to decide how to store it."""

    def clear(self) -> None:
        """Has no facts from now on."""

    def rebuild(self, external: OwnView, present: OwnView) -> None:
        """Becomes valid for a materialisation: has these external facts."""

    @property
    def is_valid(self) -> bool:
        """Whether it fits the materialisation."""

    @property
    def names(self) -> frozenset[str]:
        """The relations that it closes."""

    def during(self, update: Any, deleted: dict[str, Any], inserted: dict[str, Any]) -> ModuleUpdate:
        """The module in an update, which changes lower strata by these deltas; they are arguments of `Rules.consequences`."""


class ModuleUpdate(Protocol):
    """A module in an update of its stratum. What it does to its own facts is undone with the update.

    The first half serves DRed^c-Mod, the second B/F^c-Mod, the third both. The facts that a method returns it knows already.
    """

    def lost_by_change(self) -> OwnFacts:
        """Diff, Definition 5: the consequences lost because lower strata have changed; and what of Π depends on those."""

    def delete(self, delta: OwnView) -> OwnFacts:
        """Del, Definition 6: facts of I that Π derives, in any number of steps, from deleted ones.

        Facts with nonrecursive derivations may be among them; the caller leaves them out, as well as those that are deleted already.
        """

    def rederive(self) -> OwnFacts:
        """Red, Definition 7: all facts of D that Π derives, in any number of steps, from what is left."""

    def forget(self, facts: OwnView) -> None:
        """Drops facts that have no nonrecursive derivation any more from X, unless other recursive rules may derive them."""

    def cut(self, delta: OwnView) -> OwnFacts:
        """Facts that are not external and cannot have a proof any more, now that Δ has none and steps of lower strata are lost."""

    def touched(self) -> OwnFacts:
        """External facts to be checked: those without which facts that have lost derivations, by what was cut last, would have no proof."""

    def supports(self, goals: OwnView) -> OwnFacts:
        """External facts that take part in any possible proof of some facts by Π; those that are known to hold may be left out."""

    def prove(self, goals: OwnView, proved: OwnView) -> OwnFacts:
        """Those of some facts that follow by Π from external ones that are proved or have nonrecursive derivations."""

    def note(self, facts: OwnView) -> None:
        """Adds facts of its relations that hold already, and that other rules derive, to X."""

    def gained_by_change(self) -> OwnFacts:
        """Diff for what lower strata have gained, closed like `add`."""

    def add(self, delta: OwnView) -> OwnFacts:
        """Add, for an update: the consequences of new facts by Π. Facts that hold already may be among them."""


class Stored(Protocol):
    """Relations of a stratum that a storage scheme holds: only their inputs have rows, which rules derive as usual."""

    def follow(self, update: Any, deleted: OwnView, inserted: OwnView) -> None:
        """Applies a change: inputs in D and A, and facts of lower strata that were deleted or inserted.

        D and A of its relations, as rules of higher strata read them, are then exactly the consequences.
        """
