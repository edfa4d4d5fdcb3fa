"""The store: versions of a set of relations, durable and all or nothing."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from evermat.core import EvermatError
from evermat.store.attempt import table_name
from evermat.store.bucket_writer import in_time
from evermat.store.chunked_write import Pieces, surely_empty
from evermat.store.commits import Row
from evermat.store.data_files import Columns, Part, stored_columns
from evermat.store.delta_table import all_mergeable
from evermat.store.directory import (
    PROGRAMS,
    RELATIONS,
    WRITTEN_FORMAT,
    StateLock,
    check_free,
    check_writable_path,
    new_folder,
    place,
    read_format,
    take_lock,
    wrong_format,
)
from evermat.store.disk import TEMPORARY, names, remove, remove_all, writing
from evermat.store.formats.format_2 import program_name
from evermat.store.intent import INTENTS
from evermat.store.location import Location, ObjectPath, resolved
from evermat.store.migration import finish_migration, migrate
from evermat.store.names import folder_name
from evermat.store.retention import DEFAULT, Keep
from evermat.store.version import Entry, Version
from evermat.store.writer import Job, Writer

_MANY_ROWS = 10_000  # rows of changes that are worth a new snapshot
_WRITABLE = (1, WRITTEN_FORMAT)  # the formats of states that can be written to
_TIDY_EVERY = 16  # versions after which tables are looked for that no version needs


class Store(Writer):
    """Versions of a set of relations in one folder.

    A store that was opened reads one newest version, the one that it *saw*, whatever other writers commit meanwhile;
    `refresh` sees newer ones. Only the writer, which holds the lock, commits, and only changes of the newest version. A
    store belongs to one thread.

    >>> with Store.create("state") as store:              # doctest: +SKIP
    ...     store.commit(entry, {"edge": rows}, {"edge": schema})
    """

    def __init__(self, path: Location, target: Location | None = None, lock: StateLock | None = None) -> None:
        super().__init__(path, target, lock)
        self._schemas: dict[str, tuple[pa.Schema, Columns]] = {}
        self._known: Mapping[str, pa.Schema] | None = None  # the schemas of the last version
        self._just_changed: list[str] = []  # the relations that the last version changed
        self._gone: list[str] = []  # tables that no version needs

    @classmethod
    def create(cls, path: str | os.PathLike[str] | Location) -> Self:
        """A new locked state, which becomes visible at `path` with its first version."""
        target = resolved(path)
        check_free(target)
        if isinstance(target, ObjectPath):
            check_writable_path(target)
            return cls(target, None, take_lock(target))
        temporary, lock = new_folder(target)
        return cls(temporary, target, lock)

    @classmethod
    def open(cls, path: str | os.PathLike[str] | Location) -> Self:
        """A state to read; readers take no lock."""
        directory = resolved(path)
        if (found := read_format(directory)) != WRITTEN_FORMAT:
            raise wrong_format(directory, found, [WRITTEN_FORMAT])
        store = cls(directory)
        store.refresh()
        return store

    @classmethod
    def open_to_write(cls, path: str | os.PathLike[str] | Location) -> Self:
        """A locked state at its newest version; one of an older format is migrated first.

        Raises:
            StateError: it is not a state directory, another writer has locked it, or it is damaged.
            ResourceError: the disk is full or not writable; nothing has changed.
        """
        directory = resolved(path)
        known = [WRITTEN_FORMAT] if isinstance(directory, ObjectPath) else _WRITABLE
        if (found := read_format(directory)) not in known:
            raise wrong_format(directory, found, known)
        store = cls(directory, lock=take_lock(directory))
        try:
            if isinstance(directory, Path) and read_format(directory) != WRITTEN_FORMAT:
                # Again, for another writer may just have done it.
                migrate(directory)
            store.lock()
            store.refresh()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Releases the lock, and deletes a new state without a version."""
        super().close()
        if self._lock is not None:
            if self._target is not None and self._lock.is_held:
                with suppress(OSError, EvermatError):
                    remove_all(self._path)
            self._lock.release()
            self._lock = None

    def _recover(self) -> None:
        if isinstance(self._path, Path):
            with writing(self._path):
                finish_migration(self._path)
        super()._recover()

    # --- versions ------------------------------------------------------------------------------------------
    def keep(self, keep: Keep | None) -> None:
        """Has the next version, and those after it, keep so many versions; None changes nothing."""
        self._keep = keep or self._keep

    @in_time
    def commit(
        self,
        entry: Entry,
        changes: Mapping[str, Pieces],
        schemas: Mapping[str, pa.Schema],
        dropped: Collection[str] = (),
    ) -> Version:
        """Commits one version, all or nothing; when this returns it survives a power loss.

        Args:
            entry: The description of the version.
            changes: For each changed relation its rows: the fact columns, in the order of the schema, `_origin`,
                `_op` and, where they are kept, `_nonrecursive` and `_recursive`. A fact is in one row at most.
                They are a table, or an iterable of such tables, of which only a few are held at a time: this thread
                pulls them once, one after the other. If it raises, the error is passed on and nothing is committed.
            schemas: The fact columns of all relations of the program; a relation without facts has a table too.
            dropped: Relations that no longer exist. Their deleted facts should be among `changes`, so that they are in
                the change feed. A relation in `schemas` too begins empty, as does one with other types.

        Raises:
            StateError: Another writer has committed since this store was refreshed, or the state is damaged.
            ResourceError: The disk is full or not writable; the newest version is what it was.
        """
        self.check_newest()
        number = self._seen + 1
        same = schemas is self._known and not dropped
        jobs = self._changes(changes) if same else self._jobs(changes, schemas, dropped)
        last = self._commits.newest
        keep = self._keep or (Keep.of(last.keep) if last is not None else DEFAULT)
        now = datetime.now(UTC)
        oldest = 1 if last is None else self._oldest(keep, last.oldest, number, now)
        row = Row.of(entry, number, now, self._program_file(entry.program), oldest, keep.text)
        tidy = number % _TIDY_EVERY == 0
        gone = self._no_longer_needed(oldest) if tidy else []
        self._known = None
        self._write(jobs, row, gone=gone, program=entry.program)
        self._known = schemas
        self._just_changed = [job.relation for job in jobs if not job.died]
        if tidy:
            self._remove_tables(gone)
        return self.latest

    def _program_file(self, text: str) -> str:
        """The name of the file of a program; in a bucket, where others may delete theirs, that of the last version or a new one."""
        name, last = program_name(text.encode()), self._commits.newest
        if not isinstance(self._path, ObjectPath):
            return name
        checksum = name.removesuffix(".dl")
        if last is not None and last.program.startswith(checksum):
            return last.program
        return f"{checksum}-{self._attempt}.dl"

    def _changes(self, changes: Mapping[str, Pieces]) -> list[Job]:
        """Changes of the same relations as in the version before."""
        jobs = []
        for name, rows in changes.items():
            if not surely_empty(rows):
                pin = self._pin(self._seen, name)
                jobs.append(Job(name, pin.folder, pin.columns, rows, pin))
        return jobs

    def _jobs(
        self, changes: Mapping[str, Pieces], schemas: Mapping[str, pa.Schema], dropped: Collection[str]
    ) -> list[Job]:
        """Changes of relations, some of which may be new or dropped."""
        pins = self._commits.pins
        before = {pin.relation: pin for pin in pins.values() if pin.is_of(self._seen)}
        unknown = [*(changes.keys() - schemas.keys() - set(dropped)), *(before.keys() - schemas.keys() - set(dropped))]
        if unknown:
            raise ValueError(f"`{unknown[0]}` is neither a relation of the program nor dropped")
        jobs: list[Job] = []
        in_bucket = isinstance(self._path, ObjectPath)
        taken = {*pins} if in_bucket else {*pins, *names(place(self._path, RELATIONS))}
        for name, schema in schemas.items():
            columns = self._columns(name, schema)
            old, rows = before.get(name), changes.get(name)
            if old is not None and (name in dropped or old.columns != columns):
                jobs.append(Job(name, old.folder, old.columns, None, old, died=True))
                old = None
            if old is None:
                folder = folder_name(name, taken)
                if in_bucket:
                    folder = table_name(folder, self._seen + 1)
                taken.add(folder)
                jobs.append(Job(name, folder, columns, rows, None))
            elif not surely_empty(rows):
                jobs.append(Job(name, old.folder, columns, rows, old))
        for name in dropped:
            if name in before and name not in schemas:
                old = before[name]
                jobs.append(Job(name, old.folder, old.columns, changes.get(name), old, died=True))
        return jobs

    def _columns(self, name: str, schema: pa.Schema) -> Columns:
        """The stored columns of a relation, cached: computing them for thousands of relations takes time."""
        known = self._schemas.get(name)
        if known is None or not (known[0] is schema or known[0].equals(schema)):
            known = self._schemas[name] = (schema, stored_columns(schema))
        return known[1]

    @in_time
    def compact(self, snapshots: Mapping[str, Pieces], counters: Any) -> None:
        """Writes snapshots of relations, from which the newest version is read faster; its facts stay the same.

        Args:
            snapshots: For each relation all its rows in the newest version, as for `commit`.
            counters: The version's counters from now on.
        """
        self.check_newest()
        self._merge_changes(snapshots)
        last = self._row(self._seen)
        jobs = []
        for name, rows in snapshots.items():
            pin = self._pin(self._seen, name)
            if self._log(pin).live:
                jobs.append(Job(name, pin.folder, pin.columns, rows, pin, snapshot=True))
        self._write(jobs, replace(last, kind="compaction", counters=counters, complete=False))

    def _merge_changes(self, names: Iterable[str]) -> None:
        """Has each relation's changes since its last snapshot in one file: old versions need them as long as they are kept."""
        pins = [self._pin(self._seen, name) for name in names]
        jobs = [
            Job(pin.relation, pin.folder, pin.columns, None, pin, rewrite=True)
            for pin in pins
            if all_mergeable(self._log(pin).current)
        ]
        if jobs:
            self._write(jobs, replace(self._row(self._seen), kind="compaction", complete=False))

    def outgrown(self) -> list[str]:
        """The relations that the last version changed and that have so many changes that reading them takes notably longer."""
        return [name for name in self._just_changed if self.needs_snapshot(name)]

    def needs_snapshot(self, name: str) -> bool:
        """Whether a relation has so many changes that reading it takes notably longer."""
        whole, changes = self._snapshot_and_changes(name)
        return sum(part.rows for part in changes) > max(_MANY_ROWS, sum(part.rows for part in whole) // 2)

    def _snapshot_and_changes(self, name: str) -> tuple[list[Part], list[Part]]:
        parts = self._parts(self._pin(self._seen, name), self._seen)
        first = [part for part in parts if part.last == parts[0].last]
        return first, parts[len(first) :]

    # --- what is no longer kept ----------------------------------------------------------------------------
    @in_time
    def vacuum(self, keep: int | str | Keep) -> tuple[int, int]:
        """Keeps the newest versions, deletes all files that they do not need, and returns their number and bytes."""
        keep = keep if isinstance(keep, Keep) else Keep.of(keep)
        self.check_newest()
        last = self._row(self._seen)
        # A disk that is full has room again without the files that nothing needs.
        first = self._sweep(last.oldest)
        oldest = self._oldest(keep, last.oldest, last.version, datetime.now(UTC), exactly=True)
        row = replace(last, kind="vacuum", oldest=oldest, complete=False)
        gone = self._no_longer_needed(oldest)
        jobs = [
            Job(pin.relation, folder, pin.columns, None, pin, rewrite=True)
            for folder, pin in self._commits.pins.items()
            if folder not in gone and len(self._log(pin).every) > 1
        ]
        replaced = self._write(jobs, row, gone=gone, tidy=True)
        with writing(self._path):
            sizes = [size for file in replaced for size in remove(file)]
            for table in self._tables.values():
                table.garbage.clear()
            count, size = self._sweep(oldest)
        return first[0] + len(sizes) + count, first[1] + sum(sizes) + size

    def _sweep(self, oldest: int) -> tuple[int, int]:
        """Deletes what no version needs, whichever writer left it; returns the number of files and bytes."""
        count = size = 0
        pins = self._commits.pins
        with writing(self._path):
            relations = place(self._path, RELATIONS)
            programs = {row.program for row in self._commits.rows() if row.version >= oldest - 1}
            found = [
                self._remove_unknown(relations, lambda name: name not in pins),
                self._remove_unknown(self._path / PROGRAMS, lambda name: name not in programs),
            ]
            for folder, pin in pins.items():
                found.append(self._sweep_table(relations / folder, {part.path for part in self._log(pin).every}))
            if isinstance(self._path, ObjectPath):
                found.append(
                    self._remove_unknown(
                        self._commits.folder / INTENTS, lambda name: name.isdigit() and int(name) <= self._commits.entry
                    )
                )
            found.append(self._sweep_table(self._commits.folder, {part.path for part in self._commits.log.every}))
        for files, total in found:
            count, size = count + files, size + total
        return count, size

    def _sweep_table(self, folder: Location, needed: set[str]) -> tuple[int, int]:
        ends = (".parquet", TEMPORARY)
        return self._remove_unknown(folder, lambda name: name.endswith(ends) and name not in needed)

    def _oldest(self, keep: Keep, oldest: int, number: int, now: datetime, *, exactly: bool = False) -> int:
        """The oldest version to keep once there is a newest one of a number, given the one that is kept until now."""
        if keep.count is not None:
            return max(oldest, number - keep.count + 1)
        if not exactly and number % _TIDY_EVERY:
            return oldest
        times = {row.version: row.time for row in self._commits.rows() if row.version >= oldest}
        return max(oldest, keep.oldest(sorted(times.items()), now))

    def _no_longer_needed(self, oldest: int) -> list[str]:
        """The tables that no version from the one before `oldest` on has, nor changes."""
        return [pin.folder for pin in self._commits.pins.values() if pin.died is not None and pin.died < oldest]

    def _remove_tables(self, gone: list[str]) -> None:
        """Deletes the tables that were not needed some versions ago; the next ones later, for they may just be read."""
        before, self._gone = self._gone, gone
        with suppress(OSError, EvermatError):
            for folder in before:
                if isinstance(self._path, ObjectPath):
                    self._remove_unknown(self._folder(folder), lambda _: True)
                else:
                    remove_all(self._folder(folder))
