"""The log of a Delta table: numbered entries that add and remove data files, and checkpoints that replace old entries.

The head of the log shows other programs the files that they need. A file that only old versions need is removed in the
log, but stays: the entry names it among the `kept` ones, until a later entry names it among the `forgotten` ones. In a
checkpoint the kept files are the removed ones. What a log neither has nor keeps is garbage.

An entry ends with a checksum of itself, so damage is found where it is. A *pin* states that the checkpoint `base` and the
entries after it, to `delta`, describe the table, and has one checksum over all of their bytes; `base` is -1 if the
entries begin with the first one. A data file carries its own checksum in its name, so a log that is right vouches for
every byte of the data.

Entries and checkpoints get their names when they are complete and durable, so they are never incomplete.
"""

from __future__ import annotations

import json
import re
import uuid
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.store.data_files import Part
from evermat.store.disk import damaged, names, read, read_each
from evermat.store.location import Location

LOG = "_delta_log"
_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_OWN = "evermat"  # the field of `commitInfo` that other programs ignore
_TAIL = b'"}}\n'
_DIGITS = 8

# Only Evermat deletes entries and files: what the log has removed may still be needed.
_CONFIGURATION = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",
    "delta.checkpointInterval": "1000000000",
}
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}

_TEXTS = pa.map_(pa.string(), pa.string())
_CHECKPOINT_SCHEMA = pa.schema(
    {
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
            }
        ),
        "remove": pa.struct(
            {
                "path": pa.string(),
                "deletionTimestamp": pa.int64(),
                "dataChange": pa.bool_(),
                "extendedFileMetadata": pa.bool_(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
            }
        ),
    }
)


def entry_file(table: Location, number: int) -> Location:
    """The file of a log entry."""
    return table / LOG / f"{number:020}.json"


def checkpoint_file(table: Location, number: int) -> Location:
    """The file of the checkpoint at a log entry."""
    return table / LOG / f"{number:020}.checkpoint.parquet"


def entry_numbers(table: Location) -> list[int]:
    """The numbers of the log's entries, ascending."""
    return sorted(int(m.group(1)) for m in map(_ENTRY.fullmatch, names(table / LOG)) if m)


def number_of(name: str) -> int | None:
    """The number of the entry or checkpoint in a file of this name; None if it is another file."""
    found = _ENTRY.fullmatch(name) or _CHECKPOINT.fullmatch(name)
    return None if found is None else int(found.group(1))


# --- an entry --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Action:
    """The changes that one entry makes to the files of a table.

    `rearranged` files have rows that the table had in other files. `removed` files are garbage unless they are `kept`.
    """

    added: Sequence[Part] = ()
    rearranged: Sequence[Part] = ()
    removed: Sequence[Part] = ()
    kept: Sequence[Part] = ()
    forgotten: Sequence[Part] = ()


def first_lines(name: str, fields: Sequence[tuple[str, str]], time: int) -> list[dict[str, Any]]:
    """The first actions of a table: its name for other programs, and its columns with their Delta types."""
    columns = [{"name": column, "type": kind, "nullable": True, "metadata": {}} for column, kind in fields]
    meta = {
        "id": str(uuid.uuid4()),
        "name": name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": columns}),
        "partitionColumns": [],
        "configuration": _CONFIGURATION,
        "createdTime": time,
    }
    return [{"protocol": _PROTOCOL}, {"metaData": meta}]


def entry_text(
    action: Action, time: int, first: Iterable[dict[str, Any]] = (), own: dict[str, Any] | None = None
) -> bytes:
    """An entry, with the `own` details for whom they concern."""
    changes_data = bool(action.added) or not action.rearranged
    lines = [
        *first,
        *({"remove": _remove(part, time, changes=False)} for part in action.removed),
        *({"add": _add(part, time, changes=False)} for part in action.rearranged),
        *({"add": _add(part, time, changes=True)} for part in action.added),
    ]
    details = dict(own or {})
    if action.kept:
        details["kept"] = [part.path for part in action.kept]
    if action.forgotten:
        details["forgotten"] = [part.path for part in action.forgotten]
    operation = "WRITE" if changes_data else "OPTIMIZE"
    info = {"timestamp": time, "operation": operation, "operationParameters": {}, _OWN: details, "check": "0" * _DIGITS}
    raw = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in (*lines, {"commitInfo": info}))
    body = raw[: -_DIGITS - len(_TAIL)]
    return body + f"{zlib.crc32(body):08x}".encode() + _TAIL


def _add(part: Part, time: int, *, changes: bool) -> dict[str, Any]:
    bounds = {"minValues": {"_version": part.first}, "maxValues": {"_version": part.last}}
    stats = {"numRecords": part.rows} | (bounds if part.rows else {})
    return {
        "path": part.path,
        "partitionValues": {},
        "size": part.size,
        "modificationTime": time,
        "dataChange": changes,
        "stats": json.dumps(stats, separators=(",", ":")),
    }


def _remove(part: Part, time: int, *, changes: bool) -> dict[str, Any]:
    return {
        "path": part.path,
        "deletionTimestamp": time,
        "dataChange": changes,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": part.size,
    }


