"""The formats of state directories: for each number, the reader of its versions.

The file `evermat.json` of a state directory has the number of its format. The store writes the newest format only; states of older formats
stay readable. A new format is a module here, a row in `FORMATS`, and a new number in `directory.WRITTEN_FORMAT`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from evermat.core import deferred
from evermat.store.directory import WRITTEN_FORMAT, read_format, wrong_format
from evermat.store.location import Location, ObjectPath, resolved
from evermat.store.repeat import read_again

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.store.data_files import Part
    from evermat.store.version import Version

T = TypeVar("T")


class VersionReader(Protocol):
    """The versions of a state directory up to the newest one that it *saw*; `refresh` sees more. It takes no lock.

    It raises a `StateError` if a version does not exist, or a file is damaged or missing.
    """

    @property
    def path(self) -> Location:
        """The state directory."""

    @property
    def latest(self) -> Version:
        """The newest version that it saw."""

    def refresh(self) -> Version:
        """Sees the newest version that is committed now, and returns it."""

    def is_current(self) -> bool:
        """Whether nothing was committed since it saw the newest version; takes some microseconds, and may be asked by any thread."""

    def versions(self) -> list[Version]:
        """All versions that are kept, oldest first."""

    def version(self, number: int, *, before: bool = False) -> Version:
        """One version; with `before` also the one before the oldest that is kept, if `has` says so: changes begin there."""

    def has(self, number: int) -> bool:
        """Whether a version can be read."""

    def program(self, version: int) -> str:
        """The text of the program of a version."""

    def schema(self, version: int, name: str) -> pa.Schema:
        """The fact columns of a relation as they are stored."""

    def read(self, version: int, name: str) -> Iterator[tuple[int, pa.Table]]:
        """The rows that make up a relation: a snapshot and then the changes, each with its version, ascending.

        A table has the fact columns, `_origin`, `_nonrecursive`, `_recursive` and `_op`; strings are plain or
        dictionaries, whichever is faster to read.
        Several tables may be of one version, and then no fact is in two of them.
        """

    def parts(self, version: int, name: str) -> tuple[Location, list[Part]]:
        """The folder and the data files behind `read`, in its order, for callers that have other machines read them.

        `read_current` reads one of them. They stay for a while when later writes replace them, and never change. `read` checks
        every byte of them; this only checks that they exist.
        """

    def changes(self, first: int, last: int, *, unchanged: bool = False) -> Iterator[tuple[int, str, pa.Table]]:
        """The changes of the versions `first` to `last`: rows `+` and `-` as committed, by version and relation.

        With `unchanged` also rows `=`: facts that stay, of which the origin or the counters change.
        """

    def close(self) -> None:
        """Frees the reader's threads."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


FORMATS: dict[int, Callable[[Any], VersionReader]] = {
    1: deferred("evermat.store.formats.format_1:Reader"),
    2: deferred("evermat.store.formats.format_2:Reader"),
}


def read_state(path: str | os.PathLike[str] | Location, read: Callable[[VersionReader], T]) -> T:
    """What `read` returns of a state directory, which is read again if a writer replaces files that are about to be read.

    Raises:
        StateError: it is not a state directory, or one of another format, or damaged.
    """

    def attempt() -> T:
        with open_reader(path) as reader:
            return read(reader)

    return read_again(path, attempt)


def open_reader(path: str | os.PathLike[str] | Location) -> VersionReader:
    """A reader of the versions of a state directory of any known format.

    Raises:
        StateError: it is not a state directory, or one of another format, or damaged.
    """
    directory = resolved(path)
    number = read_format(directory)
    known = [WRITTEN_FORMAT] if isinstance(directory, ObjectPath) else [*FORMATS]  # there never were others in buckets
    if number not in known:
        raise wrong_format(directory, number, known)
    reader = FORMATS[number](directory)
    reader.refresh()
    return reader
