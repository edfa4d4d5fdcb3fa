"""Queries over facts on a cluster; see `columns.state.snapshot`. The answer comes to the driver."""

from __future__ import annotations

from collections import Counter

import numpy as np

from evermat.columns import Solutions, Table, expand_names
from evermat.engine import Run
from evermat.language import Query, normal_rule, rewritten_columns
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.rules import Rules
from evermat.spark.engine.scan import facts_of
from evermat.spark.engine.state import State
from evermat.spark.engine.tasks.serialization import Shape


def evaluate(query: Query, state: State, facts: View, run: Run, *, representatives: bool = False) -> Solutions:
    """The answer to a query over some facts of a state, expanded or over representatives.

    Raises:
        LimitError: a limit was reached.
    """
    names, context, rules = state.representatives, state.context, query.rules
    state.jobs.run = run
    if names is not None and query.about_names:
        facts = names.all_names(facts, query.reads, state.materialised)
    elif names is not None:
        rules = tuple(normal_rule(rule, names.union_find.normal) for rule in rules)
    known, context.undefined = context.undefined, Counter()  # what a query drops is not the state's
    made = FactSet("an answer", context)
    for name, relation in query.relations.items():
        context.shapes[name] = Shape.of(relation.types)
    try:
        for rule in rules:  # in an order in which all that a rule reads is complete
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
