"""A materialisation from scratch: its facts are read, an engine is chosen and loaded, and all consequences are derived."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from evermat.algebra import Counters
from evermat.core import Guard, MaterialiseAlgorithm, PhaseTimer, Placement, SchemePolicy, free_memory, watched
from evermat.engine import DifferentValuesError, Limits, Progress, Run
from evermat.language import Program, Query, Row
from evermat.runtime.constraints import explained, refuse_forbidden
from evermat.runtime.engine import Engine
from evermat.runtime.engines.memory_engine import MaterialisedPart, MemoryEngine
from evermat.runtime.facts.inputs import FactSources
from evermat.runtime.query import answer_query
from evermat.runtime.rows import decoded_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evermat.runtime.engines.spark_engine import SparkEngine
    from evermat.spark import Intake
    from evermat.store import Location

_E = TypeVar("_E", bound=Engine)
_NO_LIMITS = Limits()


@dataclass(frozen=True)
class Options:
    """How consequences are derived and stored; see `api.Program.materialise`."""

    limits: Limits = _NO_LIMITS
    counters: Counters = Counters.NONE
    algorithm: MaterialiseAlgorithm = "auto"
    schemes: SchemePolicy = "auto"
    placement: Placement = "auto"
    scratch: Location | None = None
    buckets: int | None = None  # with Spark, how many parts facts are divided into
    broadcast: int | None = None  # with Spark, how many facts of a relation each task may read whole
    progress: Progress | None = None


def materialise_facts(
    program: Program,
    sources: FactSources,
    options: Options = Options(),
    session: SparkSession | None = None,
    timer: PhaseTimer | None = None,
) -> Engine:
    """An engine that holds all consequences of a program and its explicit facts: in the memory of this process, unless there is a session.

    See `api.Program.materialise` for errors.
    """
    with watched(Guard(options.limits.seconds, options.limits.memory)):
        program, sources = sources.named(program)
        return _materialise(program, sources, options, session, timer or PhaseTimer())


def _materialise(
    program: Program, sources: FactSources, options: Options, session: SparkSession | None, timer: PhaseTimer
) -> Engine:
    if session is None:
        with _reading(sources, program, timer):
            facts = sources.read(program)
        engine = _in_memory(program, facts, options, timer)
    else:
        engine = _on_spark(program, sources, options, session, timer)
    with _closed_on_error(engine), timer.during("reason"):
        _refuse_forbidden(engine)
    return engine


def _reading(sources: FactSources, program: Program, timer: PhaseTimer) -> AbstractContextManager[None]:
    """The phase in which files are read, if any are."""
    return timer.during("read") if sources.reads_files(program) else nullcontext()


def _in_memory(program: Program, facts: Mapping[str, Any], options: Options, timer: PhaseTimer) -> Engine:
    run = Run(options.limits, options.progress)
    engine = MemoryEngine.start(program, run, timer, algorithm=options.algorithm, schemes=options.schemes)
    with watched(run):
        _fill(engine, facts, options.counters)
    return engine


def _fill(engine: Engine, facts: Mapping[str, Any], counters: Counters) -> Any:
    """Has an empty engine derive all consequences of explicit facts; what it returns is what it left to another."""
    with engine.timer.during("encode"):
        engine.load(facts)
    with engine.timer.during("reason"), _explained(engine):
        return engine.materialise(counters)


def _on_spark(
    program: Program, sources: FactSources, options: Options, session: SparkSession, timer: PhaseTimer
) -> Engine:
    """In the driver as long as the facts fit; else on the cluster."""
    from evermat.runtime.engines.placement import driver_room
    from evermat.runtime.facts.gather import gather
    from evermat.spark import Intake, Scratch

    automatic = options.placement == "auto"
    with Scratch(options.scratch) as scratch:
        room = driver_room(options.limits) if automatic else None
        intake = Intake(scratch, room, spread=options.placement in ("pivot", "cluster"))
        with _reading(sources, program, timer):
            facts = gather(program, sources, session, intake, options.progress)
        placing = _Placing(program, session, options, timer, facts, intake)
        engine = None
        if options.placement == "driver":
            engine = placing.in_driver()
        elif automatic and intake.fits:
            engine = placing.begun_in_driver()
        engine = engine or placing.on_cluster()
        engine.sizes = intake.stats()
        return engine


class _Placing:
    """Has facts, once they are read, lead to an engine with all consequences."""

    def __init__(
        self,
        program: Program,
        session: SparkSession,
        options: Options,
        timer: PhaseTimer,
        facts: Mapping[str, Any],
        intake: Intake,
    ) -> None:
        self._program, self._session, self._options, self._timer = program, session, options, timer
        self._facts, self._intake = facts, intake

    def in_driver(self) -> Engine:
        """Whatever it takes."""
        return self._derived(Run(self._options.limits, self._options.progress))[0]

    def begun_in_driver(self) -> Engine | None:
        """In the driver; what outgrows it goes on on the cluster. None if its memory did not suffice: the facts are as they were."""
        from evermat.runtime.engines.placement import DriverOutgrownError, DriverWatch, room_for_facts

        watch = DriverWatch(self._options.limits)
        try:
            with watched(watch):
                run = Run(self._options.limits, self._options.progress)
                run.room = room = room_for_facts(self._intake)
                engine, part = self._derived(run)
        except (DriverOutgrownError, MemoryError):
            pass  # with the exception goes what it refers to: all that was derived
        else:
            watch.end()
            run.room = None
            if part is None:
                return engine
            with _closed_on_error(self._started(run)) as target:
                with self._timer.during("move"):
                    waiting, done = target.take_over(engine, part), part.strata
                del engine, part  # the driver's memory is free from here on
                with self._timer.during("reason"), _explained(target):
                    target.go_on(done, waiting, room or 0, self._options.counters)
            return target
        free_memory()
        return None

    def on_cluster(self) -> Engine:
        with _closed_on_error(self._started(Run(self._options.limits, self._options.progress))) as target:
            _fill(target, self._facts, self._options.counters)
        return target

    def _derived(self, run: Run) -> tuple[MemoryEngine, MaterialisedPart | None]:
        options = self._options
        engine = MemoryEngine.start(
            self._program, run, self._timer, name="spark", algorithm=options.algorithm, schemes=options.schemes
        )
        return engine, _fill(engine, self._facts, options.counters)

    def _started(self, run: Run) -> SparkEngine:
        from evermat.runtime.engines.spark_engine import SparkEngine

        options = self._options
        return SparkEngine.start(
            self._program,
            self._session,
            run,
            self._timer,
            algorithm=options.algorithm,
            placement=options.placement,
            scratch=options.scratch,
            buckets=options.buckets,
            broadcast=options.broadcast,
        )


@contextmanager
def _closed_on_error(engine: _E) -> Iterator[_E]:
    """Closes an engine that is not complete."""
    try:
        yield engine
    except BaseException:
        engine.close()
        raise


@contextmanager
def _explained(engine: Engine) -> Iterator[None]:
    """Says by what rules and facts of an engine literals of different values would be equal."""
    try:
        yield
    except DifferentValuesError as error:
        raise explained(error, engine.program, _answers(engine)) from None


def _refuse_forbidden(engine: Engine) -> None:
    reading, relations = engine.snapshot(), engine.program.relations
    refuse_forbidden(
        engine.program,
        lambda name: decoded_rows(reading.scan(name, expanded=False), relations[name].types, reading.dictionary),
        _answers(engine),
    )


def _answers(engine: Engine) -> Callable[[Query], Iterable[Row]]:
    """What answers queries over the facts of an engine."""
    reading = engine.snapshot()
    return lambda query: answer_query(query, reading, engine.run)
