"""An archive of Spark's classes, which halves the time until Spark has started.

A JVM that ends normally can write the classes that it has loaded to a file, from which the next one maps them. That file depends on Java and on
Spark, is in the user's cache folder, and is made once, by the first session that ends well. Java ignores a file that it cannot use.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from evermat.core import cache_folder

_MAKING = 60.0  # seconds for Java to write the archive
_SILENCE = ("-Xlog:disable", "-Xlog:all=error:stderr")  # no warnings about classes that are not in the archive
# The options that use and that make an archive. The newer kind needs nothing that a Java made for one purpose may lack.
_SHARED = ("SharedArchiveFile", "ArchiveClassesAtExit")
_AHEAD_OF_TIME = ("AOTCache", "AOTCacheOutput")
_AHEAD_OF_TIME_SINCE = 25


class Archive:
    """The archive for a Java and a Spark: `options` are for the JVM; `make` waits until a missing archive has been written."""

    def __init__(self, java: Path, version: int, spark_home: Path) -> None:
        self._version = version
        folder = cache_folder()
        self._file: Path | None = None
        self._part: Path | None = None
        if folder is None:
            return
        file = folder / f"spark-{_identity(java, spark_home)}.jsa"
        if file.exists():
            self._file = file if file.stat().st_size else None  # an empty one: this Java cannot make any
        else:
            self._file, self._part = file, file.with_name(f".{file.name}.{os.getpid()}")

    @property
    def missing(self) -> bool:
        """Whether the end of this session makes it."""
        return self._part is not None

    @property
    def options(self) -> tuple[str, ...]:
        if self._file is None:
            return ()
        using, making = _AHEAD_OF_TIME if self._version >= _AHEAD_OF_TIME_SINCE else _SHARED
        return f"-XX:{using}={self._file}" if self._part is None else f"-XX:{making}={self._part}", *_SILENCE

    def make(self, process: subprocess.Popen[bytes]) -> None:
        """Has an idle JVM end and write the archive; never raises."""
        if self._part is None or self._file is None:
            return
        with suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_MAKING)
            if process.returncode == 0 and self._part.exists():
                self._part.replace(self._file)
            else:
                self._file.touch()  # so that later sessions do not try and wait again
        with suppress(OSError):
            self._part.unlink(missing_ok=True)
        self._part = None


def _identity(java: Path, spark_home: Path) -> str:
    """A hash that changes with another Java or another Spark."""
    known = hashlib.sha256()
    for path in (java, spark_home / "jars", spark_home / "__init__.py"):
        with suppress(OSError):
            found = path.resolve().stat()
            known.update(f"{path.resolve()} {found.st_size} {found.st_mtime_ns}\n".encode())
    return known.hexdigest()[:16]
