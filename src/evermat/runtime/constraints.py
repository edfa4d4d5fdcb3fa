"""What must not be: facts of relations declared `forbidden`, and equal literals of different values. Errors name the rule and the facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from evermat.core import DataError, Problem
from evermat.core import error_catalogue as errors
from evermat.engine import DifferentValuesError
from evermat.language import (
    Atom,
    Constant,
    Negation,
    Program,
    Queries,
    Query,
    Row,
    Rule,
    Variable,
    body_variables,
    equality_of,
    named_throughout,
)

_FACTS, _INSTANCES = 10, 3  # that are shown, of a relation and for a fact


def refuse_forbidden(
    program: Program, new: Callable[[str], Iterable[Row]], answer: Callable[[Query], Iterable[Row]]
) -> None:
    """Raises a `DataError` that explains why facts are forbidden, if there are any.

    `new` returns the facts of a relation that are new; `answer` computes the answer to a query over all facts.
    """
    problems: list[Problem] = []
    for name, relation in program.relations.items():
        rows = sorted(new(name)) if relation.forbidden else []
        problems += [_explain(program, name, row, answer) for row in rows[:_FACTS]]
        if len(rows) > _FACTS:
            details = {"count": f"{len(rows) - _FACTS:,}", "relation": name}
            problems.append(Problem(errors.MORE_FORBIDDEN, details))
    if problems:
        raise DataError(problems)


def explained(
    error: DifferentValuesError, program: Program, answer: Callable[[Query], Iterable[Row]]
) -> DifferentValuesError:
    """The error that literals of different values would be equal, with the rules and facts that say so.

    `answer` computes the answer to a query over the facts so far.
    """
    same = equality_of(program.relations)
    assert same is not None
    (problem,) = error.problems
    reasons = [_reason(program, same.name, row, answer) for row in error.facts]
    rules = [reason.rule for reason in reasons if reason.rule is not None]
    why = "; ".join(f"`{reason.fact}` {reason.how} {reason.why}".rstrip() for reason in reasons)
    found = Problem(problem.kind, {**problem.details, "why": why})
    return DifferentValuesError(replace(found, source=program.source, span=rules[0].span) if rules else found)


class _Reason(NamedTuple):
    """Why a fact holds: by a rule, or because it is given."""

    fact: str
    how: str = "is given"
    why: str = ""
    rule: Rule | None = None


def _explain(program: Program, name: str, row: Row, answer: Callable[[Query], Iterable[Row]]) -> Problem:
    reason = _reason(program, name, row, answer)
    details = {"fact": reason.fact, "how": reason.how, "why": reason.why}
    if reason.rule is None:
        return Problem(errors.FORBIDDEN, details)
    return Problem(errors.FORBIDDEN, details, program.source, reason.rule.span)


def _reason(program: Program, name: str, row: Row, answer: Callable[[Query], Iterable[Row]]) -> _Reason:
    relation = program.relations[name]
    fact = str(Atom(relation, tuple(map(Constant, row, relation.types))))
    queries = Queries(program)
    for rule in program.written:
        query = queries.instances(rule, row) if rule.head.relation.name == name else None
        instances = sorted(answer(query)) if query is not None else []
        if instances:
            shown = [_instance(rule, binding) for binding in islice(instances, _INSTANCES)]
            more = f" (and {len(instances) - _INSTANCES:,} more)" if len(instances) > _INSTANCES else ""
            return _Reason(fact, "follows", f"from {'; from '.join(shown)}{more}", rule)
    return _Reason(fact)


def _instance(rule: Rule, binding: Row) -> str:
    """The body of one instance of a rule, as text."""
    rule = named_throughout(rule)
    values = dict(zip(body_variables(rule), binding, strict=True))

    def ground(atom: Atom) -> Atom:
        terms = [Constant(values[t], t.type) if isinstance(t, Variable) and t in values else t for t in atom.terms]
        return Atom(atom.relation, tuple(terms))

    instances = []
    for literal in rule.body:
        if isinstance(literal, Atom):
            instances.append(f"`{ground(literal)}`")
        elif isinstance(literal, Negation):
            instances.append(f"`!{ground(literal.atom)}`")
    return ", ".join(dict.fromkeys(instances)) or "the rule alone"
