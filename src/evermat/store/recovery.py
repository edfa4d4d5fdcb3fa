"""Undoes what a crash left in the log of a table: see `writer`."""

from __future__ import annotations

import json
import time

from evermat.store.delta_log import LOG, TableLog, entry_file, number_of
from evermat.store.disk import names, put, read, remove_all, unlink
from evermat.store.location import Location


def remove_temporaries(table: Location) -> int:
    """Removes files that a crash left incomplete in a log; returns the number of its newest entry."""
    newest = -1
    for name in names(table / LOG):
        number = number_of(name)
        if number is None:
            remove_all(table / LOG / name)
        elif name.endswith(".json"):
            newest = max(newest, number)
    return newest


def undo(folder: Location, log: TableLog, newest: int) -> int:
    """Brings a table back to its contents at a pin by one more entry, if it differs; returns the newest entry."""
    present = set(log.live)
    for number in range(log.delta + 1, newest + 1):
        file = entry_file(folder, number)
        try:
            actions = [json.loads(line) for line in read(file).splitlines()]
            added = {action["add"]["path"] for action in actions if "add" in action}
            removed = {action["remove"]["path"] for action in actions if "remove" in action}
        except (ValueError, KeyError, TypeError):  # not an entry, and so for no other program either
            for rest in range(newest, number - 1, -1):
                unlink(entry_file(folder, rest))
            newest = number - 1
            break
        present = (present - removed) | added
    if present == set(log.live):
        return newest
    now = time.time_ns() // 1_000_000
    lines = [
        *({"remove": {"path": path, "deletionTimestamp": now, "dataChange": True}} for path in present - set(log.live)),
        *(
            {
                "add": {
                    "path": part.path,
                    "partitionValues": {},
                    "size": part.size,
                    "modificationTime": now,
                    "dataChange": True,
                    "stats": json.dumps({"numRecords": part.rows}),
                }
            }
            for part in log.current
            if part.path not in present
        ),
        {"commitInfo": {"timestamp": now, "operation": "WRITE", "operationParameters": {}}},
    ]
    put(entry_file(folder, newest + 1), b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return newest + 1
