"""The formats of state directories: for each number, how its versions are read.

A state directory says in its file `evermat.json` which format it has. The store writes the newest format only; states of older ones stay readable. A
new format is a module here, a row in `FORMATS`, and a new number in `directory.WRITTEN_FORMAT`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from evermat.core import Problem, StateError, deferred
from evermat.core import error_catalogue as errors
from evermat.store.directory import MARK, read_format

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.store.delta_log import Part
    from evermat.store.version import Version


class VersionReader(Protocol):
    """The versions of a state directory up to the newest one that it *saw*; `refresh` sees more. It takes no lock.

    What it raises is a `StateError`: there is no such version, or a file is damaged or missing.
    """

    @property
    def path(self) -> Path:
        """The state directory."""

    @property
    def latest(self) -> Version:
        """The newest version that it saw."""

    def refresh(self) -> Version:
        """Sees the newest version that there is now."""

    def versions(self) -> list[Version]:
        """All versions that are kept, oldest first."""

    def version(self, number: int) -> Version:
        """One version."""

    def program(self, version: int) -> str:
        """The text of the program of a version."""

    def schema(self, version: int, name: str) -> pa.Schema:
        """The fact columns of a relation as they are stored."""

    def read(self, version: int, name: str) -> Iterator[tuple[int, pa.Table]]:
        """The rows that make up a relation: a snapshot and then the changes, each with its version, ascending."""

    def files(self, version: int, name: str) -> list[tuple[int, list[Path]]]:
        """The data files behind `read`, by version and in its order."""

    def read_parts(self, name: str, parts: Iterable[Part]) -> Iterator[pa.Table]:
        """The rows of some files of a relation in the newest version."""

    def changes(self, first: int, last: int) -> Iterator[tuple[int, str, pa.Table]]:
        """What the versions `first` to `last` changed: rows `+` and `-` as committed, by version and relation."""

    def close(self) -> None:
        """Reads nothing more."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


FORMATS: dict[int, Callable[[Path], VersionReader]] = {1: deferred("evermat.store.formats.format_1:Reader")}


def open_reader(path: str | os.PathLike[str]) -> VersionReader:
    """The versions of a state directory of any known format, to be read.

    Raises:
        StateError: it is not a state directory, or one of another format, or damaged.
    """
    place = Path(os.path.realpath(path))
    number = read_format(place)
    if number not in FORMATS:
        known = " and ".join(map(str, FORMATS))
        details = {"path": place, "found": number, "expected": known, "file": place / MARK}
        raise StateError(Problem(errors.STATE_FORMAT, details))
    reader = FORMATS[number](place)
    reader.refresh()
    return reader
