"""Writes a version to a state atomically: all of it becomes durable with one row, or, after a failure, none of it.

Data files are written first, and log entries under temporary names. When these are on the disk the entries get their
names, and when that is durable the entry of the row, which makes the version. Only then is deleted what is no longer
needed. A failed write is undone by its writer or, after a crash, by the next writer.

A crash between a relation's log entry and the row that pins it leaves entries that no version pins. Readers never see
them. They must be undone before the next version, which would otherwise seem to include their rows. Another Delta reader
may have read such an entry, and entries never change once they can be read: so it is undone by one more entry, and the
next entry begins a new checksum with a checkpoint.

The module is long because a write and how it is undone are read together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from evermat.core import EvermatError, Problem, StateError, uninterrupted
from evermat.core import error_catalogue as errors
from evermat.store.attempt import new_attempt
from evermat.store.bucket_writer import decided, read_completed, remove_failed
from evermat.store.chunked_write import Order, Pieces, write_rows
from evermat.store.commits import FIELDS, Commits, Pin, Row, encoded, merged_rows, write_witness
from evermat.store.data_files import Columns, Part, PartName, delta_fields, table_schema, write_part
from evermat.store.delta_log import LOG, Action, TableLog, entry_file
from evermat.store.delta_table import Staged, TableWriter, all_mergeable, mergeable
from evermat.store.directory import COMMITS, MARK, PROGRAMS, RELATIONS, StateLock, place, publish, take_lock
from evermat.store.disk import (
    exists,
    mkdir,
    names,
    put,
    read,
    refuse_links,
    remove,
    remove_all,
    remove_together,
    sync,
    temporary_of,
    unlink,
    writing,
)
from evermat.store.formats.format_2 import Reader
from evermat.store.intent import complete
from evermat.store.location import Location, ObjectPath
from evermat.store.recovery import remove_temporaries, undo
from evermat.store.retention import Keep

_MANY_SYNCS = 64  # with more files than this it is faster to let threads wait for the disk


@dataclass(frozen=True, slots=True)
class Job:
    """Rows for one table: all facts as of the newest version if it is a snapshot, otherwise the changes of a new version."""

    relation: str
    folder: str
    columns: Columns
    rows: Pieces | None
    before: Pin | None
    snapshot: bool = False
    died: bool = False
    rewrite: bool = False  # merges what can be merged


class Writer(Reader):
    """A reader that may become the one writer of its state, by the lock.

    The version that it saw, and that the next one changes, must be the newest one.
    """

    def __init__(self, path: Location, target: Location | None = None, lock: StateLock | None = None) -> None:
        super().__init__(path)
        self._target = target  # the path that a new state gets with its first version
        self._lock = lock
        self._clean = target is not None  # nothing of a crash is left
        self._tables: dict[str, TableWriter] = {}
        self._undone: dict[str, int] = {}  # tables with entries that no version pins, and the last of these
        self._made: list[Location] = []  # by a write that is not complete
        self._keep: Keep | None = None  # from the next version on
        self._attempt = ""  # in a bucket: the name of this writer's attempt to write the next entry

    @property
    def path(self) -> Location:
        """The path of the state, which a new one gets with its first version."""
        return self._target or self._path

    # --- who may write -------------------------------------------------------------------------------------
    def lock(self) -> None:
        """Becomes the writer, and undoes the remains of a crash; does nothing if it is the writer already."""
        if self._lock is None:
            self._lock = take_lock(self._path)
            self._clean = False
        if not self._clean:
            self._recover()

    @property
    def locked(self) -> bool:
        return self._lock is not None

    def unlock(self) -> None:
        """Stops being the writer but stays a reader."""
        if self._lock is not None and self._target is None:
            self._lock.release()
            self._lock = None

    def _recover(self) -> None:
        """Brings every table back to where the newest version pins it, and removes what a crash left."""
        self._logs.clear()
        self._tables.clear()
        self._undone.clear()
        if isinstance(self._path, ObjectPath):
            self._commits = read_completed(self._path)
            self._clean = True
            return
        commits = self._commits = Commits.read(place(self._path, COMMITS))
        own = [place(self._path, COMMITS), place(self._path, RELATIONS), self._path / PROGRAMS]
        refuse_links([*own, own[0] / LOG])
        tables = [self._folder(pin.folder) for pin in commits.pins.values()]
        refuse_links([*tables, *(table / LOG for table in tables)])
        with writing(self._path):
            remove_temporaries(commits.folder)
            sync(entry_file(commits.folder, commits.entry).parent)  # which a crash may have prevented
            write_witness(commits.folder, commits.entry)
            for pin in commits.pins.values():
                found = remove_temporaries(self._folder(pin.folder))
                if found > pin.delta:
                    self._undone[pin.folder] = undo(self._folder(pin.folder), self._log(pin), found)
            self._remove_unknown(self._path / PROGRAMS, lambda name: not name.endswith(".dl"))
            relations = place(self._path, RELATIONS)
            self._remove_unknown(relations, lambda name: name not in commits.pins)
        self._clean = True

    def _remove_unknown(self, folder: Location, unknown: Callable[[str], bool]) -> tuple[int, int]:
        """Removes what is in a folder but unknown; returns the number of files and bytes."""
        if isinstance(folder, ObjectPath):
            return remove_failed(folder, unknown, self._commits)
        sizes = [
            size
            for name in (() if folder.is_symlink() else names(folder))
            if unknown(name)
            for size in remove(folder / name)
        ]
        return len(sizes), sum(sizes)

    def check_newest(self) -> None:
        """Raises an error unless the state is locked by this writer and its newest version is the one that it saw."""
        if self._lock is None:
            raise RuntimeError("lock the state before writing to it")
        if self._is_new:
            self._begin_attempt()
            return
        if not self._clean:
            self._recover()
        if exists(entry_file(self._commits.folder, self._commits.entry + 1)):
            self._look()
        if self._commits.last.version != self._seen:
            details = {"path": self.path, "found": self._commits.last.version, "seen": self._seen}
            raise StateError(Problem(errors.STATE_MOVED, details))
        self._begin_attempt()

    @property
    def _is_new(self) -> bool:
        """Whether there is no version yet."""
        return self._target is not None or self._commits.newest is None

    def _begin_attempt(self) -> None:
        """Names what is written from now on."""
        if isinstance(self._path, ObjectPath):
            self._attempt = new_attempt(self._commits.entry + 1)
            for table in self._tables.values():
                table.writer = self._attempt

    # --- all or nothing ------------------------------------------------------------------------------------
    def _write(
        self, jobs: Sequence[Job], row: Row, *, gone: Iterable[str] = (), program: str | None = None, tidy: bool = False
    ) -> list[Location]:
        """Writes files, log entries and at last the row; returns files that may be deleted now, as `tidy` does later.

        `gone` are tables that no kept version needs.
        """
        now = time.time_ns() // 1_000_000
        self._clean = False  # until all is done: what is known of tables may not be what is on the disk
        try:
            written = self._write_rows(jobs, row.version)
            with writing(self.path):
                if program is not None:
                    self._write_program(row.program, program)
                staged, row = self._stage(jobs, written, row, now)
                dropped = dict.fromkeys(gone)
                row = replace(row, tables={**row.tables, **dropped})
                head, part, row = self._stage_row(row, now, whole=tidy)
                with uninterrupted():
                    if isinstance(self._path, ObjectPath):
                        self._commit_in_bucket(self._path, staged, head, row)
                    else:
                        self._make_durable(staged, head)
                    if self._target is not None:
                        self._publish()
                    self._adopt(head, part, row)
        except BaseException:
            self._abandon()
            raise
        garbage = self._garbage([*staged, head])
        self._clean = True
        return garbage

    def _commit_in_bucket(self, path: ObjectPath, staged: Sequence[Staged], head: Staged, row: Row) -> None:
        """Has the version decided, and makes it visible; from then on nothing that was written for it is deleted."""
        made, self._made = self._made, []
        try:
            intent = decided(path, self._attempt, staged, head, row, self._pool().map)
        except (StateError, OSError):  # others were first, or nothing was decided
            self._made = made
            raise
        complete(path, path / MARK, head.log.delta, intent, self._pool().map)

    def _write_rows(self, jobs: Sequence[Job], version: int) -> list[list[tuple[Part, pa.Table]]]:
        """Writes the rows of each job to files."""
        orders = []
        for job in jobs:
            table = self._table(job)
            name = PartName(table.log.delta + 1, version, version, 0, job.snapshot, self._attempt)
            orders.append(Order(table.folder, name, job.columns, job.rows))
        return write_rows(self._pool, orders, self.path, self._made)

    def _stage(
        self, jobs: Sequence[Job], written: list[list[tuple[Part, pa.Table]]], row: Row, now: int
    ) -> tuple[list[Staged], Row]:
        """Writes, under temporary names, the log entries; returns these and the row with its pins."""
        base = row.oldest - 1
        staged: list[Staged] = []
        pins: dict[str, Pin | None] = {}
        changed = []
        for job, files in zip(jobs, written, strict=True):
            table, parts = self._table(job), [part for part, _ in files]
            if job.snapshot and not parts:
                name = PartName(table.log.delta + 1, row.version, row.version, 0, snapshot=True, writer=self._attempt)
                parts = [self._write_part(table.folder, name, 0, table_schema(job.columns).empty_table())]
            action = self._action(job, table, parts, base)
            if action is None and job.before is not None:
                if job.died:
                    pins[job.folder] = replace(job.before, died=row.version)
                continue
            for part, rows in files:
                table.hold(part, rows)
            self._made.append(temporary_of(entry_file(table.folder, table.log.delta + 1)))
            staged.append(table.stage(action or Action(), now))
            log = staged[-1].log
            born = row.version if job.before is None else job.before.born
            died = row.version if job.died else None if job.before is None else job.before.died
            relation = job.relation if job.before is None else job.before.relation
            pins[job.folder] = Pin(relation, job.folder, log.base, log.delta, log.checksum, job.columns, born, died)
            if parts and not job.snapshot and not job.rewrite:
                changed.append(job.folder)
        return staged, replace(row, tables=pins, changed=tuple(changed))

    def _action(self, job: Job, table: TableWriter, parts: Sequence[Part], base: int) -> Action | None:
        """The changes of an entry; None if there are none."""
        log = table.log
        if job.snapshot:
            removed = log.current
            forgotten = table.unneeded(log.kept.values(), base, parts[0].first)
            unneeded = set(table.unneeded(removed, base, parts[0].first))
            return Action((), parts, removed, [p for p in removed if p not in unneeded], forgotten)
        if not parts and not job.rewrite:
            return None
        old = all_mergeable(log.current) if job.rewrite else table.due()
        merged = table.merge(old, job.columns, base, self._made) if old else []
        forgotten = table.unneeded(log.kept.values(), base)
        if not parts and not old and not forgotten:
            return None
        return Action(parts, merged, old, (), forgotten)

    def _stage_row(self, row: Row, now: int, *, whole: bool = False) -> tuple[Staged, Part, Row]:
        """Writes the row and, under a temporary name, the log entry that makes its version."""
        commits = self._commits
        table = self._commit_table()
        number = table.log.delta + 1
        current = table.log.current
        old = current if whole else mergeable(current)
        rearranged: list[Part] = []
        if old:
            first = row.oldest - 1
            needed = [part for part in old if part.last >= first]  # thousands of other rows would be read in vain
            rows = [found for part in needed for found in commits.rows_in(part)]
            rows = merged_rows(rows, first, commits.pins)
            level = min(max(part.level for part in old) + 1, 9)
            name = PartName(number, rows[0].version, rows[-1].version, level, writer=self._attempt)
            rearranged = [self._write_part(table.folder, name, 0, encoded(rows, None))]
        if commits.newest is None:
            row = replace(row, complete=True)
        name = PartName(number, row.version, row.version, writer=self._attempt)
        part = self._write_part(table.folder, name, 1, encoded([row], commits.newest))  # comes after the merged rows
        rest = [one for one in current if one not in old]
        removed = [*old]
        # The first row of the table must have all counters, as the first one of a merged file has.
        while rest and rest[0].last < row.oldest - 1 and (rest[1].level if len(rest) > 1 else rearranged):
            removed.append(rest.pop(0))
        self._made.append(temporary_of(entry_file(table.folder, number)))
        action = Action([part], rearranged, removed)
        staged = table.stage(action, now, lambda log: {"base": log.base, "chain": log.checksum})
        return staged, part, row

    def _write_part(self, folder: Location, name: PartName, number: int, rows: pa.Table) -> Part:
        part = write_part(folder, name, number, rows)
        self._made.append(folder / part.path)
        return part

    def _make_durable(self, staged: Sequence[Staged], head: Staged) -> None:
        """Gives the entries their names, each when all that it needs is on the disk."""
        self._sync_all([file for one in (*staged, head) for file in one.files])
        for one in staged:
            one.table.publish(one)
        folders = [folder for one in (*staged, head) for folder in (one.file.parent, one.table.folder)]
        if any(one.log.delta == 0 for one in staged) or head.log.delta == 0:
            folders += [place(self._path, RELATIONS), self._path]
        self._sync_all(folders)
        head.table.publish(head)
        try:
            sync(head.file.parent)
        except BaseException:
            unlink(head.file)  # it may not survive a power loss, so it is not committed
            raise
        write_witness(head.table.folder, head.log.delta)

    def _sync_all(self, paths: Sequence[Location]) -> None:
        if len(paths) > _MANY_SYNCS:
            list(self._pool().map(sync, paths))
        else:
            for path in paths:
                sync(path)

    def _adopt(self, head: Staged, part: Part, row: Row) -> None:
        self._commits.folder = head.log.folder = head.table.folder  # a new state has just got its name
        self._commits = self._commits.followed_by(head.log, part, row)
        self._seen = row.version
        self._made.clear()

    def _garbage(self, staged: Sequence[Staged]) -> list[Location]:
        """Goes on from the new entries, and deletes what earlier ones replaced; returns what these replaced."""
        found = [file for one in staged for file in one.table.adopt(one)]
        for one in staged:
            if one.table.name != COMMITS:
                self._logs[one.table.folder.name] = one.log
                self._undone.pop(one.table.folder.name, None)
        with suppress(OSError):
            remove_together(found)
        return [file for one in staged for file in one.table.garbage]

    def _write_program(self, name: str, text: str) -> None:
        file = self._path / PROGRAMS / name
        raw = text.encode()
        if name == self._program:
            return
        if not exists(file) or read(file) != raw:
            self._made.append(file if isinstance(file, ObjectPath) else temporary_of(file))
            put(file, raw)
        self._program = name

    _program = ""  # the last one that was surely written

    def _publish(self) -> None:
        assert isinstance(self._target, Path)
        assert isinstance(self._path, Path)
        sync(self._path)
        publish(self._path, self._target)
        old, path, self._target = self._path, self._target, None
        self._path = path
        for table in self._tables.values():
            assert isinstance(table.folder, Path)
            table.folder = path / table.folder.relative_to(old)
            table.log.folder = table.folder

    def _abandon(self) -> None:
        """Undoes a failed write: first the rows are deleted, so that a full disk has room to undo the log entries."""
        made, self._made = self._made, []
        self._program = ""
        if isinstance(self._path, ObjectPath):
            with suppress(OSError):
                remove_together(made)
            if self._is_new:
                self._logs.clear()
                self._tables.clear()
                self._commits = Commits.none(self._path / COMMITS)
            return
        if self._target is not None:  # nothing is visible yet; begin again from nothing
            self._logs.clear()
            self._tables.clear()
            self._commits = Commits.none(self._path / COMMITS)
            with suppress(OSError, EvermatError):
                for name in (COMMITS, RELATIONS, PROGRAMS):
                    remove_all(self._path / name)
                    mkdir(self._path / name)
            self._clean = True
            return
        with suppress(EvermatError, OSError):
            if Commits.read(place(self._path, COMMITS)).entry > self._commits.entry:
                return
            published = {folder for folder, pin in self._commits.pins.items() if self._is_ahead(pin)}
            for file in reversed(made):
                if file.parent.name not in published:
                    unlink(file)
            self._recover()

    def _is_ahead(self, pin: Pin) -> bool:
        return pin.folder in self._tables and entry_file(self._folder(pin.folder), pin.delta + 1).exists()

    # --- tables --------------------------------------------------------------------------------------------
    def _table(self, job: Job) -> TableWriter:
        """The writing side of a relation's table, whose log is checked: a damaged one must not get a new checksum."""
        table = self._tables.get(job.folder)
        if table is None:
            folder = self._folder(job.folder)
            log = TableLog(folder) if job.before is None else self._log(job.before).copy()
            table = TableWriter(folder, log, delta_fields(job.columns), job.relation, writer=self._attempt)
            if job.folder in self._undone:
                table.log.delta, table.begin_anew = self._undone[job.folder], True
            if job.before is not None:
                with writing(self.path):
                    table.find_garbage(self._commits.entry)
            self._tables[job.folder] = table
        return table

    def _commit_table(self) -> TableWriter:
        table = self._tables.get("")  # no relation's folder is called that
        if table is None:
            table = TableWriter(self._commits.folder, self._commits.log, FIELDS, COMMITS, writer=self._attempt)
            table.find_garbage(self._commits.entry)
            self._tables[""] = table
        return table
