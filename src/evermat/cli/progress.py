"""How far a long job has come: a line that changes on a terminal, plain lines now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_QUIET_SECONDS = 1.0  # short jobs say nothing
_LINE_SECONDS = 10.0  # between plain lines


@contextmanager
def showing_progress() -> Iterator[Callable[[str], None]]:
    """A function to call with the state of things; what a terminal shows is wiped away in the end."""
    started = time.monotonic()
    terminal = sys.stderr.isatty()
    next_line = started + (_QUIET_SECONDS if terminal else _LINE_SECONDS)
    shown = False

    def show(text: str) -> None:
        nonlocal next_line, shown
        now = time.monotonic()
        if now < next_line:
            return
        seconds = f"{now - started:.0f} s"
        if terminal:
            next_line, shown = now + 0.1, True
            sys.stderr.write(f"\r\x1b[K{text}, {seconds}")
        else:
            next_line = now + _LINE_SECONDS
            sys.stderr.write(f"{text}, {seconds}\n")
        sys.stderr.flush()

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
