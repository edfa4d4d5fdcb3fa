"""A plain table, read by domain like a scheme."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evermat.columns.schemes.scheme import Counts, Kinds
from evermat.columns.schemes.value_directory import Mentions
from evermat.columns.storage.domains import GAINED, KEPT, LOST, rows_in
from evermat.columns.storage.table import MATERIALISED, STATES, Batch, Rows, Table


class StoredRows:
    """The rows of a table; of a relation with a scheme these are its inputs."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __len__(self) -> int:
        return self._table.count

    @property
    def mentions(self) -> Mentions:
        """All values that its rows have."""
        return Mentions(self._table, self._table.arity)

    def as_closure(self) -> None:
        """None: each fact has a row."""

    def kinds(self, facts: Batch, n: int) -> Kinds:
        rows = self._table.find(facts, n)
        kinds: Kinds = _kind_of_state()[self._table.state[rows]]  # for -1 this reads some state; it is none then
        kinds[rows < 0] = 0
        return kinds

    def holds(self, fact: Batch) -> bool:
        if not self._table.count:
            return False
        row = int(self._table.find(fact, 1)[0])
        return row >= 0 and bool(self._table.state[row] & MATERIALISED)

    def scan(self, domain: int, chunk: int) -> Iterator[Batch]:
        for rows in self._table.scan(rows_in(domain), chunk=chunk):
            yield self._table.take(rows)

    def join(
        self, columns: tuple[int, ...], keys: Batch, n: int, domain: int, chunk: int
    ) -> Iterator[tuple[Rows, Batch]]:
        if not self._table.count:
            return  # an index would stay
        index = self._table.index(columns)
        for positions, rows in index.join(keys, rows_in(domain), lo=0, hi=self._table.count, n=n, chunk=chunk):
            yield positions, self._table.take(rows)

    def counts(self, columns: tuple[int, ...], keys: Batch, n: int, domain: int) -> Counts:
        return self._table.index(columns).counts(keys, rows_in(domain), lo=0, hi=self._table.count, n=n)

    def count(self, domain: int) -> int:
        return sum(len(rows) for rows in self._table.scan(rows_in(domain)))


_KINDS: list[Kinds] = []


def _kind_of_state() -> Kinds:
    """The kind that a row of each state is."""
    if not _KINDS:
        kinds = np.zeros(STATES, np.uint8)
        for kind in (KEPT, LOST, GAINED):
            kinds[rows_in(kind) != 0] = kind
        _KINDS.append(kinds)
    return _KINDS[0]
