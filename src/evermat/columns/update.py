"""One update of the in-memory state: working sets, counters with a journal, commit and rollback.

Nothing that outlives the update is changed before `commit`, except counters, whose changes are journaled: an update that is left
without commit is rolled back. Working sets are bits of the state word and lists of rows, so that an update costs what
it touches: no table is ever scanned for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from evermat.columns.counter import Counter as RowCounter
from evermat.columns.operations import Sink
from evermat.columns.rules import Bag
from evermat.columns.run import Run
from evermat.columns.selection import Selection
from evermat.columns.state import EXPLICIT, MATERIALISED, CountedSet, State, StratumRules
from evermat.columns.table import Batch, Rows, Table
from evermat.columns.views import NO_ROWS, Dataset, Listed, View, listed
from evermat.interrupts import uninterrupted

Weights = npt.NDArray[np.int64]
_FREE_BITS = [1 << i for i in range(2, 16)]  # of the state word: the first two are E and I


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

    def mask(self, name: str, rows: Rows) -> npt.NDArray[np.bool_]:
        inside: npt.NDArray[np.bool_] = (self.tables[name].state[rows] & np.uint16(self.bit)) != 0
        return inside

    def start(self, name: str) -> Selection:
        return listed(self.rows(name))

    def __bool__(self) -> bool:
        return bool(self._lists)

    def add(self, facts: View | Bag) -> Listed:
        """Adds facts and hands back the new ones."""
        new: dict[str, list[Rows]] = {}
        if isinstance(facts, Bag):
            facts.read({name: self._sink(name, new) for name in facts.heads}, counted=False)
        else:
            for name in list(facts.names):
                self._claim(name, facts.rows(name), new)
        return Listed(self.tables, new)

    def replace(self, facts: View) -> bool:
        """Holds exactly these facts from now on; whether there are any."""
        found = {name: facts.rows(name) for name in list(facts.names)}
        self.clear()
        for name, rows in found.items():
            self._claim(name, rows, {})
        return bool(self)

    def clear(self) -> None:
        """Holds nothing from now on."""
        for name, lists in self._lists.items():
            for rows in lists:
                self.tables[name].clear_bits(rows, self.bit)
            self.sizes[name] = 0
        self._lists = {}

    def _claim(self, name: str, rows: Rows, new: dict[str, list[Rows]]) -> None:
        claimed = self.tables[name].claim(rows, self.truth, self.bit)
        if len(claimed):
            self._lists.setdefault(name, []).append(claimed)
            self.sizes[name] += len(claimed)
            new.setdefault(name, []).append(claimed)

    def _sink(self, name: str, new: dict[str, list[Rows]]) -> Sink:
        table, run = self.tables[name], self._run

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            self._claim(name, table.locate(batch, n), new)
            run.derived(n if weights is None else int(weights.sum()))

        return sink


@dataclass(slots=True)
class _Journal:
    """What was done to counters, so that it can be undone."""

    entries: list[tuple[RowCounter, Rows, Weights | None, bool]] = field(default_factory=list)

    def undo(self) -> None:
        for counter, rows, weights, added in reversed(self.entries):
            (counter.subtract if added else counter.add)(rows, weights)
        self.entries.clear()


class JournaledCounter:
    """A derivation counter during an update."""

    def __init__(self, counted: CountedSet, journal: _Journal, run: Run) -> None:
        self.tables, self._counters = counted.tables, counted.counters
        self._journal, self._run = journal, run

    @property
    def positive(self) -> View:
        """Facts that are counted at least once."""
        return _Positive(self.tables, self._counters)

    def add(self, facts: View | Bag) -> Listed:
        """Counts facts once more and hands back those touched."""
        return self._change(facts, added=True)

    def subtract(self, facts: View | Bag) -> Listed:
        """Counts facts once less and hands back those touched."""
        return self._change(facts, added=False)

    def _change(self, facts: View | Bag, *, added: bool) -> Listed:
        touched: dict[str, list[Rows]] = {}
        self._run.record("count up" if added else "count down", 0, 0)
        if isinstance(facts, Bag):
            facts.read({name: self._sink(name, touched, added=added) for name in facts.heads}, counted=True)
        else:
            for name in list(facts.names):
                rows = facts.rows(name)
                self._apply(name, rows, None, added=added)
                touched.setdefault(name, []).append(rows)
        return Listed(self.tables, touched)

    def _apply(self, name: str, rows: Rows, weights: Weights | None, *, added: bool) -> None:
        counter = self._counters[name]
        (counter.add if added else counter.subtract)(rows, weights)
        self._journal.entries.append((counter, rows, weights, added))

    def _sink(self, name: str, touched: dict[str, list[Rows]], *, added: bool) -> Sink:
        table, run = self.tables[name], self._run

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            rows = table.locate(batch, n)
            self._apply(name, rows, None if weights is None else weights.copy(), added=added)
            touched.setdefault(name, []).append(rows)
            run.derived(n if weights is None else int(weights.sum()))

        return sink


class _Positive(View):
    """Facts whose counter is not 0: only to be intersected with something small."""

    def __init__(self, tables: Mapping[str, Table], counters: Mapping[str, RowCounter]) -> None:
        self.tables, self._counters = tables, counters

    def select(self, name: str) -> Selection:
        raise AssertionError(f"the facts of {name} that are counted are never enumerated")

    def mask(self, name: str, rows: Rows) -> npt.NDArray[np.bool_]:
        return self._counters[name].get(rows) > 0


class Update:
    """One update: E⁻ and E⁺ cleaned of what changes nothing, the sets D and A, and whatever else an algorithm needs.

    >>> with Update(state, run, deleted, inserted) as update:       # doctest: +SKIP
    ...     …                                                       # an algorithm fills D and A
    ...     update.commit()
    """

    def __init__(
        self, state: State, run: Run, deleted: Mapping[str, list[Rows]], inserted: Mapping[str, list[Rows]]
    ) -> None:
        self.state, self.run = state, run
        state.jobs.run = run
        self._free = list(_FREE_BITS)
        self._sets: list[WorkingSet] = []
        self._journal = _Journal()
        self.overdeleted = self.new("D")
        self.added = self.new("A")
        self.deleted, self.inserted = self.new("E-"), self.new("E+")
        self.nonrecursive_counter = JournaledCounter(state.nonrecursive_counter, self._journal, run)
        self.recursive_counter = JournaledCounter(state.recursive_counter, self._journal, run)
        self.figures: dict[str, int] = dict.fromkeys(("overdeleted", "rederived", "checked", "proved"), 0)
        coming, going = Listed(state.tables, inserted), Listed(state.tables, deleted)
        self.inserted.add(coming)
        self.deleted.add((going & state.explicit) - self.inserted)
        self.inserted.replace(self.inserted - state.explicit)

    def new(self, name: str) -> WorkingSet:
        """A working set, empty."""
        made = WorkingSet(name, self._free.pop(), self.state.tables, self.run)
        self._sets.append(made)
        return made

    def release(self, *sets: WorkingSet) -> None:
        """Working sets that are needed no more."""
        for done in sets:
            done.clear()
            self._sets.remove(done)
            self._free.append(done.bit)

    def strata(self) -> Iterator[StratumRules]:
        """The strata in order; takes note of each."""
        return self.run.strata(self.state)

    def next_round(self) -> None:
        """A round begins; raises `LimitError` if a limit is reached."""
        self.run.next_round()

    def commit(self) -> tuple[Listed, Listed]:
        """I := (I ∖ D) ∪ A, E := (E ∖ E⁻) ∪ E⁺; hands back the facts that I lost and gained."""
        with uninterrupted():
            return self._commit()

    def _commit(self) -> tuple[Listed, Listed]:
        materialised, explicit = self.state.materialised, self.state.explicit
        lost, gained = (self.overdeleted - self.added).listed(), (self.added - materialised).listed()
        for dataset, bit, gone, come in (
            (materialised, MATERIALISED, lost, gained),
            (explicit, EXPLICIT, self.deleted, self.inserted),
        ):
            for name in list(gone.names):
                rows = gone.rows(name)
                self.state.tables[name].clear_bits(rows, bit)
                dataset.sizes[name] -= len(rows)
            for name in list(come.names):
                rows = come.rows(name)
                self.state.tables[name].set_bits(rows, bit)
                dataset.sizes[name] += len(rows)
        self._journal.entries.clear()
        return lost, gained

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Undoes what was not committed, and frees the bits of all working sets."""
        with uninterrupted():
            self._journal.undo()
            for working in self._sets:
                working.clear()
