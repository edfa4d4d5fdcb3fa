"""Writes to one Delta table, through `deltalake`.

A transaction of `deltalake` takes longer the more entries follow the last checkpoint, so a checkpoint is made every few
entries, in the background (`tidy`). Only `deltalake` reads checkpoints here, which does not detect damage; so a file
in `_checks` has the checksum of each, and a checkpoint without one was cut short by a crash and is deleted.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat.core import EvermatError
from evermat.store.delta_log import LOG, Part, entry_file, entry_numbers, whole_entry
from evermat.store.disk import cannot_write, damaged, names, put, read, sync, system_error
from evermat.store.names import VERSION

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import AddAction, RemoveAction

CHECKS = "_checks"
_CHECKPOINT_EVERY = 16
_SPREAD = 8  # tables that are always written together do not all make theirs after the same version
_CHECKPOINT = ".checkpoint.parquet"
_HINT = "_last_checkpoint"  # optional for readers, and one thing less that can be damaged
# Only our own vacuum deletes entries and files: a pinned version must stay readable however old it is.
_CONFIGURATION = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
    "delta.checkpointInterval": "1000000000",
}


class TableWriter:
    """The writing side of one table; its owner holds the lock of the state.

    `fields` are names and Delta types. `newest` is the number of the last log entry, -1 before the table exists.
    """

    def __init__(self, folder: Path, fields: Sequence[tuple[str, str]], *, partitioned: bool) -> None:
        self.folder = folder
        self._fields = tuple(fields)
        self._partition = [VERSION] if partitioned else []
        self._table: DeltaTable | None = None
        numbers = entry_numbers(folder)
        self.newest = numbers[-1] if numbers else -1
        self._checkpoint: int | None = None  # unknown until it is asked for

    def write(self, added: Sequence[Part], removed: Sequence[Part] = ()) -> int:
        """Commits one log entry, not yet durable, and returns its number; the first one creates the table."""
        number = self.newest + 1
        file = entry_file(self.folder, number)
        with _reporting(self.folder / LOG):
            if number == 0:
                self._create(added)
            else:
                self._append(added, removed)
        entry = whole_entry(file) if file.exists() else None
        if entry is None or {part.path for part in entry.added} != {part.path for part in added}:
            self.forget()  # `deltalake` takes the next free number, so ours is a later one
            raise damaged(file, "another program wrote to this table")
        self.newest = number
        return number

    def sync(self, added: Sequence[Part]) -> None:
        """Makes the newest entry durable, and the files that it added.

        Nothing depends on the order, for the entry counts only when a version pins it. With a journal, the first
        call pays for all.
        """
        file = entry_file(self.folder, self.newest)
        homes = {(self.folder / part.path).parent for part in added}
        with _reporting(self.folder):
            for path in [*(self.folder / part.path for part in added), file, *homes, file.parent, self.folder]:
                sync(path)

    def _create(self, added: Sequence[Part]) -> None:
        from deltalake.transaction import create_table_with_add_actions  # noqa: PLC0415 - heavy, and for writers only

        create_table_with_add_actions(
            str(self.folder),
            self._schema(),
            [self._add(part) for part in added],
            partition_by=self._partition,
            configuration=_CONFIGURATION,
            post_commithook_properties=_no_hooks(),
        )

    def _append(self, added: Sequence[Part], removed: Sequence[Part]) -> None:
        actions: list[AddAction | RemoveAction] = [self._add(part) for part in added]
        actions += [self._remove(part) for part in removed]
        table = self._table = self._table or self._load()
        if table.version() != self.newest:  # else removals would look like those of a concurrent writer
            table.update_incremental()
        table.create_write_transaction(
            actions,
            mode="append",
            schema=self._schema(),
            partition_by=self._partition,
            post_commithook_properties=_no_hooks(),
        )

    def _schema(self) -> Schema:
        from deltalake import Field, Schema  # noqa: PLC0415
        from deltalake.schema import PrimitiveType  # noqa: PLC0415

        return Schema([Field(name, PrimitiveType(kind), nullable=True) for name, kind in self._fields])

    def _values(self, part: Part) -> dict[str, str | None]:
        return {VERSION: str(part.version)} if self._partition else {}

    def _add(self, part: Part) -> AddAction:
        from deltalake.transaction import AddAction  # noqa: PLC0415

        stats = json.dumps({"numRecords": part.rows})
        return AddAction(part.path, part.size, self._values(part), _now(), data_change=True, stats=stats)

    def _remove(self, part: Part) -> RemoveAction:
        from deltalake.transaction import RemoveAction  # noqa: PLC0415

        return RemoveAction(part.path, True, _now(), part.size, self._values(part))

    def _load(self, version: int | None = None) -> DeltaTable:
        from deltalake import DeltaTable  # noqa: PLC0415

        self._check_checkpoints()
        return DeltaTable(self.folder, version=version)

    def forget(self) -> None:
        """Drops the loaded table; it is loaded again on demand."""
        self._table = None
        self._checkpoint = None

    # --- checkpoints ---------------------------------------------------------------------------------------
    def tidy(self) -> None:
        """Reads the new log entries and makes a checkpoint if one is due; it is optional and never raises."""
        try:
            if self._table is None:
                return
            self._table.update_incremental()
            if self._checkpoint is None:
                self._checkpoint = max(self.checkpoints(), default=0)
            due = _CHECKPOINT_EVERY + zlib.crc32(self.folder.name.encode()) % _SPREAD
            if self.newest - self._checkpoint >= due:
                self.make_checkpoint(self.newest)
                # The last two stay, for one may just be read, and the one that replaces vacuumed entries.
                first = 0 if entry_file(self.folder, 0).exists() else 1
                self._drop_checkpoints(self.checkpoints()[first:-2])
        except Exception:  # noqa: BLE001 - the next write reports the problem
            self.forget()

    def checkpoints(self) -> list[int]:
        """The numbers of the entries that have a checkpoint, ascending."""
        found = [name.removesuffix(_CHECKPOINT) for name in names(self.folder / LOG) if name.endswith(_CHECKPOINT)]
        return sorted(int(name) for name in found if name.isdecimal())

    def make_checkpoint(self, number: int) -> None:
        """Makes a durable checkpoint at the entry, for `deltalake` and other readers."""
        log = self.folder / LOG
        with _reporting(log):
            table = self._table
            if table is None or table.version() != number:
                table = self._load(number)
            table.create_checkpoint()
            (log / _HINT).unlink(missing_ok=True)
            file = self._checkpoint_file(number)
            sync(file)
            sync(log)
            check = self._check_file(number)
            check.parent.mkdir(exist_ok=True)
            put(check, f"{zlib.crc32(file.read_bytes()):08x}\n".encode())
            self._table = self._load()
        self._checkpoint = number

    def drop_checkpoints_before(self, base: int) -> None:
        """Deletes checkpoints of entries before `base`, which has a checkpoint itself."""
        self._drop_checkpoints([number for number in self.checkpoints() if number < base])

    def _drop_checkpoints(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            # A checkpoint without its check is one that a crash left; a check without its checkpoint would mean damage.
            self._check_file(number).unlink(missing_ok=True)
            self._checkpoint_file(number).unlink(missing_ok=True)

    def _check_checkpoints(self) -> None:
        (self.folder / LOG / _HINT).unlink(missing_ok=True)
        first = min(entry_numbers(self.folder), default=0)
        for number in self.checkpoints():
            file, check = self._checkpoint_file(number), self._check_file(number)
            if not check.exists() and number > first:
                file.unlink()  # a crash cut it short, and its entries still exist
            elif read(check) != f"{zlib.crc32(read(file)):08x}\n".encode():
                raise damaged(file, "its checksum is wrong")

    def _checkpoint_file(self, number: int) -> Path:
        return self.folder / LOG / f"{number:020}{_CHECKPOINT}"

    def _check_file(self, number: int) -> Path:
        return self.folder / CHECKS / f"{number:020}.checkpoint"


def _now() -> int:
    return time.time_ns() // 1_000_000


def _no_hooks() -> Any:
    from deltalake import PostCommitHookProperties  # noqa: PLC0415

    return PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@contextmanager
def _reporting(path: Path) -> Iterator[None]:
    """Turns exceptions of `deltalake` and of the system into Evermat's errors."""
    try:
        yield
    except EvermatError:
        raise
    except Exception as error:
        why = system_error(error)
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise (cannot_write(path, why) if why else damaged(path, first_line)) from error
