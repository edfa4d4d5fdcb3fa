"""Ctrl-C and SIGTERM unwind the stack, so that nothing is left half-written, and are never lost.

An exception from a signal handler comes up wherever Python happens to be. Some libraries swallow every exception at
places (Arrow does while it looks for pandas), so that a signal that has arrived is remembered, and long jobs ask.
"""

from __future__ import annotations

import signal
import time
from typing import NoReturn

from evermat.core import register_stop_check


class Interrupted(BaseException):
    """Ctrl-C was pressed."""


class Terminated(BaseException):
    """SIGTERM arrived."""


_EXCEPTIONS = {signal.SIGINT: Interrupted, signal.SIGTERM: Terminated}
_arrived: list[tuple[int, float]] = []  # the signals whose exceptions were raised, and when


def catch_signals() -> None:
    """Has both signals raise their exception from now on; who ignores Ctrl-C, as shells do in the background, goes on doing so."""
    _arrived.clear()
    register_stop_check(check_signals)
    say_when_stopped("nothing was written")
    for number in _EXCEPTIONS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _arrive)


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
    return f"{'interrupted' if number == signal.SIGINT else 'terminated'}: {aftermath()}"


_aftermath = "nothing was written"


def say_when_stopped(text: str) -> None:
    """What is true from now on, should a signal stop the command."""
    global _aftermath  # noqa: PLW0603
    _aftermath = text


def aftermath() -> str:
    """What to say when a signal has stopped the command."""
    return _aftermath
