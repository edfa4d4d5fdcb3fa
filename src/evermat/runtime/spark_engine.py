"""A program's consequences on a cluster: what `Program.materialise` hands back where facts do not fit one machine.

It is a materialisation like any other; its facts are in files that tasks read and write, and come to the driver only if somebody asks to
see them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evermat.api.materialisation import Materialisation
from evermat.columns.equality.expansion import expand
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.encoding import decode_rows, encode_rows
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import Batch, Table
from evermat.core import DataError, PhaseTimer, Problem, held_back
from evermat.engine.run import Limits, Run
from evermat.language import EQUALITY_CLASSES, Program, Query, Relation, Stratum, normal_rule, rewritten_columns
from evermat.reasoning.maintain import check_algorithm, kept_counters
from evermat.reasoning.materialise import AUTO, MODULAR, SEMINAIVE
from evermat.runtime.change import Change, ChangedFacts, Changes
from evermat.runtime.constraints import forbidden_relations, refuse
from evermat.runtime.ingest import is_dataframe, relation_of, suits, table_of
from evermat.runtime.query import Answer, Queries
from evermat.runtime.rdf_export import ALL, ASSERTED, INFERRED
from evermat.runtime.rows import Tabular
from evermat.runtime.stream import Once
from evermat.runtime.update import Ahead, Changed, maintain_all, update_stats
from evermat.spark.dataframes import frame_files
from evermat.spark.engine.equality_state import Representatives
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.job_runner import Cluster, default_buckets
from evermat.spark.engine.rules import Rules
from evermat.spark.engine.scan import facts_of, frame_of, holds
from evermat.spark.engine.state import State
from evermat.spark.engine.tasks.serialization import Shape
from evermat.spark.engine.transfer import load
from evermat.spark.engine.update import Update
from evermat.spark.input.arrow_files import Several
from evermat.spark.input.read_task import write_facts
from evermat.spark.scratch import Scratch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evermat.runtime.clustered_persistence import ClusteredKeeper


# Places of strata: graphs in the driver, expanded by tasks; components over DataFrames.
CLOSURE, STARS = "closure", "stars"


class ClusteredMaterialisation(Materialisation):
    """All consequences of a program and its explicit facts, in files of a cluster. `close` removes them."""

    _state: Any  # a state of the cluster

    def __init__(
        self,
        program: Program,
        state: State,
        run: Run,
        phases: PhaseTimer,
        places: Mapping[Stratum, tuple[str, str]],
        resources: ExitStack,
        keeper: ClusteredKeeper | None = None,
        algorithm: str = AUTO,
    ) -> None:
        super().__init__(program, state, run, phases, keeper, "spark", algorithm)  # type: ignore[arg-type]
        self._places, self._resources = places, resources
        self._dictionary = state.dictionary  # of facts that somebody has asked to see

    @property
    def on_cluster(self) -> bool:
        return True

    def __getitem__(self, name: str) -> ClusteredFacts:  # type: ignore[override]
        relation = self._program.relations.get(name)
        if relation is None or relation.hidden:
            raise KeyError(name)
        return ClusteredFacts(relation, self._state.materialised, self._dictionary, self._state.representatives)

    def _carry_out(
        self,
        program: Program,
        state: Any,
        changes: Changed,
        algorithm: str,
        run: Run,
        kept: Any = None,
        ahead: Ahead | None = None,
    ) -> Change:
        keeper: Any = self._keeper
        return update_state(program, state, changes, algorithm, run, kept=kept, keeper=keeper, ahead=ahead)

    def _revised(self, program: Program, run: Run) -> Any:
        return State(program, run, self._state.cluster, kept=self._state)

    @property
    def _rdf_dictionary(self) -> Dictionary:
        return self._dictionary

    def _batches(self, name: str, which: str, *, named: bool = True) -> Iterator[Batch]:
        state: State = self._state
        explicit, materialised, names = state.explicit, state.materialised, state.representatives
        if names is not None and named:
            if which == ALL:
                return names.expanded(facts_of(materialised, name, self._dictionary), name)
            explicit = state.given
            if which == INFERRED and name in names.schema.columns:
                return facts_of(names.all_names(materialised, [name], materialised) - explicit, name, self._dictionary)
        view = {ALL: materialised, ASSERTED: explicit, INFERRED: materialised - explicit}[which]
        return facts_of(view, name, self._dictionary)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes all facts to a state directory; see `Materialisation.save`. The driver holds a few of them at a time."""
        from evermat.runtime.clustered_persistence import save_new, save_over  # noqa: PLC0415

        place = Path(path)
        if self._keeper is not None and os.path.realpath(place) == os.path.realpath(self._keeper.path):
            self._keeper.become_writer()  # every update is there already
            return
        is_state = place.is_dir() and any(place.iterdir())
        keeper = (save_over if is_state else save_new)(self._state, place, self.stats)
        super().close()  # lets go of the state that it had, but not of the files
        self._keeper = keeper

    def query(
        self,
        text: str,
        *,
        representatives: bool = False,
        limit_seconds: float | None = None,
        memory: int | None = None,
    ) -> Answer:
        """Answers a query; see `Materialisation.query`. The answer comes to the driver."""
        if self._queries is None or self._queries.program is not self._program:
            self._queries = Queries(self._program)
        query = self._queries.compile(text)
        self._state.jobs.run = Run(Limits(seconds=limit_seconds, memory=memory))
        return _evaluate(query, self._state, self._state.materialised, representatives=representatives)

    def refuse_forbidden(self) -> None:
        """Raises `DataError` if there are facts that the program forbids."""
        materialised = self._state.materialised
        _refuse_forbidden(self._state, materialised, materialised)

    @property
    def stats(self) -> dict[str, Any]:
        """What was done and what it took; here also the number of jobs, and the facts and bytes that went from task to task."""
        found = super().stats
        if self._opened is None:
            workshop = self._state.workshop
            found |= {"jobs": workshop.cluster.jobs, "sent_facts": workshop.sent, "sent_bytes": workshop.sent_bytes}
        return found

    def _schemes(self) -> dict[str, Any]:
        """On a cluster every fact is in a file."""
        return {}

    def _place(self, stratum: Stratum) -> tuple[str, str]:
        return self._places.get(stratum, ("rounds", "materialisation from scratch"))

    def _algorithm_of(self, stratum: Any) -> str:
        place, _ = self._place(stratum.stratum)
        if place == "driver":
            return super()._algorithm_of(stratum)
        return MODULAR if CLOSURE in place or STARS in place else SEMINAIVE

    def _undefined(self) -> Counter[int]:
        return Counter(self._state.workshop.undefined)

    def close(self) -> None:
        """Removes all files of the facts, which are gone then, and lets go of the state directory."""
        super().close()
        self._resources.close()


