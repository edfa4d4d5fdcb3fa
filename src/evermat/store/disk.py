"""Files of a state: every operation that changes the disk, and the system's errors about files as Evermat's errors.

A location in a bucket has the same operations where they exist there. An object is written whole, and stays once it is
written: there is nothing to make durable, and folders are not made.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from evermat.core import Problem, ResourceError, StateError
from evermat.core import error_catalogue as errors
from evermat.store.location import Location, ObjectPath

if TYPE_CHECKING:
    from evermat.store.bucket import Bucket

_L = TypeVar("_L", Path, ObjectPath, Location)
_AT_ONCE = 8  # requests
_UNTOUCHED = "the newest version of the state is what it was"
TEMPORARY = ".part"  # how names end of files that are not complete
# Missing files are damage; with these the system, not the state, is at fault.
_SYSTEM = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM}


def damaged(file: Location, why: str) -> StateError:
    """The error that names a damaged file."""
    return StateError(Problem(errors.STATE_DAMAGED, {"file": file, "why": why}))


def cannot_write(path: Location, why: str) -> ResourceError:
    """The error for a disk that is full or not writable."""
    return ResourceError(Problem(errors.CANNOT_WRITE, {"path": path, "why": why, "rest": _UNTOUCHED}))


@contextmanager
def writing(path: Location) -> Iterator[None]:
    """Turns an `OSError` in the block into a `ResourceError` about `path`."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error.strerror or str(error)) from error


@contextmanager
def reading(file: Location) -> Iterator[None]:
    """Turns an `OSError` in the block into a `StateError` about a file that must exist."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise damaged(file, "it is missing") from error
    except OSError as error:
        why = error.strerror or str(error)
        if error.errno in _SYSTEM or isinstance(file, ObjectPath):
            raise StateError(Problem(errors.STATE_UNREADABLE, {"file": file, "why": why})) from error
        raise damaged(file, why) from error


def read(file: Location) -> bytes:
    """The contents of a file that must exist."""
    with reading(file):
        return contents_of(file)


def read_each(files: Sequence[Location]) -> Iterable[bytes]:
    """The contents of files that must exist; of objects several at a time, for each request takes a while."""
    if len(files) < 2 or not isinstance(files[0], ObjectPath):
        return map(read, files)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        return list(pool.map(read, files))


def contents_of(file: Location) -> bytes:
    """The contents of a file; an `OSError` if it cannot be read."""
    return file.read_bytes() if isinstance(file, Path) else _bucket(file).read(file.key)


def opened(file: Location) -> FileIO | Unread:
    """A file that must exist, opened: it can be read to its end although a writer deletes it. An object cannot be held."""
    if isinstance(file, ObjectPath):
        return Unread(file)
    with reading(file):
        return FileIO(file)


class Unread:
    """An object that is read when its contents are wanted."""

    def __init__(self, file: ObjectPath) -> None:
        self._file = file

    def readall(self) -> bytes:
        """The contents."""
        return _bucket(self._file).read(self._file.key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def exists(file: Location) -> bool:
    """Whether there is a file; a `StateError` if that is not known."""
    if isinstance(file, Path):
        return file.exists()
    with reading(file):
        return file.exists()


def names(folder: Location) -> list[str]:
    """The names in a folder; none if it does not exist."""
    if isinstance(folder, ObjectPath):
        with reading(folder):
            return _bucket(folder).names(folder.key)
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is wanted
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        why = error.strerror or str(error)
        raise StateError(Problem(errors.STATE_UNREADABLE, {"file": folder, "why": why})) from error


def below(folder: ObjectPath) -> list[tuple[ObjectPath, int]]:
    """All objects below a folder, with their bytes."""
    with reading(folder):
        return [(ObjectPath(folder.bucket, key), size) for key, size in _bucket(folder).below(folder.key)]


def _bucket(path: ObjectPath) -> Bucket:
    from evermat.store.bucket import bucket_of  # noqa: PLC0415 - only where it is used

    return bucket_of(path)


def sync(path: Location) -> None:
    """Makes the contents of a file, or the names in a folder, survive a power loss."""
    if isinstance(path, ObjectPath):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fsync(descriptor, path)
    finally:
        os.close(descriptor)


# --- operations that change the disk: all of the store's go through these, so that tests can stop at each ------------

_watcher: Callable[[str, Location], None] | None = None


def watch(watcher: Callable[[str, Location], None] | None) -> None:
    """Calls a function before each operation that changes the disk, with the operation's name and path."""
    global _watcher  # noqa: PLW0603 - one process has one disk
    _watcher = watcher


