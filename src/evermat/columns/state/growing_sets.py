"""E, I and derivation counters: what outlives an update, as bits of the state word and counts of rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evermat.columns.evaluation.operators import Sink
from evermat.columns.evaluation.rules import Bag
from evermat.columns.state.datasets import AppendedRows, Dataset
from evermat.columns.state.views import Listed, View
from evermat.columns.storage.arrays import Batch, Rows
from evermat.columns.storage.counter import Counter as RowCounter
from evermat.columns.storage.counter import Weights
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import Table
from evermat.engine import Jobs


class GrowingSet(Dataset):
    """A dataset to which facts are only added, as the materialisation during a run from scratch.

    Invariant: a fact that a bag derives is in it already, or has no row yet. So the new facts are the rows appended meanwhile, and there is
    no need to look at states.
    """

    def __init__(self, name: str, bit: int, tables: Mapping[str, Table], jobs: Jobs) -> None:
        super().__init__(name, bit, tables)
        self._jobs = jobs
        self._sinks: dict[str, Sink] = {relation: self._sink(relation) for relation in tables}
        # During a materialisation from scratch: so many rows at the beginning of a table are surely not in it.
        self.firsts: dict[str, int] = {}

    def select(self, name: str) -> Selection:
        first, rows = self.firsts.get(name, 0), self.tables[name].count
        return Selection(first, rows) if first and self.sizes[name] == rows - first else super().select(name)

    def add(self, facts: View | Bag) -> View:
        if isinstance(facts, Bag):
            facts.announce(self.tables)
            before = {name: self.tables[name].count for name in facts.heads}
            facts.read(self._sinks, counted=False)  # rows get their bit when they are appended
            ranges = {n: (first, self.tables[n].count) for n, first in before.items() if first < self.tables[n].count}
            for name, (first, end) in ranges.items():
                self.sizes[name] += end - first
            return AppendedRows(self.tables, ranges)
        ranges, found = {}, {}
        for name in list(facts.names):
            selection = _as_range(facts, name)
            if selection.is_range and not selection.empty and not self._holds_any(name, selection):
                ranges[name] = (selection.lo, selection.hi)
                self.tables[name].set_bits_between(selection.lo, selection.hi, self.bit)
                self.sizes[name] += selection.hi - selection.lo
            elif not selection.empty:
                found[name] = [self.tables[name].claim(facts.rows(name), self.truth, self.bit)]
                self.sizes[name] += len(found[name][0])
        return (
            AppendedRows(self.tables, ranges)
            if not found
            else AppendedRows(self.tables, ranges) | Listed(self.tables, found)
        )

    def _holds_any(self, name: str, rows: Selection) -> bool:
        return bool(self.sizes[name]) and bool((self.tables[name].state[rows.lo : rows.hi] & np.uint16(self.bit)).any())

    def remove(self, name: str, rows: Rows) -> None:
        """Takes rows of a relation out, which are in it."""
        self.tables[name].clear_bits(rows, self.bit)
        self.sizes[name] -= len(rows)

    def _sink(self, name: str) -> Sink:
        table, bit, jobs = self.tables[name], self.bit, self._jobs

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            del weights
            table.add_new(batch, bit, n)
            jobs.run.derived(n)

        return sink


def _as_range(facts: View, name: str) -> Selection:
    """The rows of a relation in a view; as a range, if they follow one another."""
    selection = facts.select(name)
    if not selection.is_range and len(rows := facts.rows(name)) and bool((np.diff(rows) == 1).all()):
        return Selection(int(rows[0]), int(rows[-1]) + 1)
    return selection


class CountedSet:
    """A derivation counter for every fact."""

    def __init__(self, tables: Mapping[str, Table], jobs: Jobs) -> None:
        self.tables, self._jobs = tables, jobs
        self.counters = {name: RowCounter(table) for name, table in tables.items()}
        self._sinks: dict[str, Sink] = {name: self._sink(name) for name in tables}

    def add(self, facts: View | Bag) -> View:
        """Counts every occurrence; returns those facts that were not in any set before, and the view itself."""
        if isinstance(facts, Bag):
            before = {name: self.tables[name].count for name in facts.heads}
            facts.read(self._sinks, counted=True)
            ranges = {n: (first, self.tables[n].count) for n, first in before.items() if first < self.tables[n].count}
            return AppendedRows(self.tables, ranges)
        for name in facts.names:
            lo, hi, truth, listed = facts.select(name)
            for rows in self.tables[name].scan(truth, lo, hi) if listed is None else [listed]:
                self.counters[name].add(rows)
        return facts

    def drop(self, name: str) -> None:
        """Sets all counts of a relation to 0."""
        self.counters[name].clear()

    def _sink(self, name: str) -> Sink:
        counters, jobs = self.counters, self._jobs

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            counters[name].add_tuples(batch, n, weights)
            jobs.run.derived(n if weights is None else int(weights.sum()))

        return sink
