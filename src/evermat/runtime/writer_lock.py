"""The lock of those who change one materialisation: updates, changes of rules, steps of streams, saving, refreshing and closing.

Readers never take it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock, RLock, get_ident
from typing import final

from evermat.core import LOOK_EVERY, Problem, ProgramError, Watch, check_stop, held_back, watched
from evermat.core import error_catalogue as errors


@final
class WriterLock:
    """Is held by one thread at a time, in the order in which they asked for it: a stream cannot keep others out."""

    def __init__(self) -> None:
        self._turns: deque[Lock] = deque()  # the first one has the lock; each is released when it is its turn
        self._arranging = RLock()  # reentrant for signal handlers
        self._holder: int | None = None

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds it."""
        return self._holder == get_ident()

    @contextmanager
    def held(self, watch: Watch | None = None) -> Iterator[None]:
        """Holds the lock for the block. Waiting for it is stopped by signals, and by the limits of a watch.

        Raises:
            ProgramError: this thread holds it: what an update reads or calls would change what the update works on.
        """
        if self.is_mine:
            raise ProgramError(Problem(errors.NESTED_UPDATE, {}))
        turn = Lock()
        turn.acquire()
        try:
            with self._arranging:
                self._turns.append(turn)
                is_first = self._turns[0] is turn
            if not is_first:
                with nullcontext() if watch is None else watched(watch):
                    while not turn.acquire(timeout=LOOK_EVERY):
                        check_stop()
            self._holder = get_ident()
            yield
        finally:
            self._leave(turn)

    def _leave(self, turn: Lock) -> None:
        """Lets the next one have its turn, or gives up waiting; done again where an exception of a signal handler has cut it in two."""
        try:
            self._pass_on(turn)
        except BaseException:
            self._pass_on(turn)
            raise

    def _pass_on(self, turn: Lock) -> None:
        with held_back(), self._arranging:
            if self.is_mine:
                self._holder = None
            if turn in self._turns:
                self._turns.remove(turn)
            if self._holder is None and self._turns and self._turns[0].locked():
                self._turns[0].release()
