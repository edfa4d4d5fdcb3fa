"""Where Spark has strata computed: in the driver, bucket by bucket, or round by round; and when to change one's mind.

    driver    the columns engine in this process
    task      the columns engine in one task of the cluster: a small stratum of a program whose facts are there
    pivot     the columns engine in the tasks of one job, each with its own buckets (see `spark.engine.tasks.pivot_fixpoint`)
    closure   the graph of a closure in the driver, expanded by tasks (see `spark.engine.closure_access`); other recursive rules by rounds
    stars     components over DataFrames (see `spark.engine.connected_components`): a symmetric closure whose graph the driver cannot hold
    rounds    the algorithms over files of facts, a job for every round

`auto` begins in the driver if what is given fits. A stratum that outgrows its place is not begun anew: what it has derived goes along, and
evaluation continues with the facts of its last round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evermat.algebra import Counters
from evermat.api.materialisation import Materialisation, load_state
from evermat.columns.schemes.policy import AUTO as AUTO_SCHEMES
from evermat.core import PhaseTimer, available_bytes
from evermat.engine.run import Limits, Progress, Run
from evermat.language import Program, Stratum
from evermat.plan import pivots
from evermat.reasoning.materialise import AUTO, MODULAR, algorithm_for, materialise_stratum
from evermat.reasoning.modular import materialise as modular
from evermat.reasoning.seminaive import begin_stratum, saturate
from evermat.runtime.spark_engine import CLOSURE, STARS, ClusteredMaterialisation, load_facts
from evermat.spark.engine.connected_components import close_by_stars
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.job_runner import Cluster, default_buckets
from evermat.spark.engine.state import State, StratumRules
from evermat.spark.engine.tasks.pivot_fixpoint import can_close, close, is_small
from evermat.spark.engine.transfer import move
from evermat.spark.input.arrow_files import Several
from evermat.spark.scratch import Scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACES = ("auto", "driver", "pivot", "cluster")

_BYTES_PER_FACT = 64  # of memory that a fact in the driver may take, with indexes and what is made on the way
_MEMORY_SHARE = 0.7  # of the memory that may be used

_EDGES = 20_000_000  # of closures, that may be in the driver

_Placed = tuple[str, str]  # where a stratum was computed, and why there


def materialise_on_spark(
    program: Program,
    facts: Mapping[str, Any],
    spark: SparkSession,
    *,
    place: str = "auto",
    scratch: Path | None = None,
    limits: Limits = Limits(),  # noqa: B008
    counters: Counters = Counters.NONE,
    algorithm: str = AUTO,
    schemes: str = AUTO_SCHEMES,
    progress: Progress | None = None,
    check: Callable[[], None] = lambda: None,
    before_cluster: Callable[[], None] = lambda: None,
    phases: PhaseTimer | None = None,
    buckets: int | None = None,
) -> Materialisation:
    """Computes all consequences, in the driver or on the cluster.

    Args:
        program: the rules.
        facts: explicit facts by relation.
        spark: the caller's session.
        place: one of `PLACES`.
        scratch: a folder that driver and executors share.
        limits: what may be used.
        counters: which derivation counters to keep.
        algorithm: how strata are computed, see `reasoning.materialisation`.
        schemes: how relations are stored in the driver.
        progress: told how far it has come.
        check: called again and again; raises to stop everything.
        before_cluster: called before the first job over facts on the cluster.
        phases: what takes how long.
        buckets: how many parts facts are divided into, on a cluster.

    Raises:
        DataError: the facts do not fit their relations.
        LimitError: a limit was reached.
        ResourceError: Spark gave up, or the scratch folder is full.
    """
    run = Run(limits, progress)
    placing = _Placing(
        program,
        spark,
        place,
        scratch,
        run,
        counters,
        (algorithm, schemes),
        (check, before_cluster),
        phases or PhaseTimer(),
        buckets,
    )
    fits = place == "driver" or (place == "auto" and _given(facts) <= placing.room)
    made = placing.in_driver(facts) if fits else placing.on_cluster(facts)
    try:
        made.refuse_forbidden()
    except BaseException:
        made.close()
        raise
    return made


class _Placing:
    """One materialisation."""

    def __init__(
        self,
        program: Program,
        spark: SparkSession,
        place: str,
        scratch: Path | None,
        run: Run,
        counters: Counters,
        ways: tuple[str, str],
        hooks: tuple[Callable[[], None], Callable[[], None]],
        phases: PhaseTimer,
        buckets: int | None,
    ) -> None:
        self._program, self._spark, self._place, self._scratch = program, spark, place, scratch
        self._run, self._counters, self._phases, self._buckets = run, counters, phases, buckets
        self._algorithm, self._schemes = ways
        self._check, self._before_cluster = hooks
        self._places: dict[Stratum, _Placed] = {}
        memory = run.limits.memory or available_bytes()
        self.room = int(memory * _MEMORY_SHARE / _BYTES_PER_FACT)  # facts that may be in the driver

    def in_driver(self, facts: Mapping[str, Any]) -> Materialisation:
        """In the memory of this process; if that becomes too small, the rest on the cluster."""
        run, program = self._run, self._program
        state = load_state(program, facts, run, self._phases, self._schemes)
        if self._place == "auto":
            run.room = self.room
        left: Any = None
        strata = run.strata(state)
        with self._phases.during("reason"):
            for stratum in strata:
                left = materialise_stratum(state, run, stratum, self._counters, self._algorithm)
                if run.outgrown:
                    break
                self._places[stratum.stratum] = "driver", "all facts fit"
        if not run.outgrown or (not left and len(self._places) + 1 == len(state.strata)):
            run.room = None
            return Materialisation(program, state, run, self._phases, engine="spark", algorithm=self._algorithm)
        with ExitStack() as stack:
            moved = self._new_state(stack)
            with self._phases.during("move"), moved.cluster.scratch.writing():
                waiting = move(state, moved, left)
            del state, left
            with self._phases.during("reason"):
                self._go_on(moved, waiting)
            return self._done(moved, stack)

    def on_cluster(self, facts: Mapping[str, Any]) -> Materialisation:
        """Everything on the cluster; the driver sees no facts but those that it is given."""
        with ExitStack() as stack:
            state = self._new_state(stack)
            with self._phases.during("encode"):
                in_text = {name: rows for name, rows in self._program.facts.items() if rows}
                state.load(load_facts(self._program, state, [facts, in_text], "E"))
            with self._phases.during("reason"):
                for stratum in self._run.strata(state):
                    self._derive(state, stratum)
            return self._done(state, stack)

    def _new_state(self, stack: ExitStack) -> State:
        self._before_cluster()
        folder = stack.enter_context(Scratch(self._scratch))
        buckets = self._buckets or default_buckets(self._spark)
        cluster = Cluster(self._spark, folder, buckets, self._check)
        stack.callback(cluster.close)
        self._run.room = None
        return State(self._program, self._run, cluster)

    def _done(self, state: State, stack: ExitStack) -> ClusteredMaterialisation:
        resources = stack.pop_all()
        return ClusteredMaterialisation(
            self._program, state, self._run, self._phases, self._places, resources, algorithm=self._algorithm
        )

    def _go_on(self, state: State, waiting: FactSet) -> None:
        """The stratum that outgrew the driver from where it was, then all that follow."""
        done = len(self._places)
        reason = f"there were more than {self.room:,} facts; {waiting.size:,} of them were left to go on from"
        for number, stratum in enumerate(self._run.strata(state)):
            if number == done:
                place = self._saturate(state, stratum, waiting)[0] if waiting.size else ""
                self._places[stratum.stratum] = f"driver, then {place}".removesuffix(", then "), reason
            elif number > done:
                self._derive(state, stratum)

    def _derive(self, state: State, stratum: StratumRules) -> None:
        """Computes one stratum on the cluster."""
        own, run = stratum.stratum, self._run
        if own.equality:
            materialise_stratum(state, run, stratum, self._counters)
            self._places[own] = "rounds", "equal terms are represented by one"
            return
        before = run.derivations
        begin_stratum(state, run, stratum, self._counters)
        placed: _Placed = ("rounds", "no recursive rules: one round")
        if own.recursive:
            placed = self._saturate(state, stratum, state.materialised.at(own))
        self._places[own] = placed
        state.record_work(own, run.derivations - before)
        by_modules = placed[0] in (CLOSURE, STARS)
        state.record_counters(own, self._counters.by_modules() if by_modules else self._counters)

    def _saturate(self, state: State, stratum: StratumRules, delta: View) -> _Placed:
        """Adds all that follows from Δ by recursive rules."""
        own, run = stratum.stratum, self._run
        counter = state.recursive_counter if self._counters.recursive else None
        if self._by_modules(stratum, state):
            if self._fits(stratum, state):
                modular.saturate(state, run, stratum, delta.listed(), counter)
                return CLOSURE, "the graph is in the driver, and tasks expand it"
            closures = [module.closure for module in stratum.closures]
            stratum.give_up_closures()
            if not own.plain and len(closures) == 1 and closures[0].symmetric:
                close_by_stars(closures[0], state, run)
                return STARS, "the graph is too large for the driver"
            # Of what the driver has derived, Δ may hold external facts only: rules would not see what follows from the rest.
            delta = state.materialised.at(own)
        if self._place == "cluster":
            saturate(state, run, stratum, delta.listed(), counter)
            return "rounds", "as asked for"
        if self._place == "auto" and is_small(state, own):
            place, reason, whole = "task", "it reads few facts", True
        elif can_close(state, own):
            place, reason, whole = "pivot", "a column is handed on by all recursive rules", False
        else:
            saturate(state, run, stratum, delta.listed(), counter)
            none = "no column is handed on by all recursive rules"
            return "rounds", none if pivots(own) is None else "what it reads is too much for one task"
        left = close(state, run, stratum, delta, counted=counter is not None, whole=whole)
        if not left:
            return place, reason
        count = left.size
        saturate(state, run, stratum, left, counter)
        return f"{place}, then rounds", f"facts became too many for one task; {count:,} were left to go on from"

    def _by_modules(self, stratum: StratumRules, state: State) -> bool:
        """Whether graph algorithms close the relations of a stratum."""
        if algorithm_for(stratum, self._algorithm) != MODULAR:
            return False
        return self._place != "pivot" or not can_close(state, stratum.stratum)

    def _fits(self, stratum: StratumRules, state: State) -> bool:
        """Whether the graphs of closures may be in the driver."""
        read = {name for closure in stratum.closures for name in closure.reads}
        return sum(map(state.materialised.count, read)) <= _EDGES


def _given(facts: Mapping[str, Any]) -> int:
    """How many facts are given, as far as can be told without counting."""
    return sum(one.rows if isinstance(one, Several) else _length(one) for one in facts.values())


def _length(given: Any) -> int:
    try:
        return len(given)
    except TypeError:
        return 0  # a DataFrame, or a generator
