"""Where Spark computes strata: in the driver, bucket by bucket, or round by round.

    driver    the columns engine in this process
    task      the columns engine in one task of the cluster: a small stratum of a program whose facts are there
    pivot     the columns engine in the tasks of one job, each with its own buckets (see `spark.engine.tasks.pivot_fixpoint`)
    closure   the graph of a closure in the driver, expanded by tasks (see `spark.engine.closure_access`); other recursive rules by rounds
    stars     components over DataFrames (see `spark.engine.connected_components`): a symmetric closure whose graph the driver cannot hold
    rounds    the algorithms over files of facts, a job for every round

`auto` begins in the driver if the explicit facts fit. A stratum that outgrows its placement does not begin again: what it has derived moves along,
and evaluation continues with the facts of its last round.
"""

from __future__ import annotations

import time
from typing import TypeAlias

from evermat.algebra import Counters
from evermat.core import (
    LOOK_EVERY,
    LimitError,
    MaterialiseAlgorithm,
    Placement,
    available_bytes,
    current_watch,
    limit_error,
    resident_bytes,
)
from evermat.engine import Limits, Run
from evermat.language import Stratum
from evermat.plan import pivots
from evermat.reasoning import MODULAR, algorithm_for, begin_stratum, materialise_stratum, saturate, saturate_modules
from evermat.spark import (
    FactSet,
    Intake,
    Room,
    State,
    StratumRules,
    View,
    close_by_stars,
    fits_one_task,
    has_pivot,
    saturate_by_pivot,
)

CLOSURE, STARS = "closure", "stars"

_BYTES_PER_FACT = 64  # of memory that a fact in the driver may take, with indexes and temporary structures
_MEMORY_SHARE = 0.7  # of the memory that may be used
_SOFT_SHARE = 0.9  # of a limit, at which the driver gives up

_EDGES = 20_000_000  # of closures, that may be in the driver

Placed: TypeAlias = tuple[str, str]
"""Where a stratum was computed, and why there."""


def driver_room(limits: Limits) -> Room:
    """What the driver has room for: of a limit, what this process does not use already."""
    free = available_bytes() if limits.memory is None else max(limits.memory - resident_bytes(), 0)
    return Room(int(free * _MEMORY_SHARE), _BYTES_PER_FACT)


def room_for_facts(intake: Intake) -> int | None:
    """How many facts the driver may hold in all, beside what given facts need beyond the usual."""
    usual = sum(size.facts for size in intake.sizes.values()) * _BYTES_PER_FACT
    return intake.room.facts_beside(max(intake.taken - usual, 0))


class DriverOutgrownError(LimitError):
    """What the driver does for `auto` would soon need more memory than it may use."""


class DriverWatch:
    """Stops the driver before the limit of memory: then the cluster can begin with the same facts.

    Also what estimates have missed is noticed so: indexes, and values that are larger than usual.
    """

    def __init__(self, limits: Limits) -> None:
        self._outer = current_watch()
        self._most = None if limits.memory is None else int(limits.memory * _SOFT_SHARE)
        self._next_look = 0.0

    def look(self) -> None:
        if self._outer is not None:
            self._outer.look()
        if self._most is not None and (now := time.monotonic()) >= self._next_look:
            self._next_look = now + LOOK_EVERY
            self._check(self._most, 0)

    def ask(self, size: int) -> None:
        if self._most is not None:
            self._check(self._most, size)
        if self._outer is not None:
            self._outer.ask(size)

    def passed(self, resident: int | None = None) -> LimitError | None:
        """This is no limit of the user's."""
        del resident
        return None

    def end(self) -> None:
        """Watches no longer."""
        self._most = None

    def _check(self, most: int, size: int) -> None:
        if resident_bytes() + size > most:
            raise DriverOutgrownError(limit_error("bytes of memory", most).problems)


