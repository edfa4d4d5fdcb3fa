"""Threads of tests that wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import evermat

PATIENCE = 60.0  # seconds


class Gate:
    """Rows of facts that a test lets through when it wants to: until then, the update that reads them runs."""

    def __init__(self, rows: Iterable[tuple[Any, ...]], act: Callable[[], Any] = lambda: None) -> None:
        self._rows, self._act = rows, act
        self._reached, self._opened = Event(), Event()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._act()
        self._reached.set()
        assert self._opened.wait(PATIENCE)
        yield from self._rows

    def wait(self) -> None:
        """Waits until somebody reads the rows."""
        assert self._reached.wait(PATIENCE)

    def open(self) -> None:
        self._opened.set()


@contextmanager
def started(*actions: Callable[[], Any]) -> Iterator[list[Future[Any]]]:
    """Runs functions in threads of their own, and joins these at the end of the block."""
    with ThreadPoolExecutor(len(actions)) as pool:
        yield [pool.submit(action) for action in actions]


@contextmanager
def updating(
    m: evermat.Materialisation, relation: str, rows: Iterable[tuple[Any, ...]], **options: Any
) -> Iterator[Gate]:
    """An update that runs during the block, and is committed after it."""
    gate = Gate(rows)
    with started(lambda: m.update({relation: iter(gate)}, **options)) as (done,):
        gate.wait()
        try:
            yield gate
        finally:
            gate.open()
    done.result()
