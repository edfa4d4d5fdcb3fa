"""Ctrl-C and SIGTERM: code that they must not cut in two.

An exception from a signal handler comes up wherever Python happens to be, and some libraries swallow every exception in places. So a program
that handles signals by exceptions also registers a check, which long jobs call from time to time; see `watch`.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

from evermat.core.watch import unwatched

Deliver: TypeAlias = Callable[[], None]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_EVERY = 0.02  # seconds
_sections = 0  # of the main thread that hold signals back, one within the other


def holds_back() -> bool:
    """Whether the main thread holds signals back now."""
    return _sections > 0


@contextmanager
def held_back() -> Iterator[Deliver]:
    """Holds signals back until the end of the block, or until the function that it yields is called at a safe point.

    Python delivers signals only to the main thread: elsewhere there is nothing to hold back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    global _sections  # noqa: PLW0603
    arrived: list[tuple[int, FrameType | None]] = []
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def deliver() -> None:
        while arrived:
            code, frame = arrived.pop(0)
            handler = before[signal.Signals(code)]
            if callable(handler):
                handler(code, frame)
            elif handler == signal.SIG_DFL:
                await_completion()
                signal.signal(code, signal.SIG_DFL)
                signal.raise_signal(code)

    for number in _SIGNALS:
        signal.signal(number, lambda n, frame: arrived.append((n, frame)))
    _sections += 1
    try:
        yield deliver
    finally:
        _sections -= 1
        for number, handler in before.items():
            signal.signal(number, handler)
        deliver()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds signals back until the end of the block, which no limit stops either."""
    with held_back(), unwatched(), completing():
        yield


_completing: list[tuple[int, int]] = []  # process and thread of each block that was entered and not left


@contextmanager
def completing() -> Iterator[None]:
    """The process is not ended within the block, in whatever thread: what it does must be complete or undone."""
    own = os.getpid(), threading.get_ident()
    _completing.append(own)
    try:
        yield
    finally:
        _completing.remove(own)


def is_completing() -> bool:
    """Whether another thread of this process is in such a block; those of the process that it was forked from do not matter."""
    own, me = os.getpid(), threading.get_ident()
    return any(process == own and thread != me for process, thread in [*_completing])


def await_completion() -> None:
    """Returns when no other thread is in such a block."""
    while is_completing():
        time.sleep(_LOOK_EVERY)


atexit.register(await_completion)  # for daemon threads, which the end of the interpreter would cut
