"""A state directory: its mark, the atomic creation of a new one, and the lock of its writer."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from evermat.core import Problem, StateError, check_own_files, refuse_input
from evermat.core import error_catalogue as errors
from evermat.store.delta_log import entry_numbers
from evermat.store.disk import (
    contents_of,
    damaged,
    exists,
    mkdir,
    names,
    put,
    read,
    reading,
    remove_all,
    rename,
    sync,
    writing,
)
from evermat.store.location import Location, ObjectPath

WRITTEN_FORMAT = 2
MARK = "evermat.json"
MIGRATED = ".2"  # how folders are called until they replace those of format 1
COMMITS, RELATIONS, PROGRAMS, LOCK = "commits", "relations", "programs", "lock"
_KIND = "evermat state"
_SUFFIX = ".new"
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|\\|[\x00-\x1f]")  # unescaped, taken for a separator, refused


def read_format(path: Location) -> int:
    """The number of the format that a state directory has.

    Raises:
        StateError: it is not a state directory, or damaged.
    """
    mark = path / MARK
    if isinstance(path, ObjectPath):
        _check_bucket(path)
        with reading(mark):
            try:
                return _format(mark, contents_of(mark))
            except FileNotFoundError:
                raise _not_a_state(path, f"it has no file `{MARK}`") from None
    check_own_files(path)
    if not path.is_dir():
        raise _not_a_state(path, "it is a file, not a folder" if path.exists() else "there is no such folder")
    if not mark.exists():
        if (path / COMMITS).is_dir() and (path / RELATIONS).is_dir():
            raise damaged(mark, "it is missing")
        raise _not_a_state(path, f"it has no file `{MARK}`")
    return _format(mark, read(mark))


def _check_bucket(path: ObjectPath) -> None:
    refuse_input(str(path), "it is a URI")


def _format(mark: Location, raw: bytes) -> int:
    try:
        found: Any = json.loads(raw)
    except ValueError as error:
        raise damaged(mark, "it is not JSON") from error
    if not isinstance(found, dict) or found.get("kind") != _KIND or type(found.get("format")) is not int:
        raise damaged(mark, "it does not say which format the state has")
    return int(found["format"])


def place(path: Location, name: str) -> Location:
    """The folder of this name in a state: of one that is being migrated the new one, until that gets the name."""
    if isinstance(path, ObjectPath):
        return path / name
    new = path / f"{name}{MIGRATED}"
    return new if new.is_dir() else path / name


MARK_TEXT = json.dumps({"format": WRITTEN_FORMAT, "kind": _KIND}) + "\n"


def write_mark(path: Path) -> None:
    """Records that a directory is a state of the format that is written."""
    put(path / MARK, MARK_TEXT.encode())


def wrong_format(path: Location, found: int, known: Iterable[int]) -> StateError:
    """The error for a state of a format that is not known."""
    expected = " and ".join(map(str, known))
    return StateError(
        Problem(errors.STATE_FORMAT, {"path": path, "found": found, "expected": expected, "file": path / MARK})
    )


def holds_something(path: Location) -> bool:
    """Whether a state that is saved there is not new. A first version that a crash left incomplete in a bucket is completed."""
    if isinstance(path, Path):
        return path.is_dir() and any(path.iterdir())
    _check_bucket(path)
    return exists(path / MARK) or _is_completed(path) or bool({*names(path)} - {COMMITS, RELATIONS, PROGRAMS})


def _is_completed(path: ObjectPath) -> bool:
    from evermat.store.intent import complete, pending  # noqa: PLC0415 - only for buckets

    commits = path / COMMITS
    if (intent := pending(commits, 0)) is not None:
        complete(path, path / MARK, 0, intent)
        return True
    if 0 not in entry_numbers(commits):
        return False
    with writing(path):
        put(path / MARK, MARK_TEXT.encode())
    return True


def check_free(path: Location) -> None:
    """Raises a `StateError` unless `path` does not exist yet or is an empty directory."""
    if isinstance(path, ObjectPath):
        if holds_something(path):
            if exists(path / MARK):
                raise StateError(Problem(errors.STATE_EXISTS, {"path": path}))
            raise _not_a_state(path, "it is not empty, and what is in it is left alone")
        return
    if not os.path.lexists(path) or (path.is_dir() and not names(path)):
        return
    if (path / MARK).exists():
        raise StateError(Problem(errors.STATE_EXISTS, {"path": path}))
    raise _not_a_state(path, "it is not empty, and what is in it is left alone")


def check_writable_path(path: Location) -> None:
    """Raises a `StateError` for a path that `deltalake` would read as another one."""
    if found := _MISREAD.search(str(path)):
        what = "a control character" if found.group() < " " else f"`{found.group()}`"
        raise StateError(Problem(errors.STATE_PLACE, {"path": path, "what": what}))


class StateLock:
    """The lock of the one writer of a state, until it is released or the process ends. In a bucket it locks nothing (see `intent`).

    A forked child lets go of its copy: else the state would stay locked as long as the child lives.
    """

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        _locks.add(self)

    @property
    def is_held(self) -> bool:
        """Whether this process still holds it."""
        return self._descriptor is not None

    def release(self) -> None:
        """Lets another writer have the state."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.release()


_locks: weakref.WeakSet[StateLock] = weakref.WeakSet()


def _let_go() -> None:
    for lock in [*_locks]:
        lock.release()


os.register_at_fork(after_in_child=_let_go)


def new_folder(path: Path) -> tuple[Path, StateLock]:
    """An empty locked state beside `path`, which `publish` renames to that path."""
    prefix = f".{path.name[:100]}-"
    temporary = path.parent / f"{prefix}{os.urandom(6).hex()}{_SUFFIX}"
    check_writable_path(path)
    with writing(path):
        mkdir(path.parent)
        _remove_left_overs(path.parent, prefix)
        mkdir(temporary)
        lock = take_lock(temporary)
        try:
            for name in (COMMITS, RELATIONS, PROGRAMS):
                mkdir(temporary / name)
            write_mark(temporary)
        except BaseException:
            with suppress(OSError, StateError):
                remove_all(temporary)
            lock.release()
            raise
    return temporary, lock


def publish(temporary: Path, path: Path) -> None:
    """Makes a new state visible at its path, all of it at once."""
    with writing(path):
        try:
            rename(temporary, path)
        except OSError as error:
            if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
                check_free(path)
            raise
        try:
            sync(path.parent)
        except OSError:
            rename(path, temporary)  # it may not survive a power loss, so it was not saved
            raise


def take_lock(path: Location) -> StateLock:
    """Locks the state for one writer.

    The system refuses it to a second one in this process as in any other, for each has opened the file for itself.
    """
    if isinstance(path, ObjectPath):
        return StateLock(None)
    check_writable_path(path)
    with writing(path / LOCK):
        descriptor = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise StateError(Problem(errors.STATE_LOCKED, {"path": path})) from error
        except OSError:
            os.close(descriptor)
            raise
    return StateLock(descriptor)


def _remove_left_overs(parent: Path, prefix: str) -> None:
    """Removes new states that a crash left unfinished; one that is being built is locked."""
    for name in names(parent):
        middle = name[len(prefix) : -len(_SUFFIX)]
        if name != f"{prefix}{middle}{_SUFFIX}" or len(middle) != 12 or not (parent / name / LOCK).exists():
            continue
        with suppress(StateError, OSError):
            lock = take_lock(parent / name)
            try:
                remove_all(parent / name)
            finally:
                lock.release()


def _not_a_state(path: Location, why: str) -> StateError:
    return StateError(Problem(errors.NOT_A_STATE, {"path": path, "why": why}))
