"""Stratification: an order of evaluation in which everything negated or aggregated is complete before it is read.

Strata are as fine as they can be without being many: relations that depend on each other (recursion) form a
stratum; the relations of one level that do not are put together. A rule is recursive if a positive atom of its body
is of the head's own stratum. Every relation has a stratum, also one that no rule mentions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from evermat.core import Problems
from evermat.core import error_catalogue as errors
from evermat.language.analysis.scc import strong_components
from evermat.language.model import Atom, Negation, Program, Relation, Rule
from evermat.language.patterns.closures import Closure, find_closures
from evermat.language.patterns.equality import EQUALITY_CLASSES, equality_of, rewritten_columns

_SHOWN = 12  # relations of a cycle that are shown


@dataclass(frozen=True, eq=False)
class Stratum:
    """The relations of one stratum, and the rules that derive them.

    The recursive rules are split into modules: the closures, and the plain ones.
    """

    relations: tuple[str, ...]
    nonrecursive: tuple[Rule, ...]
    recursive: tuple[Rule, ...]
    closures: tuple[Closure, ...] = ()
    equality: bool = False  # whether its facts say which terms are equal, and equal terms are represented by one

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self.nonrecursive + self.recursive

    @cached_property
    def reads(self) -> frozenset[str]:
        """The relations that its rules read; every update asks."""
        return frozenset(name for rule in self.rules for name in rule.reads)

    @property
    def plain(self) -> tuple[Rule, ...]:
        """The recursive rules of no closure."""
        closed = {rule for closure in self.closures for rule in closure.rules}
        return tuple(rule for rule in self.recursive if rule not in closed)

    @property
    def signature(self) -> tuple[tuple[str, ...], ...]:
        """What decides which derivations are counted where: equal for strata of two programs that count alike."""
        kinds = (self.nonrecursive, self.recursive, self.plain)
        return (tuple(sorted(self.relations)), *(tuple(sorted(map(str, rules))) for rules in kinds))


@dataclass(frozen=True, slots=True)
class _Use:
    """A head reads a relation; `strict` if that must be complete before."""

    relation: str
    strict: bool
    rule: Rule | None  # None: what holds of a term holds of all that are equal to it


def stratify(program: Program, problems: Problems) -> tuple[Stratum, ...]:
    """The strata in the order of evaluation; reports negation and aggregation in a cycle."""
    uses: dict[str, list[_Use]] = {name: [] for name in program.relations}
    for rule in program.rules:
        uses[rule.head.relation.name] += _uses(rule)
    same = equality_of(program.relations) if program.rewriting else None
    if same is not None:
        for name, relation in program.relations.items():
            if rewritten_columns(relation):
                uses[name].append(_Use(same.name, False, None))
        # No rule derives who stands for whom: what computes other relations again leaves it alone, in a stratum of its own.
        uses[EQUALITY_CLASSES.name].append(_Use(EQUALITY_CLASSES.name, False, None))
    components = strong_components({name: [u.relation for u in found] for name, found in uses.items()})
    component_of = {name: i for i, component in enumerate(components) for name in component}
    sound = True
    for name, found in uses.items():
        for use in found:
            if use.strict and component_of[use.relation] == component_of[name]:
                sound = False
                if len(problems) > problems.LIMIT:
                    continue
                steps = _cycle(name, use, uses, component_of)
                _report(program.relations[name], steps, program, problems)
    if not sound:
        return ()
    return _group(program, components, component_of, uses)


def _uses(rule: Rule) -> Iterator[_Use]:
    """What the head of a rule depends on; what an aggregate ranges over must be complete, its list of groups need not."""
    for position, literal in enumerate(rule.literals):
        match literal:
            case Atom(relation):
                yield _Use(relation.name, position >= len(rule.body), rule)
            case Negation(Atom(relation)):
                yield _Use(relation.name, True, rule)


def _group(
    program: Program, components: list[list[str]], component_of: dict[str, int], uses: dict[str, list[_Use]]
) -> tuple[Stratum, ...]:
    """Levels: a recursive component is a stratum, the other relations of a level are one together."""
    level = [0] * len(components)
    recursive = [False] * len(components)
    for i, component in enumerate(components):
        for name in component:
            for use in uses[name]:
                below = component_of[use.relation]
                if below == i:
                    recursive[i] = True
                else:
                    level[i] = max(level[i], level[below] + 1)
    groups: dict[tuple[int, int], list[str]] = {}
    for i, component in enumerate(components):
        groups.setdefault((level[i], i + 1 if recursive[i] else 0), []).extend(component)
    position = {name: n for n, name in enumerate(program.relations)}
    rules_of: dict[str, list[Rule]] = {}
    for rule in program.rules:
        rules_of.setdefault(rule.head.relation.name, []).append(rule)
    same = {use.relation for found in uses.values() for use in found if use.rule is None} - {EQUALITY_CLASSES.name}
    strata = []
    for key in sorted(groups):
        names = sorted(groups[key], key=position.__getitem__)
        members = set(names)
        rules = [rule for name in names for rule in rules_of.get(name, ())]
        split = [(rule, _reads(rule, members)) for rule in rules]
        nonrecursive_rules = tuple(rule for rule, is_recursive in split if not is_recursive)
        recursive_rules = tuple(rule for rule, is_recursive in split if is_recursive)
        # Where terms become equal, graphs of closures would have to be renamed all the time.
        closures = find_closures(recursive_rules, members) if members.isdisjoint(same) else ()
        equality = not members.isdisjoint(same)
        strata.append(Stratum(tuple(names), nonrecursive_rules, recursive_rules, closures, equality))
    return tuple(strata)


def _reads(rule: Rule, members: set[str]) -> bool:
    """Whether a rule is recursive: a positive body atom is of the head's own stratum."""
    return any(isinstance(literal, Atom) and literal.relation.name in members for literal in rule.body)


