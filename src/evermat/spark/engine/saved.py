"""Between buckets and a state directory: rows of its files become files of sets, and facts are told as rows that it keeps.

`OpenTask` reads data files of a state and sends their rows to buckets, where `RestoreTask` keeps of each fact what the newest version says. The other way,
`DescribeTask` tells of facts in a bucket whether they came or went, where they come from, and how often they are derived.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import Batch, Dictionary, Rows, Table, encode_table
from evermat.core import Problem, ResourceError, StateError
from evermat.core import error_catalogue as errors
from evermat.language import Relation, Type
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.job_runner import Stage
from evermat.spark.engine.tasks import worker
from evermat.spark.engine.tasks.serialization import (
    Amounts,
    FactFile,
    Shape,
    buckets_of,
    by_bucket,
    from_arrow,
    pack,
    to_arrow,
    unpack,
    write_file,
)
from evermat.spark.engine.tasks.set_expressions import Counted, Expression, combined, most
from evermat.spark.engine.tasks.task_table import TaskTable
from evermat.spark.engine.tasks.worker import Outbox, outcome
from evermat.store import NONRECURSIVE, OP, ORIGIN, RECURSIVE, Columns, Part, damaged, read_part, table_schema

GONE, COME, SAME = range(3)  # what there is to tell of a fact
EXPLICIT = "explicit"  # the column that says whether a fact is explicit

_PACKED = 1 << 20  # rows that travel together
_GONE, _EXPLICIT = 1, 2  # bits of the flags with which a row travels
_FLAGS = "flags"
_PROBLEM = -1  # the channel of what is wrong with a file
_TOGETHER = 1 << 26  # bytes of data files that a task gets at a time, about

Flags = npt.NDArray[np.int8]


# --- from a state to buckets ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file of a state: the folder of its table, its path in there, its bytes, and the version that wrote it."""

    folder: str
    path: str
    size: int
    version: int


@dataclass(frozen=True, eq=False)
class Stored:
    """A relation in a state: its data files, and what is wanted of them. No fact is twice in the files of one version."""

    relation: Relation
    shape: Shape
    columns: Columns
    files: tuple[StoredFile, ...]
    nonrecursive: bool = False  # whether counts are wanted
    recursive: bool = False
    every: bool = False  # facts that went are wanted too

    @property
    def counted(self) -> list[str]:
        """The columns of the counts that are wanted."""
        return [c for c, wanted in ((NONRECURSIVE, self.nonrecursive), (RECURSIVE, self.recursive)) if wanted]


@dataclass
class Restored:
    """Files of the facts and counts of a relation. Where all facts of a bucket are explicit, E and I share a file."""

    explicit: list[FactFile] = field(default_factory=list)
    materialised: list[FactFile] = field(default_factory=list)
    nonrecursive: list[FactFile] = field(default_factory=list)
    recursive: list[FactFile] = field(default_factory=list)


def restore(context: EngineContext, relations: Sequence[Stored]) -> list[Restored]:
    """The facts and counts of relations of a state. Few jobs do it: small relations go together.

    Raises:
        StateError: a file is damaged.
        ResourceError: Spark gave up, or executors do not see the state.
    """
    restored: list[Restored] = []
    for together in _portions([sum(f.size for f in r.files) for r in relations], _TOGETHER * context.cluster.buckets):
        restored += _restore(context, [relations[i] for i in together])
    return restored


def _restore(context: EngineContext, relations: Sequence[Stored]) -> list[Restored]:
    cluster = context.cluster
    sources = tuple((number, file) for number, stored in enumerate(relations) for file in stored.files)
    if not sources:
        return [Restored() for _ in relations]
    count = min(len(sources), cluster.buckets)
    opening = OpenTask(tuple(relations), sources, cluster.buckets, count)
    names = ", ".join(stored.relation.name for stored in relations)
    stages: list[Stage] = [opening, RestoreTask(opening, str(cluster.folder))]
    rows = cluster.execute(f"open {names[:60]}", count, stages, context.jobs.run.look)
    found, _ = cluster.gather(rows, 2 * len(relations))  # first of all, so that files that are not needed are removed
    for row in rows:
        if row["what"] == "problem":
            _complain(bytes(row["payload"]))
    made = []
    for explicit, materialised in zip(found[::2], found[1::2], strict=True):
        apart = {file.bucket for file in materialised.facts}
        shared = [file for file in explicit.facts if file.bucket not in apart]
        facts = [*materialised.facts, *shared]
        made.append(Restored(explicit.facts, facts, explicit.amounts, materialised.amounts))
    return made


def _complain(payload: bytes) -> None:
    """Passes on what a task found wrong with a file; what only tasks do not find is where they do not look."""
    file, problems = pickle.loads(payload)  # noqa: S301 - our own tasks wrote it
    if file.exists() and not problems:
        raise ResourceError(Problem(errors.STATE_NOT_SHARED, {"file": file}))
    raise StateError(problems) if problems else damaged(file, "it is missing")


