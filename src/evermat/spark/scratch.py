"""The folder through which driver and executors exchange facts, as files rather than row by row."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from uuid import uuid4

from evermat.core import Problem, ResourceError, this_process
from evermat.core import error_catalogue as errors

_GLOB = re.compile(r"([\\*?\[\]{}])")  # special characters in a path that Spark reads


class Scratch:
    """A temporary folder within a folder that the driver and all executors see.

    >>> with Scratch() as scratch:
    ...     folder = scratch.folder("edge")
    ...     folder.is_dir()
    True
    >>> folder.exists()
    False
    """

    def __init__(self, within: Path | None = None) -> None:
        self.path = temporary_folder("evermat-", within)
        self._process = this_process()

    def folder(self, name: str) -> Path:
        """A new folder; the name only helps people who list it."""
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:40]
        folder = self.path / f"{plain}-{uuid4().hex[:12]}"
        folder.mkdir()
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
            shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def for_reading(uri: str) -> str:
    """A URI for Spark to read from, in which no character is special."""
    return _GLOB.sub(r"\\\1", uri)


def no_exchange(path: Path | str, why: str) -> ResourceError:
    """The error for a folder to which facts that are to be exchanged cannot be written."""
    details = {"path": path, "why": why, "rest": "it is needed to exchange facts"}
    return ResourceError(Problem(errors.CANNOT_WRITE, details))


def temporary_folder(prefix: str, within: Path | None = None) -> Path:
    """A new folder, whose caller deletes it; raises a `ResourceError` if it cannot be created."""
    try:
        if within is not None:
            within.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=within)).resolve()
    except OSError as error:
        details = {"path": within or tempfile.gettempdir(), "why": error.strerror or str(error), "rest": ""}
        raise ResourceError(Problem(errors.CANNOT_WRITE, details)) from error
