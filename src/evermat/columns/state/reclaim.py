"""Reclaims what deleted facts leave behind: rows of tables, edges of closures, symbols, and all that is built over them.

A row is never used again, and a symbol never gets another id: a holder of rows, ids or the whole state (changes, answers, readers, notes of marking)
may rely on both. So nothing is freed in place. A new state is built beside the old one, which stays as it is as long as a caller holds it. It
costs as much as there are facts, and is due when at least as much has died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

import numpy as np

from evermat.columns.state.state import State
from evermat.columns.storage.arrays import Mask, Numbers, Rows
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.table import EXPLICIT, MATERIALISED, NORMAL, Table
from evermat.engine import Run
from evermat.language import Type

#: so many rows may have died in any case, and so many bytes of symbols may not be used
LEAST_ROWS = 1 << 15
LEAST_BYTES = 1 << 21
#: updates after which a state that could not be rebuilt is tried again at the latest
LONGEST_PAUSE = 1 << 10
#: bytes of new symbols for each row that has to be looked at to find those that are used
BYTES_PER_ROW = 8

_KEPT = np.uint16(EXPLICIT | MATERIALISED | NORMAL)


class Waste:
    """How much of a state has died, as far as that can be known without looking at all of it after every update."""

    def __init__(self) -> None:
        self._rows: WeakKeyDictionary[Table, int] = WeakKeyDictionary()  # when their states were looked at last
        self._bytes = 0  # of symbols, likewise
        self._failed = 0  # how often in a row the state could not be rebuilt
        self._pause = 0  # how many updates are not looked at for that

    def begin(self, state: State) -> None:
        """Nothing of a state has died yet."""
        self._rows.clear()
        self._bytes = state.dictionary.nbytes
        self._failed = 0

    def postpone(self) -> None:
        """The state could not be rebuilt: that is tried again after 2 updates, then after 4, 8 …, as it may never succeed."""
        self._failed += 1
        self._pause = min(1 << self._failed, LONGEST_PAUSE)

    def is_due(self, state: State) -> bool:
        """Whether at least as much has died as is alive, of rows, edges or symbols; asked once after each update."""
        if self._pause:
            self._pause -= 1
            return False
        rows, live = state.stored_rows, state.live_rows
        if rows - live > max(LEAST_ROWS, live):
            return True
        return any(map(self._is_mostly_dead, _other_tables(state))) or self._has_unused_symbols(state, rows)

    def _is_mostly_dead(self, table: Table) -> bool:
        looked = self._rows.get(table, 0)
        if table.count < max(LEAST_ROWS, 2 * looked):
            return False
        self._rows[table] = table.count
        return 2 * int(np.count_nonzero(table.state[: table.count])) <= table.count

    def _has_unused_symbols(self, state: State, rows: int) -> bool:
        size = state.dictionary.nbytes
        if size - self._bytes < max(LEAST_BYTES, self._bytes, BYTES_PER_ROW * rows):
            return False
        self._bytes = size
        return 2 * state.dictionary.bytes_of(used_symbols(state)) <= size


def _other_tables(state: State) -> Iterator[Table]:
    """Tables of which rows with state 0 have died: edges of closures, pairs of normal forms and given facts."""
    for rules in state.strata:
        for module in rules.modules:
            yield module.edges.table
    if state.representatives is not None:
        yield from state.representatives.pairs


def used_symbols(state: State) -> Mask:
    """Which symbols occur in facts, by id."""
    used = np.zeros(len(state.dictionary), np.bool_)
    for name in state.program.relations:
        table, columns = state.tables[name], _columns_of_symbols(state, name)
        rows = _live_rows(table) if columns else ()
        for column in columns:
            used[table.rows[rows, column]] = True
    return used


def _columns_of_symbols(state: State, name: str) -> list[int]:
    types = state.program.relations[name].types
    return [column for column, type_ in enumerate(types) if type_ in (Type.SYMBOL, Type.TERM)]


def _live_rows(table: Table) -> Rows:
    return np.flatnonzero(table.state[: table.count] & _KEPT).astype(np.int32)


def bytes_needed(state: State) -> int:
    """About how much memory is taken by building the state again; no less than by what it is built of."""
    share = state.live_rows / max(state.stored_rows, 1)
    return int(share * state.nbytes) + 2 * state.dictionary.nbytes


def rebuilt(state: State, look: Callable[[], None]) -> State:
    """The same facts in tables of their own, with a dictionary of the symbols that occur in them; the old state is only read.

    Explicit facts, counters that are valid and how relations are stored stay as they are; indexes, plans and the graphs of closures are made again
    when they are needed.

    Args:
        state: between two updates.
        look: called from time to time; what it raises ends the work.
    """
    new = State(state.program, Run(), schemes=state.schemes)
    assert not len(new.dictionary)
    ids = _take_symbols(state.dictionary, new.dictionary, used_symbols(state))
    for name in state.program.relations:
        look()
        _take_relation(state, new, name, ids)
    new.count_facts()
    look()
    if new.representatives is not None:
        new.representatives.take_over(new)
        look()
    copied = {text for rules in state.copied_by_schemes.values() for text in rules}
    new.restore_schemes(state.stored_by_schemes, copied)
    new.share_counters(state)
    for mine, others in zip(new.strata, state.strata, strict=True):
        mine.decisions = dict(others.decisions)
    look()
    return new


def let_go(state: State) -> bool:
    """Has an old state freed as soon as no caller holds it; returns whether that takes the collector of cycles."""
    for table in state.tables.values():
        table.forget_indexes()
    return any(rules.unions_stored for rules in state.strata)  # unions and their tables refer to each other


def _take_symbols(old: Dictionary, new: Dictionary, used: Mask) -> Numbers:
    """Encodes the symbols that are used, in their order; returns the new ids by the old ones."""
    ids = np.full(len(old), -1, np.int64)
    kept = np.flatnonzero(used)
    ids[kept] = np.arange(len(kept))
    new.take_over(old, used)
    return ids


def _take_relation(old: State, new: State, name: str, ids: Numbers) -> None:
    """Takes over the facts of a relation that are in E or I, and their counts."""
    before, table = old.tables[name], new.tables[name]
    rows = _live_rows(before)
    # As for a state that is restored: which of the explicit facts are not in I follows from the representatives.
    states = (before.state[rows] & np.uint16(EXPLICIT)) | np.uint16(MATERIALISED)
    facts = before.rows[rows]
    for column in _columns_of_symbols(old, name):
        facts[:, column] = ids[facts[:, column]]
    table.adopt(facts, states, before)
    if not len(rows):
        return
    for counted, counts in (
        (new.nonrecursive_counter, old.nonrecursive_counter),
        (new.recursive_counter, old.recursive_counter),
    ):
        if counts.counters[name].nbytes:
            every = np.arange(len(rows), dtype=np.int32)
            counted.counters[name].restore(every, counts.counters[name].get(rows))
