"""Equality by representatives: rules that look at names are given all names of a term.

    even(x) :- p(x), match("…", x).       becomes       even(x) :- p(x), names(x, x'), match("…", x').

So rules over representatives derive what they would derive over all names; what is counted are names as well. Everything else is the
same for all terms that are equal, and holds in the normal form if and only if it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from evermat.core import Problems, Source, Span
from evermat.core import error_catalogue as errors
from evermat.language import model
from evermat.language.builtins import AGGREGATES, Type
from evermat.language.patterns.equality import EQUALITY_CLASSES, TERM_NAMES, asks_whether_different, equated, name_of


def use_representatives(program: model.Program, problems: Problems) -> model.Program:
    """Prepares the rules for terms that stand for all that are equal to them."""
    naming = _Naming(problems)
    rules = [naming.rule(rule) for rule in program.rules]
    added = [EQUALITY_CLASSES, TERM_NAMES] if naming.used else [EQUALITY_CLASSES]
    return program.with_rules(rules, added)


def can_be_represented(program: model.Program) -> bool:
    """Whether the rules are such that terms can stand for all that are equal to them."""
    naming = _Naming(Problems(program.source))
    for rule in program.rules:
        naming.rule(rule)
    return not naming.problems.errors


def looks_at_names(rules: Iterable[model.Rule]) -> bool:
    """Whether what rules derive, as it stands, depends on the names of terms; they may also compute some.

    It does if they equate terms: the answers to a query are not made equal afterwards.
    """
    naming = _Naming(Problems(Source("", "")))
    for rule in rules:
        naming.rule(rule)
        if any(isinstance(literal, model.Test) and any(_terms([literal])) for literal in _all_literals(rule.body)):
            return True
    return naming.used or len(naming.problems) > 0


class _Naming:
    """Gives rules the names that they look at."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self._span = Span(0, 0)
        self.used = False
        self._number = 0

    def rule(self, rule: model.Rule) -> model.Rule:
        self._span = rule.span
        # A computed term might be another name of one that there is, and would not be recognised.
        if any(map(_computes, _all_literals(rule.body))):
            self.problems.add(errors.COMPUTES_TERM, rule.span, rule=str(rule))
            return rule
        body = self._named(rule.body, equated(rule), ())
        return rule if body == rule.body else replace(rule, body=body)

    def _named(
        self,
        body: Sequence[model.Literal],
        pair: frozenset[model.Variable],
        keys: Sequence[model.Variable],
        *,
        counted: bool = False,
    ) -> tuple[model.Literal, ...]:
        """A body in which what is about names is about names; with `counted`, about all names of all terms but the keys."""
        literals = list(body)
        if counted:  # what is not asked for counts as well
            self._number += 1
            literals = [
                model.name_wildcards(part, f"any'{self._number}.{i}.", Type.TERM) for i, part in enumerate(body)
            ]
        looked_at = dict.fromkeys(v for v in _terms(literals) if v not in keys) if counted else {}
        about_names = [t for t in literals if isinstance(t, model.Test) and _is_about_names(t, pair)]
        # Where the name of a term is looked at, what it is equated with is that name.
        equations = [t for t in literals if isinstance(t, model.Test) and t.operator == "=" and any(_terms([t]))]
        while about_names:
            looked_at |= dict.fromkeys(v for test in about_names for v in _terms([test]))
            about_names = [t for t in equations if not looked_at.keys().isdisjoint(_terms([t]))]
            about_names = [t for t in about_names if not looked_at.keys() >= set(_terms([t]))]
        found: list[model.Literal] = []
        for literal in literals:
            if isinstance(literal, model.Aggregation):
                found.append(self._aggregation(literal))
            elif isinstance(literal, model.Test) and (
                _is_about_names(literal, pair)
                or (literal in equations and not looked_at.keys().isdisjoint(_terms([literal])))
            ):
                found.append(model.Test(literal.operator, _named(literal.left), _named(literal.right)))
            else:
                found.append(literal)
        for key in {*keys} & looked_at.keys():
            self.problems.add(errors.NAME_OF_GROUP, self._span, name=key.name)
        self.used = self.used or bool(looked_at)
        return (*found, *(model.Atom(TERM_NAMES, (variable, name_of(variable))) for variable in looked_at))

    def _aggregation(self, literal: model.Aggregation) -> model.Aggregation:
        about_names = any(_terms([model.Test("=", literal.value, literal.value)])) if literal.value else False
        counted = about_names or AGGREGATES[literal.function].counts
        bodies = tuple(self._named(body, frozenset(), literal.keys, counted=counted) for body in literal.alternatives)
        return replace(literal, alternatives=bodies, value=literal.value and _named(literal.value))


def _is_about_names(test: model.Test, pair: frozenset[model.Variable]) -> bool:
    """Whether a test may hold for one name of a term and not for another."""
    if not any(_terms([test])):
        return False
    if test.operator == "=":
        return isinstance(test.left, model.Apply) or isinstance(test.right, model.Apply)
    # To ask whether what is made equal is different already does no harm.
    return not asks_whether_different(test, pair)


def _computes(literal: model.Literal) -> bool:
    if isinstance(literal, model.Aggregation):
        return literal.result.type is Type.TERM
    return isinstance(literal, model.Test) and any(
        isinstance(side, model.Apply) and side.type is Type.TERM for side in (literal.left, literal.right)
    )


def _all_literals(body: Iterable[model.Literal]) -> Iterable[model.Literal]:
    for literal in body:
        yield literal
        if isinstance(literal, model.Aggregation):
            for alternative in literal.alternatives:
                yield from _all_literals(alternative)


def _terms(literals: Iterable[model.Literal]) -> Iterable[model.Variable]:
    """The variables that stand for terms, each once."""
    return dict.fromkeys(v for v in model.variables_of(*literals) if v.type is Type.TERM)


def _named(expression: model.Expression) -> model.Expression:
    match expression:
        case model.Variable(type=Type.TERM):
            return name_of(expression)
        case model.Apply(arguments=arguments):
            return replace(expression, arguments=tuple(map(_named, arguments)))
    return expression
