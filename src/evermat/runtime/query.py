"""Answers to queries, computed from the facts in memory; nothing of them stays behind.

The rules of a query are evaluated over the materialisation into tables of their own. A relation that is read first, and of which
columns are given as constants, is scanned: that is cheaper than an index until several queries have asked for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evermat.columns.equality.expansion import expand
from evermat.columns.equality.union_find import Renaming
from evermat.columns.evaluation.aggregates import AggregatePipeline
from evermat.columns.evaluation.buffers import Buffers, borrowed_buffers
from evermat.columns.evaluation.operators import Sink
from evermat.columns.evaluation.pipeline import Pipeline, Store
from evermat.columns.evaluation.rules import Compiled
from evermat.columns.state.state import State
from evermat.columns.state.views import View
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import Batch, Table
from evermat.core import pulled
from evermat.engine.run import Jobs, Run
from evermat.language import (
    Atom,
    Constant,
    Literal,
    Negation,
    Program,
    Query,
    Relation,
    Rule,
    Test,
    Type,
    normal_rule,
    rewritten_columns,
    variables_of,
)
from evermat.language import Queries as CompiledQueries
from evermat.plan import Match, Plan, Role, Sizes, full_plan
from evermat.runtime.rows import Tabular

SCANS = 8  # an index takes about as long to make as so many scans


class Answer(Tabular):
    """The answer to a query: a set of rows, one column for each named variable. Later updates do not change it.

    The answer to a query without variables is true or false: it has no columns, and one row, the empty one, or none.
    """

    def __init__(self, relation: Relation, table: Table, dictionary: Dictionary, undefined: int) -> None:
        super().__init__(relation, table, dictionary)
        #: bindings dropped because something computed had no value
        self.undefined = undefined

    def _selection(self) -> Selection:
        return Selection(0, self._table.count)

    def __len__(self) -> int:
        return self._table.count

    def __bool__(self) -> bool:
        return self._table.count > 0

    @property
    def relation(self) -> Relation:
        """The columns with their types."""
        return self._relation

    def _title(self) -> str:
        return (
            f"{len(self):,} {'row' if len(self) == 1 else 'rows'}"
            if self._relation.columns
            else str(bool(self)).lower()
        )

    def __repr__(self) -> str:
        return f"<Answer ({', '.join(self.columns)}): {self._title()}>"


class Queries:
    """Answers queries about one program's facts; knows which relations were scanned for them how often."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._queries = CompiledQueries(program)
        self._scans: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def reads(self, text: str) -> set[str]:
        """The relations whose facts an answer needs.

        Raises:
            ProgramError: with all errors of the query.
        """
        return self.compile(text).reads

    def compile(self, text: str) -> Query:
        """What has to be computed to answer a query.

        Raises:
            ProgramError: with all errors of the query.
        """
        return self._queries.compile(text)

    def answer(self, text: str, state: State, run: Run, *, representatives: bool = False) -> Answer:
        """The answer to a query as things are now, in all names or over representatives only.

        Raises:
            ProgramError: with all errors of the query.
            LimitError: a limit was reached.
        """
        query = self.compile(text)
        return evaluate(query, state, state.materialised, run, self._scans, representatives=representatives)

    def stream(self, text: str, state: State, run: Run) -> Answer:
        """The same, in all names; its rows are computed as they are read.

        Raises:
            ProgramError: with all errors of the query.
        """
        query = self.compile(text)
        if not query.answer.columns:
            return evaluate(query, state, state.materialised, run, self._scans)
        return StreamedAnswer(query, state, state.materialised, run)


class StreamedAnswer(Answer):
    """The answer to a query whose rows are computed when they are read, once: never are all of them there.

    What has to be remembered lest a row comes twice is all that is stored; where every binding is a row of its own that is nothing.
    """

    def __init__(self, query: Query, state: State, facts: View, run: Run) -> None:
        super().__init__(query.answer, Table(query.answer.arity), state.dictionary, 0)
        self._query, self._state, self._facts, self._run = query, state, facts, run

    def _chunks(self) -> Iterator[Batch]:
        if not _has_distinct_bindings(self._query, self._state):
            answer = evaluate(self._query, self._state, self._facts, self._run)
            self.undefined = answer.undefined
            yield from answer._chunks()  # noqa: SLF001
        else:
            yield from pulled(self._compute)

    def _compute(self, push: Callable[[Batch], None]) -> None:
        """Pushes the bindings of the query."""
        state, run = self._state, self._run

        def sink(batch: Batch, n: int, weights: npt.NDArray[np.int64] | None) -> None:
            del weights
            run.derived(n)
            push(batch[:, :n].copy())

        store = Store(state.tables, state.dictionary, Buffers(), Jobs(run))
        evaluation = _Evaluation(state, self._facts, store, {}, Counter())
        (rule,) = self._query.rules
        evaluation.send(rule, sink)
        self.undefined = evaluation.undefined

    def __len__(self) -> int:
        raise TypeError("how many rows there are is known when all were read")

    def __bool__(self) -> bool:
        return any(chunk.shape[1] for chunk in self._chunks())


