"""The folder through which driver and executors exchange facts, as files rather than row by row."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from uuid import uuid4

from evermat.core import Problem, ResourceError, this_process
from evermat.core import error_catalogue as errors
from evermat.spark.scratch_files import make_folder, no_exchange, remove_folder, writing
from evermat.store import Location, ObjectPath

_PREFIX = "evermat-"  # of the folder's name
_NESTED = re.compile(_PREFIX + "[0-9a-f]{12}")
_TRIAL = "scratch"  # an object that shows, before anything is computed, that the bucket takes some


class Scratch:
    """A temporary folder within a folder that the driver and all executors see; it may be in a bucket.

    >>> with Scratch() as scratch:
    ...     folder = scratch.folder("edge")
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """

    def __init__(self, within: Location | None = None) -> None:
        self.path: Location = (
            _folder_in_bucket(within) if isinstance(within, ObjectPath) else temporary_folder(_PREFIX, within)
        )
        self._process = this_process()

    def folder(self, name: str) -> Location:
        """A new folder; the name only helps people who list it."""
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:40]
        folder = self.path / f"{plain}-{uuid4().hex[:12]}"
        make_folder(folder)
        return folder

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turns an `OSError` in the block, which writes here, into a `ResourceError`."""
        try:
            yield
        except OSError as error:
            raise no_exchange(self.path, error.strerror or str(error)) from error

    def close(self) -> None:
        """Deletes the folder, unless this is a child of the process that made it."""
        if not self._process.is_parent:
            remove_folder(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _folder_in_bucket(within: ObjectPath) -> ObjectPath:
    """A new folder; raises a `ResourceError` if nothing can be written there."""
    folder = within / f"{_PREFIX}{uuid4().hex[:12]}"
    if not _NESTED.fullmatch(within.name):  # else it has been tried
        with writing(folder / _TRIAL) as trial:
            trial.write(b"evermat exchanges facts here\n")
    return folder


def temporary_folder(prefix: str, within: Path | None = None) -> Path:
    """A new folder, whose caller deletes it; raises a `ResourceError` if it cannot be created."""
    try:
        if within is not None:
            within.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=within)).resolve()
    except OSError as error:
        details = {"path": within or tempfile.gettempdir(), "why": error.strerror or str(error), "rest": ""}
        raise ResourceError(Problem(errors.CANNOT_WRITE, details)) from error
