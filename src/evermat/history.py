"""The change feed of a state directory: what a range of versions changed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from evermat.errors import STATE_UNREADABLE, Problem, StateError
from evermat.store import Store
from evermat.store.names import NONRECURSIVE, ORIGIN, RECURSIVE, VERSION


def changes_between(path: Path, first: int | None, last: int | None) -> dict[str, pa.Table]:
    """What versions changed, by relation; hidden relations are left out."""
    with Store.open(path) as store:
        kept = [version.number for version in store.versions()]
        first = kept[0] if first is None else first
        last = kept[-1] if last is None else last
        found: dict[str, list[pa.Table]] = {}
        for number, name, rows in store.changes(first, last):
            if name not in store.version(number).counters["hidden"]:
                shown = rows.drop_columns([ORIGIN, NONRECURSIVE, RECURSIVE])
                of_version = pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows)
                found.setdefault(name, []).append(_plain(shown).append_column(VERSION, of_version))
        return {name: _joined(path, name, tables) for name, tables in found.items()}


def _plain(table: pa.Table) -> pa.Table:
    """The table without dictionaries, which differ from version to version, and with numbers as the engine has them."""
    columns = []
    for column in table.columns:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        columns.append(column.cast(pa.uint64() if pa.types.is_decimal(kind) else kind))
    return pa.table(columns, names=table.column_names)


def _joined(path: Path, name: str, tables: list[pa.Table]) -> pa.Table:
    """The changes of all versions; if columns got other names meanwhile, the last ones count."""
    last = tables[-1].schema
    for before, table in pairwise(tables):
        if before.schema.types != table.schema.types:
            version = table[VERSION][0].as_py()
            why = f"`{name}` has other columns since version {version}: ask for the changes until then and from then on"
            raise StateError(Problem(STATE_UNREADABLE, {"file": path, "why": why}))
    return pa.concat_tables(table.rename_columns(last.names) for table in tables)
