"""The commit table: a version exists exactly when its row does.

A row says what its version changed: the pins of the tables that it wrote, and those entries of `counters` that differ from
the row before. The last row of a merged file is *complete*, which is to say that it has all pins, and the first one has all
counters; so has the first row of the table. So what is true of the newest version is read from the last merged file and the
few rows after it.

Rows of kind `version` make a version. Rows of other kinds repeat the newest one, with other pins, counters or `oldest`: where
files are merged, rows of one version become one.

An entry of this table's log carries the checksum of the log before it, and one of itself. That a newest entry is missing
is known by the file `_newest`, which is written after each entry; a crash may leave it behind, never ahead.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from evermat.store.data_files import Columns, Part, read_part
from evermat.store.delta_log import LOG, TableLog, entry_file, entry_numbers, own_details, parse_entry
from evermat.store.delta_table import WITNESS
from evermat.store.disk import contents_of, damaged, overwrite, read
from evermat.store.location import Location, ObjectPath
from evermat.store.repeat import repeated
from evermat.store.version import Entry, Version

_RECENT = 20  # files whose rows stay in memory


@dataclass(frozen=True, slots=True)
class Pin:
    """One table of a relation: the checkpoint `base` and the entries after it, to `delta`, with their checksum.

    The relation has its facts in this table from the version `born` on, until before `died`, if that is set. The version
    `died` deletes them, so its changes are in this table too.
    """

    relation: str
    folder: str
    base: int
    delta: int
    checksum: int
    columns: Columns
    born: int
    died: int | None = None

    def is_of(self, version: int) -> bool:
        """Whether the relation has its facts in this table in a version."""
        return self.born <= version and (self.died is None or version < self.died)

    @staticmethod
    def of(plain: dict[str, Any]) -> Pin:
        columns = tuple((str(name), str(kind)) for name, kind in plain["columns"])
        return Pin(**{**plain, "columns": columns})


@dataclass(frozen=True)
class Row:
    """One row of the commit table.

    `tables` has a pin for each table that changed, by folder, or None for one that no kept version needs; `counters` is
    whole. A row that is `complete` has all pins.
    """

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
    batch: str | None
    oldest: int
    keep: str
    counters: Any
    changed: tuple[str, ...] = ()
    tables: dict[str, Pin | None] = field(default_factory=dict)
    complete: bool = False

    @staticmethod
    def of(entry: Entry, version: int, time: datetime, program: str, oldest: int, keep: str) -> Row:
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
            entry.batch,
            oldest,
            keep,
            json.loads(json.dumps(entry.counters)) if not isinstance(entry.counters, dict) else entry.counters,
        )

    def shown(self, relations: tuple[str, ...]) -> Version:
        """The version, which has these relations."""
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
            self.counters,
            relations,
        )


_KINDS = {
    "int": (pa.int64(), "long"),
    "str": (pa.string(), "string"),
    "str | None": (pa.string(), "string"),
    "float": (pa.float64(), "double"),
    "bool": (pa.bool_(), "boolean"),
    "datetime": (pa.timestamp("us", "UTC"), "timestamp"),
}
_TYPES = {f.name: _KINDS.get(str(f.type), _KINDS["str"]) for f in fields(Row)}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in _TYPES.items()])
FIELDS = [(name, kind) for name, (_, kind) in _TYPES.items()]


# --- rows as they are stored -----------------------------------------------------------------------------------


def encoded(rows: Sequence[Row], before: Row | None) -> pa.Table:
    """Rows as a table; the counters of each as what differs from the row before."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for row in rows:
        known = None if before is None else before.counters
        for name, values in columns.items():
            value = getattr(row, name)
            match name:
                case "counters":
                    value = _difference(known, value)
                case "changed":
                    value = json.dumps(value)
                case "tables":
                    value = json.dumps({folder: pin and _plain(pin) for folder, pin in value.items()})
            values.append(value)
        before = row
    return pa.table([pa.array(v, kind) for v, kind in zip(columns.values(), SCHEMA.types, strict=True)], schema=SCHEMA)


def _difference(known: Any, value: Any) -> str:
    """The entries that differ, if there were the same ones before; else all."""
    if isinstance(known, dict) and isinstance(value, dict) and known.keys() == value.keys():
        return json.dumps({"differ": {k: v for k, v in value.items() if v is not known[k] and v != known[k]}})
    return json.dumps({"all": value})


