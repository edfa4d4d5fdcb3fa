"""Turns what is pushed into what is pulled: the producer and the reader take turns.

Rules are evaluated by pushing batches on. A reader of an answer, batch by batch, wants the evaluation to wait in
between. So it has a thread of its own, which runs only while the reader waits: never are both at work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from threading import Semaphore, Thread
from typing import TypeVar

from evermat.core.errors import LimitError
from evermat.core.watch import Watch, current_watch, look_at_checks, watched

_Item = TypeVar("_Item")


class _LeftError(BaseException):
    """The reader has gone."""


class _Computation:
    """The watch of a computation, which also ends when its reader has gone."""

    def __init__(self, outer: Watch | None) -> None:
        self._outer, self.left = outer, False

    def look(self) -> None:
        if self.left:
            raise _LeftError
        if self._outer is None:
            look_at_checks()
        else:
            self._outer.look()

    def ask(self, size: int) -> None:
        if self._outer is not None:
            self._outer.ask(size)

    def passed(self, resident: int | None = None) -> LimitError | None:
        return None if self._outer is None else self._outer.passed(resident)


def pulled(compute: Callable[[Callable[[_Item], None]], None], watch: Watch | None = None) -> Iterator[_Item]:
    """The items that a computation pushes, when they are asked for; it ends when the reader stops.

    The computation works in the context of the caller that asks for the first item, looked after by a watch of its own if it has one.
    """
    mine, theirs = Semaphore(0), Semaphore(0)  # the turns of the reader and of the computation
    handed: list[_Item] = []
    failed: list[BaseException] = []
    working, done = _Computation(watch or current_watch()), False

    def push(item: _Item) -> None:
        handed.append(item)
        mine.release()
        theirs.acquire()
        if working.left:
            raise _LeftError

    def run() -> None:
        nonlocal done
        theirs.acquire()
        try:
            if not working.left:
                with suppress(_LeftError), watched(working):
                    compute(push)
        except BaseException as error:  # noqa: BLE001  (it is the reader's)
            failed.append(error)
        done = True
        mine.release()

    thread = Thread(target=copy_context().run, args=(run,), name="evermat-answer", daemon=True)
    thread.start()
    try:
        while True:
            theirs.release()
            mine.acquire()
            if done:
                break
            yield handed.pop()
    finally:
        if not done:
            working.left = True
            theirs.release()
        thread.join()
    if failed:
        raise failed[0]
