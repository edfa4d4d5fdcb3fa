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
from evermat.language.builtins import AGGREGATES, Type
from evermat.language.model import (
    Aggregation,
    Apply,
    Atom,
    Expression,
    Literal,
    Program,
    Rule,
    Test,
    Variable,
    Wildcard,
    variables_of,
)
from evermat.language.patterns.equality import EQUALITY_CLASSES, TERM_NAMES, asks_whether_different, equated, name_of


def use_representatives(program: Program, problems: Problems) -> Program:
    """Prepares the rules for terms that stand for all that are equal to them."""
    naming = _Naming(problems)
    rules = [naming.rule(rule) for rule in program.rules]
    added = [EQUALITY_CLASSES, TERM_NAMES] if naming.used else [EQUALITY_CLASSES]
    return program.with_rules(rules, added)


def can_be_represented(program: Program) -> bool:
    """Whether the rules are such that terms can stand for all that are equal to them."""
    naming = _Naming(Problems(program.source))
    for rule in program.rules:
        naming.rule(rule)
    return not naming.problems.errors


def looks_at_names(rules: Iterable[Rule]) -> bool:
    """Whether what rules derive, as it stands, depends on the names of terms; they may also compute some.

    It does if they equate terms: the answers to a query are not made equal afterwards.
    """
    naming = _Naming(Problems(Source("", "")))
    for rule in rules:
        naming.rule(rule)
        if any(isinstance(literal, Test) and any(_terms([literal])) for literal in _all_literals(rule.body)):
            return True
    return naming.used or len(naming.problems) > 0


class _Naming:
    """Gives rules the names that they look at."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self._span = Span(0, 0)
        self.used = False
        self._number = 0

    def rule(self, rule: Rule) -> Rule:
        self._span = rule.span
        # A computed term might be another name of one that there is, and would not be recognised.
        if any(map(_computes, _all_literals(rule.body))):
            self.problems.add(errors.COMPUTES_TERM, rule.span, rule=str(rule))
            return rule
        body = self._named(rule.body, equated(rule), ())
        return rule if body == rule.body else replace(rule, body=body)

    def _named(
        self, body: Sequence[Literal], pair: frozenset[Variable], keys: Sequence[Variable], *, counted: bool = False
    ) -> tuple[Literal, ...]:
        """A body in which what is about names is about names; with `counted`, about all names of all terms but the keys."""
        literals = [self._name_wildcards(literal) if counted else literal for literal in body]
        looked_at = dict.fromkeys(v for v in _terms(literals) if v not in keys) if counted else {}
        about_names = [t for t in literals if isinstance(t, Test) and _is_about_names(t, pair)]
        # Where the name of a term is looked at, what it is equated with is that name.
        equations = [t for t in literals if isinstance(t, Test) and t.operator == "=" and any(_terms([t]))]
        while about_names:
            looked_at |= dict.fromkeys(v for test in about_names for v in _terms([test]))
            about_names = [t for t in equations if not looked_at.keys().isdisjoint(_terms([t]))]
            about_names = [t for t in about_names if not looked_at.keys() >= set(_terms([t]))]
        found: list[Literal] = []
        for literal in literals:
            if isinstance(literal, Aggregation):
                found.append(self._aggregation(literal))
            elif isinstance(literal, Test) and (
                _is_about_names(literal, pair)
                or (literal in equations and not looked_at.keys().isdisjoint(_terms([literal])))
            ):
                found.append(Test(literal.operator, _named(literal.left), _named(literal.right)))
            else:
                found.append(literal)
        for key in {*keys} & looked_at.keys():
            self.problems.add(errors.NAME_OF_GROUP, self._span, name=key.name)
        self.used = self.used or bool(looked_at)
        return (*found, *(Atom(TERM_NAMES, (variable, name_of(variable))) for variable in looked_at))

    def _aggregation(self, literal: Aggregation) -> Aggregation:
        about_names = any(_terms([Test("=", literal.value, literal.value)])) if literal.value else False
        counted = about_names or AGGREGATES[literal.function].counts
        bodies = tuple(self._named(body, frozenset(), literal.keys, counted=counted) for body in literal.alternatives)
        return replace(literal, alternatives=bodies, value=literal.value and _named(literal.value))

    def _name_wildcards(self, literal: Literal) -> Literal:
        """What is not asked for counts as well."""
        if not isinstance(literal, Atom):
            return literal
        terms = []
        for term, type_ in zip(literal.terms, literal.relation.types, strict=True):
            anything = isinstance(term, Wildcard) and type_ is Type.TERM
            self._number += anything
            terms.append(Variable(f"any'{self._number}", type_) if anything else term)
        return Atom(literal.relation, tuple(terms))


def _is_about_names(test: Test, pair: frozenset[Variable]) -> bool:
    """Whether a test may hold for one name of a term and not for another."""
    if not any(_terms([test])):
        return False
    if test.operator == "=":
        return isinstance(test.left, Apply) or isinstance(test.right, Apply)
    # To ask whether what is made equal is different already does no harm.
    return not asks_whether_different(test, pair)


def _computes(literal: Literal) -> bool:
    if isinstance(literal, Aggregation):
        return literal.result.type is Type.TERM
    return isinstance(literal, Test) and any(
        isinstance(side, Apply) and side.type is Type.TERM for side in (literal.left, literal.right)
    )


def _all_literals(body: Iterable[Literal]) -> Iterable[Literal]:
    for literal in body:
        yield literal
        if isinstance(literal, Aggregation):
            for alternative in literal.alternatives:
                yield from _all_literals(alternative)


def _terms(literals: Iterable[Literal]) -> Iterable[Variable]:
    """The variables that stand for terms, each once."""
    return dict.fromkeys(v for v in variables_of(*literals) if v.type is Type.TERM)


def _named(expression: Expression) -> Expression:
    """An expression over names."""
    match expression:
        case Variable(type=Type.TERM):
            return name_of(expression)
        case Apply(arguments=arguments):
            return replace(expression, arguments=tuple(map(_named, arguments)))
    return expression
