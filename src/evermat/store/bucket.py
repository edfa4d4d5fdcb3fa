"""Buckets: the few operations that the store needs of object storage, and S3 by the library `obstore`.

Nothing here is loaded unless a state is in a bucket. Settings are the `AWS_…` variables of the environment. What fails is an
`OSError`: `FileNotFoundError` for an object that is missing, else a `StorageError`, whose text has no keys.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, Protocol

from evermat.core import ArgumentError, Problem, Process, this_process
from evermat.core import error_catalogue as errors
from evermat.store.location import ObjectPath

_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"non-2xx status code: (\d{3})\b")
_MOST_TOGETHER = 1000  # keys that one request deletes
RETRIES: Any = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}
CLIENT: Any = {"connect_timeout": "10s", "timeout": "5m"}
# A service that has not answered yet must answer soon: it may not be there.
FIRST_RETRIES: Any = {"max_retries": 1, "retry_timeout": timedelta(seconds=10)}
FIRST_CLIENT: Any = {"connect_timeout": "5s", "timeout": "6s"}
_SILENT = 5.0  # seconds in which a service that has not answered is not asked again


class StorageError(OSError):
    """The service does not do what was asked."""


class Bucket(Protocol):
    """Objects by their keys. All methods may be called by several threads.

    What was put is seen by every later read and list, of any process.
    """

    def read(self, key: str) -> bytes:
        """The contents of an object; a `FileNotFoundError` if it is missing."""

    def read_first(self, key: str, count: int) -> tuple[bytes, int]:
        """So many bytes of an object, or all if it has fewer, and how many it has; it is not empty."""

    def read_range(self, key: str, start: int, end: int) -> bytes:
        """The bytes of an object from a position to another one."""

    def size(self, key: str) -> int | None:
        """The bytes of an object; None if it is missing."""

    def put(self, key: str, contents: bytes | memoryview) -> None:
        """Writes an object, all at once; one of that name is replaced."""

    def put_new(self, key: str, contents: bytes) -> bool:
        """Writes an object unless there is one of that name; returns whether it did. Of several writers one does."""

    def names(self, folder: str) -> list[str]:
        """The names directly in a folder: of objects, and of folders."""

    def below(self, folder: str) -> list[tuple[str, int]]:
        """The keys of all objects below a folder, and their bytes."""

    def delete(self, keys: Sequence[str]) -> None:
        """Deletes objects; those that are missing do not matter."""


_buckets: dict[str, Bucket] = {}
_loaded_by: list[Process] = []


def bucket_of(path: ObjectPath) -> Bucket:
    """The bucket in which an object is; a `StorageError` in a forked child, which has not got the library's threads."""
    found = _buckets.get(path.bucket)
    if found is None:
        found = _buckets[path.bucket] = _S3Bucket(path.bucket)
    if isinstance(found, _S3Bucket):
        if not _loaded_by:
            _loaded_by.append(this_process())
        if _loaded_by[0].is_parent:
            why = "this process was forked from one that used a bucket: start processes by `spawn`"
            raise StorageError(errno.EIO, why, str(path))
    return found


def check_installed(what: str) -> None:
    """Raises an `ArgumentError` if the library for buckets is missing, which `what` needs."""
    if find_spec("obstore") is None:
        details = {"what": what, "package": "obstore", "extra": "s3"}
        raise ArgumentError(Problem(errors.MISSING_PACKAGE, details))


