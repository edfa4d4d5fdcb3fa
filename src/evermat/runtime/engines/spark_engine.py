"""The engine whose facts are in files that Spark's executors read and write; see `engine`.

Facts come to the driver only when a user reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from evermat.algebra import Counters
from evermat.columns import Batch, Dictionary, encode_rows, rows_of
from evermat.core import EngineName, MaterialiseAlgorithm, PhaseTimer, Placement, collected_errors
from evermat.engine import Difference, DifferentValuesError, Run
from evermat.language import Program, Query, Relation, Row, Stratum
from evermat.reasoning import MODULAR, SEMINAIVE, algorithm_for
from evermat.runtime.engine import Changed, Described, Engine, EngineSnapshot, EngineUpdate
from evermat.runtime.engines.memory_engine import MaterialisedPart, MemoryEngine
from evermat.runtime.engines.placement import CLOSURE, STARS, Placed, StratumPlacer
from evermat.runtime.facts.gather import arriving_tables, is_arriving
from evermat.runtime.facts.ingest import is_dataframe, relation_of, table_of
from evermat.runtime.rows import decoded_rows
from evermat.runtime.streams.stream import Once
from evermat.spark import (
    Cluster,
    ConcatenatedFacts,
    FactSet,
    Scratch,
    Snapshot,
    State,
    Update,
    View,
    default_buckets,
    evaluate,
    facts_of,
    frame_files,
    holds,
    is_part,
    load_files,
    move_state,
    saved_state,
    write_facts,
    written_facts,
)
from evermat.store import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evermat.runtime.states.saved_version import SavedVersion

_ROUNDS = 3
MOST_READ = 1 << 24  # bytes of symbols that were read, and are kept until the next update


@final
class SparkEngine(Engine):
    """The facts of a program in files of a cluster; `close` removes them."""

    name: EngineName = "spark"
    distributed = True
    state: State

    def __init__(
        self,
        state: State,
        run: Run,
        timer: PhaseTimer,
        resources: ExitStack,
        algorithm: MaterialiseAlgorithm = "auto",
        placement: Placement = "cluster",
        placed: Mapping[Stratum, Placed] = MappingProxyType({}),
    ) -> None:
        super().__init__(state, run, timer, algorithm)
        self._resources, self._placed = resources, placed
        self._placement: Placement = placement
        self.session = state.cluster.caller_session

    @classmethod
    def start(
        cls,
        program: Program,
        session: SparkSession,
        run: Run,
        timer: PhaseTimer,
        *,
        algorithm: MaterialiseAlgorithm = "auto",
        placement: Placement = "cluster",
        scratch: Location | None = None,
        buckets: int | None = None,
        broadcast: int | None = None,
    ) -> Self:
        """An empty engine over the caller's session; jobs run in one of our own beside it. Driver and executors share `scratch`."""
        with ExitStack() as stack:
            folder = stack.enter_context(Scratch(scratch))
            cluster = Cluster(session, folder, buckets or default_buckets(session), broadcast=broadcast)
            stack.callback(cluster.close)
            state = State(program, run, cluster)
            return cls(state, run, timer, stack.pop_all(), algorithm, placement)

    def load(self, facts: Mapping[str, Any]) -> None:
        in_text = {name: rows for name, rows in self.program.facts.items() if rows}
        self.state.load(_load_facts(self.state, [facts, in_text], "E"))
        self.state.publish()

    def materialise(self, counters: Counters) -> None:
        with self._published():
            self._placer(counters).compute_all()

    def take_over(self, engine: MemoryEngine, part: MaterialisedPart) -> FactSet:
        """Takes in all that the driver has derived; returns the facts from which its last stratum has to go on."""
        with self.state.cluster.scratch.writing():
            return move_state(engine.state, self.state, part.left)

    def go_on(self, done: int, waiting: FactSet, room: int, counters: Counters) -> None:
        """Continues a materialisation that outgrew the driver; see `StratumPlacer.go_on`."""
        with self._published():
            self._placer(counters).go_on(done, waiting, room)

    @contextmanager
    def _published(self) -> Iterator[None]:
        """Publishes what is derived, or what there is of it that says why it cannot be."""
        try:
            yield
        except DifferentValuesError:
            self.state.publish()
            raise
        self.state.publish()

    def _placer(self, counters: Counters) -> StratumPlacer:
        placer = StratumPlacer(self.state, self.run, counters, self._algorithm, self._placement)
        self._placed = placer.placed
        return placer

    def restore(self, version: SavedVersion) -> None:
        kept = version.counters
        version.check(self.program.relations)
        counters = {name: valid for stratum, (valid, _) in kept.items() for name in stratum.relations}
        saved_state.restore_state(self.state, version.store, version.number, counters)
        for stratum, (valid, work) in kept.items():
            self.state.record_counters(stratum, valid)
            self.state.record_work(stratum, work)
        self.state.publish()

    def snapshot(self) -> Snapshot:
        return Snapshot(self.state.version)

    def dataframe(
        self, reading: Snapshot, relation: Relation, spark: SparkSession, *, expanded: bool = True, kept: object = None
    ) -> DataFrame:
        """Nothing comes to the driver."""
        return reading.dataframe(relation.name, spark, expanded=expanded, kept=kept)

    def release_frames(self) -> None:
        for _ in range(_ROUNDS):  # what a DataFrame leaves behind in Spark is sometimes found only then
            self.state.cluster.frame_pins.release(collect=True)

    def close(self) -> None:
        self._resources.close()

    # --- updates -------------------------------------------------------------------------------------------------------
    def revised(self, program: Program, run: Run) -> Self:
        state = State(program, run, self.state.cluster, kept=self.state)
        return type(self)(state, self.run, self.timer, self._resources, self._algorithm, self._placement, self._placed)

    def begin_update(
        self, changes: Changed, run: Run, *, upcoming: Changed = (), before: Engine | None = None, durable: bool = False
    ) -> SparkUpdate:
        del durable
        assert before is None or isinstance(before, SparkEngine)
        return SparkUpdate(self.state, run, changes, upcoming, None if before is None else before.state)

    def reclaim(self, run: Run) -> dict[str, Any] | None:
        """None: files that hold deleted facts are replaced by updates.

        The driver's dictionary has what was read from them. They do not refer to it, so that it is begun again when it is large; not where equal
        terms have representatives, which are ids.
        """
        del run
        if self.state.representatives is None and self.state.dictionary.nbytes > MOST_READ:
            self.state.dictionary = Dictionary()
            self.state.publish()
        return None

    # --- state directories -------------------------------------------------------------------------------------------
    @property
    def storage(self) -> Mapping[str, Any]:
        return {"asked": "plain", "stored": [], "copied": {}}  # on a cluster every fact is in a file

    def describe(self, counters: Mapping[str, Counters]) -> Described:
        return saved_state.all_rows(self._without_limits(), counters)

    def difference(
        self, version: SavedVersion, dropped: Collection[str], counters: Mapping[str, Counters]
    ) -> Difference:
        return saved_state.difference(self._without_limits(), version.store, version.program, dropped, counters)

    def _without_limits(self) -> State:
        """The state, for which the limits of what was done before do not hold any more."""
        self.state.jobs.run = Run()
        return self.state

    # --- figures -----------------------------------------------------------------------------------------------------
    def algorithm_of(self, stratum: Stratum) -> str:
        placement, _ = self.placement_of(stratum)
        if placement == "driver":
            return algorithm_for(self._rules[stratum], self._algorithm)
        return MODULAR if CLOSURE in placement or STARS in placement else SEMINAIVE

    def placement_of(self, stratum: Stratum) -> tuple[str, str]:
        return self._placed.get(stratum, ("rounds", "materialisation from scratch"))

    def undefined(self) -> Counter[int]:
        return Counter(self.state.version.undefined)

    def figures(self, reading: EngineSnapshot) -> dict[str, Any]:
        del reading
        context = self.state.context
        return {
            "schemes": {},
            "stored_bytes": self.state.nbytes,
            "buckets": context.cluster.buckets,
            "task_memory": context.cluster.budget.memory,
            "jobs": context.cluster.jobs,
            "sent_facts": context.sent,
            "sent_bytes": context.sent_bytes,
        }


