"""Format 1: reads the versions of a state as they were committed, and checks every byte.

Reads follow pins: what the row of a version pins never changes, so nothing that is written meanwhile is seen. Only a
vacuum deletes files. If one is missing, a version is therefore read by the rows as they are now, and the state is
damaged only if they pin the same.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import Problem, StateError
from evermat.core import error_catalogue as errors
from evermat.store.data_files import Part, fact_schema, read_rows
from evermat.store.directory import COMMITS, PROGRAMS, RELATIONS, read_format
from evermat.store.disk import damaged, read
from evermat.store.formats.format_1_log import Commits, Log, Pin, Row, entry_file
from evermat.store.formats.format_2 import program_name
from evermat.store.names import OP, VERSION
from evermat.store.version import Version

_AHEAD = 3  # files that are read before they are asked for


class Reader:
    """A `VersionReader` of format 1."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._commits = Commits(path / COMMITS)
        self._seen = 0
        self._logs: dict[tuple[str, int], Log] = {}
        self._pool = ThreadPoolExecutor(max_workers=min(8, (os.cpu_count() or 1) + 2), thread_name_prefix="store")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._pool.shutdown()

    @property
    def path(self) -> Path:
        return self._path

    @property
    def commits(self) -> Commits:
        """The commit table, for a migration."""
        return self._commits

    # --- versions ------------------------------------------------------------------------------------------
    @property
    def latest(self) -> Version:
        return self.version(self._seen)

    def refresh(self) -> Version:
        self._commits = Commits.read(self._path / COMMITS)
        self._seen = self._commits.last.version
        return self.latest

    def is_current(self) -> bool:
        entry = entry_file(self._path / COMMITS, self._commits.entry + 1)
        return read_format(self._path) == 1 and not entry.exists()

    def versions(self) -> list[Version]:
        rows = {row.version: row for row in self._rows()}  # of several rows the last
        oldest = self._commits.last.oldest
        return [row.shown for number, row in sorted(rows.items()) if oldest <= number <= self._seen]

    def version(self, number: int, *, before: bool = False) -> Version:
        del before  # this format has nothing of the version before the oldest
        return self._row(number).shown

    def has(self, number: int) -> bool:
        oldest = self._commits.last.oldest
        return oldest <= number <= self._seen

    def program(self, version: int) -> str:
        name = self._row(version).program
        file = self._path / PROGRAMS / name
        raw = read(file)
        if program_name(raw) != name:
            raise damaged(file, "its checksum is wrong")
        return raw.decode()

    def _row(self, number: int, *, first: bool = False) -> Row:
        """The last row of a version, which is the one to read it by, or the first, which made it."""
        if number == self._seen == self._commits.last.version and not first:
            return self._commits.last
        found = [row for row in self._rows() if row.version == number]
        oldest = self._commits.last.oldest
        kept = f"versions {oldest} to {self._seen}" if oldest < self._seen else f"only version {self._seen}"
        if 1 <= number < oldest:
            raise StateError(Problem(errors.VERSION_NOT_KEPT, {"version": number, "kept": kept}))
        if not found or number > self._seen:
            raise StateError(Problem(errors.NO_SUCH_VERSION, {"version": number, "kept": kept}))
        return found[0 if first else -1]

    def _rows(self) -> list[Row]:
        """All rows; the current ones if a vacuum has deleted files of the commit table."""
        try:
            return list(self._commits.rows())
        except StateError:
            now = Commits.read(self._path / COMMITS)
            if now.entry == self._commits.entry:
                raise
            self._commits = now
            return list(now.rows())

    # --- reading -------------------------------------------------------------------------------------------
    def schema(self, version: int, name: str) -> pa.Schema:
        return fact_schema(self._pin(version, name).columns)

    def read(self, version: int, name: str) -> Iterator[tuple[int, pa.Table]]:
        return self._reading(version, name, self._pin(version, name))

    def parts(self, version: int, name: str) -> tuple[Path, list[Part]]:
        pin = self._pin(version, name)
        while True:
            try:
                folder, parts = self._folder(pin.folder), self.parts_of(pin)
                for part in parts:
                    if not (folder / part.path).exists():
                        raise damaged(folder / part.path, "it is missing")
            except StateError:
                before, pin = pin, self._pin_now(version, name)
                if before == pin:
                    raise
            else:
                return folder, parts

    def _reading(self, version: int, name: str, pin: Pin) -> Iterator[tuple[int, pa.Table]]:
        begun = False
        try:
            for part, table in self._tables(pin, self.parts_of(pin)):
                begun = True
                yield part.last, table
        except StateError:
            now = self._pin_now(version, name)
            if now == pin:
                raise
            if begun:
                why = "a vacuum removed files while they were read; read the version once more"
                raise StateError(
                    Problem(errors.STATE_UNREADABLE, {"file": self._folder(pin.folder), "why": why})
                ) from None
            yield from self._reading(version, name, now)

    def changes(self, first: int, last: int, *, unchanged: bool = False) -> Iterator[tuple[int, str, pa.Table]]:
        return self._changing([self._row(number, first=True) for number in range(first, last + 1)], unchanged=unchanged)

    def _changing(self, rows: Iterable[Row], *, unchanged: bool) -> Iterator[tuple[int, str, pa.Table]]:
        for row in rows:
            for name, pin in row.pins.items():
                if pin.changed == row.version:
                    for table in self._changed(row.version, pin):
                        wanted = table if unchanged else table.filter(pc.not_equal(table[OP].cast(pa.string()), "="))
                        if wanted.num_rows:
                            yield row.version, name, wanted

    def _changed(self, version: int, pin: Pin) -> Iterator[pa.Table]:
        try:
            for _, table in self._tables(pin, self.log_of(pin).entry(pin.delta).added):
                yield table
        except StateError:
            self._commits = Commits.read(self._path / COMMITS)
            self._row(version)  # raises if the version is no longer kept
            raise

    def _pin(self, version: int, name: str) -> Pin:
        pin = self._row(version).pins[name]
        if pin.dropped:
            raise KeyError(name)
        return pin

    def _pin_now(self, version: int, name: str) -> Pin:
        """The current pin, for when a file is missing: a vacuum may have deleted it, and the version has other files now."""
        self._commits = Commits.read(self._path / COMMITS)
        return self._pin(version, name)

    def log_of(self, pin: Pin) -> Log:
        """The checked log of a table up to where it is pinned."""
        log = self._logs.setdefault((pin.folder, pin.base), Log(self._folder(pin.folder), pin.base))
        try:
            right = log.checksum(pin.delta) == pin.checksum
        except StateError:
            self._logs.pop((pin.folder, pin.base), None)
            raise
        if not right:
            self._logs.pop((pin.folder, pin.base), None)
            raise damaged(self._wrong_entry(log, pin), "its checksum is wrong")
        return log

    def _wrong_entry(self, log: Log, pin: Pin) -> Path:
        """Which entry is damaged: the one of the first pin that does not fit."""
        others = [p for row in self._rows() for p in row.pins.values()]
        same = [p for p in others if (p.folder, p.base) == (pin.folder, pin.base) and p.delta <= pin.delta]
        wrong = [p.delta for p in same if log.checksum(p.delta) != p.checksum]
        return entry_file(log.table, min(wrong, default=pin.delta))

    def parts_of(self, pin: Pin) -> list[Part]:
        """The data files in the order in which they are read: those of the snapshot, then changes by version."""
        return sorted(self.log_of(pin).parts(pin.delta), key=lambda part: part.last)

    def _tables(self, pin: Pin, parts: Iterable[Part]) -> Iterator[tuple[Part, pa.Table]]:
        """Reads files in order, a few ahead."""
        folder = self._folder(pin.folder)
        running: deque[tuple[Part, Future[pa.Table]]] = deque()
        for part in parts:
            running.append((part, self._pool.submit(read_rows, folder, part, pin.columns)))
            if len(running) > _AHEAD:
                ready, future = running.popleft()
                yield ready, future.result().drop_columns([VERSION])
        for ready, future in running:
            yield ready, future.result().drop_columns([VERSION])

    def _folder(self, folder: str) -> Path:
        return self._path / RELATIONS / folder
