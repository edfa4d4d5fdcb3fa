"""Unions: relations into which rules only copy others.

    location(x, y) :- within(x, y).
    location(x, y) :- near(x, y).

The sources are of lower strata. Other rules may derive into such a relation as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evermat.language.model import Atom, Rule, Variable


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """A relation, the relations whose facts are also its facts, and the rules that say so."""

    relation: str
    sources: tuple[str, ...]
    rules: tuple[Rule, ...]


def find_unions(nonrecursive: Iterable[Rule]) -> tuple[Union, ...]:
    """The unions among the nonrecursive rules of a stratum, in the order of their first rules."""
    copies: dict[str, list[Rule]] = {}
    for rule in nonrecursive:
        if _copies(rule):
            copies.setdefault(rule.head.relation.name, []).append(rule)
    return tuple(
        Union(name, tuple(dict.fromkeys(_source(rule).relation.name for rule in rules)), tuple(rules))
        for name, rules in copies.items()
    )


def _copies(rule: Rule) -> bool:
    """Whether a rule copies the facts of one relation as they are."""
    terms = rule.head.terms
    return (
        rule.aggregate is None
        and len(rule.body) == 1
        and isinstance(rule.body[0], Atom)
        and rule.body[0].terms == terms
        and all(isinstance(term, Variable) for term in terms)
        and len(set(terms)) == len(terms) > 0
    )


def _source(rule: Rule) -> Atom:
    source = rule.body[0]
    assert isinstance(source, Atom)
    return source
