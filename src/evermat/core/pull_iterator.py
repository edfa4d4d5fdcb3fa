"""Turns what is pushed into what is pulled: the producer and the reader take turns.

Rules are evaluated by pushing batches on. A reader of an answer, batch by batch, wants the evaluation to wait in
between. So it has a thread of its own, which runs only while the reader waits: never are both at work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Semaphore, Thread
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class _LeftError(BaseException):
    """The reader has gone."""


class _Turns(Generic[_Item]):
    """The two sides and what is handed over."""

    def __init__(self, compute: Callable[[Callable[[_Item], None]], None]) -> None:
        self._compute = compute
        self._mine, self._theirs = Semaphore(0), Semaphore(0)
        self._handed: list[_Item] = []
        self._error: BaseException | None = None
        self._done = self._left = False
        self._thread = Thread(target=self._run, name="evermat-answer", daemon=True)

    def _run(self) -> None:
        self._theirs.acquire()
        try:
            if not self._left:
                with suppress(_LeftError):
                    self._compute(self._push)
        except BaseException as error:  # noqa: BLE001  (it is the reader's)
            self._error = error
        self._done = True
        self._mine.release()

    def _push(self, item: _Item) -> None:
        self._handed.append(item)
        self._mine.release()
        self._theirs.acquire()
        if self._left:
            raise _LeftError

    def items(self) -> Iterator[_Item]:
        """What is pushed, one after the other."""
        self._thread.start()
        try:
            while True:
                self._theirs.release()
                self._mine.acquire()
                if self._done:
                    break
                yield self._handed.pop()
        finally:
            if not self._done:
                self._left = True
                self._theirs.release()
            self._thread.join()
        if self._error is not None:
            raise self._error


def pulled(compute: Callable[[Callable[[_Item], None]], None]) -> Iterator[_Item]:
    """The items that a computation pushes, when they are asked for; it ends when the reader stops."""
    return _Turns(compute).items()
