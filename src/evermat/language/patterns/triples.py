"""Triples in a program that has relations for classes and properties: which of them an atom is about.

`triple(s, p, o)` and `rdf:type(x, c)` are about all of them. Such an atom becomes alternatives, one for each class and property, with
its name as the value of the variable, and one for all other triples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evermat.core import Span
from evermat.language.builtins import Type
from evermat.language.model import Relation
from evermat.language.syntax.ast import And, Atom, Compare, Expression, Formula, Literal, Name, Or, Wildcard
from evermat.language.terms import RDF_TYPE

TRIPLE, OTHER_TRIPLE = "triple", "other_triple"
COLUMNS = ("s", "p", "o")


def triples_of(relations: Mapping[str, Relation]) -> str:
    """The relation of all triples, or of those that have no other; empty if there is none."""
    if TRIPLE in relations:
        return TRIPLE
    other = relations.get(OTHER_TRIPLE)
    return OTHER_TRIPLE if other is not None and other.types == (Type.TERM,) * len(COLUMNS) else ""


def class_of(atom: Atom) -> Name | None:
    """The class C of an atom `rdf:type(x, C)`."""
    match atom.arguments:
        case [_, Literal("term", str() as name, span)] if atom.name.text == RDF_TYPE and name.startswith("<"):
            return Name(name, span)
    return None


def is_general(atom: Atom, relations: Mapping[str, Relation]) -> bool:
    """Whether an atom is about triples whose class or property is not known."""
    name, found = atom.name.text, len(atom.arguments)
    if name == RDF_TYPE and found == 2:
        return name not in relations and class_of(atom) is None
    return name == TRIPLE and found == len(COLUMNS)


def spread(atom: Atom, relations: Mapping[str, Relation]) -> Formula:
    """A general atom over the relations of a program that has `other_triple`."""
    subject, *rest = atom.arguments
    property_ = rest[0] if len(rest) == 2 else Literal("term", RDF_TYPE, atom.name.span)
    return Or(list(_alternatives(subject, property_, rest[-1], relations, atom.span)))


def _alternatives(
    subject: Expression, property_: Expression, value: Expression, relations: Mapping[str, Relation], span: Span
) -> Iterator[Formula]:
    def is_(expression: Expression, name: str) -> list[Formula]:
        if isinstance(expression, Wildcard):
            return []
        return [Compare("=", expression, Literal("term", name, span), span)]

    yield Atom(Name(OTHER_TRIPLE, span), [subject, property_, value], span)
    for name, relation in relations.items():
        if not name.startswith("<") or relation.hidden or any(type_ is not Type.TERM for type_ in relation.types):
            continue
        if relation.arity == 1 and _may_be(property_, RDF_TYPE) and _may_be(value, name):
            yield And([Atom(Name(name, span), [subject], span), *is_(property_, RDF_TYPE), *is_(value, name)])
        elif relation.arity == 2 and _may_be(property_, name):
            yield And([Atom(Name(name, span), [subject, value], span), *is_(property_, name)])


def _may_be(expression: Expression, name: str) -> bool:
    """Whether an expression may have a term as its value."""
    return not isinstance(expression, Literal) or expression.value == name
