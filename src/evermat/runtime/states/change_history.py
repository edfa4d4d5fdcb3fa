"""The change feed of a state directory: what a range of versions changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter

import pyarrow as pa

from evermat.columns import State, facts_gained
from evermat.core import Problem, StateError
from evermat.core import error_catalogue as errors
from evermat.engine import Run
from evermat.language import EQUALITY_CLASSES
from evermat.runtime.engines.memory_engine import restored
from evermat.runtime.pin import Pin
from evermat.runtime.relation import Relation
from evermat.runtime.states.saved_version import SavedVersion, rows_of_table
from evermat.store import NONRECURSIVE, OP, ORIGIN, RECURSIVE, VERSION, Location, VersionReader, read_state


def changes_between(path: Location, first: int | None, last: int | None) -> dict[str, pa.Table]:
    """What versions changed, by relation; hidden relations are left out."""

    def read(store: VersionReader) -> dict[str, pa.Table]:
        kept = [version.number for version in store.versions()]
        begin = _first_known(store, kept) if first is None else first
        end = kept[-1] if last is None else last
        found: dict[str, list[pa.Table]] = {}
        for number, name, rows in sorted(_stored_changes(store, begin, end), key=itemgetter(0)):
            if name not in SavedVersion(store, number).hidden:
                shown = rows.drop_columns([c for c in (ORIGIN, NONRECURSIVE, RECURSIVE) if c in rows.column_names])
                of_version = pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows)
                found.setdefault(name, []).append(plain_rows(shown).append_column(VERSION, of_version))
        return {name: _joined(path, name, tables) for name, tables in found.items()}

    return read_state(path, read)


def _first_known(store: VersionReader, kept: list[int]) -> int:
    """The first version whose changes are known: in a state of an older format, not always those of the first one that is kept."""
    first = SavedVersion(store, kept[0])
    is_named = EQUALITY_CLASSES.name in first.hidden
    known = kept[0] == 1 or store.has(kept[0] - 1) or not (is_named or first.stored_by_schemes)
    return kept[0] if known or len(kept) == 1 else kept[1]


def _stored_changes(store: VersionReader, first: int, last: int) -> Iterator[tuple[int, str, pa.Table]]:
    """The changes that versions made, with the relation of each; expanded to all equal terms where those have a representative.

    A relation with a storage scheme is stored by its inputs: its changes are the difference of two versions.
    """
    stored = list(store.changes(first, last))
    named: dict[int, bool] = {}
    compact: dict[int, set[str]] = {}
    for number, name, rows in stored:
        if number not in named:
            named[number] = EQUALITY_CLASSES.name in SavedVersion(store, number).hidden
            compact[number] = _compact(store, number)
        if not named[number] and name not in compact[number]:
            yield number, name, rows
    for number, names in compact.items():
        if names and not named[number]:
            yield from ((number, name, rows) for name, rows in _compact_changes(store, number, names))
    for number in sorted(number for number, is_named in named.items() if is_named):
        yield from ((number, name, rows) for name, rows in _named_changes(store, number))


def _compact(store: VersionReader, number: int) -> set[str]:
    """The relations that have a storage scheme in a version or in the one before it."""
    stored = SavedVersion(store, number).stored_by_schemes
    return stored | (SavedVersion(store, number - 1, before=True).stored_by_schemes if store.has(number - 1) else set())


def _compact_changes(store: VersionReader, number: int, names: set[str]) -> Iterator[tuple[str, pa.Table]]:
    """The changes that a version made to relations with a storage scheme; only these become rows."""
    after = _state(store, number)
    before = _before(store, number)
    for name in sorted(names):
        changes = [*_missing_from(before, after, name, "+"), *_missing_from(after, before, name, "-")]
        if changes:
            yield name, pa.concat_tables(plain_rows(table) for table in changes)


def _before(store: VersionReader, number: int) -> State | None:
    """The facts before a version; if the version before it was removed, the stored changes are undone."""
    if store.has(number - 1):
        return _state(store, number - 1)
    if number == 1:
        return None
    if any("rules have changed" in stratum["reason"] for stratum in store.version(number).stats["strata"]):
        why = f"the rules changed with version {number}, and the version before it was removed: ask for later changes"
        raise StateError(Problem(errors.STATE_UNREADABLE, {"file": store.path, "why": why}))
    undone = [(name, rows_of_table(rows)) for _, name, rows in store.changes(number, number)]
    return restored(SavedVersion(store, number), undone=undone).state


def _missing_from(old: State | None, new: State | None, name: str, op: str) -> Iterator[pa.Table]:
    """The facts of a relation that `new` has and `old` does not have."""
    if new is None or name not in new.tables:
        return
    alike = old is not None and name in old.tables
    for rows in facts_gained(old if alike and old is not None else State(new.program, Run()), new, name):
        if rows.num_rows:
            yield rows.append_column(OP, pa.repeat(pa.scalar(op), rows.num_rows))


def _named_changes(store: VersionReader, number: int) -> Iterator[tuple[str, pa.Table]]:
    """The changes that a version made, expanded: the difference to the version before it."""
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
            tables.append(some.select(keys).append_column(OP, pa.repeat(pa.scalar(op), some.num_rows)))
        rows = pa.concat_tables(tables)
        if rows.num_rows:
            yield name, rows


def _facts(store: VersionReader, number: int) -> dict[str, pa.Table]:
    """The expanded facts of a version, by relation."""
    pin = Pin.of(restored(SavedVersion(store, number, before=True)))
    return {name: Relation(name, lambda: pin).to_arrow() for name in pin.names()}


def _state(store: VersionReader, number: int) -> State:
    return restored(SavedVersion(store, number, before=True)).state


def plain_rows(table: pa.Table) -> pa.Table:
    """The table without dictionaries, which differ from version to version, and with numbers as the engine has them."""
    columns = []
    for column in table.columns:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        columns.append(column.cast(pa.uint64() if pa.types.is_decimal(kind) else kind))
    return pa.table(columns, names=table.column_names)


def _joined(path: Location, name: str, tables: list[pa.Table]) -> pa.Table:
    """The changes of all versions; if columns got other names meanwhile, the last ones count."""
    last = tables[-1].schema
    for before, table in pairwise(tables):
        if before.schema.types != table.schema.types:
            version = table[VERSION][0].as_py()
            why = f"`{name}` has other columns since version {version}: ask for the changes until then and from then on"
            raise StateError(Problem(errors.STATE_UNREADABLE, {"file": path, "why": why}))
    return pa.concat_tables(table.rename_columns(last.names) for table in tables)
