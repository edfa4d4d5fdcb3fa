"""Between buckets and a state directory: its data files become files of sets, and facts become rows of it.

`OpenTask` reads data files of a state and sends their rows to buckets, where `RestoreTask` keeps the newest row of each fact. The other way,
`DescribeTask` describes the facts of a bucket: the change, the origin and the counts of each.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import Dictionary, Rows, Table, encode_table, grown
from evermat.core import EvermatError, Problem, ResourceError, StateError
from evermat.core import error_catalogue as errors
from evermat.engine import Op
from evermat.language import Relation
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
from evermat.store import NONRECURSIVE, OP, ORIGIN, VERSION, Columns, Location, Part, damaged, exists, read_current

EXPLICIT = "explicit"  # the column for whether a fact is explicit

_PACKED = 1 << 20  # rows that are sent together
_DELETED, _EXPLICIT = 1, 2  # bits of the flags that are sent with a row
_FLAGS = "flags"
_PROBLEM = -1  # the channel of problems with a file
_TOGETHER = 1 << 26  # bytes of data files that a task gets at a time, about

Flags = npt.NDArray[np.int8]


# --- from a state to buckets ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Stored:
    """A relation in a version of a state: its data files in a folder, and the wanted columns. No fact is twice in a version."""

    relation: Relation
    shape: Shape
    columns: Columns
    folder: Location
    version: int
    files: tuple[Part, ...]
    counted: tuple[str, ...] = ()  # the columns of wanted counts


@dataclass
class Restored:
    """Files of the facts and counts of a relation. Where all facts of a bucket are explicit, E and I share a file."""

    explicit: list[FactFile] = field(default_factory=list)
    materialised: list[FactFile] = field(default_factory=list)
    nonrecursive: list[FactFile] = field(default_factory=list)
    recursive: list[FactFile] = field(default_factory=list)


def restore(context: EngineContext, relations: Sequence[Stored]) -> list[Restored]:
    """The facts and counts of relations of a state. One job restores many small relations.

    Raises:
        StateError: a file is damaged.
        ResourceError: Spark failed, or executors do not see the state.
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
    with cluster.results() as folder:
        stages: list[Stage] = [opening, RestoreTask(opening, folder)]
        rows = cluster.execute(f"open {names[:60]}", count, stages, context.jobs.run.look)
        for row in rows:
            if row["what"] == "problem":
                raise _error(bytes(row["payload"]))
        found, _ = cluster.gather(rows, 2 * len(relations))
    made = []
    for explicit, materialised in zip(found[::2], found[1::2], strict=True):
        apart = {file.bucket for file in materialised.facts}
        shared = [file for file in explicit.facts if file.bucket not in apart]
        facts = [*materialised.facts, *shared]
        made.append(Restored(explicit.facts, facts, explicit.amounts, materialised.amounts))
    return made


def _error(payload: bytes) -> EvermatError:
    """The error for a task's problems with a file; if only tasks miss a file, executors do not see the state."""
    file, problems = pickle.loads(payload)  # noqa: S301 - our own tasks wrote it
    if problems:
        return StateError(problems)
    if exists(file):
        return ResourceError(Problem(errors.STATE_NOT_SHARED, {"file": file}))
    return damaged(file, "it is missing")


def _portions(sizes: Sequence[int], most_together: int) -> Iterator[range]:
    """Ranges of neighbours whose total size is limited; each has one at least."""
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
    sources: tuple[tuple[int, Part], ...]
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
        stored = self.relations[position]
        path = stored.folder / file.path
        try:
            if not _exists(path):
                outbox.packet(0, _PROBLEM, pickle.dumps((path, [])))
                return
            rows = read_current(stored.folder, file, stored.columns, stored.version)
        except StateError as error:
            outbox.packet(0, _PROBLEM, pickle.dumps((path, error.problems)))
            return
        if not rows.num_rows:  # the snapshot of an empty relation
            return
        batch = encode_table(rows, stored.relation, dictionary)
        flags, versions = _flags(rows), rows[VERSION].to_numpy()
        counts = {name: rows[name].fill_null(0).to_numpy() for name in stored.counted}
        for bucket, positions in by_bucket(buckets_of(batch, stored.shape, self.buckets, dictionary)):
            for first in range(0, len(positions), _PACKED):
                chosen = positions[first : first + _PACKED]
                packed = to_arrow(np.ascontiguousarray(batch[:, chosen]), stored.shape, dictionary)
                for name, values in {_FLAGS: flags, VERSION: versions, **counts}.items():
                    packed = packed.append_column(name, pa.array(values[chosen]))
                outbox.packet(bucket, channel, pack(packed))


def _exists(path: Location) -> bool:
    return exists(path)


def _flags(rows: pa.Table) -> Flags:
    deleted = pc.equal(rows[OP].cast(pa.string()), "-").to_numpy()
    explicit = pc.equal(rows[ORIGIN].cast(pa.string()), "explicit").to_numpy()
    flags: Flags = (_DELETED * deleted + _EXPLICIT * explicit).astype(np.int8)
    return flags


