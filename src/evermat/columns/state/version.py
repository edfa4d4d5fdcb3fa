"""One version of the facts of a state, for readers: whatever updates follow, it stays as it is.

Rows never move or change, and the bits of E and I change in the commit of an update only. So a version need not copy anything: it refers to the
arrays of tables. A relation is captured when it is first read, perhaps in the middle of an update, whose new rows are not in I. The writer, ahead
of changing bits for good, captures for all versions that readers hold what it is about to change, and leaves them the arrays of states that it
changes: it goes on with copies, of two bytes a row. Without readers nothing is copied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evermat.columns.state.datasets import Dataset
from evermat.columns.storage.frozen_table import FrozenTable
from evermat.columns.storage.table import EXPLICIT, MATERIALISED, NORMAL, Table

if TYPE_CHECKING:
    from evermat.columns.state.state import State


class FrozenTables(Mapping[str, FrozenTable]):
    """The tables of a version, captured when they are first asked for."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._captured: dict[str, FrozenTable] = {}
        self._names: dict[int, str] = {}
        self.explicit_sizes: dict[str, int] = {}
        self.given_sizes: dict[str, int] = {}
        self.materialised_sizes: dict[str, int] = {}

    def __getitem__(self, name: str) -> FrozenTable:
        found = self._captured.get(name)
        if found is None:
            with self._state.latch.lock:
                found = self.capture(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._state.tables)

    def __len__(self) -> int:
        return len(self._state.tables)

    def __contains__(self, name: object) -> bool:
        return name in self._state.tables

    def capture(self, name: str) -> FrozenTable:
        """Captures a table, unless that was done; the caller holds the latch."""
        found = self._captured.get(name)
        if found is None:
            state, table = self._state, self._state.tables[name]
            found = FrozenTable(table)
            if table.scheme is not None:
                found.scheme = table.scheme.frozen(found, self._freeze)
            self.explicit_sizes[name] = state.explicit.sizes[name]
            self.given_sizes[name] = state.given.sizes[name]
            self.materialised_sizes[name] = state.materialised.sizes[name]
            self._captured[name] = found  # last: others look for it without the latch
        return found

    def _freeze(self, table: Table) -> FrozenTable:
        """The frozen table of a relation, or the present rows of a table that a scheme has for itself; the caller holds the latch."""
        if not self._names:
            self._names = {id(one): name for name, one in self._state.tables.items()}
        name = self._names.get(id(table))
        return FrozenTable(table) if name is None else self.capture(name)

    def refer_to(self, table: Table, name: str) -> bool:
        """Whether the states of a table are those that were captured; the caller holds the latch."""
        found = self._captured.get(name)
        return found is not None and found.state is table.state


class _FrozenSet(Dataset):
    """E or I of a version: its sizes are known when a table is captured."""

    def __init__(self, name: str, bit: int, tables: FrozenTables, sizes: dict[str, int]) -> None:
        self.name, self.bit, self.tables, self.sizes = name, bit, tables, sizes


class Version:
    """The facts of a state as they were after an update; see the module.

    It has what a state has for readers, and refers to the state, which does not refer to it.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self.program, self.dictionary = state.program, state.dictionary
        self.tables = tables = FrozenTables(state)
        self.materialised = _FrozenSet("I", MATERIALISED, tables, tables.materialised_sizes)
        self._representatives: Any = None

    @cached_property
    def given(self) -> Dataset:
        """The explicit facts as asserted."""
        return _FrozenSet("E", EXPLICIT, self.tables, self.tables.given_sizes)

    @cached_property
    def explicit(self) -> Dataset:
        """E, in normal form where equal terms are represented by one."""
        if self._state.explicit is self._state.given:
            return self.given
        return _FrozenSet("E", NORMAL, self.tables, self.tables.explicit_sizes)

    @property
    def representatives(self) -> Any:
        """π of this version, and what depends on it; None where every term represents itself."""
        if self._representatives is None and self._state.representatives is not None:
            with self._state.latch.lock:
                self._capture_representatives()
        return self._representatives

    def _capture_representatives(self) -> None:
        names = self._state.representatives
        if self._representatives is None and names is not None:
            self._representatives = names.frozen()

    def count_facts_of(self, name: str) -> int:
        """Number of facts of a relation, expanded to all names."""
        names = self.representatives
        return self.materialised.count(name) if names is None else int(names.count(self.materialised, name))

    def capture(self, changed: Collection[str]) -> None:
        """Captures relations that are about to change, and all that may change with them; the caller holds the latch."""
        self._capture_representatives()
        state = self._state
        for name, table in state.tables.items():
            if name in changed or table.scheme is not None:
                self.tables.capture(name)
