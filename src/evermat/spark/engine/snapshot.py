"""The facts of a state on a cluster for those who read; see `columns.state.snapshot`. What is read comes to the driver a bucket at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from evermat.columns import Batch, Solutions, Table, expand_names
from evermat.core import ASSERTED, INFERRED, Which
from evermat.engine import BaseSnapshot, Run
from evermat.language import EQUALITY_CLASSES, Query, normal_rule, rewritten_columns
from evermat.spark.engine.equality_state import Representatives
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.rules import Rules
from evermat.spark.engine.scan import facts_of, frame_of, holds
from evermat.spark.engine.state import State
from evermat.spark.engine.tasks.serialization import Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Snapshot(BaseSnapshot[State]):
    """The facts of a state as they are now."""

    def scan(self, name: str, which: Which = "all", *, expanded: bool = True) -> Iterator[Batch]:
        """The facts of a relation; no more than a bucket is held at a time."""
        names = self._names(name) if expanded else None
        explicit = self._state.explicit if self._state.representatives is None or not expanded else self._state.given
        facts: View = self._facts
        if which == ASSERTED:
            facts = explicit
        elif which == INFERRED:
            facts = facts - explicit if names is None else names.all_names(facts, [name], self._facts) - explicit
        elif names is not None:
            return names.expanded(facts_of(facts, name, self.dictionary), name)
        return facts_of(facts, name, self.dictionary)

    def contains(self, name: str, fact: Batch, *, expanded: bool = True) -> bool:
        """Whether a relation has a fact; only its bucket is read."""
        names = self._names(name) if expanded else None
        if names is not None:
            names.union_find.rename(fact, names.schema.columns[name])
        return holds(self._facts, name, fact, self.dictionary)

    def dataframe(self, name: str, spark: SparkSession, *, expanded: bool = True) -> DataFrame:
        """The facts of a relation as a DataFrame over the files as they are now: nothing comes to the driver."""
        names, relation = self._names(name) if expanded else None, self._state.program.relations[name]
        if names is None:
            return frame_of(self._facts, relation, spark)
        columns = names.schema.columns[name].tolist()
        return frame_of(self._facts, relation, spark, columns, self._facts.expression(EQUALITY_CLASSES.name))

    def _names(self, name: str) -> Representatives | None:
        """The representatives of terms, if a relation has columns that hold some."""
        names = self._state.representatives
        return names if names is not None and name in names.schema.columns else None

    def evaluate(self, query: Query, run: Run, *, representatives: bool = False) -> Solutions:
        return evaluate(query, self._state, self._state.materialised, run, representatives=representatives)

    def stream(self, query: Query, run: Run) -> Solutions:
        """The answer to a query, expanded: all of it is computed at once."""
        return self.evaluate(query, run)


def evaluate(query: Query, state: State, facts: View, run: Run, *, representatives: bool = False) -> Solutions:
    """The answer to a query over some facts of a state, expanded or over representatives; it comes to the driver.

    Raises:
        LimitError: a limit was reached.
    """
    names, context, rules = state.representatives, state.context, query.rules
    state.jobs.run = run
    if names is not None and query.about_names:
        facts = names.all_names(facts, query.reads, state.materialised)
    elif names is not None:
        rules = tuple(normal_rule(rule, names.union_find.normal) for rule in rules)
    known, context.undefined = context.undefined, Counter()  # those of a query are not the state's
    made = FactSet("an answer", context)
    for name, relation in query.relations.items():
        context.shapes[name] = Shape.of(relation.types)
    try:
        for rule in rules:  # in an order in which the relations that a rule reads are complete
            made.add(Rules([rule], frozenset(), context).consequences(facts | made))
    finally:
        undefined, context.undefined = sum(context.undefined.values()), known
    table = Table(query.answer.arity)
    columns = np.array(rewritten_columns(query.answer), np.int64)
    for batch in facts_of(made, query.answer.name, state.dictionary):
        if names is None or representatives != query.about_names:
            table.add_new(batch, 0)
        elif representatives:
            names.union_find.rename(batch, columns)
            table.add_new(batch, 0)
        else:
            for part in expand_names(batch, columns, names.union_find):
                table.add_new(part, 0)
    return Solutions(table, undefined)
