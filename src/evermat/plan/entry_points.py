"""Where the evaluation of a group of rules starts: for any engine, which plans a question needs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from evermat.language import Atom, Literal, Negation, Rule
from evermat.plan.planner import Sizes, backward_plan, delta_plan, full_plan, support_plan
from evermat.plan.steps import Plan

# Where a plan starts, beside the number of a literal: from the head; or from the head, handing out a body literal.
_BACKWARD, _SUPPORT = -1, -2

Start: TypeAlias = tuple[int, int | None]
"""The number of a rule, and what its plan starts from; None: from nothing, for all instances."""


class Starts:
    """The starts of some rules; `own` are relations of the same stratum."""

    def __init__(self, rules: Sequence[Rule], own: frozenset[str]) -> None:
        self._rules, self._own = rules, own
        self._readers: dict[tuple[str, bool], list[Start]] = {}
        for number, rule in enumerate(rules):
            for position, literal in enumerate(rule.literals):
                if rule.aggregate is not None and not (position == 0 and rule.body and self._is_own(literal)):
                    continue  # when what it aggregates over changes, groups are recomputed instead: see `Rules.regroup`
                if isinstance(literal, Atom):
                    self._readers.setdefault((literal.relation.name, False), []).append((number, position))
                elif isinstance(literal, Negation):
                    self._readers.setdefault((literal.atom.relation.name, True), []).append((number, position))

    def everything(self) -> list[Start]:
        """For all instances of all rules."""
        return [(number, None) for number in range(len(self._rules))]

    def changed(self, name: str, *, negated: bool) -> Sequence[Start]:
        """For the instances in which a literal, negated or not, reads changed facts of a relation."""
        return self._readers.get((name, negated), ())

    def backward(self, heads: Collection[str]) -> list[Start]:
        """For the instances that derive some facts of these relations.

        Aggregate rules are left out: their results change only with their groups.
        """
        return [
            (number, _BACKWARD)
            for number, rule in enumerate(self._rules)
            if rule.head.relation.name in heads and rule.aggregate is None
        ]

    def supports(self, heads: Collection[str]) -> list[Start]:
        """For the body facts, of the heads' own stratum, of the instances that derive some facts of these relations."""
        return [
            (number, _SUPPORT - position)
            for number, rule in enumerate(self._rules)
            if rule.head.relation.name in heads
            for position, literal in enumerate(rule.body)
            if self._is_own(literal)
        ]

    def _is_own(self, literal: Literal) -> bool:
        """Whether a literal is a positive atom of the same stratum."""
        return isinstance(literal, Atom) and literal.relation.name in self._own

    def read_first(self, start: Start) -> Atom:
        """The atom that a plan starts from: one of the body, or the head."""
        number, where = start
        rule = self._rules[number]
        assert where is not None
        if where < 0:
            return rule.head
        literal = rule.literals[where]
        assert isinstance(literal, Atom | Negation)
        return literal.atom if isinstance(literal, Negation) else literal

    def handed_out(self, start: Start) -> str:
        """The relation whose facts a plan yields."""
        number, where = start
        rule = self._rules[number]
        if where is None or where > _SUPPORT:
            return rule.head.relation.name
        literal = rule.body[_SUPPORT - where]
        assert isinstance(literal, Atom)
        return literal.relation.name


def plan_from(rule: Rule, where: int | None, sizes: Sizes) -> Plan:
    """The plan of a rule for a start."""
    if where is None:
        return full_plan(rule, sizes)
    if where == _BACKWARD:
        return backward_plan(rule, sizes)
    return support_plan(rule, _SUPPORT - where, sizes) if where <= _SUPPORT else delta_plan(rule, where, sizes)
