"""Ends a command whose limit is passed, or which has been told to stop, also where nothing asks or its output has no reader.

A thread looks at limits and signals. It first has the main thread raise, wherever Python happens to be, unless that holds signals back: then long
work asks by itself. A call that neither returns to Python nor asks in time is given up: the process ends at once, as nothing but what is being
completed needs its end. Kernels, Arrow and files do not hold the interpreter, so the thread runs beside them.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

from evermat.cli.signals import end_at_once, has_arrived, stop_text, written
from evermat.core import (
    Guard,
    LimitError,
    await_completion,
    awaits_reader_since,
    forget_notice,
    holds_back,
    is_completing,
    limit_error,
    noticed_at,
    passed_limit,
    remove_leftovers,
    resident_bytes,
    watched,
    wrong_argument,
)
from evermat.core import error_catalogue as errors

LEAST_MEMORY = 160 << 20  # Python with numba and Arrow
_TICK = 0.02
_PATIENCE = 1.0  # seconds for the main thread to notice
_FAREWELL = 10.0  # and then to unwind
_MORE = 24 << 20  # bytes above the limit at which there is no waiting
_NUDGE = signal.SIGVTALRM
STOPPED = (4, 130, 143)  # exit codes of what was stopped from outside

_reached: LimitError | None = None  # what the main thread is to raise
_raised_at: float | None = None  # when it did
_job: Guard | None = None  # the limits of the job that began last, which hold for its reader, too, when it is complete
_longest_wait: float | None = None  # seconds that its output may wait for a reader
_leaving: int | None = None  # the exit code of a command that has ended but for its last words


class LimitReached(BaseException):
    """A limit was passed while nothing asked; no library takes it for an error of its own."""

    def __init__(self, error: LimitError) -> None:
        super().__init__(error)
        self.error = error


def start_watchdog() -> None:
    """Watches this process from now on."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(_NUDGE, _on_nudge)
    threading.Thread(target=_watch, args=(reading,), name="evermat-watchdog", daemon=True).start()


def be_patient() -> None:
    """Gives the main thread more time: it has to stop others, such as the tasks of a cluster."""
    global _patience  # noqa: PLW0603
    _patience = _FAREWELL


_patience = _PATIENCE


@contextmanager
def limited(
    seconds: float | None, memory: int | None, spent: float = 0.0, longest_wait: float | None = None
) -> Iterator[None]:
    """Has limits hold for the whole block, whatever is done there; some seconds may be spent already.

    What is complete then is not stopped any more, except where it waits for who reads its output; anyone may wait for `longest_wait` seconds.

    Raises:
        ProgramError: so little memory is not even enough to begin.
    """
    if memory is not None and memory < LEAST_MEMORY:
        raise wrong_argument(
            f"{memory:,} bytes of memory are too few: this process needs {LEAST_MEMORY >> 20}m before it begins"
        )
    global _job, _longest_wait
    _job, _longest_wait = Guard(seconds, memory, spent), longest_wait
    with watched(_job):
        yield


def leave(code: int) -> None:
    """Ends the process with a code even if its last words have no reader: soon if it was stopped, else when it is."""
    global _leaving  # noqa: PLW0603
    _leaving = code


def limit_text(error: LimitError) -> str:
    """What to say about a limit that was reached: also what had been written before."""
    done = written()
    return str(
        LimitError(
            replace(problem, kind=errors.LIMIT_AFTER_WRITING, details={**problem.details, "written": done})
            if done and not problem.help
            else problem
            for problem in error.problems
        )
    )


def _passed() -> LimitError | None:
    """The error of a limit that is passed now, by a job or by who should read its output."""
    return passed_limit() or _unread()


def _unread() -> LimitError | None:
    """The error of a limit that has passed while a complete output has been waiting for its reader."""
    since = awaits_reader_since()
    if since is None or (waited := time.monotonic() - since) < _PATIENCE:
        return None
    if _longest_wait is not None and waited > _longest_wait:
        return limit_error("seconds", _longest_wait)
    return None if _job is None else _job.passed()


def _on_nudge(_number: int, _frame: object) -> None:
    global _raised_at  # noqa: PLW0603
    unwinds = _raised_at is not None or noticed_at() is not None
    if _reached is not None and not unwinds and not holds_back() and _passed() is not None:
        _raised_at = time.monotonic()
        raise LimitReached(_reached)


def _watch(reading: int) -> None:
    global _reached  # noqa: PLW0603
    number, since = 0, 0.0  # the signal that has arrived, and when a reason to stop was first seen
    while True:
        if select.select([reading], [], [], _TICK)[0]:
            stops = [n for n in os.read(reading, 64) if n in (signal.SIGINT, signal.SIGTERM)]
            if stops and not number and signal.getsignal(stops[0]) is not signal.SIG_IGN:
                number, since = stops[0], time.monotonic()
        if _leaving is not None:
            _end_unless_read(_leaving, number)
            continue
        if is_completing():
            since = time.monotonic() if number else 0.0  # it has its time to notice afterwards
            continue
        if number:
            began = has_arrived()
            if _is_over(since, began):
                _give_up(stop_text(number), 128 + number)
            continue
        error = _passed()
        if error is None:
            if _raised_at is None:
                _reached = None
                since = 0.0
                forget_notice()
            elif _is_over(since, _raised_at) and _reached is not None:
                _give_up(limit_text(_reached), _reached.exit_code)
            continue
        since = since or time.monotonic()
        _reached = _reached or error
        raised = _raised_at or noticed_at()
        if raised is None:
            signal.pthread_kill(threading.main_thread().ident or 0, _NUDGE)
        if _is_over(since, raised) or (raised is None and _is_far_over()):
            _give_up(limit_text(_reached), _reached.exit_code)


def _end_unless_read(code: int, number: int) -> None:
    """Ends a process that has been stopped, perhaps by a signal only now, if its last words have no reader."""
    since = awaits_reader_since()
    if since is None or time.monotonic() < since + _PATIENCE:
        return
    if number:
        os._exit(128 + number)
    if code in STOPPED or _unread() is not None:
        os._exit(code if code in STOPPED else LimitError.exit_code)


def _is_over(since: float, raised: float | None) -> bool:
    """Whether the main thread has had its time."""
    now = time.monotonic()
    return now > raised + _FAREWELL if raised is not None else now > since + _patience


def _is_far_over() -> bool:
    """Whether so much more memory is used that there is no time left."""
    return passed_limit(resident_bytes() - _MORE) is not None


def _give_up(text: str, code: int) -> NoReturn:
    await_completion()
    remove_leftovers()
    end_at_once(text, code)
