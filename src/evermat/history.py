"""The change feed of a state directory: what a range of versions changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from evermat.durable import load
from evermat.errors import STATE_UNREADABLE, Problem, StateError
from evermat.materialisation import Facts
from evermat.program.equality import CLASSES
from evermat.store import Store
from evermat.store.names import NONRECURSIVE, OP, ORIGIN, RECURSIVE, VERSION


def changes_between(path: Path, first: int | None, last: int | None) -> dict[str, pa.Table]:
    """What versions changed, by relation; hidden relations are left out."""
    with Store.open(path) as store:
        kept = [version.number for version in store.versions()]
        first = kept[0] if first is None else first
        last = kept[-1] if last is None else last
        found: dict[str, list[pa.Table]] = {}
        for number, name, rows in _told(store, first, last):
            if name not in store.version(number).counters["hidden"]:
                shown = rows.drop_columns([c for c in (ORIGIN, NONRECURSIVE, RECURSIVE) if c in rows.column_names])
                of_version = pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows)
                found.setdefault(name, []).append(_plain(shown).append_column(VERSION, of_version))
        return {name: _joined(path, name, tables) for name, tables in found.items()}


def _told(store: Store, first: int, last: int) -> Iterator[tuple[int, str, pa.Table]]:
    """What is stored of changes; where equal terms are represented by one, what that means in all names."""
    stored = list(store.changes(first, last))
    named: dict[int, bool] = {}
    for number, name, rows in stored:
        if number not in named:
            named[number] = CLASSES.name in store.version(number).counters["hidden"]
        if not named[number]:
            yield number, name, rows
    for number in sorted(number for number, is_named in named.items() if is_named):
        yield from ((number, name, rows) for name, rows in _named_changes(store, number))


def _named_changes(store: Store, number: int) -> Iterator[tuple[str, pa.Table]]:
    """What a version changed, in all names: the difference to the version before it."""
    after = _facts(store, number)
    before = _facts(store, number - 1) if number > 1 else {}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        tables = []
        for some, others, op in ((new, old, "+"), (old, new, "-")):
            if some is None:
                continue
            keys = some.column_names
            if others is not None and others.schema.types == some.schema.types and keys:
                some = some.join(others.rename_columns(keys), keys, join_type="left anti")  # noqa: PLW2901
            elif others is not None and not keys:
                some = some.slice(0, max(0, some.num_rows - others.num_rows))  # noqa: PLW2901
            told = pa.repeat(pa.scalar(op), some.num_rows)
            tables.append(some.select(keys).append_column(OP, told))
        rows = pa.concat_tables(tables)
        if rows.num_rows:
            yield name, rows


def _facts(store: Store, number: int) -> dict[str, pa.Table]:
    """The facts of a version by relation, in all names."""
    state = load(store, number)
    return {
        name: Facts(relation, state).to_arrow()
        for name, relation in state.program.relations.items()
        if not relation.hidden
    }


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