def _cycle(name: str, use: _Use, uses: dict[str, list[_Use]], component_of: dict[str, int]) -> list[_Use]:
    """The steps of the shortest cycle that begins with a use."""
    before: dict[str, tuple[str, _Use]] = {}
    waiting = [use.relation]
    for node in waiting:
        if node == name:
            break
        for step in uses[node]:
            if component_of[step.relation] == component_of[name] and step.relation not in before:
                before[step.relation] = (node, step)
                if step.relation != use.relation:
                    waiting.append(step.relation)
    node, path = name, []
    while node != use.relation:
        node, step = before[node]
        path.append(step)
    return [use, *reversed(path)]


def _report(head: Relation, steps: list[_Use], program: Program, problems: Problems) -> None:
    """Tells a cycle in the user's own relations: a step within what stands in for one of them is left out."""
    use, at, shown = steps[0], head.shown, head.shown
    assert use.rule is not None
    sign = ""  # of a step that was left out: that of the next one is the same to the user
    texts = [f"`{shown}`"]
    for step in steps:
        relation = program.relations[step.relation]
        sign = sign or _sign(step)
        if relation.shown != at or (step.strict and not relation.hidden):
            texts.append(f"{sign}`{relation.shown}`")
            sign = ""
        at = relation.shown
    if len(texts) == 1:
        texts.append(f"{_sign(use)}`{shown}`")
    if len(texts) > _SHOWN:
        texts[_SHOWN // 2 : -_SHOWN // 2] = ["…"]
    aggregate = use.rule.aggregate
    kind = errors.CYCLIC_NEGATION if aggregate is None else errors.CYCLIC_AGGREGATION
    span = use.rule.span if aggregate is None else aggregate.span
    problems.add(kind, span, name=shown, cycle=" → ".join(texts))


def _sign(use: _Use) -> str:
    return "" if not use.strict or use.rule is None else "aggregate of " if use.rule.aggregate else "!"
