"""The facts of a state for those who read: counted, scanned, looked up and asked by queries.

Where equal terms have a representative, facts are held over representatives; readers see *expanded* facts, over all equal terms, unless they
ask for representatives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from evermat.columns.equality.expansion import expand_names
from evermat.columns.equality.union_find import UnionFind
from evermat.columns.state.datasets import facts_in
from evermat.columns.state.query import Scans, Solutions, evaluate, stream
from evermat.columns.state.state import State
from evermat.columns.storage.arrays import Batch, Numbers
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.selection import contains
from evermat.core import ASSERTED, INFERRED, Which
from evermat.engine import Run
from evermat.language import Query


class Snapshot:
    """The facts of a state as they are now: valid until the next update is committed.

    Args:
        state: the facts.
        scans: how often relations were scanned for queries, to be counted on.
    """

    def __init__(self, state: State, scans: Scans | None = None) -> None:
        self._state, self._facts = state, state.materialised
        self._scans: Scans = Counter() if scans is None else scans

    @property
    def dictionary(self) -> Dictionary:
        """The dictionary that batches are encoded with."""
        return self._state.dictionary

    @property
    def union_find(self) -> UnionFind | None:
        """Which term represents which; None if equal terms are not represented by one."""
        names = self._state.representatives
        return None if names is None else names.union_find

    def count(self, name: str, *, expanded: bool = True) -> int:
        """How many facts a relation has."""
        names = self._state.representatives
        return self._facts.count(name) if names is None or not expanded else names.expansion.count(self._facts, name)

    def count_explicit(self, name: str) -> int:
        """How many explicit facts a relation has."""
        return self._state.given.count(name)

    def scan(self, name: str, which: Which = "all", *, expanded: bool = True) -> Iterator[Batch]:
        """The facts of a relation, some at a time; each batch is valid until the next step."""
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
        """The facts of a relation as the state holds them."""
        table = self._state.tables[name]
        if table.scheme is not None:
            yield from facts_in(self._facts, name)
            return
        lo, hi, truth, _ = self._facts.select(name)
        for rows in table.scan(truth, lo, hi):
            yield table.take(rows)

    def contains(self, name: str, fact: Batch, *, expanded: bool = True) -> bool:
        """Whether a relation has a fact; of an expanded one, its terms are replaced by representatives in `fact`."""
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
        """The answer to a query, expanded; its rows are computed when they are read."""
        return stream(query, self._state, self._facts, run)
