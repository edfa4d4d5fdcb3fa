"""The facts of a state for readers: counted, scanned, looked up and asked by queries. An answer leaves nothing behind.

Where equal terms have a representative, facts are held over representatives; readers see *expanded* facts, over all equal terms, unless they
ask for representatives.

The rules of a query are evaluated over the materialisation into tables of their own. A relation that is read first, and of which
columns are constants, is scanned: that is cheaper than building an index until several queries have asked for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from evermat.columns.equality.expansion import expand_names
from evermat.columns.evaluation.aggregates import AggregatePipeline
from evermat.columns.evaluation.buffers import Buffers, EvaluationContext, borrowed_buffers
from evermat.columns.evaluation.operators import Sink, appending
from evermat.columns.evaluation.pipeline import Pipeline
from evermat.columns.evaluation.rules import Compiled
from evermat.columns.state.datasets import facts_in
from evermat.columns.state.state import State
from evermat.columns.state.version import Version
from evermat.columns.state.views import View
from evermat.columns.storage.arrays import Batch, Numbers
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.extension import Extension
from evermat.columns.storage.readable_table import ReadableTable
from evermat.columns.storage.selection import Selection, contains
from evermat.columns.storage.table import Table
from evermat.core import ASSERTED, INFERRED, Which, pulled, watched
from evermat.engine import BaseSnapshot, Jobs, Run
from evermat.language import (
    Atom,
    Constant,
    Literal,
    Negation,
    Query,
    Relation,
    Rule,
    Test,
    Type,
    normal_rule,
    rewritten_columns,
    variables_of,
)
from evermat.plan import Match, Plan, Role, Sizes, full_plan

SCANS = 8  # an index takes about as long to build as so many scans

Scans: TypeAlias = Counter[tuple[str, tuple[int, ...]]]
"""How often relations were scanned for values of some columns."""


@dataclass
class Solutions:
    """The rows that answer a query.

    Attributes:
        table: The rows; none if they are computed when they are read.
        undefined: How many bindings were dropped because an expression had no value; None before rows that are computed were read.
        computed: Computes the rows, a few at a time, each once; None if all are in the table.
        dictionary: What they are encoded with; None if that is the dictionary of the state.
    """

    table: Table
    undefined: int | None = 0
    computed: Callable[[], Iterator[Batch]] | None = None
    dictionary: Dictionary | None = None

    def gather(self) -> Table:
        """All rows; those that are computed when they are read are computed now, and kept."""
        if self.computed is not None:
            self.table, self.computed = _table(self.table.arity, self.computed()), None
        return self.table


def rows_of(table: Table) -> Iterator[Batch]:
    """All rows of a table, some at a time; each batch is valid until the next step."""
    for rows in table.scan(None, 0, table.count):
        yield table.take(rows)


def _has_distinct_bindings(query: Query, state: State | Version) -> bool:
    """Whether every binding is a row of its own: one rule, whose variables are all asked for."""
    if state.representatives is not None or len(query.rules) != 1 or not query.answer.columns:
        return False
    (rule,) = query.rules
    terms = {term for literal in rule.body if isinstance(literal, Atom) for term in literal.terms}
    asked = set(variables_of(rule.head))
    return rule.aggregate is None and all(isinstance(term, Constant) or term in asked for term in terms)


def evaluate(
    query: Query,
    state: State | Version,
    facts: View,
    run: Run,
    scans: Scans | None = None,
    *,
    representatives: bool = False,
    dictionary: Dictionary | None = None,
) -> Solutions:
    """The answer to a query over some facts of a state; `scans` counts how often relations were scanned for other queries.

    Where equal terms have a representative, rules of a query read facts over representatives, and its answer is expanded; unless a rule
    inspects names: then it reads expanded facts. Symbols that only the query has are in an extension of the state's dictionary, or in `dictionary`.
    """
    dictionary = Extension(state.dictionary) if dictionary is None else dictionary
    with borrowed_buffers() as buffers:
        made = {name: Table(relation.arity) for name, relation in query.relations.items()}
        rules, names = query.rules, state.representatives
        tables: dict[str, ReadableTable] = {**{name: state.tables[name] for name in query.reads}, **made}
        store = EvaluationContext(tables, dictionary, buffers, Jobs(run))
        if names is not None and query.about_names:
            named = {name: _in_all_names(state, facts, name) for name in query.reads}
            store = replace(store, tables={**store.tables, **named})
            evaluation = _Evaluation(state, facts, store, {**named, **made}, Counter())
        else:
            evaluation = _Evaluation(state, facts, store, made, Counter() if scans is None else scans)
            if names is not None:
                rules = tuple(normal_rule(rule, names.union_find.normal) for rule in rules)
        for rule in rules:
            evaluation.derive(rule)
        table = made[query.answer.name]
        if names is not None and names.union_find:
            columns = np.array(rewritten_columns(query.answer), np.int64)
            if representatives and query.about_names:
                batch = _all(table)
                names.union_find.rename(batch, columns)
                table = _table(table.arity, [batch])
            elif not representatives and not query.about_names:
                table = _table(query.answer.arity, expand_names(_all(table), columns, names.union_find))
        return Solutions(table, evaluation.undefined, None, dictionary)


def _in_all_names(state: State | Version, facts: View, name: str) -> Table:
    """The expanded facts of a relation."""
    assert state.representatives is not None
    batch = state.tables[name].take(facts.rows(name))
    columns = state.representatives.schema.columns.get(name, np.empty(0, np.int64))
    return _table(state.tables[name].arity, expand_names(batch, columns, state.representatives.union_find))


def _all(table: Table) -> Batch:
    return table.take(np.arange(table.count, dtype=np.int32))


def _table(arity: int, batches: Iterable[Batch]) -> Table:
    table = Table(arity)
    for batch in batches:
        table.add_new(batch, 0)
    return table


class _Evaluation:
    def __init__(
        self,
        state: State | Version,
        facts: View,
        store: EvaluationContext,
        made: Mapping[str, Table],
        scans: Scans,
    ) -> None:
        self._state, self._facts, self._store, self._made, self._scans = state, facts, store, made, scans
        self.undefined = 0

    def derive(self, rule: Rule) -> None:
        """Adds what a rule derives to the table of its head; what it reads is complete."""
        self.send(rule, appending(self._made[rule.head.relation.name], 0, self._store.jobs))

    def send(self, rule: Rule, sink: Sink) -> None:
        pipeline = self._compiled(rule, self._sizes(rule))
        if pipeline is not None:
            pipeline.run(self._select, sink)
            self.undefined += pipeline.undefined

    def _sizes(self, rule: Rule) -> Sizes:
        """About how many facts there are of each relation that a rule reads."""
        made, materialised = self._made, self._state.materialised
        return {name: made[name].count if name in made else materialised.about(name) for name in rule.reads}

    def _compiled(self, rule: Rule, sizes: Sizes) -> Compiled | None:
        """The rule's pipeline, or None if it can derive nothing."""
        if rule.aggregate is not None:
            return AggregatePipeline(rule, None, self._store, sizes)
        body = without_unknown(rule.body, self._state.tables, self._store.dictionary)
        if body is None:
            return None
        plan = self._scanning(full_plan(replace(rule, body=body), sizes))
        return Pipeline(plan, self._store, counted=False)

    def _select(self, _role: Role, relation: Relation) -> Selection:
        table = self._made.get(relation.name)
        return self._facts.read(relation.name) if table is None else Selection(0, table.count)

    def _scanning(self, plan: Plan) -> Plan:
        """The plan with its first atom scanned, where it has constants and an index for them does not pay yet.

        The role of a change is that of facts that are read from front to end.
        """
        first = plan.steps[0] if plan.steps else None
        if not isinstance(first, Match) or not first.key or len(first.key) == first.relation.arity:
            return plan
        columns = tuple(column for column, _ in first.key)
        name = first.relation.name
        table = self._store.tables[name]
        if table.scheme is not None or table.has_index(columns):
            return plan
        self._scans[name, columns] += 1
        if self._scans[name, columns] > SCANS:
            return plan
        scan = Match(first.literal, first.relation, Role.CHANGED, first.key, first.binds, first.equal)
        return Plan(plan.rule, plan.start, (scan, *plan.steps[1:]), plan.output, plan.head)


