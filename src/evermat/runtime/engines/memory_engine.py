"""The engine that holds its facts in the memory of this process, over columns; see `engine`."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Self, final

from evermat.algebra import Counters
from evermat.columns import (
    Scans,
    Snapshot,
    State,
    View,
    Waste,
    bytes_needed,
    let_go,
    prepare_kernels,
    rebuilt,
)
from evermat.core import (
    EngineName,
    LimitError,
    MaterialiseAlgorithm,
    PhaseTimer,
    SchemePolicy,
    available_bytes,
    collected_errors,
    held_back,
    resident_bytes,
)
from evermat.engine import Difference, Run, SavedRows
from evermat.language import EQUALITY_CLASSES, Program, Relation, Stratum
from evermat.reasoning import algorithm_for, materialise_stratum
from evermat.runtime.engine import Changed, Described, Engine, EngineSnapshot
from evermat.runtime.facts.ingest import encode_facts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evermat.runtime.engines.memory_update import MemoryUpdate
    from evermat.runtime.states.saved_version import SavedVersion


@final
class MemoryEngine(Engine):
    """The facts of a program in the memory of this process."""

    distributed = False
    state: State

    def __init__(
        self,
        state: State,
        run: Run,
        timer: PhaseTimer,
        name: EngineName = "memory",
        algorithm: MaterialiseAlgorithm = "auto",
        waste: Waste | None = None,
    ) -> None:
        super().__init__(state, run, timer, algorithm)
        self.name = name
        self._scans: Scans = Counter()
        self._waste = Waste() if waste is None else waste
        self._undefined: Counter[int] = Counter()  # of rules as they were compiled for earlier states

    @classmethod
    def start(
        cls,
        program: Program,
        run: Run,
        timer: PhaseTimer,
        *,
        name: EngineName = "memory",
        algorithm: MaterialiseAlgorithm = "auto",
        schemes: SchemePolicy = "auto",
    ) -> Self:
        """An empty engine."""
        return cls(State(program, run, schemes=schemes), run, timer, name, algorithm)

    def load(self, facts: Mapping[str, Any]) -> None:
        prepare_kernels(closures=any(stratum.closures for stratum in self.program.strata))
        with collected_errors() as collecting:
            for name in {**facts, **self.program.facts}:
                with collecting():
                    for batch in encode_facts(name, facts.get(name), self.program, self.state.dictionary):
                        self.state.load(name, batch)
        self.state.load_names()

    def materialise(self, counters: Counters) -> MaterialisedPart | None:
        for done, stratum in enumerate(self.run.strata(self.state)):
            left: Any = materialise_stratum(self.state, self.run, stratum, counters, self._algorithm)
            if self.run.outgrown and (left or done + 1 < len(self.state.strata)):
                return MaterialisedPart(done, left)
        return None

    def restore(
        self,
        version: SavedVersion,
        wanted: Collection[str] | None = None,
        undone: Iterable[tuple[str, SavedRows]] = (),
    ) -> None:
        """Takes in the facts and counters of a saved version, of all relations or of those that some need.

        What changes say, by relation, is `undone`: then only which facts there are is right.
        """
        from evermat.columns import saved_facts as saved

        prepare_kernels(closures=any(stratum.closures for stratum in self.program.strata))
        state, stored = self.state, version.stored_by_schemes
        if wanted is not None and self.program.rewriting:
            wanted = {*wanted, EQUALITY_CLASSES.name}
        if wanted is not None:
            wanted = state.needed_for(wanted, stored)
        for name in self.program.relations if wanted is None else wanted:
            saved.restore_relation(state, name, version.rows(name))
        for name, changes in undone:
            saved.undo_rows(state, name, changes)
        state.dictionary.forget_arrow()
        state.count_facts()
        if state.representatives is not None:
            state.representatives.take_over(state)
        copied = {text for rules in version.copied_by_schemes.values() for text in rules}
        state.restore_schemes(stored if wanted is None else stored & set(wanted), copied)
        for stratum, (counters, work) in version.counters.items():
            state.record_counters(stratum, counters)
            state.record_work(stratum, work)

    def follows(self, version: SavedVersion) -> bool:
        stored = self.state.stored_by_schemes or version.stored_by_schemes or version.copied_by_schemes
        return self.state.representatives is None and not stored

    def follow(
        self,
        changes: Sequence[tuple[str, SavedRows]],
        valid: Mapping[Stratum, Counters],
        publishing: AbstractContextManager[None],
    ) -> None:
        from evermat.columns import saved_facts as saved

        for stratum, counters in valid.items():
            self.state.record_counters(stratum, counters)  # fewer are always right, also if this fails
        with self.state.latch.written():
            saved.apply_rows(self.state, Run(), changes, publishing)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.state.version(), self._scans)

    def dataframe(
        self, reading: Snapshot, relation: Relation, spark: SparkSession, *, expanded: bool = True, kept: object = None
    ) -> DataFrame:
        """What is stored compactly here is expanded there, by tasks."""
        del kept
        from evermat.runtime.relation import PinnedFacts
        from evermat.runtime.rows import arrow_table
        from evermat.spark import expanded_frame, to_frame

        table = reading.table(relation.name)
        if table.scheme is not None:
            return expanded_frame(spark, relation, table, reading.dictionary)
        return to_frame(spark, arrow_table(PinnedFacts(relation, reading, expanded=expanded)), relation)

    def close(self) -> None:
        """There are no files."""

    def release_frames(self) -> None:
        """DataFrames have what they show."""

    # --- updates -------------------------------------------------------------------------------------------------------
    def revised(self, program: Program, run: Run) -> Self:
        kept = self.state
        kept.hold()
        with kept.latch.written():
            state = State(program, run, kept=kept)
        return type(self)(state, self.run, self.timer, self.name, self._algorithm, self._waste)

    def begin_update(
        self, changes: Changed, run: Run, *, upcoming: Changed = (), before: Engine | None = None, durable: bool = False
    ) -> MemoryUpdate:
        from evermat.runtime.engines.memory_update import MemoryUpdate

        assert before is None or isinstance(before, MemoryEngine)
        return MemoryUpdate(
            self.state, run, changes, upcoming, None if before is None else before.state, durable=durable
        )

    def reclaim(self, run: Run) -> dict[str, Any] | None:
        state = self.state
        if not self._waste.is_due(state):
            return None
        timer = PhaseTimer()
        before = {"rows": state.stored_rows, "symbols": len(state.dictionary), "bytes": _bytes_of(state)}
        most = available_bytes() if run.limits.memory is None else min(run.limits.memory, available_bytes())
        if resident_bytes() + bytes_needed(state) > most:
            return self._skipped("memory")
        with held_back() as run.deliver, timer.during("reclaim"):
            try:
                if state.representatives is not None and (pending := state.representatives.pending()):
                    pending.settle()  # a change would hold all of the old state
                made = rebuilt(state, run.look)
            except LimitError:
                return self._skipped("limit")
            except MemoryError:
                return self._skipped("memory")
            self._undefined = self.undefined()
            for one in (self.run, run):
                one.leave()  # neither keeps the old state
            self.state = made
            self.__dict__.pop("_rules", None)
            self._waste.begin(made)
            in_cycles = let_go(state)
            del state
            if in_cycles:
                gc.collect()
        after = {"rows": made.stored_rows, "symbols": len(made.dictionary), "bytes": _bytes_of(made)}
        return {**{what: before[what] - after[what] for what in before}, "seconds": timer.wall["reclaim"]}

    def _skipped(self, why: str) -> dict[str, Any]:
        self._waste.postpone()
        return {"skipped": why}

    # --- state directories -------------------------------------------------------------------------------------------
    @property
    def storage(self) -> Mapping[str, Any]:
        state = self.state
        return {"asked": state.schemes, "stored": sorted(state.stored_by_schemes), "copied": state.copied_by_schemes}

    def describe(self, counters: Mapping[str, Counters]) -> Described:
        from evermat.columns import saved_facts as saved

        return {name: [saved.all_rows(self.state, name, kept)] for name, kept in counters.items()}

    def difference(
        self, version: SavedVersion, dropped: Collection[str], counters: Mapping[str, Counters]
    ) -> Difference:
        from evermat.columns import saved_facts as saved

        state, old = self.state, restored(version).state
        by_scheme = {*old.stored_by_schemes, *state.stored_by_schemes}
        rows: dict[str, list[SavedRows]] = {}
        inserted = deleted = 0
        for name, kept in counters.items():
            relation = state.program.relations[name]
            if name in dropped or name not in old.program.relations:
                rows[name] = [saved.all_rows(state, name, kept)]
                inserted += 0 if relation.hidden else state.count_facts_of(name)
                continue
            changed = saved.different_rows(old, state, name, kept)
            rows[name] = [changed]
            if name in by_scheme:  # rows are inputs, not facts
                inserted += sum(facts.num_rows for facts in saved.facts_gained(old, state, name))
                deleted += sum(facts.num_rows for facts in saved.facts_gained(state, old, name))
            elif not relation.hidden:
                inserted += changed.inserted
                deleted += changed.deleted
        for name in dropped:
            if not old.program.relations[name].hidden:
                deleted += old.materialised.count(name)
                if name not in state.program.relations:
                    rows[name] = [saved.deleted_rows(old, name)]
        return Difference(rows, inserted, deleted)

    # --- figures -----------------------------------------------------------------------------------------------------
    def algorithm_of(self, stratum: Stratum) -> str:
        return algorithm_for(self._rules[stratum], self._algorithm)

    def placement_of(self, stratum: Stratum) -> tuple[str, str]:
        del stratum
        return "memory" if self.name == "memory" else "driver", "materialisation from scratch"

    def undefined(self) -> Counter[int]:
        counts = Counter(self._undefined)
        for stratum in self.state.strata:
            for rules in (stratum.nonrecursive, stratum.recursive):
                for rule, count in rules.undefined():
                    counts[rule.span.start] += count
        return counts

    def figures(self, reading: EngineSnapshot) -> dict[str, Any]:
        state = self.state
        return {"schemes": _schemes(state, reading), "stored_bytes": state.nbytes}


class MaterialisedPart(NamedTuple):
    """A materialisation that outgrew the memory: how many strata are complete, and the facts from which the next one has to go on."""

    strata: int
    left: View | None


def _schemes(state: State, reading: EngineSnapshot) -> dict[str, Any]:
    """How relations are stored for which there is a storage scheme."""
    found = {}
    for rules in state.strata:
        for name, made in rules.decisions.items():
            if not state.program.relations[name].hidden:
                table = state.tables[name]
                scheme = table.scheme
                scheme_bytes = 0 if scheme is None else scheme.nbytes
                found[name] = {
                    "scheme": "plain" if scheme is None else scheme.name,
                    "estimated": made.estimated,
                    "facts": reading.count(name),
                    "bytes": table.nbytes + scheme_bytes,
                    "scheme_bytes": scheme_bytes,  # the rest is rows
                    "reason": made.reason,
                }
    return found


def _bytes_of(state: State) -> int:
    return state.nbytes + state.dictionary.nbytes


def restored(
    version: SavedVersion,
    wanted: Collection[str] | None = None,
    undone: Iterable[tuple[str, SavedRows]] = (),
    name: EngineName = "memory",
) -> MemoryEngine:
    """An engine with the facts of a saved version; see `MemoryEngine.restore`."""
    engine = MemoryEngine.start(version.program, Run(), PhaseTimer(), name=name, schemes=version.schemes)
    engine.restore(version, wanted, undone)
    return engine
