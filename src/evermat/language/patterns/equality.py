"""Equality of terms: what may be done about it, and what relations and rules look like when equal terms are represented by one.

With *rewriting*, facts and rules are in normal form: every term stands for all that it is equal to, see `reasoning.equality`. Two hidden
relations belong to it. EQUALITY_CLASSES says which name has which representative; rules do not read it. TERM_NAMES lists the names of every term, for rules
that look at names: its second column is a name and never rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias, TypeVar

from evermat.language import model
from evermat.language.builtins import Type
from evermat.language.patterns.triples import TRIPLE
from evermat.language.terms import SAME_AS

EQUALITY_PRAGMA = "equality"  # the name of the pragma
EQUALITY_AUTO = "auto"
REWRITE, AXIOMATISE, EQUALITY_OFF = EQUALITIES = ("rewrite", "axiomatise", "off")

_NAME_COLUMN, _TERM_COLUMN, _NORMAL_COLUMN = (
    model.Column(name, Type.TERM, "term") for name in ("name", "term", "representative")
)
EQUALITY_CLASSES = model.Relation("owl:sameAs#classes", (_NAME_COLUMN, _NORMAL_COLUMN), hidden=True, origin=SAME_AS)
TERM_NAMES = model.Relation("owl:sameAs#names", (_TERM_COLUMN, _NAME_COLUMN), hidden=True, origin=SAME_AS)

Normal: TypeAlias = Callable[[str], str]
"""The representative of a term."""

_T = TypeVar("_T", bound=model.Expression | model.Term)


def rewritten_columns(relation: model.Relation) -> tuple[int, ...]:
    """The columns in which equal terms may stand for each other."""
    if relation.name in (EQUALITY_CLASSES.name, TERM_NAMES.name):
        return (0,) if relation.name == TERM_NAMES.name else ()
    return tuple(i for i, type_ in enumerate(relation.types) if type_ is Type.TERM)


def equality_of(relations: Mapping[str, model.Relation]) -> model.Relation | None:
    """The relation whose facts say that terms are equal: owl:sameAs, or that of all triples; None if there is neither."""
    return relations.get(TRIPLE) or relations.get(SAME_AS)


def normal_rule(rule: model.Rule, normal: Normal) -> model.Rule:
    """The rule with representatives in place of its terms; itself if it is in normal form already."""

    def term(thing: _T) -> _T:
        if isinstance(thing, model.Constant) and thing.type is Type.TERM:
            found = normal(str(thing.value))
            return thing if found == thing.value else replace(thing, value=found)
        return thing

    def literal(thing: model.Literal) -> model.Literal:
        match thing:
            case model.Atom(_, terms):
                found = tuple(map(term, terms))
                return thing if found == terms else replace(thing, terms=found)
            case model.Negation(atom):
                within = literal(atom)
                return thing if within is atom or not isinstance(within, model.Atom) else model.Negation(within)
            case model.Test("=", left, right) if is_thing(left) or is_thing(right):
                return replace(thing, left=term(left), right=term(right))
            case model.Aggregation(alternatives=bodies):
                return replace(thing, alternatives=tuple(tuple(map(literal, body)) for body in bodies))
        return thing  # all other tests are about names

    head, body = literal(rule.head), tuple(map(literal, rule.body))
    aggregate = rule.aggregate and literal(rule.aggregate)
    assert isinstance(head, model.Atom)
    assert aggregate is None or isinstance(aggregate, model.Aggregation)
    if (head, body, aggregate) == (rule.head, rule.body, rule.aggregate):
        return rule
    return replace(rule, head=head, body=body, aggregate=aggregate)


def equated(rule: model.Rule) -> frozenset[model.Variable]:
    """The two variables that a rule makes equal, if it does."""
    match rule.head:
        case model.Atom(relation, (model.Variable() as left, model.Variable() as right)) if relation.name == SAME_AS:
            return frozenset((left, right))
        case model.Atom(
            relation, (model.Variable() as left, model.Constant(value=value), model.Variable() as right)
        ) if relation.name == TRIPLE and value == SAME_AS:
            return frozenset((left, right))
    return frozenset()


def asks_whether_different(literal: model.Literal, pair: frozenset[model.Variable]) -> bool:
    """Whether a literal is the question whether two terms, which a rule makes equal, are different."""
    return isinstance(literal, model.Test) and literal.operator == "!=" and {literal.left, literal.right} == pair


def possible_rule(rule: model.Rule) -> model.Rule:
    """A rule whose instances over representatives are those that it has over names: it does not ask whether what it makes equal is different.

    Two names of one thing are different, but the thing is not different from itself.
    """
    pair = equated(rule)
    body = tuple(literal for literal in rule.body if not pair or not asks_whether_different(literal, pair))
    return rule if body == rule.body else replace(rule, body=body)


_NAME = "'name"


def name_of(variable: model.Variable) -> model.Variable:
    """The variable for a name of what a variable stands for."""
    return model.Variable(variable.name + _NAME, Type.TERM)


def is_thing(expression: model.Expression) -> bool:
    """Whether it is a variable that stands for a thing, and not for a name of one."""
    return isinstance(expression, model.Variable) and not expression.name.endswith(_NAME)


def terms_of(rule: model.Rule) -> set[str]:
    """The constant terms of a rule that are rewritten."""
    found: set[str] = set()

    def note(term: str) -> str:
        found.add(term)
        return term

    normal_rule(rule, note)
    return found
