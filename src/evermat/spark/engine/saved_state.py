"""Saves a state on a cluster as rows of a state directory, and restores it from data files.

The driver holds neither a relation nor a bucket: see `state_rows` for what becomes of descriptions of facts; and tasks read the data files of
a state directory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from evermat.algebra import Counters
from evermat.engine import Difference, WritableRows
from evermat.language import Program
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.fact_sets import CountedFacts, FactSet
from evermat.spark.engine.job_runner import total_rows
from evermat.spark.engine.saved import Described, Restored, Stored, restore
from evermat.spark.engine.state import State
from evermat.spark.engine.state_rows import described_rows
from evermat.spark.engine.tasks.serialization import Shape
from evermat.spark.engine.tasks.set_expressions import Counted, Expression, combined, files_of
from evermat.spark.engine.update import Update
from evermat.store import NONRECURSIVE, RECURSIVE, VersionReader, stored_columns

_NEEDED = {NONRECURSIVE: Counters.NONRECURSIVE, RECURSIVE: Counters.MODULAR}  # the counters that have these counts

Rows = Mapping[str, WritableRows]


def all_rows(state: State, wanted: Mapping[str, Counters]) -> Rows:
    """All facts of some relations."""
    whole = {name: _described(state, name, kept, inserted=_facts(state, name)) for name, kept in wanted.items()}
    return described_rows(state.context, whole)


def changed_rows(update: Update, result: tuple[FactSet, FactSet], wanted: Mapping[str, Counters]) -> Rows:
    """The changes of some relations by an update: facts deleted and inserted, and those whose origin or counters change."""
    changes = {name: _changed(update, name, result, counters) for name, counters in wanted.items()}
    return described_rows(update.state.context, changes)


def difference(
    state: State, store: VersionReader, before: Program, dropped: Collection[str], wanted: Mapping[str, Counters]
) -> Difference:
    """The changes that turn the facts of the newest version, which has the program `before`, into those of a state.

    The state's program has no `dropped` relations, or other ones of the same name.
    """
    shapes = {
        name: Shape.of(relation.types) if name in dropped else state.context.shapes[name]
        for name, relation in before.relations.items()
    }
    old = _restored(store, store.latest.number, before, shapes, state.context, {})
    described = {}
    for name, kept in wanted.items():
        files = files_of(old[name].materialised if name in old and name not in dropped else [])
        now = _facts(state, name)
        deleted, inserted = combined("-", files, now), combined("-", now, files)
        unchanged = combined("&", now, files)
        described[name] = _described(state, name, kept, deleted=deleted, inserted=inserted, unchanged=unchanged)
    visible = {name: one for name, one in described.items() if not one.relation.hidden}
    count_inserted = _count(state.context, {name: one.inserted for name, one in visible.items()})
    count_deleted = _count(state.context, {name: one.deleted for name, one in visible.items()})
    for name in dropped:
        relation, found = before.relations[name], old[name]
        if not relation.hidden:
            count_deleted += total_rows(found.materialised)
            if name not in state.program.relations:
                deleted, explicit = files_of(found.materialised), files_of(found.explicit)
                described[name] = Described(relation, shapes[name], deleted=deleted, explicit=explicit)
    return Difference(described_rows(state.context, described), count_inserted, count_deleted)


def _count(context: EngineContext, expressions: Mapping[str, Expression | None]) -> int:
    found = context.evaluate("count changes", expressions, write=False)
    return sum(one.rows for one in found.values())


def restore_state(state: State, store: VersionReader, number: int, counters: Mapping[str, Counters]) -> None:
    """Fills an empty state with the facts of a version and the wanted counters."""
    restored = _restored(store, number, state.program, state.context.shapes, state.context, counters)
    for name, found in restored.items():
        state.given.append(name, found.explicit)
        state.materialised.append(name, found.materialised)
        if found.nonrecursive:
            state.nonrecursive_counter.append(name, found.nonrecursive)
        if found.recursive:
            state.recursive_counter.append(name, found.recursive)
    if state.representatives is not None:
        state.representatives.take_over(state, stored=True)


def _restored(
    store: VersionReader,
    number: int,
    program: Program,
    shapes: Mapping[str, Shape],
    context: EngineContext,
    counters: Mapping[str, Counters],
) -> dict[str, Restored]:
    """The facts of all relations of a version, and the wanted counters."""
    wanted = [
        _stored(store, number, program, name, shapes[name], counters.get(name, Counters.NONE))
        for name in program.relations
    ]
    return dict(zip(program.relations, restore(context, wanted), strict=True))


def _stored(
    store: VersionReader,
    number: int,
    program: Program,
    name: str,
    shape: Shape,
    counters: Counters = Counters.NONE,
) -> Stored:
    """A relation in a version of a state directory."""
    folder, files = store.parts(number, name)
    counted = tuple(column for column, needed in _NEEDED.items() if counters >= needed)
    columns = stored_columns(store.schema(number, name))
    return Stored(program.relations[name], shape, columns, folder, number, tuple(files), counted)


def _facts(state: State, name: str) -> Expression | None:
    """The facts to save: those of I, and where equal terms have a representative, also explicit facts over other terms."""
    facts = state.materialised.expression(name)
    return facts if state.explicit is state.given else combined("|", facts, state.given.expression(name))


def _described(
    state: State,
    name: str,
    counters: Counters,
    *,
    deleted: Expression | None = None,
    inserted: Expression | None = None,
    unchanged: Expression | None = None,
) -> Described:
    """Some facts of a relation with their current origin and counts."""
    relation, shape = state.program.relations[name], state.context.shapes[name]
    counts = _sums(name, counters, (state.nonrecursive_counter, state.recursive_counter))
    return Described(relation, shape, deleted, inserted, unchanged, state.given.expression(name), counts)


def _sums(name: str, counters: Counters, *pairs: tuple[CountedFacts, CountedFacts]) -> dict[str, Counted]:
    """The counts of a relation that are kept, by column, summed over pairs of a nonrecursive and a recursive counter."""
    return {
        column: Counted(tuple(file for counter in summed for file in counter.files.get(name, ())))
        for (column, needed), summed in zip(_NEEDED.items(), zip(*pairs, strict=True), strict=True)
        if counters >= needed
    }


def _changed(update: Update, name: str, result: tuple[FactSet, FactSet], counters: Counters) -> Described:
    state = update.state
    deleted, inserted = (facts.expression(name) for facts in result)
    retracted, asserted = update.given_deleted.expression(name), update.given_inserted.expression(name)
    explicit = combined("|", combined("-", state.given.expression(name), retracted), asserted)
    before, facts = _facts(state, name), combined("-", state.materialised.expression(name), deleted)
    touched = combined("|", retracted, asserted)
    if state.explicit is not state.given:
        # A deleted fact may still be explicit over these terms; and one that is no longer explicit may hold.
        touched = combined("|", touched, combined("|", deleted, inserted))
        facts = combined("|", combined("|", facts, inserted), explicit)
        deleted, inserted = combined("-", touched, facts), combined("-", combined("&", touched, facts), before)
        facts = combined("&", before, facts)
    changes = (update.nonrecursive_counter.changes, update.recursive_counter.changes)
    if counters > Counters.NONE:
        # A fact may be in several files of amounts: that does no harm where facts are held.
        counted = [file for change in changes for file in change.files.get(name, ())]
        touched = combined("|", touched, files_of(counted))
    unchanged = combined("&", touched, facts)
    counts = _sums(name, counters, (state.nonrecursive_counter, state.recursive_counter), changes)
    relation, shape = state.program.relations[name], state.context.shapes[name]
    return Described(relation, shape, deleted, inserted, unchanged, explicit, counts)
