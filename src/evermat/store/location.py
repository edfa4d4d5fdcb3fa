"""Where states and scratch files are: in a folder of this machine, or in a folder of a bucket.

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

_RULE = "{what} is in a folder of this machine, given as a path or a URI such as `file:///folder`, or at `s3://BUCKET/FOLDER`"
_S3 = re.compile(r"s3:/{1,2}([^/]*)/*(.*?)/*", re.IGNORECASE | re.DOTALL)
_OBJECT = re.compile(r"s3://([^/]+)/(.+)", re.DOTALL)
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


def location_of(text: str) -> Location:
    """The location of which this is the text."""
    found = _OBJECT.fullmatch(text)
    return Path(text) if found is None else ObjectPath(found[1], found[2])


def state_location(name: str, value: Any) -> Location:
    """Where the state is that an argument names; errors are those of `folder_location`."""
    return folder_location("a state", name, value)


def folder_location(what: str, name: str, value: Any) -> Location:
    """The folder that an argument names, and where `what` is to be.

    Raises:
        ArgumentError: it cannot be there, or a package is missing that is needed for it.
        TypeError: it is no path.
    """
    if isinstance(value, ObjectPath):
        return value
    check_type(name, value, (str, PathLike), "a path")
    text, rule = os.fspath(value), _RULE.format(what=what)
    if scheme_of(text) != "s3":
        return local_path(what, name, value, rule)
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
        raise bad_location(what, text, wrong, rule)
    check_installed(f"{what} at `s3://`")
    return ObjectPath(bucket, key)


def resolved(path: str | PathLike[str] | Location) -> Location:
    """A location without links on the way; a text that is no path is an error as for `state_location`."""
    if not isinstance(path, Path):
        path = state_location("path", path)
    return path if isinstance(path, ObjectPath) else Path(os.path.realpath(path))
