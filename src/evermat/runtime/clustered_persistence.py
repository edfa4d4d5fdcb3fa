"""A materialisation on a cluster in a state directory. It is the state that the in-memory engine writes and reads (see `durable`).

The driver holds neither a relation nor a bucket: tasks describe facts in files, which the driver reads a piece at a time and hands to the
store; and tasks read the files of a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.algebra import Counters
from evermat.core import StateError
from evermat.engine.run import Run
from evermat.language import Program, Stratum, Type
from evermat.runtime.persistence import (
    Keeper,
    check_stored,
    entry_of,
    program_of,
    replaced,
    schemas,
    stored_counters,
    stored_numbers,
    stored_rows,
    visible,
)
from evermat.spark.engine.fact_sets import CountedFacts, FactSet
from evermat.spark.engine.job_runner import Cluster
from evermat.spark.engine.saved import EXPLICIT, Described, Restored, Stored, StoredFile, describe, restore
from evermat.spark.engine.state import State, Workshop
from evermat.spark.engine.tasks.serialization import FactFile, Shape
from evermat.spark.engine.tasks.set_expressions import Counted, Expression, Files, combined
from evermat.spark.engine.update import Update
from evermat.store import NONRECURSIVE, OP, RECURSIVE, Part, Pieces, Store, stored_columns

_PIECE = 1 << 19  # rows that the driver holds at a time
_TOGETHER = 1 << 23  # facts of small relations that one job describes


class ClusteredKeeper(Keeper):
    """Keeps one materialisation of a cluster in a state directory."""

    def commit(  # type: ignore[override]
        self,
        update: Update,
        result: tuple[FactSet, FactSet],
        valid: Mapping[Stratum, Counters],
        stats: dict[str, Any],
        before: Program,
    ) -> None:
        """Commits an update, on disk and in memory: either both, or neither; see `Keeper.commit`."""
        state = update.state
        saved = self._saved_after(state, valid)
        counters = _by_relation(state.program, saved)
        wanted = {name: _changed(update, name, result, kept) for name, kept in counters.items()}
        update.commit(*result, lambda: self._write(state, _pieces(state.workshop, wanted), saved, stats, before))

    def tidy(self, state: State) -> None:
        """Replaces many files by few; see `Keeper.tidy`. The update is done: its limits hold no more."""
        state.jobs.run = Run()
        super().tidy(state)

    def _snapshots(self, state: State, wanted: Mapping[str, Counters]) -> Mapping[str, Pieces]:
        whole = {name: _described(state, name, counters, come=_facts(state, name)) for name, counters in wanted.items()}
        # Of one without facts the files are replaced too.
        return dict.fromkeys(wanted, ()) | _pieces(state.workshop, whole)

    def _merged(self, state: State, crowded: Mapping[str, tuple[tuple[Part, ...], Counters]]) -> Mapping[str, Pieces]:
        number, wanted = self._store.latest.number, {}
        stored = []
        for name, (parts, _) in crowded.items():
            paths = {part.path for part in parts}
            whole = _stored(self._store, number, state.program, name, state.workshop.shapes[name], every=True)
            some = tuple(file for file in whole.files if file.path in paths)
            stored.append(Stored(whole.relation, whole.shape, whole.columns, some, every=True))
        for (name, (_, counters)), found in zip(crowded.items(), restore(state.workshop, stored), strict=True):
            told, facts = _files(found.materialised), _facts(state, name)
            come, gone = combined("&", told, facts), combined("-", told, facts)
            wanted[name] = _described(state, name, counters, come=come, gone=gone)
        return _pieces(state.workshop, wanted)


# --- opening -------------------------------------------------------------------------------------------------


def open_state(
    path: Path, number: int | None, cluster: Cluster, *, write: bool
) -> tuple[State, ClusteredKeeper, dict[str, Any]]:
    """The facts of a version of a state, in buckets; see `durable.open_state`."""
    store = Store.open(path)
    try:
        if write:
            store.lock()
            store.refresh()
        version = store.latest if number is None else store.version(number)
        program = program_of(store, version.number)
        state = State(program, Run(), cluster)
        kept = stored_counters(store, version.number, program)
        counters = _by_relation(program, {stratum: valid for stratum, (valid, _) in kept.items()})
        for name, found in _restored(
            store, version.number, program, state.workshop.shapes, state.workshop, counters
        ).items():
            state.given.append(name, found.explicit)
            state.materialised.append(name, found.materialised)
            for counter, files in (
                (state.nonrecursive_counter, found.nonrecursive),
                (state.recursive_counter, found.recursive),
            ):
                if files:
                    counter.append(name, files)
        if state.representatives is not None:
            state.representatives.take_over(state, stored=True)
        for stratum, (valid, work) in kept.items():
            state.record_counters(stratum, valid)
            state.record_work(stratum, work)
    except BaseException:
        store.close()
        raise
    return state, ClusteredKeeper(store, version.number, dict(state.counters)), version.stats


def _restored(
    store: Store,
    number: int,
    program: Program,
    shapes: Mapping[str, Shape],
    workshop: Workshop,
    counters: Mapping[str, Counters],
) -> dict[str, Restored]:
    """The facts of all relations of a version, and those of the counters that are wanted."""

    def stored() -> list[Stored]:
        return [
            _stored(store, number, program, name, shapes[name], counters.get(name, Counters.NONE))
            for name in program.relations
        ]

    wanted = stored()
    while True:
        try:
            return dict(zip(program.relations, restore(workshop, wanted), strict=True))
        except StateError:
            before, wanted = wanted, stored()  # files that a vacuum has removed have others in their place now
            if [one.files for one in before] == [one.files for one in wanted]:
                raise


def _stored(
    store: Store,
    number: int,
    program: Program,
    name: str,
    shape: Shape,
    counters: Counters = Counters.NONE,
    *,
    every: bool = False,
) -> Stored:
    """A relation in a version of a state."""
    check_stored(store, number, name)
    files = [
        StoredFile(str(file.parent.parent), f"{file.parent.name}/{file.name}", file.stat().st_size, version)
        for version, files in store.files(number, name)
        for file in files
    ]
    nonrecursive, recursive = counters >= Counters.NONRECURSIVE, counters.recursive
    columns = stored_columns(store.schema(number, name))
    return Stored(program.relations[name], shape, columns, tuple(files), nonrecursive, recursive, every)


# --- saving --------------------------------------------------------------------------------------------------


def save_new(state: State, path: Path, stats: dict[str, Any]) -> ClusteredKeeper:
    """Writes a materialisation as the first version of a new state."""
    store = Store.create(path)
    state.jobs.run = Run()  # no limits of what was done before hold
    try:
        saved = dict(state.counters)
        counters = _by_relation(state.program, saved)
        wanted = {name: _described(state, name, kept, come=_facts(state, name)) for name, kept in counters.items()}
        facts = visible(state)
        entry = entry_of(state, saved, stats, inserted=facts, deleted=0, facts=facts)
        version = store.commit(entry, _pieces(state.workshop, wanted), schemas(state.program))
    except BaseException:
        store.close()
        raise
    return ClusteredKeeper(store, version.number, saved)


def save_over(state: State, path: Path, stats: dict[str, Any]) -> ClusteredKeeper:
    """Writes a materialisation as the next version of a state that there is, whatever that holds: as the difference."""
    store = Store.open(path)
    state.jobs.run = Run()
    try:
        store.lock()
        store.refresh()
        saved = dict(state.counters)
        before = program_of(store, store.latest.number)
        dropped = replaced(before, state.program)
        shapes = {
            name: Shape.of(relation.types) if name in dropped else state.workshop.shapes[name]
            for name, relation in before.relations.items()
        }
        old = _restored(store, store.latest.number, before, shapes, state.workshop, {})
        same = {name: found.materialised for name, found in old.items() if name not in dropped}
        wanted = {
            name: _difference(state, name, kept, same.get(name, []))
            for name, kept in _by_relation(state.program, saved).items()
        }
        counts = _counts(state, wanted)
        for name in dropped:
            relation, found = before.relations[name], old[name]
            if not relation.hidden:
                counts["deleted"] += sum(file.rows for file in found.materialised)
                if name not in state.program.relations:
                    gone, explicit = _files(found.materialised), _files(found.explicit)
                    wanted[name] = Described(relation, shapes[name], gone=gone, explicit=explicit)
        entry = entry_of(state, saved, stats, **counts, facts=visible(state))
        version = store.commit(entry, _pieces(state.workshop, wanted), schemas(state.program), dropped)
    except BaseException:
        store.close()
        raise
    keeper = ClusteredKeeper(store, version.number, saved)
    keeper.tidy(state)
    return keeper


def _difference(state: State, name: str, counters: Counters, old: Sequence[FactFile]) -> Described:
    """What turns the facts of a relation in an old state into those of a new one."""
    before, now = _files(old), _facts(state, name)
    return _described(
        state,
        name,
        counters,
        gone=combined("-", before, now),
        come=combined("-", now, before),
        same=combined("&", now, before),
    )


def _counts(state: State, wanted: Mapping[str, Described]) -> dict[str, int]:
    """How many facts come and go, of relations of the program's text."""
    counts = {}
    for what, expressions in (
        ("inserted", {name: one.come for name, one in wanted.items() if not one.relation.hidden}),
        ("deleted", {name: one.gone for name, one in wanted.items() if not one.relation.hidden}),
    ):
        found = state.workshop.evaluate("count what changes", expressions, write=False)
        counts[what] = sum(one.rows for one in found.values())
    return counts


