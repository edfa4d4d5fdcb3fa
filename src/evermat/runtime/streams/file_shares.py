"""The data files of a relation in a version of a state, divided among tasks: none of them reads all facts.

A relation is a base, of which no fact is in two files, and later changes, of each fact of which the last row counts. Tasks share the base; each of
them reads the changes too, to leave out what they have changed, and one task has the facts that the changes have left. Changes are at most about
half as many as the base, or few: then the state gets a new base.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.store import OP, Columns, Location, Part, VersionReader, read_current, stored_columns

_FACT, _LAST = "'fact", "'last"  # no names that a column can have


@dataclass(frozen=True)
class FileShare:
    """What one task reads of a relation in a version.

    Attributes:
        base: The files whose facts it yields, unless the later changes have them; none if it yields what these have left.
        changes: The files of later changes, in their order.
    """

    folder: Location
    columns: Columns
    version: int
    base: tuple[Part, ...]
    changes: tuple[Part, ...] = ()

    def facts(self) -> pa.Table:
        """The facts of the share, by the relation's columns as they are stored."""
        if not self.changes:
            base = self._read(self.base)
            return base.filter(_stays(base)).select(self._names)
        # By fact twice the position of its last row, where 0 is the base, and one more if it stays.
        changes = self._read(self.changes)
        coded = [_coded(changes, 2 * np.arange(1, changes.num_rows + 1))]
        if self.base:
            base = self._read(self.base)
            coded.append(_coded(base, np.zeros(base.num_rows, np.int64)))
        both = pa.concat_tables(coded)
        keys = [name for name in both.column_names if name != _LAST]
        last = both.group_by(keys).aggregate([(_LAST, "max")])
        code = last[f"{_LAST}_max"].to_numpy()
        wanted = code == 1 if self.base else (code > 1) & (code % 2 == 1)
        return last.select(keys).filter(pa.array(wanted)).rename_columns(self._names)

    def changed(self) -> pa.Table:
        """The changes of the version in the files of the base: rows with the relation's columns and the operation."""
        rows = self._read(self.base)
        return rows.filter(pc.not_equal(rows[OP], "=")).select([*self._names, OP])

    @property
    def _names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def _read(self, files: Sequence[Part]) -> pa.Table:
        wanted = [*self._names, OP]
        tables = [read_current(self.folder, part, self.columns, self.version).select(wanted) for part in files]
        return pa.concat_tables(_without_dictionaries(table) for table in tables)


def _without_dictionaries(rows: pa.Table) -> pa.Table:
    kinds = [column.type.value_type if pa.types.is_dictionary(column.type) else column.type for column in rows.columns]
    columns = [column.cast(kind) for column, kind in zip(rows.columns, kinds, strict=True)]
    return pa.table(columns, names=rows.column_names)


def _stays(rows: pa.Table) -> pa.ChunkedArray:
    return pc.not_equal(rows[OP], "-")


def _coded(rows: pa.Table, positions: npt.NDArray[np.int64]) -> pa.Table:
    """The fact columns under names that no other column has, and a number for the position of a row and for whether its fact stays."""
    facts = rows.drop_columns([OP])
    named = facts.rename_columns([f"{_FACT}{i}" for i in range(facts.num_columns)])
    return named.append_column(_LAST, pa.array(positions + _stays(rows).to_numpy()))


def shares_of_facts(store: VersionReader, version: int, name: str, most: int) -> list[FileShare]:
    """Shares of all facts of a relation, of about `most` rows each, of which a task at least has one file."""
    folder, parts = store.parts(version, name)
    columns = stored_columns(store.schema(version, name))
    base = tuple(part for part in parts if part.last == parts[0].last)
    changes = tuple(parts[len(base) :])
    shares = [FileShare(folder, columns, version, files, changes) for files in _portions(base, most)]
    return [*shares, FileShare(folder, columns, version, (), changes)] if changes else shares


def shares_of_changes(store: VersionReader, version: int, name: str, most: int) -> list[FileShare] | None:
    """Shares of the changes that a version made to a relation; None if they are not in files of their own."""
    folder, parts = store.parts(version, name)
    if any(part.snapshot and part.first >= version for part in parts):
        return None
    files = [part for part in parts if part.first <= version <= part.last]
    if any(part.first != part.last for part in files):
        return None
    columns = stored_columns(store.schema(version, name))
    return [FileShare(folder, columns, version, some) for some in _portions(files, most)]


def _portions(files: Sequence[Part], most: int) -> Iterator[tuple[Part, ...]]:
    """Neighbouring files of about so many rows together."""
    taken: list[Part] = []
    for part in files:
        if taken and sum(one.rows for one in taken) + part.rows > most:
            yield tuple(taken)
            taken = []
        taken.append(part)
    if taken:
        yield tuple(taken)
