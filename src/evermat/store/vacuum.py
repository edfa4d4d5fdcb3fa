"""Deletes files that no kept version needs.

The needed files are computed from the remaining rows; everything else in the tables' folders is deleted, also remains of
crashes. Log entries are deleted only after a checkpoint replaces them, so that other Delta readers can still open the
table. No version changes, so a vacuum can be interrupted anywhere and repeated.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from evermat.store.commits import Commits, Pin, commit_writer
from evermat.store.data_files import Columns
from evermat.store.delta_log import LOG, Log, entry_file, entry_numbers
from evermat.store.delta_table import CHECKS, TableWriter
from evermat.store.directory import COMMITS, PROGRAMS, RELATIONS
from evermat.store.disk import names


def sweep(
    path: Path, commits: Commits, writer: Callable[[str, Columns], TableWriter], log: Callable[[Pin], Log]
) -> tuple[int, int]:
    """Deletes files that the rows do not need, and returns the number of files and bytes."""
    rows = list(commits.rows())
    made = {row.version: row for row in reversed(rows)}  # the first row of each version
    whole = {row.version: row for row in rows}  # the last one
    files: dict[str, set[str]] = defaultdict(set)
    base: dict[str, int] = {}
    columns: dict[str, Columns] = {}
    for row in [*made.values(), *whole.values()]:
        for pin in row.pins.values():
            base[pin.folder] = min(pin.base, base.get(pin.folder, pin.base))
            columns[pin.folder] = pin.columns
            if row is whole[row.version]:
                files[pin.folder].update(part.path for part in log(pin).parts(pin.delta))
            if row is made[row.version] and pin.changed == row.version:
                files[pin.folder].update(part.path for part in log(pin).entry(pin.delta).added)
    removed = _Removed()
    for folder in names(path / RELATIONS):
        if folder in base:
            _sweep_table(writer(folder, columns[folder]), files[folder], base[folder], removed)
        else:
            removed.tree(path / RELATIONS / folder)
    _sweep_table(commit_writer(path / COMMITS), {part.path for part in commits.parts}, commits.base, removed)
    programs = {row.program for row in rows}
    removed.files(path / PROGRAMS / name for name in names(path / PROGRAMS) if name not in programs)
    return removed.count, removed.bytes


def _sweep_table(writer: TableWriter, needed: set[str], base: int, removed: _Removed) -> None:
    table = writer.folder
    if any(number < base for number in entry_numbers(table)):
        if base not in writer.checkpoints():
            writer.make_checkpoint(base)
        removed.files(entry_file(table, number) for number in entry_numbers(table) if number < base)
        writer.drop_checkpoints_before(base)
    removed.files(file for file in table.glob("*.parquet") if file.name not in needed)
    removed.files(file for file in table.glob(".*.part"))
    for folder in [table / name for name in names(table) if name not in {LOG, CHECKS} and (table / name).is_dir()]:
        removed.files(file for file in folder.iterdir() if f"{folder.name}/{file.name}" not in needed)
        if not names(folder):
            folder.rmdir()
    removed.files(file for file in (table / LOG).iterdir() if file.suffix not in {".json", ".parquet"})


class _Removed:
    """Deletes files and counts them."""

    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0

    def files(self, files: Iterable[Path]) -> None:
        for file in list(files):
            self.count += 1
            self.bytes += file.stat().st_size
            file.unlink()

    def tree(self, folder: Path) -> None:
        self.files(file for file in folder.rglob("*") if file.is_file())
        shutil.rmtree(folder)