def without_unknown(
    body: tuple[Literal, ...], stored: Collection[str], dictionary: Dictionary
) -> tuple[Literal, ...] | None:
    """A body without what a symbol that no stored fact has decides, or None if it cannot match for that.

    So most symbols that occur only in queries never enter the dictionary.
    """

    def unknown(thing: object) -> bool:
        by_id = isinstance(thing, Constant) and thing.type in (Type.SYMBOL, Type.TERM)
        return by_id and dictionary.lookup(str(thing.value)) < 0  # type: ignore[attr-defined]

    # A computed symbol may be one that no fact has.
    read = {v for a in body if isinstance(a, Atom) and a.relation.name in stored for v in variables_of(a)}
    kept: list[Literal] = []
    for literal in body:
        match literal:
            case Atom(_, terms) if any(map(unknown, terms)):
                return None
            case Negation(Atom(_, terms)) if any(map(unknown, terms)):
                continue
            case Test("!=", left, right) if (unknown(left) and right in read) or (unknown(right) and left in read):
                continue
        kept.append(literal)
    return tuple(kept)


class Snapshot(BaseSnapshot[Version]):
    """The facts of a version, which it keeps as they are; `scans` are counted on."""

    def __init__(self, state: Version, scans: Scans | None = None) -> None:
        super().__init__(state)
        self._scans: Scans = Counter() if scans is None else scans

    def table(self, name: str) -> ReadableTable:
        """The table of a relation, for readers of storage schemes."""
        return self._state.tables[name]

    def scan(self, name: str, which: Which = "all", *, expanded: bool = True) -> Iterator[Batch]:
        columns = self._renamed_columns(name) if expanded else None
        table, explicit = self._state.tables[name], self._state.explicit if columns is None else self._state.given
        if which == ASSERTED:
            yield table.take(explicit.rows(name))
            return
        union_find = self.union_find
        for held in self._held(name):
            for batch in [held] if columns is None or union_find is None else expand_names(held, columns, union_find):
                if which == INFERRED:
                    batch = batch[:, ~contains(table, batch, batch.shape[1], explicit.select(name))]  # noqa: PLW2901
                yield np.ascontiguousarray(batch)

    def _held(self, name: str) -> Iterator[Batch]:
        table = self._state.tables[name]
        if table.scheme is not None:
            yield from facts_in(self._facts, name)
            return
        lo, hi, truth, _ = self._facts.select(name)
        for rows in table.scan(truth, lo, hi):
            yield table.take(rows)

    def contains(self, name: str, fact: Batch, *, expanded: bool = True) -> bool:
        table, columns = self._state.tables[name], self._renamed_columns(name) if expanded else None
        if columns is not None and self.union_find is not None:
            self.union_find.rename(fact, columns)
        if table.scheme is not None:
            return table.scheme.holds(fact)
        return bool(contains(table, fact, 1, self._facts.select(name))[0])

    def _renamed_columns(self, name: str) -> Numbers | None:
        """The columns of a relation that hold representatives, if any do."""
        names = self._state.representatives
        return None if names is None else names.schema.columns.get(name)

    def evaluate(self, query: Query, run: Run, *, representatives: bool = False) -> Solutions:
        """The answer to a query, expanded or over representatives.

        Raises:
            LimitError: a limit was reached.
        """
        return evaluate(query, self._state, self._facts, run, self._scans, representatives=representatives)

    def stream(self, query: Query, run: Run) -> Solutions:
        """The answer to a query, whose rows are computed when they are read: they are never all in memory.

        Rows that could be derived twice have to be remembered; where every binding is a row of its own, none are.
        """
        state, facts, dictionary = self._state, self._facts, Extension(self._state.dictionary)
        solutions = Solutions(Table(query.answer.arity), None, None, dictionary)
        if not query.answer.columns:
            return evaluate(query, state, facts, run)

        def compute(push: Callable[[Batch], None]) -> None:
            def sink(batch: Batch, n: int, weights: Numbers | None) -> None:
                del weights
                run.derived(n)
                push(batch[:, :n].copy())

            store = EvaluationContext(state.tables, dictionary, Buffers(), Jobs(run))
            evaluation = _Evaluation(state, facts, store, {}, Counter())
            (rule,) = query.rules
            evaluation.send(rule, sink)
            solutions.undefined = evaluation.undefined

        def remember() -> Iterator[Batch]:
            with watched(run):
                found = evaluate(query, state, facts, run, dictionary=dictionary)
            solutions.undefined = found.undefined
            return rows_of(found.table)

        solutions.computed = (lambda: pulled(compute, run)) if _has_distinct_bindings(query, state) else remember
        return solutions
