"""Format 2: reads the versions of a state as they were committed, and checks every byte.

A version of a relation is its last snapshot that is not newer, and all later rows of changes up to the version. The files
with these rows may be merged and deleted while they are read. So all of them are opened before the first one is read; if one
is missing, the version is read by the newest pins, and the state is damaged only if they are the same.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from io import FileIO
from typing import Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import Problem, StateError
from evermat.core import error_catalogue as errors
from evermat.store.commits import Commits, Pin, Row, has_entry_after
from evermat.store.data_files import Columns, Part, fact_schema, read_current, read_rows
from evermat.store.delta_log import TableLog
from evermat.store.directory import COMMITS, PROGRAMS, RELATIONS, place
from evermat.store.disk import Unread, damaged, exists, opened, read
from evermat.store.location import Location
from evermat.store.names import OP, VERSION
from evermat.store.repeat import repeated
from evermat.store.version import Version

T = TypeVar("T")

_AHEAD = 3  # files that are read before they are asked for
_SMALL_ROWS = 20_000  # of all files: not worth another thread


class Reader:
    """A `VersionReader` of format 2."""

    def __init__(self, path: Location) -> None:
        self._path = path
        self._commits = Commits.none(path / COMMITS)
        self._seen = 0
        self._logs: dict[str, TableLog] = {}
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None

    @property
    def path(self) -> Location:
        return self._path

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            workers = min(8, (os.cpu_count() or 1) + 2)
            self._threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="store")
        return self._threads

    # --- versions ------------------------------------------------------------------------------------------
    @property
    def latest(self) -> Version:
        return self.version(self._seen)

    def refresh(self) -> Version:
        self._look()
        self._seen = self._commits.last.version
        return self.latest

    def _look(self) -> None:
        """Sees what is committed now, but stays at the version."""
        folder = place(self._path, COMMITS)
        known = self._commits if self._commits.folder == folder and self._commits.newest is not None else None
        self._commits = Commits.read(folder, known)

    def is_current(self) -> bool:
        folder = self._commits.folder
        return folder.name == COMMITS and not has_entry_after(folder, self._commits.entry)  # else it was being migrated

    def versions(self) -> list[Version]:
        found = {row.version: row for row in self._rows()}  # of several rows the last
        commits, oldest = self._commits, self._commits.last.oldest
        return [commits.shown(row) for number, row in sorted(found.items()) if oldest <= number <= self._seen]

    def version(self, number: int, *, before: bool = False) -> Version:
        return self._commits.shown(self._row(number, before=before))

    def has(self, number: int) -> bool:
        oldest = self._commits.last.oldest
        return oldest - 1 <= number <= self._seen and any(
            row.version == number for row in self._rows_of(number, number)
        )

    def program(self, version: int) -> str:
        name = self._row(version, before=True).program
        file = self._path / PROGRAMS / name
        raw = read(file)
        if not name.startswith(program_name(raw).removesuffix(".dl")):
            raise damaged(file, "its checksum is wrong")
        return raw.decode()

    def _row(self, number: int, *, before: bool = False) -> Row:
        """The last row of a version; `before` allows the one before the oldest that is kept, if it is there."""
        if self._commits.newest is None:
            raise StateError(Problem(errors.NO_SUCH_VERSION, {"version": number, "kept": "no version yet"}))
        last = self._commits.last
        if number == self._seen == last.version:
            return last
        found = None
        if last.oldest - before <= number <= self._seen:
            for row in self._rows_of(number, number):
                found = row
        if found is None:
            oldest = last.oldest
            kept = f"versions {oldest} to {self._seen}" if oldest < self._seen else f"only version {self._seen}"
            kind = errors.VERSION_NOT_KEPT if 1 <= number < oldest else errors.NO_SUCH_VERSION
            raise StateError(Problem(kind, {"version": number, "kept": kept}))
        return found

    def _rows(self) -> list[Row]:
        return self._retrying(lambda: list(self._commits.rows()))

    def _rows_of(self, first: int, last: int) -> list[Row]:
        return self._retrying(lambda: list(self._commits.rows_of(first, last)))

    def _retrying(self, load: Callable[[], list[Row]]) -> list[Row]:
        """Rows; the current ones if a writer has deleted files of the commit table."""
        return repeated(self._path, load, lambda: self._commits.entry, self._look)

    # --- reading -------------------------------------------------------------------------------------------
    def schema(self, version: int, name: str) -> pa.Schema:
        return fact_schema(self._pin(version, name).columns)

    def read(self, version: int, name: str) -> Iterator[tuple[int, pa.Table]]:
        self._pin(version, name)
        return self._reading(version, name)

    def parts(self, version: int, name: str) -> tuple[Location, list[Part]]:
        folder, _, found = self._found(version, name, _existing)
        return folder, [part for part, _ in found]

    def _found(
        self, version: int, name: str, find: Callable[[Location], T]
    ) -> tuple[Location, Columns, list[tuple[Part, T]]]:
        """The folder, the columns and the data files of a relation, each with what `find` finds of it."""

        def find_all() -> tuple[Location, Columns, list[tuple[Part, T]]]:
            pin = self._pin(version, name)
            folder = self._folder(pin.folder)
            return folder, pin.columns, [(part, find(folder / part.path)) for part in self._parts(pin, version)]

        return repeated(self._path, find_all, lambda: self._pin(version, name), self._look)

    def _reading(self, version: int, name: str) -> Iterator[tuple[int, pa.Table]]:
        with ExitStack() as open_files:

            def held(file: Location) -> FileIO | Unread:
                source = opened(file)
                open_files.enter_context(source)
                return source

            folder, columns, found = self._found(version, name, held)
            tasks = [partial(read_current, folder, part, columns, version, source) for part, source in found]
            parts = [part for part, _ in found]
            begun = False
            for part, table in zip(parts, self._loaded(tasks, parts), strict=True):
                rows = table.drop_columns([VERSION])
                if not begun and part.first < part.last:
                    rows = rows.filter(pc.not_equal(rows[OP].cast(pa.string()), "-"))
                begun = True
                yield min(part.last, version), rows

    def changes(self, first: int, last: int, *, unchanged: bool = False) -> Iterator[tuple[int, str, pa.Table]]:
        for number in (first, last):
            self._row(number)
        changed: dict[int, set[str]] = {}
        for row in self._rows_of(first, last):
            changed.setdefault(row.version, set()).update(row.changed)
        return self._changing(changed, unchanged=unchanged)

    def _changing(self, changed: dict[int, set[str]], *, unchanged: bool) -> Iterator[tuple[int, str, pa.Table]]:
        held: dict[str, tuple[str, pa.Table]] = {}  # of each table the file that was read last
        for version, folders in sorted(changed.items()):
            for folder in (
                sorted(folders, key=list(self._commits.pins).index) if folders <= self._commits.pins.keys() else folders
            ):
                for relation, rows in self._changed(version, folder, held):
                    wanted = rows if unchanged else rows.filter(pc.not_equal(rows[OP].cast(pa.string()), "="))
                    if wanted.num_rows:
                        yield version, relation, wanted

    def _changed(
        self, version: int, folder: str, held: dict[str, tuple[str, pa.Table]]
    ) -> Iterator[tuple[str, pa.Table]]:
        """The rows of a version in a table, file by file."""

        def pin() -> Pin | None:
            return self._commits.pins.get(folder)

        def look() -> None:
            self._look()
            self._row(version)  # raises if the version is no longer kept

        relation, found = repeated(self._path, lambda: self._rows_changed(version, folder, pin(), held), pin, look)
        for rows in found:
            yield relation, rows.drop_columns([VERSION])

    def _rows_changed(
        self, version: int, folder: str, pin: Pin | None, held: dict[str, tuple[str, pa.Table]]
    ) -> tuple[str, list[pa.Table]]:
        if pin is None:
            raise damaged(self._folder(folder), "it is missing")
        found: list[pa.Table] = []
        for part in self._log(pin).every:
            if not part.snapshot and part.first <= version <= part.last:
                if held.get(folder, ("",))[0] != part.path:
                    held[folder] = part.path, read_rows(self._folder(folder), part, pin.columns)
                rows = held[folder][1]
                found.append(rows if part.first == part.last else rows.filter(pc.equal(rows[VERSION], version)))
        return pin.relation, found

    def _pin(self, version: int, name: str) -> Pin:
        self._row(version, before=True)
        for folder in self._commits.folders_of.get(name, ()):
            pin = self._commits.pins[folder]
            if pin.is_of(version):
                return pin
        raise KeyError(name)

    def _log(self, pin: Pin) -> TableLog:
        """The checked log of a table up to where it is pinned."""
        folder = self._folder(pin.folder)
        log = self._logs.get(pin.folder)
        if log is None or log.folder != folder or log.base != pin.base or log.delta > pin.delta:
            log = TableLog.read(folder, pin.base, pin.delta)
        elif log.delta < pin.delta:
            log = log.copy()
            log.read_to(pin.delta)
        if log.checksum != pin.checksum:
            raise damaged(log.wrong(), "its checksum is wrong")
        self._logs[pin.folder] = log
        return log

    def _parts(self, pin: Pin, version: int) -> list[Part]:
        """The data files in the order in which they are read: those of the snapshot, then changes by version."""
        every = self._log(pin).every
        start = max((part.first for part in every if part.snapshot and part.first <= version), default=0)
        whole = [part for part in every if part.snapshot and part.first == start]
        return [*whole, *(part for part in every if not part.snapshot and part.last > start and part.first <= version)]

    def _loaded(self, tasks: Sequence[Callable[[], pa.Table]], parts: Sequence[Part]) -> Iterator[pa.Table]:
        """Reads files in order, a few ahead."""
        if len(tasks) < 2 or sum(part.rows for part in parts) < _SMALL_ROWS:
            for task in tasks:
                yield task()
            return
        running: deque[Future[pa.Table]] = deque()
        try:
            for task in tasks:
                running.append(self._pool().submit(task))
                if len(running) > _AHEAD:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            wait(running)  # before their files are closed

    def _folder(self, folder: str) -> Location:
        return place(self._path, RELATIONS) / folder


def _existing(file: Location) -> None:
    if not exists(file):
        raise damaged(file, "it is missing")


def program_name(text: bytes) -> str:
    """The name of the file of a program, which is a checksum of its text."""
    return f"{hashlib.sha256(text).hexdigest()}.dl"
