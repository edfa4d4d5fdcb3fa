"""Writes of Spark into a state directory: what tasks have written becomes one version.

Tasks stage rows; a Python process beside the JVM of the driver commits them. It has no session and no materialisation, so it opens the state
itself. Spark uses the process again for later micro-batches: it keeps the facts, not the lock, and takes in what others have committed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter

from evermat.core import DataError, Problem, local_path, wrong_argument
from evermat.core import error_catalogue as errors
from evermat.runtime.streams.change_source import RELATION, STATE
from evermat.runtime.streams.staged_rows import StagedRows, Staging, remove_staged, staged_rows
from evermat.store import Location, read_state, state_location

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from evermat.io import FileChanges
    from evermat.language import Program, Relation
    from evermat.runtime.versioned_engine import VersionedEngine
    from evermat.spark import ChangeFrames

ALGORITHM, SCRATCH = "algorithm", "scratch"
APPLICATION, APPLICATION_VERSION = "txnAppId", "txnVersion"
_SHARED = (STATE, RELATION, ALGORITHM, SCRATCH)
BATCH_OPTIONS = (*_SHARED, APPLICATION, APPLICATION_VERSION)
STREAM_OPTIONS = (*_SHARED, "checkpointLocation", "queryName")  # the last ones are Spark's own

Position = tuple[str, int]


@dataclass(frozen=True)
class StateSink:
    """Where rows of a schema go: to a relation of a state, or to any if the rows say so."""

    path: Location
    relation: str | None
    schema: StructType
    algorithm: str
    overwrite: bool

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> StateSink:
        """The sink that options describe; raises an `ArgumentError` if there cannot be one."""
        from evermat.runtime.update import check_update_algorithm

        algorithm, relation = options.get(ALGORITHM, "auto"), options.get(RELATION)
        check_update_algorithm(algorithm)
        if overwrite and relation is None:
            raise wrong_argument(f"a relation is replaced whole: name it by the option `{RELATION}`")
        return cls(state_location(STATE, options[STATE]), relation, schema, algorithm, overwrite)

    def check(self) -> None:
        """Raises an error if there is no state, or rows cannot be changes of it."""

        def read(store: Any) -> Program:
            from evermat.runtime.states.saved_version import SavedVersion

            return SavedVersion(store).program

        self._frames(read_state(self.path, read))

    def _frames(self, program: Program) -> ChangeFrames:
        from evermat.spark import ChangeFrames

        if not self.schema.fields:  # Spark would pass on no rows
            what = "rows without columns cannot be written: add a column `op` with `+` or `-`"
            raise DataError(Problem(errors.STREAM_COLUMNS, {"what": what}))
        chosen = self._chosen(program)
        frames = ChangeFrames.of(self.schema, chosen, signed=False)
        if self.overwrite and frames.columns.sign is not None:
            raise wrong_argument(
                f"`{self.relation}` is replaced by the rows, which are not changes: leave the column `{frames.columns.sign}` out"
            )
        return frames

    def _chosen(self, program: Program) -> Relation | None:
        from evermat.runtime.facts.ingest import relation_of

        return None if self.relation is None else relation_of(self.relation, program)

    def commit(self, rows: pa.Table | None, name: int | str, position: Position | None, *, kept: bool) -> None:
        """Makes a version of the rows, which errors call a batch of this name, unless the state has the position already."""
        from evermat.engine import Run

        with _writing(self.path, kept=kept) as engine:
            if position is not None and _is_done(engine.pin().published.positions, *position):
                return
            changes = self._changes(engine, rows, name)
            if changes:
                at = None if position is None else (position[0], str(position[1]))
                engine.update([[(changes.insert, changes.delete)]], self.algorithm, Run(), position=at)

    def _changes(self, engine: VersionedEngine, rows: pa.Table | None, name: int | str) -> FileChanges:
        from evermat.io import FileChanges
        from evermat.language import relation_names

        program = engine.pin().engine.program
        frames = self._frames(program)
        changes = FileChanges({}, {})
        if rows is not None:
            changes = frames.changes_of(rows.rename_columns(self.schema.names), name, relation_names(program))
        if not self.overwrite:
            return changes
        relation = self._chosen(program)
        assert relation is not None
        return FileChanges(changes.insert, {relation.name: _explicit(engine, relation)})


def _is_done(positions: Mapping[str, str], stream: str, number: int) -> bool:
    done = positions.get(stream, "-1")
    if not done.removeprefix("-").isdigit():
        raise wrong_argument(f"the state has the position `{done}` of `{stream}`, which is not the number of a batch")
    return number <= int(done)


def _explicit(engine: VersionedEngine, relation: Relation) -> pa.Table:
    """All explicit facts of a relation."""
    from evermat.runtime.relation import AssertedFacts
    from evermat.runtime.rows import arrow_table

    return arrow_table(AssertedFacts(relation, engine.pin().reading))


# --- the state in the process that commits -------------------------------------------------------------------------

_kept: dict[Location, VersionedEngine] = {}  # of a process that commits micro-batches: the state that it wrote to last


@contextmanager
def _writing(path: Location, *, kept: bool) -> Iterator[VersionedEngine]:
    """The newest version of a state, which this process has locked in the block; its facts may be kept for the next block."""
    engine = _kept.pop(path, None)
    if engine is None:
        _kept.clear()
        engine = _opened(path)
    try:
        engine.become_writer()
        yield engine
        if kept:
            engine.step_down()
            _kept[path] = engine
    finally:
        if path not in _kept:
            engine.close()


def _opened(path: Location) -> VersionedEngine:
    from evermat.runtime.states.persistence import open_state
    from evermat.runtime.versioned_engine import VersionedEngine

    engine, binding, stats = open_state(path, write=True)
    return VersionedEngine(engine, binding, stats, open_again=lambda: open_state(path))


# --- the writers of Spark --------------------------------------------------------------------------------------------


class _Writer:
    """What both kinds of writers do; Spark sends them to tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._sink = StateSink.of(options, schema, overwrite=overwrite)
        scratch = options.get(SCRATCH)
        folder = None if scratch is None else str(local_path("the scratch directory", SCRATCH, scratch).absolute())
        self._staging = Staging.of(folder)

    def write(self, iterator: Iterable[pa.RecordBatch]) -> StagedRows:
        return self._staging.stage(iterator)


