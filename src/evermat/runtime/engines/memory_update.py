"""One update of the in-memory engine: from facts as users have them to rows, and from rows to what users see has changed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from threading import RLock
from types import TracebackType
from typing import Any, final

import numpy as np

from evermat.algebra import Counters
from evermat.columns import (
    GAINED,
    LOST,
    Batch,
    ChangedRows,
    DeferredFacts,
    ExpandedChange,
    Listed,
    Rows,
    State,
    Update,
    View,
    decode_rows,
    encode_rows,
    evaluate,
    existing_rows,
    rows_of,
    rows_without,
)
from evermat.columns import saved_facts as saved
from evermat.core import collected_errors
from evermat.engine import Run
from evermat.language import Query, Row, Stratum
from evermat.runtime.change import ListedChange
from evermat.runtime.engine import Changed, Described, EngineUpdate
from evermat.runtime.facts.ingest import encode_given
from evermat.runtime.rows import decoded_rows


@final
class MemoryUpdate(EngineUpdate):
    """One update of the in-memory engine."""

    sets: Update
    _state: State

    def __init__(
        self, state: State, run: Run, changes: Changed, upcoming: Changed, before: State | None, *, durable: bool
    ) -> None:
        super().__init__(state, run, before)
        self._durable = durable
        state.begin_update()
        try:
            self._read(changes, upcoming, before)
        except BaseException:
            state.latch.end()
            raise
        self._expanded: PendingChange | None = None

    def _read(self, changes: Changed, upcoming: Changed, before: State | None) -> None:
        """Reads the facts that are to be inserted and deleted."""
        state = self._state
        for one in (state, before):
            if one is not None and one.representatives is not None and (pending := one.representatives.pending()):
                pending.settle()
        if state.representatives is not None and self._durable:
            for name in state.program.relations:
                state.count_facts_of(name)  # before any term has another representative than now
        self._inserted, self._deleted = _rows_of_changes(state, changes)
        if state.representatives is not None:
            known = {} if before is None else {name: [state.given.rows(name)] for name in state.tables}
            named = {name: [*known.get(name, ()), *rows] for name, rows in {**known, **self._inserted}.items()}
            self._inserted |= state.representatives.names_of(named, () if before is None else state.program.rules)
        self.deleted_next = self._look_ahead(upcoming)

    def _begin(self) -> Update:
        try:
            return Update(self._state, self._run, self._deleted, self._inserted)
        except BaseException:
            self._state.latch.end()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._state.latch.end()

    def _deleted_by(self, changes: Changed) -> Listed:
        _, deleted = _rows_of_changes(self._state, changes, existing=True)
        return ChangedRows.of(Listed(self._state.tables, deleted))

    def conclude(self) -> None:
        self._result = self.sets.result()
        if self._state.representatives is not None:
            self._expanded = PendingChange(self._state, *self._result)

    def inserted_rows(self, name: str) -> Iterable[tuple[Any, ...]]:
        state, rows = self._state, self._result[1].rows(name)
        return decode_rows(state.tables[name].take(rows), state.program.relations[name].types, state.dictionary)

    def evaluate(self, query: Query) -> Iterable[tuple[Any, ...]]:
        state = self._state
        after = (state.materialised - self.sets.overdeleted) | self.sets.added
        found = evaluate(query, state, after, self._run)
        assert found.dictionary is not None
        return decoded_rows(rows_of(found.table), query.answer.types, found.dictionary)

    @property
    def changes(self) -> tuple[ListedChange, ListedChange]:
        if self._expanded is not None:
            return self._expanded.side(0), self._expanded.side(1)
        deleted, inserted = self._result
        return _listed_change(self._state, deleted, LOST), _listed_change(self._state, inserted, GAINED)

    def describe(self, counters: Mapping[str, Counters], whole: Collection[str]) -> Described:
        described = {}
        changed = saved.changed_names(self.sets, self._result) | set(whole)
        for name in (name for name in counters if name in changed):
            rows = saved.changed_rows(self.sets, name, self._result, counters[name], whole=name in whole)
            if rows is not None:
                described[name] = [rows]
        return described

    def commit(self, valid: Mapping[Stratum, Counters], write: Callable[[], None]) -> None:
        state, expanded = self._state, self._expanded
        counted = expanded.counts() if expanded is not None and self._durable else None
        self.sets.commit(*self._result, counted, write)
        for stratum, counters in valid.items():
            state.record_counters(stratum, counters)
        if state.representatives is not None and expanded is not None:
            expanded.commit()
            state.representatives.pending = weakref.ref(expanded)


def _listed_change(state: State, facts: View, kind: int) -> ListedChange:
    """The facts of a view; of relations with a storage scheme those of a kind.

    Rows are copied now: a later update may reuse them. The pairs of a closure are listed when they are read.
    """
    tables = state.tables
    batches: dict[str, Batch | DeferredFacts] = {
        name: tables[name].take(facts.rows(name)) for name in facts.names if tables[name].scheme is None
    }
    batches |= {name: table.scheme.changed(kind) for name, table in tables.items() if table.scheme is not None}
    return ListedChange(lambda: batches, {name: table.arity for name, table in tables.items()})


@final
class PendingChange:
    """What an update changes in expanded facts, listed when it is read, at the latest before the next update: by one thread, the others wait."""

    def __init__(self, state: State, deleted: Listed, inserted: Listed) -> None:
        assert state.representatives is not None
        self.names = [name for name, relation in state.program.relations.items() if not relation.hidden]
        self._change: ExpandedChange | None = ExpandedChange(
            state.representatives.rewritten, state.materialised, deleted, inserted
        )
        self._found: dict[str, tuple[Batch, Batch]] = {}
        self._arities = {name: table.arity for name, table in state.tables.items()}
        self._lock = RLock()  # a handler of a signal may read what its thread is listing

    def commit(self) -> None:
        if self._change is not None:
            self._change.commit()

    def settle(self) -> None:
        """Lists the facts, if they are not listed yet."""
        with self._lock:
            if (change := self._change) is not None:
                found = {name: change.of(name) for name in self.names}
                if self._change is not None:
                    self._found, self._change = found, None

    def counts(self) -> dict[str, int]:
        """How many facts relations have more."""
        deleted, inserted = self.side(0), self.side(1)
        return {name: inserted.count(name) - deleted.count(name) for name in self.names}

    def side(self, number: int) -> ListedChange:
        """The facts that are deleted (0) or inserted (1)."""

        def batches() -> dict[str, Batch]:
            self.settle()
            return {name: sides[number] for name, sides in self._found.items()}

        return ListedChange(batches, self._arities)


def _rows_of_changes(
    state: State, changes: Changed, *, existing: bool = False
) -> tuple[dict[str, list[Rows]], dict[str, list[Rows]]]:
    """The rows that updates, one after the other, insert and delete in the end: of each fact the last of them decides.

    With `existing` only rows that there are already.
    """
    inserted: dict[str, list[Rows]] = {}
    deleted: dict[str, list[Rows]] = {}
    with collected_errors() as collecting:
        for update in changes:
            with collecting():
                new = _rows_of(state, [insert for insert, _ in update], existing=existing)
                old = _rows_of(state, [delete for _, delete in update], existing=True, deleted=True)
                for mine, others, rows in ((deleted, inserted, old), (inserted, deleted, new)):  # insertions win
                    for name, found in rows.items():
                        if name in others:
                            kept, size = np.concatenate(others[name]), state.tables[name].count
                            others[name] = [rows_without(kept, np.concatenate(found), size)]
                        mine.setdefault(name, []).extend(found)
    return inserted, deleted


def _rows_of(
    state: State, given: list[Mapping[str, Any]], *, existing: bool, deleted: bool = False
) -> dict[str, list[Rows]]:
    """The rows of facts; with `existing` only of known ones, else new ones get a row, in no set yet."""
    found: dict[str, list[Rows]] = {}
    batches: list[tuple[str, Batch]] = []
    with collected_errors() as collecting:
        for facts in given:
            for name, rows in facts.items():
                with collecting():
                    stored = partial(_is_known, state, name) if deleted else None
                    batches.append((name, encode_given(name, rows, state.program, state.dictionary, stored)))
    for name, batch in batches:
        table = state.tables[name]
        located = table.find(batch) if existing else table.locate(batch)
        found.setdefault(name, []).append(existing_rows(located))
    return found


def _is_known(state: State, name: str, fact: Row) -> bool:
    """Whether a relation has, or had, a fact; symbols of others are not added to the dictionary."""
    if any(isinstance(value, str) and state.dictionary.lookup(value) < 0 for value in fact):
        return False
    batch = encode_rows([fact], state.program.relations[name].types, state.dictionary)
    return bool(state.tables[name].find(batch)[0] >= 0)
