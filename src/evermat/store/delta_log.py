"""Reads the log of a Delta table and checks every byte of it.

A log is a folder of numbered entries, each a few lines of JSON that add and remove data files. Entries never change.
A *pin* states that the entries `base` to `delta` describe the table, and carries one checksum over their bytes; entry
`base` is one that states the whole contents (the first one, or a compaction), so nothing before it is read.
A data file carries its own checksum in its name, so a log that is right vouches for every byte of the data.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evermat.store.disk import damaged, names, read

LOG = "_delta_log"
_ENTRY = re.compile(r"(\d{20})\.json")
_PART = re.compile(r"(?:_version=\d+/)?\d+-\d+-([0-9a-f]{8})\.parquet")


@dataclass(frozen=True, slots=True)
class Part:
    """A data file: its path in the table's folder, its size and checksum, the number of its rows, and its version."""

    path: str
    size: int
    rows: int
    version: int

    @property
    def checksum(self) -> int:
        """The CRC-32 of the whole file, which its name carries."""
        return int(self.path[-16:-8], 16)


def part_name(entry: int, number: int, checksum: int) -> str:
    """The name of a data file: unique in its table, for it begins with the entry that adds the file."""
    return f"{entry}-{number}-{checksum:08x}.parquet"


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
    return Part(path, size, rows, version)


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
