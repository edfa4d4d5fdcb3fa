"""Groups of rules over files of facts, and the bags of heads that they derive."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from evermat.columns.evaluation.aggregates import listing_plan, lists_groups
from evermat.language import Atom, Relation, Rule, Stratum
from evermat.plan import Check, Match, Plan, Roles, Sizes, Start, Starts, plan_from
from evermat.spark.engine.fact_sets import Counting, FactSet, View
from evermat.spark.engine.job_runner import Found, Job
from evermat.spark.engine.tasks.derive import Derivation, Read
from evermat.spark.engine.tasks.merge import Target
from evermat.spark.engine.tasks.serialization import Shape
from evermat.spark.engine.tasks.set_expressions import ARRIVED, combined, most
from evermat.spark.engine.tasks.worker import Channel

if TYPE_CHECKING:
    from evermat.spark.engine.state import Workshop

_SMALL = 20_000  # facts that one task reads rather than many
_PER_TASK = 8_000_000  # facts of the literal that tasks divide between them
_HELD = 16_000_000  # facts of one literal that a task holds at most


class Rules:
    """A stratum's nonrecursive or recursive rules."""

    def __init__(self, rules: Sequence[Rule], own: frozenset[str], workshop: Workshop) -> None:
        self.rules = rules
        self.workshop = workshop
        self._own = own  # relations of the same stratum: still growing, so their size now says nothing
        self._starts = Starts(rules, own)

    def consequences(
        self,
        positive: View,
        negative: View | None = None,
        *,
        delta_positive: View | None = None,
        delta_negative: View | None = None,
    ) -> Bag:
        """The heads of rule instances; see the algebra. Rules whose delta is empty are not looked at."""
        starts = (
            self._starts.everything()
            if delta_positive is None and delta_negative is None
            else [*self._changed(delta_positive, negated=False), *self._changed(delta_negative, negated=True)]
        )
        roles = Roles(positive, positive if negative is None else negative, delta_positive, delta_negative)
        return Bag(self, starts, roles, "forward")

    def _changed(self, delta: View | None, *, negated: bool) -> Iterator[Start]:
        if delta is not None:
            for name in delta.names:
                if (starts := self._starts.changed(name, negated=negated)) and delta.most(name):
                    yield from starts

    def revised(self, rules: Sequence[Rule]) -> Rules:
        """Others in the place of these."""
        return Rules(rules, self._own, self.workshop)

    def some(self, numbers: Collection[int]) -> Rules:
        """Those with some numbers."""
        return Rules([self.rules[number] for number in sorted(numbers)], self._own, self.workshop)

    @property
    def heads(self) -> set[str]:
        """The relations that the rules derive."""
        return {rule.head.relation.name for rule in self.rules}

    def of(self, stratum: Stratum) -> Rules:
        """The rules that derive relations of a stratum."""
        own = frozenset(stratum.relations)
        return Rules([rule for rule in self.rules if rule.head.relation.name in own], own, self.workshop)

    def derivable(self, heads: View, positive: View, negative: View | None = None) -> Bag:
        """Those of some heads that an instance derives: rules are evaluated backwards; see the in-memory engine for aggregates."""
        starts = self._starts.backward(set(heads.names))
        return Bag(self, starts, Roles(positive, positive if negative is None else negative, asked=heads), "backward")

    def supports(self, heads: View, positive: View, negative: View | None = None) -> Bag:
        """The body facts, of the heads' own stratum, of all instances that derive some heads."""
        starts = self._starts.supports(set(heads.names))
        return Bag(self, starts, Roles(positive, positive if negative is None else negative, asked=heads), "supports")

    def regroup(self, old: View, new: View, gone: dict[str, Any], come: dict[str, Any]) -> tuple[View, View]:
        """Aggregate rules: the results that groups touched by a change lose and gain.

        Touched are the groups of bindings lost or gained; only these are computed, before and after.
        """
        lost, gained = FactSet("lost", self.workshop), FactSet("gained", self.workshop)
        for rule in self.rules:
            if rule.aggregate is not None and (touched := self._touched_groups(rule, old, new, gone, come)):
                before = self._results(rule, touched, old)
                after = self._results(rule, touched, new)
                lost.add(before - after)
                gained.add(after - before)
        return lost, gained

    def _touched_groups(
        self, rule: Rule, old: View, new: View, gone: dict[str, Any], come: dict[str, Any]
    ) -> FactSet | None:
        """The keys of all bindings of an aggregate's body, and of its list of groups, that an update breaks or makes."""
        assert rule.aggregate is not None
        groups = _groups_relation(rule)
        self.workshop.shapes[groups.name] = Shape.of(groups.types)
        touched = FactSet("touched groups", self.workshop)
        head = Atom(groups, rule.aggregate.keys)
        # The list of groups also counts by itself: a group may have no bindings.
        for body in {rule.literals, rule.body} if rule.body else {rule.literals}:
            bindings = Rules([Rule(head, body, rule.span)], frozenset(), self.workshop)
            for view, delta in ((old, gone), (new, come)):
                touched.add(bindings.consequences(view, **delta))
        return touched if touched.count(groups.name) else None

    def _results(self, rule: Rule, groups: FactSet, view: View) -> FactSet:
        """The results of some groups."""
        assert rule.aggregate is not None
        asked = _groups_relation(rule)
        body = (Atom(asked, rule.aggregate.keys), *rule.body)
        limited = Rules([Rule(rule.head, body, rule.span, rule.aggregate)], frozenset(), self.workshop)
        found = FactSet("results", self.workshop)
        found.add(limited.consequences(view | groups))
        return found

    def plan(self, number: int, start: int | None) -> Plan:
        """The plan of a rule, started from a literal or from nothing."""
        return plan_from(self.rules[number], start, self.sizes(self.rules[number]))

    def sizes(self, rule: Rule) -> Sizes:
        """How many facts there are of the relations that a rule reads from below."""
        return {
            literal.relation.name: self.workshop.size(literal.relation.name)
            for literal in rule.literals
            if isinstance(literal, Atom) and literal.relation.name not in self._own
        }