def _portions(sizes: Sequence[int], most_together: int) -> Iterator[range]:
    """Neighbours that are not too large together; each portion has one at least."""
    first = total = 0
    for number, size in enumerate(sizes):
        if number > first and total + size > most_together:
            yield range(first, number)
            first, total = number, 0
        total += size
    if first < len(sizes):
        yield range(first, len(sizes))


@dataclass(frozen=True, eq=False)
class OpenTask:
    """Sends rows of a state to their buckets; task i of n has the files i, i + n and so on. The number of a file is the channel of its rows."""

    relations: tuple[Stored, ...]
    sources: tuple[tuple[int, StoredFile], ...]
    buckets: int
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in worker.numbers_of(batches):
            for channel in range(number, len(self.sources), self.tasks):
                waiting: list[pa.RecordBatch] = []
                dictionary = Dictionary()
                self._send(channel, dictionary, Outbox(self.buckets, dictionary, waiting.append))
                yield from waiting
        worker.settle()

    def _send(self, channel: int, dictionary: Dictionary, outbox: Outbox) -> None:
        position, file = self.sources[channel]
        stored, path = self.relations[position], Path(file.folder, file.path)
        try:
            rows = _read(stored, file) if _exists(path) else None
        except StateError as error:
            outbox.packet(0, _PROBLEM, pickle.dumps((path, error.problems)))
            return
        if rows is None:
            outbox.packet(0, _PROBLEM, pickle.dumps((path, [])))
            return
        batch = _encode(rows, stored.relation, dictionary)
        flags, counts = _flags(rows), {name: rows[name].fill_null(0).to_numpy() for name in stored.counted}
        for bucket, places in by_bucket(buckets_of(batch, stored.shape, self.buckets, dictionary)):
            for first in range(0, len(places), _PACKED):
                chosen = places[first : first + _PACKED]
                packed = to_arrow(np.ascontiguousarray(batch[:, chosen]), stored.shape, dictionary)
                for name, values in {_FLAGS: flags, **counts}.items():
                    packed = packed.append_column(name, pa.array(values[chosen]))
                outbox.packet(bucket, channel, pack(packed))


def _exists(path: Path) -> bool:
    return path.exists()


def _read(stored: Stored, file: StoredFile) -> pa.Table:
    """The rows of a data file, every byte of which is checked."""
    strings = [name for name, kind in stored.columns if kind == "string"]
    rows = read_part(Path(file.folder), Part(file.path, file.size, 0, file.version), strings)
    if rows.column_names != table_schema(stored.columns).names:
        raise damaged(Path(file.folder, file.path), "its columns are not those of the relation")
    return rows


def _encode(rows: pa.Table, relation: Relation, dictionary: Dictionary) -> Batch:
    facts = rows
    for position, type_ in enumerate(relation.types):
        if type_ is Type.UNSIGNED:
            facts = facts.set_column(position, rows.column_names[position], rows.column(position).cast(pa.uint64()))
    return encode_table(facts, relation, dictionary)


def _flags(rows: pa.Table) -> Flags:
    gone = pc.equal(rows[OP].cast(pa.string()), "-").to_numpy()
    explicit = pc.equal(rows[ORIGIN].cast(pa.string()), "explicit").to_numpy()
    flags: Flags = (_GONE * gone + _EXPLICIT * explicit).astype(np.int8)
    return flags


@dataclass(frozen=True, eq=False)
class RestoreTask:
    """Keeps in one bucket what the newest version says of each fact, and leaves it in files: target 2n is E of relation n, with C_nr; 2n + 1 is I, with C_r."""

    opening: OpenTask
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bucket, dictionary = worker.bucket_of_task(), Dictionary()
        held: dict[int, _Newest] = {}
        for batch in batches:
            for channel, payload in zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True):
                if channel == _PROBLEM:
                    yield outcome(0, bucket, "problem", None, payload)
                    continue
                number, file = self.opening.sources[channel]
                if number not in held:
                    held[number] = _Newest(self.opening.relations[number], dictionary)
                held[number].receive(unpack(payload), file.version)
        for number, newest in sorted(held.items()):
            for target, what, facts in newest.results():
                written = write_file(facts, Path(self.folder), bucket)
                yield outcome(2 * number + target, bucket, what, written, b"", facts.num_rows)
        worker.settle()


