"""Where states are: in a folder of this machine, or in a folder of a bucket.

A `Location` is what the store does its file operations with (see `disk`): a path, or an `ObjectPath`, which has of a path what
the store uses. A bucket has neither folders nor renaming: a folder is there when an object below it is.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from evermat.core import bad_location, check_type, local_path, scheme_of

_RULE = "a state is in a folder of this machine, given as a path or a URI such as `file:///folder`, or at `s3://BUCKET/FOLDER`"
_S3 = re.compile(r"s3:/{1,2}([^/]*)/*(.*?)/*", re.IGNORECASE | re.DOTALL)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_SAFE = re.compile(r"[A-Za-z0-9!_.*'()/-]*")  # what every program that reads URIs takes for itself


@dataclass(frozen=True, slots=True)
class ObjectPath:
    """The name of an object, or of a folder, in a bucket."""

    bucket: str
    key: str

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.bucket, f"{self.key}/{name}")

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        return ObjectPath(self.bucket, self.key.rpartition("/")[0])

    def within(self, folder: ObjectPath) -> str:
        """The name below a folder."""
        return self.key[len(folder.key) + 1 :]

    def exists(self) -> bool:
        """Whether there is an object of this name."""
        from evermat.store.bucket import bucket_of  # noqa: PLC0415 - only where it is used

        return bucket_of(self).size(self.key) is not None


Location: TypeAlias = Path | ObjectPath


def state_location(name: str, value: Any) -> Location:
    """Where the state is that an argument names.

    Raises:
        ArgumentError: states cannot be there, or a package is missing that is needed for it.
        TypeError: it is no path.
    """
    if isinstance(value, ObjectPath):
        return value
    check_type(name, value, (str, PathLike), "a path")
    text = os.fspath(value)
    if scheme_of(text) != "s3":
        return local_path("a state", name, value, _RULE)
    from evermat.store.bucket import check_installed  # noqa: PLC0415 - only where it is used

    found = _S3.fullmatch(text)
    assert found is not None
    bucket, key = found.groups()
    wrong = ""
    if not _BUCKET.fullmatch(bucket):
        wrong = "it has no valid name of a bucket"
    elif not key:
        wrong = "it names no folder in the bucket"
    elif not _SAFE.fullmatch(key) or not {"", ".", ".."}.isdisjoint(key.split("/")):
        wrong = "its folders must be named by letters, digits and `!_.*'()-`"
    if wrong:
        raise bad_location("a state", text, wrong, _RULE)
    check_installed()
    return ObjectPath(bucket, key)


def resolved(path: str | PathLike[str] | Location) -> Location:
    """A location without links on the way."""
    return path if isinstance(path, ObjectPath) else Path(os.path.realpath(path))
