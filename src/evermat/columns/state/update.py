"""One update of the in-memory state: working sets, counters with a journal, commit and rollback.

Nothing that outlives the update is changed before `commit`, except counters, whose changes are journaled: an update that is left
without commit is rolled back. Working sets are bits of the state word and lists of rows, so that an update costs what
it touches: no table is ever scanned for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from evermat.columns.schemes.interval_scheme import ClosedPairs
from evermat.columns.state.state import State
from evermat.columns.state.stratum import StratumRules
from evermat.columns.state.views import Listed, View
from evermat.columns.state.working_sets import ChangedRows, ChangeSet, EmptySet, JournaledCounter, WorkingSet
from evermat.columns.storage.arrays import NO_ROWS, Rows
from evermat.columns.storage.table import ADDED, DELETED, FREE, NORMAL
from evermat.core import uninterrupted
from evermat.engine import BaseUpdate, Run

if TYPE_CHECKING:
    from evermat.columns.equality.equality_update import EqualityUpdate


class Update(BaseUpdate[State, StratumRules, ChangeSet, Listed]):
    """One update in memory: working sets are bits of the state word, of which there are few.

    >>> with Update(state, run, deleted, inserted) as update:       # doctest: +SKIP
    ...     …                                                       # an algorithm fills D and A
    ...     update.commit(*update.result())
    """

    given_deleted: ChangedRows
    given_inserted: ChangedRows
    before: View
    explicit_before: View

    def __init__(
        self, state: State, run: Run, deleted: Mapping[str, list[Rows]], inserted: Mapping[str, list[Rows]]
    ) -> None:
        super().__init__(state, run)
        state.leave_out_dead_rows()
        self._free = [*([NORMAL] if state.representatives is None else []), *FREE]
        self._kept: list[ClosedPairs] = []
        self.overdeleted = ChangeSet("D", DELETED, state.tables, run)
        self.added = ChangeSet("A", ADDED, state.tables, run)
        self._sets: list[WorkingSet] = [self.overdeleted, self.added]
        self.nonrecursive_counter = JournaledCounter(state.nonrecursive_counter, self.journal, run)
        self.recursive_counter = JournaledCounter(state.recursive_counter, self.journal, run)
        new, old = Listed(state.tables, inserted), Listed(state.tables, deleted)
        self.given_deleted = ChangedRows.of((old & state.given) - new)
        self.given_inserted = ChangedRows.of(new - state.given)
        self.deleted, self.inserted = ChangedRows.of(self.given_deleted), ChangedRows.of(self.given_inserted)
        self.axioms: View = state.explicit - self.deleted
        self.nothing = EmptySet(state.materialised)
        self.doubtful: View = self.nothing
        if state.representatives is not None:
            state.explicit.firsts.clear()
            state.materialised.firsts.clear()

    def new(self, name: str) -> WorkingSet:
        made = WorkingSet(name, self._free.pop(), self.state.tables, self.run)
        self._sets.append(made)
        return made

    def keep(self, pairs: ClosedPairs) -> None:
        """Keeps the present version of a closure until the update is over."""
        if pairs not in self._kept:
            pairs.begin()
            self._kept.append(pairs)

    def release(self, *sets: WorkingSet) -> None:
        for done in sets:
            done.clear()
            self._sets.remove(done)
            self._free.append(done.bit)

    def _savepoint(self) -> Callable[[], None]:
        self._settle_counters()
        sets = len(self._sets)

        def undo() -> None:
            self.release(*self._sets[sets:])
            self._settle_counters()

        return undo

    def _settle_counters(self) -> None:
        self.nonrecursive_counter.settle()
        self.recursive_counter.settle()

    def note_place(self) -> int:
        """A position in the journal, at which no row is marked."""
        self._settle_counters()
        return super().note_place()

    def equality(self, stratum: StratumRules) -> EqualityUpdate:
        from evermat.columns.equality.equality_update import EqualityUpdate  # noqa: PLC0415  (it is made of working sets)

        return EqualityUpdate(self, stratum)

    @property
    def counted_names(self) -> set[str]:
        """The relations whose counters were touched."""
        touched = {id(counted) for counted, _, _ in self.journal.entries}
        kinds = (self.state.nonrecursive_counter.counters, self.state.recursive_counter.counters)
        return {name for counters in kinds for name, one in counters.items() if id(one) in touched}

    def counted(self, name: str) -> Rows:
        """The rows of a relation whose counters were touched."""
        own = (self.state.nonrecursive_counter.counters[name], self.state.recursive_counter.counters[name])
        touched = [rows for counted, rows, _ in self.journal.entries if counted in own]
        return np.unique(np.concatenate(touched)) if touched else NO_ROWS

    def commit(
        self,
        lost: Listed,
        gained: Listed,
        counted: Mapping[str, int] | None = None,
        write: Callable[[], None] = lambda: None,
    ) -> None:
        """Changes I, E, counters and names for good, given the `result`.

        Args:
            lost: the facts that I loses.
            gained: those that it gains.
            counted: how many expanded facts relations have more then, if that is known.
            write: makes the update durable. What can fail, as memory may be short, is done ahead of it.
        """
        changes = [
            (dataset, {name: old.rows(name) for name in old.names}, {name: new.rows(name) for name in new.names})
            for dataset, old, new in self.changes(lost, gained)
        ]
        changed = {name for _, deleted, inserted in changes for name in (*deleted, *inserted)}
        with self.state.latch.lock:
            self.state.leave_to_readers(changed)
        write()
        with uninterrupted(), self.state.latch.lock:
            self.state.leave_to_readers(changed)  # to those who have come meanwhile
            for dataset, deleted, inserted in changes:
                for name, rows in deleted.items():
                    dataset.remove(name, rows)
                for name, rows in inserted.items():
                    self.state.tables[name].set_bits(rows, dataset.bit)
                    dataset.sizes[name] += len(rows)
            if self.state.representatives is not None:
                self.state.representatives.commit(counted)
            for pairs in self._kept:
                pairs.settle()
            # What readers see does not change from here on.
            for pairs in self._kept:
                pairs.end(keep=True)
            self._settle_counters()
            self.journal.entries.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Undoes what was not committed, and frees the bits of all working sets."""
        with uninterrupted():
            self.roll_back()
            for pairs in self._kept:
                pairs.end(keep=False)  # unless it was committed
            for working in self._sets:
                working.clear()
