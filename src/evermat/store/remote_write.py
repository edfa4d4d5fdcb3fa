"""Data files that tasks elsewhere write into a state: the process that commits only names them in logs.

A file has a number that no other attempt of a task uses, so each attempt writes files of its own. Those that the committing process is
not told of, because their task failed or ran twice, are never in a log, and are removed. A task makes no folders: what comes too late,
after a new state was given up, finds none.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from evermat.core import EvermatError
from evermat.store.data_files import Columns, Part, PartName
from evermat.store.disk import TEMPORARY, exists, mkdir, names, remove_together, unlink, write_file, writing
from evermat.store.location import Location, ObjectPath

_PER_ATTEMPT = 1 << 12  # numbers of files of one attempt


@dataclass(frozen=True, slots=True)
class Target:
    """Where the rows of a relation belong, and the name of their files."""

    folder: Location
    name: PartName
    columns: Columns


class RemoteRows(ABC):
    """Rows of a relation that tasks can write; iterated, they come here, some at a time."""

    writer: RemoteWriter  # the same for all relations that it can write together
    is_large: bool  # few rows had better come here: they become one file

    @abstractmethod
    def __iter__(self) -> Iterator[pa.Table]: ...


class RemoteWriter(ABC):
    """Has tasks write rows."""

    @abstractmethod
    def write(self, wanted: Sequence[tuple[RemoteRows, Target]], token: Location | None) -> list[list[Part]] | None:
        """The files of each relation; None if tasks do not see the file `token`.

        Raises:
            OSError: a task could not write.
        """


def first_number() -> int:
    """The number of the first file of an attempt of a task."""
    return int.from_bytes(os.urandom(5)) * _PER_ATTEMPT


def write_remotely(
    wanted: Sequence[tuple[RemoteRows, Target]], state: Location, made: list[Location]
) -> list[list[Part] | None]:
    """The files that tasks have written, for each relation; None where rows have to come here. `made` gets their locations.

    Files of attempts that do not count are removed, and all files if there is an error.
    """
    found: list[list[Part] | None] = [None] * len(wanted)
    by_writer: dict[int, list[int]] = {}
    for position, (rows, _) in enumerate(wanted):
        by_writer.setdefault(id(rows.writer), []).append(position)
    for positions in by_writer.values():
        some = [wanted[position] for position in positions]
        targets = [target for _, target in some]
        with writing(state):
            for target in targets:
                mkdir(target.folder)
        parts: list[list[Part]] | None = None
        try:
            with writing(state), _token(targets[0].folder) as token:
                parts = some[0][0].writer.write(some, token)
            if parts is not None and not all(map(_are_seen, targets, parts)):
                parts = None
        finally:
            with suppress(OSError, EvermatError):  # the next writer, or a vacuum, removes them too
                for target, files in zip(targets, parts or [[] for _ in some], strict=True):
                    _remove_others(target, {part.path for part in files})
        for position, target, files in zip(positions, targets, parts or (), strict=parts is not None):
            found[position] = files
            made += [target.folder / part.path for part in files]
    return found


@contextmanager
def _token(folder: Location) -> Iterator[Location | None]:
    """A file by which tasks know that they see the folder, and not another one of the same path; a bucket is seen by all."""
    if isinstance(folder, ObjectPath):
        yield None
        return
    token = folder / f".{os.urandom(6).hex()}{TEMPORARY}"
    write_file(token, b"")
    try:
        yield token
    finally:
        unlink(token)


def is_token_seen(token: Location | None) -> bool:
    """Whether a task sees what the committing process does."""
    return token is None or exists(token)


def _are_seen(target: Target, parts: Sequence[Part]) -> bool:
    """Whether this process sees files as tasks have reported them."""
    if isinstance(target.folder, ObjectPath):
        return True
    try:
        return all((target.folder / part.path).stat().st_size == part.size for part in parts)
    except OSError:
        return False


def _remove_others(target: Target, reported: set[str]) -> None:
    """Removes what attempts that do not count have written for an entry."""

    def is_of_attempt(name: str) -> bool:
        if isinstance(target.folder, Path) and name.endswith(TEMPORARY):
            return True  # no other writer
        try:
            return Part.of(name, 0).entry == target.name.entry and target.name.writer in name
        except ValueError:
            return False

    remove_together(
        [target.folder / name for name in names(target.folder) if name not in reported and is_of_attempt(name)]
    )