def decoded(table: pa.Table, before: Row | None) -> list[Row]:
    """The rows of a table; raises a `ValueError` if the first one needs the row before, which is not known."""
    rows = []
    for values in table.to_pylist():
        counters = json.loads(values["counters"])
        if "all" in counters:
            values["counters"] = counters["all"]
        elif before is not None:
            values["counters"] = before.counters | counters["differ"]
        else:
            raise ValueError("the row before is not known")
        values["changed"] = tuple(json.loads(values["changed"]))
        tables = json.loads(values["tables"])
        values["tables"] = {folder: pin and Pin.of(pin) for folder, pin in tables.items()}
        before = Row(**values)
        rows.append(before)
    return rows


def _plain(pin: Pin) -> dict[str, Any]:
    return {f.name: getattr(pin, f.name) for f in fields(pin)}


def merged_rows(rows: Sequence[Row], first: int, pins: dict[str, Pin]) -> list[Row]:
    """Rows from the version `first` on, one for each version; the last one is complete, with these pins."""
    found: dict[int, Row] = {}
    for row in rows:
        if row.version >= first or row is rows[-1]:
            made = found.get(row.version, row)
            kind, time, changed = made.kind, made.time, made.changed
            found[row.version] = replace(row, kind=kind, time=time, changed=changed, tables={}, complete=False)
    merged = list(found.values())
    merged[-1] = replace(merged[-1], complete=True, tables=dict(pins))
    return merged


# --- the table -------------------------------------------------------------------------------------------------


