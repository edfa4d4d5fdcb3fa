"""The store: versions of a set of relations, durable and all or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from evermat.errors import (
    NO_SUCH_VERSION,
    STATE_MOVED,
    STATE_UNREADABLE,
    VERSION_NOT_KEPT,
    EvermatError,
    Problem,
    StateError,
)
from evermat.interrupts import uninterrupted
from evermat.store.commits import Commits, Pin, Row, commit_writer
from evermat.store.disk import damaged, names, put, read, sync, writing
from evermat.store.log import Log, Part, entry_file, entry_numbers
from evermat.store.names import OP, folder_name
from evermat.store.pieces import Order, Pieces, none_given, write_rows
from evermat.store.place import (
    COMMITS,
    PROGRAMS,
    RELATIONS,
    check_free,
    check_state,
    move_into_place,
    new_folder,
    take_lock,
)
from evermat.store.recovery import left_overs, undo
from evermat.store.rows import Columns, delta_fields, fact_schema, read_rows, stored_columns
from evermat.store.table import TableWriter
from evermat.store.vacuum import sweep
from evermat.store.version import Entry, Version

_T = TypeVar("_T")

# So many files of changes are merged to one; so many rows of changes are worth a new snapshot.
_MANY_FILES = 64
_MANY_ROWS = 10_000
_MUCH_LARGER = 4  # a file that is so much larger than all that came after it is not written again with them
_AHEAD = 3  # files that are read before they are asked for


@dataclass(frozen=True, slots=True)
class _Job:
    """Rows for one table: where they go, and which files they take the place of."""

    relation: str
    folder: str
    columns: Columns
    rows: Pieces | None
    before: Pin | None
    replaced: tuple[Part, ...] = ()
    kept: tuple[Part, ...] = ()  # if some are replaced: all others
    dropped: bool = False

    def changes(self, parts: Sequence[Part]) -> bool:
        """Whether there is something to log, if the rows became these files: pieces may turn out to be none."""
        return bool(parts or self.replaced or self.before is None)


class Store:
    """Versions of a set of relations in one folder.

    A store that was opened reads one newest version, the one that it *saw*, whatever others commit meanwhile;
    `refresh` moves on. Only the writer, who holds the lock, commits; a version that follows from anything but the
    newest one is refused. A store belongs to one thread.

    >>> with Store.create("state") as store:              # doctest: +SKIP
    ...     store.commit(entry, {"edge": rows}, {"edge": schema})
    """

    def __init__(self, path: Path, target: Path | None = None, lock: int | None = None) -> None:
        self._path = path
        self._target = target  # where a new state goes with its first version
        self._lock = lock
        self._commits = Commits(path / COMMITS)
        self._seen = 0
        self._clean = lock is not None  # nothing of a crash is left
        self._logs: dict[tuple[str, int], Log] = {}
        self._writers: dict[str, TableWriter] = {}
        self._schemas: dict[str, tuple[pa.Schema, Columns]] = {}
        self._pool = ThreadPoolExecutor(max_workers=min(8, (os.cpu_count() or 1) + 2), thread_name_prefix="store")
        self._tidier = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-tidy")
        self._tidying: list[Future[None]] = []

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Self:
        """A new state, locked by us; it appears at `path` with its first version and not before."""
        target = Path(os.path.realpath(path))
        check_free(target)
        temporary, lock = new_folder(target)
        return cls(temporary, target, lock)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """A state to read; readers take no lock."""
        place = Path(os.path.realpath(path))
        check_state(place)
        store = cls(place)
        store.refresh()
        return store

    @property
    def path(self) -> Path:
        """Where the state is, or will be."""
        return self._target or self._path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the lock; a new state without a version was never there."""
        self._pool.shutdown()
        self._tidier.shutdown()
        if self._lock is not None:
            if self._target is not None:
                shutil.rmtree(self._path, ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    def __del__(self) -> None:
        """One that nobody holds any more must not keep others from writing."""
        if self._lock is not None:
            self._tidier.shutdown()
            os.close(self._lock)

    # --- versions ------------------------------------------------------------------------------------------
    @property
    def latest(self) -> Version:
        """The newest version when the state was opened, refreshed or committed to."""
        return self.version(self._seen)

    def refresh(self) -> Version:
        """Sees the newest version that there is now."""
        self._commits = Commits.read(self._path / COMMITS)
        self._seen = self._commits.last.version
        return self.latest

    def versions(self) -> list[Version]:
        """All versions that are kept, oldest first."""
        rows = {row.version: row for row in self._rows()}  # of several rows the last
        oldest = self._commits.last.oldest
        return [row.shown for number, row in sorted(rows.items()) if oldest <= number <= self._seen]

    def version(self, number: int) -> Version:
        """One version."""
        return self._row(number).shown

    def program(self, version: int) -> str:
        """The text of the program of a version."""
        name = self._row(version).program
        file = self._path / PROGRAMS / name
        raw = read(file)
        if _program_name(raw) != name:
            raise damaged(file, "its checksum is wrong")
        return raw.decode()

    def _row(self, number: int, *, first: bool = False) -> Row:
        """The last row of a version, which is the one to read it by, or the first, which made it."""
        if self._target is not None:
            raise StateError(Problem(NO_SUCH_VERSION, {"version": number, "kept": "no version yet"}))
        if number == self._seen == self._commits.last.version and not first:
            return self._commits.last
        found = [row for row in self._rows() if row.version == number]
        oldest = self._commits.last.oldest
        kept = f"versions {oldest} to {self._seen}" if oldest < self._seen else f"only version {self._seen}"
        if 1 <= number < oldest:
            raise StateError(Problem(VERSION_NOT_KEPT, {"version": number, "kept": kept}))
        if not found or number > self._seen:
            raise StateError(Problem(NO_SUCH_VERSION, {"version": number, "kept": kept}))
        return found[0 if first else -1]

    def _rows(self) -> list[Row]:
        """All rows; if files of the commit table went because of a vacuum, the rows as they are now."""
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
        """The fact columns of a relation as they are stored."""
        return fact_schema(self._pin(version, name).columns)

    def read(self, version: int, name: str) -> Iterator[tuple[int, pa.Table]]:
        """The rows that make up a relation: a snapshot and then the changes, each with its version, ascending.

        A table has the fact columns, `_origin`, `_nonrecursive`, `_recursive` and `_op`; strings are plain or
        dictionaries, whichever is faster to read.
        Several tables may be of one version, and then no fact is in two of them.
        """
        return self._reading(version, name, self._pin(version, name))

    def files(self, version: int, name: str) -> list[tuple[int, list[Path]]]:
        """The data files behind `read`, by version and in its order, for whoever has other machines read them.

        Each is a Parquet file whose columns are those of `evermat.store.rows.table_schema`. They stay until a vacuum
        removes them, and never change. `read` checks every byte of them; that they are there is all that is checked
        here.

        Raises:
            StateError: There is no such version, or a file is missing.
        """
        pin = self._pin(version, name)
        while True:
            try:
                return self._files(pin)
            except StateError:
                before, pin = pin, self._pin_now(version, name)
                if before == pin:
                    raise

    def _files(self, pin: Pin) -> list[tuple[int, list[Path]]]:
        folder = self._folder(pin.folder)
        parts = self._parts(pin)
        for part in parts:
            if not (folder / part.path).exists():
                raise damaged(folder / part.path, "it is missing")
        versions = groupby(parts, key=lambda part: part.version)
        return [(version, [folder / part.path for part in of_one]) for version, of_one in versions]

    def _reading(self, version: int, name: str, pin: Pin) -> Iterator[tuple[int, pa.Table]]:
        begun = False
        try:
            for part, table in self._tables(pin, self._parts(pin)):
                begun = True
                yield part.version, table
        except StateError:
            now = self._pin_now(version, name)
            if now == pin:
                raise
            if begun:
                why = "a vacuum removed files while they were read; read the version once more"
                raise StateError(Problem(STATE_UNREADABLE, {"file": self._folder(pin.folder), "why": why})) from None
            yield from self._reading(version, name, now)

    def changes(self, first: int, last: int) -> Iterator[tuple[int, str, pa.Table]]:
        """What the versions `first` to `last` changed: rows `+` and `-` as committed, by version and relation."""
        return self._changing([self._row(number, first=True) for number in range(first, last + 1)])

    def _changing(self, rows: Iterable[Row]) -> Iterator[tuple[int, str, pa.Table]]:
        for row in rows:
            for name, pin in row.pins.items():
                if pin.changed == row.version:
                    for table in self._changed(row.version, pin):
                        wanted = table.filter(pc.not_equal(table[OP].cast(pa.string()), "="))
                        if wanted.num_rows:
                            yield row.version, name, wanted

    def _changed(self, version: int, pin: Pin) -> Iterator[pa.Table]:
        try:
            for _, table in self._tables(pin, self._log(pin).entry(pin.delta).added):
                yield table
        except StateError:
            self._commits = Commits.read(self._path / COMMITS)
            self._row(version)  # says so if the version is no longer kept
            raise

    def _pin(self, version: int, name: str) -> Pin:
        pin = self._row(version).pins[name]
        if pin.dropped:
            raise KeyError(name)
        return pin

    def _pin_now(self, version: int, name: str) -> Pin:
        """The pin to go on with when a file is missing.

        One that went because of a vacuum is no damage: the version may have gone, or it has other files now.
        """
        self._commits = Commits.read(self._path / COMMITS)
        return self._pin(version, name)

    def _log(self, pin: Pin) -> Log:
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

    def _parts(self, pin: Pin) -> list[Part]:
        """The data files in the order in which they are read: those of the snapshot, then changes by version."""
        return sorted(self._log(pin).parts(pin.delta), key=lambda part: part.version)

    def _tables(self, pin: Pin, parts: Iterable[Part]) -> Iterator[tuple[Part, pa.Table]]:
        """Reads files in order, a few ahead."""
        folder = self._folder(pin.folder)
        running: deque[tuple[Part, Future[pa.Table]]] = deque()
        for part in parts:
            running.append((part, self._pool.submit(read_rows, folder, part, pin.columns)))
            if len(running) > _AHEAD:
                ready, future = running.popleft()
                yield ready, future.result()
        for ready, future in running:
            yield ready, future.result()

    def _folder(self, folder: str) -> Path:
        return self._path / RELATIONS / folder

    # --- writing -------------------------------------------------------------------------------------------
    def lock(self) -> None:
        """Becomes the writer, and undoes what a crash left behind; does nothing for the one who is it already."""
        if self._lock is None:
            self._lock = take_lock(self._path)
            self._clean = False
        if not self._clean:
            self._recover()

    @property
    def locked(self) -> bool:
        """Whether we are the writer."""
        return self._lock is not None

    def unlock(self) -> None:
        """Lets others write; reading goes on."""
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
            sync(entry_file(commits.folder, commits.entry))  # the crash may have come before that
            commits.complete()
            newest = commits.last
            for pin in newest.pins.values():
                numbers = entry_numbers(self._folder(pin.folder))
                if numbers and numbers[-1] > pin.delta:
                    undo(self._writer(pin.folder, pin.columns), self._log(pin), pin.delta)
            known = {pin.folder for pin in newest.pins.values()}.union(newest.retired_folders)
            for folder in left_overs(self._path / RELATIONS, known):
                shutil.rmtree(folder)
        self._logs.clear()
        self._clean = True

    def check_newest(self) -> None:
        """Makes sure that we may write, and that nobody has written since we looked."""
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
            raise StateError(Problem(STATE_MOVED, details))

    def commit(
        self,
        entry: Entry,
        changes: Mapping[str, Pieces],
        schemas: Mapping[str, pa.Schema],
        dropped: Collection[str] = (),
    ) -> Version:
        """Commits one version, all or nothing; when this returns it survives a power loss.

        Args:
            entry: What there is to say about the version.
            changes: For each changed relation its rows: the fact columns, in the order of the schema, `_origin`,
                `_op` and, where they are kept, `_nonrecursive` and `_recursive`. A fact is in one row at most.
                They are a table, or an iterable of such tables, of which only a few are held at a time: it is
                asked once, by this thread, and no two of them at the same time. If it raises, the error is passed on
                and nothing is committed.
            schemas: The fact columns of all relations of the program; a relation without facts has a table too.
            dropped: Relations that are no longer there. Their facts that go should be among `changes`, for they
                are then in the change feed. A relation in `schemas` too begins anew, as does one with other types.

        Raises:
            StateError: Somebody else has committed since this store looked, or the state is damaged.
            ResourceError: The disk is full or cannot be written to; the newest version is what it was.
        """
        self.check_newest()
        number = self._seen + 1
        last = None if self._target is not None else self._commits.last
        before = {name: pin for name, pin in last.pins.items() if not pin.dropped} if last else {}
        unknown = [*(changes.keys() - schemas.keys() - set(dropped)), *(before.keys() - schemas.keys() - set(dropped))]
        if unknown:
            raise ValueError(f"`{unknown[0]}` is neither a relation of the program nor dropped")
        retired = [*last.retired_folders, *(p.folder for p in last.pins.values() if p.dropped)] if last else []
        jobs: list[_Job] = []
        pins: dict[str, Pin | None] = {}  # in the order of the schemas; None is filled in by a job
        taken = {pin.folder for pin in before.values()}.union(retired, names(self._path / RELATIONS))
        for name, schema in schemas.items():
            columns = self._columns(name, schema)
            old = before.get(name) if name not in dropped else None
            rows = changes.get(name)
            if old is None or old.columns != columns:
                if name in before:
                    retired.append(before[name].folder)
                folder = folder_name(name, taken)
                taken.add(folder)
                jobs.append(_Job(name, folder, columns, rows, None))
            elif not none_given(rows):
                jobs.append(_Job(name, old.folder, columns, rows, old))
            pins[name] = old
        for name in dropped:
            if name in before and name not in schemas:
                old, rows = before[name], changes.get(name)
                if not none_given(rows):
                    jobs.append(_Job(name, old.folder, old.columns, rows, old, dropped=True))
                else:
                    retired.append(old.folder)
        oldest = last.oldest if last else 1
        row = Row.of(entry, number, datetime.now(UTC), _program_name(entry.program.encode()), oldest)
        self._write(jobs, row, pins, retired, entry.program)
        return self.latest

    def _columns(self, name: str, schema: pa.Schema) -> Columns:
        """The stored columns of a relation; for thousands of relations they are not worked out each time."""
        known = self._schemas.get(name)
        if known is None or not (known[0] is schema or known[0].equals(schema)):
            known = self._schemas[name] = (schema, stored_columns(schema))
        return known[1]

    def needs_snapshot(self, name: str) -> bool:
        """Whether a relation has so many changes that reading it takes notably longer than it should."""
        whole, changes = self._snapshot_and_changes(name)
        return sum(part.rows for part in changes) > max(_MANY_ROWS, sum(part.rows for part in whole) // 2)

    def many_changes(self, name: str) -> tuple[Part, ...]:
        """The newest files of changes of a relation, if there are so many that one should take their place."""
        _, changes = self._snapshot_and_changes(name)
        if len(changes) <= _MANY_FILES:
            return ()
        newer = sum(part.rows for part in changes)
        for position, part in enumerate(changes):
            newer -= part.rows
            if part.rows <= _MUCH_LARGER * newer:
                return tuple(changes[position:])
        return ()

    def _snapshot_and_changes(self, name: str) -> tuple[list[Part], list[Part]]:
        parts = self._parts(self._pin(self._seen, name))
        first = [part for part in parts if part.version == parts[0].version]
        return first, parts[len(first) :]

    def read_parts(self, name: str, parts: Iterable[Part]) -> Iterator[pa.Table]:
        """The rows of some files of a relation in the newest version."""
        return (table for _, table in self._tables(self._pin(self._seen, name), parts))

    def compact(
        self,
        snapshots: Mapping[str, Pieces],
        counters: Any,
        merged: Mapping[str, tuple[tuple[Part, ...], Pieces]] | None = None,
    ) -> None:
        """Replaces files of relations by fewer; the version and its facts stay the same.

        Args:
            snapshots: For each relation all its rows in the newest version, as for `commit`; they replace all files.
            counters: The version's counters from now on.
            merged: For each relation its newest files of changes, and rows that say the same: for every fact that
                is in them, whether it is there now.
        """
        self.check_newest()
        last = self._row(self._seen)
        jobs = []
        for name, rows in snapshots.items():
            pin = self._pin(self._seen, name)
            replaced = tuple(self._parts(pin))
            if replaced:
                jobs.append(_Job(name, pin.folder, pin.columns, rows, pin, replaced))
        for name, (replaced, rows) in (merged or {}).items():
            pin = self._pin(self._seen, name)
            kept = tuple(part for part in self._parts(pin) if part not in replaced)
            jobs.append(_Job(name, pin.folder, pin.columns, rows, pin, replaced, kept))
        row = replace(last, kind="compaction", counters=json.dumps(counters))
        self._write(jobs, row, dict(last.pins), last.retired_folders, None)

    def vacuum(self, keep: int) -> tuple[int, int]:
        """Keeps the newest `keep` versions and removes every file that only older ones, or none, need.

        Returns:
            How many files were removed, and how many bytes they had.
        """
        if keep < 1:
            raise ValueError("at least one version is kept")
        self.check_newest()
        last = self._row(self._seen)
        oldest = max(last.oldest, self._seen - keep + 1)
        # First the state says what it no longer keeps; a crash from here on only leaves more to sweep up.
        known = {pin.folder for row in self._commits.rows() if row.version >= oldest for pin in row.pins.values()}
        retired = [folder for folder in last.retired_folders if folder in known]
        row = replace(last, kind="vacuum", oldest=oldest, retired=json.dumps(retired))
        self._write([], row, dict(last.pins), retired, None, keep=oldest)
        self._wait_for_tidying()
        with writing(self._path):
            removed = sweep(self._path, self._commits, self._writer, self._log)
        self._logs.clear()
        return removed

    def _write(
        self,
        jobs: list[_Job],
        row: Row,
        pins: Mapping[str, Pin | None],
        retired: list[str],
        program: str | None,
        *,
        keep: int | None = None,
    ) -> None:
        """Writes files, log entries and at last the row, each durable before the next begins."""
        places = {self._folder(job.folder): self._writer(job.folder, job.columns).newest + 1 for job in jobs}
        try:
            if program is not None:
                self._write_program(row.program, program)
            made, syncs = self._write_tables(jobs, row.version)
            with uninterrupted():
                complete = {name: made.get(name, pin) for name, pin in pins.items()} | made
                gone = [job.folder for job in jobs if job.dropped and job.relation not in made]
                row = row.with_pins({n: pin for n, pin in complete.items() if pin is not None}, [*retired, *gone])
                self._commits.append(self._commit_writer(), row, partial(self._make_durable, syncs), keep=keep)
                if self._target is not None:
                    self._appear()
                self._seen = row.version
        except BaseException:
            self._abandon(row, places)
            raise
        for writer in [self._commit_writer(), *(self._writer(job.folder, job.columns) for job in jobs)]:
            self._tidying.append(self._tidier.submit(writer.tidy))

    def _write_tables(self, jobs: list[_Job], version: int) -> tuple[dict[str, Pin], list[Callable[[], None]]]:
        """Writes the rows and the log entries; returns the new pins, and what makes it all durable."""
        writers = {job.folder: self._writer(job.folder, job.columns) for job in jobs}
        for job in jobs:
            if job.before is not None:
                self._log(job.before)  # what is damaged must not get a new checksum
        orders = [
            Order(self._folder(job.folder), writers[job.folder].newest + 1, version, job.columns, job.rows)
            for job in jobs
        ]
        written = zip(jobs, write_rows(self._pool, orders, self.path), strict=True)
        changed = [(job, parts) for job, parts in written if job.changes(parts)]
        self._wait_for_tidying()  # a checkpoint must not stand for an entry that no version pins yet
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

    def _new_pin(self, job: _Job, entry: int, version: int) -> Pin:
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

    def _appear(self) -> None:
        """Gives a new state its name."""
        assert self._target is not None
        with writing(self.path):
            sync(self._path)
        move_into_place(self._path, self._target)
        entry = self._commits.entry
        self._path, self._target = self._target, None
        self._writers.clear()
        self._logs.clear()
        self._commits = Commits.read(self._path / COMMITS)
        assert self._commits.entry == entry

    def _abandon(self, row: Row, places: Mapping[Path, int]) -> None:
        """After a failure: the rows go first, which gives a full disk room to take back the log entries."""
        if self._target is not None:  # nobody has seen anything; begin again from nothing
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
            for folder, entry in places.items():
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


def _program_name(text: bytes) -> str:
    return f"{hashlib.sha256(text).hexdigest()}.dl"
