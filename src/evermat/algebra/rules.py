"""Rules: a compiled group of them, and the groups of a stratum."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from evermat.algebra.modules import Module, Stored
from evermat.algebra.sets import Bag, OwnView, View
from evermat.language import Stratum


class Rules(Protocol):
    """A group of rules, compiled: a stratum's nonrecursive or recursive ones."""

    def consequences(
        self,
        positive: OwnView,
        negative: OwnView | None = None,
        *,
        delta_positive: OwnView | None = None,
        delta_negative: OwnView | None = None,
    ) -> Bag:
        """The heads of the rule instances whose positive atoms are in `positive` and negated ones not in `negative`.

        With a delta: only those with a positive atom in `delta_positive` or a negated one in `delta_negative`. Each instance
        counts once. `negative` is `positive` if left out. The sets are seen as they are at the call.
        """

    @property
    def heads(self) -> set[str]:
        """The relations that the rules derive."""

    def some(self, numbers: Collection[int]) -> Rules:
        """Those with some numbers, which count from 0 in the order in which the rules were given."""

    def of(self, stratum: Stratum) -> Rules:
        """The rules that derive relations of a stratum."""

    def derivable(self, heads: OwnView, positive: OwnView, negative: OwnView | None = None) -> Bag:
        """Those of some heads that an instance derives: rules are evaluated backwards."""

    def supports(self, heads: OwnView, positive: OwnView, negative: OwnView | None = None) -> Bag:
        """The body facts, of the heads' own stratum, of the instances that derive some heads."""

    def regroup(
        self, old: OwnView, new: OwnView, deleted: dict[str, Any], inserted: dict[str, Any]
    ) -> tuple[View, View]:
        """Aggregates: the results that the groups touched by a change lose and gain."""


class StratumRules(Protocol):
    """The rules of one stratum for one engine."""

    @property
    def stratum(self) -> Stratum:
        """The stratum of the program."""

    @property
    def nonrecursive(self) -> Rules:
        """Π_nr of the stratum."""

    @property
    def recursive(self) -> Rules:
        """Π_r of the stratum."""

    @property
    def closures(self) -> Sequence[Module]:
        """Modules of the recursive rules that close relations."""

    @property
    def plain(self) -> Rules:
        """The recursive rules that are in no closure: the seminaive module."""

    @property
    def stores(self) -> Sequence[Stored]:
        """Closures that a storage scheme holds: their rules are not among those above."""

    def settle_storage(self, state: Any) -> None:
        """Decides how its relations are stored, all below being complete, as far as that is known before rules are evaluated."""

    def hold_back_copies(self, state: Any) -> None:
        """Leaves out nonrecursive rules that a storage scheme might take for granted, until it is known whether it does."""

    def give_back_copies(self) -> Rules:
        """The rules that were left out, which are rules of the stratum again: their consequences are still to be added."""

    def store_closure(self, state: Any, external: OwnView) -> bool:
        """Has a storage scheme hold the closure of some facts, if that is better: nothing is left to derive then."""
