"""The folder through which driver and executors exchange facts, as files rather than row by row."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

from evermat.core import Problem, ResourceError
from evermat.core import error_catalogue as errors


class Scratch:
    """A folder of our own within a folder that the driver and all executors see; it goes in the end, whatever happens.

    >>> with Scratch() as scratch:
    ...     place = scratch.folder("edge")
    ...     place.is_dir()
    True
    >>> place.exists()
    False
    """

    def __init__(self, within: Path | None = None) -> None:
        try:
            if within is not None:
                within.mkdir(parents=True, exist_ok=True)
            self.path = Path(tempfile.mkdtemp(prefix="evermat-", dir=within)).resolve()
        except OSError as error:
            details = {"path": within or tempfile.gettempdir(), "why": error.strerror or str(error), "rest": ""}
            raise ResourceError(Problem(errors.CANNOT_WRITE, details)) from error

    def folder(self, name: str) -> Path:
        """A new folder; the name only helps whoever looks."""
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:40]
        place = self.path / f"{plain}-{uuid4().hex[:12]}"
        place.mkdir()
        return place

    @contextmanager
    def writing(self) -> Iterator[None]:
        """What the system refuses within the block, while this process writes here, is told as an error of ours."""
        try:
            yield
        except OSError as error:
            why = error.strerror or str(error)
            details = {"path": self.path, "why": why, "rest": "it is needed to exchange facts"}
            raise ResourceError(Problem(errors.CANNOT_WRITE, details)) from error

    def close(self) -> None:
        """Removes everything."""
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
