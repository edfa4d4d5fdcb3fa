"""The logs and the commit table of format 1, for its reader.

A log is a folder of numbered entries, each a few lines of JSON that add and remove data files. Entries never change.
A *pin* states that the entries `base` to `delta` describe the table, and carries one checksum over their bytes; entry
`base` is one that states the whole contents (the first one, or a compaction), so nothing before it is read.
A data file carries its own checksum in its name, so a log that is right vouches for every byte of the data.

A row of the commit table pins every relation's table, and the commit log before it; so from a correct last row everything
else can be checked. The newest log entry has no row after it, so its checksum stands in a file of its own, `_checks/<entry>`,
which was written after the entry. An entry without that file was written just before a crash: it counts if it is whole.

Rows of kind `version` make a version. Rows of kind `compaction` and `vacuum` repeat the newest one with other pins or
another `oldest`: to read a version its last row counts, to list its changes the first.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from evermat.core import StateError
from evermat.store.data_files import Columns, Part, read_part
from evermat.store.disk import damaged, names, read
from evermat.store.version import Version

CHECKS, LOG = "_checks", "_delta_log"
_CHECK_SIZE = 9
_ENTRY = re.compile(r"(\d{20})\.json")
_PART = re.compile(r"(?:_version=\d+/)?\d+-\d+-([0-9a-f]{8})\.parquet")


def entry_file(table: Path, number: int) -> Path:
    """The file of a log entry."""
    return table / LOG / f"{number:020}.json"


def entry_numbers(table: Path) -> list[int]:
    """The numbers of the log's entries, ascending."""
    return sorted(int(m.group(1)) for m in map(_ENTRY.fullmatch, names(table / LOG)) if m)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """The data files that one entry adds and removes."""

    added: tuple[Part, ...]
    removed: tuple[str, ...]


def parse_entry(raw: bytes) -> LogEntry:
    """Returns one entry; raises a `ValueError` if it is incomplete."""
    added: list[Part] = []
    removed: list[str] = []
    lines = raw.decode().splitlines()
    if not lines:
        raise ValueError("it is empty")
    for line in lines:
        action: Any = json.loads(line)
        if not isinstance(action, dict):
            raise ValueError("a line is not an action")  # noqa: TRY004 - a wrong value, not a wrong call
        if "add" in action:
            added.append(_part(action["add"]))
        elif "remove" in action:
            removed.append(str(action["remove"]["path"]))
    return LogEntry(tuple(added), tuple(removed))


def whole_entry(file: Path) -> LogEntry | None:
    """The entry, or None if a power loss left only a part of it."""
    try:
        return parse_entry(read(file))
    except (ValueError, KeyError, TypeError):
        return None


def _part(add: Any) -> Part:
    try:
        path, size, partition = add["path"], add["size"], add["partitionValues"]
        rows = json.loads(add["stats"])["numRecords"]
        version = int(partition.get("_version", 0))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"an added file is not described: {error}") from error
    if not (isinstance(path, str) and _PART.fullmatch(path) and isinstance(size, int) and isinstance(rows, int)):
        raise ValueError("an added file is not a data file of evermat")
    return Part(path, size, rows, version, version)


class Log:
    """The entries of one table from `base` on, read once.

    `checksums[i]` is the chained CRC-32 over the entries `base` to `base + i`: a pin vouches for all of them.
    """

    def __init__(self, table: Path, base: int) -> None:
        self.table = table
        self.base = base
        self.entries: list[LogEntry] = []
        self.checksums: list[int] = []

    def read_to(self, delta: int) -> None:
        """Reads the entries up to `delta` that were not read yet."""
        for number in range(self.base + len(self.entries), delta + 1):
            file = entry_file(self.table, number)
            raw = read(file)
            try:
                entry = parse_entry(raw)
            except (ValueError, KeyError, TypeError) as error:
                raise damaged(file, "it is not a log entry") from error
            self.entries.append(entry)
            self.checksums.append(zlib.crc32(raw, self.checksums[-1] if self.checksums else 0))

    def checksum(self, delta: int) -> int:
        """The checksum over the entries `base` to `delta`; 0 if there are none."""
        self.read_to(delta)
        return self.checksums[delta - self.base] if delta >= self.base else 0

    def entry(self, delta: int) -> LogEntry:
        self.read_to(delta)
        return self.entries[delta - self.base]

    def parts(self, delta: int) -> list[Part]:
        """The data files of the table as it is after `delta`, in the order in which they were added."""
        self.read_to(delta)
        live: dict[str, Part] = {}
        for entry in self.entries[: delta - self.base + 1]:
            for path in entry.removed:
                live.pop(path, None)
            for part in entry.added:
                live[part.path] = part
        return list(live.values())


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


_COLUMNS = [field.name for field in fields(Row)]


class Commits:
    """The rows of the commit table, as they were when this was read; files are loaded on demand.

    `entry` is the newest log entry that counts; one that a crash cut short does not.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entry = -1
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
                newest = numbers[-2]
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
            if table.column_names != _COLUMNS or not table.num_rows:
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


def _check_file(folder: Path, number: int) -> Path:
    return folder / CHECKS / str(number)


def _check_text(entry: bytes) -> bytes:
    return f"{zlib.crc32(entry):08x}\n".encode()  # of the size _CHECK_SIZE