class ClusteredFacts(Tabular):
    """The facts of one relation, explicit and derived, in all names if any are known. Iteration is in no particular order, and reads a bucket at a time."""

    def __init__(
        self,
        relation: Relation,
        materialised: FactSet,
        dictionary: Dictionary,
        names: Representatives | None = None,
    ) -> None:
        super().__init__(relation, Table(relation.arity), dictionary)
        self._materialised = materialised
        self._names = names if names is not None and relation.name in names.schema.columns else None

    @property
    def representatives(self) -> ClusteredFacts:
        """The facts over representatives only: of terms that are equal, one stands for all."""
        return ClusteredFacts(self._relation, self._materialised, self._dictionary)

    def _selection(self) -> Selection:
        raise AssertionError("these facts are in files")

    def _chunks(self) -> Iterator[Batch]:
        facts = facts_of(self._materialised, self._relation.name, self._dictionary)
        return facts if self._names is None else self._names.expanded(facts, self._relation.name)

    def __len__(self) -> int:
        name = self._relation.name
        return self._materialised.count(name) if self._names is None else self._names.count(self._materialised, name)

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, tuple) or not suits(row, self._relation):
            return False
        fact = encode_rows([row], self._relation.types, self._dictionary)
        if self._names is not None:
            self._names.renaming.rename(fact, self._names.schema.columns[self._relation.name])
        return holds(self._materialised, self._relation.name, fact, self._dictionary)

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """A DataFrame of the caller's SparkSession, over the files as they are now: nothing comes to the driver."""
        if self._names is None:
            return frame_of(self._materialised, self._relation, spark)
        columns = self._names.schema.columns[self._relation.name].tolist()
        classes = self._materialised.expression(EQUALITY_CLASSES.name)
        return frame_of(self._materialised, self._relation, spark, columns, classes)

    def _title(self) -> str:
        return f"{self._relation.name}: {len(self):,} facts"

    def __repr__(self) -> str:
        return f"<Facts {self._relation.name}({', '.join(self.columns)}): {len(self):,}>"