def restored_on_cluster(
    version: SavedVersion,
    session: SparkSession,
    scratch: Location | None = None,
    buckets: int | None = None,
    broadcast: int | None = None,
) -> SparkEngine:
    """An engine with the facts of a saved version, on executors, which must see the state directory."""
    engine = SparkEngine.start(
        version.program, session, Run(), PhaseTimer(), scratch=scratch, buckets=buckets, broadcast=broadcast
    )
    try:
        engine.restore(version)
    except BaseException:
        engine.close()
        raise
    return engine


@final
class SparkUpdate(EngineUpdate):
    """One update of the Spark engine."""

    sets: Update
    _state: State

    def __init__(self, state: State, run: Run, changes: Changed, upcoming: Changed, before: State | None) -> None:
        super().__init__(state, run, before)
        state.jobs.run = run
        self._inserted, self._deleted = _load_changes(state, changes)
        self.deleted_next = self._look_ahead(upcoming)
        if (names := state.representatives) is not None:
            # Other rules may ask for names that none has asked for before.
            rules = () if before is None else state.program.rules
            given: View = self._inserted if before is None else state.given | self._inserted
            self._inserted.add(names.names_of(given, rules))

    def _begin(self) -> Update:
        return Update(self._state, self._run, self._deleted, self._inserted)

    def _deleted_by(self, changes: Changed) -> FactSet:
        return _load_changes(self._state, changes)[1]

    def conclude(self) -> None:
        self._result = self._expanded = self.sets.result()
        if self._state.representatives is not None:
            self._expanded = self._state.representatives.named_change(self.sets, *self._result)

    def inserted_rows(self, name: str) -> Iterable[tuple[Any, ...]]:
        state, inserted = self._state, self._result[1]
        batches = facts_of(inserted, name, state.dictionary) if inserted.count(name) else ()
        return decoded_rows(batches, state.program.relations[name].types, state.dictionary)

    def evaluate(self, query: Query) -> Iterable[tuple[Any, ...]]:
        state, facts = self._state, self.sets.after
        names = state.representatives
        expansion = None if names is None else names.expansion(facts, frozen=False)
        context = state.context.beside(self._run, state.materialised)
        found = evaluate(query, facts, expansion, context, state.dictionary)
        return decoded_rows(rows_of(found.table), query.answer.types, state.dictionary)

    @property
    def changes(self) -> tuple[SparkChange, SparkChange]:
        deleted, inserted = self._expanded
        relations, dictionary = self._state.program.relations, self._state.dictionary
        return SparkChange(deleted, relations, dictionary), SparkChange(inserted, relations, dictionary)

    def describe(self, counters: Mapping[str, Counters], whole: Collection[str]) -> Described:
        assert not whole, "on a cluster no relation has a storage scheme"
        return saved_state.changed_rows(self.sets, self._result, counters)

    def commit(self, valid: Mapping[Stratum, Counters], write: Callable[[], None]) -> None:
        self.sets.commit(*self._result, write)
        for stratum, counters in valid.items():
            self._state.record_counters(stratum, counters)
        before = self._state.version.expansion
        self._state.publish(None if before is None else (before, *self._expanded))


