"""Rules as they are translated from axioms.

A term is an RDF term in its N-Triples form, or a variable: a name that begins with a letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Member:
    """`term` belongs to the class `name`."""

    name: str
    term: str


@dataclass(frozen=True, slots=True)
class Link:
    """`subject` has `object` as a value of the property `name`."""

    name: str
    subject: str
    object: str


@dataclass(frozen=True, slots=True)
class Helper:
    """A fact of a relation that only the translation knows: `any_1(x)`."""

    name: str
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Equal:
    """Two terms are the same; in a head."""

    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Differ:
    """Two terms are not spelled alike; in a body."""

    left: str
    right: str


@dataclass(frozen=True, slots=True)
class DifferentValues:
    """Two terms are literals that are known to be of different values; in a body."""

    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Match:
    """The text of a term matches a pattern, or does not; in a body."""

    pattern: str
    term: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Inconsistent:
    """An axiom is violated; in a head."""

    axiom: str


Atom = Member | Link | Helper | Equal | Differ | DifferentValues | Match | Inconsistent
Body = tuple[Atom, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, the kind of the axiom that it comes from, and the axiom in functional syntax. A fact has no body."""

    head: Atom
    body: Body
    kind: str
    axiom: str


def is_variable(term: str) -> bool:
    """Whether a term is a variable."""
    return term[0].isalpha()


def terms_of(atom: Atom) -> Iterator[str]:
    """The terms of an atom."""
    match atom:
        case Member(_, term) | Match(_, term):
            yield term
        case Link(_, left, right) | Equal(left, right) | Differ(left, right) | DifferentValues(left, right):
            yield left
            yield right
        case Helper(_, terms):
            yield from terms


def substituted(atom: Any, terms: Mapping[str, str]) -> Any:
    """An atom with other terms for some of its own."""
    match atom:
        case Member(name, term):
            return Member(name, terms.get(term, term))
        case Match(_, term):
            return replace(atom, term=terms.get(term, term))
        case Link(name, subject, object_):
            return Link(name, terms.get(subject, subject), terms.get(object_, object_))
        case Equal(left, right) | Differ(left, right) | DifferentValues(left, right):
            return replace(atom, left=terms.get(left, left), right=terms.get(right, right))
        case Helper(name, inner):
            return Helper(name, tuple(terms.get(term, term) for term in inner))
    return atom
