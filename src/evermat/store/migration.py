"""Rewrites a state of format 1 in the format that is written: all kept versions, with their rows and changes.

New folders are written beside the old ones. When they are durable, the mark of the state gets the new number, and from
then on they are the state; only then do they replace the old folders. A crash before that leaves a state of format 1, and
after it one of the new format, in which the next writer does what is left.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import EvermatError
from evermat.store.chunked_write import joined
from evermat.store.commits import FIELDS, Pin, Row, encoded
from evermat.store.data_files import (
    PART_ROWS,
    Columns,
    Part,
    PartName,
    delta_fields,
    last_rows,
    read_rows,
    table_schema,
    write_part,
)
from evermat.store.delta_log import Action, TableLog
from evermat.store.delta_table import TableWriter
from evermat.store.directory import COMMITS, MIGRATED, RELATIONS, WRITTEN_FORMAT, read_format, write_mark
from evermat.store.disk import mkdir, remove_all, rename, sync, writing
from evermat.store.formats.format_1 import Reader
from evermat.store.formats.format_1_log import Pin as OldPin
from evermat.store.formats.format_1_log import Row as OldRow
from evermat.store.location import Location
from evermat.store.names import OP, VERSION
from evermat.store.retention import DEFAULT

_REPLACED = ".1"  # how folders of format 1 are called before they are deleted
_MERGED_ROWS = 500_000  # rows of changes of several versions that become one file
_MERGED_LEVEL = 3  # they are as good as merged from so many


def migrate(path: Path) -> None:
    """Rewrites the state of format 1 in this directory, which is locked.

    Raises:
        StateError: it is damaged.
        ResourceError: the disk is full or not writable; the state is what it was.
    """
    with writing(path), Reader(path) as reader:
        reader.refresh()
        try:
            _clear(path)
            for name in (COMMITS, RELATIONS):
                mkdir(path / f"{name}{MIGRATED}")
            _rewrite(path, reader)
            write_mark(path)
        except BaseException:
            with suppress(OSError, EvermatError):
                if read_format(path) != WRITTEN_FORMAT:  # the mark may have its new contents, only not durably
                    _clear(path)
            raise
        finish_migration(path)


def finish_migration(path: Path) -> None:
    """Gives the new folders of a migrated state their names, and deletes the old ones."""
    for name in (COMMITS, RELATIONS):
        new, old = path / f"{name}{MIGRATED}", path / f"{name}{_REPLACED}"
        if new.is_dir():
            if (path / name).exists():
                rename(path / name, old)
            rename(new, path / name)
            sync(path)
        remove_all(old)


def _clear(path: Path) -> None:
    """Removes what an earlier attempt left."""
    for name in (COMMITS, RELATIONS):
        remove_all(path / f"{name}{MIGRATED}")


@dataclass
class _Table:
    """The table of a relation: the versions that changed it with their pins, and those that begin with a new snapshot."""

    relation: str
    columns: Columns
    born: int
    died: int | None = None
    changes: dict[int, OldPin] = field(default_factory=dict)
    pins: dict[int, OldPin] = field(default_factory=dict)


def _rewrite(path: Path, reader: Reader) -> None:
    rows = list(reader.commits.rows())
    oldest = rows[-1].oldest
    made = {row.version: row for row in reversed(rows) if row.version >= oldest}
    whole = {row.version: row for row in rows if row.version >= oldest}
    tables = _tables(made, whole)
    now = time.time_ns() // 1_000_000
    durable: list[Location] = []
    pins: dict[str, Pin | None] = {}
    for folder, table in tables.items():
        home = path / f"{RELATIONS}{MIGRATED}" / folder
        log = _write_table(home, table, reader, path / RELATIONS / folder, oldest, now, durable)
        pins[folder] = Pin(
            table.relation, folder, log.base, log.delta, log.checksum, table.columns, table.born, table.died
        )
    found = [_row(whole[number], made[number], tables, oldest) for number in sorted(whole)]
    found[-1] = replace(found[-1], complete=True, tables=pins)
    home = path / f"{COMMITS}{MIGRATED}"
    name = PartName(0, found[0].version, found[-1].version, _MERGED_LEVEL)
    part = write_part(home, name, 0, encoded(found, None))
    _commit(TableWriter(home, TableLog(home), FIELDS, COMMITS), Action([part]), now, durable)
    for file in durable:
        sync(file)
    for one in (path / f"{RELATIONS}{MIGRATED}", path):
        sync(one)


def _tables(made: dict[int, OldRow], whole: dict[int, OldRow]) -> dict[str, _Table]:
    """The tables of all kept versions, by folder."""
    tables: dict[str, _Table] = {}
    for number in sorted(whole):
        present = set()
        for name, pin in whole[number].pins.items():
            table = tables.get(pin.folder)
            if table is None:
                table = tables[pin.folder] = _Table(name, pin.columns, number)
            if pin.dropped:
                if table.born == number:  # only its deleted rows are kept
                    table.born = number - 1
                continue
            present.add(pin.folder)
            table.pins[number] = pin
        for pin in made[number].pins.values():
            if pin.changed == number and pin.folder in tables:
                tables[pin.folder].changes[number] = pin
        for folder, table in tables.items():
            if folder not in present and table.died is None:
                table.died = number
    return tables


def _row(last: OldRow, first: OldRow, tables: dict[str, _Table], oldest: int) -> Row:
    changed = tuple(folder for folder, table in tables.items() if last.version in table.changes)
    return Row(
        last.version,
        "version",
        first.time,
        last.algorithm,
        last.seconds,
        last.inserted,
        last.deleted,
        last.facts,
        last.program,
        last.stats,
        last.batch,
        oldest,
        DEFAULT.text,
        json.loads(last.counters),
        changed,
    )


def _write_table(
    home: Path, table: _Table, reader: Reader, source: Path, oldest: int, now: int, durable: list[Location]
) -> TableLog:
    """Writes all files of a table, and its log."""
    mkdir(home)
    files = _Files(home, table.columns)
    start = oldest if oldest > 1 and oldest in table.pins else 0  # the version of the last snapshot
    numbers = sorted({*table.pins, *table.changes})
    for number in numbers:
        if number in table.changes:
            for part in reader.log_of(table.changes[number]).entry(table.changes[number].delta).added:
                files.add(number, read_rows(source, part, table.columns))
        pin = table.pins.get(number)
        if pin is None:
            continue
        if number == oldest and start:
            files.snapshot(number, _facts(reader, pin, source, table.columns))
            continue
        parts = reader.parts_of(pin)
        first = parts[0].first if parts else 0
        if start < first and first > table.born:
            start = first
            begin = (read_rows(source, part, table.columns) for part in parts if part.first == first)
            files.snapshot(first, (_renumbered(rows, first) for rows in begin))
    files.flush()
    writer = TableWriter(home, TableLog(home), delta_fields(table.columns), table.relation)
    _commit(writer, Action(files.parts), now, durable)
    snapshot = max((part.first for part in files.parts if part.snapshot), default=0)
    old = [part for part in files.parts if (part.first < snapshot if part.snapshot else part.last <= snapshot)]
    if old:
        _commit(writer, Action((), (), old, old), now, durable)
    return writer.log


def _facts(reader: Reader, pin: OldPin, source: Path, columns: Columns) -> Iterator[pa.Table]:
    """All facts of a version, each in one row."""
    parts = reader.parts_of(pin)
    if len({part.first for part in parts}) <= 1:
        for part in parts:
            yield _inserted(read_rows(source, part, columns))
    else:
        rows = joined([read_rows(source, part, columns) for part in parts], columns)
        yield _inserted(last_rows(rows, len(columns)))


def _inserted(rows: pa.Table) -> pa.Table:
    rows = rows.filter(pc.not_equal(rows[OP].cast(pa.string()), "-"))
    position = rows.column_names.index(OP)
    return rows.set_column(position, OP, pa.repeat("+", rows.num_rows))


def _renumbered(rows: pa.Table, version: int) -> pa.Table:
    position = rows.column_names.index(VERSION)
    return rows.set_column(position, VERSION, pa.repeat(pa.scalar(version, pa.int64()), rows.num_rows))


class _Files:
    """The files of a table, written in the order of their versions."""

    def __init__(self, home: Path, columns: Columns) -> None:
        self.parts: list[Part] = []
        self._home, self._columns = home, columns
        self._waiting: list[tuple[int, pa.Table]] = []

    def add(self, version: int, rows: pa.Table) -> None:
        """Adds rows of changes."""
        if rows.num_rows:
            self._waiting.append((version, rows))
            if sum(table.num_rows for _, table in self._waiting) > _MERGED_ROWS:
                self.flush()

    def snapshot(self, version: int, tables: Iterator[pa.Table]) -> None:
        """Adds a snapshot."""
        self.flush()
        name = PartName(0, version, version, 0, snapshot=True)
        before = len(self.parts)
        for table in tables:
            for start in range(0, table.num_rows, PART_ROWS):
                self._write(name, _renumbered(table.slice(start, PART_ROWS), version))
        if len(self.parts) == before:
            self._write(name, table_schema(self._columns).empty_table())

    def flush(self) -> None:
        """Writes the changes that wait, as one file."""
        if self._waiting:
            first, last = self._waiting[0][0], self._waiting[-1][0]
            name = PartName(0, first, last, _MERGED_LEVEL if first < last else 0)
            rows = joined([rows for _, rows in self._waiting], self._columns)
            self._waiting.clear()
            self._write(name, rows)

    def _write(self, name: PartName, rows: pa.Table) -> None:
        self.parts.append(write_part(self._home, name, len(self.parts), rows))


def _commit(writer: TableWriter, action: Action, now: int, durable: list[Location]) -> None:
    """Writes the next entry of a table that no reader can see yet."""
    staged = writer.stage(action, now, lambda log: {"base": log.base, "chain": log.checksum})
    writer.publish(staged)
    durable += [*staged.files[:-1], staged.file, staged.file.parent, writer.folder]
    writer.log = staged.log