class _S3Bucket:
    def __init__(self, name: str) -> None:
        import obstore  # noqa: PLC0415 - only where it is used
        from obstore.store import S3Store  # noqa: PLC0415

        self._name, self._lib = name, obstore
        plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true", "yes", "on")

        def store(retries: Any, client: Any) -> Any:
            with self._failing(""):
                options: Any = {**client, "allow_http": plain}
                return S3Store(name, retry_config=retries, client_options=options)

        self._store = store(RETRIES, CLIENT)
        self._silence: tuple[float, Exception | None] = 0.0, None  # when it was asked and did not answer
        self._impatient: Any = store(FIRST_RETRIES, FIRST_CLIENT)  # None once the service has answered

    def _wait_for_answer(self, key: str) -> None:
        """Raises a `StorageError` if the service does not answer; whatever it answers to this is not of interest."""
        impatient = self._impatient
        if impatient is None:
            return
        asked, silence = self._silence
        if silence is not None and time.monotonic() - asked < _SILENT:
            raise silence
        try:
            self._lib.head(impatient, key or "evermat")
        except Exception as error:
            if not _is_answer(error):
                self._silence = time.monotonic(), error.with_traceback(None)
                raise
        self._impatient = None

    def read(self, key: str) -> bytes:
        with self._asking(key):
            return bytes(self._lib.get(self._store, key).bytes())

    def read_first(self, key: str, count: int) -> tuple[bytes, int]:
        with self._asking(key):
            found = self._lib.get(self._store, key, options={"range": (0, count)})
            return bytes(found.bytes()), int(found.meta["size"])

    def read_range(self, key: str, start: int, end: int) -> bytes:
        with self._asking(key):
            return bytes(self._lib.get_range(self._store, key, start=start, end=end))

    def size(self, key: str) -> int | None:
        try:
            with self._asking(key):
                return int(self._lib.head(self._store, key)["size"])
        except FileNotFoundError:
            return None

    def put(self, key: str, contents: bytes | memoryview) -> None:
        try:
            with self._asking(key):
                self._lib.put(self._store, key, bytes(contents))
        except FileNotFoundError as error:
            raise StorageError(errno.EIO, "the service does not take it", error.filename) from None

    def put_new(self, key: str, contents: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError  # noqa: PLC0415

        with self._asking(key):
            try:
                self._lib.put(self._store, key, contents, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def names(self, folder: str) -> list[str]:
        with self._asking(folder):
            found = self._lib.list_with_delimiter(self._store, folder)
        keys = [*(one["path"] for one in found["objects"]), *found["common_prefixes"]]
        return [key.rstrip("/").rpartition("/")[2] for key in keys]

    def below(self, folder: str) -> list[tuple[str, int]]:
        with self._asking(folder):
            return [(one["path"], one["size"]) for chunk in self._lib.list(self._store, folder) for one in chunk]

    def delete(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), _MOST_TOGETHER):
            with self._asking(keys[start]):
                self._lib.delete(self._store, list(keys[start : start + _MOST_TOGETHER]))

    @contextmanager
    def _asking(self, key: str) -> Iterator[None]:
        """A block with a request about an object."""
        with self._failing(key):
            self._wait_for_answer(key)
            yield

    @contextmanager
    def _failing(self, key: str) -> Iterator[None]:
        """Turns the library's errors in the block into those of the system."""
        from obstore.exceptions import (  # noqa: PLC0415
            AlreadyExistsError,
            BaseError,
            NotFoundError,
            PermissionDeniedError,
            UnauthenticatedError,
        )

        uri = f"s3://{self._name}/{key}"
        try:
            yield
        except AlreadyExistsError:
            raise
        except (BaseError, OSError, ValueError) as error:
            if "<Code>NoSuchBucket<" in str(error):
                raise StorageError(errno.EIO, f"there is no bucket `{self._name}`", uri) from None
            if isinstance(error, NotFoundError | FileNotFoundError):
                raise FileNotFoundError(errno.ENOENT, "it is missing", uri) from None
            if isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError):
                raise StorageError(errno.EACCES, f"the service refuses it{_code(error)}", uri) from None
            raise StorageError(errno.EIO, _reason(error), uri) from None


def _is_answer(error: Exception) -> bool:
    """Whether an error is what the service has said."""
    return _code(error) != "" or isinstance(error, FileNotFoundError | PermissionError)


def _reason(error: Exception) -> str:
    """What an error says, without addresses and headers, in which keys may be."""
    text = str(error)
    if code := _code(error):
        return f"the service reports an error{code}"
    if "BadScheme" in text:
        return "without TLS it needs `AWS_ALLOW_HTTP=true`"
    if "sending request" in text or "onnect" in text or "timed out" in text:
        return "the service cannot be reached"
    if "redentials" in text:
        return "there are no credentials"
    return f"the request failed ({type(error).__name__})"


def _code(error: Exception) -> str:
    """The service's name for an error, in parentheses."""
    found = _CODE.search(str(error)) or _STATUS.search(str(error))
    return "" if found is None else f" ({found.group(1)})"
