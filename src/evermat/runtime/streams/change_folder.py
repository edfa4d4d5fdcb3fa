"""A directory with a change file for each version of a state directory: what it changed in every relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.core import ChangesFormat, make_folder, replace_output, reported
from evermat.io import write_changes
from evermat.runtime.states.change_history import changes_between
from evermat.store import OP, VERSION, sync

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.io import Changed
    from evermat.store import Location, Version


class ChangeFolder:
    """Writes the change files of a stream.

    Invariant: when an update begins, all versions of the stream that were committed since the directory is used have their file. So after a
    crash only the newest can be without; it is written at the next start.
    """

    def __init__(self, folder: Path, form: ChangesFormat, state: Location) -> None:
        self._folder, self._form, self._state = folder, form, state

    def begin(self, newest: Version | None) -> None:
        """Makes the directory; if it exists, completes it."""
        if self._folder.is_dir():
            self.complete(newest)
        with reported(self._folder, "no version was made"):
            make_folder(self._folder)

    def complete(self, newest: Version | None) -> None:
        """Writes the file of the newest version of the stream if it is missing."""
        if newest is not None and not self._file(newest.number).exists():
            changes = changes_between(self._state, newest.number, newest.number)
            self.write(_Saved(_rows(changes, "+"), _rows(changes, "-")), newest.number)

    def write(self, change: Changed, version: int) -> None:
        """Writes the file of a version: when it has its name it is whole, and survives a power loss."""
        file = self._file(version)
        hidden = file.with_name(f".{file.name}")
        write_changes(change, hidden)
        with reported(file, f"version {version} is committed"):
            sync(hidden)
            replace_output(hidden, file)
            sync(self._folder)

    def _file(self, version: int) -> Path:
        return self._folder / f"{version:06}.{self._form}"


@dataclass(frozen=True)
class _Rows:
    """Facts of a relation as a table."""

    table: pa.Table

    def to_arrow(self) -> pa.Table:
        return self.table


@dataclass(frozen=True)
class _Saved:
    """What a version changed, as the state directory has it."""

    inserted: Mapping[str, _Rows]
    deleted: Mapping[str, _Rows]


def _rows(changes: Mapping[str, pa.Table], op: str) -> dict[str, _Rows]:
    """The facts of changes of one kind."""
    import pyarrow.compute as pc

    return {
        name: _Rows(table.filter(pc.equal(table[OP], op)).drop_columns([OP, VERSION]))
        for name, table in changes.items()
    }
