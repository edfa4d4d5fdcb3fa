"""Groups of rules over columns, and the bags of heads that they derive."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from evermat.columns.evaluation.aggregates import AggregatePipeline
from evermat.columns.evaluation.buffers import EvaluationContext, constants_in
from evermat.columns.evaluation.operators import Sink, locating
from evermat.columns.evaluation.pipeline import Pipeline
from evermat.columns.state.views import Listed, View
from evermat.columns.storage.arrays import NO_ROWS, Rows
from evermat.columns.storage.selection import ANY, Selection
from evermat.columns.storage.table import Table
from evermat.engine import BaseRules, limited_to
from evermat.language import Atom, Relation, Rule
from evermat.plan import STARTING, Extent, Role, Roles, Start, plan_from

_MANY_STARTS, _FEW_FACTS = 16, 10_000
_SAMPLE = 512  # rows that are looked at to estimate how many values a column has


Compiled: TypeAlias = Pipeline | AggregatePipeline
"""A rule's plan, ready to run."""


class Rules(BaseRules[EvaluationContext, View, "Bag", Table]):
    """A stratum's nonrecursive or recursive rules. Plans are made and compiled when first needed."""

    def __init__(self, rules: Sequence[Rule], own: frozenset[str], context: EvaluationContext) -> None:
        super().__init__(rules, own, context)
        self.pipelines: dict[tuple[int, int | None, bool], Compiled] = {}
        self._constants: dict[Start, list[tuple[int, int]]] = {}

    def revised(self, rules: Sequence[Rule]) -> Self:
        """Other rules instead of these, of which some may be the same: their compiled plans are kept."""
        made = super().revised(rules)
        same = {number for number, (old, new) in enumerate(zip(self.rules, rules, strict=True)) if old is new}
        made.pipelines = {key: compiled for key, compiled in self.pipelines.items() if key[0] in same}
        return made

    def _bag(self, starts: Sequence[Start], roles: Roles[View], kind: str) -> Bag:
        return Heads(self, starts, roles, kind)

    # ── Starts ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _concerned(self, delta: View, name: str, starts: Sequence[Start]) -> Iterable[Start]:
        facts = delta.read_first(name)
        return () if facts.empty else self._matching(facts, name, starts)

    def _asked(self, heads: View, starts: Sequence[Start]) -> list[Start]:
        by_relation: dict[str, list[Start]] = {}
        for start in starts:
            by_relation.setdefault(self.starts.read_first(start).relation.name, []).append(start)
        return [start for name, some in by_relation.items() for start in self._matching(heads.start(name), name, some)]

    def _matching(self, facts: Selection, name: str, starts: Sequence[Start]) -> Iterable[Start]:
        """The starts that some facts of a relation may match: not those with a constant that none of the facts has.

        Only where there are many starts and few facts does it pay to look.
        """
        lo, hi, truth, rows = facts
        if len(starts) < _MANY_STARTS or hi - lo > _FEW_FACTS or truth is not None:
            return starts
        table = self.context.tables[name].rows
        return self._with_constants_of(table[lo:hi] if rows is None else table[rows], starts)

    def _with_constants_of(self, facts: npt.NDArray[Any], starts: Sequence[Start]) -> Iterator[Start]:
        values: dict[int, set[int]] = {}
        for start in starts:
            constants = self._constants_of(start)
            for column, _ in constants:
                if column not in values:
                    values[column] = set(facts[:, column].tolist())
            if all(value in values[column] for column, value in constants):
                yield start

    def _constants_of(self, start: Start) -> Sequence[tuple[int, int]]:
        """The columns of the atom that a start reads from which are constants, with their values."""
        known = self._constants.get(start)
        if known is None:
            terms = enumerate(self.starts.read_first(start).terms)
            known = self._constants[start] = constants_in(terms, self.context.dictionary)
        return known

    # ── Aggregates ───────────────────────────────────────────────────────────────────────────────────────────────

    def _groups(self, keys: Relation, bags: Iterable[Bag]) -> Table:
        groups = Table(keys.arity)
        for bag in bags:
            bag.read({keys.name: locating(groups)}, counted=False)
        return groups

    def _results(self, rule: Rule, keys: Relation, groups: Table, view: View) -> View:
        context = replace(self.context, tables={**self.context.tables, keys.name: groups})
        table, found = self.context.tables[rule.head.relation.name], [NO_ROWS]

        def select(_role: Role, relation: Relation) -> Selection:
            return Selection(0, groups.count) if relation is keys else view.read(relation.name)

        pipeline = AggregatePipeline(limited_to(rule, keys), None, context, {keys.name: groups.count})
        pipeline.run(select, lambda batch, n, _weights: found.append(table.locate(batch, n)))
        return Listed(self.context.tables, {rule.head.relation.name: found})

    def _together(self, views: Sequence[View]) -> Listed:
        found: dict[str, list[Rows]] = {}
        for view in views:
            for name in view.names:
                found.setdefault(name, []).append(view.rows(name))
        return Listed(self.context.tables, found)

    # ── Plans ────────────────────────────────────────────────────────────────────────────────────────────────────

    def compiled(self, number: int, start: int | None, *, counted: bool) -> Compiled:
        """The pipeline of a rule, started from a literal or from nothing."""
        key = (number, start, counted)
        found = self.pipelines.get(key)
        if found is None:
            found = self.pipelines[key] = self._compile(self.rules[number], start, counted=counted)
        return found

    def _compile(self, rule: Rule, start: int | None, *, counted: bool) -> Compiled:
        backwards = start is not None and start < 0  # then nothing grows, and a few facts are looked for among many
        measure = _extent if backwards else _size
        sizes = {
            literal.relation.name: measure(self.context.tables[literal.relation.name])
            for literal in rule.literals
            if isinstance(literal, Atom) and (backwards or literal.relation.name not in self._own)
        }
        if rule.aggregate is not None:
            return AggregatePipeline(rule, start, self.context, sizes)
        return Pipeline(plan_from(rule, start, sizes), self.context, counted=counted)

    def forget_plans(self) -> None:
        self.pipelines.clear()

    def undefined(self) -> Iterator[tuple[Rule, int]]:
        """Rules in which something had no value, and how often."""
        for (number, _, _), compiled in self.pipelines.items():
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
        """Lets tables make room, if it is known beforehand how many facts will be added."""
        del tables


