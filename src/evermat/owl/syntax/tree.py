"""Ontologies as trees: what functional syntax and OWL/XML have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from evermat.core import DataError, Problem, Source, Span
from evermat.core import error_catalogue as errors
from evermat.owl.vocabulary import PREFIXES

DEEPEST = 200  # levels of expressions within expressions


@dataclass(slots=True)
class Leaf:
    """An RDF term, or a number, and where it stands."""

    text: str
    at: int

    @property
    def is_number(self) -> bool:
        return self.text.isdigit()


@dataclass(slots=True)
class Tree:
    """`name(parts)`, and where it stands; lists without a name have an empty one."""

    name: str
    at: int
    parts: list[Tree | Leaf] = field(default_factory=list)


@dataclass(slots=True)
class Document:
    """An ontology: its IRIs (its own and its version's), its prefixes, and all that is in it."""

    iris: list[str]
    prefixes: list[tuple[str, str]]
    statements: list[Tree]


_IRI = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*>")


class NotAnOntologyError(Exception):
    """What is wrong with a text; `args` are what, and the place of the character."""


def failed(error: NotAnOntologyError, path: str, text: str, form: str) -> DataError:
    """The error that users see."""
    why, at = error.args
    place = min(at, max(len(text) - 1, 0))
    return DataError(
        Problem(errors.BAD_ONTOLOGY, {"format": form, "why": why}, Source(path, text), Span(place, place + 1))
    )


def checked(iri: str, at: int) -> str:
    """An IRI, if it is one.

    Raises:
        NotAnOntologyError: it is not absolute, or has characters that no IRI has.
    """
    if _IRI.fullmatch(iri) is None:
        raise NotAnOntologyError(f"`{iri[1:-1]}` is not an absolute IRI", at)
    return iri


def expanded(name: str, prefixes: Mapping[str, str], at: int) -> str:
    """The IRI of a prefixed name, as a term.

    Raises:
        NotAnOntologyError: its prefix is not declared, or it is not an absolute IRI.
    """
    prefix, _, local = name.partition(":")
    namespace = prefixes.get(prefix, PREFIXES.get(prefix))
    if namespace is None:
        raise NotAnOntologyError(f"the prefix `{prefix}:` is not declared", at)
    return checked(f"<{namespace}{local}>", at)
