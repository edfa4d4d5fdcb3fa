"""Groups of rules over columns, and the bags of heads that they derive."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evermat.columns.evaluation.aggregates import AggregatePipeline
from evermat.columns.evaluation.operators import Sink, locating
from evermat.columns.evaluation.pipeline import Pipeline, Select, Store
from evermat.columns.schemes.scheme import ANY
from evermat.columns.state.views import NO_ROWS, Listed, View
from evermat.columns.storage.encoding import encode
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import Rows, Table
from evermat.language import Atom, Constant, Relation, Rule, Stratum
from evermat.plan import STARTING, Extent, Plan, Role, Roles, Start, Starts, plan_from

_MANY_STARTS, _FEW_FACTS = 16, 10_000
_SAMPLE = 512  # rows that are looked at to tell how many values a column has


class Compiled(Protocol):
    """A rule's plan, ready to run."""

    @property
    def plan(self) -> Plan:
        """What it runs."""

    @property
    def matches(self) -> int:
        """Facts that were looked at."""

    @property
    def undefined(self) -> int:
        """Bindings dropped because something had no value."""

    def run(self, select: Select, sink: Sink) -> None:
        """Sends what the plan finds to the sink."""


class Rules:
    """A stratum's nonrecursive or recursive rules. Plans are made and compiled when first needed."""

    def __init__(self, rules: Sequence[Rule], own: frozenset[str], store: Store) -> None:
        self.rules = rules
        self.jobs = store.jobs
        self._store = store
        self._own = own  # relations of the same stratum: still growing, so their size now says nothing
        self._compiled: dict[tuple[int, int | None, bool], Compiled] = {}
        self._starts = Starts(rules, own)
        self._constants: dict[Start, list[tuple[int, int]]] = {}

    def consequences(
        self,
        positive: View,
        negative: View | None = None,
        *,
        delta_positive: View | None = None,
        delta_negative: View | None = None,
    ) -> Bag:
        """The heads of rule instances; see the algebra. Rules whose delta is empty are not looked at."""
        jobs = (
            self._starts.everything()
            if delta_positive is None and delta_negative is None
            else [*self._changed(delta_positive, negated=False), *self._changed(delta_negative, negated=True)]
        )
        roles = Roles(positive, positive if negative is None else negative, delta_positive, delta_negative)
        return Heads(self, jobs, roles, "forward")

    def _changed(self, delta: View | None, *, negated: bool) -> Iterator[Start]:
        if delta is not None:
            for name in delta.names:
                starts = self._starts.changed(name, negated=negated)
                if starts and not (facts := delta.read_first(name)).empty:
                    yield from self._concerned(facts, name, starts)

    def _concerned(self, facts: Selection, name: str, starts: Sequence[Start]) -> Iterator[Start]:
        """The starts that some facts of a relation may match: not those with a constant that none of the facts has.

        Only where there are many starts and few facts does it pay to look.
        """
        _, count, truth, rows = facts
        count -= facts.lo
        if len(starts) < _MANY_STARTS or count > _FEW_FACTS or truth is not None:
            yield from starts
            return
        table = self._store.tables[name].rows
        found = table[facts.lo : facts.hi] if rows is None else table[rows]
        values: dict[int, set[int]] = {}
        for start in starts:
            constants = self._constants_of(start)
            for column, _ in constants:
                if column not in values:
                    values[column] = set(found[:, column].tolist())
            if all(value in values[column] for column, value in constants):
                yield start

    def _constants_of(self, start: Start) -> Sequence[tuple[int, int]]:
        """The columns of the atom that a start reads from which are constants, with their values."""
        known = self._constants.get(start)
        if known is None:
            atom = self._starts.read_first(start)
            known = self._constants[start] = [
                (column, encode(term.value, term.type, self._store.dictionary))
                for column, term in enumerate(atom.terms)
                if isinstance(term, Constant)
            ]
        return known

    def revised(self, rules: Sequence[Rule]) -> Rules:
        """Others in the place of these, of which some may be the same: what was compiled for those is kept."""
        made = Rules(rules, self._own, self._store)
        same = {number for number, (old, new) in enumerate(zip(self.rules, rules, strict=True)) if old is new}
        made._compiled = {key: compiled for key, compiled in self._compiled.items() if key[0] in same}
        return made

    def some(self, numbers: Collection[int]) -> Rules:
        """Those with some numbers."""
        return Rules([self.rules[number] for number in sorted(numbers)], self._own, self._store)

    @property
    def heads(self) -> set[str]:
        """The relations that the rules derive."""
        return {rule.head.relation.name for rule in self.rules}

    def of(self, stratum: Stratum) -> Rules:
        """The rules that derive relations of a stratum."""
        own = frozenset(stratum.relations)
        return Rules([rule for rule in self.rules if rule.head.relation.name in own], own, self._store)

    def derivable(self, heads: View, positive: View, negative: View | None = None) -> Bag:
        """Those of some heads that an instance derives, once for each instance: rules are evaluated backwards.

        Aggregate rules are left out: their results change only with their groups (see `regroup`).
        """
        jobs = self._asked(heads, self._starts.backward(set(heads.names)))
        return Heads(self, jobs, Roles(positive, positive if negative is None else negative, asked=heads), "backward")

    def supports(self, heads: View, positive: View, negative: View | None = None) -> Bag:
        """The body facts, of the heads' own stratum, of all instances that derive some heads."""
        jobs = self._asked(heads, self._starts.supports(set(heads.names)))
        return Heads(self, jobs, Roles(positive, positive if negative is None else negative, asked=heads), "supports")

    def _asked(self, heads: View, starts: Sequence[Start]) -> list[Start]:
        """The starts from heads that some facts may be."""
        by_relation: dict[str, list[Start]] = {}
        for start in starts:
            by_relation.setdefault(self._starts.read_first(start).relation.name, []).append(start)
        return [start for name, some in by_relation.items() for start in self._concerned(heads.start(name), name, some)]

    def regroup(self, old: View, new: View, gone: dict[str, View], come: dict[str, View]) -> tuple[Listed, Listed]:
        """Aggregate rules: the results that groups touched by a change lose and gain.

        Touched are the groups of bindings lost or gained; only these are computed, before and after.
        """
        lost: dict[str, list[Rows]] = {}
        gained: dict[str, list[Rows]] = {}
        for rule in self.rules:
            if rule.aggregate is not None and (touched := self._touched_groups(rule, old, new, gone, come)).count:
                name = rule.head.relation.name
                before = self._results(rule, touched, old)
                after = self._results(rule, touched, new)
                lost.setdefault(name, []).append(np.setdiff1d(before, after, assume_unique=True))
                gained.setdefault(name, []).append(np.setdiff1d(after, before, assume_unique=True))
        return Listed(self._store.tables, lost), Listed(self._store.tables, gained)

    def _touched_groups(self, rule: Rule, old: View, new: View, gone: dict[str, View], come: dict[str, View]) -> Table:
        """The keys of all bindings of an aggregate's body, and of its list of groups, that an update breaks or makes."""
        assert rule.aggregate is not None
        keys = Table(len(rule.aggregate.keys))
        head = Atom(rule.head.relation, rule.aggregate.keys)
        # The list of groups also counts by itself: a group may have no bindings.
        bodies = {rule.literals, rule.body} if rule.body else {rule.literals}
        for body in bodies:
            bindings = Rules([Rule(head, body, rule.span)], frozenset(), self._store)
            for view, delta in ((old, gone), (new, come)):
                bag = bindings.consequences(view, **delta)
                bag.read({rule.head.relation.name: locating(keys)}, counted=False)
        return keys

    def _results(self, rule: Rule, groups: Table, view: View) -> Rows:
        """The rows of the results of some groups."""
        assert rule.aggregate is not None
        asked = Relation("'groups", rule.head.relation.columns[:-1], hidden=True)
        store = replace(self._store, tables={**self._store.tables, asked.name: groups})
        body = (Atom(asked, rule.aggregate.keys), *rule.body)
        limited = Rule(rule.head, body, rule.span, rule.aggregate)
        found: list[Rows] = []
        table = self._store.tables[rule.head.relation.name]

        def select(_role: Role, relation: Relation) -> Selection:
            return Selection(0, groups.count) if relation is asked else view.read(relation.name)

        sizes = {asked.name: groups.count}
        pipeline = AggregatePipeline(limited, None, store, sizes)
        pipeline.run(select, lambda batch, n, _weights: found.append(table.locate(batch, n)))
        return np.concatenate(found) if found else NO_ROWS

    def handed_out(self, start: Start) -> str:
        """The relation whose facts a plan hands out."""
        return self._starts.handed_out(start)

    def compiled(self, number: int, start: int | None, *, counted: bool) -> Compiled:
        """The pipeline of a rule, started from a literal or from nothing."""
        key = (number, start, counted)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._compile(self.rules[number], start, counted=counted)
        return found

    def _compile(self, rule: Rule, start: int | None, *, counted: bool) -> Compiled:
        backwards = start is not None and start < 0  # then nothing grows, and a few facts are looked for among many
        measure = _extent if backwards else _size
        sizes = {
            literal.relation.name: measure(self._store.tables[literal.relation.name])
            for literal in rule.literals
            if isinstance(literal, Atom) and (backwards or literal.relation.name not in self._own)
        }
        if rule.aggregate is not None:
            return AggregatePipeline(rule, start, self._store, sizes)
        return Pipeline(plan_from(rule, start, sizes), self._store, counted=counted)

    def forget_plans(self) -> None:
        """Plans are made again when they are needed."""
        self._compiled.clear()

    def undefined(self) -> Iterator[tuple[Rule, int]]:
        """Rules in which something had no value, and how often."""
        for (number, _, _), compiled in self._compiled.items():
            if compiled.undefined:
                yield self.rules[number], compiled.undefined


