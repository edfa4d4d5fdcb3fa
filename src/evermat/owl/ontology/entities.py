"""Which names of a graph are datatypes, and of what kind its properties are: as declared, else as used."""

from __future__ import annotations

from collections.abc import Iterator

from evermat.owl import vocabulary as vocab
from evermat.owl.ontology.graph import Graph
from evermat.owl.vocabulary import is_built_in, is_iri, is_literal, owl, rdf

_DATATYPES = frozenset(
    {vocab.LITERAL, owl("real"), owl("rational")}
    | {rdf(name) for name in ("PlainLiteral", "langString", "dirLangString", "XMLLiteral", "HTML", "JSON")}
)
_FILLERS = [owl(name) for name in ("someValuesFrom", "allValuesFrom", "hasValue", "onDataRange")]
_DATA_RANGES = [owl(name) for name in ("onDatatype", "datatypeComplementOf")]


class Entities:
    """The kinds of names in a graph."""

    def __init__(self, graph: Graph) -> None:
        types: dict[str, set[str]] = {}
        for subject, type_ in graph.pairs(vocab.TYPE):
            types.setdefault(type_, set()).add(subject)
        self._datatypes = {name for type_ in vocab.DATATYPE_TYPES for name in types.get(type_, ())}
        self._classes = {name for type_ in vocab.CLASS_TYPES for name in types.get(type_, ())}
        objects = {name for type_ in vocab.OBJECT_TYPES for name in types.get(type_, ())}
        data = set(types.get(owl("DatatypeProperty"), ()))
        annotations = types.get(owl("AnnotationProperty"), set())
        self.annotations = {name for name in annotations if name not in objects and name not in data}
        self.literals_only = frozenset(data - objects)
        self.individuals_only = frozenset(objects - data)
        self.data = self._with_data(graph, data, objects | self.annotations)  # properties whose values are literals

    def is_datatype(self, name: str) -> bool:
        declared = name in self._datatypes and name not in self._classes
        return declared or name in _DATATYPES or name.startswith(f"<{vocab.XSD}")

    def is_data_range(self, graph: Graph, node: str) -> bool:
        """Whether a node names or describes a set of literals."""
        if is_iri(node):
            return self.is_datatype(node)
        if node in self._datatypes:
            return True
        about = graph.about(node)
        if any(property_ in about for property_ in _DATA_RANGES):
            return True
        return any(
            is_literal(value) for head in about.get(owl("oneOf"), ()) for value in graph.values(head, rdf("first"))
        )

    def _with_data(self, graph: Graph, declared: set[str], others: set[str]) -> set[str]:
        """The properties that are declared to have literals, or are used with literals, and those that stand beside one."""
        found = declared | {name for name in _used(graph, self) if name not in others}
        beside: dict[str, set[str]] = {}
        for relation in (vocab.SUB_PROPERTY, vocab.EQUIVALENT_PROPERTY):
            for one, other in graph.pairs(relation):
                beside.setdefault(one, set()).add(other)
                beside.setdefault(other, set()).add(one)
        reached = sorted(found)
        while reached:
            for name in beside.get(reached.pop(), ()):
                if name not in found and name not in others:
                    found.add(name)
                    reached.append(name)
        return found


def _used(graph: Graph, entities: Entities) -> Iterator[str]:
    """The properties that are used with literals."""
    for property_, type_ in graph.pairs(vocab.RANGE):
        if entities.is_data_range(graph, type_):
            yield property_
    for restriction, property_ in graph.pairs(owl("onProperty")):
        fillers = [filler for how in _FILLERS for filler in graph.values(restriction, how)]
        if any(is_literal(filler) or entities.is_data_range(graph, filler) for filler in fillers):
            yield property_
    for property_ in graph.properties:
        if not is_built_in(property_) and any(is_literal(value) for _, value in graph.pairs(property_)):
            yield property_
