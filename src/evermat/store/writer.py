"""Writes a version to a state atomically: all of it becomes durable with one row, or, after a failure, none of it.

Data files are written first, then log entries, and the row, which makes the version, only when all of these are on
the disk. A failed write is undone by its writer or, after a crash, by the next writer.

A crash between a relation's log entry and the row that pins it leaves entries that no version pins. Readers never see
them. They must be undone before the next version, which would otherwise seem to include their rows. A complete entry may
have been read by another Delta reader, and entries never change once they can be read: so it is undone by one more
entry. An incomplete entry, which only a power loss leaves, is not readable and is deleted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from evermat.core import EvermatError, Problem, StateError, uninterrupted
from evermat.core import error_catalogue as errors
from evermat.store.chunked_write import Order, Pieces, write_rows
from evermat.store.commits import Commits, Pin, Row, commit_writer
from evermat.store.data_files import Columns, delta_fields
from evermat.store.delta_log import Log, Part, entry_file, entry_numbers, whole_entry
from evermat.store.delta_table import TableWriter
from evermat.store.directory import COMMITS, PROGRAMS, RELATIONS, publish, take_lock
from evermat.store.disk import names, put, sync, writing
from evermat.store.formats.format_1 import Reader

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Job:
    """Rows for one table: its folder, and the files that they replace."""

    relation: str
    folder: str
    columns: Columns
    rows: Pieces | None
    before: Pin | None
    replaced: tuple[Part, ...] = ()
    kept: tuple[Part, ...] = ()  # if some are replaced: all others
    dropped: bool = False

    def changes(self, parts: Sequence[Part]) -> bool:
        """Whether a log entry is needed if the rows became these files: pieces may turn out to be empty."""
        return bool(parts or self.replaced or self.before is None)


class Writer(Reader):
    """A reader that may become the one writer of its state, by the lock.

    The version that it saw, and that the next one changes, must be the newest one.
    """

    def __init__(self, path: Path, target: Path | None = None, lock: int | None = None) -> None:
        super().__init__(path, target)
        self._lock = lock
        self._clean = lock is not None  # nothing of a crash is left
        self._writers: dict[str, TableWriter] = {}
        self._tidier = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-tidy")
        self._tidying: list[Future[None]] = []

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
        self._wait_for_tidying()
        if self._lock is not None and self._target is None:
            os.close(self._lock)
            self._lock = None

    def _recover(self) -> None:
        """Brings every table back to where the newest version pins it."""
        self._wait_for_tidying()
        self._logs.clear()
        self._writers.clear()
        commits = self._commits = Commits.read(self._path / COMMITS)
        with writing(self._path):
            if commits.torn is not None:
                entry_file(commits.folder, commits.torn).unlink()
                sync(entry_file(commits.folder, commits.torn).parent)
            sync(entry_file(commits.folder, commits.entry))  # which a crash may have prevented
            commits.complete()
            newest = commits.last
            for pin in newest.pins.values():
                numbers = entry_numbers(self._folder(pin.folder))
                if numbers and numbers[-1] > pin.delta:
                    _undo(self._writer(pin.folder, pin.columns), self._log(pin), pin.delta)
            known = {pin.folder for pin in newest.pins.values()}.union(newest.retired_folders)
            relations = self._path / RELATIONS
            for folder in [name for name in names(relations) if name not in known]:
                shutil.rmtree(relations / folder)
        self._logs.clear()
        self._clean = True

    def check_newest(self) -> None:
        """Raises an error unless the state is locked by this writer and its newest version is the one that it saw."""
        if self._lock is None:
            raise RuntimeError("lock the state before writing to it")
        if self._target is not None:
            return
        if not self._clean:
            self._recover()
        if entry_file(self._commits.folder, self._commits.entry + 1).exists():
            self._commits = Commits.read(self._commits.folder)
        if self._commits.last.version != self._seen:
            details = {"path": self.path, "found": self._commits.last.version, "seen": self._seen}
            raise StateError(Problem(errors.STATE_MOVED, details))

    # --- all or nothing ------------------------------------------------------------------------------------
    def _write(
        self,
        jobs: list[Job],
        row: Row,
        pins: Mapping[str, Pin | None],
        retired: list[str],
        program: str | None,
        *,
        keep: int | None = None,
    ) -> None:
        """Writes files, log entries and at last the row, each durable before the next begins."""
        entries = {self._folder(job.folder): self._writer(job.folder, job.columns).newest + 1 for job in jobs}
        try:
            if program is not None:
                self._write_program(row.program, program)
            made, syncs = self._write_tables(jobs, row.version)
            with uninterrupted():
                complete = {name: made.get(name, pin) for name, pin in pins.items()} | made
                unused = [job.folder for job in jobs if job.dropped and job.relation not in made]
                row = row.with_pins({n: pin for n, pin in complete.items() if pin is not None}, [*retired, *unused])
                self._commits.append(self._commit_writer(), row, partial(self._make_durable, syncs), keep=keep)
                if self._target is not None:
                    self._publish()
                self._seen = row.version
        except BaseException:
            self._abandon(row, entries)
            raise
        for writer in [self._commit_writer(), *(self._writer(job.folder, job.columns) for job in jobs)]:
            self._tidying.append(self._tidier.submit(writer.tidy))

    def _write_tables(self, jobs: list[Job], version: int) -> tuple[dict[str, Pin], list[Callable[[], None]]]:
        """Writes the rows and the log entries; returns the new pins, and what makes it all durable."""
        writers = {job.folder: self._writer(job.folder, job.columns) for job in jobs}
        for job in jobs:
            if job.before is not None:
                self._log(job.before)  # checks it: a damaged log must not get a new checksum
        orders = [
            Order(self._folder(job.folder), writers[job.folder].newest + 1, version, job.columns, job.rows)
            for job in jobs
        ]
        written = zip(jobs, write_rows(self._pool, orders, self.path), strict=True)
        changed = [(job, parts) for job, parts in written if job.changes(parts)]
        self._wait_for_tidying()  # a checkpoint must not include an entry that no version pins yet
        # An entry that replaces files states the whole contents, so that nothing before it need be read.
        entries = self._all(
            [partial(writers[job.folder].write, [*job.kept, *parts], job.replaced) for job, parts in changed]
        )
        pins = {job.relation: self._new_pin(job, n, version) for (job, _), n in zip(changed, entries, strict=True)}
        return pins, [partial(writers[job.folder].sync, parts) for job, parts in changed]

    def _make_durable(self, syncs: list[Callable[[], None]]) -> None:
        self._all(syncs)
        with writing(self.path):
            sync(self._path / RELATIONS)

    def _new_pin(self, job: Job, entry: int, version: int) -> Pin:
        old = job.before
        compacted = bool(job.replaced)
        base = entry if compacted or old is None else old.base
        if compacted:
            self._logs.pop((job.folder, base), None)
        log = self._logs.setdefault((job.folder, base), Log(self._folder(job.folder), base))
        changed = old.changed if compacted and old is not None else version
        return Pin(job.folder, base, entry, log.checksum(entry), changed, job.columns, dropped=job.dropped)

    def _write_program(self, name: str, text: str) -> None:
        file = self._path / PROGRAMS / name
        raw = text.encode()
        with writing(file):
            if not file.exists() or file.read_bytes() != raw:
                put(file, raw)

    def _publish(self) -> None:
        assert self._target is not None
        with writing(self.path):
            sync(self._path)
        publish(self._path, self._target)
        entry = self._commits.entry
        self._path, self._target = self._target, None
        self._writers.clear()
        self._logs.clear()
        self._commits = Commits.read(self._path / COMMITS)
        assert self._commits.entry == entry

    def _abandon(self, row: Row, entries: Mapping[Path, int]) -> None:
        """Undoes a failed write: first the rows are deleted, so that a full disk has room to undo the log entries."""
        if self._target is not None:  # nothing is visible yet; begin again from nothing
            for name in (COMMITS, RELATIONS, PROGRAMS):
                shutil.rmtree(self._path / name, ignore_errors=True)
                with suppress(OSError):
                    (self._path / name).mkdir()
            self._commits = Commits(self._path / COMMITS)
            self._logs.clear()
            self._writers.clear()
            return
        self._clean = False
        with suppress(EvermatError, OSError):
            if row.kind == "version" and Commits.read(self._path / COMMITS).last.version >= row.version:
                return
            for folder, entry in entries.items():
                home = folder / f"_version={row.version}"
                for file in home.glob(f"{entry}-*.parquet"):
                    file.unlink()
                with suppress(OSError):  # after a compaction it still has the files of the version
                    home.rmdir()
            self._recover()

    def _all(self, tasks: Sequence[Callable[[], _T]]) -> list[_T]:
        """Runs tasks side by side and waits for all of them, also when one fails."""
        futures = [self._pool.submit(task) for task in tasks]
        wait(futures)
        return [future.result() for future in futures]

    def _writer(self, folder: str, columns: Columns) -> TableWriter:
        if folder not in self._writers:
            self._writers[folder] = TableWriter(self._folder(folder), delta_fields(columns), partitioned=True)
        return self._writers[folder]

    def _commit_writer(self) -> TableWriter:
        if "" not in self._writers:  # no relation's folder is called that
            self._writers[""] = commit_writer(self._path / COMMITS)
        return self._writers[""]

    def _wait_for_tidying(self) -> None:
        wait(self._tidying)
        self._tidying.clear()


def _undo(writer: TableWriter, log: Log, pinned: int) -> None:
    """Brings a table back to the contents that it had after the entry `pinned`, up to which `log` was checked."""
    table = writer.folder
    for number in [n for n in entry_numbers(table) if n > pinned]:
        if whole_entry(entry_file(table, number)) is None:
            for rest in [n for n in reversed(entry_numbers(table)) if n >= number]:
                entry_file(table, rest).unlink()
            sync(entry_file(table, number).parent)
            break
    writer.newest = entry_numbers(table)[-1]
    if writer.newest == pinned:
        return
    wanted = {part.path: part for part in log.parts(pinned)}
    present = {part.path: part for part in log.parts(writer.newest)}
    added = [part for path, part in wanted.items() if path not in present]
    removed = [part for path, part in present.items() if path not in wanted]
    if added or removed:
        writer.write(added, removed)
        writer.sync([])
