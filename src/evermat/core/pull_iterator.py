"""Turns what is pushed into what is pulled: the producer and the reader take turns.

Rules are evaluated by pushing batches on. A reader of an answer, batch by batch, wants the evaluation to wait in
between. So it has a thread of its own, which runs only while the reader waits: never are both at work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Semaphore, Thread
from typing import TypeVar

_Item = TypeVar("_Item")


class _LeftError(BaseException):
    """The reader has gone."""


def pulled(compute: Callable[[Callable[[_Item], None]], None]) -> Iterator[_Item]:
    """The items that a computation pushes, when they are asked for; it ends when the reader stops."""
    mine, theirs = Semaphore(0), Semaphore(0)  # the turns of the reader and of the computation
    handed: list[_Item] = []
    failed: list[BaseException] = []
    done = left = False

    def push(item: _Item) -> None:
        handed.append(item)
        mine.release()
        theirs.acquire()
        if left:
            raise _LeftError

    def run() -> None:
        nonlocal done
        theirs.acquire()
        try:
            if not left:
                with suppress(_LeftError):
                    compute(push)
        except BaseException as error:  # noqa: BLE001  (it is the reader's)
            failed.append(error)
        done = True
        mine.release()

    thread = Thread(target=run, name="evermat-answer", daemon=True)
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
            left = True
            theirs.release()
        thread.join()
    if failed:
        raise failed[0]