class ClusteredChanges(Changes):
    """Facts that came, or went, in files; they come to the driver when somebody asks for them."""

    def __init__(self, relations: Mapping[str, Relation], facts: FactSet, dictionary: Dictionary) -> None:
        super().__init__(relations, {}, dictionary)
        self._facts = facts

    def codes(self, name: str) -> set[tuple[int, ...]]:
        return set(map(tuple, self._batch(name).T.tolist()))

    def __getitem__(self, name: str) -> ChangedFacts:
        return ChangedFacts(self._relations[name], self._batch(name), self._dictionary)

    def _batch(self, name: str) -> Batch:
        empty = np.empty((self._relations[name].arity, 0), np.int64)
        return np.concatenate([empty, *facts_of(self._facts, name, self._dictionary)], axis=1)

    @property
    def total(self) -> int:
        return sum(self._facts.count(name) for name in self._relations)


def update_state(
    program: Program,
    state: State,
    changes: Changed,
    algorithm: str,
    run: Run,
    *,
    kept: State | None = None,
    keeper: ClusteredKeeper | None = None,
    ahead: Ahead | None = None,
) -> Change:
    """Carries out one update, whole or not at all; see the in-memory engine."""
    check_algorithm(algorithm, program.strata)
    phases = PhaseTimer()
    state.jobs.run = run
    with phases.during("encode"):
        coming, going = _load_changes(program, state, changes)
        deleted_next = _deleted_next(program, state, ahead)
        names = state.representatives
        if names is not None:
            # Other rules may ask for names that none has asked for before.
            coming.add(names.names_of(coming) if kept is None else names.names_of(state.given | coming, program.rules))
    with held_back() as run.deliver, Update(state, run, going, coming) as update:
        with phases.during("reason"):
            choices = maintain_all(update, algorithm, state, kept, ahead, deleted_next)
            lost, gained = update.result()
            _refuse_forbidden(state, update.after, gained)
            gone, come = (lost, gained) if names is None else names.named_change(update, lost, gained)
        explicit = {"inserted": update.given_inserted.size, "deleted": update.given_deleted.size}
        inserted, deleted = (ClusteredChanges(program.relations, v, state.dictionary) for v in (come, gone))
        valid = kept_counters(state, choices)
        stats: dict[str, Any] = {"engine": "spark", "algorithm": algorithm}
        stats |= update_stats(program, choices, valid, "rounds", phases, run)
        stats |= {**update.figures, "explicit": explicit, "inserted": inserted.total, "deleted": deleted.total}
        if ahead is not None:
            stats["marking"] = ahead.told
        with phases.during("write"):
            if keeper is None:
                update.commit(lost, gained)
            else:
                keeper.commit(update, (lost, gained), valid, stats, (kept or state).program)
        for stratum, counters in valid.items():
            state.record_counters(stratum, counters)
        if names is not None:
            names.committed(gone, come)
    return Change(inserted, deleted, stats)


def _evaluate(query: Query, state: State, facts: View, *, representatives: bool = False) -> Answer:
    """The answer to a query over some facts of a state, in all names or over representatives only; see the in-memory engine."""
    names, rules = state.representatives, query.rules
    if names is not None and query.about_names:
        facts = names.all_names(facts, query.reads, state.materialised)
    elif names is not None:
        rules = tuple(normal_rule(rule, names.renaming.normal) for rule in rules)
    known, state.workshop.undefined = state.workshop.undefined, Counter()  # what a query drops is its own business
    made = FactSet("an answer", state.workshop)
    for name, relation in query.relations.items():
        state.workshop.shapes[name] = Shape.of(relation.types)
    try:
        for rule in rules:  # in an order in which all that a rule reads is complete
            made.add(Rules([rule], frozenset(), state.workshop).consequences(facts | made))
    finally:
        undefined, state.workshop.undefined = sum(state.workshop.undefined.values()), known
    table = Table(query.answer.arity)
    columns = np.array(rewritten_columns(query.answer), np.int64)
    for batch in facts_of(made, query.answer.name, state.dictionary):
        if names is None or representatives != query.about_names:
            table.add_new(batch, 0)
        elif representatives:
            names.renaming.rename(batch, columns)
            table.add_new(batch, 0)
        else:
            for part in expand(batch, columns, names.renaming):
                table.add_new(part, 0)
    return Answer(query.answer, table, state.dictionary, undefined)


