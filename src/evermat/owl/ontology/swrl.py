"""Rules of SWRL, which ontologies may hold beside axioms: their atoms, read from a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evermat.owl.ontology.expressions import Namer, Reader, written
from evermat.owl.ontology.graph import MalformedError
from evermat.owl.vocabulary import SWRL, TYPE, swrl


@dataclass(frozen=True, slots=True)
class RuleAtom:
    """An atom: its name in functional syntax, a class, property or data range, and terms or variables.

    A variable is a name that begins with `?`.
    """

    kind: str
    predicate: Any
    arguments: tuple[str, ...]

    def text(self, name: Namer) -> str:
        shown = [f"Variable({name(a[1:])})" if a.startswith("?") else name(a) for a in self.arguments]
        first = [] if self.predicate is None else [written(self.predicate, name)]
        return f"{self.kind}({' '.join(first + shown)})"


# The names of atoms in RDF and in functional syntax, how many arguments they have, and what their predicate is.
_ATOMS = {
    "ClassAtom": ("ClassAtom", 1, "classPredicate"),
    "IndividualPropertyAtom": ("ObjectPropertyAtom", 2, "propertyPredicate"),
    "DatavaluedPropertyAtom": ("DataPropertyAtom", 2, "propertyPredicate"),
    "DataRangeAtom": ("DataRangeAtom", 1, "dataRange"),
    "SameIndividualAtom": ("SameIndividualAtom", 2, ""),
    "DifferentIndividualsAtom": ("DifferentIndividualsAtom", 2, ""),
    "BuiltinAtom": ("BuiltInAtom", 0, "builtin"),
}
NAMES = {functional: (rdf, count, predicate) for rdf, (functional, count, predicate) in _ATOMS.items()}


def read_rule(reader: Reader, node: str) -> tuple[tuple[RuleAtom, ...], tuple[RuleAtom, ...]]:
    """The atoms of the body and of the head of a rule."""
    return _atoms(reader, node, "body"), _atoms(reader, node, "head")


def _atoms(reader: Reader, node: str, side: str) -> tuple[RuleAtom, ...]:
    if not reader.graph.values(node, swrl(side)):
        return ()
    return tuple(_atom(reader, atom) for atom in reader.graph.members(reader.graph.value(node, swrl(side))))


def _atom(reader: Reader, node: str) -> RuleAtom:
    graph = reader.graph
    kinds = [_ATOMS[local] for type_ in graph.values(node, TYPE) if (local := type_[len(SWRL) + 1 : -1]) in _ATOMS]
    if len(kinds) != 1:
        raise MalformedError(f"{node} is not an atom")
    kind, count, key = kinds[0]
    arguments = tuple(_argument(reader, graph.value(node, swrl(f"argument{i}"))) for i in range(1, count + 1))
    if not key:
        return RuleAtom(kind, None, arguments)
    predicates = {"classPredicate": reader.class_, "propertyPredicate": reader.property_of, "dataRange": reader.range}
    read: Callable[[str], Any] = predicates.get(key, str)
    return RuleAtom(kind, read(graph.value(node, swrl(key))), arguments)


def _argument(reader: Reader, node: str) -> str:
    return f"?{node}" if (node, TYPE, swrl("Variable")) in reader.graph else node
