"""What a crash leaves behind, and how the next writer undoes it.

A crash between a relation's log entry and the row that pins it leaves entries that no version knows. Readers never see
them, for they read as pinned. They must go before the next version, which would otherwise seem to include their rows.
An entry that is whole may have been read by another Delta reader, and entries never change once they can be read: so
it is undone by one more entry. An entry that is not whole, which only a power loss leaves, was readable to nobody and
is removed.
"""

from __future__ import annotations

from pathlib import Path

from evermat.store.delta_log import Log, entry_file, entry_numbers, whole_entry
from evermat.store.delta_table import TableWriter
from evermat.store.disk import names, sync


def undo(writer: TableWriter, log: Log, pinned: int) -> None:
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


def left_overs(relations: Path, known: set[str]) -> list[Path]:
    """Folders of relations that no version knows."""
    return [relations / name for name in names(relations) if name not in known]
