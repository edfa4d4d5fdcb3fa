"""How terms are written: with the prefixes of the ontology where the language can read that, else in full."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from evermat.owl.vocabulary import PREFIXES

_WELL_KNOWN = {
    **PREFIXES,
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
}
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_LOCAL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|[.](?=[A-Za-z0-9_-])|%[0-9A-Fa-f]{2})*")
_SPLIT = re.compile(r"[#/:](?=[^#/:]*$)")
_ENDING = re.compile(r"[.](?:owl|rdf|ttl|ofn|owx|xml|obo)$")
_SHARED = 2  # names that a namespace must have to get a prefix
_SHORT = 10  # letters of a prefix that is one word


class Names:
    """Writes terms, and remembers the prefixes that it used."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self.prefixes = dict(prefixes)
        self.used: set[str] = set()
        self._written: dict[str, str] = {}
        # The longest namespace that fits is the one. Of two prefixes for it, the first in alphabetical order.
        self._namespaces = {iri: name for name, iri in sorted(prefixes.items(), reverse=True)}
        self._lengths = sorted({len(iri) for iri in self._namespaces}, reverse=True)

    def __call__(self, term: str) -> str:
        """A term as it stands in a program, or in functional syntax."""
        if term.startswith('"'):
            if not term.endswith(">"):
                return term
            text, _, datatype = term.rpartition('"^^')
            return f'{text}"^^{self._iri(datatype)}'
        return self._iri(term) if term.startswith("<") else term

    def _iri(self, term: str) -> str:
        if (known := self._written.get(term)) is not None:
            if known:
                self.used.add(known.partition(":")[0])
            return known or term
        iri = term[1:-1]
        found = ""
        for length in self._lengths:
            prefix = self._namespaces.get(iri[:length])
            if prefix is not None and _LOCAL.fullmatch(iri, length):
                found = f"{prefix}:{iri[length:]}"
                self.used.add(prefix)
                break
        self._written[term] = found
        return found or term


def prefixes_for(declared: Iterable[tuple[str, str]], iris: Iterable[str]) -> dict[str, str]:
    """Prefixes for the names of an ontology: its own, well-known ones, and new ones for what is left."""
    found: dict[str, str] = {}
    taken: set[str] = set()  # namespaces
    unnamed: list[str] = []
    for name, namespace in declared:
        if not _NAMESPACE.fullmatch(namespace) or namespace in taken:
            continue
        if _PREFIX.fullmatch(name) and name not in found:
            found[name] = namespace
            taken.add(namespace)
        else:
            unnamed.append(namespace)
    for name, namespace in _WELL_KNOWN.items():
        if namespace not in taken and name not in found:
            found[name] = namespace
            taken.add(namespace)
    numbers: dict[str, int] = {}
    for namespace in dict.fromkeys([*unnamed, *_missing(sorted(set(iris)), found)]):
        if namespace not in taken:
            found[_new_name(namespace, found, numbers)] = namespace
            taken.add(namespace)
    return found


def _missing(iris: Iterable[str], prefixes: Mapping[str, str]) -> list[str]:
    """The namespaces of several names that no prefix covers."""
    names = Names(prefixes)
    counts: dict[str, int] = {}
    for iri in iris:
        if names(iri) != iri:
            continue
        split = _SPLIT.search(iri)
        if split is not None and _LOCAL.fullmatch(iri, split.end(), len(iri) - 1):
            namespace = iri[1 : split.end()]
            counts[namespace] = counts.get(namespace, 0) + 1
    return [namespace for namespace, count in counts.items() if count >= _SHARED]


def _new_name(namespace: str, taken: Mapping[str, str], numbers: dict[str, int]) -> str:
    """A prefix for a namespace: its last word, or the first letters of its last words, and a number if that is taken.

    The numbers below those in `numbers` are taken: namespaces of many files often have the same word.
    """
    path = namespace.split("://", maxsplit=1)[-1].rstrip("#/:")
    name = ""
    for part in reversed(path.split("/")):
        words = re.findall("[A-Za-z][A-Za-z0-9]*", _ENDING.sub("", part))
        if part == path.split("/")[0] and len(words) > 1:
            words = words[-2:-1]  # of a host, the name before the last
        if words:
            name = words[0].lower() if len(words) == 1 else "".join(word[0].lower() for word in words)
            break
    name = name[:_SHORT] or "ns"
    if name not in taken:
        return name
    number = numbers.get(name, 2)
    while f"{name}{number}" in taken:
        number += 1
    numbers[name] = number + 1
    return f"{name}{number}"
