"""One run over a state of either engine: rounds, limits, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar

from evermat.algebra import TooManyInstancesError
from evermat.core import (
    Deliver,
    Guard,
    LimitError,
    count_argument,
    limit_error,
    memory_argument,
    seconds_argument,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run; None means no limit. Reaching one ends the run with an error, never with a part of the result."""

    rounds: int | None = None
    facts: int | None = None
    seconds: float | None = None
    memory: int | None = None  # bytes of the whole process

    @classmethod
    def checked(
        cls,
        limit_rounds: int | None = None,
        limit_facts: int | None = None,
        limit_seconds: float | None = None,
        memory: int | str | None = None,
    ) -> Limits:
        """The limits that a caller passes; raises an `ArgumentError` or a `TypeError` for anything that cannot be one."""
        return cls(
            count_argument("limit_rounds", limit_rounds),
            count_argument("limit_facts", limit_facts),
            seconds_argument("limit_seconds", limit_seconds),
            memory_argument("memory", memory),
        )


Progress = Callable[[str], None]


@dataclass(slots=True)
class Asked:
    """How often something was asked of rules or counters, the facts looked at for it, and the instances found."""

    calls: int = 0
    matches: int = 0
    instances: int = 0


_StratumRules_co = TypeVar("_StratumRules_co", covariant=True)


class _State(Protocol[_StratumRules_co]):
    @property
    def strata(self) -> Sequence[_StratumRules_co]: ...
    @property
    def row_count(self) -> int: ...


class Run:
    """Counts what happens and stops the run at its limits."""

    def __init__(self, limits: Limits = Limits(), progress: Progress | None = None) -> None:
        self.limits = limits
        self.rounds = 0
        self.derivations = 0
        self._most: int | None = None
        self.room: int | None = None  # facts that this task may hold; None: any number
        self.rounds_here: int | None = None  # rounds that this task may run
        self.deliver: Deliver | None = None  # delivers deferred signals; called where interrupts are safe
        self.asked: dict[str, Asked] = {}
        self.applications = dict.fromkeys(("deletions", "backward", "forward", "insertions"), 0)
        self._phase = "insertions"  # what instances that are found forwards are for
        self._progress = progress
        self._guard = Guard(limits.seconds, limits.memory)
        self._state: _State[Any] | None = None
        self._stratum = 0

    def strata(self, state: _State[_StratumRules_co]) -> Iterator[_StratumRules_co]:
        self._state = state
        for self._stratum, stratum in enumerate(state.strata, 1):
            yield stratum

    @property
    def outgrown(self) -> bool:
        """Whether this task has more facts than `room`, or as many rounds as `rounds_here`."""
        if self.rounds_here is not None and self.rounds >= self.rounds_here:
            return True
        return self.room is not None and self._state is not None and self._state.row_count > self.room

    def leave(self) -> None:
        """Ends the run: it keeps no state alive."""
        self._state = None

    def next_round(self) -> None:
        self.rounds += 1
        if self.limits.rounds is not None and self.rounds > self.limits.rounds:
            self._stop("rounds", self.limits.rounds)
        self.check_facts()
        self.look()

    def derived(self, instances: int) -> None:
        """Counts rule instances. Called for every batch: a round may be long."""
        self.derivations += instances
        if self._most is not None and self.derivations > self._most:
            raise TooManyInstancesError
        self.look()

    @contextmanager
    def limited(self, instances: int) -> Iterator[None]:
        """Raises `TooManyInstancesError` if more instances are considered within the block."""
        self._most = self.derivations + instances
        try:
            yield
        finally:
            self._most = None

    @contextmanager
    def applying(self, phase: str) -> Iterator[None]:
        """Counts instances that are found forwards within the block as applications of a phase."""
        before, self._phase = self._phase, phase
        try:
            yield
        finally:
            self._phase = before

    def record(self, what: str, matches: int, instances: int) -> None:
        """Records a question to rules or counters."""
        asked = self.asked.setdefault(what, Asked())
        asked.calls += 1
        asked.matches += matches
        asked.instances += instances
        if what == "forward":
            self.applications[self._phase] += instances
        elif what in ("backward", "supports"):
            self.applications["backward"] += instances

    def check_facts(self) -> None:
        most = self.limits.facts
        if most is not None and self._state is not None and self._state.row_count > most:
            self._stop("facts", most)

    def look(self) -> None:
        """Checks clock, memory, facts and signals every 20 ms; raises `LimitError` if a limit is reached."""
        if not self._guard.is_due():
            return
        if self.deliver is not None:
            self.deliver()
        self._guard.look_now()
        self.check_facts()
        if self._progress is not None and self._state is not None:
            facts = self._state.row_count
            total = len(self._state.strata)
            self._progress(f"stratum {self._stratum} of {total}, round {self.rounds:,}: {facts:,} facts")

    def ask(self, size: int) -> None:
        """Raises `LimitError` if so many more bytes exceed the limit of memory."""
        self._guard.ask(size)

    def passed(self, resident: int | None = None) -> LimitError | None:
        """The error of a limit of time or memory that is passed now."""
        return self._guard.passed(resident)

    def _stop(self, what: str, limit: float) -> NoReturn:
        raise limit_error(what, limit)


class Jobs:
    """The run that works on a state now: its limits hold, and it records the derivations."""

    def __init__(self, run: Run) -> None:
        self.run = run
