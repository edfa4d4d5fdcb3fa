"""The axioms of a graph, in functional syntax's terms; what is malformed is listed beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from evermat.owl import vocabulary as vocab
from evermat.owl.ontology.expressions import Named, Namer, Property, Range, Reader, is_range, written
from evermat.owl.ontology.graph import MalformedError
from evermat.owl.ontology.swrl import read_rule
from evermat.owl.vocabulary import is_blank, is_built_in, is_iri, owl

_IN_ORDER = """
    SubClassOf EquivalentClasses DisjointClasses DisjointUnion
    SubObjectPropertyOf SubDataPropertyOf EquivalentObjectProperties EquivalentDataProperties InverseObjectProperties
    ObjectPropertyDomain DataPropertyDomain ObjectPropertyRange DataPropertyRange
    SymmetricObjectProperty TransitiveObjectProperty ReflexiveObjectProperty
    FunctionalObjectProperty FunctionalDataProperty
    InverseFunctionalObjectProperty InverseFunctionalDataProperty HasKey
    IrreflexiveObjectProperty AsymmetricObjectProperty DisjointObjectProperties DisjointDataProperties
    ClassAssertion NegativeObjectPropertyAssertion NegativeDataPropertyAssertion DifferentIndividuals
    DatatypeDefinition DLSafeRule
"""
KINDS = tuple(_IN_ORDER.split())  # as rules stand in a program
_ANY_ORDER = {kind for kind in KINDS if kind.startswith(("Equivalent", "Disjoint", "Different"))} - {"DisjointUnion"}
_TYPES = {
    vocab.ALL_DISJOINT_CLASSES: "DisjointClasses",
    vocab.ALL_DISJOINT_PROPERTIES: "DisjointObjectProperties",
    vocab.ALL_DIFFERENT: "DifferentIndividuals",
    vocab.NEGATIVE_ASSERTION: "NegativeObjectPropertyAssertion",
    vocab.RULE: "DLSafeRule",
    **{type_: f"{name}ObjectProperty" for type_, name in vocab.CHARACTERISTICS.items()},
}
_SUB, _EQUIVALENT, _DISJOINT = "Sub{}PropertyOf", "Equivalent{}Properties", "Disjoint{}Properties"
_ORDER = {kind: position for position, kind in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class Axiom:
    """An axiom: its name in functional syntax, and what it is about: expressions, properties, chains of them, terms."""

    kind: str
    parts: tuple[Any, ...]

    def text(self, name: Namer) -> str:
        if self.kind == "HasKey":
            class_, *keys = self.parts
            split = [[k for k in keys if isinstance(k, Property) and k.data == data] for data in (False, True)]
            lists = [written(tuple(part), name) for part in split]
            return f"HasKey({written(class_, name)} {' '.join(lists)})"
        if self.kind.startswith("Sub") and isinstance(self.parts[0], tuple):
            chain = written(self.parts[0], name)
            return f"SubObjectPropertyOf(ObjectPropertyChain{chain} {written(self.parts[1], name)})"
        if self.kind == "DLSafeRule":
            body, head = (" ".join(atom.text(name) for atom in atoms) for atoms in self.parts)
            return f"DLSafeRule(Body({body}) Head({head}))"
        return f"{self.kind}{written(self.parts, name)}"  # with its parentheses


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that should have been an axiom: its name, the nodes that it is about, and what is wrong with it."""

    kind: str
    nodes: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Axioms:
    """What a graph says."""

    axioms: tuple[Axiom, ...]
    faults: tuple[Fault, ...]
    definitions: dict[str, Range]  # of datatypes
    equality: bool  # whether it says that individuals are the same, or different
    nothing: bool  # whether it mentions owl:Nothing


def read_axioms(reader: Reader, name: Namer) -> Axioms:
    """All axioms of a graph, each once, sorted by kind and text; assertions that are plain facts are not among them."""
    reading = _Reading(reader)
    found: dict[tuple[int, str], Axiom] = {}
    for axiom in reading.read():
        whole = Axiom(axiom.kind, _sorted(axiom.parts, name)) if axiom.kind in _ANY_ORDER else axiom
        found.setdefault((_ORDER[axiom.kind], whole.text(name)), whole)
    graph = reader.graph
    return Axioms(
        tuple(found[key] for key in sorted(found)),
        tuple(dict.fromkeys(reading.faults)),
        reading.definitions,
        equality=bool(graph.pairs(vocab.SAME) or graph.pairs(vocab.DIFFERENT)),
        nothing=any(class_ == vocab.NOTHING for _, class_ in graph.pairs(vocab.TYPE)),
    )


