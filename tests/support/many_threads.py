"""Threads that work at the same time, and that Python switches between as often as it can."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from random import Random
from threading import Barrier, Event, Thread
from typing import TypeVar

from tests.support.randomness import seeds

_Case = TypeVar("_Case")
THREADS = 8
SECONDS = 0.6


@contextmanager
def switching_often() -> Iterator[None]:
    """Has threads take turns after 10 microseconds within the block, instead of 5 milliseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def at_once(*works: Callable[[], object], seconds: float = 0.0) -> None:
    """Runs each work in a thread of its own, all from the same moment on: once, or again and again for some seconds.

    Raises the first exception of any of them.
    """
    failed: list[BaseException] = []
    start, end = Barrier(len(works)), time.monotonic() + seconds

    def run(work: Callable[[], object]) -> None:
        try:
            start.wait()
            work()
            while time.monotonic() < end and not failed:
                work()
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=run, args=(work,), daemon=True) for work in works]
    with switching_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 300)  # machines are shared
            assert not thread.is_alive(), "a thread waits for ever"
    if failed:
        raise failed[0]


def same_in_threads(work: Callable[[_Case], object], cases: Sequence[_Case], seconds: float = SECONDS) -> None:
    """Checks that a work returns for each case, in threads at the same time, what it returns alone."""
    expected = [work(case) for case in cases]

    def going_through(number: int) -> Callable[[], None]:
        order = [*range(len(cases))]
        Random(number).shuffle(order)
        positions = cycle(order)

        def step() -> None:
            position = next(positions)
            assert work(cases[position]) == expected[position]

        return step

    at_once(*map(going_through, range(THREADS)), seconds=seconds)


@contextmanager
def readers(read: Callable[[Random], None], count: int = 3) -> Iterator[Event]:
    """Threads that read until the block ends or one of them fails, which the event says; what they raise is raised then."""
    over, failed, errors = Event(), Event(), list[BaseException]()

    def work(seed: int) -> None:
        rng = Random(seed)
        try:
            while not over.is_set():
                read(rng)
        except BaseException as error:
            errors.append(error)
            failed.set()

    threads = [Thread(target=work, args=(seed,)) for seed in seeds("readers", count)]
    with switching_often():
        for thread in threads:
            thread.start()
        try:
            yield failed
        finally:
            over.set()
            for thread in threads:
                thread.join()
    if errors:
        raise errors[0]