class StateWriter(_Writer, DataSourceArrowWriter):  # type: ignore[misc]
    """Writes a DataFrame into a state."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite=overwrite)
        self._position = _position_in(options)
        self._sink.check()

    def commit(self, messages: list[StagedRows | None]) -> None:
        with staged_rows(messages) as rows:
            self._sink.commit(rows, "the rows", self._position, kept=False)

    def abort(self, messages: list[StagedRows | None]) -> None:
        remove_staged(messages)


class StreamStateWriter(_Writer, DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Writes the micro-batches of a stream into a state."""

    def commit(self, messages: list[StagedRows | None], batchId: int) -> None:  # noqa: N803
        with staged_rows(messages) as rows:
            query = next((message.query for message in messages if message is not None), None)
            if query is not None:
                self._sink.commit(rows, batchId, (f"spark:{query}", batchId), kept=True)

    def abort(self, messages: Sequence[StagedRows | None], batchId: int) -> None:  # noqa: N803
        del batchId
        remove_staged(messages)


def _position_in(options: Mapping[str, str]) -> Position | None:
    """The position that a batch has by its options."""
    name, version = options.get(APPLICATION), options.get(APPLICATION_VERSION)
    if name is None and version is None:
        return None
    if name is None or version is None:
        raise wrong_argument(f"`{APPLICATION}` and `{APPLICATION_VERSION}` are used together")
    if not (version.isascii() and version.isdigit()):
        raise wrong_argument(f"`{version}` cannot be the `{APPLICATION_VERSION}`: it is a number")
    return name, int(version)