def _about_to(operation: str, path: Location) -> None:
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


def write_file(file: Location, contents: bytes | memoryview) -> None:
    """Writes a whole file, not yet durably."""
    if isinstance(file, ObjectPath):
        _put(file, contents)
        return
    descriptor = create(file)
    try:
        write(descriptor, contents, file)
    finally:
        os.close(descriptor)


def _put(file: ObjectPath, contents: bytes | memoryview) -> None:
    _about_to("put", file)
    _bucket(file).put(file.key, contents)


def put_new(file: ObjectPath, contents: bytes) -> bool:
    """Writes an object unless there is one of that name; returns whether it did."""
    _about_to("put new", file)
    return _bucket(file).put_new(file.key, contents)


def overwrite(file: Location, contents: bytes) -> None:
    """Replaces the first bytes of a file in place."""
    if isinstance(file, ObjectPath):
        _put(file, contents)
        return
    _about_to("write", file)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        os.pwrite(descriptor, contents, 0)
    finally:
        os.close(descriptor)


def rename(old: Location, new: Location) -> None:
    """Gives a file or folder its name; a file of that name is replaced. Objects keep theirs."""
    assert isinstance(old, Path)
    assert isinstance(new, Path)
    _about_to("rename", new)
    old.rename(new)


def unlink(path: Location) -> None:
    """Removes a file, or a link, if it exists."""
    if isinstance(path, ObjectPath):
        delete([path])
        return
    _about_to("unlink", path)
    path.unlink(missing_ok=True)


def delete(paths: Sequence[ObjectPath]) -> None:
    """Deletes objects of one bucket, together."""
    if paths:
        _about_to("delete", paths[0])
        _bucket(paths[0]).delete([path.key for path in paths])


def mkdir(folder: Location) -> None:
    """Makes a folder, and those above it, unless it exists."""
    if isinstance(folder, Path) and not folder.is_dir():
        _about_to("mkdir", folder)
        folder.mkdir(parents=True, exist_ok=True)


def refuse_links(folders: Iterable[Location]) -> None:
    """Raises a `StateError` for a folder that is a symbolic link: a writer would change, and delete, what is outside of the state."""
    for folder in folders:
        if isinstance(folder, Path) and folder.is_symlink():
            raise damaged(folder, "it is a symbolic link, which a writer does not follow")


def remove(path: Location) -> Iterator[int]:
    """Removes whatever has this name, and yields the size of each file; links are removed, not followed."""
    if isinstance(path, ObjectPath):
        size = _bucket(path).size(path.key)
        if size is not None:
            delete([path])
            yield size
        return
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


def remove_all(path: Location) -> None:
    """Removes whatever has this name."""
    for _ in remove(path):
        pass


def remove_together(paths: Sequence[Location]) -> None:
    """Removes files or folders; of a bucket files, all at once."""
    delete([path for path in paths if isinstance(path, ObjectPath)])
    for path in paths:
        if isinstance(path, Path):
            remove_all(path)


def put(file: Location, contents: bytes) -> None:
    """Writes a whole file durably and atomically."""
    if isinstance(file, ObjectPath):
        _put(file, contents)
        return
    temporary = temporary_of(file)
    write_file(temporary, contents)
    sync(temporary)
    rename(temporary, file)
    sync(file.parent)


def temporary_of(file: _L) -> _L:
    """The name that a file has until it is complete. An object is never incomplete, and there is none of this name."""
    return file.parent / f".{file.name}{TEMPORARY}"