def _groups_relation(rule: Rule) -> Relation:
    """The relation of the keys of a rule's groups."""
    head = rule.head.relation
    return Relation(f"'groups of {head.name} at {rule.span.start}", head.columns[:-1], hidden=True)


class Bag:
    """The heads that some rules derive, over the sets as they were when it was made; they are derived when it is read."""

    def __init__(self, rules: Rules, starts: Sequence[Start], roles: Roles[View], kind: str) -> None:
        self._workshop, self._kind = rules.workshop, kind
        self._plans: list[tuple[Plan, tuple[Read, ...], Rule | None, bool]] = []  # … of an aggregate, only its list
        for number, start in starts:
            rule = rules.rules[number]
            if rule.aggregate is None:
                self._note(rules.plan(number, start), roles, None, listing=False)
            else:
                assert start in (None, 0)
                self._note(rules.plan(number, start), roles, rule, listing=False)
                if lists_groups(rule):
                    self._note(listing_plan(rule, start, rules.sizes(rule)), roles, rule, listing=True)

    def _note(self, plan: Plan, roles: Roles[View], aggregate: Rule | None, *, listing: bool) -> None:
        reads = tuple(
            Read(
                step.relation.name,
                self._workshop.shapes[step.relation.name],
                step.role,
                roles.view(step.role).expression(step.relation.name),
            )
            for step in plan.steps
            if isinstance(step, Match | Check)
        )
        steps = [step for step in plan.steps if isinstance(step, Match | Check)]
        can_match = all(
            isinstance(step, Check) or most(read.expression) for step, read in zip(steps, reads, strict=True)
        )
        if can_match or (aggregate is not None and not listing):  # a group may have a result without bindings
            self._plans.append((plan, reads, aggregate, listing))

    def derive(self, into: FactSet, counting: Counting | None) -> Mapping[str, Found]:
        """What of it is new to a set, in files; counted if asked for."""
        if not self._plans:
            return {}
        names = list(dict.fromkeys(plan.head.relation.name for plan, *_ in self._plans))
        shapes = self._workshop.shapes
        sign = counting.sign if counting is not None else 0
        targets = [
            Target(name, shapes[name], combined("-", ARRIVED, into.expression(name)), sign=sign) for name in names
        ]
        job = Job(f"derive {', '.join(names)[:60]} for {into.name}".replace("'", ""), targets)
        job.channels += [Channel(shapes[name], number) for number, name in enumerate(names)]
        largest = 0
        for plan, reads, aggregate, listing in self._plans:
            target = names.index(plan.head.relation.name)
            channel = target if aggregate is None else _group_channel(job, aggregate, target, listing=listing)
            counted = counting is not None if aggregate is None else not listing
            derivation, rows = _divided(plan, reads, channel, self._workshop.cluster.buckets, counted=counted)
            job.derivations.append(derivation)
            largest = max(largest, rows)
        buckets = self._workshop.cluster.buckets
        job.tasks = 1 if largest <= _SMALL else min(buckets * (1 + largest // (buckets * _PER_TASK)), 32 * buckets)
        found = self._workshop.run(job, self._kind)
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


def _divided(plan: Plan, reads: Sequence[Read], channel: int, buckets: int, *, counted: bool) -> tuple[Derivation, int]:
    """A derivation in which tasks divide the largest positive literal between them, and how much there is to divide."""
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
    if len(ordered) > 1 and sizes[ordered[1]] > _HELD:
        names[ordered[1]] += "'chunked"
        chunked, chunk = names[ordered[1]], max(1, buckets * _HELD // sizes[ordered[1]])
    renamed = {id(step): replace(step.relation, name=name) for step, name in zip(steps, names, strict=True)}
    new_steps = tuple(
        replace(step, relation=renamed[id(step)]) if isinstance(step, Match | Check) else step for step in plan.steps
    )
    new_plan = replace(plan, steps=new_steps)
    new_reads = tuple(replace(read, name=name) for read, name in zip(reads, names, strict=True))
    products = [sizes[i] for i in ordered[1:] if not steps[i].key and i > 0]  # every binding meets every fact
    return Derivation(new_plan, channel, counted, new_reads, names[own], chunked, chunk), sizes[own] * prod(products)
