"""What axioms say outright about which classes and properties are special cases of which.

This is what connects an axiom that ends with something beyond rules, such as "has some course", to one that begins with it,
although that course is not known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import TypeVar

from evermat.owl.ontology.axioms import Axiom
from evermat.owl.ontology.expressions import (
    TOP_CLASS,
    TOP_RANGE,
    All,
    And,
    Class,
    Count,
    Named,
    Not,
    OneOf,
    Or,
    Property,
    Range,
    Some,
)
from evermat.owl.rules.model import Helper, Member, Rule
from evermat.owl.vocabulary import NOTHING

_Node = TypeVar("_Node")
_DEEPEST = 4  # expressions within expressions that are looked at
_MOST = 1000  # expressions above another that are looked at


class Hierarchy:
    """Classes and properties with those directly above them."""

    def __init__(self, axioms: Iterable[Axiom]) -> None:
        self._classes: dict[str, dict[str, None]] = {}
        self._descriptions: dict[str, dict[Class, None]] = {}  # expressions above classes that have a name
        self._properties: dict[Property, dict[Property, None]] = {}
        self._above_expression: dict[tuple[Class | Range, int], list[Class | Range]] = {}
        # The names of the classes above one that has a name, without its own; a property with those above it.
        self.names_above = cache(lambda name: _reachable(name, self._classes))
        self._properties_above = cache(lambda property_: [property_, *_reachable(property_, self._properties)])
        for axiom in axioms:
            self._add(axiom)

    def _add(self, axiom: Axiom) -> None:
        match axiom.kind, axiom.parts:
            case "SubClassOf", (sub, super_):
                self._class(sub, super_)
            case "EquivalentClasses", (one, other):
                self._class(one, other)
                self._class(other, one)
            case "DisjointUnion", (whole, *parts):
                for part in parts:
                    self._class(part, whole)
        for sub, super_ in property_inclusions(axiom):
            self._property(sub, super_)

    def _class(self, sub: Class, super_: Class) -> None:
        if isinstance(sub, Named):
            for part in super_.parts if isinstance(super_, And) else (super_,):
                if isinstance(part, Named):
                    self._classes.setdefault(sub.name, {})[part.name] = None
                else:
                    self._descriptions.setdefault(sub.name, {})[part] = None

    def _property(self, sub: Property, super_: Property) -> None:
        one, other = _bare(sub), _bare(super_)
        self._properties.setdefault(one, {})[other] = None
        self._properties.setdefault(one.inverted, {})[other.inverted] = None

    def above(self, expression: Class | Range, levels: int) -> list[Class | Range]:
        """Expressions that contain everything that an expression does, itself among them; not all, of very many.

        In each `Some` are at most `levels` others within each other.
        """
        if (expression, levels) not in self._above_expression:
            found = dict.fromkeys(islice(self._above(expression, levels), _MOST))
            self._above_expression[expression, levels] = list(found)
        return self._above_expression[expression, levels]

    def _above(self, expression: Class | Range, levels: int) -> Iterator[Class | Range]:
        yield expression
        match expression:
            case Named(name):
                names = [name, *self.names_above(name)]
                yield from map(Named, names[1:])
                yield TOP_CLASS
                for description in (d for other in names for d in self._descriptions.get(other, ())):
                    if levels:
                        yield from self._above(canonical(description), levels - 1)
            case And(parts):
                for part in parts:
                    yield from self._above(part, levels)
            case Some(property_, filler) if levels:
                for other in self._properties_above(_bare(property_)):
                    for class_ in (*self.above(filler, levels - 1), TOP_CLASS):
                        yield canonical(Some(other, class_))

    def handed_on(self, axioms: Iterable[Axiom]) -> Iterator[tuple[Class, Class]]:
        """The superclass expressions that say more than rules do, each with the subclass expressions that contain it."""
        asked: set[Class] = set()
        told: dict[Class, None] = {}
        for axiom in axioms:
            for sub, super_ in inclusions(axiom):
                asked.update(map(canonical, (*on_the_left(sub), *on_the_right(super_))))
                told.update(dict.fromkeys(map(canonical, known_on_the_right(super_))))
            if axiom.kind in ("DisjointClasses", "DisjointUnion", "HasKey"):
                asked.update(canonical(found) for part in axiom.parts for found in on_the_left(part))
        deepest = levels(asked)
        for expression in told:
            for wider in self.above(expression, deepest):
                if wider in asked:
                    yield expression, wider


def inclusions(axiom: Axiom) -> Iterator[tuple[Class, Class]]:
    """The axiom as inclusions of classes, as far as it is one."""
    match axiom.kind, axiom.parts:
        case "SubClassOf", (sub, super_):
            yield sub, super_
        case "EquivalentClasses", (one, other):
            yield one, other
            yield other, one
        case "DisjointUnion", (whole, *parts):
            for part in parts:
                yield part, whole
            yield whole, Or(tuple(parts))
        case (("ObjectPropertyDomain" | "DataPropertyDomain"), (property_, class_)):
            yield Some(property_, TOP_CLASS), class_
        case (("ObjectPropertyRange" | "DataPropertyRange"), (property_, filler)):
            yield TOP_CLASS, All(property_, filler)
        case "ClassAssertion", (class_, individual):
            yield OneOf((individual,)), class_


def property_inclusions(axiom: Axiom) -> Iterator[tuple[Property, Property]]:
    """The axiom as inclusions of properties, as far as it is one."""
    match axiom.kind, axiom.parts:
        case (("SubObjectPropertyOf" | "SubDataPropertyOf"), (Property() as sub, Property() as super_)):
            yield sub, super_
        case (("EquivalentObjectProperties" | "EquivalentDataProperties"), (Property() as one, Property() as other)):
            yield one, other
            yield other, one
        case "InverseObjectProperties", (Property() as one, Property() as other):
            yield one, other.inverted
            yield other.inverted, one
        case "SymmetricObjectProperty", (Property() as one,):
            yield one, one.inverted


def _bare(property_: Property) -> Property:
    return Property(property_.name, property_.inverse)


def _reachable(start: _Node, edges: dict[_Node, dict[_Node, None]]) -> list[_Node]:
    found: dict[_Node, None] = {}
    waiting = [start]
    while waiting:
        for node in edges.get(waiting.pop(), ()):
            if node not in found and node != start:
                found[node] = None
                waiting.append(node)
    return list(found)


def on_the_left(expression: Class | Range | None) -> Iterator[Class]:
    """The parts of a subclass expression that something may be known to belong to without a witness."""
    match expression:
        case And(parts):
            for part in parts:
                yield from on_the_left(part)
        case Or(parts):
            yield expression
            for part in parts:
                yield from on_the_left(part)
        case Some(_, filler) | Count("Min", 1, _, filler):
            yield canonical(expression)
            yield from on_the_left(filler)
        case Not(part):
            yield expression
            yield from on_the_right(part)
        case All() | Count():
            yield expression


def on_the_right(expression: Class | Range | None) -> Iterator[Class]:
    """The parts of a superclass expression that stand on the left."""
    match expression:
        case And(parts) | Or(parts):
            for part in parts:
                yield from on_the_right(part)
        case Not(part):
            yield from on_the_left(part)
        case All(_, filler):
            yield from on_the_right(filler)
        case Count(_, _, property_, filler):
            yield from on_the_left(filler)
            yield canonical(Count("Min", 1, property_, filler))


def levels(expressions: Iterable[Class]) -> int:
    """How many `Some` are within each other; of very many only some."""
    most = 0
    for expression in expressions:
        inner: Class | Range = expression
        depth = 0
        while isinstance(inner, Some) and depth < _DEEPEST:
            inner, depth = inner.filler, depth + 1
        most = max(most, depth)
    return most


def known_on_the_right(expression: Class | Range | None) -> Iterator[Class]:
    """The parts of a superclass expression that say more than rules do."""
    match expression:
        case And(parts):
            for part in parts:
                yield from known_on_the_right(part)
        case All(_, filler):
            yield expression
            yield from known_on_the_right(filler)
        case Some() | Or() | Not() | Count():
            yield expression


def canonical(expression: Class) -> Class:
    """The form in which expressions are compared: what kind a property is of says nothing then."""
    expression = normal(expression)
    if not isinstance(expression, Some):
        return expression
    filler = TOP_CLASS if expression.filler == TOP_RANGE else expression.filler
    return Some(_bare(expression.property), canonical(filler) if isinstance(filler, Some) else filler)


def normal(expression: Class) -> Class:
    """The usual form of an expression: at least one is some, none is not some."""
    match expression:
        case Count("Min", 1, property_, filler):
            return Some(property_, filler or (TOP_RANGE if property_.data else TOP_CLASS))
        case And((part,)) | Or((part,)) | Not(Not(part)):
            return normal(part)
        case OneOf(()) | Or(()):
            return Named(NOTHING)
        case Count("Max" | "Exact", 0, property_, filler):
            return Not(normal(Count("Min", 1, property_, filler)))
    return expression


def alternatives(expression: Class) -> Iterator[Class]:
    """What a choice is between, choices within it taken apart."""
    expression = normal(expression)
    if isinstance(expression, Or):
        for part in expression.parts:
            yield from alternatives(part)
    else:
        yield expression


def is_open(alternative: Class) -> bool:
    """Whether an alternative is neither a complement nor empty."""
    return not isinstance(alternative, Not) and alternative != Named(NOTHING)


def without_idle_rules(rules: Iterable[Rule], names: Collection[str], hierarchy: Hierarchy) -> list[Rule]:
    """The rules but for those over the relations `names`, of one column, from which nothing new follows."""
    kept = list(rules)
    while True:
        asking: dict[str, list[Rule]] = {}
        for rule in kept:
            for atom in rule.body:
                if isinstance(atom, Helper):
                    asking.setdefault(atom.name, []).append(rule)
        rest = [rule for rule in kept if not _is_idle(rule, names, asking, hierarchy)]
        made = {rule.head.name for rule in rest if isinstance(rule.head, Helper)}
        empty = {name for name in names if name not in made}
        rest = [rule for rule in rest if not any(isinstance(a, Helper) and a.name in empty for a in rule.body)]
        if len(rest) == len(kept):
            return kept
        kept = rest


def _is_idle(rule: Rule, names: Collection[str], asking: dict[str, list[Rule]], hierarchy: Hierarchy) -> bool:
    """Whether a rule makes a fact of one of the relations from which only follows what the rule needs itself."""
    if not isinstance(rule.head, Helper) or rule.head.name not in names:
        return False
    name, (term,) = rule.head.name, rule.head.terms
    classes = {atom.name for atom in rule.body if isinstance(atom, Member) and atom.term == term}
    wider = {other for class_ in classes for other in (class_, *hierarchy.names_above(class_))}
    return all(
        isinstance(other.head, Member) and other.head.name in wider and Helper(name, (other.head.term,)) in other.body
        for other in asking.get(name, ())
    )
