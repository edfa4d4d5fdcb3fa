"""Rules over representatives: their terms are rewritten when terms become equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, Self, TypeVar

from evermat.language import Rule, normal_rule, terms_of


class _Rules(Protocol):
    """A group of rules of an engine."""

    @property
    def rules(self) -> Sequence[Rule]: ...
    def revised(self, rules: Sequence[Rule], /) -> Self: ...


RulesT = TypeVar("RulesT", bound=_Rules)


class NormalRules(Generic[RulesT]):
    """Rules under a renaming: their terms are representatives."""

    def __init__(self, rules: RulesT, normal: Callable[[str], str]) -> None:
        self._normal = normal
        self._terms: dict[str, list[int]] = {}
        for number, rule in enumerate(rules.rules):
            for term in terms_of(rule):
                self._terms.setdefault(term, []).append(number)
        self._written: Sequence[Rule] = rules.rules
        self._known = {term: term for term in self._terms}
        self.rules = rules
        self.refresh()

    def refresh(self) -> set[int]:
        """Brings the rules into normal form again; the numbers of those that have changed."""
        moved = {term: found for term, known in self._known.items() if (found := self._normal(term)) != known}
        if not moved:
            return set()
        self._known = {**self._known, **moved}
        numbers = {number for term in moved for number in self._terms[term]}
        rules = list(self.rules.rules)
        for number in numbers:
            rules[number] = normal_rule(self._written[number], self._normal)
        self.rules = self.rules.revised(rules)
        return numbers
