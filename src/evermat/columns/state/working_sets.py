"""Sets of facts and derivation counters during an update.

Sets are bits of the state word and lists of rows, so that an update costs what it touches. What counters count goes into a set of touched
facts, and a journal can undo it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from evermat.columns.evaluation.operators import Sink
from evermat.columns.evaluation.rules import Bag
from evermat.columns.kernels import rows as row_kernels
from evermat.columns.state.datasets import CountedSet, Dataset
from evermat.columns.state.views import Listed, Restricted, View, listed
from evermat.columns.storage.arrays import NO_ROWS, Batch, Mask, Rows, as_rows, picked
from evermat.columns.storage.counter import Counter as RowCounter
from evermat.columns.storage.counter import Touched, Weights
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import Table
from evermat.core import ask_for, check_stop
from evermat.engine import Journal, Run


class WorkingSet(Dataset):
    """A set of facts for the time of an update: a bit of the state word, and a list of its rows."""

    def __init__(self, name: str, bit: int, tables: Mapping[str, Table], run: Run) -> None:
        super().__init__(name, bit, tables)
        self._lists: dict[str, list[Rows]] = {}
        self._run = run

    @property
    def names(self) -> Iterable[str]:
        return self._lists

    def rows(self, name: str) -> Rows:
        lists = self._lists.get(name)
        if lists is None:
            return NO_ROWS
        if len(lists) > 1:
            lists[:] = [np.concatenate(lists)]
        return lists[0]

    def mask(self, name: str, rows: Rows) -> Mask:
        inside = np.empty(len(rows), np.bool_)
        row_kernels.test_bits(self.tables[name].state, as_rows(rows), self.bit, inside)
        return inside

    def start(self, name: str) -> Selection:
        return listed(self.rows(name))

    def __bool__(self) -> bool:
        return bool(self._lists)

    def add(self, facts: View | Bag | Counting) -> Listed:
        new: dict[str, list[Rows]] = {}
        counting, source = (facts, facts.facts) if isinstance(facts, Counting) else (None, facts)
        if counting is not None:
            counting.counter.start(self, counting.sign)
        if isinstance(source, Bag):
            source.read({name: self._sink(name, new, counting) for name in source.heads}, counted=counting is not None)
        else:
            for name in list(source.names):
                rows = source.rows(name)
                self._claim(name, rows if counting is None else counting.rows(name, rows), new)
        return Listed(self.tables, new)

    def replace(self, facts: View) -> bool:
        found = {name: facts.rows(name) for name in list(facts.names)}
        self.clear()
        for name, rows in found.items():
            self._claim(name, rows, {})
        return bool(self)

    def clear(self) -> None:
        self.drop(list(self._lists))

    def discard(self, facts: View) -> None:
        for name in list(facts.names):
            held = self.rows(name)
            discarded = facts.mask(name, held)
            if discarded.any():
                self.put(name, picked(held, discarded, wanted=False))

    def put(self, name: str, rows: Rows) -> None:
        """Holds exactly these facts of a relation from now on, of which each is listed once."""
        self.drop([name])
        self._claim(name, rows, {})

    def drop(self, names: Iterable[str]) -> None:
        """Holds no facts of some relations from now on."""
        for name in names:
            for rows in self._lists.pop(name, ()):
                self.tables[name].clear_bits(rows, self.bit)
            self.sizes[name] = 0

    def _claim(self, name: str, rows: Rows, new: dict[str, list[Rows]]) -> None:
        claimed = self.tables[name].claim(rows, self.truth, self.bit)
        if len(claimed):
            self._lists.setdefault(name, []).append(claimed)
            self.sizes[name] += len(claimed)
            new.setdefault(name, []).append(claimed)

    def _sink(self, name: str, new: dict[str, list[Rows]], counting: Counting | None) -> Sink:
        table, run = self.tables[name], self._run

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            rows = table.locate(batch, n) if counting is None else counting.tuples(name, batch, n, weights)
            self._claim(name, rows, new)
            run.derived(n if weights is None else int(weights.sum()))

        return sink


class ChangeSet(WorkingSet):
    """D or A. Of relations with a storage scheme its rows are inputs; its facts are what follows from the change of inputs and sources."""

    @property
    def names(self) -> Iterable[str]:
        changed = dict.fromkeys(self._lists)
        for name, table in self.tables.items():
            if table.scheme is not None and name not in changed and table.scheme.is_changed(self._lists):
                changed[name] = None
        return changed


class EmptySet(Restricted):
    """A set that stays empty."""

    def __init__(self, view: View) -> None:
        super().__init__(view, frozenset())

    def add(self, facts: View | Bag | Counting) -> Listed:
        source = facts.facts if isinstance(facts, Counting) else facts
        assert not source
        return Listed(self.tables, {})

    def replace(self, facts: View) -> bool:
        assert not facts
        return False

    def clear(self) -> None:
        """It is empty."""


def _ascending(rows: Rows) -> Rows:
    """The rows, sorted and each once; often they are so already, and there may be millions."""
    check_stop()
    if row_kernels.first_descent(as_rows(rows)) == len(rows):
        return rows
    ask_for(2 * rows.nbytes)
    return np.unique(rows)


class ChangedRows(Listed):
    """Facts that are inserted or deleted: few, and only ever listed or compared with others."""

    @classmethod
    def of(cls, facts: View) -> ChangedRows:
        """The facts of a view, each once."""
        return cls(facts.tables, {name: [_ascending(facts.rows(name))] for name in list(facts.names)})

    def put(self, name: str, rows: Rows) -> None:
        self._found.pop(name, None)
        if len(rows):
            self._found[name] = [rows]


# ── Derivation counters ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Counting:
    """Facts that are counted up or down when they are added to a set."""

    counter: JournaledCounter
    facts: View | Bag
    sign: int

    def rows(self, name: str, rows: Rows) -> Rows:
        """Counts rows of a relation; returns those that have to be added."""
        counter = self.counter.counters[name]
        return self.counter.note(counter, counter.touch(rows, None, self.sign))

    def tuples(self, name: str, batch: Batch, n: int, weights: Weights | None) -> Rows:
        """Counts tuples of a relation; returns the rows that have to be added."""
        counter = self.counter.counters[name]
        return self.counter.note(counter, counter.touch_tuples(batch, n, weights, self.sign))


class JournaledCounter:
    """A derivation counter during an update.

    What is counted goes into a set of touched facts. As long as that is the same set, rows are marked in the counter, and a row that is
    marked is in the set: most instances of dense data end there.
    """

    def __init__(self, counted: CountedSet, journal: Journal, run: Run) -> None:
        self.tables, self.counters = counted.tables, counted.counters
        self._journal, self._run = journal, run
        self._target: View | None = None
        self._marked: list[tuple[RowCounter, Rows]] = []

    @property
    def positive(self) -> View:
        return _Positive(self.tables, self.counters)

    def add(self, facts: View | Bag) -> Counting:
        return Counting(self, facts, 1)

    def subtract(self, facts: View | Bag) -> Counting:
        return Counting(self, facts, -1)

    def start(self, target: View, sign: int) -> None:
        self._run.record("count up" if sign > 0 else "count down", 0, 0)
        if target is not self._target:
            self.settle()
            self._target = target

    def note(self, counter: RowCounter, touched: Touched) -> Rows:
        """Takes note of rows that were touched for the first time."""
        rows, before = touched
        if len(rows):
            self._journal.note(counter, rows, before)
            self._marked.append((counter, rows))
        return rows

    def settle(self) -> None:
        """No row is marked any more."""
        for counter, rows in self._marked:
            counter.settle(rows)
        self._marked.clear()
        self._target = None


class _Positive(View):
    """Facts whose counter is not 0: only to be intersected with something small."""

    def __init__(self, tables: Mapping[str, Table], counters: Mapping[str, RowCounter]) -> None:
        self.tables, self._counters = tables, counters

    def select(self, name: str) -> Selection:
        raise AssertionError(f"the facts of {name} that are counted are never enumerated")

    def mask(self, name: str, rows: Rows) -> Mask:
        return self._counters[name].get(rows) > 0
