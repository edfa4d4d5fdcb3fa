"""Materialisations in state directories: saved, opened again without deriving anything, and kept up with every update.

Which counters are valid is recorded for each stratum. Counters that were recomputed in memory, for a stratum whose stored ones were not valid,
become valid on disk with the next snapshot of the stratum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from evermat.algebra import Counters
from evermat.core import LimitError, Problem, ResourceError, SavedPositions, StateError, held_back, watched
from evermat.core import error_catalogue as errors
from evermat.engine import Run, WritableRows
from evermat.language import Program, Stratum
from evermat.runtime.engine import Described, Engine, EngineUpdate
from evermat.runtime.states.saved_version import SavedVersion, counts_in, rows_of_table, schemas, table_of_rows
from evermat.store import (
    Entry,
    Keep,
    Location,
    Pieces,
    Store,
    VersionReader,
    holds_something,
    open_reader,
    read_again,
    read_state,
    state_location,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HELP = {"keep": '`--keep-positions` (`positions="keep"`)', "reset": '`--reset-positions` (`positions="reset"`)'}


class StateBinding:
    """Ties an engine to a state directory: every update becomes a version.

    Invariant: unless it is read-only, the engine and the newest version hold the same facts; `_saved` says which of the stored counters
    are valid, never more than are valid in the engine.
    """

    def __init__(
        self, store: VersionReader, number: int, saved: Mapping[Stratum, Counters], keep: Keep | None = None
    ) -> None:
        self._store, self.version, self._saved, self._keep = store, number, dict(saved), keep
        #: how far streams have been followed, by their names
        self.positions = SavedVersion(store, number).positions
        self._newer = store.latest.number if store.latest.number != number else None

    @property
    def path(self) -> Location:
        return self._store.path

    def close(self) -> None:
        self._store.close()

    def become_writer(self) -> None:
        """Takes the lock, unless this binding has it; raises a `StateError` if another writer has it, or this is an old version."""
        if self._newer is not None:
            details = {"version": self.version, "latest": self._newer}
            raise StateError(Problem(errors.OLD_VERSION, details))
        if not isinstance(self._store, Store):
            store = Store.open_to_write(self._store.path)
            if store.latest.number != self.version:
                found, path = store.latest.number, store.path
                store.close()  # this binding cannot write, but others can
                raise StateError(Problem(errors.STATE_MOVED, {"path": path, "found": found, "seen": self.version}))
            store.keep(self._keep)
            self._store.close()
            self._store = store

    def become_reader(self) -> None:
        """Releases the lock, if this binding has it; it is at the newest version when it does."""
        if isinstance(self._store, Store):
            writer = self._store
            try:
                self._store = open_reader(self.path)
            finally:
                writer.close()

    def keep(self, keep: Keep | None) -> None:
        """Has the state keep so many versions from the next one on; None changes nothing."""
        self._keep = keep or self._keep
        self._writer.keep(keep)

    def seems_current(self) -> bool:
        """Whether nothing was committed since the newest version was seen; takes some microseconds, and may be asked by any thread."""
        store = self._store
        return isinstance(store, Store) or store.is_current()

    def is_current(self) -> bool:
        """Whether there is no newer version. What else was committed, such as a vacuum, is seen from now on."""
        if self._newer is not None:
            return False
        if self.seems_current():
            return True
        store = open_reader(self.path)
        if store.latest.number != self.version:
            store.close()
            return False
        self._store.close()
        self._store = store
        return True

    def follow(
        self, engine: Engine, publishing: Callable[[StateBinding, dict[str, Any]], AbstractContextManager[None]]
    ) -> bool:
        """Has an engine that holds this version take in the changes up to the newest one; returns whether that is possible.

        It is if the program has stayed the same, and the state keeps the changes. `publishing` gets the binding and the statistics of the newest
        version.
        """
        store = open_reader(self.path)
        try:
            followed = self._followed(engine, store, publishing)
        except BaseException:
            store.close()
            raise
        if not followed:
            store.close()
        return followed

    def _followed(
        self,
        engine: Engine,
        store: VersionReader,
        publishing: Callable[[StateBinding, dict[str, Any]], AbstractContextManager[None]],
    ) -> bool:
        first, last = self.version + 1, store.latest.number
        if not all(store.has(number) for number in range(self.version, last + 1)):
            return False
        versions = [SavedVersion(store, number, before=True) for number in range(self.version, last + 1)]
        newest = versions[-1]
        if any(version.rules != newest.rules for version in versions) or not engine.follows(newest):
            return False
        valid = dict(engine.counters)
        for version in versions:
            for stratum, saved in zip(engine.program.strata, version.counters_of_strata, strict=True):
                valid[stratum] = valid[stratum].common(saved)
        strata = {name: stratum for stratum in engine.program.strata for name in stratum.relations}
        changes = []
        for _, name, rows in store.changes(first, last, unchanged=True):
            changes.append((name, rows_of_table(rows)))
            if (present := counts_in(rows)) < Counters.BOTH:  # a snapshot has made them valid later
                valid[strata[name]] = valid[strata[name]].common(present)
        binding = StateBinding(store, last, valid, self._keep)
        engine.follow(changes, valid, publishing(binding, newest.stats))
        return True

    @property
    def _writer(self) -> Store:
        assert isinstance(self._store, Store), "become the writer first"
        return self._store

    def commit(
        self,
        engine: Engine,
        update: EngineUpdate,
        valid: Mapping[Stratum, Counters],
        stats: dict[str, Any],
        before: Program,
        position: tuple[str, str] | None,
    ) -> None:
        """Writes an update that is about to be committed by its engine: it is known what it changes.

        `valid` are the counters that are valid afterwards, of the strata that were processed; `before` is the program until now; `position`
        is how far it brings a stream.
        """
        saved = self._saved_after(engine, valid, before)
        # Of relations that had a storage scheme until now only inputs are stored, perhaps without those that were copied.
        latest, storage = SavedVersion(self._store), engine.storage
        whole = latest.stored_by_schemes - set(storage["stored"])
        whole |= {
            name for name, rules in latest.copied_by_schemes.items() if {*rules} - {*storage["copied"].get(name, ())}
        }
        changes = update.describe(_by_relation(engine.program, saved), whole)
        known = latest.facts if before is engine.program else _count_visible(engine)
        facts = known + stats["inserted"] - stats["deleted"]
        positions = self.positions | dict([] if position is None else [position])
        batch = None if position is None else " ".join(position)
        entry = _entry(engine, saved, stats, stats["inserted"], stats["deleted"], facts, positions, batch)
        dropped = _replaced(before, engine.program) if before is not engine.program else []
        rows = _tables(engine.program, changes)
        self.version = self._writer.commit(entry, rows, schemas(engine.program), dropped).number
        self._saved, self.positions = saved, positions

    def _saved_after(
        self, engine: Engine, valid: Mapping[Stratum, Counters], before: Program
    ) -> dict[Stratum, Counters]:
        """Which of the stored counters are valid after an update, given those of the strata that it processed."""
        if before is engine.program:
            return self._saved | {stratum: self._saved[stratum].common(counters) for stratum, counters in valid.items()}
        known = {stratum.signature: counters for stratum, counters in self._saved.items()}
        return {
            stratum: counters.common(engine.counters[stratum]).common(valid.get(stratum, counters))
            for stratum in engine.program.strata
            for counters in [known.get(stratum.signature, Counters.NONE)]
        }

    def tidy(self, engine: Engine) -> None:
        """Writes snapshots of relations whose changes are as many as half of their facts.

        If counters were recomputed that are not valid in the state, all relations of the stratum get one, and the counters become valid.
        """
        outgrown = set(self._writer.outgrown())
        if not outgrown:
            return
        saved, wanted = dict(self._saved), dict[str, Counters]()
        for stratum in engine.program.strata:
            if some := outgrown.intersection(stratum.relations):
                if saved[stratum] != engine.counters[stratum]:
                    saved[stratum], some = engine.counters[stratum], set(stratum.relations)
                wanted |= dict.fromkeys(some, saved[stratum])
        # On a full disk, or at a limit, the changes stay as they are; the version is committed.
        run = Run()
        with suppress(ResourceError, LimitError), held_back() as run.deliver, watched(run):
            # A relation that has no facts gets no files any more.
            snapshots = dict.fromkeys(wanted, ()) | _tables(engine.program, engine.describe(wanted))
            self._writer.compact(snapshots, _engine_entry(engine, saved, self.positions))
            self._saved = saved


def save_state(
    engine: Engine,
    path: Location,
    stats: dict[str, Any],
    *,
    keep: Keep | None = None,
    positions: SavedPositions = "refuse",
) -> StateBinding:
    """Writes the facts of an engine to a state directory: as its first version, or as the next one, whatever the last one holds.

    `keep` is how many versions the state keeps, or until which age, by default what it did, or 1,000; `positions` decides what becomes of
    those that the state knows of streams. See `api.Materialisation.save` for errors.
    """
    exists = holds_something(path)
    store = Store.open_to_write(path) if exists else Store.create(path)
    try:
        store.keep(keep)
        saved = dict(engine.counters)
        if exists:
            followed = _kept_positions(SavedVersion(store).positions, path, positions)
            number = _save_over(engine, store, saved, stats, followed)
        else:
            number = _save_new(engine, store, saved, stats)
        binding = StateBinding(store, number, saved, keep)
    except BaseException:
        store.close()
        raise
    if exists:
        binding.tidy(engine)
    return binding


def locate_state(text: str) -> Location:
    """Where the state is that the option `--state` names; an `ArgumentError` if states cannot be there."""
    return state_location("state", text)


def check_save(path: Location, positions: SavedPositions, keep: int | str | None = None) -> None:
    """Raises what `save_state` would raise about its arguments, before what is saved is computed.

    Raises:
        StateError: the state has positions of streams, and these are neither kept nor reset.
        ArgumentError: `keep` is neither a number nor an age.
    """
    if keep is not None:
        Keep.of(keep)
    if holds_something(path):
        found = read_state(path, lambda reader: SavedVersion(reader).positions)
        _kept_positions(found, path, positions)


def _kept_positions(found: dict[str, str], path: Location, what: SavedPositions) -> dict[str, str]:
    """The positions of streams that a state keeps when another materialisation is saved over it."""
    if found and what == "refuse":
        streams = ", ".join(f"`{name}`" for name in sorted(found))
        raise StateError(Problem(errors.STATE_HAS_POSITIONS, {"path": path, "streams": streams, **_HELP}))
    return found if what == "keep" else {}


def _save_new(engine: Engine, store: Store, saved: dict[Stratum, Counters], stats: dict[str, Any]) -> int:
    rows = _tables(engine.program, engine.describe(_by_relation(engine.program, saved)))
    facts = _count_visible(engine)
    entry = _entry(engine, saved, stats, facts, 0, facts)
    return store.commit(entry, rows, schemas(engine.program)).number


def _save_over(
    engine: Engine, store: Store, saved: dict[Stratum, Counters], stats: dict[str, Any], positions: dict[str, str]
) -> int:
    """Writes the difference to the newest version."""
    version = SavedVersion(store)
    version.check(version.program.relations)
    dropped = _replaced(version.program, engine.program)
    found = engine.difference(version, dropped, _by_relation(engine.program, saved))
    entry = _entry(engine, saved, stats, found.inserted, found.deleted, _count_visible(engine), positions)
    rows = _tables(engine.program, found.rows, version.program)
    return store.commit(entry, rows, schemas(engine.program), dropped).number


def open_state(
    path: Location,
    number: int | None = None,
    *,
    write: bool = False,
    keep: int | str | None = None,
    session: SparkSession | None = None,
    scratch: Location | None = None,
    buckets: int | None = None,
    broadcast: int | None = None,
) -> tuple[Engine, StateBinding, dict[str, Any]]:
    """An engine with the facts of a version of a state directory, what ties them, and the statistics of the version; see `api.open`.

    With a session its executors hold the facts, unless relations are stored compactly: these fit this process, and on executors every fact
    would be a row. With `keep` the state keeps so many versions from the next one on.
    """
    kept = None if keep is None else Keep.of(keep)
    if write:
        return _opened(Store.open_to_write(path), number, kept, session, scratch, buckets, broadcast)
    return read_again(path, lambda: _opened(open_reader(path), number, kept, session, scratch, buckets, broadcast))


def _opened(
    store: VersionReader,
    number: int | None,
    keep: Keep | None,
    session: SparkSession | None,
    scratch: Location | None,
    buckets: int | None,
    broadcast: int | None,
) -> tuple[Engine, StateBinding, dict[str, Any]]:
    """The engine and its binding, which gets the store."""
    try:
        if isinstance(store, Store):
            store.keep(keep)
        version = SavedVersion(store, number)
        engine: Engine
        if session is None or version.stored_by_schemes:
            from evermat.runtime.engines.memory_engine import restored

            engine = restored(version, name="memory" if session is None else "spark")
        else:
            from evermat.runtime.engines.spark_engine import restored_on_cluster

            engine = restored_on_cluster(version, session, scratch, buckets, broadcast)
        return engine, StateBinding(store, version.number, engine.counters, keep), version.stats
    except BaseException:
        store.close()
        raise


def _by_relation(program: Program, counters: Mapping[Stratum, Counters]) -> dict[str, Counters]:
    """The counters of the stratum of each relation, in the order in which relations are written."""
    found = {name: kept for stratum, kept in counters.items() for name in stratum.relations}
    return {name: found[name] for name in program.relations}


def _tables(program: Program, rows: Described, before: Program | None = None) -> dict[str, Pieces]:
    """Rows as tables; what an engine computes while it is read stays so. Relations that a program has no more are those of the one before."""
    relations = {**(before.relations if before is not None else {}), **program.relations}

    def tables(name: str) -> Pieces:
        match rows[name]:
            case [one]:
                return table_of_rows(relations[name], one)
            case WritableRows() as several:
                pieces: Pieces = several.in_form(partial(table_of_rows, relations[name]))
                return pieces
            case several:
                return (table_of_rows(relations[name], some) for some in several)

    return {name: tables(name) for name in rows}


def _count_visible(engine: Engine) -> int:
    reading, relations = engine.snapshot(), engine.program.relations.items()
    return sum(reading.count(name) for name, relation in relations if not relation.hidden)


def _entry(
    engine: Engine,
    saved: Mapping[Stratum, Counters],
    stats: dict[str, Any],
    inserted: int,
    deleted: int,
    facts: int,
    positions: Mapping[str, str] | None = None,
    batch: str | None = None,
) -> Entry:
    """What is recorded about a version."""
    return Entry(
        program=(engine.program.base or engine.program.source).text,
        algorithm=stats["algorithm"],
        seconds=sum(stats["seconds"].values()),
        inserted=inserted,
        deleted=deleted,
        facts=facts,
        stats=stats,
        counters=_engine_entry(engine, saved, positions or {}),
        batch=batch,
    )


def _engine_entry(engine: Engine, saved: Mapping[Stratum, Counters], positions: Mapping[str, str]) -> dict[str, Any]:
    """What an engine needs to know of a version, beside its facts."""
    program = engine.program
    return {
        "source": (program.base or program.source).name,
        "revisions": [list(revision) for revision in program.revisions],
        "hidden": [name for name, relation in program.relations.items() if relation.hidden],
        "positions": dict(positions),
        "prefixes": dict(program.prefixes),
        "schemes": dict(engine.storage),
        "strata": [{"counters": saved[s].name.lower(), "work": engine.work(s)} for s in program.strata],
    }


def _replaced(before: Program, program: Program) -> list[str]:
    """Relations that a program has no more, or with other types: then another relation has the name."""
    now = program.relations
    return [name for name, r in before.relations.items() if name not in now or now[name].types != r.types]
