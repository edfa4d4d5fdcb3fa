"""Ctrl-C and SIGTERM: code that they must not cut in two, and long jobs that ask whether one has arrived.

An exception from a signal handler comes up wherever Python happens to be, and some libraries swallow every exception in places. So a program
that handles signals by exceptions registers a check, and long jobs call all checks from time to time.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

Deliver: TypeAlias = Callable[[], None]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_checks: list[Callable[[], None]] = []


def register_stop_check(check: Callable[[], None]) -> None:
    """Has long jobs call `check` from time to time; what it raises stops them."""
    if check not in _checks:
        _checks.append(check)


def check_stop() -> None:
    """Raises what a registered check raises, if the process is to stop."""
    for check in _checks:
        check()


@contextmanager
def held_back() -> Iterator[Deliver]:
    """Holds signals back until the end of the block, or until the function that it yields is called at a safe point.

    Python delivers signals only to the main thread: elsewhere there is nothing to hold back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    arrived: list[tuple[int, FrameType | None]] = []
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def deliver() -> None:
        while arrived:
            code, frame = arrived.pop(0)
            handler = before[signal.Signals(code)]
            if callable(handler):
                handler(code, frame)
            elif handler == signal.SIG_DFL:
                signal.signal(code, signal.SIG_DFL)
                signal.raise_signal(code)

    for number in _SIGNALS:
        signal.signal(number, lambda n, frame: arrived.append((n, frame)))
    try:
        yield deliver
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        deliver()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds signals back until the end of the block."""
    with held_back():
        yield
