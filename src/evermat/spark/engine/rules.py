"""Groups of rules over files of facts, and the bags of heads that they derive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from evermat.columns import listing_plan, lists_groups
from evermat.engine import BaseRules, limited_to
from evermat.language import Atom, Relation, Rule
from evermat.plan import Check, Match, Plan, Roles, Sizes, Start, plan_from
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.fact_sets import Counting, FactSet, View
from evermat.spark.engine.job_runner import Cluster, Found, Job
from evermat.spark.engine.tasks.derive import Derivation, Read
from evermat.spark.engine.tasks.merge import Target
from evermat.spark.engine.tasks.serialization import Shape
from evermat.spark.engine.tasks.set_expressions import ARRIVED, combined, most
from evermat.spark.engine.tasks.worker import Channel

_SMALL = 20_000  # facts that one task reads rather than many
_PER_TASK = 8_000_000  # facts of the literal that tasks divide between them
MOST_HELD = 16_000_000  # facts of one literal that a task holds at most


class Rules(BaseRules[EngineContext, View, "Bag", FactSet]):
    """A stratum's nonrecursive or recursive rules."""

    def _bag(self, starts: Sequence[Start], roles: Roles[View], kind: str) -> Bag:
        return Bag(self, starts, roles, kind)

    def _concerned(self, delta: View, name: str, starts: Sequence[Start]) -> Sequence[Start]:
        return starts if delta.most(name) else ()

    def _groups(self, keys: Relation, bags: Iterable[Bag]) -> FactSet:
        self.context.shapes[keys.name] = Shape.of(keys.types)
        return self._filled("touched groups", bags)

    def _results(self, rule: Rule, keys: Relation, groups: FactSet, view: View) -> View:
        return self._filled("results", [self._group([limited_to(rule, keys)]).consequences(view | groups)])

    def _together(self, views: Sequence[View]) -> View:
        return self._filled("results that change", views)

    def _filled(self, name: str, parts: Iterable[View | Bag]) -> FactSet:
        made = FactSet(name, self.context)
        for part in parts:
            made.add(part)
        return made

    def plan(self, number: int, start: int | None) -> Plan:
        """The plan of a rule, started from a literal or from nothing."""
        return plan_from(self.rules[number], start, self.sizes(self.rules[number]))

    def sizes(self, rule: Rule) -> Sizes:
        """The numbers of facts of the relations of lower strata that a rule reads."""
        return {
            literal.relation.name: self.context.size(literal.relation.name)
            for literal in rule.literals
            if isinstance(literal, Atom) and literal.relation.name not in self._own
        }


class Bag:
    """The heads that some rules derive over the sets at its creation; they are derived when it is read."""

    def __init__(self, rules: Rules, starts: Sequence[Start], roles: Roles[View], kind: str) -> None:
        self._context, self._kind = rules.context, kind
        self._plans: list[tuple[Plan, tuple[Read, ...], Rule | None, bool]] = []  # … of an aggregate, only its list
        for number, start in starts:
            rule = rules.rules[number]
            is_aggregate = rule.aggregate is not None
            assert not is_aggregate or start in (None, 0)
            self._add(rules.plan(number, start), roles, rule if is_aggregate else None, listing=False)
            if is_aggregate and lists_groups(rule):
                self._add(listing_plan(rule, start, rules.sizes(rule)), roles, rule, listing=True)

    def _add(self, plan: Plan, roles: Roles[View], aggregate: Rule | None, *, listing: bool) -> None:
        reads, can_match = [], True
        for step in plan.steps:
            if isinstance(step, Match | Check):
                name = step.relation.name
                expression = roles.view(step.role).expression(name)
                reads.append(Read(name, self._context.shapes[name], step.role, expression))
                can_match &= isinstance(step, Check) or most(expression) > 0
        if can_match or (aggregate is not None and not listing):  # a group may have a result without bindings
            self._plans.append((plan, tuple(reads), aggregate, listing))

    def derive(self, into: FactSet, counting: Counting | None) -> Mapping[str, Found]:
        """The heads that are new to a set, in files; all heads are counted if there is a `counting`."""
        if not self._plans:
            return {}
        names = list(dict.fromkeys(plan.head.relation.name for plan, *_ in self._plans))
        shapes = self._context.shapes
        sign = counting.sign if counting is not None else 0
        targets = [
            Target(name, shapes[name], combined("-", ARRIVED, into.expression(name)), sign=sign) for name in names
        ]
        job = Job(f"derive {', '.join(names)[:60]} for {into.name}".replace("'", ""), targets)
        job.channels += [Channel(shapes[name], number) for number, name in enumerate(names)]
        largest, cluster = 0, self._context.cluster
        for plan, reads, aggregate, listing in self._plans:
            target = names.index(plan.head.relation.name)
            channel = target if aggregate is None else _group_channel(job, aggregate, target, listing=listing)
            counted = counting is not None if aggregate is None else not listing
            derivation, rows = _divided(plan, reads, channel, cluster, counted=counted)
            job.derivations.append(derivation)
            largest = max(largest, rows)
        per_task = cluster.budget.of(_PER_TASK)
        most = cluster.buckets * (1 + largest // (cluster.buckets * per_task))
        job.tasks = 1 if largest <= _SMALL else min(most, 32 * cluster.buckets)
        found = self._context.run(job, self._kind)
        by_name = dict(zip(names, found, strict=True))
        if counting is not None:
            counting.counter.take(by_name)
        return by_name


def _group_channel(job: Job, rule: Rule, target: int, *, listing: bool) -> int:
    """A channel for the bindings of an aggregate, or for the list of its groups."""
    aggregate = rule.aggregate
    assert aggregate is not None
    keys = [key.type for key in aggregate.keys]
    value = [] if listing or aggregate.value is None else [aggregate.value.type]
    shape = Shape.of([*keys, *value], range(len(keys)))
    job.channels.append(Channel(shape, target, rule, listing, heads=target))
    return len(job.channels) - 1


def _divided(
    plan: Plan, reads: Sequence[Read], channel: int, cluster: Cluster, *, counted: bool
) -> tuple[Derivation, int]:
    """A derivation in which tasks divide the largest positive literal between them, and the size of the work."""
    steps = [step for step in plan.steps if isinstance(step, Match | Check)]
    sizes = {
        i: most(read.expression)
        for i, (step, read) in enumerate(zip(steps, reads, strict=True))
        if isinstance(step, Match)
    }
    ordered = sorted(sizes, key=lambda i: -sizes[i])
    names = [read.name for read in reads]
    if not ordered:
        return Derivation(plan, channel, counted, tuple(reads)), 0
    own = ordered[0]
    names[own] += "'own"
    chunked, chunk = None, 1
    held = cluster.budget.whole(MOST_HELD)
    if len(ordered) > 1 and sizes[ordered[1]] > held:
        names[ordered[1]] += "'chunked"
        chunked, chunk = names[ordered[1]], max(1, cluster.buckets * held // sizes[ordered[1]])
    renamed = {id(step): replace(step.relation, name=name) for step, name in zip(steps, names, strict=True)}
    new_steps = tuple(
        replace(step, relation=renamed[id(step)]) if isinstance(step, Match | Check) else step for step in plan.steps
    )
    new_plan = replace(plan, steps=new_steps)
    new_reads = tuple(replace(read, name=name) for read, name in zip(reads, names, strict=True))
    products = [sizes[i] for i in ordered[1:] if not steps[i].key and i > 0]  # every binding meets every fact
    return Derivation(new_plan, channel, counted, new_reads, names[own], chunked, chunk), sizes[own] * prod(products)
