"""Files that the driver and executors exchange: at paths that all of them see, or objects of a bucket.

A file is written once, and read when it is complete. At a path that a system refuses, everything raises an `OSError`; what a bucket
does not do is a `ResourceError` that names the object, for then the service, and not the caller, is at fault.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evermat.core import Problem, ResourceError
from evermat.core import error_catalogue as errors
from evermat.store import Location, ObjectPath, StorageError, bucket_of

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_FIRST = 1 << 23  # bytes that one request reads: most files have no more
_ASKED = 8  # objects of which each is asked for its size; of more the folder is listed
_GLOB = re.compile(r"([\\*?\[\]{}])")  # special characters in a path that Spark reads
_ROUNDS = 3  # of looking for objects that a task has written while the others were deleted


def no_exchange(path: Location | str, why: str) -> ResourceError:
    """The error for a folder to which facts that are to be exchanged cannot be written."""
    details = {"path": path, "why": why, "rest": "it is needed to exchange facts"}
    return ResourceError(Problem(errors.CANNOT_WRITE, details))


@contextmanager
def _asking(file: ObjectPath) -> Iterator[None]:
    """Turns what a service does not do into an error about a file."""
    try:
        yield
    except (StorageError, FileNotFoundError) as error:
        raise bucket_failed(file, error.strerror or str(error)) from error


def bucket_failed(file: Location | str, why: str) -> ResourceError:
    """The error for an object of the scratch folder that cannot be written or read."""
    return ResourceError(Problem(errors.NO_EXCHANGE, {"path": file, "why": why}))


# --- contents ------------------------------------------------------------------------------------------------


@contextmanager
def reading(file: Location) -> Iterator[pa.NativeFile]:
    """A file to read, any part of it; of a large object only what is read is fetched."""
    if isinstance(file, Path):
        with pa.memory_map(str(file)) as mapped:
            yield mapped
        return
    bucket = bucket_of(file)
    with _asking(file):
        first, size = bucket.read_first(file.key, _FIRST)
    if size == len(first):
        yield pa.BufferReader(first)
    else:
        yield pa.PythonFile(_Ranges(file, size), mode="r")


class _Ranges(io.RawIOBase):
    """An object that is read range by range."""

    def __init__(self, file: ObjectPath, size: int) -> None:
        super().__init__()
        self._file, self._size, self._position = file, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        start = self._position
        end = self._size if size < 0 else min(self._size, start + size)
        if start >= end:
            return b""
        with _asking(self._file):
            found = bucket_of(self._file).read_range(self._file.key, start, end)
        self._position = end
        return found


@contextmanager
def writing(file: Location) -> Iterator[pa.NativeFile]:
    """A new file to write; an object is uploaded at the end of the block, unless there was an error."""
    if isinstance(file, Path):
        with pa.OSFile(str(file), "wb") as opened:
            yield opened
        return
    buffer = pa.BufferOutputStream()
    yield buffer
    with _asking(file):
        bucket_of(file).put(file.key, memoryview(buffer.getvalue()))


@contextmanager
def parquet_file(file: Location, **options: Any) -> Iterator[pq.ParquetFile]:
    """A Parquet file to read, a group of rows after the other."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - tasks that read inputs start without it

    if isinstance(file, Path):
        with pq.ParquetFile(str(file), **options) as stored:
            yield stored
        return
    with reading(file) as source, pq.ParquetFile(source, pre_buffer=True, **options) as stored:
        yield stored


def write_parquet(table: pa.Table, file: Location, **options: Any) -> None:
    """Writes a table as a Parquet file."""
    import pyarrow.parquet as pq  # noqa: PLC0415

    with writing(file) as sink:
        pq.write_table(table, sink, **options)


def for_reading(uri: str) -> str:
    """A URI for Spark to read from, in which no character is special."""
    return _GLOB.sub(r"\\\1", uri)


def uri_for_spark(path: Path) -> str:
    """A path for Spark to read from, in which no character is special."""
    return for_reading(f"file://{path}")


# --- folders -------------------------------------------------------------------------------------------------


def is_seen(file: Location) -> bool:
    """Whether this process sees a file that a task has written: as it does any object."""
    return isinstance(file, ObjectPath) or file.exists()


def make_folder(folder: Location) -> None:
    """Makes a folder; in a bucket there is one when something is in it."""
    if isinstance(folder, Path):
        folder.mkdir()


def sizes(files: Iterable[Location], folder: Location) -> int:
    """The bytes of some files below a folder."""
    wanted = set(files)
    if isinstance(folder, Path):
        return sum(file.stat().st_size for file in wanted if isinstance(file, Path))
    bucket = bucket_of(folder)
    with _asking(folder):
        if len(wanted) <= _ASKED:
            return sum(bucket.size(file.key) or 0 for file in wanted if isinstance(file, ObjectPath))
        return sum(size for key, size in bucket.below(folder.key) if ObjectPath(folder.bucket, key) in wanted)


def remove_files(files: Iterable[Location]) -> None:
    """Removes files, as far as that is possible; objects of a bucket together."""
    objects: dict[str, list[ObjectPath]] = {}
    for file in files:
        if isinstance(file, ObjectPath):
            objects.setdefault(file.bucket, []).append(file)
        else:
            with suppress(OSError):
                file.unlink(missing_ok=True)
    for together in objects.values():
        with suppress(OSError):
            bucket_of(together[0]).delete([file.key for file in together])


def remove_folder(folder: Location) -> bool:
    """Removes a folder with all that is in it, as far as that is possible; returns whether nothing is left."""
    if isinstance(folder, Path):
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()
    with suppress(OSError):
        bucket = bucket_of(folder)
        for _ in range(_ROUNDS):
            if not (found := bucket.below(folder.key)):
                return True
            bucket.delete([key for key, _ in found])
    return False
