"""A bucket in memory whose requests can be counted, can fail, and can let others write in between."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Sequence

from evermat.store.bucket import StorageError


class Killed(BaseException):
    """The process that sent the request is dead: none of its later requests arrives."""


class MemoryBucket:
    """A `Bucket`; before and after each request that it counts it calls a function with the number, if it has one."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.before: Callable[[int, str, str], None] | None = None
        self.after: Callable[[int, str, str], None] | None = None
        self.requests = 0
        self._lock = threading.RLock()

    def copy(self) -> MemoryBucket:
        found = MemoryBucket()
        found.objects = dict(self.objects)
        return found

    def quiet(self) -> None:
        """From now on all requests succeed."""
        self.before = self.after = None
        self.requests = 0

    def _count(self) -> int:
        with self._lock:
            self.requests += 1
            return self.requests

    def _begun(self, what: str, key: str) -> int:
        number = self._count()
        if self.before is not None:
            self.before(number, what, key)
        return number

    def _done(self, number: int, what: str, key: str) -> None:
        if self.after is not None:
            self.after(number, what, key)

    def read(self, key: str) -> bytes:
        number = self._begun("read", key)
        if key not in self.objects:
            raise FileNotFoundError(errno.ENOENT, "it is missing", key)
        self._done(number, "read", key)
        return self.objects[key]

    def size(self, key: str) -> int | None:
        self._begun("size", key)
        found = self.objects.get(key)
        return None if found is None else len(found)

    def put(self, key: str, contents: bytes | memoryview) -> None:
        number = self._begun("put", key)
        self.objects[key] = bytes(contents)
        self._done(number, "put", key)

    def put_new(self, key: str, contents: bytes) -> bool:
        number = self._begun("put new", key)
        with self._lock:
            new = key not in self.objects
            if new:
                self.objects[key] = bytes(contents)
        self._done(number, "put new", key)
        return new

    def names(self, folder: str) -> list[str]:
        self._begun("names", folder)
        start = f"{folder}/"
        return sorted({key[len(start) :].partition("/")[0] for key in list(self.objects) if key.startswith(start)})

    def below(self, folder: str) -> list[tuple[str, int]]:
        self._begun("below", folder)
        return [(key, len(self.objects[key])) for key in sorted(self.objects) if key.startswith(f"{folder}/")]

    def delete(self, keys: Sequence[str]) -> None:
        number = self._begun("delete", keys[0])
        for key in keys:
            self.objects.pop(key, None)
        self._done(number, "delete", keys[0])


def stop_at(bucket: MemoryBucket, how: str, k: int) -> None:
    """Stops the k-th request: `kill`, `fail`, or `fail+` for all later ones too; ` before` or ` after` it was carried out."""
    what, when = how.split()

    def stop(number: int, *_: str) -> None:
        if number == k or (number > k and what != "fail"):
            raise Killed if what == "kill" else StorageError(errno.EIO, "the service cannot be reached")

    def later(number: int, *_: str) -> None:  # what was stopped before does not come again
        if number > k and what != "fail":
            stop(number)

    bucket.before, bucket.after = (stop, None) if when == "before" else (later, stop)
