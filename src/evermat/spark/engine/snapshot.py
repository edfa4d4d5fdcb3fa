"""The facts of a version on a cluster for readers; see `columns.state.snapshot`. What is read comes to the driver a bucket at a time.

Every job of a reader has a context of its own: neither an update nor another reader disturbs it, and it disturbs none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evermat.columns import Batch, Dictionary, Solutions, Table, UnionFind, expand_names
from evermat.core import ASSERTED, INFERRED, Which
from evermat.engine import Run
from evermat.language import Program, Query, normal_rule, rewritten_columns
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.expansion import Expansion
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.rules import Rules
from evermat.spark.engine.scan import facts_of, frame_of, holds
from evermat.spark.engine.tasks.serialization import Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, eq=False)
class Version:
    """The facts of a state after an update. Its sets never change; their files exist as long as anything refers to it.

    Attributes:
        context: That of the state: the cluster and the shapes of facts. Its run is that of updates: a reader has a context beside it.
        expansion: π and expanded facts; None where every term represents itself.
        undefined: Bindings dropped so far, by the position of the rule.
    """

    program: Program
    context: EngineContext
    dictionary: Dictionary
    given: FactSet
    explicit: FactSet
    materialised: FactSet
    expansion: Expansion | None
    undefined: Counter[int]


class Snapshot:
    """The facts of a version, whose files exist as long as this does."""

    def __init__(self, version: Version) -> None:
        self._version, self._facts = version, version.materialised

    @property
    def dictionary(self) -> Dictionary:
        return self._version.dictionary

    @property
    def union_find(self) -> UnionFind | None:
        expansion = self._version.expansion
        return None if expansion is None else expansion.union_find

    def count(self, name: str, *, expanded: bool = True) -> int:
        """How many facts a relation has."""
        expansion = self._expansion(name) if expanded else None
        return self._facts.count(name) if expansion is None else expansion.count(name, lambda: self._context(Run()))

    def count_explicit(self, name: str) -> int:
        """How many explicit facts a relation has."""
        return self._version.given.count(name)

    def scan(self, name: str, which: Which = "all", *, expanded: bool = True) -> Iterator[Batch]:
        """The facts of a relation; no more than a bucket is held at a time."""
        version, expansion = self._version, self._expansion(name) if expanded else None
        explicit = version.explicit if version.expansion is None or not expanded else version.given
        facts: View = self._facts
        if which == ASSERTED:
            facts = explicit
        elif which == INFERRED:
            every = facts if expansion is None else expansion.all_names([name], self._context(Run()))
            facts = every - explicit
        elif expansion is not None:
            return expansion.expanded(facts_of(facts, name, self.dictionary), name)
        return facts_of(facts, name, self.dictionary)

    def contains(self, name: str, fact: Batch, *, expanded: bool = True) -> bool:
        """Whether a relation has a fact; only its bucket is read."""
        expansion = self._expansion(name) if expanded else None
        if expansion is not None:
            expansion.union_find.rename(fact, expansion.schema.columns[name])
        return holds(self._facts, name, fact, self.dictionary)

    def dataframe(self, name: str, spark: SparkSession, *, expanded: bool = True, kept: object = None) -> DataFrame:
        """The facts of a relation as a DataFrame over the files of this version: nothing comes to the driver. It keeps an object."""
        expansion, relation = self._expansion(name) if expanded else None, self._version.program.relations[name]
        if expansion is None:
            return frame_of(self._facts, relation, spark, kept=kept)
        columns = expansion.schema.columns[name].tolist()
        return frame_of(self._facts, relation, spark, columns, expansion.pairs, kept)

    def _context(self, run: Run) -> EngineContext:
        return self._version.context.beside(run, self._facts)

    def _expansion(self, name: str) -> Expansion | None:
        """The expansion of the facts, if a relation has columns that hold representatives."""
        expansion = self._version.expansion
        return expansion if expansion is not None and name in expansion.schema.columns else None

    def evaluate(self, query: Query, run: Run, *, representatives: bool = False) -> Solutions:
        """The answer to a query, expanded or over representatives.

        Raises:
            LimitError: a limit was reached.
        """
        version = self._version
        return evaluate(
            query,
            self._facts,
            version.expansion,
            self._context(run),
            version.dictionary,
            representatives=representatives,
        )

    def stream(self, query: Query, run: Run) -> Solutions:
        """The answer to a query, expanded: all of it is computed at once."""
        return self.evaluate(query, run)


def evaluate(
    query: Query,
    facts: View,
    expansion: Expansion | None,
    context: EngineContext,
    dictionary: Dictionary,
    *,
    representatives: bool = False,
) -> Solutions:
    """The answer to a query over some facts, expanded or over representatives; it comes to the driver.

    Args:
        query: the query.
        facts: the facts.
        expansion: what they stand for, where equal terms have a representative.
        context: for this query only: its run limits it.
        dictionary: encodes the answer.
        representatives: whether, of equal terms, only the representative is wanted.

    Raises:
        LimitError: a limit was reached.
    """
    rules = query.rules
    if expansion is not None and query.about_names:
        facts = expansion.all_names(query.reads, context)
    elif expansion is not None:
        rules = tuple(normal_rule(rule, expansion.union_find.normal) for rule in rules)
    made = FactSet("an answer", context)
    for name, relation in query.relations.items():
        context.shapes[name] = Shape.of(relation.types)
    for rule in rules:  # in an order in which the relations that a rule reads are complete
        made.add(Rules([rule], frozenset(), context).consequences(facts | made))
    table = Table(query.answer.arity)
    columns = np.array(rewritten_columns(query.answer), np.int64)
    for batch in facts_of(made, query.answer.name, dictionary):
        if expansion is None or representatives != query.about_names:
            table.add_new(batch, 0)
        elif representatives:
            expansion.union_find.rename(batch, columns)
            table.add_new(batch, 0)
        else:
            for part in expand_names(batch, columns, expansion.union_find):
                table.add_new(part, 0)
    return Solutions(table, context.undefined.total())
