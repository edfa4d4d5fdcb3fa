"""A state in a state directory: its facts as saved rows, and a state from saved rows again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
import pyarrow as pa

from evermat.algebra import Counters
from evermat.columns.state.datasets import contains_facts, facts_in
from evermat.columns.state.state import State
from evermat.columns.state.update import Update
from evermat.columns.state.views import Listed, View
from evermat.columns.storage.arrays import Batch, Numbers, Rows
from evermat.columns.storage.counter import Counter as RowCounter
from evermat.columns.storage.encoding import as_typed, encode_columns
from evermat.columns.storage.table import EXPLICIT, MATERIALISED
from evermat.engine import Op, Run, SavedRows, saved_rows
from evermat.language import Relation, Type

#: an `unsigned` in a state directory: no table format has 64 bits without a sign
SAVED_UNSIGNED = pa.decimal128(20, 0)


def all_rows(state: State, name: str, counters: Counters) -> SavedRows:
    """All facts of a relation."""
    return _saved(state, name, _stored(state).rows(name), counters, Op.INSERTED)


def deleted_rows(state: State, name: str) -> SavedRows:
    """All facts of a relation, as deleted ones."""
    return _saved(state, name, state.materialised.rows(name), Counters.NONE, Op.DELETED)


def changed_names(update: Update, result: tuple[Listed, Listed]) -> set[str]:
    """The relations of which `changed_rows` may find changes: there may be thousands that an update does not touch."""
    lists = (*result, update.given_deleted, update.given_inserted)
    return {name for facts in lists for name in facts.names} | update.counted_names


def changed_rows(
    update: Update, name: str, result: tuple[Listed, Listed], counters: Counters, *, whole: bool
) -> SavedRows | None:
    """What an update changes of a relation: facts deleted and inserted, and those whose origin or counters change; None if nothing.

    With `whole`, all facts of the relation after the update.
    """
    state, (deleted, inserted) = update.state, result
    given = (state.given - update.given_deleted) | update.given_inserted
    touched = [facts.rows(name) for facts in (deleted, inserted, update.given_deleted, update.given_inserted)]
    if counters > Counters.NONE:
        touched.append(update.counted(name))
    if whole:
        touched.append(_stored(state).rows(name))
    rows = np.unique(np.concatenate(touched)).astype(np.int32, copy=False)
    explicit = given.mask(name, rows)
    before = _stored(state).mask(name, rows)
    after = ((state.materialised - update.overdeleted) | update.added).mask(name, rows) | explicit
    ops = np.where(before & ~after, Op.DELETED, np.where(whole | (after & ~before), Op.INSERTED, Op.UNCHANGED)).astype(
        np.int8
    )
    kept = before | after
    if not kept.any():
        return None
    return _saved(state, name, rows[kept], counters, ops[kept], explicit[kept])


def different_rows(old: State, state: State, name: str, counters: Counters) -> SavedRows:
    """What turns the facts of a relation in an old state into those of a new one; what the old one has are of the same types."""
    rows, before = _stored(state).rows(name), _stored(old).rows(name)
    found = _located(state, name, _saved(old, name, before, Counters.NONE, Op.INSERTED))
    kept = _stored(state).mask(name, found)
    new = np.setdiff1d(rows, found[kept], assume_unique=True).astype(np.int32, copy=False)
    every = np.concatenate([found, new]).astype(np.int32, copy=False)
    ops = np.r_[np.where(kept, Op.UNCHANGED, Op.DELETED), np.full(len(new), Op.INSERTED)].astype(np.int8)
    return _saved(state, name, every, counters, ops)


def facts_gained(old: State, new: State, name: str) -> Iterator[pa.Table]:
    """The facts of a relation that a state has and another has not, some at a time, however they are stored."""
    relation = new.program.relations[name]
    for batch in facts_in(new.materialised, name):
        columns = _columns(new, relation, batch)
        known = encode_columns(columns, batch.shape[1], relation, old.dictionary)
        facts = pa.table(columns, [column.name for column in relation.columns])
        yield facts.filter(pa.array(~contains_facts(old.materialised, name, known)))


def restore_relation(state: State, name: str, parts: Iterable[tuple[bool, SavedRows]]) -> None:
    """Takes in the rows of a relation: those of a snapshot, which are marked, and then changes, the newest last."""
    table = state.tables[name]
    counters = _counters(state, name)
    for is_snapshot, saved in parts:
        rows = _located(state, name, saved, distinct=is_snapshot)
        deleted = saved.ops == Op.DELETED
        table.clear_bits(rows, EXPLICIT | MATERIALISED)
        table.set_bits(rows[~deleted], MATERIALISED)
        table.set_bits(rows[saved.explicit & ~deleted], EXPLICIT)
        for counter, kind in counters:
            if kind in saved.counts:
                counter.restore(rows, saved.counts[kind])


def apply_rows(
    state: State, run: Run, changes: Sequence[tuple[str, SavedRows]], publishing: AbstractContextManager[None]
) -> None:
    """Takes in changes that another process has saved, in their order, as one update for which nothing has to be derived.

    It is all or nothing; `publishing` is around the step that changes facts and counters. The state has neither equality nor storage schemes,
    and no update has built graphs of its closures.
    """
    rows = [_located(state, name, saved) for name, saved in changes]
    explicit, derived, gone = (dict[str, list[Rows]]() for _ in range(3))
    for name in dict.fromkeys(name for name, _ in changes):
        mine = [(saved, found) for (one, saved), found in zip(changes, rows, strict=True) if one == name]
        last, order = np.unique(np.concatenate([found for _, found in mine])[::-1], return_index=True)
        deleted = np.concatenate([saved.ops == Op.DELETED for saved, _ in mine])[::-1][order]
        given = np.concatenate([saved.explicit for saved, _ in mine])[::-1][order] & ~deleted
        explicit[name], derived[name], gone[name] = [last[given]], [last[~given & ~deleted]], [last[deleted]]
    not_given = {name: [*derived[name], *gone[name]] for name in explicit}
    with Update(state, run, not_given, explicit) as update:
        update.overdeleted.add(Listed(state.tables, gone) & state.materialised)
        kept = {name: [*explicit[name], *derived[name]] for name in explicit}
        update.added.add(Listed(state.tables, kept) - state.materialised)
        result = update.result()
        with publishing:
            update.commit(*result)
            for (name, saved), found in zip(changes, rows, strict=True):
                for counter, kind in _counters(state, name):
                    if kind in saved.counts:
                        counter.restore(found, saved.counts[kind])


def _counters(state: State, name: str) -> tuple[tuple[RowCounter, str], ...]:
    """The derivation counters of a relation, and the names of their columns."""
    return (
        (state.nonrecursive_counter.counters[name], saved_rows.NONRECURSIVE),
        (state.recursive_counter.counters[name], saved_rows.RECURSIVE),
    )


def undo_rows(state: State, name: str, changes: SavedRows) -> None:
    """Undoes changes that were saved: then only which facts there are is right."""
    rows = _located(state, name, changes)
    state.tables[name].clear_bits(rows[changes.ops == Op.INSERTED], EXPLICIT | MATERIALISED)
    state.tables[name].set_bits(rows[changes.ops == Op.DELETED], MATERIALISED)


def _located(state: State, name: str, saved: SavedRows, *, distinct: bool = False) -> Rows:
    """The rows of saved facts, in a state; `distinct` if none of them is there yet."""
    relation = state.program.relations[name]
    batch = encode_columns(saved.facts, len(saved.ops), relation, state.dictionary)
    return state.restore(name, batch, distinct=distinct)


def saved_numbers(values: Numbers, type_: Type) -> pa.Array:
    """A column of numbers as a state directory has it."""
    column = pa.array(np.ascontiguousarray(as_typed(values, type_)))
    return column.cast(SAVED_UNSIGNED) if type_ is Type.UNSIGNED else column


def _stored(state: State) -> View:
    """What is saved: the facts, and where equal terms have a representative, also explicit facts over other terms."""
    return state.materialised if state.explicit is state.given else state.materialised | state.given


def _saved(
    state: State,
    name: str,
    rows: Rows,
    counters: Counters,
    ops: saved_rows.Ops | Op,
    explicit: saved_rows.Mask | None = None,
) -> SavedRows:
    if explicit is None:
        explicit = state.given.mask(name, rows)
    kinds = (
        (Counters.NONRECURSIVE, saved_rows.NONRECURSIVE, state.nonrecursive_counter),
        (Counters.MODULAR, saved_rows.RECURSIVE, state.recursive_counter),
    )
    counts = {kind: counted.counters[name].get(rows) for needed, kind, counted in kinds if counters >= needed}
    codes = ops if isinstance(ops, np.ndarray) else np.full(len(rows), ops, np.int8)
    return SavedRows(
        _columns(state, state.program.relations[name], state.tables[name].take(rows)), codes, explicit, counts
    )


def _columns(state: State, relation: Relation, batch: Batch) -> list[pa.Array]:
    """The fact columns; symbols of many rows as a dictionary of those that occur."""
    return [
        state.dictionary.decode_compactly(batch[i].astype(np.int32))
        if type_ in Type.SYMBOL | Type.TERM
        else saved_numbers(batch[i], type_)
        for i, type_ in enumerate(relation.types)
    ]
