"""Files of a state: every operation that changes the disk, and the system's errors about files as Evermat's errors."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from evermat.core import Problem, ResourceError, StateError
from evermat.core import error_catalogue as errors

_UNTOUCHED = "the newest version of the state is what it was"
TEMPORARY = ".part"  # how names end of files that are not complete
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


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Turns an `OSError` in the block into a `StateError` about a file that must exist."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise damaged(file, "it is missing") from error
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _SYSTEM:
            raise StateError(Problem(errors.STATE_UNREADABLE, {"file": file, "why": why})) from error
        raise damaged(file, why) from error


def read(file: Path) -> bytes:
    """The contents of a file that must exist."""
    with reading(file):
        return file.read_bytes()


def opened(file: Path) -> FileIO:
    """A file that must exist, opened: it can be read to its end although a writer deletes it."""
    with reading(file):
        return FileIO(file)


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
        fsync(descriptor, path)
    finally:
        os.close(descriptor)


# --- operations that change the disk: all of the store's go through these, so that tests can stop at each ------------

_watcher: Callable[[str, Path], None] | None = None


def watch(watcher: Callable[[str, Path], None] | None) -> None:
    """Calls a function before each operation that changes the disk, with the operation's name and path."""
    global _watcher  # noqa: PLW0603 - one process has one disk
    _watcher = watcher


def _about_to(operation: str, path: Path) -> None:
    if _watcher is not None:
        _watcher(operation, path)


def create(file: Path) -> int:
    """Opens an empty file to write, and returns its descriptor."""
    _about_to("create", file)
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)


def write(descriptor: int, data: bytes | memoryview, file: Path) -> None:
    """Writes all of the bytes."""
    _about_to("write", file)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def fsync(descriptor: int, path: Path) -> None:
    """Makes what was written survive a power loss."""
    _about_to("fsync", path)
    os.fsync(descriptor)


def write_file(file: Path, contents: bytes | memoryview) -> None:
    """Writes a whole file, not yet durably."""
    descriptor = create(file)
    try:
        write(descriptor, contents, file)
    finally:
        os.close(descriptor)


def overwrite(file: Path, contents: bytes) -> None:
    """Replaces the first bytes of a file in place."""
    _about_to("write", file)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.pwrite(descriptor, contents, 0)
    finally:
        os.close(descriptor)


def rename(old: Path, new: Path) -> None:
    """Gives a file or folder its name; a file of that name is replaced."""
    _about_to("rename", new)
    old.rename(new)


def unlink(path: Path) -> None:
    """Removes a file, or a link, if it exists."""
    _about_to("unlink", path)
    path.unlink(missing_ok=True)


def mkdir(folder: Path) -> None:
    """Makes a folder, and those above it, unless it exists."""
    if not folder.is_dir():
        _about_to("mkdir", folder)
        folder.mkdir(parents=True, exist_ok=True)


def refuse_links(folders: Iterable[Path]) -> None:
    """Raises a `StateError` for a folder that is a symbolic link: a writer would change, and delete, what is outside of the state."""
    for folder in folders:
        if folder.is_symlink():
            raise damaged(folder, "it is a symbolic link, which a writer does not follow")


def remove(path: Path) -> Iterator[int]:
    """Removes whatever has this name, and yields the size of each file; links are removed, not followed."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISDIR(found.st_mode):
        for name in names(path):
            yield from remove(path / name)
        _about_to("rmdir", path)
        path.rmdir()
    else:
        unlink(path)
        yield found.st_size


def remove_all(path: Path) -> None:
    """Removes whatever has this name."""
    for _ in remove(path):
        pass


def put(file: Path, contents: bytes) -> None:
    """Writes a whole file durably and atomically."""
    temporary = temporary_of(file)
    write_file(temporary, contents)
    sync(temporary)
    rename(temporary, file)
    sync(file.parent)


def temporary_of(file: Path) -> Path:
    """The name that a file has until it is complete."""
    return file.with_name(f".{file.name}{TEMPORARY}")
