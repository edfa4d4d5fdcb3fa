"""Standard input, output and error, which the process that starts this one may have closed.

Python has None in the place of a closed stream, and gives its number to the next file that is opened: what a library then prints goes into that
file. `open_standard_streams` repairs both. It also records when this process waits for who reads its output: a reader may never come. `standard_input` and `standard_output` are for code that runs in any process.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

_CLOSED = "it is closed"
_MODES = (
    os.O_WRONLY,
    os.O_RDONLY,
    os.O_RDONLY,
)  # of what replaces a closed stream: it cannot be read, or written, either


class _Closed(io.RawIOBase):
    """A closed stream: reading and writing it are errors, which say why."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def fileno(self) -> int:
        return self._number

    def readable(self) -> bool:
        return self._number == 0

    def writable(self) -> bool:
        return self._number > 0

    def readinto(self, _buffer: Any) -> int:
        raise OSError(errno.EBADF, _CLOSED)

    def write(self, _data: Any) -> int:
        raise OSError(errno.EBADF, _CLOSED)


_waits_since: float | None = None  # the main thread


@contextmanager
def awaiting_reader() -> Iterator[None]:
    """The block writes to a pipe or a terminal, whose reader may keep it waiting."""
    global _waits_since  # noqa: PLW0603
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _waits_since = _waits_since, time.monotonic()
    try:
        yield
    finally:
        _waits_since = before


def awaits_reader_since() -> float | None:
    """Since when the main thread has been waiting for a reader, by the clock `time.monotonic`."""
    return _waits_since


class _Awaiting(io.BufferedWriter):
    """An output that records when it waits for its reader.

    Nothing in Python is below the buffer: the exception of a signal that arrives there would have the buffer write its text twice.
    """

    def write(self, data: Any) -> int:
        with awaiting_reader():
            return super().write(data)

    def flush(self) -> None:
        with awaiting_reader():
            super().flush()


class _Lossy(io.TextIOWrapper):
    """Standard error of a process that has to end as it would end if this could be written: what cannot be is dropped."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def open_standard_streams() -> None:
    """Replaces closed streams by such that raise an `OSError` when they are used, and has standard error never raise one."""
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)  # the lowest free number is this one
    stdin, stdout, stderr = cast("tuple[io.TextIOWrapper | None, ...]", (sys.stdin, sys.stdout, sys.stderr))
    if stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_Closed(0)), encoding="utf-8")
    if stdout is not None:
        sys.stdout = io.TextIOWrapper(
            _Awaiting(io.FileIO(1, "w", closefd=False)),
            encoding=stdout.encoding,
            errors=stdout.errors,
            line_buffering=stdout.line_buffering,
            write_through=stdout.write_through,
        )
    else:  # without a buffer: Python would write what is left in it when it ends, and complain again
        sys.stdout = io.TextIOWrapper(cast(BinaryIO, _Closed(1)), encoding="utf-8", write_through=True)
    encoding = "utf-8" if stderr is None else stderr.encoding
    file = _Awaiting(io.FileIO(2, "w", closefd=False))
    sys.stderr = _Lossy(file, encoding=encoding, errors="backslashreplace", line_buffering=True)


def standard_input() -> BinaryIO:
    """The bytes of standard input; reading them raises an `OSError` if it is closed."""
    stream: Any = sys.stdin
    return cast(BinaryIO, io.BufferedReader(_Closed(0))) if stream is None else stream.buffer


def standard_output() -> BinaryIO:
    """Standard output for bytes, after all text that was printed to it; writing to it raises an `OSError` if it is closed."""
    stream: Any = sys.stdout
    if stream is None:
        return cast(BinaryIO, _Closed(1))
    stream.flush()
    return cast(BinaryIO, stream.buffer)
