"""What a job may use, and how everything that works for it asks whether it may go on.

A job has a *watch*: its limits, and whatever else is to be looked at from time to time. It belongs to the context (see `contextvars`) of the
thread that does the job, so that readers, tables and kernels ask `check_stop` and `ask_for` without being given it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from threading import Event, Thread
from typing import Protocol, TypeVar

from evermat.core import error_catalogue as errors
from evermat.core.arguments import memory_argument, seconds_argument
from evermat.core.errors import LimitError, Problem
from evermat.core.memory import resident_bytes

LOOK_EVERY = 0.02  # seconds between looks at the clock and the memory
_Item = TypeVar("_Item")
_LARGE = 4 << 20  # bytes of an array that are worth asking for


class Watch(Protocol):
    """Looks after one job."""

    def look(self) -> None:
        """Raises what is to stop the job; cheap, as long as it is not time to look again."""

    def ask(self, size: int) -> None:
        """Raises `LimitError` unless so many more bytes may be used."""

    def passed(self, resident: int | None = None) -> LimitError | None:
        """The error of a limit of time or memory that is passed now, with so many bytes resident if that is known."""


_current: ContextVar[Watch | None] = ContextVar("watch", default=None)
_checks: list[Callable[[], None]] = []


def register_stop_check(check: Callable[[], None]) -> None:
    """Has long jobs call `check` from time to time; what it raises stops them."""
    if check not in _checks:
        _checks.append(check)


def check_stop() -> None:
    """Raises what a registered check or the watch of the job raises, if the job is to stop.

    Its caller may be stopped there, as by a `MemoryError`: nothing may be half done.
    """
    watch = _current.get()
    if watch is not None:
        watch.look()
    elif not _deaf.get():
        look_at_checks()


def watched_each(items: Iterable[_Item], every: int = 1 << 10) -> Iterator[_Item]:
    """The items; asks `check_stop` before every so many of them."""
    for number, item in enumerate(items):
        if number % every == 0:
            check_stop()
        yield item


def look_at_checks() -> None:
    """Raises what a registered check raises."""
    for check in _checks:
        check()


def ask_for(size: int) -> None:
    """Asks whether so many bytes may be used, before they are: raises `LimitError` if that exceeds the job's limit of memory."""
    if size >= _LARGE and (watch := _current.get()) is not None:
        watch.ask(size)


def awaited(compute: Callable[[], _Item]) -> _Item:
    """The result of a long call that does not ask itself, and does not hold the interpreter: it is left to itself if the job is to stop.

    It must change nothing, and is done by a thread of its own, for the same job.
    """
    found: list[_Item] = []
    failed: list[BaseException] = []
    done = Event()

    def run() -> None:
        try:
            found.append(compute())
        except BaseException as error:  # noqa: BLE001  (the waiting thread raises it)
            failed.append(error)
        done.set()

    Thread(target=copy_context().run, args=(run,), name="evermat-call", daemon=True).start()
    while not done.wait(LOOK_EVERY):
        check_stop()
    if failed:
        raise failed[0]
    return found[0]


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Has the block asked by a watch. Not for a block that yields: the watch would be that of the next caller."""
    token = _current.set(watch)
    _active.append(watch)
    try:
        yield
    finally:
        with suppress(ValueError):
            _active.remove(watch)
        _current.reset(token)


def within_limits(limit_seconds: float | None, memory: int | str | None) -> AbstractContextManager[None]:
    """Has the block stop at the limits that a caller passes.

    Raises:
        ArgumentError: one has a value that it cannot have.
        TypeError: one is of another type.
    """
    seconds, size = seconds_argument("limit_seconds", limit_seconds), memory_argument("memory", memory)
    if seconds is None and size is None:
        return nullcontext()  # the caller may end its own watch within the block
    return watched(Guard(seconds, size))


def passed_limit(resident: int | None = None) -> LimitError | None:
    """The error of a limit that is passed now by any job of this process; with so many bytes resident, then only of memory."""
    for watch in [*_active]:
        if (error := watch.passed(resident)) is not None:
            return error
    return None


_active: list[Watch] = []  # of all threads
_deaf: ContextVar[bool] = ContextVar("deaf", default=False)


@contextmanager
def unwatched() -> Iterator[None]:
    """Nothing stops the block: it completes or undoes something."""
    token, deaf = _current.set(None), _deaf.set(True)
    try:
        yield
    finally:
        _deaf.reset(deaf)
        _current.reset(token)


def current_watch() -> Watch | None:
    """The watch of this context."""
    return _current.get()


class Guard:
    """Limits of time and memory, from now on; also those of the watch in whose context it was made.

    Of the time, some seconds may be spent already.
    """

    def __init__(self, seconds: float | None = None, memory: int | None = None, spent: float = 0.0) -> None:
        self.seconds, self.memory = seconds, memory
        self._outer = current_watch()
        self._started = time.perf_counter() - spent
        self._next_look = self._started

    def passed(self, resident: int | None = None) -> LimitError | None:
        if resident is None and self.seconds is not None and time.perf_counter() - self._started > self.seconds:
            return limit_error("seconds", self.seconds)
        if self.memory is not None and (resident_bytes() if resident is None else resident) > self.memory:
            return limit_error("bytes of memory", self.memory)
        return None

    def is_due(self) -> bool:
        """Whether it is time to look again; then it is not for a while."""
        now = time.perf_counter()
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_EVERY
        return True

    def look(self) -> None:
        if self.is_due():
            self.look_now()

    def look_now(self) -> None:
        """Looks without regard to when it last did."""
        look_at_checks()
        if self._outer is not None:
            self._outer.look()
        if (error := self.passed()) is not None:
            _notice()
            raise error

    def ask(self, size: int) -> None:
        if self._outer is not None:
            self._outer.ask(size)
        if self.memory is not None and resident_bytes() + size > self.memory:
            _notice()
            raise limit_error("bytes of memory", self.memory)


_noticed: float | None = None


def _notice() -> None:
    global _noticed  # noqa: PLW0603
    _noticed = _noticed or time.monotonic()


def noticed_at() -> float | None:
    """When a job has raised the error of a limit: it unwinds since then, and must not be stopped once more."""
    return _noticed


def forget_notice() -> None:
    """No limit is passed any more."""
    global _noticed  # noqa: PLW0603
    _noticed = None


def limit_error(what: str, limit: float) -> LimitError:
    """The error of a limit that was reached."""
    return LimitError(Problem(errors.LIMIT_REACHED, {"what": what, "limit": f"{limit:,}"}))
