"""Clauses to conjunctions: one flat rule for each head and each alternative of the body.

- `;`, parentheses and `!( … )` become alternatives (disjunctive normal form).
- Arguments of atoms become variables or constants; an expression moves into an equation beside the atom.
- An aggregate inside an expression becomes a literal of its own with a variable for its result, and its local
  variables get names that occur nowhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from evermat.core import Problems, Span
from evermat.core import error_catalogue as errors
from evermat.language.builtins import TESTS
from evermat.language.syntax import ast

ALTERNATIVES_LIMIT = 4096
_SIZE_LIMIT = 100_000  # literals of all alternatives together


@dataclass(slots=True)
class Grouping:
    """An aggregate as a literal: `result` is its value, `keys` what it is grouped by."""

    result: ast.Var
    aggregate: ast.Aggregate
    value: ast.Expression | None
    keys: list[ast.Var]
    alternatives: list[list[FlatLiteral]]


FlatLiteral = ast.Atom | ast.Not | ast.Compare | Grouping


@dataclass(slots=True)
class FlatRule:
    """One head, one conjunction; arguments of atoms are variables, constants or `_`."""

    head: ast.Atom
    body: list[FlatLiteral]
    clause: ast.Clause


def lower(clause: ast.Clause, problems: Problems) -> Iterator[FlatRule]:
    """The flat rules of a clause."""
    try:
        bodies = alternatives(clause.body) if clause.body is not None else [[]]
        _check_size(bodies, len(clause.heads))
    except _TooManyError:
        problems.add(errors.TOO_MANY_ALTERNATIVES, clause.span, limit=ALTERNATIVES_LIMIT)
        return
    for head in clause.heads:
        for body in bodies:
            yield _Flattener(clause, problems).rule(head, body)


class _TooManyError(Exception):
    pass


def _check_size(bodies: list[list[ast.Atom | ast.Not | ast.Compare]], heads: int = 1) -> None:
    """One body may be of any size, but copies of it add up."""
    copies = len(bodies) * heads
    if len(bodies) > 1 and (copies > ALTERNATIVES_LIMIT or heads * sum(map(len, bodies)) > _SIZE_LIMIT):
        raise _TooManyError


def alternatives(formula: ast.Formula) -> list[list[ast.Atom | ast.Not | ast.Compare]]:
    """The disjunctive normal form: alternatives of conjunctions of (negated) atoms and comparisons."""
    match formula:
        case ast.Or():
            result = [body for part in formula.parts for body in alternatives(part)]
        case ast.And():
            result = [[]]
            for part in formula.parts:
                choices = alternatives(part)
                if len(choices) == 1:
                    for left in result:
                        left.extend(choices[0])
                else:
                    if len(result) * len(choices) > ALTERNATIVES_LIMIT:
                        raise _TooManyError
                    result = [left + right for left in result for right in choices]
                    _check_size(result)
        case ast.Not(ast.Not(inner)):
            result = alternatives(inner)
        case ast.Not(ast.And(parts), span):
            result = alternatives(ast.Or([ast.Not(part, span) for part in parts]))
        case ast.Not(ast.Or(parts), span):
            result = alternatives(ast.And([ast.Not(part, span) for part in parts]))
        case ast.Not(ast.Compare(operator, left, right, span)):
            result = [[ast.Compare(TESTS[operator].negation, left, right, span)]]
        case ast.Not(ast.Truth(value)):
            result = [] if value else [[]]
        case ast.Truth(value):
            result = [[]] if value else []
        case _:
            result = [[formula]]
    if len(result) > ALTERNATIVES_LIMIT:
        raise _TooManyError
    return result


class _Flattener:
    """Flattens one rule; knows which names are in use."""

    def __init__(self, clause: ast.Clause, problems: Problems) -> None:
        self.clause = clause
        self.problems = problems
        self._fresh = count(1)

    def rule(self, head: ast.Atom, body: list[ast.Atom | ast.Not | ast.Compare]) -> FlatRule:
        extra: list[FlatLiteral] = []
        outside = Counter(v.name for v in outer_variables([head, *body]))
        for argument in head.arguments:
            if isinstance(argument, ast.Wildcard):
                self.problems.add(errors.WILDCARD_HEAD, argument.span)
        flat_head = self._atom(head, extra, outside)
        return FlatRule(flat_head, self._body(body, outside) + extra, self.clause)

    def _body(self, body: Iterable[ast.Formula], outside: Iterable[str]) -> list[FlatLiteral]:
        flat: list[FlatLiteral] = []
        for literal in body:
            extra: list[FlatLiteral] = []
            match literal:
                case ast.Atom():
                    flat.append(self._atom(literal, extra, outside))
                case ast.Not(ast.Atom() as atom):
                    flat.append(ast.Not(self._atom(atom, extra, outside), literal.span))
                case ast.Compare("=", ast.Var() as result, ast.Aggregate() as aggregate) | ast.Compare(
                    "=", ast.Aggregate() as aggregate, ast.Var() as result
                ):
                    flat.append(self._grouping(result, aggregate, outside))
                case ast.Compare():
                    left = self._expression(literal.left, extra, outside)
                    right = self._expression(literal.right, extra, outside)
                    flat.append(ast.Compare(literal.operator, left, right, literal.span))
            flat += extra
        return flat

    def _atom(self, atom: ast.Atom, extra: list[FlatLiteral], outside: Iterable[str]) -> ast.Atom:
        if all(isinstance(a, ast.Var | ast.Literal | ast.Wildcard) for a in atom.arguments):
            return atom
        arguments: list[ast.Expression] = []
        for argument in atom.arguments:
            if isinstance(argument, ast.Var | ast.Literal | ast.Wildcard):
                arguments.append(argument)
                continue
            variable = self._variable(argument.span)
            if isinstance(argument, ast.Aggregate):
                extra.append(self._grouping(variable, argument, outside))
            else:
                value = self._expression(argument, extra, outside)
                extra.append(ast.Compare("=", variable, value, argument.span))
            arguments.append(variable)
        return ast.Atom(atom.name, arguments, atom.span)

    def _expression(
        self, expression: ast.Expression, extra: list[FlatLiteral], outside: Iterable[str]
    ) -> ast.Expression:
        match expression:
            case ast.Wildcard(span):
                self.problems.add(errors.WILDCARD_VALUE, span)
                return expression
            case ast.Aggregate():
                variable = self._variable(expression.span)
                extra.append(self._grouping(variable, expression, outside))
                return variable
            case _:
                changed: ast.Expression = ast.rebuilt(expression, lambda part: self._expression(part, extra, outside))
                return changed

    def _grouping(self, result: ast.Var, aggregate: ast.Aggregate, outside: Iterable[str]) -> Grouping:
        """Names that also occur outside are keys; all others are local and renamed."""
        try:
            bodies = alternatives(aggregate.body)
            _check_size(bodies)
        except _TooManyError:
            self.problems.add(errors.TOO_MANY_ALTERNATIVES, aggregate.span, limit=ALTERNATIVES_LIMIT)
            bodies = []
        known = set(outside)
        inside = [v for body in bodies for v in outer_variables(body)]
        inside += outer_variables([] if aggregate.value is None else [aggregate.value])
        deeper = [v for body in bodies for v in _nested_variables(body)]
        number = next(self._fresh)
        local = {v.name: f"{v.name}'{number}" for v in inside if v.name not in known}
        keys = {v.name: v for v in [*inside, *deeper] if v.name in known}
        renamed = [[_rename(literal, local) for literal in body] for body in bodies]
        scope = known | set(local.values())
        value_literals: list[FlatLiteral] = []
        value = None
        if aggregate.value is not None:
            value = self._expression(_rename(aggregate.value, local), value_literals, scope)
        flat = [self._body(body, scope) + value_literals for body in renamed]
        return Grouping(result, aggregate, value, list(keys.values()), flat)

    def _variable(self, span: Span) -> ast.Var:
        return ast.Var(f"'{next(self._fresh)}", span)  # no name that a user can write


def clause_variables(clause: ast.Clause) -> Iterator[ast.Var]:
    """All variables of a clause as written, those inside aggregates included."""
    parts: list[ast.Node] = [*clause.heads, *([clause.body] if clause.body is not None else [])]
    yield from outer_variables(parts)
    yield from _nested_variables(parts)


def outer_variables(things: Iterable[ast.Node]) -> Iterator[ast.Var]:
    """The variables of formulas and expressions, not counting those inside aggregates."""
    for thing in things:
        if isinstance(thing, ast.Var):
            yield thing
        elif not isinstance(thing, ast.Aggregate):
            yield from outer_variables(thing.parts)


def _aggregates(things: Iterable[ast.Node]) -> Iterator[ast.Aggregate]:
    """The outermost aggregates of formulas and expressions."""
    for thing in things:
        if isinstance(thing, ast.Aggregate):
            yield thing
        else:
            yield from _aggregates(thing.parts)


def _nested_variables(things: Iterable[ast.Node]) -> Iterator[ast.Var]:
    """The variables inside the aggregates of some formulas, at any depth."""
    for aggregate in _aggregates(things):
        yield from outer_variables(aggregate.parts)
        yield from _nested_variables(aggregate.parts)


def _rename(node: ast.Node, names: dict[str, str]) -> Any:
    """A formula or expression with some variables renamed, also inside aggregates."""
    if isinstance(node, ast.Var):
        return ast.Var(names.get(node.name, node.name), node.span)
    return ast.rebuilt(node, lambda part: _rename(part, names))
