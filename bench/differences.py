"""Which triples one file of N-Triples has and another has not, by kind. Blank nodes are the same if they say the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

RDF, RDFS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#"
OWL, XSD = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2001/XMLSchema#"
SHORT = {RDF: "rdf:", RDFS: "rdfs:", OWL: "owl:", XSD: "xsd:"}
Terms = tuple[str, str, str]

TYPE, THING, NOTHING, RESOURCE = "rdf:type", "owl:Thing", "owl:Nothing", "rdfs:Resource"
HIERARCHIES = frozenset({"rdfs:subClassOf", "rdfs:subPropertyOf", "owl:equivalentClass", "owl:equivalentProperty"})
SCHEMA = HIERARCHIES | {"rdfs:domain", "rdfs:range", "owl:inverseOf", "owl:disjointWith"}
STRUCTURE = frozenset(  # what makes a class expression or a list what it is
    [f"owl:{name}" for name in ("onProperty", "someValuesFrom", "allValuesFrom", "hasValue", "maxCardinality")]
    + [f"owl:{name}" for name in ("intersectionOf", "unionOf", "complementOf", "oneOf")]
    + ["rdf:first", "rdf:rest"]
)


def shortened(term: str) -> str:
    """A term of the vocabularies by its usual name; any other as it is. A string needs no datatype."""
    if term.startswith("<"):
        space, hash_, name = term[1:-1].partition("#")
        prefix = SHORT.get(space + hash_)
        return term if prefix is None else prefix + name
    return term.removesuffix(f"^^<{XSD}string>") if term.startswith('"') else term


def terms(line: str) -> Terms:
    """A line of N-Triples taken apart."""
    subject, property_, value = line.rstrip().removesuffix(".").rstrip().split(" ", 2)
    return shortened(subject), shortened(property_), shortened(value)


def blank_names(lines: Iterable[str]) -> dict[str, str]:
    """Names for blank nodes that say what they are, so that those of two files can be compared."""
    parts: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        if line.startswith("_:"):
            subject, property_, value = terms(line)
            if property_ in STRUCTURE:
                parts.setdefault(subject, []).append((property_, value))

    def name(node: str, above: frozenset[str] = frozenset()) -> str:
        if node in above or not node.startswith("_:"):
            return node
        inner = [f"{property_} {name(value, above | {node})}" for property_, value in parts.get(node, [])]
        return f"_:[{'; '.join(sorted(inner))}]"

    return {node: name(node) for node in parts}


def triples_in(path: Path) -> Iterator[Terms]:
    """The triples of a file, their blank nodes named by what they say."""
    with path.open(encoding="utf-8") as file:
        names = blank_names(file)
    with path.open(encoding="utf-8") as file:
        for line in file:
            subject, property_, value = terms(line)
            if "_:" in line:
                subject, value = names.get(subject, subject), names.get(value, value)
            yield subject, property_, value


def kind(triple: Terms) -> tuple[str, str]:
    """Why there is such a triple, as far as its form tells, and what it is about."""
    subject, property_, value = triple
    is_word = subject.startswith(tuple(SHORT.values()))
    if subject.startswith('"'):
        return "a literal as subject", property_
    if property_ == "owl:sameAs" and subject == value:
        return "everything is the same as itself", property_
    if property_ == TYPE and value in (THING, RESOURCE):
        return "everything is a thing", value
    if is_word or (property_ == "owl:sameAs" and value.startswith(tuple(SHORT.values()))):
        return "about the vocabularies themselves", property_
    if property_ in HIERARCHIES and subject == value:
        return "everything is below itself", property_
    if property_ in HIERARCHIES and value in (THING, NOTHING, RESOURCE):
        return "everything is below the top", property_
    if property_ == TYPE and value.startswith(tuple(SHORT.values())):
        return "what names stand for", value
    if property_ == TYPE and value.startswith("_:"):
        return "instances of classes without a name", TYPE
    if subject.startswith("_:") or value.startswith("_:"):
        return "about classes without a name", property_
    if property_ in SCHEMA:
        return "axioms that follow from axioms", property_
    return "facts", value if property_ == TYPE else property_


@dataclass
class Kind:
    """Triples of a kind that only one of two has."""

    count: int = 0
    example: str = ""

    def add(self, triple: Terms) -> None:
        """Counts one; the first in the order of text is the example."""
        self.count += 1
        text = " ".join(triple)
        self.example = min(self.example or text, text)


Kinds = dict[tuple[str, str], Kind]


def compare(theirs: Path, ours: Path) -> tuple[Kinds, Kinds, int]:
    """What only they have, what only we have, by kind; and how many triples both have."""
    left = set(triples_in(theirs))
    only_theirs: Kinds = {}
    only_ours: Kinds = {}
    common = 0
    for triple in triples_in(ours):
        if triple in left:
            left.remove(triple)
            common += 1
        else:
            only_ours.setdefault(kind(triple), Kind()).add(triple)
    for triple in left:
        only_theirs.setdefault(kind(triple), Kind()).add(triple)
    return only_theirs, only_ours, common