# --- what is written -----------------------------------------------------------------------------------------


def _by_relation(program: Program, counters: Mapping[Stratum, Counters]) -> dict[str, Counters]:
    """The counters of the stratum of each relation, in the order in which relations are written."""
    found = {name: kept for stratum, kept in counters.items() for name in stratum.relations}
    return {name: found[name] for name in program.relations}


def _facts(state: State, name: str) -> Expression | None:
    """What is stored: the facts, and where equal terms are represented by one, also what was given under other names."""
    facts = state.materialised.expression(name)
    return facts if state.explicit is state.given else combined("|", facts, state.given.expression(name))


def _files(files: Sequence[FactFile]) -> Expression | None:
    return Files(tuple(files)) if files else None


def _described(
    state: State,
    name: str,
    counters: Counters,
    *,
    gone: Expression | None = None,
    come: Expression | None = None,
    same: Expression | None = None,
) -> Described:
    """What there is to tell of some facts of a relation, as things are."""
    nonrecursive, recursive = (
        Counted(counter.files.get(name, ())) if counters >= needed else None
        for needed, counter in (
            (Counters.NONRECURSIVE, state.nonrecursive_counter),
            (Counters.MODULAR, state.recursive_counter),
        )
    )
    relation, shape = state.program.relations[name], state.workshop.shapes[name]
    return Described(relation, shape, gone, come, same, state.given.expression(name), nonrecursive, recursive)


