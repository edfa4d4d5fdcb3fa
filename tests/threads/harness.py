"""Runs agents: each in a thread of its own, or all in one, a step of one and a step of another.

An operation is a generator: where it yields, others may do anything. In threads, the steps of an operation follow one another; the
interpreter switches threads as often as it can.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from types import TracebackType
from typing import Any, NamedTuple, Self

SWITCH = 1e-5  # seconds between switches of threads
PATIENCE = 120.0  # seconds in which an operation must end; machines are shared

Operation = Callable[[Any, Random], Iterator[None]]


class Agent(NamedTuple):
    """Whoever does operations one after the other, each chosen by chance: a world, and operations with their weights."""

    name: str
    operations: Mapping[Operation, int]


class Failure(AssertionError):
    """What went wrong in an agent."""


@contextmanager
def switching_often(interval: float = SWITCH) -> Iterator[None]:
    """The interpreter switches threads as often as it can within the block."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(interval)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


class Shared:
    """A lock that many hold together, or one alone; who holds it alone keeps others out that want it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._holders, self._alone = 0, False

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._alone, PATIENCE)
            self._holders += 1
        try:
            yield
        finally:
            with self._changed:
                self._holders -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[bool]:
        """Yields whether the lock is held."""
        with self._changed:
            held = not self._alone and (wait or not self._holders)
            if held:
                self._alone = True
                held = self._changed.wait_for(lambda: not self._holders, PATIENCE)
        try:
            yield held
        finally:
            with self._changed:
                if held:
                    self._alone = False
                self._changed.notify_all()


def _described(agent: Agent, operation: Operation, seed: object, error: BaseException) -> str:
    trace = "".join(traceback.format_exception(error))
    return f"seed {seed!r}, {agent.name}, {operation.__name__}: {type(error).__name__}: {error}\n{trace}"


class _Log:
    """What agents did, and the first failure."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []
        self.stop = threading.Event()

    def fail(self, text: str) -> None:
        self.failures.append(text)
        self.stop.set()

    def raise_if_any(self) -> None:
        if self.failures:
            raise Failure("\n\n".join(self.failures[:3]))


def run_threads(world: Any, agents: Sequence[Agent], seed: object, seconds: float) -> Counter[str]:
    """Runs each agent in a thread for some seconds; returns how often each operation was done.

    Raises:
        Failure: an operation went wrong or did not end.
    """
    log = _Log()
    until = time.monotonic() + seconds

    def work(agent: Agent, rng: Random) -> None:
        operation: Operation | None = None
        operations, weights = list(agent.operations), list(agent.operations.values())
        try:
            while time.monotonic() < until and not log.stop.is_set():
                (operation,) = rng.choices(operations, weights)
                for _ in operation(world, rng):
                    pass
                log.done[operation.__name__] += 1
        except BaseException as error:
            log.fail(_described(agent, operation or operations[0], seed, error))

    threads = [
        threading.Thread(target=work, args=(agent, Random(f"{seed} {number}")), name=agent.name, daemon=True)
        for number, agent in enumerate(agents)
    ]
    with switching_often():
        for thread in threads:
            thread.start()
        join_all(threads, until + PATIENCE)
    log.raise_if_any()
    return log.done


def join_all(threads: Sequence[threading.Thread], deadline: float) -> None:
    """Waits for threads; the deadline is a time of `time.monotonic`.

    Raises:
        Failure: some have not ended, with the stacks of all threads.
    """
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    hanging = [thread.name for thread in threads if thread.is_alive()]
    if hanging:
        raise Failure(f"these threads do not end: {', '.join(hanging)}\n{stacks()}")


def stacks() -> str:
    """The stacks of all threads of this process."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()


@contextmanager
def last_resort(seconds: float) -> Iterator[None]:
    """Ends the process if the block takes longer: whatever holds the interpreter would hang all tests."""
    with os.fdopen(os.dup(sys.__stderr__.fileno()), "w") as file:  # type: ignore[union-attr]
        faulthandler.dump_traceback_later(seconds, exit=True, file=file)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


def run_interleaved(
    world: Any, agents: Sequence[Agent], seed: object, steps: int, *, open_at_once: int = 6
) -> Counter[str]:
    """Runs all agents in this thread: a step of one operation, then a step of any other.

    Raises:
        Failure: an operation went wrong.
    """
    log, rng = _Log(), Random(f"{seed}")
    running: list[tuple[Agent, Operation, Iterator[None]]] = []
    for _ in range(steps):
        if len(running) < open_at_once:
            agent = rng.choice(agents)
            (operation,) = rng.choices(list(agent.operations), list(agent.operations.values()))
            running.append((agent, operation, operation(world, Random(rng.getrandbits(64)))))
        number = rng.randrange(len(running))
        agent, operation, going = running[number]
        try:
            if next(going, _ENDED) is _ENDED:
                log.done[operation.__name__] += 1
                del running[number]
        except Exception as error:
            log.fail(_described(agent, operation, seed, error))
            break
    for _, _, going in running:
        going.close()  # type: ignore[attr-defined]
    log.raise_if_any()
    return log.done


_ENDED: Any = object()


class Background:
    """A call in a thread of its own, which must end within `PATIENCE`; as a context, the call ends before the block does.

    >>> with Background(lambda: 1) as call:
    ...     call.result()
    1
    """

    def __init__(self, call: Callable[[], Any], name: str = "background") -> None:
        self._call, self._found, self._error = call, None, None
        self.thread = threading.Thread(target=self._work, name=name, daemon=True)
        self.thread.start()

    def _work(self) -> None:
        try:
            self._found = self._call()
        except BaseException as error:
            self._error = error

    def result(self, seconds: float = PATIENCE) -> Any:
        """What the call returned.

        Raises:
            Failure: it does not end.
        """
        join_all([self.thread], time.monotonic() + seconds)
        if self._error is not None:
            raise self._error
        return self._found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.result()
        else:
            self.thread.join(1)