@final
class SparkChange:
    """Facts that an update deleted or inserted, in files; they come to the driver when they are read."""

    def __init__(self, facts: FactSet, relations: Mapping[str, Relation], dictionary: Dictionary) -> None:
        self._facts, self._relations, self._dictionary = facts, relations, dictionary

    def count(self, name: str) -> int:
        return self._facts.count(name)

    def batch(self, name: str) -> Batch:
        empty = np.empty((self._relations[name].arity, 0), np.int64)
        return np.concatenate([empty, *facts_of(self._facts, name, self._dictionary)], axis=1)


def _load_changes(state: State, changes: Changed) -> tuple[FactSet, FactSet]:
    """What updates, one after the other, insert and delete in the end: of each fact the last of them decides."""
    inserted, deleted = FactSet("insertions", state.context), FactSet("deletions", state.context)
    for update in changes:
        new, old = (
            _load_facts(state, [change[side] for change in update], what, deleted=side == 1)
            for side, what in ((0, "insertions"), (1, "deletions"))
        )
        if len(changes) == 1:
            return new, old
        inserted.replace((inserted - old) | new)
        deleted.replace((deleted - new) | (old - new))
    return inserted, deleted


def _load_facts(state: State, given: list[Mapping[str, Any]], what: str, *, deleted: bool = False) -> FactSet:
    """A set of facts as users have them."""
    files: dict[str, list[Location]] = {}
    with Scratch(state.cluster.scratch.path) as scratch:
        with collected_errors() as collecting:
            for facts in given:
                for name, rows in facts.items():
                    with collecting(), scratch.writing():
                        stored = partial(_is_stored, state, name) if deleted else None
                        files.setdefault(name, []).extend(_written(name, rows, state.program, scratch, stored))
        return load_files(state.context, state.program.relations, files, what)


def _is_stored(state: State, name: str, fact: Row) -> bool:
    """Whether a relation has an explicit fact; of a few facts that are deleted, this is asked one by one."""
    batch = encode_rows([fact], state.program.relations[name].types, state.dictionary)
    return holds(state.given, name, batch, state.dictionary)


def _written(
    name: str, given: Any, program: Program, scratch: Scratch, stored: Callable[[Row], bool] | None
) -> list[Location]:
    """Facts as users have them, in Arrow files; see `encode_given` for those that are `stored`."""
    if isinstance(given, Once):
        given = given.given
    if is_part(given):
        given = ConcatenatedFacts([given])
    if isinstance(given, ConcatenatedFacts):
        return given.written(scratch.folder(name))
    relation = relation_of(name, program)
    if is_dataframe(given):
        return list(frame_files(given, relation, scratch, f"the facts for `{name}`").files)
    if is_arriving(given) and relation.columns:
        return written_facts(arriving_tables(name, given, relation, program, stored), scratch.folder(name))
    table = table_of(name, given, program, stored)
    if not table.num_rows:
        return []
    file = scratch.folder(name) / "given.arrow"
    write_facts(table, file)
    return [file]