def _has_distinct_bindings(query: Query, state: State) -> bool:
    """Whether every binding is a row of its own: one rule, whose variables are all asked for."""
    if state.representatives is not None or len(query.rules) != 1 or not query.answer.columns:
        return False
    (rule,) = query.rules
    terms = {term for literal in rule.body if isinstance(literal, Atom) for term in literal.terms}
    asked = set(variables_of(rule.head))
    return rule.aggregate is None and all(isinstance(term, Constant) or term in asked for term in terms)


def evaluate(
    query: Query,
    state: State,
    facts: View,
    run: Run,
    scans: Counter[tuple[str, tuple[int, ...]]] | None = None,
    *,
    representatives: bool = False,
) -> Answer:
    """The answer to a query over some facts of a state; `scans` tells how often relations were scanned for others.

    Where equal terms are represented by one, it is the representatives that the rules of a query are about, and their answers stand for others; unless
    it matters which of its names a term has: then the facts in all names are what is asked.
    """
    with borrowed_buffers() as buffers:
        return _evaluate(query, state, facts, run, buffers, scans, representatives=representatives)


def _evaluate(
    query: Query,
    state: State,
    facts: View,
    run: Run,
    buffers: Buffers,
    scans: Counter[tuple[str, tuple[int, ...]]] | None,
    *,
    representatives: bool,
) -> Answer:
    made = {name: Table(relation.arity) for name, relation in query.relations.items()}
    rules, names = query.rules, state.representatives
    store = Store({**state.tables, **made}, state.dictionary, buffers, Jobs(run))
    if names is not None and query.about_names:
        named = {name: _in_all_names(state, facts, name) for name in query.reads}
        store = replace(store, tables={**store.tables, **named})
        evaluation = _Evaluation(state, facts, store, {**named, **made}, Counter())
    else:
        evaluation = _Evaluation(state, facts, store, made, Counter() if scans is None else scans)
        if names is not None:
            rules = tuple(normal_rule(rule, names.renaming.normal) for rule in rules)
    for rule in rules:
        evaluation.derive(rule)
    table = made[query.answer.name]
    if names is not None and names.renaming:
        columns = np.array(rewritten_columns(query.answer), np.int64)
        if representatives:
            table = _renamed(table, columns, names.renaming) if query.about_names else table
        elif not query.about_names:
            table = _table(query.answer.arity, expand(_all(table), columns, names.renaming))
    return Answer(query.answer, table, state.dictionary, evaluation.undefined)


def _in_all_names(state: State, facts: View, name: str) -> Table:
    """The facts of a relation in all names."""
    assert state.representatives is not None
    batch = state.tables[name].take(facts.rows(name))
    columns = state.representatives.schema.columns.get(name, np.empty(0, np.int64))
    return _table(state.tables[name].arity, expand(batch, columns, state.representatives.renaming))


def _renamed(table: Table, columns: npt.NDArray[np.int64], renaming: Renaming) -> Table:
    batch = _all(table)
    renaming.rename(batch, columns)
    return _table(table.arity, [batch])


def _all(table: Table) -> Batch:
    return table.take(np.arange(table.count, dtype=np.int32))


def _table(arity: int, batches: Iterable[Batch]) -> Table:
    table = Table(arity)
    for batch in batches:
        table.add_new(batch, 0)
    return table


class _Evaluation:
    """The rules of one query over the facts of a state."""

    def __init__(
        self,
        state: State,
        facts: View,
        store: Store,
        made: Mapping[str, Table],
        scans: Counter[tuple[str, tuple[int, ...]]],
    ) -> None:
        self._state, self._facts, self._store, self._made, self._scans = state, facts, store, made, scans
        self.undefined = 0

    def derive(self, rule: Rule) -> None:
        """Adds what a rule derives to the table of its head; what it reads is complete."""
        self.send(rule, self._sink(self._made[rule.head.relation.name]))

    def send(self, rule: Rule, sink: Sink) -> None:
        """Sends what a rule derives to a sink."""
        pipeline = self._compiled(rule, self._sizes(rule))
        if pipeline is not None:
            pipeline.run(self._select, sink)
            self.undefined += pipeline.undefined

    def _sizes(self, rule: Rule) -> Sizes:
        """About how many facts there are of each relation that a rule reads."""
        atoms = (literal.atom if isinstance(literal, Negation) else literal for literal in rule.literals)
        names = {atom.relation.name for atom in atoms if isinstance(atom, Atom)}
        made, materialised = self._made, self._state.materialised
        return {name: made[name].count if name in made else materialised.about(name) for name in names}

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

    def _sink(self, table: Table) -> Sink:
        run = self._store.jobs.run

        def sink(batch: Batch, n: int, weights: npt.NDArray[np.int64] | None) -> None:
            del weights
            table.add_new(batch, 0, n)
            run.derived(n)

        return sink

    def _scanning(self, plan: Plan) -> Plan:
        """The plan with its first atom scanned, where it has constants and an index for them does not pay yet.

        The role of a change is that of facts that are read from front to end.
        """
        first = plan.steps[0] if plan.steps else None
        if not isinstance(first, Match) or not first.key or len(first.key) == first.relation.arity:
            return plan
        columns = tuple(column for column, _ in first.key)
        name = first.relation.name
        if self._store.tables[name].scheme is not None:
            return plan
        if columns in self._store.tables[name]._indexes:  # noqa: SLF001
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
