"""Expanded facts on a cluster: what facts over representatives stand for, for readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from evermat.columns import Batch, TermSchema, UnionFind, expand_names
from evermat.language import EQUALITY_CLASSES, Relation
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.rename_jobs import RenameJobs
from evermat.spark.engine.tasks.set_expressions import Expression


def classes(view: View) -> Expression | None:
    """The pairs of names and representatives among some facts."""
    return view.expression(EQUALITY_CLASSES.name)


class Expansion:
    """The expanded facts of some facts that do not change, and how many there are.

    What was computed once is kept; readers in several threads may compute the same, and one result is kept.
    """

    def __init__(
        self, relations: Mapping[str, Relation], schema: TermSchema, union_find: UnionFind, facts: View
    ) -> None:
        self._relations, self.schema, self.union_find, self._facts = relations, schema, union_find, facts
        self._counts: Mapping[str, int] | None = None
        self._named: Mapping[str, FactSet] = {}  # expanded facts of relations that have been read

    @property
    def pairs(self) -> Expression | None:
        """The pairs of names and representatives; None if every term represents itself."""
        return classes(self._facts)

    def all_names(self, names: Iterable[str], context: EngineContext) -> View:
        """The expanded facts of some relations; `context` runs the jobs."""
        pairs, wanted = self.pairs, [name for name in names if name in self.schema.columns]
        if pairs is None:
            return self._facts
        known = self._named
        if missing := [name for name in wanted if name not in known]:
            made = RenameJobs(self.schema, context).expanded(self._facts, pairs, missing)
            known = self._named = {**self._named, **dict.fromkeys(missing, made)}
        found = FactSet("named", context)
        for name in wanted:
            found.share(known[name], [name])
        return found | self._facts.only([name for name in names if name not in wanted])

    def count(self, name: str, context: Callable[[], EngineContext]) -> int:
        """The number of expanded facts of a relation; `context` makes one for the job, if there has to be one."""
        pairs = self.pairs
        if pairs is None or name not in self.schema.columns:
            return self._facts.count(name)
        counts = self._counts
        if counts is None:
            visible = [n for n, relation in self._relations.items() if not relation.hidden]
            found = RenameJobs(self.schema, context()).count_expanded(self._facts, pairs, visible)
            counts = self._counts = dict.fromkeys(self.schema.columns, 0) | found
        return counts[name]

    def count_on(self, before: Expansion, lost: View, gained: View) -> None:
        """Takes over the counts of earlier facts, without expanded facts that were deleted since, with those inserted."""
        if before._counts is not None:
            self._counts = {n: count + gained.count(n) - lost.count(n) for n, count in before._counts.items()}

    def expanded(self, batches: Iterable[Batch], name: str) -> Iterator[Batch]:
        """The expanded facts of batches of a relation, in the driver."""
        columns = self.schema.columns.get(name)
        for batch in batches:
            if columns is None:
                yield batch
            else:
                yield from expand_names(batch, columns, self.union_find)
