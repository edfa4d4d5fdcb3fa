"""Sets of facts without lists of rows: E, I and derivation counters, which outlive an update; and facts however they are stored.

Two forms of set make reading cheap: a `Dataset` is a bit of the state word, and knows how many rows of each table have it; `AppendedRows` were
appended last, a range of rows. As long as every row of a table is in I, reading I costs no look at states at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from evermat.columns.evaluation.operators import Sink, appending
from evermat.columns.evaluation.rules import Bag
from evermat.columns.schemes.scheme import in_domain
from evermat.columns.state.views import NOTHING, Listed, View, truth_of
from evermat.columns.storage.arrays import Batch, Mask, Rows, Truth
from evermat.columns.storage.counter import Counter as RowCounter
from evermat.columns.storage.counter import Weights
from evermat.columns.storage.readable_table import ReadableTable
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import Table
from evermat.engine import Jobs


class Dataset(View):
    """A named set of facts: one bit of the state word.

    Invariant: `sizes[name]` is the number of rows of that table whose state has the bit.
    """

    def __init__(self, name: str, bit: int, tables: Mapping[str, Any]) -> None:
        self.name, self.bit, self.tables = name, bit, tables
        self.sizes: dict[str, int] = defaultdict(int)

    @property
    def truth(self) -> Truth:
        """Membership as a function of the state word."""
        return truth_of(self.bit)

    def truth_for(self, name: str) -> Truth:
        del name
        return self.truth

    def select(self, name: str) -> Selection:
        rows, size = (
            self.tables[name].count,
            self.sizes[name],
        )  # in this order: a version knows sizes of tables that it has captured
        if size == 0:
            return NOTHING
        return Selection(0, rows, None if size == rows else self.truth)

    def count(self, name: str) -> int:
        scheme = self.tables[name].scheme
        domain = 0 if scheme is None else scheme.domain(self.truth)
        return scheme.count(domain) if scheme is not None and domain else self.sizes[name]  # E has rows in any case

    def recount(self, name: str) -> None:
        """Counts the rows of a table that are in the set, after states have been set from outside."""
        table = self.tables[name]
        self.sizes[name] = int(np.count_nonzero(table.state[: table.count] & np.uint16(self.bit)))

    def holds_all(self, name: str) -> bool:
        rows: int = self.tables[name].count
        return rows == self.sizes[name]


class AppendedRows(View):
    """Facts that were appended last: a range of rows for each relation."""

    def __init__(self, tables: Mapping[str, Table], ranges: dict[str, tuple[int, int]]) -> None:
        self.tables = tables
        self.ranges = ranges

    def select(self, name: str) -> Selection:
        lo, hi = self.ranges.get(name, (0, 0))
        return Selection(lo, hi)

    @property
    def names(self) -> Iterable[str]:
        return self.ranges

    def listed(self) -> Any:
        """Itself: rows do not move."""
        return self

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __or__(self, other: View) -> View:
        """What was appended in two steps, one right after the other, is one range again."""
        if not isinstance(other, AppendedRows):
            return super().__or__(other)
        ranges = dict(self.ranges)
        for name, (lo, hi) in other.ranges.items():
            before = ranges.get(name)
            if before is not None and before[1] != lo:
                return super().__or__(other)
            ranges[name] = (before[0] if before else lo, hi)
        return AppendedRows(self.tables, ranges)


def facts_in(view: View, name: str, chunk: int = 1 << 17) -> Iterator[Batch]:
    """The facts of a relation that belong to a view, however the relation is stored; never all at once."""
    table = view.tables[name]
    if table.scheme is not None:
        yield from table.scheme.scan(table.scheme.domain(view.truth_for(name)), chunk)
        return
    rows = view.rows(name)
    for first in range(0, len(rows), chunk):
        yield table.take(rows[first : first + chunk])


def contains_facts(view: View, name: str, facts: Batch) -> Mask:
    """Which facts of a relation belong to a view, however the relation is stored."""
    table: ReadableTable = view.tables[name]
    n = facts.shape[1]
    if table.scheme is not None:
        return in_domain(table.scheme, facts, n, table.scheme.domain(view.truth_for(name)))
    rows = table.find(facts, n)
    inside = rows >= 0
    inside[inside] = view.mask(name, rows[inside])
    return inside


class GrowingSet(Dataset):
    """A dataset to which facts are only added, as the materialisation during a run from scratch.

    Invariant: a fact that a bag derives is in it already, or has no row yet. So the new facts are the rows appended meanwhile, and there is
    no need to look at states.
    """

    def __init__(self, name: str, bit: int, tables: Mapping[str, Table], jobs: Jobs) -> None:
        super().__init__(name, bit, tables)
        self._sinks: dict[str, Sink] = {relation: appending(table, bit, jobs) for relation, table in tables.items()}
        # During a materialisation from scratch: so many rows at the beginning of a table are surely not in it.
        self.firsts: dict[str, int] = {}

    def select(self, name: str) -> Selection:
        first, rows = self.firsts.get(name, 0), self.tables[name].count
        return Selection(first, rows) if first and self.sizes[name] == rows - first else super().select(name)

    def add(self, facts: View | Bag) -> View:
        if isinstance(facts, Bag):
            facts.announce(self.tables)
            new = _appended_by(
                facts, self.tables, self._sinks, counted=False
            )  # rows get their bit when they are appended
            for name, (first, end) in new.ranges.items():
                self.sizes[name] += end - first
            return new
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
        appended = AppendedRows(self.tables, ranges)
        return appended | Listed(self.tables, found) if found else appended

    def _holds_any(self, name: str, rows: Selection) -> bool:
        return bool(self.sizes[name]) and bool((self.tables[name].state[rows.lo : rows.hi] & np.uint16(self.bit)).any())

    def remove(self, name: str, rows: Rows) -> None:
        """Takes rows of a relation out, which are in it."""
        self.tables[name].clear_bits(rows, self.bit)
        self.sizes[name] -= len(rows)


def _appended_by(facts: Bag, tables: Mapping[str, Table], sinks: Mapping[str, Sink], *, counted: bool) -> AppendedRows:
    """Reads a bag, and returns the rows that its sinks append."""
    before = {name: tables[name].count for name in facts.heads}
    facts.read(sinks, counted=counted)
    return AppendedRows(
        tables, {name: (first, tables[name].count) for name, first in before.items() if first < tables[name].count}
    )


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
            return _appended_by(facts, self.tables, self._sinks, counted=True)
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
