"""A materialisation in a state directory: what is written of it, and how it comes back without deriving anything.

Every fact is stored with its origin and its counters. Which counters are valid is recorded for each stratum; counters that were made
anew in memory, for a stratum whose stored ones were not valid, become valid on disk with the next snapshot of the stratum.
Hidden relations, which the rewriting of rules introduced, are stored like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.algebra import Counters
from evermat.columns.kernels.warm_up import prepare as prepare_kernels
from evermat.columns.schemes.policy import AUTO
from evermat.columns.state.state import State
from evermat.columns.state.update import Update
from evermat.columns.state.views import Listed, View, contains_facts, facts_in
from evermat.columns.storage.encoding import encode_arrow, typed
from evermat.columns.storage.table import EXPLICIT, MATERIALISED, Batch, Rows
from evermat.core import LimitError, Problem, ResourceError, Source, StateError
from evermat.core import error_catalogue as errors
from evermat.engine.run import Run
from evermat.io import ARROW_TYPES
from evermat.language import EQUALITY_CLASSES, Program, Relation, Stratum, Type, compile_program, revise
from evermat.runtime.query import Answer, Queries
from evermat.store import NONRECURSIVE, OP, ORIGIN, RECURSIVE, Entry, Part, Pieces, Store

Mask = npt.NDArray[np.bool_]

_UNSIGNED = pa.decimal128(20, 0)
_ORIGINS = pa.array(["derived", "explicit"])
_OPS = pa.array(["-", "+", "="])
_GONE, _COME, _SAME = range(3)


class _Counted(Protocol):
    def count(self, name: str, /) -> int: ...


class _State(Protocol):
    """What a version is described by, of either engine."""

    @property
    def program(self) -> Program: ...
    @property
    def materialised(self) -> _Counted: ...
    @property
    def schemes(self) -> str: ...
    @property
    def stored_by_schemes(self) -> Collection[str]: ...
    @property
    def copied_by_schemes(self) -> Mapping[str, list[str]]: ...
    def count_facts_of(self, name: str, /) -> int: ...
    def work(self, stratum: Stratum, /) -> int: ...
    def valid_counters(self, stratum: Stratum, /) -> Counters: ...


class Keeper:
    """Keeps one materialisation in a state directory: every update becomes a version.

    Invariant: unless it is read-only, memory and the newest version hold the same facts; `_saved` says which of the stored counters
    are valid, never more than are valid in memory.
    """

    def __init__(self, store: Store, number: int, saved: dict[Stratum, Counters]) -> None:
        self._store, self.version, self._saved = store, number, saved
        #: how far streams have been followed, by their names
        self.positions: dict[str, str] = dict(store.version(number).counters.get("positions", {}))
        self._position: tuple[str, str] | None = None

    @contextmanager
    def at(self, position: tuple[str, str] | None) -> Iterator[None]:
        """The update that is committed meanwhile brings a stream to a position: its version says so."""
        self._position = position
        try:
            yield
        finally:
            self._position = None

    @property
    def path(self) -> Path:
        """Where the state is."""
        return self._store.path

    def close(self) -> None:
        """Lets go of the state."""
        self._store.close()

    def become_writer(self) -> None:
        """Takes the lock, if we do not have it.

        Raises:
            StateError: another has it, or this is an old version.
        """
        if self._store.latest.number != self.version:
            details = {"version": self.version, "latest": self._store.latest.number}
            raise StateError(Problem(errors.OLD_VERSION, details))
        if not self._store.locked:
            self._store.lock()
            try:
                self._store.check_newest()
            except StateError:
                self._store.unlock()  # we cannot write, but others can
                raise

    def commit(
        self,
        update: Update,
        result: tuple[Listed, Listed],
        valid: Mapping[Stratum, Counters],
        stats: dict[str, Any],
        before: Program,
    ) -> None:
        """Writes an update that is about to be committed in memory; `before` is the program before it.

        Args:
            update: the update, with D and A complete.
            result: the facts that I loses and gains.
            valid: the counters that are valid afterwards, of the strata that were reached.
            stats: what is told about the update.
            before: the program until now.
        """
        program = update.state.program
        saved = self._saved_after(update.state, valid)
        changes = {}
        # Of relations that had a storage scheme until now only inputs are there, perhaps without those that were copied.
        latest, state = self._store.latest.number, update.state
        copied = state.copied_by_schemes
        unstored = stored_by_schemes(self._store, latest)[1] - state.stored_by_schemes
        unstored |= {
            n for n, rules in copied_by_schemes(self._store, latest).items() if {*rules} - {*copied.get(n, ())}
        }
        for stratum in program.strata:
            for name in stratum.relations:
                rows = _changed_rows(update, name, result, saved[stratum], whole=name in unstored)
                if rows is not None:
                    changes[name] = rows
        self._write(update.state, changes, saved, stats, before)

    def _saved_after(self, state: _State, valid: Mapping[Stratum, Counters]) -> dict[Stratum, Counters]:
        """Which of the stored counters are valid after an update, given those of the strata that it reached."""
        known = {stratum.signature: counters for stratum, counters in self._saved.items()}
        return {
            stratum: counters.common(state.valid_counters(stratum)).common(valid.get(stratum, counters))
            for stratum in state.program.strata
            for counters in [known.get(stratum.signature, Counters.NONE)]
        }

    def _write(
        self,
        state: _State,
        changes: Mapping[str, Pieces],
        saved: dict[Stratum, Counters],
        stats: dict[str, Any],
        before: Program,
    ) -> None:
        """Writes the changes of an update that is about to be committed."""
        dropped = replaced(before, state.program)
        inserted, deleted = stats["inserted"], stats["deleted"]
        facts = visible(state) + inserted - deleted
        positions = self.positions | dict([] if self._position is None else [self._position])
        entry = replace(
            entry_of(state, saved, stats, inserted=inserted, deleted=deleted, facts=facts),
            counters=engine_of(state, saved, positions),
            batch=None if self._position is None else " ".join(self._position),
        )
        self.version = self._store.commit(entry, changes, schemas(state.program), dropped).number
        self._saved, self.positions = saved, positions

    def tidy(self, state: Any) -> None:
        """Replaces many files by few: of changes by one file, or, where changes are as many as half of the facts, of whole strata."""
        strata, store = state.program.strata, self._store
        outgrown = [stratum for stratum in strata if any(map(store.needs_snapshot, stratum.relations))]
        crowded = {
            name: (parts, self._saved[stratum])
            for stratum in strata
            if stratum not in outgrown
            for name in stratum.relations
            if (parts := store.many_changes(name))
        }
        if outgrown or crowded:
            saved = self._saved | {stratum: state.valid_counters(stratum) for stratum in outgrown}
            # On a full disk the changes stay as they are; the version is committed.
            with suppress(ResourceError, LimitError):
                snapshots = self._snapshots(state, {name: saved[s] for s in outgrown for name in s.relations})
                merged = self._merged(state, crowded)
                store.compact(
                    snapshots,
                    engine_of(state, saved, self.positions),
                    {name: (crowded[name][0], rows) for name, rows in merged.items()},
                )
                self._saved = saved

    def _snapshots(self, state: Any, wanted: Mapping[str, Counters]) -> Mapping[str, Pieces]:
        """All facts of some relations."""
        return {name: _all_rows(state, name, counters) for name, counters in wanted.items()}

    def _merged(self, state: Any, crowded: Mapping[str, tuple[tuple[Part, ...], Counters]]) -> Mapping[str, Pieces]:
        """What there is to say now about all facts that are in some files of changes, by relation."""
        return {name: self._merge(state, name, parts, counters) for name, (parts, counters) in crowded.items()}

    def _merge(self, state: State, name: str, parts: Iterable[Part], counters: Counters) -> pa.Table:
        """What there is to say now about all facts that are in some files of changes."""
        relation = state.program.relations[name]
        batches = (_encode(state, relation, stored) for stored in self._store.read_parts(name, parts))
        rows = np.unique(np.concatenate([state.restore(name, batch, distinct=False) for batch in batches]))
        ops = np.where(_stored(state).mask(name, rows), _COME, _GONE).astype(np.int8)
        return _rows_table(state, name, rows, counters, ops)


def save_new(state: State, path: Path, stats: dict[str, Any]) -> Keeper:
    """Writes a materialisation as the first version of a new state."""
    store = Store.create(path)
    try:
        saved = dict(state.counters)
        rows = {name: _all_rows(state, name, saved[s]) for s in state.program.strata for name in s.relations}
        facts = visible(state)
        entry = entry_of(state, saved, stats, inserted=facts, deleted=0, facts=facts)
        version = store.commit(entry, rows, schemas(state.program))
    except BaseException:
        store.close()
        raise
    return Keeper(store, version.number, saved)


def save_over(state: State, path: Path, stats: dict[str, Any]) -> Keeper:
    """Writes a materialisation as the next version of a state that there is, whatever that holds: as the difference."""
    store = Store.open(path)
    try:
        store.lock()
        store.refresh()
        old = load(store, store.latest.number)
        saved = dict(state.counters)
        changes: dict[str, pa.Table] = {}
        counts = {"inserted": 0, "deleted": 0}
        for stratum in state.program.strata:
            for name in stratum.relations:
                changes[name] = _difference(old, state, name, saved[stratum], counts)
        for name in {*old.stored_by_schemes, *state.stored_by_schemes} & {*old.tables} & {*state.tables}:
            if old.program.relations[name].types == state.program.relations[name].types:
                counts["inserted"] += sum(rows.num_rows for rows in facts_gained(old, state, name))
                counts["deleted"] += sum(rows.num_rows for rows in facts_gained(state, old, name))
        dropped = replaced(old.program, state.program)
        for name in dropped:
            if not old.program.relations[name].hidden:
                counts["deleted"] += old.materialised.count(name)
                if name not in state.program.relations:
                    changes[name] = _rows_table(old, name, old.materialised.rows(name), Counters.NONE, _GONE)
        entry = entry_of(state, saved, stats, **counts, facts=visible(state))
        version = store.commit(entry, changes, schemas(state.program), dropped)
    except BaseException:
        store.close()
        raise
    keeper = Keeper(store, version.number, saved)
    keeper.tidy(state)
    return keeper


def ask_state(path: Path, number: int | None, text: str, *, representatives: bool = False) -> Answer:
    """The answer to a query about a version of a state, to be read once; only the relations that it reads are loaded."""
    with Store.open(path) as store:
        version = store.latest.number if number is None else store.version(number).number
        program = program_of(store, version)
        queries = Queries(program)
        state = load(store, version, program, queries.reads(text))
        if representatives:
            return queries.answer(text, state, Run(), representatives=True)
        return queries.stream(text, state, Run())


def open_state(path: Path, number: int | None, *, write: bool) -> tuple[State, Keeper, dict[str, Any]]:
    """The facts of a version of a state, by default of the newest; with `write` nobody else may write from now on."""
    store = Store.open(path)
    try:
        if write:
            store.lock()
            store.refresh()
        version = store.latest if number is None else store.version(number)
        state = load(store, version.number)
    except BaseException:
        store.close()
        raise
    return state, Keeper(store, version.number, dict(state.counters)), version.stats


def load(
    store: Store,
    number: int,
    program: Program | None = None,
    wanted: Collection[str] | None = None,
    undone: Iterable[tuple[int, str, pa.Table]] = (),
) -> State:
    """The facts and counters of a version, of all relations or of some; nothing is derived.

    What stored changes say, by relation, is `undone`: then only which facts there are is right.
    """
    if program is None:
        program = program_of(store, number)
    prepare_kernels(closures=any(stratum.closures for stratum in program.strata))
    asked, stored = stored_by_schemes(store, number)
    state = State(program, Run(), schemes=asked)
    if wanted is not None and program.rewriting:
        wanted = {*wanted, EQUALITY_CLASSES.name}
    if wanted is not None:
        wanted = state.needed_for(wanted, stored)
    for name in program.relations if wanted is None else wanted:
        check_stored(store, number, name)
        _load_relation(state, name, store.read(number, name))
    for _, name, changes in undone:
        rows = state.restore(name, _encode(state, program.relations[name], changes), distinct=False)
        state.tables[name].clear_bits(rows[_equals(changes[OP], "+")], EXPLICIT | MATERIALISED)
        state.tables[name].set_bits(rows[_equals(changes[OP], "-")], MATERIALISED)
    state.dictionary.forget_arrow()
    state.count_facts()
    if state.representatives is not None:
        state.representatives.take_over(state)
    copied = {text for rules in copied_by_schemes(store, number).values() for text in rules}
    state.restore_schemes(stored if wanted is None else stored & set(wanted), copied)
    for stratum, (counters, work) in stored_counters(store, number, program).items():
        state.record_counters(stratum, counters)
        state.record_work(stratum, work)
    return state


def check_stored(store: Store, number: int, name: str) -> None:
    """Refuses a version that has no facts of a relation of its program."""
    if name not in store.version(number).relations:
        why = f"it has no facts of `{name}`: another version of evermat wrote it"
        raise StateError(Problem(errors.STATE_UNREADABLE, {"file": store.path, "why": why}))


def stored_by_schemes(store: Store, number: int) -> tuple[str, set[str]]:
    """Which storage schemes were asked for, and the relations of a version that have one: what is stored of them are their inputs."""
    schemes = store.version(number).counters.get("schemes", {"asked": AUTO, "stored": []})
    return schemes["asked"], set(schemes["stored"])


def copied_by_schemes(store: Store, number: int) -> dict[str, list[str]]:
    """The rules, as text, whose heads are not stored, because a storage scheme takes them for granted; by relation."""
    copied: dict[str, list[str]] = store.version(number).counters.get("schemes", {}).get("copied", {})
    return copied


def stored_counters(store: Store, number: int, program: Program) -> dict[Stratum, tuple[Counters, int]]:
    """For each stratum the counters that are valid in a version, and how many instances it took from scratch."""
    kept = store.version(number).counters["strata"]
    return {
        stratum: (Counters[one["counters"].upper()], one["work"])
        for stratum, one in zip(program.strata, kept, strict=True)
    }


def program_of(store: Store, number: int) -> Program:
    """The program of a version, after all changes of its rules."""
    engine = store.version(number).counters
    program = compile_program(Source(engine["source"], store.program(number)))
    for add, remove in engine["revisions"]:
        program = revise(program, add, remove).program
    return program


def _load_relation(state: State, name: str, parts: Iterator[tuple[int, pa.Table]]) -> None:
    """Takes in a snapshot and the changes after it."""
    snapshot: int | None = None
    table = state.tables[name]
    counters = (
        (state.nonrecursive_counter.counters[name], NONRECURSIVE),
        (state.recursive_counter.counters[name], RECURSIVE),
    )
    for version, stored in parts:
        snapshot = version if snapshot is None else snapshot
        batch = _encode(state, state.program.relations[name], stored)
        rows = state.restore(name, batch, distinct=version == snapshot)
        gone = _equals(stored[OP], "-")
        explicit = _equals(stored[ORIGIN], "explicit") & ~gone
        table.clear_bits(rows, EXPLICIT | MATERIALISED)
        table.set_bits(rows[~gone], MATERIALISED)
        table.set_bits(rows[explicit], EXPLICIT)
        for counter, column in counters:
            if stored[column].null_count < stored.num_rows or version != snapshot:
                counter.restore(rows, stored[column].fill_null(0).to_numpy())


def _encode(state: State, relation: Relation, stored: pa.Table) -> Batch:
    """The fact columns of stored rows as a batch."""
    batch = np.empty((relation.arity, stored.num_rows), np.int64)
    for i, type_ in enumerate(relation.types):
        column = stored.column(i)
        if type_ is Type.UNSIGNED:
            column = column.cast(pa.uint64())
        batch[i] = encode_arrow(column, type_, state.dictionary)
    return batch


def _equals(column: pa.ChunkedArray, value: str) -> Mask:
    """Which rows of a column of few strings have a value."""
    found = [np.zeros(0, np.bool_)]
    for chunk in column.chunks:
        coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        wanted = coded.dictionary.index(value).as_py()
        found.append(coded.indices.to_numpy() == wanted)
    return np.concatenate(found)


# --- what is written ---------------------------------------------------------------------------------------


def visible(state: _State) -> int:
    """How many facts there are in relations of the program's text."""
    relations = state.program.relations.items()
    return sum(state.count_facts_of(name) for name, relation in relations if not relation.hidden)