class StratumPlacer:
    """Computes the strata of a state on a cluster, each where it fits, and records where that was."""

    def __init__(
        self, state: State, run: Run, counters: Counters, algorithm: MaterialiseAlgorithm, placement: Placement
    ) -> None:
        self._state, self._run, self._counters = state, run, counters
        self._algorithm, self._placement = algorithm, placement
        self.placed: dict[Stratum, Placed] = {}

    def compute_all(self) -> None:
        for stratum in self._run.strata(self._state):
            self._compute(stratum)

    def go_on(self, done: int, waiting: FactSet, room: int) -> None:
        """Continues what the driver began: `done` strata are complete, the next one goes on from `waiting`, then come all others."""
        reason = f"there were more than {room:,} facts; {waiting.size:,} of them were left to go on from"
        for number, stratum in enumerate(self._run.strata(self._state)):
            if number < done:
                self.placed[stratum.stratum] = "driver", "all facts fit"
            elif number == done:
                place = self._saturate(stratum, waiting)[0] if waiting.size else ""
                self.placed[stratum.stratum] = f"driver, then {place}".removesuffix(", then "), reason
            else:
                self._compute(stratum)

    def _compute(self, stratum: StratumRules) -> None:
        own, run, state = stratum.stratum, self._run, self._state
        if own.equality:
            materialise_stratum(state, run, stratum, self._counters)
            self.placed[own] = "rounds", "equal terms have a representative"
            return
        before = run.derivations
        begin_stratum(state, run, stratum, self._counters)
        placed: Placed = ("rounds", "no recursive rules: one round")
        if own.recursive:
            placed = self._saturate(stratum, state.materialised.at(own))
        self.placed[own] = placed
        state.record_work(own, run.derivations - before)
        by_modules = placed[0] in (CLOSURE, STARS)
        state.record_counters(own, self._counters.by_modules() if by_modules else self._counters)

    def _saturate(self, stratum: StratumRules, delta: View) -> Placed:
        """Adds all that follows from Δ by recursive rules."""
        own, run, state = stratum.stratum, self._run, self._state
        counter = state.recursive_counter if self._counters.recursive else None
        if self._by_modules(stratum):
            if self._fits(stratum):
                saturate_modules(state, run, stratum, delta.listed(), counter)
                return CLOSURE, "the graph is in the driver, and tasks expand it"
            closures = [module.closure for module in stratum.closures]
            stratum.give_up_closures()
            if not own.plain and len(closures) == 1 and closures[0].symmetric:
                close_by_stars(closures[0], state, run)
                return STARS, "the graph is too large for the driver"
            # Of what the driver has derived, Δ may hold external facts only: rules would not see what follows from the rest.
            delta = state.materialised.at(own)
        if self._placement == "cluster":
            saturate(state, run, stratum, delta.listed(), counter)
            return "rounds", "as asked for"
        if self._placement == "auto" and fits_one_task(state, own):
            place, reason, whole = "task", "it reads few facts", True
        elif has_pivot(state, own):
            place, reason, whole = "pivot", "all recursive rules keep a column", False
        else:
            saturate(state, run, stratum, delta.listed(), counter)
            none = "there is no column that all recursive rules keep"
            return "rounds", none if pivots(own) is None else "what it reads is too much for one task"
        left = saturate_by_pivot(state, run, stratum, delta, counted=counter is not None, whole=whole)
        if not left:
            return place, reason
        count = left.size
        saturate(state, run, stratum, left, counter)
        return f"{place}, then rounds", f"facts became too many for one task; {count:,} were left to go on from"

    def _by_modules(self, stratum: StratumRules) -> bool:
        """Whether graph algorithms close the relations of a stratum."""
        if algorithm_for(stratum, self._algorithm) != MODULAR:
            return False
        return self._placement != "pivot" or not has_pivot(self._state, stratum.stratum)

    def _fits(self, stratum: StratumRules) -> bool:
        """Whether the graphs of closures may be in the driver."""
        read = {name for closure in stratum.closures for name in closure.reads}
        return sum(map(self._state.materialised.count, read)) <= self._state.cluster.budget.whole(_EDGES)
