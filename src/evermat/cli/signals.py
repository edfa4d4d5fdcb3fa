"""Ctrl-C and SIGTERM unwind the stack, so that nothing is left half-written, and are never lost.

An exception from a signal handler comes up wherever Python happens to be. Some libraries swallow every exception at
places (Arrow does while it looks for pandas), so that a signal that has arrived is remembered, and long jobs ask.
"""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False  # as in `evermat`: nothing may take long before signals are handled
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


class Interrupted(BaseException):
    """Ctrl-C was pressed."""


class Terminated(BaseException):
    """SIGTERM arrived."""


_EXCEPTIONS = {signal.SIGINT: Interrupted, signal.SIGTERM: Terminated}
_NOTHING = "nothing was written"
_PIPE = 4096  # bytes that a pipe takes at once if it takes any
_arrived: list[tuple[int, float]] = []  # the signals whose exceptions were raised, and when


def end_on_signals() -> None:
    """Has both signals end the process at once: while modules are loaded there is nothing to unwind.

    An exception would not do: imports turn some exceptions into others.
    """
    _handle(_end)


def catch_signals() -> None:
    """Has both signals raise their exception from now on."""
    from evermat.core import register_stop_check

    _arrived.clear()
    register_stop_check(check_signals)
    say_when_stopped(_nothing)
    _handle(_arrive)


def ignore_signals() -> None:
    """Has signals change nothing: the command ends anyway. They are still seen by the watchdog, which ends a wait for a reader."""
    _handle(lambda _number, _frame: None)


def _handle(handler: Callable[[int, Any], Any] | signal.Handlers) -> None:
    """Sets the handler of both signals; a process that ignores Ctrl-C, as in the background of a shell, goes on doing so."""
    for number in _EXCEPTIONS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _end(number: int, _frame: object) -> NoReturn:
    text = "interrupted" if number == signal.SIGINT else "terminated"
    end_at_once(f"{text}: {_NOTHING}", 128 + number)


def end_at_once(text: str, code: int) -> NoReturn:
    """Ends the process; the text is dropped if standard error does not take it now."""
    try:
        import select

        poll = select.poll()
        poll.register(2, select.POLLOUT)
        if poll.poll(0):
            os.write(2, f"{text}\n".encode()[:_PIPE])
    finally:
        os._exit(code)


def _arrive(number: int, _frame: object) -> NoReturn:
    _arrived.append((number, time.monotonic()))
    raise _EXCEPTIONS[signal.Signals(number)]


def check_signals() -> None:
    """Raises what has arrived, once more if need be."""
    if _arrived:
        raise _EXCEPTIONS[signal.Signals(_arrived[0][0])]


def forget_signals() -> None:
    """Has nothing stopped any more by what has arrived."""
    _arrived.clear()


def has_arrived() -> float | None:
    """When the first exception was raised."""
    return _arrived[0][1] if _arrived else None


def stop_text(number: int) -> str:
    """What to say when a signal has stopped the command."""
    return f"{'interrupted' if number == signal.SIGINT else 'terminated'}: {written() or _NOTHING}"


def _nothing() -> str:
    return ""


_written: Callable[[], str] = _nothing


def say_when_stopped(text: Callable[[], str]) -> None:
    """What a command has written, should it be stopped: asked for only then, because a version may have become durable just before."""
    global _written  # noqa: PLW0603
    _written = text


def written() -> str:
    """What a command that is stopped has written; empty if that is nothing."""
    return _written()
