"""Derivation counters during an update: what they count goes into a set of touched facts, and a journal can undo it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evermat.columns.evaluation.rules import Bag
from evermat.columns.state.growing_sets import CountedSet
from evermat.columns.state.views import View
from evermat.columns.storage.counter import Counter as RowCounter
from evermat.columns.storage.counter import Touched, Weights
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import Batch, Rows, Table
from evermat.engine import Journal, Run


@dataclass(frozen=True, slots=True)
class Counting:
    """Facts that are counted up or down when they are added to a set."""

    counter: JournaledCounter
    facts: View | Bag
    sign: int

    def start(self, target: View) -> Touch:
        """Begins to count for a set."""
        return Touch(self.counter, target, self.sign)


class Touch:
    """Counts what is added to a set, and returns the rows that have to be added."""

    def __init__(self, counter: JournaledCounter, target: View, sign: int) -> None:
        counter.start(target, sign)
        self._counter, self._sign = counter, sign

    def rows(self, name: str, rows: Rows) -> Rows:
        """Counts rows of a relation."""
        counter = self._counter.counters[name]
        return self._counter.note(counter, counter.touch(rows, None, self._sign))

    def tuples(self, name: str, batch: Batch, n: int, weights: Weights | None) -> Rows:
        """Counts tuples of a relation."""
        counter = self._counter.counters[name]
        return self._counter.note(counter, counter.touch_tuples(batch, n, weights, self._sign))


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
        """Facts that are counted at least once."""
        return _Positive(self.tables, self.counters)

    def add(self, facts: View | Bag) -> Counting:
        """Counts facts once more, when they are added to a set."""
        return Counting(self, facts, 1)

    def subtract(self, facts: View | Bag) -> Counting:
        """Counts facts once less, when they are added to a set."""
        return Counting(self, facts, -1)

    def start(self, target: View, sign: int) -> None:
        """Counting for a set begins."""
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

    def mask(self, name: str, rows: Rows) -> npt.NDArray[np.bool_]:
        return self._counters[name].get(rows) > 0
