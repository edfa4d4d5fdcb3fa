"""Jobs over facts with terms that have representatives: normal forms, facts that mention a term, expanded facts.

They need the classes of equal terms as pairs of facts, and change nothing: an update and readers run them side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from evermat.columns import Ids, TermSchema
from evermat.language import Column, Relation, Type
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.job_runner import Found, Job
from evermat.spark.engine.tasks.merge import Target
from evermat.spark.engine.tasks.rename_terms import (
    CountNamesTask,
    ExpandNamesTask,
    RenameInput,
    RenameTask,
    RewriteTask,
)
from evermat.spark.engine.tasks.set_expressions import ARRIVED, Expression, combined, most
from evermat.spark.engine.tasks.worker import Channel

_SMALL = 20_000  # facts that one task renames rather than many

TERM = Column("term", Type.TERM, "term")
PAIRS = Relation("'renamed", (TERM, TERM), hidden=True)
"""Pairs of terms that rename others, or, of the same term twice, that are looked for."""


class RenameJobs:
    """Jobs of one context."""

    def __init__(self, schema: TermSchema, context: EngineContext) -> None:
        self._schema, self._context = schema, context

    def listed(self, relation: Relation, left: Ids, right: Ids) -> FactSet:
        """Distinct pairs of terms of the driver, as facts."""
        found = FactSet("listed", self._context)
        if len(left):
            shape, pairs = self._context.shapes[relation.name], np.array([left, right])
            found.append(relation.name, list(self._context.cluster.write(shape, pairs, self._schema.dictionary)))
        return found

    def moved(self, view: View, names: Iterable[str], pairs: Expression | None) -> tuple[FactSet, FactSet]:
        """The facts of some relations that mention a name; and those of their normal forms that are not in the view."""
        named = {} if pairs is None else self._facts(view, names)
        wanted: list[tuple[str, Expression | None]] = [(name, ARRIVED) for name in named]
        wanted += [(name, combined("-", ARRIVED, facts.expression)) for name, facts in named.items()]
        found = self._run("rewrite", RewriteTask, named, pairs, wanted)
        return self._set("moved", named, found[: len(named)]), self._set("normal forms", named, found[len(named) :])

    def mentioning(self, view: View, names: Iterable[str], terms: Ids) -> FactSet:
        """The facts of some relations that mention one of some terms."""
        named, pairs = self._facts(view, names), self.listed(PAIRS, terms, terms).expression(PAIRS.name)
        found = self._run("find", RewriteTask, named, pairs, [(name, ARRIVED) for name in named])
        return self._set("mentioning", named, found)

    def expanded(self, view: View, pairs: Expression | None, names: Iterable[str]) -> FactSet:
        """The expanded facts of some relations."""
        named = self._facts(view, names)
        found = self._run("name", ExpandNamesTask, named, pairs, [(name, ARRIVED) for name in named])
        return self._set("named", named, found)

    def count_expanded(self, view: View, pairs: Expression, names: Iterable[str]) -> dict[str, int]:
        """How many expanded facts some relations have; none of those that are missing."""
        named, cluster = self._facts(view, names), self._context.cluster
        if not named:
            return {}
        tasks = self._tasks(named)
        stage = CountNamesTask(tuple(named.values()), pairs, cluster.buckets, tasks)
        found, _ = self._context.execute("count expanded facts", tasks, [stage], len(named))
        return {name: one.rows for name, one in zip(named, found, strict=True)}

    def _facts(self, view: View, names: Iterable[str]) -> dict[str, RenameInput]:
        """The facts of relations with columns of terms."""
        columns = self._schema.columns
        return {
            name: RenameInput(self._context.shapes[name], tuple(map(int, columns[name])), expression)
            for name in names
            if name in columns and (expression := view.expression(name)) is not None
        }

    def _tasks(self, named: Mapping[str, RenameInput]) -> int:
        few = sum(most(facts.expression) for facts in named.values()) <= _SMALL
        return 1 if few else self._context.cluster.buckets

    def _run(
        self,
        what: str,
        stage: type[RenameTask],
        named: Mapping[str, RenameInput],
        pairs: Expression | None,
        wanted: Sequence[tuple[str, Expression | None]],
    ) -> list[Found]:
        """Runs a job that renames terms; `wanted` has for each channel, in order, a relation and the wanted part of its facts."""
        if not named:
            return []
        context, cluster = self._context, self._context.cluster
        shapes, tasks = [context.shapes[name] for name, _ in wanted], self._tasks(named)
        channels = [Channel(shape, number) for number, shape in enumerate(shapes)]
        targets = [Target(name, shape, e) for shape, (name, e) in zip(shapes, wanted, strict=True)]
        first = stage(tuple(channels), cluster.buckets, tasks, tuple(named.values()), pairs)
        return context.run(Job(f"{what} {', '.join(named)[:60]}", targets, channels, tasks=tasks, first=first))

    def _set(self, what: str, names: Iterable[str], found: Sequence[Found]) -> FactSet:
        made = FactSet(what, self._context)
        for name, one in zip(names, found, strict=True):
            made.append(name, one.facts)
        return made
