"""The commit table: a version exists exactly when its row does.

A row pins every relation's table, and the commit log before it; so from a correct last row everything else can be
checked. The newest log entry has no row after it, so its checksum stands in a file of its own, `_checks/<entry>`, which
is written after the entry and durable before the writer reports the version as committed. An entry without that
file was written just before a crash: it counts if it is whole, and never happened if it is not.

Rows of kind `version` make a version. Rows of kind `compaction` and `vacuum` repeat the newest one with other pins or
another `oldest`: to read a version its last row counts, to list its changes the first.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from evermat.core import StateError
from evermat.store.data_files import Columns, read_part, write_part
from evermat.store.delta_log import Log, Part, entry_file, entry_numbers, whole_entry
from evermat.store.delta_table import CHECKS, TableWriter
from evermat.store.disk import damaged, names, read, sync, writing
from evermat.store.version import Entry, Version

# With more files than this, the next row takes all earlier ones into its own file.
_MOST_FILES = 64
_CHECK_SIZE = 9


@dataclass(frozen=True, slots=True)
class Pin:
    """The location of a relation's facts: the log entries `base` to `delta` of a folder, with their checksum.

    `changed` is the version whose rows entry `delta` added. A relation that a version drops is pinned for the last
    time by that version, as `dropped`: its table holds the deleted rows.
    """

    folder: str
    base: int
    delta: int
    checksum: int
    changed: int
    columns: Columns
    dropped: bool = False

    def plain(self) -> dict[str, Any]:
        """The pin for JSON."""
        return _fields_of(self)

    @staticmethod
    def of(plain: dict[str, Any]) -> Pin:
        columns = tuple((str(name), str(kind)) for name, kind in plain.pop("columns"))
        return Pin(**plain, columns=columns)


@dataclass(frozen=True)
class Row:
    """One row of the commit table; the fields named as there, JSON still as text."""

    version: int
    kind: str
    time: datetime
    algorithm: str
    seconds: float
    inserted: int
    deleted: int
    facts: int
    program: str
    stats: str
    counters: str
    batch: str | None
    oldest: int
    tables: str
    retired: str
    log: str
    checksum: str = ""

    @cached_property
    def pins(self) -> dict[str, Pin]:
        return {name: Pin.of(pin) for name, pin in json.loads(self.tables).items()}

    @cached_property
    def retired_folders(self) -> list[str]:
        """Folders of tables that only earlier versions pin."""
        return [str(folder) for folder in json.loads(self.retired)]

    @cached_property
    def shown(self) -> Version:
        return Version(
            self.version,
            self.time,
            self.algorithm,
            self.seconds,
            self.inserted,
            self.deleted,
            self.facts,
            self.batch,
            self.program,
            json.loads(self.stats),
            json.loads(self.counters),
            tuple(name for name, pin in self.pins.items() if not pin.dropped),
        )

    def sum(self) -> str:
        """The checksum over all other fields."""
        values = [
            value.isoformat() if isinstance(value, datetime) else value
            for value in (getattr(self, field.name) for field in fields(self) if field.name != "checksum")
        ]
        return hashlib.blake2b(json.dumps(values).encode(), digest_size=16).hexdigest()

    @staticmethod
    def of(entry: Entry, version: int, time: datetime, program: str, oldest: int) -> Row:
        """The row for a new version, without its pins."""
        return Row(
            version,
            "version",
            time,
            entry.algorithm,
            float(entry.seconds),
            entry.inserted,
            entry.deleted,
            entry.facts,
            program,
            json.dumps(entry.stats),
            json.dumps(entry.counters),
            entry.batch,
            oldest,
            tables="",
            retired="",
            log="",
        )

    def with_pins(self, pins: dict[str, Pin], retired: Sequence[str]) -> Row:
        """The same row with these pins."""
        tables = json.dumps({name: pin.plain() for name, pin in pins.items()})
        row = replace(self, tables=tables, retired=json.dumps(list(retired)))
        row.__dict__["pins"] = pins  # known already; thousands take a while to read
        return row

    def sealed(self, base: int, checksum: int) -> Row:
        """The same row with the checksum of the commit log before it, and its own."""
        row = replace(self, log=json.dumps({"base": base, "checksum": checksum}))
        row = replace(row, checksum=row.sum())
        row.__dict__["pins"] = self.pins
        return row


# The types of a row's columns in Arrow and in Delta.
_TYPES = {
    "int": (pa.int64(), "long"),
    "str": (pa.string(), "string"),
    "str | None": (pa.string(), "string"),
    "float": (pa.float64(), "double"),
    "datetime": (pa.timestamp("us", "UTC"), "timestamp"),
}
_SCHEMA = pa.schema([(field.name, _TYPES[str(field.type)][0]) for field in fields(Row)])


class Commits:
    """The rows of the commit table, as they were when this was read; files are loaded on demand.

    `entry` is the newest log entry that counts, `torn` one after it that a crash cut short.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entry = -1
        self.torn: int | None = None
        self._log = Log(folder, 0)
        self._parts: list[Part] = []
        self._rows: dict[str, list[Row]] = {}

    @staticmethod
    def read(folder: Path) -> Commits:
        """Reads the commit table and checks its log; again if a writer tidied up just then."""
        while True:
            before = entry_numbers(folder)
            try:
                return Commits._read(folder)
            except StateError:
                if entry_numbers(folder) == before:
                    raise

    @staticmethod
    def _read(folder: Path) -> Commits:
        found = Commits(folder)
        # Before the log is listed, so that a live writer cannot make it look too new.
        check = max((int(name) for name in names(folder / CHECKS) if name.isdecimal()), default=None)
        numbers = entry_numbers(folder)
        if not numbers:
            raise damaged(entry_file(folder, 0), "it is missing")
        newest = numbers[-1]
        if check is not None and check > newest:
            raise damaged(entry_file(folder, check), "it is missing")
        if (check is None or check < newest) and len(numbers) > 1:
            entry = whole_entry(entry_file(folder, newest))
            if entry is None or not entry.added:
                found.torn, newest = newest, numbers[-2]
        found._settle(newest)
        return found

    def _settle(self, newest: int) -> None:
        file = entry_file(self.folder, newest)
        self._check_newest(newest)
        parts = Log(self.folder, newest).parts(newest)
        if len(parts) != 1:
            raise damaged(file, "it does not add a row")
        log = json.loads(self._load(parts[0])[-1].log)
        self._log = Log(self.folder, log["base"])
        if newest > log["base"] and self._log.checksum(newest - 1) != log["checksum"]:
            raise damaged(self._wrong_entry(newest), "its checksum is wrong")
        self.entry = newest
        self._parts = self._log.parts(newest)

    def _check_newest(self, newest: int) -> None:
        file = _check_file(self.folder, newest)
        try:
            text = file.read_bytes()
        except OSError:
            return  # a crash came before it
        if len(text) < _CHECK_SIZE:
            return  # or in the middle of it
        if text != _check_text(read(entry_file(self.folder, newest))):
            raise damaged(entry_file(self.folder, newest), f"it does not fit its checksum in `{file}`")

    def _wrong_entry(self, newest: int) -> Path:
        """Which entry is damaged: the one before the first row that does not fit what comes before it."""
        base = self._log.base
        for number in range(base + 1, newest + 1):
            try:
                row = self._load(self._log.entry(number).added[0])[-1]
            except (StateError, IndexError):
                return entry_file(self.folder, number)
            if json.loads(row.log)["checksum"] != self._log.checksum(number - 1):
                return entry_file(self.folder, number - 1)
        return entry_file(self.folder, newest)

    def _load(self, part: Part) -> list[Row]:
        rows = self._rows.get(part.path)
        if rows is None:
            table = read_part(self.folder, part)
            if table.column_names != _SCHEMA.names or not table.num_rows:
                raise damaged(self.folder / part.path, "it has no rows of commits")
            rows = [Row(**row) for row in table.to_pylist()]
            if any(row.sum() != row.checksum for row in rows):
                raise damaged(self.folder / part.path, "the checksum of a row is wrong")
            self._rows[part.path] = rows
        return rows

    @property
    def last(self) -> Row:
        return self._load(self._parts[-1])[-1]

    def rows(self) -> Iterator[Row]:
        for part in self._parts:
            yield from self._load(part)

    @property
    def parts(self) -> list[Part]:
        return list(self._parts)

    @property
    def base(self) -> int:
        """The first log entry that is needed."""
        return self._log.base

    # --- for the writer ------------------------------------------------------------------------------------
    def append(
        self, writer: TableWriter, row: Row, ready: Callable[[], None] = lambda: None, *, keep: int | None = None
    ) -> None:
        """Adds a row: with it, the version exists.

        Args:
            writer: The writer of this table.
            row: The row.
            ready: Makes everything durable that the row pins; called when all but the log entry is written.
            keep: The first version to keep: rows of later versions move to one file, and earlier rows are deleted.
        """
        number = writer.newest + 1
        merge = keep is not None or len(self._parts) >= _MOST_FILES or self.entry < 0
        rows = [old for old in self.rows() if keep is None or old.version >= keep] if merge else []
        base = number if merge else self._log.base
        checksum = 0 if merge else self._log.checksum(number - 1)
        row = row.sealed(base, checksum)
        table = pa.Table.from_pylist([_fields_of(r) for r in [*rows, row]], schema=_SCHEMA)
        part = None
        try:
            with writing(self.folder):
                part = write_part(self.folder, number, 0, table)
                sync(self.folder / part.path)
                sync(self.folder)
            ready()
            writer.write([part], self._parts if merge else [])
            writer.sync([])
            with writing(_check_file(self.folder, number)):
                self._write_check(number)
        except BaseException:
            # Not durable for sure, so not committed at all. An entry may lack its check, but no check its entry.
            _check_file(self.folder, number).unlink(missing_ok=True)
            entry_file(self.folder, number).unlink(missing_ok=True)
            if part is not None:
                (self.folder / part.path).unlink(missing_ok=True)
            raise
        if merge:
            self._log, self._parts = Log(self.folder, base), []
        self._log.read_to(number)
        self._parts.append(part)
        self._rows[part.path] = [*rows, row]
        self.entry = number

    def complete(self) -> None:
        """Writes the check of the newest entry if a crash has prevented that."""
        file = _check_file(self.folder, self.entry)
        if not file.exists() or file.stat().st_size < _CHECK_SIZE:
            self._write_check(self.entry)

    def _write_check(self, number: int) -> None:
        file = _check_file(self.folder, number)
        file.parent.mkdir(exist_ok=True)
        with file.open("wb") as out:  # a power loss may leave a part of it, which counts as none
            out.write(_check_text(read(entry_file(self.folder, number))))
        sync(file)
        sync(file.parent)
        for name in names(file.parent):
            if name.isdecimal() and int(name) < number:
                (file.parent / name).unlink(missing_ok=True)


def _fields_of(stored: Row | Pin) -> dict[str, Any]:
    return {field.name: getattr(stored, field.name) for field in fields(stored)}


def commit_writer(folder: Path) -> TableWriter:
    """The writing side of the commit table."""
    return TableWriter(folder, [(field.name, _TYPES[str(field.type)][1]) for field in fields(Row)], partitioned=False)


def _check_file(folder: Path, number: int) -> Path:
    return folder / CHECKS / str(number)


def _check_text(entry: bytes) -> bytes:
    return f"{zlib.crc32(entry):08x}\n".encode()  # of the size _CHECK_SIZE