def _size(table: Table) -> int:
    """About how many facts a relation has."""
    return table.count if table.scheme is None else max(table.scheme.about(ANY), table.count)


def _extent(table: Table) -> int:
    """The same, and about how many values its columns have, where its facts are rows."""
    if table.scheme is not None or not table.count:
        return _size(table)
    rows = table.rows[np.linspace(0, table.count - 1, min(table.count, _SAMPLE)).astype(np.int64)]
    return Extent.of(table.count, (_distinct(column, table.count) for column in rows.T))


def _distinct(sample: npt.NDArray[Any], size: int) -> float:
    """How many values there are among so many, about, given a sample: those that occur in it once stand for as many as were not looked at."""
    counts = np.unique(sample, return_counts=True)[1]
    once = int(np.count_nonzero(counts == 1))
    unseen = size / len(sample)
    return len(counts) - once + once * (unseen if once == len(sample) else unseen**0.5)


class Selections:
    """The rows that each role of a plan reads."""

    def __init__(self, roles: Roles[View]) -> None:
        self._roles = roles
        self._known: dict[tuple[Role, str], Selection] = {}

    def select(self, role: Role, relation: Relation) -> Selection:
        """The rows that a literal reads: decided once, when first asked."""
        key = (role, relation.name)
        found = self._known.get(key)
        if found is None:
            view = self._roles.view(role)
            if role is Role.ASKED:
                found = view.start(relation.name)  # facts in question have rows
            else:
                found = view.read_first(relation.name) if role in STARTING else view.read(relation.name)
            self._known[key] = found
        return found


