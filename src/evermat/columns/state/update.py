"""One update of the in-memory state: working sets, counters with a journal, commit and rollback.

Nothing that outlives the update is changed before `commit`, except counters, whose changes are journaled: an update that is left
without commit is rolled back. Working sets are bits of the state word and lists of rows, so that an update costs what
it touches: no table is ever scanned for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evermat.algebra import TooManyInstancesError
from evermat.columns.evaluation.operators import Sink
from evermat.columns.evaluation.rules import Bag
from evermat.columns.schemes.interval_scheme import ClosedPairs
from evermat.columns.state.state import CountedSet, GrowingSet, State
from evermat.columns.state.stratum import StratumRules
from evermat.columns.state.views import NO_ROWS, Dataset, Listed, Restricted, View, listed
from evermat.columns.storage.counter import Counter as RowCounter
from evermat.columns.storage.counter import Touched
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import ADDED, DELETED, FREE, NORMAL, Batch, Rows, Table
from evermat.core import uninterrupted
from evermat.engine.journal import Journal, Journaled
from evermat.engine.run import Run
from evermat.language import Stratum

Weights = npt.NDArray[np.int64]


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

    def add(self, facts: View | Bag | Counting) -> Listed:
        """Adds facts and hands back the new ones."""
        new: dict[str, list[Rows]] = {}
        touch = facts.start(self) if isinstance(facts, Counting) else None
        source = facts.facts if isinstance(facts, Counting) else facts
        if isinstance(source, Bag):
            source.read({name: self._sink(name, new, touch) for name in source.heads}, counted=touch is not None)
        else:
            for name in list(source.names):
                rows = source.rows(name)
                self._claim(name, rows if touch is None else touch.rows(name, rows), new)
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
        self.drop(list(self._lists))

    def discard(self, facts: View) -> None:
        """Holds some facts no more."""
        for name in list(facts.names):
            held = self.rows(name)
            gone = facts.mask(name, held)
            if gone.any():
                self.put(name, held[~gone])

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

    def _sink(self, name: str, new: dict[str, list[Rows]], touch: Touch | None) -> Sink:
        table, run = self.tables[name], self._run

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            rows = table.locate(batch, n) if touch is None else touch.tuples(name, batch, n, weights)
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


class Nothing(Restricted):
    """A set that stays empty."""

    def __init__(self, view: View) -> None:
        super().__init__(view, frozenset())

    def add(self, facts: View | Bag | Counting) -> Listed:
        """There is nothing to add."""
        source = facts.facts if isinstance(facts, Counting) else facts
        assert not source
        return Listed(self.tables, {})

    def replace(self, facts: View) -> bool:
        """It stays empty."""
        assert not facts
        return False

    def clear(self) -> None:
        """It is empty."""


class ChangedRows(Listed):
    """Facts that come or go: few, and only ever listed or compared with others."""

    @classmethod
    def of(cls, facts: View) -> ChangedRows:
        """The facts of a view, each once."""
        return cls(facts.tables, {name: [np.unique(facts.rows(name))] for name in list(facts.names)})

    def put(self, name: str, rows: Rows) -> None:
        """Holds exactly these facts of a relation from now on."""
        self._found.pop(name, None)
        if len(rows):
            self._found[name] = [rows]


@dataclass(frozen=True, slots=True)
class Counting:
    """Facts that are counted up or down when they are added to a set."""

    counter: JournaledCounter
    facts: View | Bag
    sign: int

    def start(self, target: WorkingSet) -> Touch:
        """Begins to count for a set."""
        return Touch(self.counter, target, self.sign)


class Touch:
    """Counts what is added to a set, and hands back the rows that have to be added."""

    def __init__(self, counter: JournaledCounter, target: WorkingSet, sign: int) -> None:
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
        self._target: WorkingSet | None = None
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

    def start(self, target: WorkingSet, sign: int) -> None:
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


class Update(Journaled):
    """One update: E⁻ and E⁺ cleaned of what changes nothing, the sets D and A, and whatever else an algorithm needs.

    >>> with Update(state, run, deleted, inserted) as update:       # doctest: +SKIP
    ...     …                                                       # an algorithm fills D and A
    ...     update.commit()
    """

    state: State

    def __init__(
        self, state: State, run: Run, deleted: Mapping[str, list[Rows]], inserted: Mapping[str, list[Rows]]
    ) -> None:
        self.state, self.run = state, run
        state.jobs.run = run
        self._free = [*([NORMAL] if state.representatives is None else []), *FREE]
        self._sets: list[WorkingSet] = []
        self.journal = Journal()
        self._kept: list[ClosedPairs] = []
        self.overdeleted = ChangeSet("D", DELETED, state.tables, run)
        self.added = ChangeSet("A", ADDED, state.tables, run)
        self._sets += [self.overdeleted, self.added]
        self.nonrecursive_counter = JournaledCounter(state.nonrecursive_counter, self.journal, run)
        self.recursive_counter = JournaledCounter(state.recursive_counter, self.journal, run)
        self.figures: dict[str, int] = dict.fromkeys(("overdeleted", "rederived", "checked", "proved"), 0)
        coming, going = Listed(state.tables, inserted), Listed(state.tables, deleted)
        # What changes in the facts as they were given. Where equal terms are represented by one, E⁻ and E⁺ become changes of normal
        # forms as soon as the equalities are known.
        self.given_deleted = ChangedRows.of((going & state.given) - coming)
        self.given_inserted = ChangedRows.of(coming - state.given)
        self.deleted, self.inserted = ChangedRows.of(self.given_deleted), ChangedRows.of(self.given_inserted)
        self.before: View = state.materialised
        self.explicit_before: View = state.explicit
        self.axioms: View = state.explicit - self.deleted
        self.nothing = Nothing(state.materialised)
        self.doubtful: View = self.nothing
        self.renewed: set[Stratum] = set()  # strata whose rules mention terms that have other representatives now
        if state.representatives is not None:
            state.representatives.renaming.remember()
            state.explicit.firsts.clear()
            state.materialised.firsts.clear()

    def new(self, name: str) -> WorkingSet:
        """A working set, empty."""
        made = WorkingSet(name, self._free.pop(), self.state.tables, self.run)
        self._sets.append(made)
        return made

    def keep(self, pairs: ClosedPairs) -> None:
        """Keeps the version of a closure that there is, until the update is over."""
        if pairs not in self._kept:
            pairs.begin()
            self._kept.append(pairs)

    def release(self, *sets: WorkingSet) -> None:
        """Working sets that are needed no more."""
        for done in sets:
            done.clear()
            self._sets.remove(done)
            self._free.append(done.bit)

    @contextmanager
    def attempt(self, stratum: Stratum, most: int) -> Iterator[None]:
        """Work on a stratum that is undone when it considers more instances; see the algebra."""
        counters = (self.nonrecursive_counter, self.recursive_counter)
        for counter in counters:
            counter.settle()
        sets, entries, figures = len(self._sets), len(self.journal.entries), dict(self.figures)
        try:
            with self.run.limited(most):
                yield
        except TooManyInstancesError:
            self.release(*self._sets[sets:])
            self.overdeleted.drop(stratum.relations)
            self.added.drop(stratum.relations)
            self.journal.undo(entries)
            self.state.refresh_rules()
            for counter in counters:
                counter.settle()
            self.figures = figures
            raise

    def strata(self) -> Iterator[StratumRules]:
        """The strata in order; takes note of each."""
        return self.run.strata(self.state)

    def note_place(self) -> int:
        """A place in the journal, at which no row is marked."""
        self.nonrecursive_counter.settle()
        self.recursive_counter.settle()
        return super().note_place()

    def equality(self, stratum: StratumRules) -> Any:
        """A stratum with equality in this update."""
        from evermat.columns.equality.equality_update import EqualityUpdate  # noqa: PLC0415  (it is made of working sets)

        return EqualityUpdate(self, stratum)

    def settle_equality(self) -> None:
        """The equalities are known: strata above may follow."""
        if self.state.representatives is not None:
            self.state.representatives.settle_update(self)

    def next_round(self) -> None:
        """A round begins; raises `LimitError` if a limit is reached."""
        self.run.next_round()

    def check_facts(self) -> None:
        """Raises `LimitError` if there are more facts than may be."""
        self.run.check_facts()

    @property
    def outgrown(self) -> bool:
        """An update ends where it began."""
        return False

    def result(self) -> tuple[Listed, Listed]:
        """The facts that I loses and gains when the update is committed."""
        return (self.overdeleted - self.added).listed(), (self.added - self.state.materialised).listed()

    def counted(self, name: str) -> Rows:
        """The rows of a relation whose counters were touched."""
        own = (self.state.nonrecursive_counter.counters[name], self.state.recursive_counter.counters[name])
        touched = [rows for counted, rows, _ in self.journal.entries if counted in own]
        return np.unique(np.concatenate(touched)) if touched else NO_ROWS

    def commit(self, lost: Listed, gained: Listed) -> None:
        """I := (I ∖ D) ∪ A, E := (E ∖ E⁻) ∪ E⁺, given the `result`."""
        with uninterrupted():
            self._commit(lost, gained)

    def _commit(self, lost: Listed, gained: Listed) -> None:
        state = self.state
        changes: list[tuple[GrowingSet, View, View]] = [(state.materialised, lost, gained)]
        changes.append((state.given, self.given_deleted, self.given_inserted))
        if state.explicit is not state.given:
            changes.append((state.explicit, self.deleted, self.inserted))
        for dataset, gone, come in changes:
            for name in list(gone.names):
                dataset.remove(name, gone.rows(name))
            for name in list(come.names):
                rows = come.rows(name)
                state.tables[name].set_bits(rows, dataset.bit)
                dataset.sizes[name] += len(rows)
        for pairs in self._kept:
            pairs.end(keep=True)
        self.nonrecursive_counter.settle()
        self.recursive_counter.settle()
        self.journal.entries.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Undoes what was not committed, and frees the bits of all working sets."""
        with uninterrupted():
            if self.journal.entries:
                self.journal.undo()
                self.state.refresh_rules()
            for pairs in self._kept:
                pairs.end(keep=False)  # unless it was committed
            for working in self._sets:
                working.clear()