def _sorted(parts: tuple[Any, ...], name: Namer) -> tuple[Any, ...]:
    """Parts whose order says nothing: names first, then by their text."""
    return tuple(sorted(parts, key=lambda part: (not isinstance(part, Named), written(part, name))))


class _Reading:
    """Goes through a graph, vocabulary by vocabulary."""

    def __init__(self, reader: Reader) -> None:
        self.reader, self.graph, self.entities = reader, reader.graph, reader.entities
        self.faults: list[Fault] = []
        self.definitions: dict[str, Range] = {}

    def read(self) -> Iterator[Axiom]:
        """All axioms, in no particular order."""
        pairs: list[tuple[str, str, Callable[[str, str], Axiom | None]]] = [
            (vocab.SUB_CLASS, "SubClassOf", self._sub_class),
            (vocab.EQUIVALENT_CLASS, "EquivalentClasses", self._equivalent),
            (owl("disjointWith"), "DisjointClasses", self._disjoint),
            (owl("disjointUnionOf"), "DisjointUnion", self._disjoint_union),
            (owl("hasKey"), "HasKey", self._key),
            (vocab.SUB_PROPERTY, "SubObjectPropertyOf", partial(self._about_properties, _SUB)),
            (owl("propertyChainAxiom"), "SubObjectPropertyOf", self._chain),
            (vocab.EQUIVALENT_PROPERTY, "EquivalentObjectProperties", partial(self._about_properties, _EQUIVALENT)),
            (vocab.INVERSE, "InverseObjectProperties", self._inverse),
            (owl("propertyDisjointWith"), "DisjointObjectProperties", partial(self._about_properties, _DISJOINT)),
            (vocab.DOMAIN, "ObjectPropertyDomain", self._domain),
            (vocab.RANGE, "ObjectPropertyRange", self._range),
        ]
        for property_, kind, read in pairs:
            for subject, value in self.graph.pairs(property_):
                yield from self._tried(kind, read, subject, value)
        for node, type_ in self.graph.pairs(vocab.TYPE):
            if is_blank(type_) and self.reader.described(type_):
                yield from self._tried("ClassAssertion", self._assertion, type_, node)
            elif type_ in _TYPES:
                yield from self._tried(_TYPES[type_], partial(self._type, type_), node)
        for way in self.reader.ways:
            for node, _ in self.graph.pairs(way):
                if is_iri(node):
                    yield from self._tried("EquivalentClasses", partial(self._defined, way), node)

    def _tried(self, kind: str, read: Callable[..., Axiom | None], *nodes: str) -> Iterator[Axiom]:
        """An axiom, or a fault where its parts are malformed."""
        try:
            axiom = read(*nodes)
        except MalformedError as error:
            self.faults.append(Fault(kind, nodes, str(error)))
        else:
            if axiom is not None:
                yield axiom

    # --- classes ---

    def _is_range(self, node: str) -> bool:
        return self.entities.is_data_range(self.graph, node)

    def _sub_class(self, sub: str, super_: str) -> Axiom:
        if self._is_range(sub) and self._is_range(super_):
            raise MalformedError("datatypes are not relations")
        return Axiom("SubClassOf", (self.reader.class_(sub), self.reader.class_(super_)))

    def _equivalent(self, one: str, other: str) -> Axiom | None:
        if self._is_range(one) or self._is_range(other):
            name, node = (other, one) if is_blank(one) else (one, other)
            if not is_iri(name) or is_built_in(name):
                raise MalformedError("this does not define a datatype")
            self.definitions.setdefault(name, self.reader.range(node))
            return None
        return Axiom("EquivalentClasses", (self.reader.class_(one), self.reader.class_(other)))

    def _defined(self, way: str, node: str) -> Axiom | None:
        """A class that has both a name and a description is equivalent to what is described."""
        found = self.reader.description(node, way)
        if is_range(found):
            self.definitions.setdefault(node, found)  # type: ignore[arg-type]
            return None
        return Axiom("EquivalentClasses", (Named(node), found))

    def _disjoint(self, *nodes: str) -> Axiom:
        return Axiom("DisjointClasses", tuple(map(self.reader.class_, nodes)))

    def _disjoint_union(self, node: str, head: str) -> Axiom:
        parts = [self.reader.class_(member) for member in self.graph.members(head)]
        return Axiom("DisjointUnion", (self.reader.class_(node), *parts))

    def _key(self, node: str, head: str) -> Axiom:
        keys = [self.reader.property_of(member) for member in self.graph.members(head)]
        if not keys:
            raise MalformedError("the key has no properties")
        return Axiom("HasKey", (self.reader.class_(node), *keys))

    # --- properties: what is said of annotations has no meaning ---

    def _about_properties(self, kind: str, *nodes: str) -> Axiom | None:
        if any(node in self.entities.annotations for node in nodes):
            return None
        properties = tuple(self.reader.property_of(node) for node in nodes)
        return Axiom(kind.format("Data" if any(p.data for p in properties) else "Object"), properties)

    def _chain(self, super_: str, head: str) -> Axiom:
        links = tuple(self.reader.property_of(member) for member in self.graph.members(head))
        if not links:
            raise MalformedError("the chain has no properties")
        return Axiom("SubObjectPropertyOf", (links, self.reader.property_of(super_)))

    def _inverse(self, one: str, other: str) -> Axiom | None:
        if is_blank(one):  # this describes a property
            return None
        return Axiom("InverseObjectProperties", (self.reader.property_of(one), self.reader.property_of(other)))

    def _domain(self, node: str, class_: str) -> Axiom | None:
        if node in self.entities.annotations:
            return None
        property_ = self.reader.property_of(node)
        return Axiom(f"{'Data' if property_.data else 'Object'}PropertyDomain", (property_, self.reader.class_(class_)))

    def _range(self, node: str, class_: str) -> Axiom | None:
        if node in self.entities.annotations:
            return None
        property_, found = self.reader.property_of(node), self.reader.expression(class_)
        return Axiom(f"{'Data' if is_range(found) else 'Object'}PropertyRange", (property_, found))

    def _characteristic(self, name: str, node: str) -> Axiom | None:
        if node in self.entities.annotations:
            return None
        property_ = self.reader.property_of(node)
        side = "Data" if property_.data and name.endswith("Functional") else "Object"
        return Axiom(f"{name}{side}Property", (property_,))

    # --- what a type says ---

    def _assertion(self, class_: str, node: str) -> Axiom:
        return Axiom("ClassAssertion", (self.reader.class_(class_), node))

    def _type(self, type_: str, node: str) -> Axiom | None:
        if name := vocab.CHARACTERISTICS.get(type_):
            return self._characteristic(name, node)
        match type_:
            case vocab.ALL_DISJOINT_CLASSES:
                return self._disjoint(*self._members(node))
            case vocab.ALL_DISJOINT_PROPERTIES:
                return self._about_properties(_DISJOINT, *self._members(node))
            case vocab.ALL_DIFFERENT:
                return Axiom("DifferentIndividuals", tuple(self._members(node)))
            case vocab.NEGATIVE_ASSERTION:
                return self._negative(node)
            case vocab.RULE:
                return Axiom("DLSafeRule", read_rule(self.reader, node))
        return None

    def _members(self, node: str) -> list[str]:
        heads = [head for key in ("members", "distinctMembers") for head in self.graph.values(node, owl(key))]
        if len(heads) != 1:
            raise MalformedError(f"{node} has {'no list' if not heads else 'several lists'} of members")
        return self.graph.members(heads[0])

    def _negative(self, node: str) -> Axiom:
        source = self.graph.value(node, owl("sourceIndividual"))
        property_ = self.reader.property_of(self.graph.value(node, owl("assertionProperty")))
        data = bool(self.graph.values(node, owl("targetValue")))
        target = self.graph.value(node, owl("targetValue" if data else "targetIndividual"))
        return Axiom(f"Negative{'Data' if data else 'Object'}PropertyAssertion", (property_, source, target))