class _Newest:
    """The facts of a relation in a bucket, with what the newest version that has come by says of each.

    Invariant: `versions` is the version that said it, by row; 0 is older than any.
    """

    def __init__(self, stored: Stored, dictionary: Dictionary) -> None:
        self._stored, self._dictionary = stored, dictionary
        self._table = Table(stored.shape.arity)
        self._versions, self._flags = np.zeros(0, np.int64), np.zeros(0, np.int8)
        self._counts = {name: np.zeros(0, np.int64) for name in stored.counted}

    def receive(self, packed: pa.Table, version: int) -> None:
        """Takes in rows of one version, in which no fact is twice."""
        batch, _ = from_arrow(packed, self._stored.shape, self._dictionary)
        rows = self._table.locate(batch)
        self._make_room()
        newer = np.flatnonzero(self._versions[rows] < version)
        rows = rows[newer]
        self._versions[rows] = version
        self._flags[rows] = packed[_FLAGS].to_numpy()[newer]
        for name, counts in self._counts.items():
            counts[rows] = packed[name].to_numpy()[newer]

    def _make_room(self) -> None:
        known, wanted = len(self._versions), self._table.count
        if wanted > known:
            more = max(wanted, 2 * known) - known
            self._versions, self._flags = np.pad(self._versions, (0, more)), np.pad(self._flags, (0, more))
            self._counts = {name: np.pad(counts, (0, more)) for name, counts in self._counts.items()}

    def results(self) -> Iterator[tuple[int, str, pa.Table]]:
        """What there is: for target 0 or 1 `facts` or `amounts`."""
        flags = self._flags[: self._table.count]
        there = np.full(len(flags), fill_value=True) if self._stored.every else (flags & _GONE) == 0
        materialised = np.flatnonzero(there).astype(np.int32)
        explicit = np.flatnonzero(there & ((flags & _EXPLICIT) != 0)).astype(np.int32)
        if len(explicit):
            yield 0, "facts", self._facts(explicit)
        if len(explicit) < len(materialised):
            yield 1, "facts", self._facts(materialised)
        for name, counts in self._counts.items():
            counted = materialised[counts[materialised] != 0]
            if len(counted):
                yield (0 if name == NONRECURSIVE else 1), "amounts", self._facts(counted, counts[counted])

    def _facts(self, rows: Rows, amounts: Amounts | None = None) -> pa.Table:
        return to_arrow(self._table.take(rows), self._stored.shape, self._dictionary, amounts)


# --- from buckets to a state ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Described:
    """Facts of a relation of which something is to be told, and what it takes to tell it. No fact is in two of the first three."""

    relation: Relation
    shape: Shape
    gone: Expression | None = None
    come: Expression | None = None
    same: Expression | None = None
    explicit: Expression | None = None
    nonrecursive: Counted | None = None  # None: these counts are not told
    recursive: Counted | None = None

    @property
    def most(self) -> int:
        """How many facts there are at most."""
        return most(self.gone) + most(self.come) + most(self.same)


def describe(context: EngineContext, wanted: Sequence[Described], most_together: int) -> Iterator[list[list[FactFile]]]:
    """Portions of files that tell of facts, for one after the other; a job is run when its portion is asked for.

    Beside the facts the files have the columns `OP` (`GONE`, `COME` or `SAME`), `EXPLICIT`, and `NONRECURSIVE` and `RECURSIVE` if they are told.
    """
    cluster = context.cluster
    for together in _portions([described.most for described in wanted], most_together):
        some = tuple(wanted[i] for i in together)
        names = ", ".join(described.relation.name for described in some)
        task = DescribeTask(some, str(cluster.folder))
        found, _ = context.execute(f"describe {names[:60]}", cluster.buckets, [task], len(some))
        yield [one.facts for one in found]


@dataclass(frozen=True, eq=False)
class DescribeTask:
    """Tells of facts in one bucket."""

    wanted: tuple[Described, ...]
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:  # Spark uses a worker again only if it has read its input to the end
            pass
        bucket = worker.bucket_of_task()
        for number, described in enumerate(self.wanted):
            facts = _told(described, bucket)
            if facts is not None:
                file = write_file(facts, Path(self.folder), bucket)
                yield outcome(number, bucket, "facts", file, b"", facts.num_rows)
        worker.settle()


def _told(described: Described, bucket: int) -> pa.Table | None:
    """What there is to tell of facts in a bucket; None if there are none."""
    name, dictionary = described.relation.name, Dictionary()
    told = {GONE: described.gone, COME: described.come, SAME: described.same}
    everything: Expression | None = None
    for expression in told.values():
        everything = combined("|", everything, expression)
    # Of the explicit facts, which may be many, only those among the others are wanted.
    explicit = combined("&", everything, described.explicit)
    holding = TaskTable(name, described.shape, dictionary)
    holding.load([e for e in (*told.values(), explicit) if e is not None], (bucket,))
    found = {op: holding.view(expression).rows(name) for op, expression in told.items() if expression is not None}
    rows = np.concatenate([np.zeros(0, np.int32), *found.values()]).astype(np.int32, copy=False)
    if not len(rows):
        return None
    facts = to_arrow(holding.table.take(rows), described.shape, dictionary)
    ops = np.repeat(np.array(list(found), np.int8), [len(some) for some in found.values()])
    facts = facts.append_column(OP, pa.array(ops))
    inside = np.zeros(len(rows), np.bool_) if explicit is None else holding.view(explicit).mask(name, rows)
    facts = facts.append_column(EXPLICIT, pa.array(inside))
    for column, counted in ((NONRECURSIVE, described.nonrecursive), (RECURSIVE, described.recursive)):
        if counted is not None:
            facts = facts.append_column(column, pa.array(holding.sums(counted, (bucket,))[rows]))
    return facts
