"""A state on a cluster in a state directory: its facts as saved rows, and a state from data files again.

The driver holds neither a relation nor a bucket: tasks describe facts in files, which the driver reads a piece at a time; and tasks read the
data files of a state directory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.algebra import Counters
from evermat.columns import saved_numbers
from evermat.core import StateError
from evermat.engine import Difference, SavedRows, saved_rows
from evermat.language import Program, Type
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.fact_sets import CountedFacts, FactSet
from evermat.spark.engine.saved import EXPLICIT, Described, Restored, Stored, StoredFile, describe, restore
from evermat.spark.engine.state import State
from evermat.spark.engine.tasks.serialization import FactFile, Shape
from evermat.spark.engine.tasks.set_expressions import Counted, Expression, Files, combined
from evermat.spark.engine.update import Update
from evermat.store import NONRECURSIVE, OP, RECURSIVE, Part, VersionReader, stored_columns

_PIECE = 1 << 19  # rows that the driver holds at a time
_TOGETHER = 1 << 23  # facts of small relations that one job describes
_KINDS = {NONRECURSIVE: saved_rows.NONRECURSIVE, RECURSIVE: saved_rows.RECURSIVE}

Rows = dict[str, Iterator[SavedRows]]


def all_rows(state: State, wanted: Mapping[str, Counters]) -> Rows:
    """All facts of some relations."""
    whole = {name: _described(state, name, counters, come=_facts(state, name)) for name, counters in wanted.items()}
    return _pieces(state.context, whole)


def changed_rows(update: Update, result: tuple[FactSet, FactSet], wanted: Mapping[str, Counters]) -> Rows:
    """What an update changes of some relations: facts deleted and inserted, and those whose origin or counters change."""
    changes = {name: _changed(update, name, result, counters) for name, counters in wanted.items()}
    return _pieces(update.state.context, changes)


def current_rows(
    state: State, store: VersionReader, parts: Mapping[str, Sequence[Part]], wanted: Mapping[str, Counters]
) -> Rows:
    """What there is to say now about all facts in some data files of the newest version."""
    number, stored = store.latest.number, []
    for name in parts:
        paths = {part.path for part in parts[name]}
        whole = _stored(store, number, state.program, name, state.context.shapes[name], every=True)
        some = tuple(file for file in whole.files if file.path in paths)
        stored.append(Stored(whole.relation, whole.shape, whole.columns, some, every=True))
    told = {}
    for name, found in zip(parts, restore(state.context, stored), strict=True):
        files, facts = _files(found.materialised), _facts(state, name)
        come, gone = combined("&", files, facts), combined("-", files, facts)
        told[name] = _described(state, name, wanted[name], come=come, gone=gone)
    return _pieces(state.context, told)


def difference(
    state: State, store: VersionReader, before: Program, dropped: Collection[str], wanted: Mapping[str, Counters]
) -> Difference:
    """What turns the facts of the newest version, which has the program `before`, into those of a state.

    Of `dropped` relations the state's program has none, or one with other types.
    """
    shapes = {
        name: Shape.of(relation.types) if name in dropped else state.context.shapes[name]
        for name, relation in before.relations.items()
    }
    old = _restored(store, store.latest.number, before, shapes, state.context, {})
    same = {name: found.materialised for name, found in old.items() if name not in dropped}
    told = {name: _difference(state, name, kept, same.get(name, [])) for name, kept in wanted.items()}
    counts = _counts(state, told)
    for name in dropped:
        relation, found = before.relations[name], old[name]
        if not relation.hidden:
            counts["deleted"] += sum(file.rows for file in found.materialised)
            if name not in state.program.relations:
                gone, explicit = _files(found.materialised), _files(found.explicit)
                told[name] = Described(relation, shapes[name], gone=gone, explicit=explicit)
    return Difference(_pieces(state.context, told), **counts)


def restore_state(state: State, store: VersionReader, number: int, counters: Mapping[str, Counters]) -> None:
    """Takes in the facts of a version, and those of its counters that are wanted; the state is empty."""
    restored = _restored(store, number, state.program, state.context.shapes, state.context, counters)
    for name, found in restored.items():
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


def _restored(
    store: VersionReader,
    number: int,
    program: Program,
    shapes: Mapping[str, Shape],
    context: EngineContext,
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
            return dict(zip(program.relations, restore(context, wanted), strict=True))
        except StateError:
            before, wanted = wanted, stored()  # files that a vacuum has removed have others in their place now
            if [one.files for one in before] == [one.files for one in wanted]:
                raise


def _stored(
    store: VersionReader,
    number: int,
    program: Program,
    name: str,
    shape: Shape,
    counters: Counters = Counters.NONE,
    *,
    every: bool = False,
) -> Stored:
    """A relation in a version of a state directory."""
    files = [
        StoredFile(str(file.parent.parent), f"{file.parent.name}/{file.name}", file.stat().st_size, version)
        for version, files in store.files(number, name)
        for file in files
    ]
    nonrecursive, recursive = counters >= Counters.NONRECURSIVE, counters.recursive
    columns = stored_columns(store.schema(number, name))
    return Stored(program.relations[name], shape, columns, tuple(files), nonrecursive, recursive, every)


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


def _counts(state: State, told: Mapping[str, Described]) -> dict[str, int]:
    """How many facts are inserted and deleted, of relations that users see."""
    counts = {}
    for what, expressions in (
        ("inserted", {name: one.come for name, one in told.items() if not one.relation.hidden}),
        ("deleted", {name: one.gone for name, one in told.items() if not one.relation.hidden}),
    ):
        found = state.context.evaluate("count what changes", expressions, write=False)
        counts[what] = sum(one.rows for one in found.values())
    return counts


def _facts(state: State, name: str) -> Expression | None:
    """What is saved: the facts, and where equal terms have a representative, also explicit facts over other terms."""
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
    """What there is to say of some facts of a relation, as things are."""
    nonrecursive, recursive = (
        Counted(counter.files.get(name, ())) if counters >= needed else None
        for needed, counter in (
            (Counters.NONRECURSIVE, state.nonrecursive_counter),
            (Counters.MODULAR, state.recursive_counter),
        )
    )
    relation, shape = state.program.relations[name], state.context.shapes[name]
    return Described(relation, shape, gone, come, same, state.given.expression(name), nonrecursive, recursive)


def _changed(update: Update, name: str, result: tuple[FactSet, FactSet], counters: Counters) -> Described:
    state = update.state
    gone, come = (facts.expression(name) for facts in result)
    deleted, inserted = update.given_deleted.expression(name), update.given_inserted.expression(name)
    explicit = combined("|", combined("-", state.given.expression(name), deleted), inserted)
    before, facts = _facts(state, name), combined("-", state.materialised.expression(name), gone)
    touched = combined("|", deleted, inserted)
    if state.explicit is not state.given:
        # A deleted fact may still be explicit over these terms; and one that is no longer explicit may hold.
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
    relation, shape = state.program.relations[name], state.context.shapes[name]
    return Described(relation, shape, gone, come, same, explicit, nonrecursive, recursive)


def _pieces(context: EngineContext, described: Mapping[str, Described]) -> Rows:
    """Saved rows by relation; the jobs that describe them run when rows are read."""
    wanted = {name: one for name, one in described.items() if one.most}
    portions = describe(context, list(wanted.values()), _TOGETHER)
    waiting: dict[str, list[FactFile]] = {}
    ahead = iter(wanted)

    def rows(name: str) -> Iterator[SavedRows]:
        while name not in waiting:
            # Described in the order of `wanted`, which is mostly the one in which they are read.
            waiting.update((next(ahead), files) for files in next(portions))
        for file in waiting.pop(name):
            yield from _rows(file, wanted[name])

    return {name: rows(name) for name in wanted}


def _rows(file: FactFile, described: Described) -> Iterator[SavedRows]:
    """The rows of a file that describes facts, a piece at a time."""
    texts = [f"c{position}" for position, is_text in enumerate(described.shape.texts) if is_text]
    with pq.ParquetFile(file.path, read_dictionary=texts) as stored:
        for piece in stored.iter_batches(_PIECE):
            facts = [_saved_column(piece.column(i), type_) for i, type_ in enumerate(described.relation.types)]
            explicit = piece.column(EXPLICIT).to_numpy(zero_copy_only=False)
            counts = {
                kind: piece.column(name).to_numpy() for name, kind in _KINDS.items() if name in piece.schema.names
            }
            yield SavedRows(facts, piece.column(OP).to_numpy(), explicit, counts)


def _saved_column(column: pa.Array, type_: Type) -> pa.Array:
    return column if type_ in Type.SYMBOL | Type.TERM else saved_numbers(column.to_numpy(), type_)
