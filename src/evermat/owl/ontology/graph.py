"""An RDF graph in memory, as ontologies are read from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evermat.owl.vocabulary import FIRST, NIL, REST

Triple = tuple[str, str, str]


class MalformedError(Exception):
    """Something in a graph that describes nothing of OWL; `args` say what."""


class Graph:
    """Triples, found by subject and by property, always in the order in which they came; each is there once."""

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        self._subjects: dict[str, dict[str, list[str]]] = {}
        self._properties: dict[str, list[tuple[str, str]]] = {}
        self._seen = dict.fromkeys(triples)
        for subject, property_, value in self._seen:
            self._subjects.setdefault(subject, {}).setdefault(property_, []).append(value)
            self._properties.setdefault(property_, []).append((subject, value))

    def __contains__(self, triple: Triple) -> bool:
        return triple in self._seen

    def __iter__(self) -> Iterator[Triple]:
        for subject, about in self._subjects.items():
            for property_, values in about.items():
                for value in values:
                    yield subject, property_, value

    @property
    def properties(self) -> Iterable[str]:
        return self._properties.keys()

    def pairs(self, property_: str) -> list[tuple[str, str]]:
        """The subjects and objects of a property."""
        return self._properties.get(property_, [])

    def about(self, subject: str) -> dict[str, list[str]]:
        """The properties of a subject with their values."""
        return self._subjects.get(subject, {})

    def values(self, subject: str, property_: str) -> list[str]:
        return self.about(subject).get(property_, [])

    def value(self, subject: str, property_: str) -> str:
        """The only value that a subject has for a property.

        Raises:
            MalformedError: it has none, or several.
        """
        found = self.values(subject, property_)
        if len(found) != 1:
            what = "no" if not found else "more than one"
            raise MalformedError(f"there is {what} {_local(property_)}")
        return found[0]

    def members(self, head: str) -> list[str]:
        """The members of a list.

        Raises:
            MalformedError: it does not end, or an element has not one value and one rest.
        """
        members: list[str] = []
        passed: set[str] = set()
        while head != NIL:
            if head in passed:
                raise MalformedError("the list has a loop")
            passed.add(head)
            first, rest = self.values(head, FIRST), self.values(head, REST)
            if len(first) != 1 or len(rest) != 1:
                how = "does not end" if first and not rest else "is broken"
                raise MalformedError(f"the list {how} after {len(members) + (len(first) == 1)} members")
            members += first
            head = rest[0]
        return members


def _local(iri: str) -> str:
    """The last part of an IRI, as people say it."""
    return iri.rstrip(">").replace("/", "#").rpartition("#")[2]
