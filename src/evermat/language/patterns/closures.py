"""Closures: recursive rules that graph algorithms can evaluate, because all that they do is to follow paths.

    subOrgOf(x, z) :- subOrgOf(x, y), subOrgOf(y, z).                                transitive
    same(x, y) :- same(y, x).  same(x, z) :- same(x, y), same(y, z).                 symmetric-transitive
    path(x, z) :- path(x, y), edge(y, z).                                            linear

Only the form of a rule counts, not the names of its variables nor the order of its literals. Other rules may derive
into the same relations, recursive ones too: to a closure all that is facts from elsewhere.

Relations that copy each other in a circle hold the same pairs, perhaps turned (`narrower(x, y) :- broader(y, x)`), and
are closed together. To find them, each relation stands for two nodes: its pairs, and its pairs turned. A copy leads from
each node of the relation that it reads to one of the relation that it derives; nodes that reach each other hold the same
pairs. Where the two nodes of a relation do, the relation is symmetric.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from evermat.language.analysis.scc import strong_components
from evermat.language.model import Atom, Rule, Term, Variable
from evermat.language.terms import SAME_AS

MOST_PARTS = 14  # an engine has a bit for each
_Node = tuple[str, bool]  # a relation, and whether its pairs are turned
_Pair = tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A relation that takes part in a closure; `flipped`: its facts are edges from the second column to the first."""

    relation: str
    flipped: bool


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """Rules that close relations: what they derive is R = X ∘ B*.

    X are the edges from elsewhere: the facts of the members that are explicit or derived by other rules. B are the steps.
    A pair (u, w) is in R if an edge leads from u to some v, and some number of steps, perhaps none, from v to w.

    - Without `bases` the edges are the steps too: R is X⁺, the transitive closure. If it is `symmetric`, each edge is
      also one in the other direction.
    - With `bases` the facts of these relations, which are of lower strata, are the steps. There is one member. What it
      holds at the start of an edge is only passed on, and may be of another type than the rest.

    All members hold R, turned where they are flipped. The first member of a closure without bases is not flipped, and
    none of a symmetric one is.
    """

    rules: tuple[Rule, ...]
    members: tuple[Member, ...]
    bases: tuple[Member, ...] = ()
    symmetric: bool = False

    @property
    def kind(self) -> str:
        """`transitive`, `symmetric-transitive` or `linear`."""
        return "linear" if self.bases else "symmetric-transitive" if self.symmetric else "transitive"

    @property
    def parts(self) -> int:
        """For how many reasons there may be an edge: members, in each direction that counts, and bases."""
        return len(self.members) * (2 if self.symmetric else 1) + len(self.bases)


@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """A rule by which all facts of a relation of a lower stratum are external facts of a closure, and that relation; flipped if they are reversed edges."""

    rule: Rule
    source: Member


def find_closures(recursive: Sequence[Rule], own: Collection[str]) -> tuple[Closure, ...]:
    """The closures among the recursive rules of a stratum, whose relations are `own`; in the order of their first rules.

    A relation is a member of at most one closure, and a rule belongs to at most one. Rules of no closure stay what they were.
    """
    rules = [rule for rule in recursive if _has_only_pairs(rule)]
    transitive = _transitive(rules, _classes(rules, own))
    closed = {member.relation for closure in transitive for member in closure.members}
    closures = transitive + _linear(rules, own, closed)
    place = {rule: i for i, rule in enumerate(rules)}
    small = [closure for closure in closures if closure.parts <= MOST_PARTS]
    return tuple(sorted(small, key=lambda closure: place[closure.rules[0]]))


def find_copies(closure: Closure, nonrecursive: Iterable[Rule]) -> tuple[Copy, ...]:
    """The nonrecursive rules of its stratum that copy relations, perhaps turned, into members of a closure; none if there would be too many parts."""
    members = {member.relation: member for member in closure.members}
    copies = []
    for rule in nonrecursive:
        member = members.get(rule.head.relation.name)
        if member is not None and _has_only_pairs(rule) and _is_copy(rule):
            head, source = _atoms(rule)
            copies.append(Copy(rule, Member(source.relation.name, source.terms != _edge(head, member))))
    parts = len({copy.source for copy in copies}) * (2 if closure.symmetric else 1)
    return tuple(copies) if closure.parts + parts <= MOST_PARTS else ()


def _has_only_pairs(rule: Rule) -> bool:
    """Whether the body is one or two atoms and nothing else, and each of them and the head two different variables."""
    return rule.aggregate is None and len(rule.body) in (1, 2) and all(map(_is_pair, (rule.head, *rule.body)))


def _is_pair(literal: object) -> bool:
    return (
        isinstance(literal, Atom)
        and len(literal.terms) == 2
        and all(isinstance(term, Variable) for term in literal.terms)
        and literal.terms[0] != literal.terms[1]
    )


def _atoms(rule: Rule) -> list[Atom]:
    """Head and body of a rule that has only atoms."""
    return [rule.head, *(literal for literal in rule.body if isinstance(literal, Atom))]


