"""Relations declared `forbidden`: a fact in one of them is an error, which names the rule and the facts it follows from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from evermat.core import DataError, Problem
from evermat.core import error_catalogue as errors
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


def _explain(program: Program, name: str, row: Row, answer: Callable[[Query], Iterable[Row]]) -> Problem:
    relation = program.relations[name]
    fact = str(Atom(relation, tuple(map(Constant, row, relation.types))))
    queries = Queries(program)
    for rule in program.written:
        query = queries.instances(rule, row) if rule.head.relation.name == name else None
        instances = sorted(answer(query)) if query is not None else []
        if instances:
            shown = [_instance(rule, binding) for binding in islice(instances, _INSTANCES)]
            more = f" (and {len(instances) - _INSTANCES:,} more)" if len(instances) > _INSTANCES else ""
            details = {"fact": fact, "how": "follows", "why": f"from {'; from '.join(shown)}{more}"}
            return Problem(errors.FORBIDDEN, details, program.source, rule.span)
    return Problem(errors.FORBIDDEN, {"fact": fact, "how": "is given", "why": ""})


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
