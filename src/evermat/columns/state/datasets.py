"""Sets of facts that tables know by themselves: bits of the state word, and ranges of appended rows; and facts however they are stored.

Two forms of set make reading cheap: a `Dataset` is a bit of the state word, and knows how many rows of each table have it; `AppendedRows` were
appended last, a range of rows. As long as every row of a table is in I, reading I costs no look at states at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from evermat.columns.schemes.scheme import in_domain
from evermat.columns.state.views import NOTHING, View, truth_of
from evermat.columns.storage.arrays import Batch, Mask, Truth
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import Table


class Dataset(View):
    """A named set of facts: one bit of the state word.

    Invariant: `sizes[name]` is the number of rows of that table whose state has the bit.
    """

    def __init__(self, name: str, bit: int, tables: Mapping[str, Table]) -> None:
        self.name, self.bit, self.tables = name, bit, tables
        self.sizes: defaultdict[str, int] = defaultdict(int)

    @property
    def truth(self) -> Truth:
        """Membership as a function of the state word."""
        return truth_of(self.bit)

    def truth_for(self, name: str) -> Truth:
        del name
        return self.truth

    def select(self, name: str) -> Selection:
        size, rows = self.sizes[name], self.tables[name].count
        if size == 0:
            return NOTHING
        return Selection(0, rows, None if size == rows else self.truth)

    def count(self, name: str) -> int:
        scheme = self.tables[name].scheme
        domain = 0 if scheme is None else scheme.domain(self.truth)
        return scheme.count(domain) if scheme is not None and domain else self.sizes[name]  # E has rows in any case

    def holds_all(self, name: str) -> bool:
        """Whether every row of a table is in the set."""
        return self.sizes[name] == self.tables[name].count


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
    table, n = view.tables[name], facts.shape[1]
    if table.scheme is not None:
        return in_domain(table.scheme, facts, n, table.scheme.domain(view.truth_for(name)))
    rows = table.find(facts, n)
    inside = rows >= 0
    inside[inside] = view.mask(name, rows[inside])
    return inside
