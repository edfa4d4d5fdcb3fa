"""Durable files, and errors of the system about files as Evermat's errors."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evermat.core import Problem, ResourceError, StateError
from evermat.core import error_catalogue as errors

_UNTOUCHED = "the newest version of the state is what it was"
_OS_ERROR = re.compile(r"\(os error (\d+)\)")  # how Rust prints the number
# Missing files are damage; with these the system, not the state, is at fault.
_SYSTEM = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


def damaged(file: Path, why: str) -> StateError:
    """The error that names a damaged file."""
    return StateError(Problem(errors.STATE_DAMAGED, {"file": file, "why": why}))


def cannot_write(path: Path, why: str) -> ResourceError:
    """The error for a disk that is full or not writable."""
    return ResourceError(Problem(errors.CANNOT_WRITE, {"path": path, "why": why, "rest": _UNTOUCHED}))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns an `OSError` in the block into a `ResourceError` about `path`."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error.strerror or str(error)) from error


def system_error(error: BaseException) -> str:
    """The system's message if a library has passed on an error of the system; otherwise nothing."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    found = _OS_ERROR.search(str(error))
    return os.strerror(int(found.group(1))) if found else ""


def read(file: Path) -> bytes:
    """The contents of a file that must exist."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise damaged(file, "it is missing") from error
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _SYSTEM:
            raise StateError(Problem(errors.STATE_UNREADABLE, {"file": file, "why": why})) from error
        raise damaged(file, why) from error


def names(folder: Path) -> list[str]:
    """The names in a folder; none if it does not exist."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is wanted
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        why = error.strerror or str(error)
        raise StateError(Problem(errors.STATE_UNREADABLE, {"file": folder, "why": why})) from error


def sync(path: Path) -> None:
    """Makes the contents of a file, or the names in a folder, survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put(file: Path, contents: bytes) -> None:
    """Writes a whole file durably and atomically."""
    temporary = file.with_name(f".{file.name}.part")
    with temporary.open("wb") as out:
        out.write(contents)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)
    sync(file.parent)