def parse_entry(file: Location, raw: bytes) -> list[dict[str, Any]]:
    """The actions of an entry, every byte of which is checked; the last one is the `commitInfo`."""
    end = len(raw) - _DIGITS - len(_TAIL)
    if end < 0 or raw[-len(_TAIL) :] != _TAIL or raw[end : -len(_TAIL)] != f"{zlib.crc32(raw[:end]):08x}".encode():
        raise damaged(file, "its checksum is wrong")
    return [json.loads(line) for line in raw.splitlines()]


def own_details(actions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What `entry_text` was given for Evermat."""
    return actions[-1]["commitInfo"][_OWN]  # type: ignore[no-any-return]


# --- the log ---------------------------------------------------------------------------------------------------


@dataclass
class TableLog:
    """The files of a table as its entries up to `delta` state them, with the checksum over the entries from `base` on."""

    folder: Location
    base: int = -1
    delta: int = -1
    checksum: int = 0
    live: dict[str, Part] = field(default_factory=dict)
    kept: dict[str, Part] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    _current: list[Part] | None = None  # known since the last entry

    @staticmethod
    def read(folder: Location, base: int, delta: int) -> TableLog:
        """The log up to an entry, from a checkpoint on."""
        log = TableLog(folder, base, base)
        if base >= 0:
            log._read_checkpoint(base)
        log.read_to(delta)
        return log

    def copy(self) -> TableLog:
        """The same log, which can be read on its own."""
        return TableLog(self.folder, self.base, self.delta, self.checksum, {**self.live}, {**self.kept}, self.meta)

    def read_to(self, delta: int) -> list[dict[str, Any]]:
        """Reads the entries up to `delta` that were not read yet, and returns the actions of the last one."""
        actions: list[dict[str, Any]] = []
        files = [entry_file(self.folder, number) for number in range(self.delta + 1, delta + 1)]
        for file, raw in zip(files, read_each(files), strict=True):
            actions = parse_entry(file, raw)
            self.apply(raw, actions)
        return actions

    def apply(self, raw: bytes, actions: Sequence[dict[str, Any]]) -> None:
        """Takes in the next entry."""
        self._current = None
        details = own_details(actions)
        kept = set(details.get("kept", ()))
        for action in actions:
            if "add" in action:
                self._add(action["add"])
            elif "remove" in action:
                part = self.live.pop(action["remove"]["path"], None)
                if part is not None and part.path in kept:
                    self.kept[part.path] = part
            elif "metaData" in action:
                self.meta = action["metaData"]
        for path in details.get("forgotten", ()):
            self.kept.pop(path, None)
        self.delta += 1
        self.checksum = zlib.crc32(raw, self.checksum)

    def _add(self, add: dict[str, Any]) -> None:
        part = Part.of(add["path"], add["size"])
        self.live[part.path] = part
        self.kept.pop(part.path, None)

    @property
    def current(self) -> list[Part]:
        """The files that the head of the log shows, by version."""
        if self._current is None:
            self._current = sorted(self.live.values(), key=lambda part: part.order)
        return list(self._current)

    @property
    def every(self) -> list[Part]:
        """All files that some version needs, by version."""
        return sorted([*self.live.values(), *self.kept.values()], key=lambda part: part.order)

    # --- checkpoints -------------------------------------------------------------------------------------------
    def checkpoint(self, time: int) -> bytes:
        """The contents of the checkpoint at `delta`: the same for the same log and time."""
        meta = {
            **self.meta,
            "format": {"provider": "parquet", "options": []},
            "configuration": [*self.meta["configuration"].items()],
        }
        rows: list[dict[str, Any]] = [
            {"protocol": _PROTOCOL},
            {"metaData": meta},
            *({"add": _add(part, time, changes=False) | {"partitionValues": []}} for part in self.current),
            *(
                {"remove": _remove(part, time, changes=False) | {"partitionValues": []}}
                for part in sorted(self.kept.values(), key=lambda part: part.order)
            ),
        ]
        buffer = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows, schema=_CHECKPOINT_SCHEMA), buffer, store_schema=False)
        return buffer.getvalue().to_pybytes()  # type: ignore[no-any-return]

    def rebased(self, checkpoint: bytes) -> TableLog:
        """The same log, but read from a checkpoint of it on."""
        return TableLog(
            self.folder, self.delta, self.delta, zlib.crc32(checkpoint), {**self.live}, {**self.kept}, self.meta
        )

    def _read_checkpoint(self, number: int) -> None:
        file = checkpoint_file(self.folder, number)
        raw = read(file)
        try:
            rows = pq.read_table(pa.BufferReader(raw), use_threads=False).to_pylist()
            for row in rows:
                if row["add"] is not None:
                    self._add(row["add"])
                elif row["remove"] is not None:
                    part = Part.of(row["remove"]["path"], row["remove"]["size"])
                    self.kept[part.path] = part
                elif row["metaData"] is not None:
                    meta = row["metaData"]
                    self.meta = {
                        **meta,
                        "format": {"provider": "parquet", "options": {}},
                        "configuration": dict(meta["configuration"]),
                    }
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            raise damaged(file, "it is not a checkpoint") from error
        self.checksum = zlib.crc32(raw)

    def wrong(self) -> Location:
        """The file to name if the checksum is wrong although every entry is right."""
        return checkpoint_file(self.folder, self.base) if self.base >= 0 else entry_file(self.folder, self.delta)