def _refuse_forbidden(state: State, facts: View, new: FactSet) -> None:
    """Raises `DataError` if there are forbidden facts among new ones; `facts` are all that there are then."""
    found = {}
    for name in forbidden_relations(state.program):
        if new.count(name):
            types = state.program.relations[name].types
            batches = facts_of(new, name, state.dictionary)
            found[name] = [row for batch in batches for row in decode_rows(batch, types, state.dictionary)]
    refuse(state.program, found, lambda query: _evaluate(query, state, facts))


def open_clustered(
    path: Path,
    version: int | None,
    spark: SparkSession,
    *,
    write: bool = False,
    scratch: Path | None = None,
    buckets: int | None = None,
) -> ClusteredMaterialisation:
    """The facts of a version of a state directory, on a cluster; nothing is derived.

    Args:
        path: the state directory, which driver and executors share.
        version: which version; the newest if left out.
        spark: the caller's session.
        write: whether nobody else may write from now on.
        scratch: a folder that driver and executors share.
        buckets: how many parts facts are divided into.

    Raises:
        StateError: there is no such state or version, it is damaged, or another writes to it.
        ResourceError: Spark gave up, the scratch folder is full, or executors do not see the state.
    """
    from evermat.runtime.clustered_persistence import open_state  # noqa: PLC0415

    with ExitStack() as stack:
        folder = stack.enter_context(Scratch(scratch))
        cluster = Cluster(spark, folder, buckets or default_buckets(spark))
        stack.callback(cluster.close)
        state, keeper, stats = open_state(path, version, cluster, write=write)
        opened = ClusteredMaterialisation(state.program, state, Run(), PhaseTimer(), {}, stack.pop_all(), keeper)
    opened._opened = stats  # noqa: SLF001
    return opened


def _deleted_next(program: Program, state: State, ahead: Ahead | None) -> FactSet | None:
    """The explicit facts that the next update deletes, if it is there; what is wrong with it is told when its turn comes."""
    if ahead is None or not ahead.changes:
        return None
    try:
        return _load_changes(program, state, ahead.changes)[1]
    except DataError:
        return None


def _load_changes(program: Program, state: State, changes: Changed) -> tuple[FactSet, FactSet]:
    """What comes and goes in the end, of updates one after the other: of each fact the last of them decides."""
    coming, going = FactSet("insertions", state.workshop), FactSet("deletions", state.workshop)
    for update in changes:
        come, gone = (
            load_facts(program, state, [change[side] for change in update], what)
            for side, what in ((0, "insertions"), (1, "deletions"))
        )
        if len(changes) == 1:
            return come, gone
        coming.replace((coming - gone) | come)
        going.replace((going - come) | (gone - come))
    return coming, going


def load_facts(program: Program, state: State, given: list[Mapping[str, Any]], what: str) -> FactSet:
    """A set of facts as users have them."""
    files: dict[str, list[Path]] = {}
    problems: list[Problem] = []
    with Scratch(state.cluster.scratch.path) as scratch:
        for facts in given:
            for name, rows in facts.items():
                try:
                    with scratch.writing():
                        files.setdefault(name, []).extend(_written(name, rows, program, scratch))
                except DataError as error:
                    problems += error.problems
        if problems:
            raise DataError(problems)
        return load(state.workshop, program.relations, files, what)


def _written(name: str, given: Any, program: Program, scratch: Scratch) -> list[Path]:
    """Given facts in Arrow files."""
    if isinstance(given, Once):
        given = given.given
    if isinstance(given, Several):
        return given.written(scratch.folder(name))
    relation = relation_of(name, program)
    if is_dataframe(given):
        return list(frame_files(given, relation, scratch, f"the facts for `{name}`").files)
    table = table_of(name, given, program)
    if not table.num_rows:
        return []
    file = scratch.folder(name) / "given.arrow"
    write_facts(table, file)
    return [file]