@dataclass
class Commits:
    """The commit table up to its newest entry, as it was when this was read; rows are loaded on demand."""

    folder: Location
    log: TableLog
    pins: dict[str, Pin] = field(default_factory=dict)
    newest: Row | None = None
    _rows: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def last(self) -> Row:
        assert self.newest is not None
        return self.newest

    @property
    def entry(self) -> int:
        """The number of the newest log entry."""
        return self.log.delta

    @property
    def base(self) -> int:
        """The oldest version that can be read: the one before the oldest that is kept, because changes begin with that."""
        return self.last.oldest - 1

    @cached_property
    def folders_of(self) -> dict[str, list[str]]:
        """The folders of the tables of each relation that there was."""
        found: dict[str, list[str]] = {}
        for folder, pin in self.pins.items():
            found.setdefault(pin.relation, []).append(folder)
        return found

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The relations of the newest version."""
        return self._relations_of(self.last.version)

    def shown(self, row: Row) -> Version:
        """The version of a row."""
        newest = row.version == self.last.version
        return row.shown(self.relations if newest else self._relations_of(row.version))

    def _relations_of(self, version: int) -> tuple[str, ...]:
        return tuple(pin.relation for pin in self.pins.values() if pin.is_of(version))

    @staticmethod
    def none(folder: Location) -> Commits:
        """The table before its first row."""
        return Commits(folder, TableLog(folder))

    @staticmethod
    def read(folder: Location, known: Commits | None = None) -> Commits:
        """Reads what is new since `known`; again if a writer removed old files just then."""
        return repeated(folder, lambda: _read(folder, known), lambda: entry_numbers(folder))

    def rows(self) -> Iterator[Row]:
        """All rows in their order, also of versions that are no longer kept."""
        for part in self.log.current:
            yield from self.rows_in(part)

    def rows_of(self, first: int, last: int) -> Iterator[Row]:
        """The rows of a range of versions."""
        for part in self.log.current:
            if part.first <= last and part.last >= first:
                yield from (row for row in self.rows_in(part) if first <= row.version <= last)

    def rows_in(self, part: Part) -> list[Row]:
        """The rows of one file."""
        if part.path not in self._rows:
            parts = self.log.current
            position = parts.index(part)
            begin = position
            while parts[begin].level == 0 and begin > 0:
                begin -= 1
            before: Row | None = None
            for one in parts[begin : position + 1]:
                if one.path not in self._rows:
                    self._rows[one.path] = load_rows(self.folder, one, before)
                before = self._rows[one.path][-1]
        return self._rows[part.path]

    def followed_by(self, log: TableLog, part: Part, row: Row) -> Commits:
        """The table after one more row."""
        recent = {part.path for part in log.current[-_RECENT:]}
        rows = {path: found for path, found in self._rows.items() if path in recent}
        rows[part.path] = [row]
        after = Commits(self.folder, log, _with(self.pins, row), row, rows)
        structure = {pin is None or folder not in self.pins or pin.died for folder, pin in row.tables.items()}
        if structure <= {None, False}:  # thousands of relations take a while to list
            after.__dict__ |= {
                name: self.__dict__[name] for name in ("relations", "folders_of") if name in self.__dict__
            }
        return after


def load_rows(folder: Location, part: Part, before: Row | None) -> list[Row]:
    """The rows in a file of the table."""
    table = read_part(folder, part)
    if table.schema.names != SCHEMA.names or table.num_rows != part.rows or not part.rows:
        raise damaged(folder / part.path, "it has no rows of commits")
    try:
        return decoded(table, before)
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(folder / part.path, "it has no rows of commits") from error


def _with(pins: dict[str, Pin], row: Row) -> dict[str, Pin]:
    """The pins after a row."""
    found = {} if row.complete else dict(pins)
    for folder, pin in row.tables.items():
        if pin is None:
            found.pop(folder, None)
        else:
            found[folder] = pin
    return found


def _read(folder: Location, known: Commits | None) -> Commits:
    # Before the log is listed, so that a live writer cannot make it look too new.
    witness = _witness(folder)
    numbers = entry_numbers(folder)
    if not numbers:
        raise damaged(entry_file(folder, 0), "it is missing")
    newest = numbers[-1]
    if witness is not None and witness > newest:
        raise damaged(entry_file(folder, witness), "it is missing")
    if known is not None and known.newest is not None and known.entry == newest:
        return known
    file = entry_file(folder, newest)
    raw = read(file)
    actions = parse_entry(file, raw)
    details = own_details(actions)
    if known is not None and known.newest is not None and known.log.base == details["base"] and known.entry < newest:
        log = known.log.copy()
        log.read_to(newest - 1)
    else:
        log = TableLog.read(folder, details["base"], newest - 1)
        known = None
    if log.checksum != details["chain"]:
        raise damaged(log.wrong(), "its checksum is wrong")
    log.apply(raw, actions)
    return _settled(folder, log, known)


def _settled(folder: Location, log: TableLog, known: Commits | None) -> Commits:
    """The table with its newest row and all pins: from the last known row, or the last complete one."""
    parts = log.current
    rows = {} if known is None else {path: found for path, found in known._rows.items() if path in log.live}  # noqa: SLF001 - of the same class
    begin = len(parts) - 1
    while begin > 0 and parts[begin].level == 0:
        begin -= 1
    pins: dict[str, Pin] = {}
    before: Row | None = None
    for part in parts[begin:]:
        if part.path not in rows:
            rows[part.path] = load_rows(folder, part, before)
        for row in rows[part.path][-1:] if part.level else rows[part.path]:
            pins = _with(pins, row)
        before = rows[part.path][-1]
    return Commits(folder, log, pins, before, rows)


def has_entry_after(folder: Location, entry: int) -> bool:
    """Whether the log has newer entries than one; looks at no more than two files, whatever their number."""
    if isinstance(folder, ObjectPath):
        return max(entry_numbers(folder), default=-1) > entry
    # The next entry may be there no more, and the witness may lag behind after a crash. Paths are texts because that is faster.
    return os.path.exists(f"{folder}/{LOG}/{entry + 1:020}.json") or (_witness(folder) or 0) > entry  # noqa: PTH110


def _witness(folder: Location) -> int | None:
    """The number of the newest entry that was surely there; None if that is not known."""
    try:
        text = _witness_text(folder)
    except OSError:
        return None
    number, _, check = text.strip().partition(b" ")
    return int(number) if number.isdigit() and check == f"{zlib.crc32(number):08x}".encode() else None


def _witness_text(folder: Location) -> bytes:
    if isinstance(folder, ObjectPath):
        return contents_of(folder / WITNESS)
    descriptor = os.open(f"{folder}/{WITNESS}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 10)
    finally:
        os.close(descriptor)


def write_witness(folder: Location, number: int) -> None:
    """Records the newest entry, as far as that is possible: it is only needed to notice that an entry is missing."""
    digits = f"{number:020}".encode()
    with suppress(OSError):
        overwrite(folder / WITNESS, digits + f" {zlib.crc32(digits):08x}\n".encode())
