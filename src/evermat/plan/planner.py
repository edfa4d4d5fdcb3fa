"""The order of body literals.

One greedy pass serves all plans. What is known grows literal by literal: tests, computations and negations are placed as
soon as their variables are known, then comes the atom that is expected to match the fewest facts for each binding.
A delta plan starts with the changed facts of one literal, a backward plan with the facts in question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod

from evermat.language import (
    INTEGERS,
    Apply,
    Atom,
    Constant,
    Expression,
    Literal,
    Negation,
    Rule,
    Test,
    Variable,
    Wildcard,
    name_wildcards,
    variables_of,
)
from evermat.plan.steps import Check, Compute, Filter, Match, Plan, Role, Step

Sizes = Mapping[str, int]
"""How many facts relations have; those that are missing are taken for large."""


class Extent(int):
    """How many facts a relation has, and how many values each of its columns, about."""

    distinct: tuple[float, ...]

    @classmethod
    def of(cls, size: int, distinct: Iterable[float]) -> Extent:
        """So many facts, with so many values in each column."""
        made = cls(size)
        made.distinct = tuple(distinct)
        return made

    def matching(self, columns: Iterable[int]) -> float:
        """How many facts there are, about, with a value in each of some columns."""
        return self / min(max(self, 1), prod(max(self.distinct[column], 1.0) for column in columns))


_UNKNOWN_SIZE = 1_000_000


def full_plan(rule: Rule, sizes: Sizes = {}) -> Plan:  # noqa: B006  (never written to)
    """All instances of a rule."""
    return _plan(rule, None, sizes)


def delta_plan(rule: Rule, literal: int, sizes: Sizes = {}) -> Plan:  # noqa: B006
    """The instances whose first changed literal is this one."""
    return _plan(rule, literal, sizes)


def backward_plan(rule: Rule, sizes: Sizes = {}) -> Plan:  # noqa: B006
    """The instances of given heads, or for an aggregate rule the bindings of given groups."""
    return _plan(rule, -1, sizes)


def support_plan(rule: Rule, literal: int, sizes: Sizes = {}) -> Plan:  # noqa: B006
    """The facts of one body literal in the instances of given heads."""
    # What `_` stands for must be known here: the fact is asked for, not only that there is one.
    whole = name_wildcards(rule.body[literal], "any'")
    assert isinstance(whole, Atom)
    body = (*rule.body[:literal], whole, *rule.body[literal + 1 :])
    return _plan(Rule(rule.head, body, rule.span, rule.aggregate), -1, sizes, whole)


def _plan(rule: Rule, start: int | None, sizes: Sizes, handed_out: Atom | None = None) -> Plan:
    literals = rule.literals
    output: tuple[Expression, ...]
    if handed_out is not None:
        output, asked = handed_out.terms, rule.head.terms  # type: ignore[assignment]
    elif rule.aggregate is None:
        output = rule.head.terms  # type: ignore[assignment]  # heads have no `_`
        asked = rule.head.terms
    else:
        value = rule.aggregate.value
        output = (*rule.aggregate.keys, *([] if value is None else [value]))
        asked = (*rule.aggregate.keys, Wildcard())
    ordering = _Ordering(literals, sizes)
    rest = list(range(len(literals)))
    if start == -1:
        ordering.match(-1, Atom(rule.head.relation, asked), Role.ASKED)
    elif start is not None:
        rest.remove(start)
        literal = literals[start]
        if isinstance(literal, Negation):
            ordering.match(start, literal.atom, Role.CHANGED_ABSENT)
        else:
            assert isinstance(literal, Atom)
            ordering.match(start, literal, Role.CHANGED)
    ordering.place(rest, start, _needs(rule))
    return Plan(rule, start, _only_needed(ordering.steps, output), output, handed_out or rule.head)


@lru_cache(maxsize=4)  # plans of one rule are made one after the other
def _needs(rule: Rule) -> list[set[Variable]]:
    return [set(variables_of(literal)) for literal in rule.literals]


class _Ordering:
    """The steps so far, and the variables that they make known."""

    def __init__(self, literals: tuple[Literal, ...], sizes: Sizes) -> None:
        self.literals = literals
        self.sizes = sizes
        self.steps: list[Step] = []
        self.known: set[Variable] = set()

    def place(self, rest: list[int], start: int | None, needs: list[set[Variable]]) -> None:
        """Puts all literals in `rest` into an order."""
        early = [i for i in rest if not isinstance(self.literals[i], Atom)]
        atoms = [i for i in rest if isinstance(self.literals[i], Atom)]
        while atoms or early:
            waiting = [i for i in early if not self._place_early(i, needs[i], start)]
            if len(waiting) < len(early):
                early = waiting
                continue
            chosen = min(atoms, key=self._expected) if len(atoms) > 1 else atoms[0]
            role = Role.PRESENT_BEFORE if start is not None and chosen < start else Role.PRESENT
            self.match(chosen, self.literals[chosen], role)  # type: ignore[arg-type]
            atoms.remove(chosen)

    def match(self, literal: int, atom: Atom, role: Role) -> None:
        """Places an atom: what is known of it becomes the key, the rest is bound."""
        key: list[tuple[int, Variable | Constant]] = []
        binds: dict[Variable, int] = {}
        equal: list[tuple[int, int]] = []
        for column, term in enumerate(atom.terms):
            if isinstance(term, Constant) or term in self.known:
                key.append((column, term))  # type: ignore[arg-type]
            elif isinstance(term, Variable):
                if term in binds:
                    equal.append((binds[term], column))
                else:
                    binds[term] = column
        self.known.update(binds)
        bound = tuple((column, variable) for variable, column in binds.items())
        self.steps.append(Match(literal, atom.relation, role, tuple(key), bound, tuple(equal)))

    def _place_early(self, i: int, needs: set[Variable], start: int | None) -> bool:
        """Places a test, computation or negation if that is possible now."""
        literal = self.literals[i]
        if isinstance(literal, Negation):
            if not needs <= self.known:
                return False
            role = Role.ABSENT_BEFORE if start is not None and i < start else Role.ABSENT
            key: tuple[tuple[int, Variable | Constant], ...] = tuple(enumerate(literal.atom.terms))  # type: ignore[arg-type]
            self.steps.append(Check(i, literal.atom.relation, role, key))
            return True
        assert isinstance(literal, Test)
        missing = needs - self.known
        if not missing:
            self.steps.append(Filter(literal))
            return True
        if literal.operator != "=" or len(missing) > 1:
            return False
        (variable,) = missing
        solution = solve(literal, variable)
        if solution is None:
            return False
        self.steps.append(solution)
        self.known.add(variable)
        return True

    def _expected(self, i: int) -> tuple[float, int]:
        """How many facts of an atom are expected for each binding; ties go to the order of the text."""
        atom = self.literals[i]
        assert isinstance(atom, Atom)
        extent = self.sizes.get(atom.relation.name, _UNKNOWN_SIZE)
        size = max(extent, 1)
        known = [c for c, term in enumerate(atom.terms) if isinstance(term, Constant) or term in self.known]
        if not known:
            return (float(size) * 1e6, i)  # a product with everything so far: as late as possible
        if isinstance(extent, Extent):
            return (extent.matching(known), i)
        return (size ** (1 - len(known) / len(atom.terms)), i)


def solve(test: Test, variable: Variable) -> Compute | None:
    """The equation solved for a variable that occurs in it once, if that can be done exactly.

    Beside `x = expression` that is possible for integer sums and differences: from `z = x + 1` and z follows x.
    """
    for target, value in ((test.left, test.right), (test.right, test.left)):
        if target == variable and variable not in set(variables_of(value)):
            return Compute(variable, value)
    if list(variables_of(test)).count(variable) != 1:
        return None
    inside, outside = (test.left, test.right) if variable in set(variables_of(test.left)) else (test.right, test.left)
    while inside != variable:
        if not isinstance(inside, Apply) or inside.function not in ("+", "-") or not inside.type & INTEGERS:
            return None
        left, right = inside.arguments
        in_left = variable in set(variables_of(left))
        if inside.function == "+":  # outside = left + right
            outside = Apply("-", (outside, right if in_left else left), inside.operands, inside.type)
        elif in_left:  # outside = left - right
            outside = Apply("+", (outside, right), inside.operands, inside.type)
        else:
            outside = Apply("-", (left, outside), inside.operands, inside.type)
        inside = left if in_left else right
    return Compute(variable, outside, solved=True)


def _only_needed(steps: list[Step], output: Iterable[Expression]) -> tuple[Step, ...]:
    """Leaves out bindings and computations that nothing reads.

    A computation that is not read still decides whether the body matches, unless it cannot fail.
    """
    needed = set(variables_of(*output))
    kept: list[Step] = []
    for step in reversed(steps):
        match step:
            case Match(literal, relation, role, key, binds, equal):
                read = tuple((column, variable) for column, variable in binds if variable in needed)
                kept.append(step if len(read) == len(binds) else Match(literal, relation, role, key, read, equal))
                needed.update(known for _, known in key if isinstance(known, Variable))
                continue
            case Check():
                needed.update(known for _, known in step.key if isinstance(known, Variable))
            case Compute(variable, expression):
                if variable not in needed and not isinstance(expression, Apply):
                    continue
                needed.update(variables_of(expression))
            case Filter():
                needed.update(variables_of(step.test))
        kept.append(step)
    return tuple(reversed(kept))
