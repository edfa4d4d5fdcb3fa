"""The tables of a state as readers capture them, for tests of what is frozen over them."""

from __future__ import annotations

from collections.abc import Mapping

from evermat.columns.storage.frozen_table import FrozenTable
from evermat.columns.storage.table import Table


class FrozenTables:
    """The tables of a state with their schemes, captured while no update is committed; see `scheme.Freeze`."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._known: dict[int, FrozenTable] = {}
        self.by_name = {name: self(table) for name, table in tables.items()}

    def __call__(self, table: Table) -> FrozenTable:
        known = self._known.get(id(table))
        if known is None:
            known = self._known[id(table)] = FrozenTable(table)
            table.latch.shared = True  # as when a version is pinned
            known.state = known.state.copy()  # for commits do not know of it
            if table.scheme is not None:
                known.scheme = table.scheme.frozen(known, self)
        return known
