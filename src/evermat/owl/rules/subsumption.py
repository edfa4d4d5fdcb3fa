"""The two sides of `C ⊑ D`: subclass expressions as bodies of rules, superclass expressions as heads.

A subclass expression becomes bodies, one for each way to belong to it; a superclass expression becomes heads, each with
what it asks for besides. What a side says beyond rules is left out and the reason noted: that something exists, a choice
between alternatives, what is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

from evermat.owl.literals.datatypes import ANY_LITERAL, DECIDED, datatype_pattern, restriction_patterns
from evermat.owl.ontology.entities import Entities
from evermat.owl.ontology.expressions import (
    TOP_RANGE,
    All,
    And,
    Class,
    Count,
    DataAnd,
    DataNot,
    DataOneOf,
    DataOr,
    Datatype,
    Has,
    Named,
    Not,
    OneOf,
    Or,
    Property,
    Range,
    Restricted,
    Self,
    Some,
    is_range,
)
from evermat.owl.rules.collect import Output
from evermat.owl.rules.hierarchy import alternatives, canonical, is_open, normal
from evermat.owl.rules.model import (
    Atom,
    Body,
    Differ,
    DifferentValues,
    Equal,
    Helper,
    Inconsistent,
    Link,
    Match,
    Member,
    terms_of,
)
from evermat.owl.vocabulary import EVERYTHING, NOTHING

_MOST = 1000  # bodies that are written out; more are named
_FALSE = Inconsistent("")  # the axiom is filled in when the rule is made
Head = tuple[Atom, Body]

_EXISTS = "it implies that something exists, without naming it"
_CHOICE = "it implies one of several alternatives, without saying which"
_ABSENT = "what is not derived may still hold"
_COUNTS = "individuals with different names may be the same"


class Sides:
    """Turns expressions into bodies and heads."""

    def __init__(self, output: Output, definitions: Mapping[str, Range], entities: Entities) -> None:
        self.output = output
        self.mixed = False  # whether literals may be said to be the same
        self._definitions = definitions
        self._literals_only = entities.literals_only
        self._individuals_only = entities.individuals_only
        self._opened: list[str] = []  # datatypes whose definitions are being looked at
        self.known: dict[Class, str] = {}  # relations of what is known to belong to subclass expressions
        self.hands_on: dict[Class, list[str]] = {}  # those of them that members of a superclass expression belong to

    # --- subclass expressions ---

    def bodies(self, expression: Class, x: str) -> list[Body]:
        """The ways in which `x` is known to belong to an expression."""
        expression = normal(expression)
        bodies = self._bodies(expression, x)
        if name := self.known.get(canonical(expression)):
            bodies.append((Helper(name, (x,)),))
        return bodies

    def _bodies(self, expression: Class, x: str) -> list[Body]:
        match expression:
            case Named(name):
                if name in EVERYTHING:
                    return [()]
                return [] if name == NOTHING else [(Member(name, x),)]
            case And(parts):
                return self.combined(*((x, self.bodies(part, x)) for part in parts))
            case Or(parts):
                return [body for part in parts for body in self.bodies(part, x)]
            case OneOf(members):
                return [(Equal(x, member),) for member in members]
            case Some(property_, filler):
                y = self.output.fresh()
                return self.combined((x, [(link(property_, x, y),)]), (y, self.filler_bodies(filler, y)))
            case Has(property_, value):
                return [(link(property_, x, value),)]
            case Self(property_):
                return [(link(property_, x, x),)]
            case Count("Min", 0):
                return [()]
            case All(_, Named(name)) if name in EVERYTHING:
                return [()]
            case Not(Named(name)) if name in EVERYTHING or name == NOTHING:
                return [()] if name == NOTHING else []
            case Count("Min"):
                self.output.lose(expression, "subclass", _COUNTS)
            case _:
                self.output.lose(expression, "subclass", _ABSENT)
        return []

    def filler_bodies(self, filler: Class | Range | None, y: str) -> list[Body]:
        """The ways in which `y` is known to be one of the values that a restriction is about."""
        if filler is None:
            return [()]
        return self.values(filler, y) if is_range(filler) else self.bodies(filler, y)  # type: ignore[arg-type]

    def combined(self, *parts: tuple[str, list[Body]]) -> list[Body]:
        """Bodies that take one of the ways for each part; a part is about a variable.

        If there are very many, ways are gathered under a name of their own.
        """
        ways = [list(bodies) for _, bodies in parts]
        for position in sorted(range(len(ways)), key=lambda i: -len(ways[i])):
            if prod(map(len, ways)) <= _MOST:
                break
            x = parts[position][0]
            if len(ways[position]) > 1 and all(_binds(body, x) for body in ways[position]):
                name = self.output.helper("any", ("x",))
                for body in ways[position]:
                    self.output.emit(Helper(name, (x,)), body)
                ways[position] = [(Helper(name, (x,)),)]
        if prod(map(len, ways)) > _MOST:
            self.output.lose(None, "", f"it has more than {_MOST} cases")
            return []
        return [tuple(atom for body in choice for atom in body) for choice in product(*ways)]

    # --- superclass expressions ---

    def heads(self, expression: Class, x: str) -> list[Head]:
        """What holds of `x` if it belongs to an expression."""
        expression = normal(expression)
        names = self.hands_on.get(canonical(expression), ())
        return [*self._heads(expression, x), *((Helper(name, (x,)), ()) for name in names)]

    def _heads(self, expression: Class, x: str) -> list[Head]:
        match expression:
            case Named(name):
                if name in EVERYTHING:
                    return []
                return [(_FALSE, ())] if name == NOTHING else [(Member(name, x), ())]
            case And(parts):
                return [head for part in parts for head in self.heads(part, x)]
            case Or():
                return self._choice(expression, x)
            case Not(part):
                return [(_FALSE, body) for body in self.bodies(part, x)]
            case OneOf((member,)):
                return [(Equal(x, member), ())]
            case Some(property_, OneOf((member,)) | DataOneOf((member,))):
                return [(link(property_, x, member), ())]
            case Has(property_, value):
                return [(link(property_, x, value), ())]
            case Self(property_):
                return [(link(property_, x, x), ())]
            case All(property_, filler):
                return self._all(property_, filler, x)
            case Count(how, number, property_, filler):
                return self._count(expression, how, number, property_, filler, x)
            case Some():
                self.output.lose(expression, "superclass", _EXISTS)
            case _:
                self.output.lose(expression, "superclass", _CHOICE)
        return []

    def _all(self, property_: Property, filler: Class | Range, x: str) -> list[Head]:
        y = self.output.fresh()
        value = link(property_, x, y)
        if not is_range(filler):
            return [(head, (value, *body)) for head, body in self.heads(filler, y)]  # type: ignore[arg-type]
        if property_.name in self._literals_only:
            return [(_FALSE, (value, *body)) for body in self.values(filler, y, negated=True)]  # type: ignore[arg-type]
        if filler == TOP_RANGE:
            return []
        # An IRI may be another name of a literal, where it is not said that there are only literals.
        literal = Match(ANY_LITERAL, y)
        return [(_FALSE, (value, literal, *body)) for body in self.values(filler, y, negated=True)]  # type: ignore[arg-type]

    def _choice(self, expression: Or, x: str) -> list[Head]:
        """A choice says something definite if all alternatives but one are complements."""
        open_: list[Class] = []
        excluded: list[list[Body]] = []
        for part in alternatives(expression):
            match part:
                case Not(inner):
                    excluded.append(self.bodies(inner, x))
                case Named(name) if name in EVERYTHING:
                    return []
                case _ if is_open(part):
                    open_.append(part)
        if len(open_) > 1:
            self.output.lose(expression, "superclass", _CHOICE)
            return []
        heads = self.heads(open_[0], x) if open_ else [(_FALSE, ())]
        cases = self.combined(*((x, bodies) for bodies in excluded))
        return [(head, (*case, *body)) for case in cases for head, body in heads]

    def _count(
        self, expression: Class, how: str, number: int, property_: Property, filler: Class | Range | None, x: str
    ) -> list[Head]:
        """What follows from a count that is not zero."""
        if how != "Max" and number:
            self.output.lose(expression, "superclass", _EXISTS)
        if how == "Min":
            return []
        if number > 1:
            self.output.lose(expression, "superclass", _CHOICE)
            return []
        y, z = self.output.fresh(), self.output.fresh()
        cases = self.combined(
            (x, [(link(property_, x, y),)]),
            (y, self.filler_bodies(filler, y)),
            (x, [(link(property_, x, z),)]),
            (z, self.filler_bodies(filler, z)),
        )
        return [(head, (*case, *body)) for case in cases for head, body in self.same(property_, y, z)]

    # --- literals ---

    def same(self, property_: Property, y: str, z: str) -> list[Head]:
        """That two values are the same: individuals become so, literals are or are not."""
        if property_.data:
            return [(_FALSE, different_literals(y, z))]
        if property_.name not in self._individuals_only:
            self.mixed = True
        return [(Equal(y, z), ())]

    def values(self, range_: Range, v: str, *, negated: bool = False) -> list[Body]:
        """The ways in which a value is known to be in a set of literals, or, `negated`, not to be."""
        match range_:
            case Datatype(name) if name in self._definitions:
                return self._by_definition(name, v, negated=negated)
            case Datatype(name):
                found = self._pattern(name)
                return [_outside(pattern, v) if negated else (Match(pattern, v),) for pattern in found]
            case DataAnd(parts) | DataOr(parts):
                ways = [self.values(part, v, negated=negated) for part in parts]
                if isinstance(range_, DataAnd) != negated:
                    return self.combined(*((v, bodies) for bodies in ways))
                return [body for bodies in ways for body in bodies]
            case DataOneOf(members) if not negated:
                return [(Equal(v, member),) for member in members]
            case DataOneOf(members):
                return [tuple(DifferentValues(v, member) for member in members)]
            case DataNot(part) if negated:
                return self.values(part, v)
            case DataNot(part):
                return [(Match(ANY_LITERAL, v), *body) for body in self.values(part, v, negated=True)]
            case Restricted(datatype, facets):
                patterns, unsaid = restriction_patterns(datatype, facets)
                for facet in unsaid:
                    self.output.lose(Restricted(datatype, (facet,)), "", "no regular expression expresses this facet")
                if negated:
                    return [_outside(pattern, v) for pattern in patterns]
                return [] if unsaid else [tuple(Match(pattern, v) for pattern in patterns)]

    def _by_definition(self, name: str, v: str, *, negated: bool) -> list[Body]:
        if name in self._opened:
            self.output.lose(Datatype(name), "", "the datatype is defined by itself")
            return []
        self._opened.append(name)
        try:
            return self.values(self._definitions[name], v, negated=negated)
        finally:
            self._opened.pop()

    def _pattern(self, datatype: str) -> list[str]:
        pattern = datatype_pattern(datatype)
        if pattern is None:
            self.output.lose(Datatype(datatype), "", "this datatype is not known")
        return [] if pattern is None else [pattern]


def different_literals(y: str, z: str) -> Body:
    """That two terms are literals with different values."""
    return Differ(y, z), DifferentValues(y, z)


def _outside(pattern: str, v: str) -> Body:
    """That a value is not in a set of literals; few are not, so this is asked first."""
    return Match(pattern, v, negated=True), Match(DECIDED, v)


def link(property_: Property, x: str, y: str) -> Link:
    """`x` has `y` as a value of a property or of its inverse."""
    return Link(property_.name, y, x) if property_.inverse else Link(property_.name, x, y)


def _binds(body: Body, x: str) -> bool:
    """Whether a body says by itself what a variable may be."""
    return any(isinstance(atom, Member | Link | Helper | Equal) and x in terms_of(atom) for atom in body)
