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
    copies: dict[str, list[tuple[str, Rule]]] = {}
    for rule in nonrecursive:
        if (source := _copied(rule)) is not None:
            copies.setdefault(rule.head.relation.name, []).append((source, rule))
    return tuple(
        Union(name, tuple(dict.fromkeys(source for source, _ in found)), tuple(rule for _, rule in found))
        for name, found in copies.items()
    )


def _copied(rule: Rule) -> str | None:
    """The relation whose facts a rule copies as they are, if that is all it does."""
    match rule:
        case Rule(Atom(_, head), (Atom(source, terms),), aggregate=None):
            different = len({term for term in head if isinstance(term, Variable)}) == len(head) > 0
            return source.name if head == terms and different else None
    return None
