"""Writes to one Delta table: data files are merged as they become many, and the log gets checkpoints.

Sixteen files of changes of one level become one of the next level, so every row is written again a few times only, and a
table has few files however many versions it has. A merged file has the same rows, so it serves every version; but of the
rows that are no newer than the *base*, the oldest version that can be read, only the last one of each fact stays.

Before a snapshot all changes since the last one become one file, for old versions need them as long as they are kept. Files that
were replaced are deleted when the table is merged the next time, so that readers which have just begun find them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evermat.store.attempt import attempt_of
from evermat.store.chunked_write import joined
from evermat.store.data_files import PART_ROWS, Columns, Part, PartName, last_rows, read_rows, write_part
from evermat.store.delta_log import (
    LOG,
    Action,
    TableLog,
    checkpoint_file,
    entry_file,
    entry_text,
    first_lines,
    number_of,
    parse_entry,
)
from evermat.store.disk import (
    damaged,
    mkdir,
    names,
    put,
    remove_all,
    rename,
    temporary_of,
    write_file,
)
from evermat.store.location import Location, ObjectPath
from evermat.store.names import OP, VERSION

WITNESS = "_newest"  # in the folder of the commit table
FAN = 16  # files of one level that become one of the next
LARGE_ROWS = PART_ROWS // FAN  # a file with more is not merged
CHECKPOINT_EVERY = 32
_SPREAD = 8  # tables that are always written together do not all make checkpoints with the same version
_MUCH_LARGER = 4  # a first file that is so much larger than all later ones is not rewritten with them
_FEW_ROWS = 1000
_HIGHEST = 9  # level
_HELD_ROWS = 2000  # of each table: rows of its newest files, which are merged without reading them again


@dataclass
class Staged:
    """A log entry that is written under a temporary name, and the log after it.

    In a bucket nothing is written yet: `contents` are the files of the log, the entry last.
    """

    table: TableWriter
    log: TableLog
    temporary: Location
    files: list[Location]  # that must be durable before the entry gets its name
    merged: bool
    replaces: bool  # there may be files that no version needs after it
    contents: Sequence[tuple[Location, bytes]] = ()

    @property
    def file(self) -> Location:
        return entry_file(self.table.folder, self.log.delta)


@dataclass
class TableWriter:
    """The writing side of one table; its owner holds the lock of the state.

    `log` is the log up to the newest entry. `garbage` are files that no version needs.
    """

    folder: Location
    log: TableLog
    fields: Sequence[tuple[str, str]] = ()
    name: str = ""
    begin_anew: bool = False  # entries were undone: the next one follows a checkpoint
    writer: str = ""  # in a bucket: the attempt to commit that files are written for
    garbage: list[Location] = field(default_factory=list)
    held: dict[str, pa.Table] = field(default_factory=dict)

    def find_garbage(self, decided: int) -> None:
        """Lists the files in the table's folder that its log does not name; those of a crash are deleted at once.

        In a bucket only attempts to commit up to the number `decided` have failed; others may just be going on.
        """
        known = {part.path for part in self.log.every} | {LOG, WITNESS}
        for name in names(self.folder):
            if name in known:
                continue
            if isinstance(self.folder, ObjectPath):
                attempt = attempt_of(name)
                if attempt is not None and attempt <= decided:
                    self.garbage.append(self.folder / name)
                continue
            entry = _entry_of(name)
            if entry is None or entry > self.log.delta:
                remove_all(self.folder / name)
            else:
                self.garbage.append(self.folder / name)

    # --- what an entry does ----------------------------------------------------------------------------------
    def hold(self, part: Part, rows: pa.Table) -> None:
        """Keeps the rows of a new file, because it will soon be merged."""
        if part.rows == rows.num_rows <= _FEW_ROWS:
            self.held[part.path] = rows

    def due(self) -> list[Part]:
        """The newest files of changes, if there are so many of one level that one should replace them."""
        return mergeable([part for part in self.log.current if not part.snapshot])

    def merge(self, parts: Sequence[Part], columns: Columns, base: int, made: list[Location]) -> list[Part]:
        """Writes the rows of neighbouring files as one file, which is neither in the log nor durable yet."""
        tables = [self.held[p.path] if p.path in self.held else read_rows(self.folder, p, columns) for p in parts]
        rows = collapsed(joined(tables, columns), len(columns), base, begins=parts[0] == self.log.every[0])
        if not rows.num_rows:
            return []
        level = min(max(part.level for part in parts) + 1, _HIGHEST)
        name = PartName(self.log.delta + 1, parts[0].first, parts[-1].last, level, writer=self.writer)
        part = write_part(self.folder, name, 1000, rows)  # its number differs from those of new rows
        made.append(self.folder / part.path)
        self.hold(part, rows)
        return [part]

    def unneeded(self, parts: Iterable[Part], base: int, snapshot: int | None = None) -> list[Part]:
        """Those of the files that no version from `base` on needs; `snapshot` is the version of one about to be added."""
        snapshots = [part.first for part in self.log.every if part.snapshot] + ([] if snapshot is None else [snapshot])
        start = max((version for version in snapshots if version <= base), default=0)
        return [part for part in parts if (part.first < start if part.snapshot else part.last <= start)]

    # --- an entry ----------------------------------------------------------------------------------------------
    def stage(self, action: Action, time: int, own: Callable[[TableLog], dict[str, Any]] = lambda _: {}) -> Staged:
        """Writes the next entry under a temporary name, after a checkpoint if one is due; `own` are details for it."""
        log = self.log.copy()
        files = []
        contents: list[tuple[Location, bytes]] = []
        in_bucket = isinstance(self.folder, ObjectPath)
        if self.begin_anew or log.delta - max(log.base, 0) >= CHECKPOINT_EVERY + self._spread:
            checkpoint = log.checkpoint(time)
            if in_bucket:
                contents.append((checkpoint_file(self.folder, log.delta), checkpoint))
            else:
                put(checkpoint_file(self.folder, log.delta), checkpoint)
            log = log.rebased(checkpoint)
        first = first_lines(self.name, self.fields, time) if log.delta < 0 else []
        details = own(log)
        raw = entry_text(action, time, first, details)
        file = entry_file(self.folder, log.delta + 1)
        merged = bool(action.removed) and not any(part.snapshot for part in action.rearranged)
        replaces = bool(action.removed or action.forgotten)
        if in_bucket:
            log.apply(raw, parse_entry(file, raw))
            return Staged(self, log, file, [], merged, replaces, [*contents, (file, raw)])
        mkdir(file.parent)
        temporary = temporary_of(file)
        write_file(temporary, raw)
        log.apply(raw, parse_entry(file, raw))
        files = [self.folder / part.path for part in (*action.added, *action.rearranged)]
        return Staged(self, log, temporary, [*files, temporary], merged, replaces)

    @property
    def _spread(self) -> int:
        return zlib.crc32(self.folder.name.encode()) % _SPREAD

    def publish(self, staged: Staged) -> None:
        """Gives a durable entry its name."""
        if staged.file.exists():
            raise damaged(staged.file, "another program wrote to this table")
        rename(staged.temporary, staged.file)

    def adopt(self, staged: Staged) -> list[Location]:
        """Goes on from an entry that a version pins; returns the files that may be deleted now."""
        before, self.log = self.log, staged.log
        self.begin_anew = False
        # Files that an earlier entry replaced, and entries that two checkpoints replace.
        found: list[Location] = []
        if staged.merged or before.base != self.log.base:
            found, self.garbage = self.garbage, []
        if staged.replaces:
            known = self.log.live.keys() | self.log.kept.keys()
            gone = [part.path for part in before.every if part.path not in known]
            self.garbage += [self.folder / path for path in gone]
            for path in gone:
                self.held.pop(path, None)
        if before.base != self.log.base:
            log = self.folder / LOG
            found += [
                log / name for name in names(log) if (number := number_of(name)) is not None and number < before.base
            ]
        while sum(table.num_rows for table in self.held.values()) > _HELD_ROWS:
            self.held.pop(next(iter(self.held)))
        return found


def mergeable(parts: Sequence[Part]) -> list[Part]:
    """The newest of a table's files of changes, ascending, that should become one."""
    begin, level, needed, rows = len(parts), 0, FAN, 0
    while True:
        first = begin
        while first and parts[first - 1].level == level and parts[first - 1].rows <= LARGE_ROWS:
            first -= 1
        rows += sum(part.rows for part in parts[first:begin])
        if begin - first < needed or rows > PART_ROWS:
            break
        begin, level, needed = first, level + 1, FAN - 1
    chosen = list(parts[begin:])
    if chosen and begin == 0 and chosen[0].rows > max(_FEW_ROWS, _MUCH_LARGER * sum(part.rows for part in chosen[1:])):
        del chosen[0]
    return chosen if len(chosen) > 1 else []


def all_mergeable(parts: Sequence[Part]) -> list[Part]:
    """The newest of a table's files, ascending, that can become one."""
    begin = len(parts)
    rows = 0
    while begin and not parts[begin - 1].snapshot and parts[begin - 1].rows <= LARGE_ROWS:
        rows += parts[begin - 1].rows
        if rows > PART_ROWS:
            break
        begin -= 1
    chosen = list(parts[begin:])
    return chosen if len(chosen) > 1 else []


def collapsed(rows: pa.Table, arity: int, base: int, *, begins: bool) -> pa.Table:
    """Rows of changes, ascending, of which those up to `base` are the last of their facts; if nothing is before them, none is deleted."""
    old = rows.filter(pc.less_equal(rows[VERSION], base))
    if not old.num_rows:
        return rows
    new = rows.filter(pc.greater(rows[VERSION], base))
    old = last_rows(old, arity)
    if begins:
        old = old.filter(pc.not_equal(old[OP].cast(pa.string()), "-"))
    return pa.concat_tables([old, new])


def _entry_of(name: str) -> int | None:
    try:
        return Part.of(name, 0).entry
    except ValueError:
        return None
