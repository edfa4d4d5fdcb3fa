"""Axioms to rules."""

from __future__ import annotations

from itertools import combinations

from evermat.language import quote
from evermat.owl.notes import Note, without_terms
from evermat.owl.ontology.axioms import Axiom, Axioms
from evermat.owl.ontology.expressions import And, Class, Named, Not, Or, Property, written
from evermat.owl.ontology.swrl import RuleAtom
from evermat.owl.rules.collect import Output
from evermat.owl.rules.hierarchy import (
    Hierarchy,
    alternatives,
    inclusions,
    is_open,
    normal,
    property_inclusions,
    without_idle_rules,
)
from evermat.owl.rules.model import Atom, Body, Differ, Equal, Helper, Inconsistent, Link, Member
from evermat.owl.rules.subsumption import Sides, different_literals, link
from evermat.owl.vocabulary import DIFFERENT, EVERYTHING, NOTHING, SAME

_PAIRS = 30  # members of a list that are compared pair by pair; of more, a relation is made
_FALSE = Inconsistent("")


class Translator:
    """Turns axioms into rules, one after the other."""

    def __init__(self, output: Output, sides: Sides) -> None:
        self.output, self.sides = output, sides

    def translate(self, axioms: Axioms) -> None:
        hierarchy = Hierarchy(axioms.axioms)
        self._name_what_is_known(axioms, hierarchy)
        for axiom in axioms.axioms:
            self.output.begin(axiom.kind, axiom.text(self.output.name))
            self._translate(axiom)
            self.output.end()
        self.output.keep(without_idle_rules(self.output.rules, set(self.sides.known.values()), hierarchy))
        if axioms.equality or any(isinstance(rule.head, Equal) for rule in self.output.rules):
            self.output.begin("DifferentIndividuals", "DifferentIndividuals")
            self.output.emit(_FALSE, (Link(SAME, "x", "y"), Link(DIFFERENT, "x", "y")))
            self.output.emit(_FALSE, (Link(DIFFERENT, "x", "x"),))
        if self.sides.mixed:
            self.output.begin("DifferentIndividuals", "DifferentIndividuals of literals")
            self.output.emit(_FALSE, (Link(SAME, "x", "y"), *different_literals("x", "y")))
        if axioms.nothing:
            self.output.begin("ClassAssertion", "ClassAssertion of owl:Nothing")
            self.output.emit(_FALSE, (Member(NOTHING, "x"),))
        for fault in axioms.faults:
            text = f"{fault.kind}({' '.join(map(self.output.name, fault.nodes))})"
            self.output.notes.append(Note(text, fault.why, False, fault.kind, without_terms(fault.why)))

    def _name_what_is_known(self, axioms: Axioms, hierarchy: Hierarchy) -> None:
        """Gives a relation to every subclass expression that contains a superclass expression.

        Rules cannot say that there is some course that a student takes, but they can pass on that there is one.
        """
        for expression, wider in hierarchy.handed_on(axioms.axioms):
            if wider not in self.sides.known:
                self.sides.known[wider] = self.output.helper("known", ("x",), self._text(wider))
            self.sides.hands_on.setdefault(expression, []).append(self.sides.known[wider])

    def _translate(self, axiom: Axiom) -> None:
        for class_, wider in inclusions(axiom):
            self._inclusion(class_, wider)
        for sub, super_ in property_inclusions(axiom):
            self._chain((sub,), super_)
        match axiom.kind, axiom.parts:
            case "DisjointClasses", parts:
                self._disjoint_classes(parts)
            case "DisjointUnion", (_, *parts):
                self._disjoint_classes(tuple(parts))
            case (("SubObjectPropertyOf" | "SubDataPropertyOf"), (tuple() as chain, Property() as super_)):
                self._chain(chain, super_)
            case (("DisjointObjectProperties" | "DisjointDataProperties"), parts):
                self._disjoint_properties(parts)
            case "HasKey", (class_, *keys):
                self._key(class_, keys)
            case (
                ("NegativeObjectPropertyAssertion" | "NegativeDataPropertyAssertion"),
                (Property() as p, str(x), str(y)),
            ):
                self.output.emit(_FALSE, (link(p, x, y),))
            case "DifferentIndividuals", parts:
                self._different(parts)
            case "DLSafeRule", (body, head):
                self._rule(body, head)
            case kind, (Property() as property_,):
                self._characteristic(kind, property_)

    # --- classes ---

    def _inclusion(self, sub: Class, super_: Class) -> None:
        """C ⊑ D. A complement on the left is an alternative on the right, if that leaves no choice there."""
        sub = normal(sub)
        parts = [normal(part) for part in sub.parts] if isinstance(sub, And) else [sub]
        moved = [part.part for part in parts if isinstance(part, Not) and not _is_trivial(part.part)]
        if moved and sum(map(is_open, alternatives(Or((super_, *moved))))) == 1:
            sub = And(tuple(part for part in parts if not isinstance(part, Not) or _is_trivial(part.part)))
            super_ = Or((super_, *moved))
        bodies = self.sides.bodies(sub, "x")
        if bodies:
            for head, more in self.sides.heads(super_, "x"):
                for body in bodies:
                    self.output.emit(head, (*body, *more))

    def _disjoint_classes(self, parts: tuple[Class, ...]) -> None:
        if len(parts) <= _PAIRS:
            for one, other in combinations(parts, 2):
                text = f"DisjointClasses({self._text(one)} {self._text(other)})"
                pairs = self.sides.combined(("x", self.sides.bodies(one, "x")), ("x", self.sides.bodies(other, "x")))
                for body in pairs:
                    self.output.emit(Inconsistent(text), body)
            return
        name = self.output.helper("member", ("x", "class:symbol"))
        for part in parts:
            for body in self.sides.bodies(part, "x"):
                self.output.emit(Helper(name, ("x", quote(self._text(part)))), body)
        self.output.emit(_FALSE, (Helper(name, ("x", "a")), Helper(name, ("x", "b")), Differ("a", "b")))

    def _text(self, part: object) -> str:
        return written(part, self.output.name)

    # --- properties ---

    def _chain(self, links: tuple[Property, ...], super_: Property) -> None:
        variables = ["x", *(f"c{position}" for position in range(1, len(links))), "y"]
        body = tuple(link(p, x, y) for p, x, y in zip(links, variables[:-1], variables[1:], strict=True))
        self.output.emit(link(super_, "x", "y"), body)

    def _disjoint_properties(self, parts: tuple[Property, ...]) -> None:
        if len(parts) <= _PAIRS:
            for one, other in combinations(parts, 2):
                self.output.emit(_FALSE, (link(one, "x", "y"), link(other, "x", "y")))
            return
        name = self.output.helper("member", ("x", "y", "property:symbol"))
        for part in parts:
            self.output.emit(Helper(name, ("x", "y", quote(self._text(part)))), (link(part, "x", "y"),))
        self.output.emit(_FALSE, (Helper(name, ("x", "y", "a")), Helper(name, ("x", "y", "b")), Differ("a", "b")))

    def _characteristic(self, kind: str, property_: Property) -> None:
        def has(x: str, y: str) -> Link:
            return link(property_, x, y)

        match kind:
            case "TransitiveObjectProperty":
                self.output.emit(has("x", "z"), (has("x", "y"), has("y", "z")))
            case "ReflexiveObjectProperty":
                self.output.emit(has("x", "x"), ())
            case "IrreflexiveObjectProperty":
                self.output.emit(_FALSE, (has("x", "x"),))
            case "AsymmetricObjectProperty":
                self.output.emit(_FALSE, (has("x", "y"), has("y", "x")))
            case "FunctionalObjectProperty" | "FunctionalDataProperty":
                for head, body in self.sides.same(property_, "y", "z"):
                    self.output.emit(head, (has("x", "y"), has("x", "z"), *body))
            case "InverseFunctionalObjectProperty" | "InverseFunctionalDataProperty":
                self.output.emit(Equal("x", "y"), (has("x", "z"), has("y", "z")))

    def _key(self, class_: Class, keys: list[Property]) -> None:
        shared = tuple(link(key, x, f"k{position}") for position, key in enumerate(keys) for x in ("x", "y"))
        members = [(x, self.sides.bodies(class_, x)) for x in ("x", "y")]
        for body in self.sides.combined(*members, ("x", [shared])):
            self.output.emit(Equal("x", "y"), body)

    # --- rules of SWRL ---

    def _rule(self, body: tuple[RuleAtom, ...], head: tuple[RuleAtom, ...]) -> None:
        """A rule, once for each atom of its head; without any it says that its body never holds."""
        names: dict[str, str] = {}

        def terms(atom: RuleAtom) -> list[str]:
            return [names.setdefault(a, f"r{len(names)}") if a.startswith("?") else a for a in atom.arguments]

        parts = []
        for atom in body:
            arguments = terms(atom)
            parts.append((arguments[0] if arguments else "x", self._condition(atom, arguments)))
        bodies = self.sides.combined(*parts)
        heads = [found for atom in head for found in self._conclusions(atom, terms(atom))] if head else [(_FALSE, ())]
        for conclusion, more in heads:
            for condition in bodies:
                self.output.emit(conclusion, (*condition, *more))

    def _condition(self, atom: RuleAtom, terms: list[str]) -> list[Body]:
        match atom.kind, terms:
            case "ClassAtom", [x]:
                return self.sides.bodies(atom.predicate, x)
            case "DataRangeAtom", [x]:
                return self.sides.values(atom.predicate, x)
            case (("ObjectPropertyAtom" | "DataPropertyAtom"), [x, y]):
                return [(link(atom.predicate, x, y),)]
            case "SameIndividualAtom", [x, y]:
                return [(Link(SAME, x, y),), (Equal(x, y),)]
            case "DifferentIndividualsAtom", [x, y]:
                return [(Link(DIFFERENT, x, y),)]
        self.output.lose(None, "", f"{atom.text(self.output.name)} is not translated", f"{atom.kind} is not translated")
        return []

    def _conclusions(self, atom: RuleAtom, terms: list[str]) -> list[tuple[Atom, Body]]:
        match atom.kind, terms:
            case "ClassAtom", [x]:
                return self.sides.heads(atom.predicate, x)
            case (("ObjectPropertyAtom" | "DataPropertyAtom"), [x, y]):
                return [(link(atom.predicate, x, y), ())]
            case "SameIndividualAtom", [x, y]:
                return [(Equal(x, y), ())]
            case "DifferentIndividualsAtom", [x, y]:
                return [(Link(DIFFERENT, x, y), ())]
        self.output.lose(None, "", f"{atom.text(self.output.name)} is not translated", f"{atom.kind} is not translated")
        return []

    def _different(self, members: tuple[str, ...]) -> None:
        if len(members) <= _PAIRS:
            for one, other in combinations(members, 2):
                text = f"DifferentIndividuals({self._text(one)} {self._text(other)})"
                body: Body = (Link(SAME, one, other),) if one != other else ()
                self.output.emit(Inconsistent(text), body)
            return
        name = self.output.helper("different", ("x",))
        for member in members:
            self.output.emit(Helper(name, (member,)), ())
        self.output.emit(_FALSE, (Helper(name, ("x",)), Helper(name, ("y",)), Link(SAME, "x", "y"), Differ("x", "y")))


def _is_trivial(class_: Class) -> bool:
    return isinstance(class_, Named) and (class_.name in EVERYTHING or class_.name == NOTHING)