def entry_of(
    state: _State, saved: Mapping[Stratum, Counters], stats: dict[str, Any], *, inserted: int, deleted: int, facts: int
) -> Entry:
    """What there is to say about a version."""
    return Entry(
        program=(state.program.base or state.program.source).text,
        algorithm=stats["algorithm"],
        seconds=sum(stats["seconds"].values()),
        inserted=inserted,
        deleted=deleted,
        facts=facts,
        stats=stats,
        counters=engine_of(state, saved),
    )


def engine_of(
    state: _State, saved: Mapping[Stratum, Counters], positions: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What the engine needs to know, beside the facts."""
    program = state.program
    return {
        "source": (program.base or program.source).name,
        "revisions": [list(revision) for revision in program.revisions],
        "hidden": [name for name, relation in program.relations.items() if relation.hidden],
        "positions": dict(positions or {}),
        "schemes": {
            "asked": state.schemes,
            "stored": sorted(state.stored_by_schemes),
            "copied": dict(state.copied_by_schemes),
        },
        "strata": [{"counters": saved[s].name.lower(), "work": state.work(s)} for s in program.strata],
    }


def replaced(before: Program, program: Program) -> list[str]:
    """Relations that a program has no more, or with other types: of these, another relation has the name now."""
    now = program.relations
    return [name for name, r in before.relations.items() if name not in now or now[name].types != r.types]


def schemas(program: Program) -> dict[str, pa.Schema]:
    """The stored columns of all relations."""
    return {name: _schema(relation) for name, relation in program.relations.items()}


def _schema(relation: Relation) -> pa.Schema:
    types = [_UNSIGNED if c.type is Type.UNSIGNED else ARROW_TYPES[c.type] for c in relation.columns]
    # The columns of a hidden relation are named after variables, which may change although its facts are kept.
    names = [f"c{i}" if relation.hidden else c.name for i, c in enumerate(relation.columns)]
    return pa.schema(list(zip(names, types, strict=True)))


def _all_rows(state: State, name: str, counters: Counters) -> pa.Table:
    """All facts of a relation."""
    return _rows_table(state, name, _stored(state).rows(name), counters, _COME)


def _stored(state: State) -> View:
    """What is stored: the facts, and where equal terms are represented by one, also what was given under other names."""
    return state.materialised if state.explicit is state.given else state.materialised | state.given


def _changed_rows(
    update: Update, name: str, result: tuple[Listed, Listed], counters: Counters, *, whole: bool
) -> pa.Table | None:
    """What an update changes of a relation: facts lost and gained, and those whose origin or counters changed.

    With `whole` it tells all facts that there are then.
    """
    state, (lost, gained) = update.state, result
    given = (state.given - update.given_deleted) | update.given_inserted
    touched = [lost.rows(name), gained.rows(name), update.given_deleted.rows(name), update.given_inserted.rows(name)]
    if counters > Counters.NONE:
        touched.append(update.counted(name))
    if whole:
        touched.append(_stored(state).rows(name))
    rows = np.unique(np.concatenate(touched)).astype(np.int32, copy=False)
    explicit = given.mask(name, rows)
    before = _stored(state).mask(name, rows)
    after = ((state.materialised - update.overdeleted) | update.added).mask(name, rows) | explicit
    ops = np.where(before & ~after, _GONE, np.where(whole | (after & ~before), _COME, _SAME)).astype(np.int8)
    told = before | after
    if not told.any():
        return None
    return _rows_table(state, name, rows[told], counters, ops[told], explicit[told])


def _difference(old: State, state: State, name: str, counters: Counters, counts: dict[str, int]) -> pa.Table:
    """What turns the facts of a relation in an old state into those of a new one; adds up what comes and goes."""
    relation, former = state.program.relations[name], old.program.relations.get(name)
    rows = _stored(state).rows(name)
    by_scheme = {*old.stored_by_schemes, *state.stored_by_schemes}
    if former is None or former.types != relation.types:
        counts["inserted"] += 0 if relation.hidden else state.count_facts_of(name)
        return _rows_table(state, name, rows, counters, _COME)
    before = _stored(old).rows(name)
    stored = _rows_table(old, name, before, Counters.NONE, _COME)
    found = state.restore(name, _encode(state, relation, stored), distinct=False)
    kept = _stored(state).mask(name, found)
    new = np.setdiff1d(rows, found[kept], assume_unique=True).astype(np.int32, copy=False)
    every = np.concatenate([found, new]).astype(np.int32, copy=False)
    ops = np.r_[np.where(kept, _SAME, _GONE), np.full(len(new), _COME)].astype(np.int8)
    if not relation.hidden and name not in by_scheme:  # rows are facts
        counts["inserted"] += len(new)
        counts["deleted"] += int(np.count_nonzero(~kept))
    return _rows_table(state, name, every, counters, ops)


def facts_gained(old: State, new: State, name: str) -> Iterator[pa.Table]:
    """The facts of a relation that a state has and another has not, some at a time, however they are stored."""
    relation = new.program.relations[name]
    for batch in facts_in(new.materialised, name):
        facts = pa.table(
            [_stored_column(batch[i], t, new) for i, t in enumerate(relation.types)], [c.name for c in relation.columns]
        )
        known = _encode(old, relation, facts)
        there = contains_facts(old.materialised, name, known)
        yield facts.filter(pa.array(~there))


def _rows_table(
    state: State,
    name: str,
    rows: Rows,
    counters: Counters,
    ops: npt.NDArray[np.int8] | int,
    explicit: Mask | None = None,
) -> pa.Table:
    """Rows as they are stored."""
    relation = state.program.relations[name]
    if explicit is None:
        explicit = state.given.mask(name, rows)
    codes = ops if isinstance(ops, np.ndarray) else np.full(len(rows), ops, np.int8)
    kinds = (
        (Counters.NONRECURSIVE, NONRECURSIVE, state.nonrecursive_counter),
        (Counters.MODULAR, RECURSIVE, state.recursive_counter),
    )
    counts = {c: counted.counters[name].get(rows) for needed, c, counted in kinds if counters >= needed}
    batch = state.tables[name].take(rows)
    facts = [_stored_column(batch[i], type_, state) for i, type_ in enumerate(relation.types)]
    return stored_rows(relation, facts, codes, explicit, counts)


def stored_rows(
    relation: Relation,
    facts: Sequence[Any],
    ops: npt.NDArray[np.int8],
    explicit: Mask,
    counts: Mapping[str, npt.NDArray[np.int64]],
) -> pa.Table:
    """Rows as they are stored: the fact columns, what there is to say of each fact, its origin, and the counts that are kept."""
    columns: dict[str, pa.Array] = {
        ORIGIN: pa.DictionaryArray.from_arrays(pa.array(explicit.astype(np.int8)), _ORIGINS),
        OP: pa.DictionaryArray.from_arrays(pa.array(ops), _OPS),
    }
    columns |= {name: pa.array(counted, mask=ops == _GONE) for name, counted in counts.items()}
    return pa.table([*facts, *columns.values()], names=[*(c.name for c in relation.columns), *columns])


def _stored_column(values: npt.NDArray[np.int64], type_: Type, state: State) -> Any:
    """A fact column; symbols of many rows as a dictionary of those that occur."""
    if type_ in Type.SYMBOL | Type.TERM:
        return state.dictionary.decode_compactly(values.astype(np.int32))
    return stored_numbers(values, type_)


def stored_numbers(values: npt.NDArray[np.int64], type_: Type) -> pa.Array:
    """A column of numbers."""
    column = pa.array(np.ascontiguousarray(typed(values, type_)))
    return column.cast(_UNSIGNED) if type_ is Type.UNSIGNED else column
