"""Axioms in functional syntax as RDF triples, as the specification 'Mapping to RDF Graphs' of OWL 2 says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

from evermat.core import did_you_mean
from evermat.owl import vocabulary as vocab
from evermat.owl.ontology.graph import Triple
from evermat.owl.ontology.swrl import NAMES
from evermat.owl.syntax.tree import Document, Leaf, NotAnOntologyError, Tree
from evermat.owl.vocabulary import is_literal, owl, rdfs, swrl, xsd

_CLASS, _DATATYPE, _RESTRICTION = owl("Class"), rdfs("Datatype"), owl("Restriction")
_MANY = 1 << 30
# Constructors: the type of their node, their property, and whether that has a list for its value.
_BOOLEAN = {
    "ObjectIntersectionOf": (_CLASS, owl("intersectionOf"), True),
    "ObjectUnionOf": (_CLASS, owl("unionOf"), True),
    "ObjectComplementOf": (_CLASS, owl("complementOf"), False),
    "ObjectOneOf": (_CLASS, owl("oneOf"), True),
    "DataIntersectionOf": (_DATATYPE, owl("intersectionOf"), True),
    "DataUnionOf": (_DATATYPE, owl("unionOf"), True),
    "DataComplementOf": (_DATATYPE, owl("datatypeComplementOf"), False),
    "DataOneOf": (_DATATYPE, owl("oneOf"), True),
}
_RESTRICTIONS = {
    f"{side}{name}": owl(name[0].lower() + name[1:])
    for side in ("Object", "Data")
    for name in ("SomeValuesFrom", "AllValuesFrom", "HasValue")
}
_CARDINALITIES = {
    f"{side}{how}Cardinality": (how, side) for side in ("Object", "Data") for how in ("Min", "Max", "Exact")
}
# Axioms between two things.
_PAIRS = {
    "SubClassOf": vocab.SUB_CLASS,
    "SubDataPropertyOf": vocab.SUB_PROPERTY,
    "SubAnnotationPropertyOf": vocab.SUB_PROPERTY,
    "InverseObjectProperties": vocab.INVERSE,
    **{f"{side}PropertyDomain": vocab.DOMAIN for side in ("Object", "Data", "Annotation")},
    **{f"{side}PropertyRange": vocab.RANGE for side in ("Object", "Data", "Annotation")},
    "DatatypeDefinition": vocab.EQUIVALENT_CLASS,
}
# Axioms that are said of each and the next.
_CHAINS = {
    "EquivalentClasses": vocab.EQUIVALENT_CLASS,
    "EquivalentObjectProperties": vocab.EQUIVALENT_PROPERTY,
    "EquivalentDataProperties": vocab.EQUIVALENT_PROPERTY,
    "SameIndividual": vocab.SAME,
}
# Axioms about pairs if there are two, else about a list.
_LISTS = {
    "DisjointClasses": (owl("disjointWith"), owl("AllDisjointClasses")),
    "DisjointObjectProperties": (owl("propertyDisjointWith"), owl("AllDisjointProperties")),
    "DisjointDataProperties": (owl("propertyDisjointWith"), owl("AllDisjointProperties")),
    "DifferentIndividuals": (vocab.DIFFERENT, owl("AllDifferent")),
}
_TYPES = {
    f"{name}{side}Property": type_
    for type_, name in vocab.CHARACTERISTICS.items()
    for side in (("Object", "Data") if name == "Functional" else ("Object",))
}
_OTHERS = (
    *("Declaration", "SubObjectPropertyOf", "DisjointUnion", "HasKey", "ClassAssertion"),
    *("ObjectPropertyAssertion", "DataPropertyAssertion", "AnnotationAssertion"),
    *("NegativeObjectPropertyAssertion", "NegativeDataPropertyAssertion", "DLSafeRule"),
)
AXIOMS = (
    *_OTHERS,
    *_PAIRS,
    *_CHAINS,
    *_LISTS,
    *_TYPES,
)  # what statements are called; they never stand inside of others
_DECLARED = {
    "Class": _CLASS,
    "Datatype": _DATATYPE,
    "ObjectProperty": owl("ObjectProperty"),
    "DataProperty": owl("DatatypeProperty"),
    "AnnotationProperty": owl("AnnotationProperty"),
    "NamedIndividual": owl("NamedIndividual"),
}


Skip: TypeAlias = Callable[[NotAnOntologyError], None]
"""What is told of an axiom that is left out."""


def triples_of(document: Document, skip: Skip | None = None) -> list[Triple]:
    """The triples of an ontology; with `skip`, malformed axioms are left out."""
    mapping = _Mapping()
    ontology = document.iris[0] if document.iris else mapping.node()
    mapping.triples.append((ontology, vocab.TYPE, owl("Ontology")))
    if len(document.iris) > 1:
        mapping.triples.append((ontology, owl("versionIRI"), document.iris[1]))
    for statement in document.statements:
        before = len(mapping.triples)
        try:
            mapping.statement(ontology, statement)
        except NotAnOntologyError as error:
            if skip is None:
                raise
            del mapping.triples[before:]
            skip(error)
    return mapping.triples


class _Mapping:
    """Collects triples."""

    def __init__(self) -> None:
        self.triples: list[Triple] = []
        self._nodes = 0
        others = (
            *(self._declaration, self._sub_property, self._disjoint_union, self._key, self._class_assertion),
            *(self._assertion, self._assertion, self._assertion, self._negative, self._negative, self._rule),
        )
        self._others: dict[str, Callable[[Tree], Sequence[Triple]]] = dict(zip(_OTHERS, others, strict=True))

    def node(self) -> str:
        self._nodes += 1
        return f"_:g{self._nodes}"

    def _add(self, *triple: str) -> Triple:
        subject, property_, value = triple
        self.triples.append((subject, property_, value))
        return subject, property_, value

    def statement(self, ontology: str, tree: Tree) -> None:
        """Adds the triples of anything that may stand in an ontology."""
        if tree.name == "Import":
            self.triples.append((ontology, owl("imports"), self.terms(tree, 1, 1)[0]))
        elif tree.name == "Annotation":
            self.annotate(ontology, tree)
        else:
            self.axiom(tree)

    # --- axioms ---

    def axiom(self, tree: Tree) -> None:
        """Adds the triples of an axiom and of its annotations."""
        annotations = [part for part in tree.parts if isinstance(part, Tree) and part.name == "Annotation"]
        if annotations:
            tree = Tree(tree.name, tree.at, [part for part in tree.parts if part not in annotations])
        for triple in self._axiom(tree):
            if not annotations:
                continue
            if triple[1] == vocab.TYPE and triple[0].startswith("_:g"):
                subject = triple[0]  # the axiom has a node of its own
            else:
                subject = self.node()
                self._add(subject, vocab.TYPE, owl("Axiom"))
                names = ("annotatedSource", "annotatedProperty", "annotatedTarget")
                for name, term in zip(names, triple, strict=True):
                    self._add(subject, owl(name), term)
            for annotation in annotations:
                self.annotate(subject, annotation)

    def _axiom(self, tree: Tree) -> Sequence[Triple]:
        """Adds the triples of an axiom, and gives those that stand for the whole."""
        name = tree.name
        if name in _PAIRS:
            one, other = self.terms(tree, 2, 2)
            return [self._add(one, _PAIRS[name], other)]
        if name in _CHAINS:
            terms = self.terms(tree, 2, _MANY)
            return [self._add(one, _CHAINS[name], other) for one, other in pairwise(terms)]
        if name in _LISTS:
            terms = self.terms(tree, 2, _MANY)
            pair, type_ = _LISTS[name]
            if len(terms) == 2:
                return [self._add(terms[0], pair, terms[1])]
            found = self._add(self.node(), vocab.TYPE, type_)
            self._add(found[0], owl("members"), self._list(terms))
            return [found]
        if name in _TYPES:
            return [self._add(self.terms(tree, 1, 1)[0], vocab.TYPE, _TYPES[name])]
        if name in self._others:
            return self._others[name](tree)
        hint = did_you_mean(name, AXIOMS)
        raise NotAnOntologyError(f"`{name}` is not an axiom{f'; {hint}' if hint else ''}", tree.at)

    def annotate(self, subject: str, tree: Tree) -> None:
        """Adds an annotation; annotations of annotations say nothing to us."""
        parts = [part for part in tree.parts if not (isinstance(part, Tree) and part.name == "Annotation")]
        property_, value = self.terms(Tree(tree.name, tree.at, parts), 2, 2)
        self._add(subject, property_, value)

    def _declaration(self, tree: Tree) -> Sequence[Triple]:
        match tree.parts:
            case [Tree(kind, _, [Leaf(name)])] if kind in _DECLARED:
                return [self._add(name, vocab.TYPE, _DECLARED[kind])]
        raise NotAnOntologyError("a declaration names one thing: `Declaration(Class(…))`", tree.at)

    def _sub_property(self, tree: Tree) -> Sequence[Triple]:
        match tree.parts:
            case [Tree("ObjectPropertyChain") as chain, super_]:
                links = self.terms(chain, 1, _MANY)
                return [self._add(self.term(super_), owl("propertyChainAxiom"), self._list(links))]
        one, other = self.terms(tree, 2, 2)
        return [self._add(one, vocab.SUB_PROPERTY, other)]

    def _disjoint_union(self, tree: Tree) -> Sequence[Triple]:
        name, *parts = self.terms(tree, 2, _MANY)
        return [self._add(name, owl("disjointUnionOf"), self._list(parts))]

    def _key(self, tree: Tree) -> Sequence[Triple]:
        class_, *rest = tree.parts or [Leaf("", tree.at)]
        lists = [part.parts if isinstance(part, Tree) and not part.name else [part] for part in rest]
        keys = [self.term(key) for keys in lists for key in keys]
        return [self._add(self.term(class_), owl("hasKey"), self._list(keys))]

    def _class_assertion(self, tree: Tree) -> Sequence[Triple]:
        class_, individual = self.terms(tree, 2, 2)
        return [self._add(individual, vocab.TYPE, class_)]

    def _assertion(self, tree: Tree) -> Sequence[Triple]:
        match tree.parts:
            case [Tree("ObjectInverseOf", _, [inverse]), start, end]:
                return [self._add(self.term(end), self.term(inverse), self.term(start))]
        property_, source, target = self.terms(tree, 3, 3)
        return [self._add(source, property_, target)]

    def _negative(self, tree: Tree) -> Sequence[Triple]:
        property_, source, target = self.terms(tree, 3, 3)
        found = self._add(self.node(), vocab.TYPE, owl("NegativePropertyAssertion"))
        self._add(found[0], owl("sourceIndividual"), source)
        self._add(found[0], owl("assertionProperty"), property_)
        self._add(found[0], owl("targetValue" if is_literal(target) else "targetIndividual"), target)
        return [found]

    def _rule(self, tree: Tree) -> Sequence[Triple]:
        found = self._add(self.node(), vocab.TYPE, vocab.RULE)
        for part in tree.parts:
            if not isinstance(part, Tree) or part.name not in ("Body", "Head"):
                raise NotAnOntologyError("a rule is `DLSafeRule(Body(…) Head(…))`", part.at)
            atoms = [self._atom(atom) for atom in part.parts]
            self._add(found[0], swrl(part.name.lower()), self._list(atoms))
        return [found]

    def _atom(self, tree: Tree | Leaf) -> str:
        if not isinstance(tree, Tree) or tree.name not in NAMES:
            raise NotAnOntologyError("this is not an atom of a rule", tree.at)
        name, count, key = NAMES[tree.name]
        least = count + bool(key)
        if len(tree.parts) != least and count:
            raise NotAnOntologyError(f"`{tree.name}` has {_parts(len(tree.parts))}, not {least}", tree.at)
        node = self.node()
        self._add(node, vocab.TYPE, swrl(name))
        parts = list(tree.parts)
        if key and parts:
            self._add(node, swrl(key), self.term(parts.pop(0)))
        for position, part in enumerate(parts[:count], 1):
            self._add(node, swrl(f"argument{position}"), self._argument(part))
        return node

    def _argument(self, part: Tree | Leaf) -> str:
        match part:
            case Tree("Variable", _, [Leaf(name)]):
                self._add(name, vocab.TYPE, swrl("Variable"))
                return name
        return self.term(part)

    # --- expressions ---

    def terms(self, tree: Tree, least: int, most: int) -> list[str]:
        """The terms that stand for the parts of a tree, which are at least and at most so many."""
        if not least <= len(tree.parts) <= most:
            expected = str(least) if least == most else f"{least} or more"
            raise NotAnOntologyError(f"`{tree.name}` has {_parts(len(tree.parts))}, not {expected}", tree.at)
        return [self.term(part) for part in tree.parts]

    def term(self, part: Tree | Leaf) -> str:
        if isinstance(part, Leaf):
            if part.is_number or not part.text:
                raise NotAnOntologyError("there is a number where a name is expected", part.at)
            return part.text
        name = part.name
        if name in _BOOLEAN:
            type_, property_, many = _BOOLEAN[name]
            terms = self.terms(part, 1, _MANY if many else 1)
            return self._described(type_, (property_, self._list(terms) if many else terms[0]))
        if name in _RESTRICTIONS:
            *properties, filler = self.terms(part, 2, _MANY if name.startswith("Data") else 2)
            several = len(properties) > 1
            on = (owl("onProperties"), self._list(properties)) if several else (owl("onProperty"), properties[0])
            return self._described(_RESTRICTION, on, (_RESTRICTIONS[name], filler))
        if name in _CARDINALITIES:
            return self._cardinality(part)
        match name:
            case "ObjectInverseOf":
                node = self.node()
                self._add(node, vocab.INVERSE, self.terms(part, 1, 1)[0])
                return node
            case "ObjectHasSelf":
                (property_,) = self.terms(part, 1, 1)
                yes = f'"true"^^{xsd("boolean")}'
                return self._described(_RESTRICTION, (owl("onProperty"), property_), (owl("hasSelf"), yes))
            case "DatatypeRestriction":
                return self._restricted(part)
        raise NotAnOntologyError(f"`{name}` is not an expression", part.at)

    def _cardinality(self, tree: Tree) -> str:
        how, side = _CARDINALITIES[tree.name]
        match tree.parts:
            case [Leaf() as number, property_, *filler] if number.is_number and len(filler) <= 1:
                pass
            case _:
                raise NotAnOntologyError(f"`{tree.name}` has a number, a property and perhaps a class", tree.at)
        count = f'"{number.text}"^^{xsd("nonNegativeInteger")}'
        stem = {"Min": "min", "Max": "max", "Exact": ""}[how]
        about = [(owl("onProperty"), self.term(property_))]
        about.append((owl(_small(f"{stem}{'Qualified' * len(filler)}Cardinality")), count))
        if filler:
            about.append((owl("onClass" if side == "Object" else "onDataRange"), self.term(filler[0])))
        return self._described(_RESTRICTION, *about)

    def _restricted(self, tree: Tree) -> str:
        datatype, *rest = self.terms(tree, 3, _MANY)
        if len(rest) % 2:
            raise NotAnOntologyError("a facet has no value", tree.at)
        facets = [self.node() for _ in rest[::2]]
        for node, facet, value in zip(facets, rest[::2], rest[1::2], strict=True):
            self._add(node, facet, value)
        return self._described(_DATATYPE, (owl("onDatatype"), datatype), (owl("withRestrictions"), self._list(facets)))

    def _described(self, type_: str, *about: tuple[str, str]) -> str:
        node = self.node()
        self._add(node, vocab.TYPE, type_)
        for property_, value in about:
            self._add(node, property_, value)
        return node

    def _list(self, terms: Sequence[str]) -> str:
        if not terms:
            return vocab.NIL
        nodes = [self.node() for _ in terms]
        for node, term, rest in zip(nodes, terms, [*nodes[1:], vocab.NIL], strict=True):
            self._add(node, vocab.FIRST, term)
            self._add(node, vocab.REST, rest)
        return nodes[0]


def _parts(count: int) -> str:
    return f"{count} part{'s' * (count != 1)}"


def _small(name: str) -> str:
    return name[0].lower() + name[1:]