def _changed(update: Update, name: str, result: tuple[FactSet, FactSet], counters: Counters) -> Described:
    """What an update changes of a relation: facts lost and gained, and those whose origin or counters changed."""
    state = update.state
    gone, come = (facts.expression(name) for facts in result)
    deleted, inserted = update.given_deleted.expression(name), update.given_inserted.expression(name)
    explicit = combined("|", combined("-", state.given.expression(name), deleted), inserted)
    before, facts = _facts(state, name), combined("-", state.materialised.expression(name), gone)
    touched = combined("|", deleted, inserted)
    if state.explicit is not state.given:
        # A fact that goes may still be given under this name; and one that is given no more may hold.
        touched = combined("|", touched, combined("|", gone, come))
        facts = combined("|", combined("|", facts, come), explicit)
        gone, come = combined("-", touched, facts), combined("-", combined("&", touched, facts), before)
        facts = combined("&", before, facts)
    changes = (update.nonrecursive_counter.changes, update.recursive_counter.changes)
    if counters > Counters.NONE:
        # A fact may be in several files of amounts: that does no harm where facts are held.
        counted = [file for change in changes for file in change.files.get(name, ())]
        touched = combined("|", touched, _files(counted))
    same = combined("&", touched, facts)

    def sums(counter: CountedFacts, change: CountedFacts) -> Counted:
        return Counted((*counter.files.get(name, ()), *change.files.get(name, ())))

    nonrecursive = sums(state.nonrecursive_counter, changes[0]) if counters >= Counters.NONRECURSIVE else None
    recursive = sums(state.recursive_counter, changes[1]) if counters.recursive else None
    relation, shape = state.program.relations[name], state.workshop.shapes[name]
    return Described(relation, shape, gone, come, same, explicit, nonrecursive, recursive)


def _pieces(workshop: Workshop, described: Mapping[str, Described]) -> dict[str, Pieces]:
    """Rows as they are stored, by relation; the jobs that describe them run when somebody asks for rows."""
    wanted = {name: one for name, one in described.items() if one.most}
    portions = describe(workshop, list(wanted.values()), _TOGETHER)
    waiting: dict[str, list[FactFile]] = {}
    ahead = iter(wanted)

    def rows(name: str) -> Iterator[pa.Table]:
        while name not in waiting:
            # Described in the order of `wanted`, which is mostly the one in which they are asked for.
            waiting.update((next(ahead), files) for files in next(portions))
        for file in waiting.pop(name):
            yield from _rows(file, wanted[name])

    return {name: rows(name) for name in wanted}


def _rows(file: FactFile, described: Described) -> Iterator[pa.Table]:
    """The rows of a file that tells of facts, a piece at a time."""
    relation = described.relation
    texts = [f"c{position}" for position, is_text in enumerate(described.shape.texts) if is_text]
    with pq.ParquetFile(file.path, read_dictionary=texts) as stored:
        for piece in stored.iter_batches(_PIECE):
            facts = [_stored_column(piece.column(i), type_) for i, type_ in enumerate(relation.types)]
            explicit = piece.column(EXPLICIT).to_numpy(zero_copy_only=False)
            counts = {
                name: piece.column(name).to_numpy() for name in (NONRECURSIVE, RECURSIVE) if name in piece.schema.names
            }
            yield stored_rows(relation, facts, piece.column(OP).to_numpy(), explicit, counts)


def _stored_column(column: pa.Array, type_: Type) -> pa.Array:
    return column if type_ in Type.SYMBOL | Type.TERM else stored_numbers(column.to_numpy(), type_)
