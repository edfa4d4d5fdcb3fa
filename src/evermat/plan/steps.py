"""What a plan is made of. Engines interpret these steps; nothing here knows how facts are stored.

A plan extends bindings of variables step by step. The first `Match` of a delta plan reads the changed facts, that of
a backward plan the facts in question; every other step reads what its `Role` says. Steps are never changed; they are not
frozen because there are many of them, and making a frozen object takes three times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, Protocol, Self, TypeVar

from evermat.language import Atom, Constant, Expression, Relation, Rule, Test, Variable


class Role(IntEnum):
    """Which facts a literal reads. Pᵖ, Pⁿ are the sets given for positive and negated literals, Δᵖ, Δⁿ the changes.

    For every way to split an instance's literals into changed and unchanged ones, exactly one delta plan finds it:
    the one of its first changed literal. So literals before the delta literal exclude the change.
    """

    PRESENT = 0  # in Pᵖ
    PRESENT_BEFORE = 1  # in Pᵖ \ Δᵖ
    CHANGED = 2  # in Δᵖ
    ABSENT = 3  # not in Pⁿ
    ABSENT_BEFORE = 4  # not in Pⁿ ∪ Δⁿ
    CHANGED_ABSENT = 5  # in Δⁿ
    ASKED = 6  # a fact in question: the head of a backward plan


STARTING = (Role.CHANGED, Role.CHANGED_ABSENT, Role.ASKED)
"""Roles of the first literal of a plan: its facts are read from front to end."""


@dataclass(slots=True, eq=False)
class Match:
    """Extends each binding by every fact that agrees with it.

    `key` are columns whose value is known before, `binds` columns that give a variable its value, `equal` pairs of
    columns that must hold the same value. Columns in none of them may hold anything.
    """

    literal: int
    relation: Relation
    role: Role
    key: tuple[tuple[int, Variable | Constant], ...]
    binds: tuple[tuple[int, Variable], ...]
    equal: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        columns: list[str] = ["_"] * self.relation.arity
        for column, known in self.key:
            columns[column] = f"={known}"
        for column, variable in self.binds:
            columns[column] = str(variable)
        for first, second in self.equal:
            columns[second] = f"={columns[first].lstrip('=')}" if columns[first] != "_" else f"=#{first}"
        return f"match {self.relation.name}({', '.join(columns)})" + _SUFFIXES[self.role]


@dataclass(slots=True, eq=False)
class Check:
    """Keeps the bindings for which a negated atom, all of whose columns are known, holds."""

    literal: int
    relation: Relation
    role: Role
    key: tuple[tuple[int, Variable | Constant], ...]

    def __str__(self) -> str:
        return f"check !{self.relation.name}({', '.join(str(known) for _, known in self.key)})" + _SUFFIXES[self.role]


@dataclass(slots=True, eq=False)
class Compute:
    """Gives a variable the value of an expression; a binding for which it has none is dropped.

    `solved` marks an equation turned round: there a missing value means that there is no solution, not that the program computed
    something undefined.
    """

    variable: Variable
    expression: Expression
    solved: bool = False

    def __str__(self) -> str:
        return f"{'solve' if self.solved else 'compute'} {self.variable} = {self.expression}"


@dataclass(slots=True, eq=False)
class Filter:
    """Keeps the bindings for which a test holds."""

    test: Test

    def __str__(self) -> str:
        return f"filter {self.test}"


Step = Match | Check | Compute | Filter


@dataclass(slots=True, eq=False)
class Plan:
    """An order of evaluation of one rule.

    `start` is the literal that reads the change, -1 if the plan starts from the head, None if from nothing. `output` is what each
    binding passes on: the terms of `head`, or for an aggregate rule its keys and its value. `head` is that of the rule, or the body
    literal whose facts a support plan asks for.
    """

    rule: Rule
    start: int | None
    steps: tuple[Step, ...]
    output: tuple[Expression, ...]
    head: Atom

    @property
    def relations(self) -> Iterator[tuple[Relation, Role]]:
        return ((step.relation, step.role) for step in self.steps if isinstance(step, Match | Check))

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


_SUFFIXES = {
    Role.PRESENT: "",
    Role.PRESENT_BEFORE: "  [in, not changed]",
    Role.CHANGED: "  [changed]",
    Role.ABSENT: "",
    Role.ABSENT_BEFORE: "  [not in, not changed]",
    Role.CHANGED_ABSENT: "  [changed, not in]",
    Role.ASKED: "  [asked]",
}


class _View(Protocol):
    def __or__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...


ViewT = TypeVar("ViewT", bound=_View)


class Roles(Generic[ViewT]):
    """The sets that were given for an evaluation: for positive and negated literals, their changes, and facts in question."""

    def __init__(
        self,
        positive: ViewT,
        negative: ViewT,
        delta_positive: ViewT | None = None,
        delta_negative: ViewT | None = None,
        asked: ViewT | None = None,
    ) -> None:
        self._positive, self._negative = positive, negative
        self._delta_positive, self._delta_negative = delta_positive, delta_negative
        self._fixed = {
            Role.PRESENT: positive,
            Role.CHANGED: delta_positive,
            Role.ABSENT: negative,
            Role.CHANGED_ABSENT: delta_negative,
            Role.ASKED: asked,
        }

    def view(self, role: Role) -> ViewT:
        """The facts that literals of a role read; for negated ones, those that theirs must not be among."""
        if role is Role.PRESENT_BEFORE:
            return self._positive if self._delta_positive is None else self._positive - self._delta_positive
        if role is Role.ABSENT_BEFORE:
            return self._negative if self._delta_negative is None else self._negative | self._delta_negative
        view = self._fixed[role]
        assert view is not None
        return view
