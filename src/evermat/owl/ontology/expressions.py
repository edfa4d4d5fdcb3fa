"""What OWL says classes, properties and sets of literals are: read from a graph, and written in functional syntax."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal as OneOfTexts

from evermat.owl.ontology.entities import Entities
from evermat.owl.ontology.graph import Graph, MalformedError
from evermat.owl.vocabulary import INVERSE, LITERAL, THING, TYPE, is_blank, is_iri, is_literal, owl

DEEPEST = 100  # levels of expressions within expressions
_SHOWN = 20  # members of a long list that are written


@dataclass(frozen=True, slots=True)
class Property:
    """A property or its inverse; `data` says that its values are literals."""

    name: str
    inverse: bool = False
    data: bool = False

    @property
    def inverted(self) -> Property:
        """The same property, read from the other end."""
        return Property(self.name, not self.inverse, self.data)


# --- classes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Named:
    """A class that has a name."""

    name: str


@dataclass(frozen=True, slots=True)
class And:
    """What belongs to all of several classes."""

    parts: tuple[Class, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """What belongs to one of several classes."""

    parts: tuple[Class, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """What does not belong to a class."""

    part: Class


@dataclass(frozen=True, slots=True)
class OneOf:
    """Some individuals."""

    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """What has a value of some class or data range."""

    property: Property
    filler: Class | Range


@dataclass(frozen=True, slots=True)
class All:
    """What has only values of some class or data range."""

    property: Property
    filler: Class | Range


@dataclass(frozen=True, slots=True)
class Has:
    """What has a certain value."""

    property: Property
    value: str


@dataclass(frozen=True, slots=True)
class Self:
    """What is its own value."""

    property: Property


@dataclass(frozen=True, slots=True)
class Count:
    """What has at least, at most or exactly so many values of some class or data range, or of any."""

    how: OneOfTexts["Min", "Max", "Exact"]
    number: int
    property: Property
    filler: Class | Range | None = None


Class = Named | And | Or | Not | OneOf | Some | All | Has | Self | Count

# --- sets of literals ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Datatype:
    """All literals of a datatype."""

    name: str


@dataclass(frozen=True, slots=True)
class DataAnd:
    """Literals in all of several sets."""

    parts: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class DataOr:
    """Literals in one of several sets."""

    parts: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class DataNot:
    """Literals that are not in a set."""

    part: Range


@dataclass(frozen=True, slots=True)
class DataOneOf:
    """Some literals."""

    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restricted:
    """The literals of a datatype that facets allow."""

    datatype: str
    facets: tuple[tuple[str, str], ...]


Range = Datatype | DataAnd | DataOr | DataNot | DataOneOf | Restricted
RANGES = (Datatype, DataAnd, DataOr, DataNot, DataOneOf, Restricted)


def is_range(filler: Class | Range | None) -> bool:
    """Whether something is a set of literals."""
    return isinstance(filler, RANGES)


# --- reading -------------------------------------------------------------------------------------------------

_COUNTS: dict[str, tuple[OneOfTexts["Min", "Max", "Exact"], bool]] = {
    owl("minCardinality"): ("Min", False),
    owl("maxCardinality"): ("Max", False),
    owl("cardinality"): ("Exact", False),
    owl("minQualifiedCardinality"): ("Min", True),
    owl("maxQualifiedCardinality"): ("Max", True),
    owl("qualifiedCardinality"): ("Exact", True),
}
_INTEGER = re.compile(r'"\+?(?P<number>[0-9]{1,1000})"(?:\^\^<[^>]*>)?')
_TRUE = re.compile(r'"(?:true|1)"(?:\^\^<[^>]*>)?')


class Reader:
    """Reads expressions from a graph; every node is read once.

    All methods raise a `MalformedError` where a node describes nothing, or nothing that makes sense.
    """

    def __init__(self, graph: Graph, entities: Entities) -> None:
        self.graph, self.entities = graph, entities
        self._known: dict[str, Class | Range] = {}
        self._open: list[str] = []  # nodes that are being read
        self._constructors: dict[str, Callable[[str, bool], Class | Range]] = {
            owl("intersectionOf"): self._intersection,
            owl("unionOf"): self._union,
            owl("complementOf"): self._complement,
            owl("datatypeComplementOf"): self._complement,
            owl("oneOf"): self._enumeration,
            owl("onDatatype"): self._restricted,
            owl("onProperty"): self._restriction,
            owl("onProperties"): self._many_properties,
        }

    def property_of(self, node: str) -> Property:
        inverse = False
        passed: set[str] = set()
        while is_blank(node):
            if node in passed or not self.graph.values(node, INVERSE):
                raise MalformedError(f"{node} is not a property")
            passed.add(node)
            node, inverse = self.graph.value(node, INVERSE), not inverse
        if is_literal(node):
            raise MalformedError(f"{node} is not a property")
        return Property(node, inverse, node in self.entities.data)

    def class_(self, node: str) -> Class:
        found = self.expression(node)
        if is_range(found):
            raise MalformedError("there is a data range where a class is expected")
        return found  # type: ignore[return-value]

    def range(self, node: str) -> Range:
        found = self.expression(node)
        if not is_range(found):
            raise MalformedError("there is a class where a data range is expected")
        return found  # type: ignore[return-value]

    def expression(self, node: str) -> Class | Range:
        """The class or the set of literals that a node names or describes."""
        if is_iri(node):
            return Datatype(node) if self.entities.is_datatype(node) else Named(node)
        if is_literal(node):
            raise MalformedError(f"{node} is not a class")
        if node not in self._known:
            if node in self._open:
                raise MalformedError("an expression is a part of itself")
            if len(self._open) >= DEEPEST:
                raise MalformedError(f"it is nested more than {DEEPEST} levels deep")
            self._open.append(node)
            try:
                self._known[node] = self.description(node)
            finally:
                self._open.pop()
        return self._known[node]

    @property
    def ways(self) -> list[str]:
        """The properties that describe classes."""
        return list(self._constructors)

    def described(self, node: str) -> list[str]:
        """In which ways a node is described."""
        return [property_ for property_ in self.graph.about(node) if property_ in self._constructors]

    def description(self, node: str, how: str = "") -> Class | Range:
        """What a node is described as, in the only way or in one of several."""
        ways = [how] if how else self.described(node)
        if not ways and (node, TYPE, owl("Restriction")) in self.graph:
            raise MalformedError(f"{node} is a restriction without a property")
        if len(ways) != 1:
            raise MalformedError(f"{node} describes {'more than one class' if ways else 'no class'}")
        return self._constructors[ways[0]](node, self.entities.is_data_range(self.graph, node))

    def _members(self, node: str, property_: str) -> list[str]:
        return self.graph.members(self.graph.value(node, property_))

    def _intersection(self, node: str, data: bool) -> Class | Range:
        members = self._members(node, owl("intersectionOf"))
        return DataAnd(tuple(map(self.range, members))) if data else And(tuple(map(self.class_, members)))

    def _union(self, node: str, data: bool) -> Class | Range:
        members = self._members(node, owl("unionOf"))
        return DataOr(tuple(map(self.range, members))) if data else Or(tuple(map(self.class_, members)))

    def _complement(self, node: str, data: bool) -> Class | Range:
        if owl("datatypeComplementOf") in self.graph.about(node):
            return DataNot(self.range(self.graph.value(node, owl("datatypeComplementOf"))))
        part = self.graph.value(node, owl("complementOf"))
        return DataNot(self.range(part)) if data else Not(self.class_(part))

    def _enumeration(self, node: str, data: bool) -> Class | Range:
        members = self._members(node, owl("oneOf"))
        if any(is_literal(member) != data for member in members):
            raise MalformedError("it lists both individuals and literals")
        return DataOneOf(tuple(members)) if data else OneOf(tuple(members))

    def _restricted(self, node: str, data: bool) -> Class | Range:  # noqa: ARG002
        datatype = self.graph.value(node, owl("onDatatype"))
        facets: list[tuple[str, str]] = []
        for member in self._members(node, owl("withRestrictions")):
            facets += [(facet, value) for facet, values in self.graph.about(member).items() for value in values]
        return Restricted(datatype, tuple(facet for facet in facets if facet[0] != TYPE))

    def _many_properties(self, node: str, data: bool) -> Class | Range:  # noqa: ARG002
        raise MalformedError(f"{node} restricts several properties at once, which OWL 2 has no datatypes for")

    def _restriction(self, node: str, data: bool) -> Class | Range:  # noqa: ARG002
        property_ = self.property_of(self.graph.value(node, owl("onProperty")))
        found = list(self._restrictions(node, property_))
        if len(found) != 1:
            raise MalformedError(f"{node} is a restriction that says {'too much' if found else 'nothing'}")
        return found[0]

    def _restrictions(self, node: str, property_: Property) -> Iterator[Class]:
        """Everything that a node says about the values of a property."""
        about = self.graph.about(node)
        for filler in about.get(owl("someValuesFrom"), ()):
            yield Some(*self._filled(property_, filler))
        for filler in about.get(owl("allValuesFrom"), ()):
            yield All(*self._filled(property_, filler))
        for value in about.get(owl("hasValue"), ()):
            yield Has(Property(property_.name, property_.inverse, is_literal(value)), value)
        for value in about.get(owl("hasSelf"), ()):
            if not _TRUE.fullmatch(value):
                raise MalformedError(f"hasSelf is {value}, not true")
            yield Self(property_)
        for key, (how, qualified) in _COUNTS.items():
            for value in about.get(key, ()):
                number = _INTEGER.fullmatch(value)
                if number is None:
                    raise MalformedError(f"the cardinality {value} is not a number")
                if qualified:
                    counted, class_ = self._filled(property_, self._qualification(node))
                    yield Count(how, int(number["number"]), counted, class_)
                else:
                    yield Count(how, int(number["number"]), property_)

    def _filled(self, property_: Property, filler: str) -> tuple[Property, Class | Range]:
        found = self.expression(filler)
        return Property(property_.name, property_.inverse, is_range(found)), found

    def _qualification(self, node: str) -> str:
        about = self.graph.about(node)
        found: list[str] = [*about.get(owl("onClass"), ()), *about.get(owl("onDataRange"), ())]
        if len(found) != 1:
            raise MalformedError(f"a qualified cardinality has {'no class' if not found else 'several classes'}")
        return found[0]


# --- writing -------------------------------------------------------------------------------------------------

Namer = Callable[[str], str]  # how terms are written
_FUNCTORS: dict[type, str] = {
    And: "ObjectIntersectionOf",
    Or: "ObjectUnionOf",
    Not: "ObjectComplementOf",
    OneOf: "ObjectOneOf",
    Self: "ObjectHasSelf",
    DataAnd: "DataIntersectionOf",
    DataOr: "DataUnionOf",
    DataNot: "DataComplementOf",
    DataOneOf: "DataOneOf",
    # behind `Object` or `Data`
    Some: "SomeValuesFrom",
    All: "AllValuesFrom",
    Has: "HasValue",
}


def written(part: object, name: Namer) -> str:
    """A part of an axiom in functional syntax."""
    match part:
        case str():
            return name(part)
        case int():
            return str(part)
        case tuple():
            return f"({_list(part, name)})"
        case Property(iri, inverse):
            return f"ObjectInverseOf({name(iri)})" if inverse else name(iri)
        case Named(iri) | Datatype(iri):
            return name(iri)
        case And(parts) | Or(parts) | OneOf(parts) | DataAnd(parts) | DataOr(parts) | DataOneOf(parts):
            return f"{_FUNCTORS[type(part)]}({_list(parts, name)})"
        case Not(inner) | DataNot(inner) | Self(inner):
            return f"{_FUNCTORS[type(part)]}({written(inner, name)})"
        case Some(property_, value) | All(property_, value) | Has(property_, value):
            return f"{_side(property_)}{_FUNCTORS[type(part)]}({_list((property_, value), name)})"
        case Count(how, number, property_, filler):
            counted = (number, property_) if filler is None else (number, property_, filler)
            return f"{_side(property_)}{how}Cardinality({_list(counted, name)})"
        case Restricted(datatype, facets):
            return f"DatatypeRestriction({_list((datatype, *(x for pair in facets for x in pair)), name)})"
    raise AssertionError(part)


def _side(property_: Property) -> str:
    return "Data" if property_.data else "Object"


def _list(parts: tuple[object, ...], name: Namer) -> str:
    """Several parts; of a great many only the first."""
    shown = [written(part, name) for part in parts[:_SHOWN]]
    return " ".join([*shown, f"… {len(parts) - _SHOWN} more"] if len(parts) > _SHOWN else shown)


TOP_CLASS, TOP_RANGE = Named(THING), Datatype(LITERAL)
