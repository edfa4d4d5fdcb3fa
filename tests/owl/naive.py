"""The positive rules of OWL 2 RL, evaluated naively: every rule over all facts, until nothing is new.

Lists have at most three cells here. Nothing is derived that is trivial: `x sameAs x` only where x is the same as something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from evermat.owl.vocabulary import owl, rdf, rdfs
from tests.owl.graphs import Triple

NAMES = {
    **{name: rdf(name) for name in ("type", "first", "rest", "nil")},
    **{name: rdfs(name) for name in ("subClassOf", "subPropertyOf", "domain", "range")},
    **{name: owl(name) for name in ("sameAs", "inverseOf")},
    **{name: owl(f"{name}Property") for name in ("Functional", "InverseFunctional", "Symmetric", "Transitive")},
    "sameClass": owl("equivalentClass"),
    "sameProperty": owl("equivalentProperty"),
    "on": owl("onProperty"),
    "some": owl("someValuesFrom"),
    "all": owl("allValuesFrom"),
    "value": owl("hasValue"),
    "both": owl("intersectionOf"),
    "either": owl("unionOf"),
    "chain": owl("propertyChainAxiom"),
}
_TEXT = """
?p domain ?c, ?x ?p ?y -> ?x type ?c
?p range ?c, ?x ?p ?y -> ?y type ?c
?p type Functional, ?x ?p ?y, ?x ?p ?z, ?y != ?z -> ?y sameAs ?z
?p type InverseFunctional, ?y ?p ?x, ?z ?p ?x, ?y != ?z -> ?y sameAs ?z
?p type Symmetric, ?x ?p ?y -> ?y ?p ?x
?p type Transitive, ?x ?p ?y, ?y ?p ?z -> ?x ?p ?z
?p subPropertyOf ?q, ?x ?p ?y -> ?x ?q ?y
?p inverseOf ?q, ?x ?p ?y -> ?y ?q ?x
?p inverseOf ?q, ?x ?q ?y -> ?y ?p ?x
?p chain ?k, ?k first ?q, ?k rest ?l, ?l first ?r, ?l rest nil, ?x ?q ?y, ?y ?r ?z -> ?x ?p ?z
?p chain ?k, ?k first ?q, ?k rest ?l, ?l first ?r, ?l rest ?m, ?m first ?s, ?m rest nil, ?x ?q ?y, ?y ?r ?z, ?z ?s ?u -> ?x ?p ?u
?c some ?d, ?c on ?p, ?x ?p ?y, ?y type ?d -> ?x type ?c
?c all ?d, ?c on ?p, ?x type ?c, ?x ?p ?y -> ?y type ?d
?c value ?v, ?c on ?p, ?x type ?c -> ?x ?p ?v
?c value ?v, ?c on ?p, ?x ?p ?v -> ?x type ?c
?c both ?k, ?k first ?d, ?k rest ?l, ?l first ?e, ?l rest nil, ?x type ?d, ?x type ?e -> ?x type ?c
?c both ?k, ?k first ?d, ?k rest ?l, ?l first ?e, ?l rest ?m, ?m first ?f, ?m rest nil, ?x type ?d, ?x type ?e, ?x type ?f -> ?x type ?c
?c both ?k, ?k first ?d, ?k rest nil, ?x type ?d -> ?x type ?c
?p chain ?k, ?k first ?q, ?k rest nil, ?x ?q ?y -> ?x ?p ?y
?c both ?k, ?k first ?d -> ?c subClassOf ?d
?c both ?k, ?k rest ?l, ?l first ?d -> ?c subClassOf ?d
?c both ?k, ?k rest ?l, ?l rest ?m, ?m first ?d -> ?c subClassOf ?d
?c either ?k, ?k first ?d -> ?d subClassOf ?c
?c either ?k, ?k rest ?l, ?l first ?d -> ?d subClassOf ?c
?c either ?k, ?k rest ?l, ?l rest ?m, ?m first ?d -> ?d subClassOf ?c
?c subClassOf ?d, ?x type ?c -> ?x type ?d
?c subClassOf ?d, ?d subClassOf ?e -> ?c subClassOf ?e
?c sameClass ?d -> ?c subClassOf ?d
?c sameClass ?d -> ?d subClassOf ?c
?c subClassOf ?d, ?d subClassOf ?c -> ?c sameClass ?d
?p subPropertyOf ?q, ?q subPropertyOf ?r -> ?p subPropertyOf ?r
?p sameProperty ?q -> ?p subPropertyOf ?q
?p sameProperty ?q -> ?q subPropertyOf ?p
?p subPropertyOf ?q, ?q subPropertyOf ?p -> ?p sameProperty ?q
?p domain ?c, ?c subClassOf ?d -> ?p domain ?d
?p domain ?c, ?q subPropertyOf ?p -> ?q domain ?c
?p range ?c, ?c subClassOf ?d -> ?p range ?d
?p range ?c, ?q subPropertyOf ?p -> ?q range ?c
?c value ?v, ?c on ?p, ?p subPropertyOf ?q, ?d on ?q, ?d value ?v -> ?c subClassOf ?d
?c some ?a, ?c on ?p, ?a subClassOf ?b, ?d some ?b, ?d on ?p -> ?c subClassOf ?d
?c some ?a, ?c on ?p, ?p subPropertyOf ?q, ?d some ?a, ?d on ?q -> ?c subClassOf ?d
?c all ?a, ?c on ?p, ?a subClassOf ?b, ?d all ?b, ?d on ?p -> ?c subClassOf ?d
?c all ?a, ?c on ?p, ?p subPropertyOf ?q, ?d all ?a, ?d on ?q -> ?d subClassOf ?c
?x sameAs ?y -> ?y sameAs ?x
?x sameAs ?y, ?y sameAs ?z -> ?x sameAs ?z
?x sameAs ?y, ?x ?p ?z -> ?y ?p ?z
?x sameAs ?y, ?z ?x ?u -> ?z ?y ?u
?x sameAs ?y, ?z ?p ?x -> ?z ?p ?y
"""


def _rules() -> Iterator[tuple[list[Triple], Triple]]:
    """Bodies and heads; a test that two terms differ is a triple with `!=` in the middle."""
    for line in _TEXT.strip().splitlines():
        *body, head = [tuple(NAMES.get(word, word) for word in atom.split()) for atom in re.split(", | -> ", line)]
        yield body, head


_RULES = list(_rules())


def naive(explicit: Iterable[Triple]) -> set[Triple]:
    """All that the rules derive."""
    facts = set(explicit)
    while True:
        found = _Facts(facts)
        new = {_instance(head, known) for body, head in _RULES for known in found.bindings(body, {})}
        if new <= facts:
            return facts
        facts |= new


def _instance(atom: Triple, known: dict[str, str]) -> Triple:
    return tuple(known.get(term, term) for term in atom)


class _Facts:
    """Facts, found by any of their terms."""

    def __init__(self, facts: set[Triple]) -> None:
        self._all = frozenset(facts)
        self._by: dict[tuple[int, str], list[Triple]] = {}
        for fact, column in product(facts, range(3)):
            self._by.setdefault((column, fact[column]), []).append(fact)

    def bindings(self, body: list[Triple], known: dict[str, str]) -> Iterator[dict[str, str]]:
        """All ways to make a body true."""
        if not body:
            yield known
            return
        atom = _instance(body[0], known)
        if atom[1] == "!=":
            if atom[0] != atom[2]:
                yield from self.bindings(body[1:], known)
            return
        lists = [self._by.get((column, term), []) for column, term in enumerate(atom) if not term.startswith("?")]
        for fact in min(lists, key=len) if lists else self._all:
            more: dict[str, str] = {}
            pairs = zip(atom, fact, strict=True)
            if all(a == b or (a.startswith("?") and more.setdefault(a, b) == b) for a, b in pairs):
                yield from self.bindings(body[1:], known | more)
