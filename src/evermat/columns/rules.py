"""Groups of rules over columns, and the bags of heads that they derive."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from evermat.columns.aggregates import AggregatePipeline
from evermat.columns.pipeline import Pipeline, Select, Selection, Sink, Store
from evermat.columns.views import View
from evermat.plan.planner import delta_plan, full_plan
from evermat.plan.steps import Plan, Role
from evermat.program.model import Atom, Negation, Relation, Rule


class Compiled(Protocol):
    """A rule's plan, ready to run."""

    plan: Plan

    @property
    def undefined(self) -> int:
        """Bindings dropped because something had no value."""

    def run(self, select: Select, sink: Sink) -> None:
        """Sends what the plan finds to the sink."""


class Rules:
    """A stratum's nonrecursive or recursive rules. Plans are made and compiled when first needed."""

    def __init__(self, rules: Sequence[Rule], own: frozenset[str], store: Store) -> None:
        self.rules = rules
        self._store = store
        self._own = own  # relations of the same stratum: still growing, so their size now says nothing
        self._compiled: dict[tuple[int, int | None, bool], Compiled] = {}
        self._readers: dict[tuple[str, bool], list[tuple[int, int]]] = {}
        for number, rule in enumerate(rules):
            for position, literal in enumerate(rule.literals):
                if isinstance(literal, Atom):
                    self._readers.setdefault((literal.relation.name, False), []).append((number, position))
                elif isinstance(literal, Negation):
                    self._readers.setdefault((literal.atom.relation.name, True), []).append((number, position))

    def consequences(
        self,
        positive: View,
        negative: View | None = None,
        *,
        delta_positive: View | None = None,
        delta_negative: View | None = None,
    ) -> Bag:
        """The heads of rule instances; see the algebra. Rules whose delta is empty are not looked at."""
        jobs: list[tuple[int, int | None]]
        if delta_positive is None and delta_negative is None:
            jobs = [(number, None) for number in range(len(self.rules))]
        else:
            jobs = [*self._jobs(delta_positive, negated=False), *self._jobs(delta_negative, negated=True)]
        return Bag(self, jobs, Roles(positive, positive if negative is None else negative, delta_positive, delta_negative))

    def _jobs(self, delta: View | None, *, negated: bool) -> Iterator[tuple[int, int]]:
        if delta is not None:
            for name in delta.names:
                if (readers := self._readers.get((name, negated))) and not delta.select(name).empty:
                    yield from readers

    def compiled(self, number: int, start: int | None, *, counted: bool) -> Compiled:
        """The pipeline of a rule, started from a literal or from nothing."""
        key = (number, start, counted)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._compile(self.rules[number], start, counted=counted)
        return found

    def _compile(self, rule: Rule, start: int | None, *, counted: bool) -> Compiled:
        sizes = {
            literal.relation.name: self._store.tables[literal.relation.name].count
            for literal in rule.literals
            if isinstance(literal, Atom) and literal.relation.name not in self._own
        }
        if rule.aggregate is not None:
            return AggregatePipeline(rule, start, self._store, sizes)
        plan = full_plan(rule, sizes) if start is None else delta_plan(rule, start, sizes)
        return Pipeline(plan, self._store, counted=counted)

    def undefined(self) -> Iterator[tuple[Rule, int]]:
        """Rules in which something had no value, and how often."""
        for (number, _, _), compiled in self._compiled.items():
            if compiled.undefined:
                yield self.rules[number], compiled.undefined


class Roles:
    """What each role of a plan reads."""

    def __init__(self, positive: View, negative: View, delta_positive: View | None, delta_negative: View | None) -> None:
        self._views: dict[Role, View] = {Role.PRESENT: positive, Role.ABSENT: negative}
        if delta_positive is not None:
            self._views[Role.CHANGED] = delta_positive
        if delta_negative is not None:
            self._views[Role.CHANGED_ABSENT] = delta_negative
        before = {
            Role.PRESENT_BEFORE: positive if delta_positive is None else positive - delta_positive,
            Role.ABSENT_BEFORE: negative if delta_negative is None else negative | delta_negative,
        }
        self._views |= before
        self._known: dict[tuple[Role, str], Selection] = {}

    def select(self, role: Role, relation: Relation) -> Selection:
        """The rows that a literal reads: decided once, when first asked."""
        key = (role, relation.name)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._views[role].select(relation.name)
        return found


class Bag:
    """The heads that some rules derive; they are derived when the bag is read."""

    def __init__(self, rules: Rules, jobs: list[tuple[int, int | None]], roles: Roles) -> None:
        self._rules, self._jobs, self._roles = rules, jobs, roles

    @property
    def heads(self) -> dict[str, None]:
        """The relations of which it may hold facts, each once."""
        return dict.fromkeys(self._rules.rules[number].head.relation.name for number, _ in self._jobs)

    def read(self, sinks: Mapping[str, Sink], *, counted: bool) -> None:
        """Sends the heads to the sinks of their relations, as the sets were when reading began."""
        jobs = [self._rules.compiled(number, start, counted=counted) for number, start in self._jobs]
        select = self._roles.select
        for job in jobs:
            for relation, role in job.plan.relations:
                select(role, relation)
        for job in jobs:
            job.run(select, sinks[job.plan.head.relation.name])