def _edge(atom: Atom, member: Member) -> _Pair:
    """The variables of an atom of a member, in the direction of the edge."""
    return atom.terms[::-1] if member.flipped else atom.terms


# --- classes: relations that hold the same pairs -----------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Class:
    """Relations that hold the same pairs; the first is not flipped, and none of a symmetric class is."""

    members: tuple[Member, ...]
    symmetric: bool


def _classes(rules: Iterable[Rule], own: Collection[str]) -> list[_Class]:
    """The relations of the stratum that rules mention, each in one class; in the order in which they appear."""
    edges: dict[_Node, list[_Node]] = {}
    for rule in rules:
        atoms = _atoms(rule)
        for name in (atom.relation.name for atom in atoms):
            if name in own:
                edges.setdefault((name, False), [])
                edges.setdefault((name, True), [])
        if _is_copy(rule) and atoms[1].relation.name in own:
            turned = atoms[0].terms != atoms[1].terms
            for way in (False, True):
                edges[atoms[1].relation.name, way].append((atoms[0].relation.name, way != turned))
    classes = []
    known: set[str] = set()
    place = {node: i for i, node in enumerate(edges)}
    components = [sorted(component, key=place.__getitem__) for component in strong_components(edges)]
    for component in sorted(components, key=lambda component: place[component[0]]):
        first, _ = component[0]
        if first not in known:  # otherwise it is a class from its other side
            symmetric = (first, True) in component
            members = tuple(Member(name, turned) for name, turned in component if not (symmetric and turned))
            known.update(member.relation for member in members)
            classes.append(_Class(members, symmetric))
    return classes


def _is_copy(rule: Rule) -> bool:
    return len(rule.body) == 1 and {*rule.head.terms} == {*_atoms(rule)[1].terms}


# --- the kinds ---------------------------------------------------------------------------------------------


def _transitive(rules: Iterable[Rule], classes: Iterable[_Class]) -> list[Closure]:
    """A closure for each class that has a transitive rule: its transitive rules, and all copies between its members."""
    class_of = {member.relation: (group, member) for group in classes for member in group.members}
    taken: dict[_Class, list[Rule]] = {}
    closed: dict[_Class, None] = {}
    for rule in rules:
        atoms = _atoms(rule)
        found = [class_of[atom.relation.name] for atom in atoms if atom.relation.name in class_of]
        group = found[0][0]
        if len(found) < len(atoms) or any(other is not group for other, _ in found):
            continue
        if _is_copy(rule):
            taken.setdefault(group, []).append(rule)
        elif len(atoms) == 3:
            head, first, second = (_edge(atom, member) for atom, (_, member) in zip(atoms, found, strict=True))
            if _joins(head, first, second, group.symmetric):
                taken.setdefault(group, []).append(rule)
                closed[group] = None
    return [Closure(tuple(taken[group]), group.members, symmetric=group.symmetric) for group in closed]


def _joins(head: _Pair, first: _Pair, second: _Pair, symmetric: bool) -> bool:
    """Whether the head leads from one end of a path of two edges to the other. In each pair there are two variables."""
    if symmetric:
        return {*first} ^ {*second} == {*head}
    return any((a[0], b[1]) == head and a[1] == b[0] for a, b in ((first, second), (second, first)))


def _linear(rules: Iterable[Rule], own: Collection[str], closed: Collection[str]) -> list[Closure]:
    """A closure for each relation that is not closed yet and has linear rules: those that keep the same column.

    Rules that keep the first column and rules that keep the second are together no closure of this form: the more
    numerous are taken, and of equally many those that come first.
    """
    kinds: dict[str, dict[Member, list[tuple[Rule, Member]]]] = {}
    for rule in rules:
        name = rule.head.relation.name
        if name not in closed and (found := _linear_rule(rule, own)):
            member, base = found
            kinds.setdefault(name, {}).setdefault(member, []).append((rule, base))
    closures = []
    for kind in kinds.values():
        member, taken = max(kind.items(), key=lambda item: len(item[1]))  # the first of equals
        bases = dict.fromkeys(base for _, base in taken)
        closures.append(Closure(tuple(rule for rule, _ in taken), (member,), tuple(bases)))
    return closures


def _linear_rule(rule: Rule, own: Collection[str]) -> tuple[Member, Member] | None:
    """The member and the base of R(x, z) :- R(x, y), B(y, z); or, with both turned, of R(x, z) :- B(x, y), R(y, z).

    B may stand the other way round too.
    """
    head, *body = _atoms(rule)
    name = head.relation.name
    ours = [atom for atom in body if atom.relation.name == name]
    steps = [atom for atom in body if atom.relation.name not in own]
    if not (len(ours) == len(steps) == 1):
        return None
    if steps[0].relation.name == SAME_AS:  # is closed already, and mostly small: one step is all
        return None
    for member in (Member(name, False), Member(name, True)):
        start, end = _edge(head, member)
        kept, middle = _edge(ours[0], member)
        for base in (Member(steps[0].relation.name, False), Member(steps[0].relation.name, True)):
            if kept == start and _edge(steps[0], base) == (middle, end):
                return member, base
    return None