class Bag(ABC):
    """Facts that are derived when the bag is read."""

    @property
    @abstractmethod
    def heads(self) -> dict[str, None]:
        """The relations of which it may hold facts, each once."""

    @abstractmethod
    def read(self, sinks: Mapping[str, Sink], *, counted: bool) -> None:
        """Sends the facts to the sinks of their relations; with `counted` as often as they are derived."""

    def announce(self, tables: Mapping[str, Table]) -> None:
        """Lets tables make room, if it is known beforehand how many facts will come."""
        del tables


class Heads(Bag):
    """The heads that some rules derive."""

    def __init__(self, rules: Rules, jobs: list[Start], roles: Roles[View], kind: str) -> None:
        self._rules, self._jobs, self._kind = rules, jobs, kind
        self._selections = Selections(roles)

    @property
    def heads(self) -> dict[str, None]:
        return dict.fromkeys(map(self._rules.handed_out, self._jobs))

    def read(self, sinks: Mapping[str, Sink], *, counted: bool) -> None:
        """Sends the heads to the sinks of their relations, as the sets were when reading began."""
        jobs = [self._rules.compiled(number, start, counted=counted) for number, start in self._jobs]
        select = self._selections.select
        if len(jobs) > 1:  # one decides what it reads before it sends anything
            for job in jobs:
                for relation, role in job.plan.relations:
                    select(role, relation)
        run = self._rules.jobs.run
        derivations, matches = run.derivations, 0
        for job in jobs:
            before = job.matches
            job.run(select, sinks[job.plan.head.relation.name])
            matches += job.matches - before
        if jobs:
            run.record(self._kind, matches, run.derivations - derivations)
