"""Equality in plain Python: all facts in all names, and their rewriting. It decides what is right.

Equal are those terms that facts of owl:sameAs connect, and a fact holds in all names of its terms. The rules are taken as they are written, see
`tests.support.oracle`, and applied to all facts until nothing is new; what they negate or aggregate is complete before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product

from evermat.language.builtins import Type
from evermat.language.literal_values import different_values
from evermat.language.model import Atom, Constant, Program, Rule, Variable, variables_of
from evermat.language.patterns.triples import TRIPLE
from evermat.language.terms import SAME_AS
from tests.support import oracle
from tests.support.oracle import Binding, Facts

Classes = dict[str, frozenset[str]]


@dataclass(frozen=True)
class Result:
    """All that follows, in names; and the same said of representatives."""

    program: Program
    facts: Facts
    classes: Classes = field(repr=False)  # of all terms that are the same as another one

    def names(self, term: str) -> list[str]:
        """All names of a term."""
        return sorted(self.classes.get(term, {term}))

    def representative(self, term: str) -> str:
        """The smallest name; that of equality itself is the smallest of all."""
        return min(self.names(term), key=lambda name: (name != SAME_AS, name.encode()))

    def rewritten(self, name: str) -> set[tuple]:
        """π(facts) of a relation."""
        types = self.program.relations[name].types
        return {self.normal(row, types) for row in self.facts[name]}

    def normal(self, row: tuple, types: tuple[Type, ...]) -> tuple:
        """A row with representatives in place of its terms."""
        pairs = zip(row, types, strict=True)
        return tuple(self.representative(value) if type_ is Type.TERM else value for value, type_ in pairs)

    @cached_property
    def clashes(self) -> bool:
        """Whether literals of different value are the same, which nobody can mean."""
        pairs = (pair for names in set(self.classes.values()) for pair in combinations(names, 2))
        return any(different_values(x, y) for x, y in pairs)


def materialise(program: Program, explicit: Mapping[str, set[tuple]]) -> Result:
    """All consequences of a program and explicit facts; those in its text count only if they are among these."""
    facts, classes = closed(program, {name: set(explicit.get(name, ())) for name in program.relations})
    for level in _levels(program):
        changed = True
        while changed:
            new = {name: set(rows) for name, rows in facts.items()}
            for name in (name for name in level if program.relations[name].equivalence):
                pairs = facts[name]
                new[name] |= {(y, x) for x, y in pairs} | {(x, z) for x, y in pairs for y2, z in pairs if y == y2}
            for rule in program.rules:
                if rule.head.relation.name in level:
                    new[rule.head.relation.name] |= derived(rule, facts)
            new, classes = closed(program, new)
            changed = new != facts
            facts = new
    return Result(program, facts, classes)


def closed(program: Program, facts: Facts) -> tuple[Facts, Classes]:
    """The facts under all names, and the classes of terms that are the same; such facts may say that more are the same."""
    while True:
        classes = _connected(facts.get(SAME_AS, set()) | {(s, o) for s, p, o in facts.get(TRIPLE, ()) if p == SAME_AS})
        new = {
            name: {renamed for row in rows for renamed in _in_all_names(row, program.relations[name].types, classes)}
            for name, rows in facts.items()
        }
        if new == facts:
            return facts, classes
        facts = new


def _connected(pairs: set[tuple]) -> Classes:
    """For all terms that are the same as another: all that are the same."""
    classes: Classes = {}
    for x, y in pairs:
        together = classes.get(x, frozenset([x])) | classes.get(y, frozenset([y]))
        if x != y:
            classes |= dict.fromkeys(together, together)
    return classes


def _in_all_names(row: tuple, types: tuple[Type, ...], classes: Classes) -> Iterator[tuple]:
    return product(*(classes.get(v, (v,)) if type_ is Type.TERM else (v,) for v, type_ in zip(row, types, strict=True)))


def _levels(program: Program) -> list[set[str]]:
    """Relations in an order in which what is negated or aggregated comes first; those with terms need equality."""
    same = TRIPLE if TRIPLE in program.relations else SAME_AS
    level = dict.fromkeys(program.relations, 0)
    for _ in range(len(level) + 1):
        for rule in program.rules:
            name = rule.head.relation.name
            level[name] = max([level[name], *(level[read] + strict for read, strict in oracle.reads(rule.body))])
        for name, relation in program.relations.items():
            if Type.TERM in relation.types:
                level[name] = max(level[name], level.get(same, 0))
    return [{name for name in level if level[name] == n} for n in range(max(level.values(), default=0) + 1)]


def derived(rule: Rule, facts: Facts) -> set[tuple]:
    """The heads of a rule's instances. Facts in all names are too many for products: atoms look for those that suit them."""
    atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
    rest = [literal for literal in rule.body if not isinstance(literal, Atom)]
    found: list[Binding] = [{}]
    for number, atom in enumerate(atoms, 1):
        known = [i for i, term in enumerate(atom.terms) if found and _has_value(term, found[0])]
        index: dict[tuple, list[tuple]] = {}
        for row in facts[atom.relation.name]:
            index.setdefault(tuple(row[i] for i in known), []).append(row)
        read = {variable.name for variable in variables_of(rule.head, *rest, *atoms[number:])}
        different = {
            frozenset((name, value) for name, value in extended.items() if name in read)
            for binding in found
            for row in index.get(tuple(oracle.value(atom.terms[i], binding) for i in known), ())
            if (extended := oracle.match(atom, row, binding)) is not None
        }
        found = [dict(binding) for binding in different]
    return {oracle.head(rule, b) for binding in found for b in oracle.bindings(rest, facts, binding)}


def _has_value(term: object, binding: Binding) -> bool:
    return isinstance(term, Constant) or (isinstance(term, Variable) and term.name in binding)