@dataclass(frozen=True, eq=False)
class RestoreTask:
    """Writes the newest row of each fact of one bucket to files: target 2n is E of relation n, with C_nr; 2n + 1 is I, with C_r."""

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
                number, _ = self.opening.sources[channel]
                if number not in held:
                    held[number] = _Newest(self.opening.relations[number], dictionary)
                held[number].receive(unpack(payload))
        for number, newest in sorted(held.items()):
            for target, what, facts in newest.results():
                written = write_file(facts, self.folder, bucket)
                yield outcome(2 * number + target, bucket, what, written, b"", facts.num_rows)
        worker.settle()


class _Newest:
    """The facts of a relation in a bucket, each as in its newest row so far.

    Invariant: `versions` has the version of that row, by fact; 0 is older than any.
    """

    def __init__(self, stored: Stored, dictionary: Dictionary) -> None:
        self._stored, self._dictionary = stored, dictionary
        self._table = Table(stored.shape.arity)
        self._versions, self._flags = np.zeros(0, np.int64), np.zeros(0, np.int8)
        self._counts = {name: np.zeros(0, np.int64) for name in stored.counted}

    def receive(self, packed: pa.Table) -> None:
        """Adds rows of a file, in which no fact is twice."""
        batch, _ = from_arrow(packed, self._stored.shape, self._dictionary)
        rows = self._table.locate(batch)
        count = self._table.count
        self._versions, self._flags = grown(self._versions, count), grown(self._flags, count)
        self._counts = {name: grown(counts, count) for name, counts in self._counts.items()}
        versions = packed[VERSION].to_numpy()
        newer = np.flatnonzero(self._versions[rows] < versions)
        rows = rows[newer]
        self._versions[rows] = versions[newer]
        self._flags[rows] = packed[_FLAGS].to_numpy()[newer]
        for name, counts in self._counts.items():
            counts[rows] = packed[name].to_numpy()[newer]

    def results(self) -> Iterator[tuple[int, str, pa.Table]]:
        """The results: for target 0 or 1 `facts` or `amounts`."""
        flags = self._flags[: self._table.count]
        wanted = (flags & _DELETED) == 0
        materialised = np.flatnonzero(wanted).astype(np.int32)
        explicit = np.flatnonzero(wanted & ((flags & _EXPLICIT) != 0)).astype(np.int32)
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
    """Facts of a relation by their change, which are disjoint; the explicit facts; and the counts that are kept, by column."""

    relation: Relation
    shape: Shape
    deleted: Expression | None = None
    inserted: Expression | None = None
    unchanged: Expression | None = None
    explicit: Expression | None = None
    counts: Mapping[str, Counted] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """An upper bound of the number of facts."""
        return most(self.deleted) + most(self.inserted) + most(self.unchanged)


def describe(context: EngineContext, wanted: Sequence[Described], most_together: int) -> Iterator[list[list[FactFile]]]:
    """Yields files that describe facts, for several relations at a time; the job of each portion runs when it is pulled.

    Beside the facts the files have the columns `OP` (an `Op`), `EXPLICIT`, and `NONRECURSIVE` and `RECURSIVE` if these counts are kept.
    """
    cluster = context.cluster
    for together in _portions([described.most for described in wanted], most_together):
        some = tuple(wanted[i] for i in together)
        names = ", ".join(described.relation.name for described in some)
        with cluster.results() as folder:
            task = DescribeTask(some, folder)
            found, _ = context.execute(f"describe {names[:60]}", cluster.buckets, [task], len(some))
        yield [one.facts for one in found]


@dataclass(frozen=True, eq=False)
class DescribeTask:
    """Describes the facts of one bucket."""

    wanted: tuple[Described, ...]
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:  # Spark uses a worker again only if it has read its input to the end
            pass
        bucket = worker.bucket_of_task()
        for number, described in enumerate(self.wanted):
            facts = description(described, bucket)
            if facts is not None:
                file = write_file(facts, self.folder, bucket)
                yield outcome(number, bucket, "facts", file, b"", facts.num_rows)
        worker.settle()


def description(described: Described, bucket: int) -> pa.Table | None:
    """The described facts of a bucket; None if there are none."""
    name, dictionary = described.relation.name, Dictionary()
    changes = {Op.DELETED: described.deleted, Op.INSERTED: described.inserted, Op.UNCHANGED: described.unchanged}
    present = {op: expression for op, expression in changes.items() if expression is not None}
    everything: Expression | None = None
    for expression in present.values():
        everything = combined("|", everything, expression)
    # Only those explicit facts, which may be many, are wanted that are among the others.
    explicit = combined("&", everything, described.explicit)
    holding = TaskTable(name, described.shape, dictionary)
    holding.load([*present.values(), *([] if explicit is None else [explicit])], (bucket,))
    found = {op: holding.view(expression).rows(name) for op, expression in present.items()}
    rows = np.concatenate([np.zeros(0, np.int32), *found.values()]).astype(np.int32, copy=False)
    if not len(rows):
        return None
    facts = to_arrow(holding.table.take(rows), described.shape, dictionary)
    ops = np.repeat(np.array(list(found), np.int8), [len(some) for some in found.values()])
    facts = facts.append_column(OP, pa.array(ops))
    inside = np.zeros(len(rows), np.bool_) if explicit is None else holding.view(explicit).mask(name, rows)
    facts = facts.append_column(EXPLICIT, pa.array(inside))
    for column, counted in described.counts.items():
        facts = facts.append_column(column, pa.array(holding.sums(counted, (bucket,))[rows]))
    return facts
