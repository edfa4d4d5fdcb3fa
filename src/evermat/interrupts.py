"""Stretches of code that Ctrl-C and SIGTERM must not cut in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Holds signals back until the end of the block; Python delivers them only to the main thread anyway."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[tuple[int, FrameType | None]] = []
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        signal.signal(number, lambda n, frame: arrived.append((n, frame)))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for code, frame in arrived:
            handler = before[signal.Signals(code)]
            if callable(handler):
                handler(code, frame)
            elif handler == signal.SIG_DFL:
                signal.raise_signal(code)
