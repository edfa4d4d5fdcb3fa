"""The store: versions of a set of relations, durable and all or nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from evermat.store.chunked_write import Pieces, surely_empty
from evermat.store.commits import Pin, Row
from evermat.store.data_files import Columns, stored_columns
from evermat.store.delta_log import Part
from evermat.store.directory import RELATIONS, check_free, check_written_format, new_folder
from evermat.store.disk import names, writing
from evermat.store.formats.format_1 import program_name
from evermat.store.names import folder_name
from evermat.store.vacuum import sweep
from evermat.store.version import Entry, Version
from evermat.store.writer import Job, Writer

# So many files of changes are merged to one; so many rows of changes are worth a new snapshot.
_MANY_FILES = 64
_MANY_ROWS = 10_000
_MUCH_LARGER = 4  # a file that is so much larger than all later ones is not rewritten with them


class Store(Writer):
    """Versions of a set of relations in one folder.

    A store that was opened reads one newest version, the one that it *saw*, whatever other writers commit meanwhile;
    `refresh` sees newer ones. Only the writer, which holds the lock, commits, and only changes of the newest version. A
    store belongs to one thread.

    >>> with Store.create("state") as store:              # doctest: +SKIP
    ...     store.commit(entry, {"edge": rows}, {"edge": schema})
    """

    def __init__(self, path: Path, target: Path | None = None, lock: int | None = None) -> None:
        super().__init__(path, target, lock)
        self._schemas: dict[str, tuple[pa.Schema, Columns]] = {}

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Self:
        """A new locked state, which becomes visible at `path` with its first version."""
        target = Path(os.path.realpath(path))
        check_free(target)
        temporary, lock = new_folder(target)
        return cls(temporary, target, lock)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """A state to read; readers take no lock."""
        directory = Path(os.path.realpath(path))
        check_written_format(directory)
        store = cls(directory)
        store.refresh()
        return store

    def close(self) -> None:
        """Releases the lock, and deletes a new state without a version."""
        super().close()
        self._tidier.shutdown()
        if self._lock is not None:
            if self._target is not None:
                shutil.rmtree(self._path, ignore_errors=True)
            os.close(self._lock)
            self._lock = None

    def __del__(self) -> None:
        """Releases the lock."""
        if self._lock is not None:
            self._tidier.shutdown()
            os.close(self._lock)

    # --- versions ------------------------------------------------------------------------------------------
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
        last = None if self._target is not None else self._commits.last
        before = {name: pin for name, pin in last.pins.items() if not pin.dropped} if last else {}
        unknown = [*(changes.keys() - schemas.keys() - set(dropped)), *(before.keys() - schemas.keys() - set(dropped))]
        if unknown:
            raise ValueError(f"`{unknown[0]}` is neither a relation of the program nor dropped")
        retired = [*last.retired_folders, *(p.folder for p in last.pins.values() if p.dropped)] if last else []
        jobs: list[Job] = []
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
                jobs.append(Job(name, folder, columns, rows, None))
            elif not surely_empty(rows):
                jobs.append(Job(name, old.folder, columns, rows, old))
            pins[name] = old
        for name in dropped:
            if name in before and name not in schemas:
                old, rows = before[name], changes.get(name)
                if not surely_empty(rows):
                    jobs.append(Job(name, old.folder, old.columns, rows, old, dropped=True))
                else:
                    retired.append(old.folder)
        oldest = last.oldest if last else 1
        row = Row.of(entry, number, datetime.now(UTC), program_name(entry.program.encode()), oldest)
        self._write(jobs, row, pins, retired, entry.program)
        return self.latest

    def _columns(self, name: str, schema: pa.Schema) -> Columns:
        """The stored columns of a relation, cached: computing them for thousands of relations takes time."""
        known = self._schemas.get(name)
        if known is None or not (known[0] is schema or known[0].equals(schema)):
            known = self._schemas[name] = (schema, stored_columns(schema))
        return known[1]

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
            merged: For each relation its newest files of changes, and rows with the same effect: for every fact in
                them, whether it holds now.
        """
        self.check_newest()
        last = self._row(self._seen)
        jobs = []
        for name, rows in snapshots.items():
            pin = self._pin(self._seen, name)
            replaced = tuple(self._parts(pin))
            if replaced:
                jobs.append(Job(name, pin.folder, pin.columns, rows, pin, replaced))
        for name, (replaced, rows) in (merged or {}).items():
            pin = self._pin(self._seen, name)
            kept = tuple(part for part in self._parts(pin) if part not in replaced)
            jobs.append(Job(name, pin.folder, pin.columns, rows, pin, replaced, kept))
        row = replace(last, kind="compaction", counters=json.dumps(counters))
        self._write(jobs, row, dict(last.pins), last.retired_folders, None)

    def vacuum(self, keep: int) -> tuple[int, int]:
        """Keeps the newest `keep` versions, deletes all files that they do not need, and returns their number and bytes."""
        if keep < 1:
            raise ValueError("at least one version is kept")
        self.check_newest()
        last = self._row(self._seen)
        oldest = max(last.oldest, self._seen - keep + 1)
        # First the state records what it no longer keeps; a crash from here on only leaves more files to delete.
        known = {pin.folder for row in self._commits.rows() if row.version >= oldest for pin in row.pins.values()}
        retired = [folder for folder in last.retired_folders if folder in known]
        row = replace(last, kind="vacuum", oldest=oldest, retired=json.dumps(retired))
        self._write([], row, dict(last.pins), retired, None, keep=oldest)
        self._wait_for_tidying()
        with writing(self._path):
            removed = sweep(self._path, self._commits, self._writer, self._log)
        self._logs.clear()
        return removed

    # --- what is worth writing again -----------------------------------------------------------------------
    def needs_snapshot(self, name: str) -> bool:
        """Whether a relation has so many changes that reading it takes notably longer."""
        whole, changes = self._snapshot_and_changes(name)
        return sum(part.rows for part in changes) > max(_MANY_ROWS, sum(part.rows for part in whole) // 2)

    def many_changes(self, name: str) -> tuple[Part, ...]:
        """The newest files of changes of a relation if there are so many that one should replace them."""
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