class Heads(Bag):
    """The heads that some rules derive."""

    def __init__(self, rules: Rules, jobs: Sequence[Start], roles: Roles[View], kind: str) -> None:
        self._rules, self._jobs, self._roles, self._kind = rules, jobs, roles, kind
        self._known: dict[tuple[Role, str], Selection] = {}

    @property
    def heads(self) -> dict[str, None]:
        return dict.fromkeys(map(self._rules.starts.handed_out, self._jobs))

    def read(self, sinks: Mapping[str, Sink], *, counted: bool) -> None:
        """Sends the heads to the sinks of their relations, as the sets were when reading began."""
        jobs = [self._rules.compiled(number, start, counted=counted) for number, start in self._jobs]
        select = self._select
        if len(jobs) > 1:  # one decides what it reads before it sends anything
            for job in jobs:
                for relation, role in job.plan.relations:
                    select(role, relation)
        run = self._rules.context.jobs.run
        derivations, matches = run.derivations, 0
        for job in jobs:
            before = job.matches
            job.run(select, sinks[job.plan.head.relation.name])
            matches += job.matches - before
        if jobs:
            run.record(self._kind, matches, run.derivations - derivations)

    def _select(self, role: Role, relation: Relation) -> Selection:
        """The rows that a literal reads: decided once, when first asked."""
        key = (role, relation.name)
        if key not in self._known:
            view = self._roles.view(role)
            if role is Role.ASKED:
                self._known[key] = view.start(relation.name)  # facts in question have rows
            else:
                self._known[key] = view.read_first(relation.name) if role in STARTING else view.read(relation.name)
        return self._known[key]
