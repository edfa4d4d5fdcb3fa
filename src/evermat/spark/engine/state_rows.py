"""Facts of a state on a cluster as rows of a state directory: large relations are written by tasks, small ones come to the driver.

A task describes the facts of its buckets, and writes them as data files of the state; the driver gets the names of these files. A few rows
would become as many files as there are tasks, so the driver writes them: tasks describe them in files, which it reads a piece at a time.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from evermat.columns import saved_numbers
from evermat.engine import SavedRows, WritableRows, saved_rows
from evermat.language import Type
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.saved import EXPLICIT, Described, describe, description
from evermat.spark.engine.tasks import worker
from evermat.spark.engine.tasks.serialization import FactFile
from evermat.spark.engine.tasks.worker import outcome
from evermat.spark.scratch_files import parquet_file
from evermat.store import (
    NONRECURSIVE,
    OP,
    RECURSIVE,
    Location,
    Part,
    RemoteRows,
    RemoteWriter,
    Target,
    is_token_seen,
    location_of,
    write_parts,
)

LARGE = 1 << 18  # facts of a relation that tasks write
PER_FILE = 1 << 19  # facts for which a task of its own is worth while
_PIECE = 1 << 19  # rows that are held at a time
_TOGETHER = 1 << 23  # facts of small relations that one job describes
_KINDS = {NONRECURSIVE: saved_rows.NONRECURSIVE, RECURSIVE: saved_rows.RECURSIVE}

Form = Callable[[SavedRows], pa.Table]


def described_rows(context: EngineContext, described: Mapping[str, Described]) -> Mapping[str, WritableRows]:
    """The rows of relations that have some; jobs run when they are read or written."""
    wanted = {name: one for name, one in described.items() if one.most}
    together = _Rows(context, wanted)
    return {name: _RelationRows(together, name) for name in wanted}


class _Rows(RemoteWriter):
    """The rows of all relations of one version."""

    def __init__(self, context: EngineContext, wanted: Mapping[str, Described]) -> None:
        self._context, self.wanted = context, wanted
        self._written: set[str] = set()  # by tasks
        self._waiting: dict[str, list[FactFile]] = {}

    def read(self, name: str) -> Iterator[SavedRows]:
        """The rows of a relation, a piece at a time."""
        if name in self._written:  # in vain: this process does not see the files
            self._waiting[name] = next(describe(self._context, [self.wanted[name]], _TOGETHER))[0]
        while name not in self._waiting:
            # Relations are described in the order of `wanted`, which is mostly the one in which they are read.
            self._waiting.update((next(self._names), files) for files in next(self._portions))
        for file in self._waiting.pop(name):
            yield from _rows_of_file(file, self.wanted[name])

    @cached_property
    def _names(self) -> Iterator[str]:
        return iter([name for name in self.wanted if name not in self._written])

    @cached_property
    def _portions(self) -> Iterator[list[list[FactFile]]]:
        rest = [one for name, one in self.wanted.items() if name not in self._written]
        return describe(self._context, rest, _TOGETHER)

    def write(self, wanted: Sequence[tuple[RemoteRows, Target]], token: Location | None) -> list[list[Part]] | None:
        rows = [some for some, _ in wanted if isinstance(some, _RemoteRows)]
        cluster = self._context.cluster
        orders = tuple(
            _Order(self.wanted[some.name], some.form, target, _tasks_for(self.wanted[some.name].most, cluster.buckets))
            for some, (_, target) in zip(rows, wanted, strict=True)
        )
        task = WriteTask(orders, cluster.buckets, None if token is None else str(token))
        tasks = max(order.tasks for order in orders)
        what = f"write {', '.join(some.name for some in rows)[:60]}"
        parts: list[list[Part]] = [[] for _ in orders]
        for row in cluster.execute(what, tasks, [task], self._context.jobs.run.look):
            if row["what"] == "unseen":
                return None
            found = pickle.loads(bytes(row["payload"]))  # noqa: S301 - our own tasks wrote it
            if row["what"] == "failure":
                raise OSError(*found)
            parts[row["target"]].append(found)
        self._written |= {some.name for some in rows}
        return parts


def _tasks_for(facts: int, buckets: int) -> int:
    return max(1, min(buckets, facts // PER_FILE))


class _RelationRows(WritableRows):
    """The rows of one relation."""

    def __init__(self, together: _Rows, name: str) -> None:
        self._together, self._name = together, name

    def __iter__(self) -> Iterator[SavedRows]:
        return self._together.read(self._name)

    def in_form(self, form: Form) -> RemoteRows:
        return _RemoteRows(self._together, self._name, form)


class _RemoteRows(RemoteRows):
    """The rows of one relation in the form that a state directory has for them."""

    def __init__(self, together: _Rows, name: str, form: Form) -> None:
        self.writer: _Rows = together
        self.name, self.form = name, form
        self.is_large = together.wanted[name].most >= LARGE

    def __iter__(self) -> Iterator[pa.Table]:
        return map(self.form, self.writer.read(self.name))


@dataclass(frozen=True, eq=False)
class _Order:
    """A relation that so many tasks write."""

    described: Described
    form: Form
    target: Target
    tasks: int


@dataclass(frozen=True, eq=False)
class WriteTask:
    """Writes facts as data files of a state; task i of the n of a relation has the buckets i, i + n and so on."""

    orders: tuple[_Order, ...]
    buckets: int
    token: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in worker.numbers_of(batches):
            yield from self._write(task)
        worker.settle()

    def _write(self, task: int) -> Iterator[pa.RecordBatch]:
        if not is_token_seen(None if self.token is None else location_of(self.token)):
            yield outcome(0, 0, "unseen", None, b"")
            return
        for number, order in enumerate(self.orders):
            if task < order.tasks:
                try:
                    for part in write_parts(order.target, self._rows(order, task)):
                        yield outcome(number, 0, "part", None, pickle.dumps(part), part.rows)
                except OSError as error:
                    failure = pickle.dumps((error.errno, error.strerror or str(error)))
                    yield outcome(number, 0, "failure", None, failure)
                    return

    def _rows(self, order: _Order, task: int) -> Iterator[pa.Table]:
        for bucket in range(task, self.buckets, order.tasks):
            facts = description(order.described, bucket)
            if facts is not None:
                for piece in facts.combine_chunks().to_batches(_PIECE):
                    yield order.form(_saved_rows(piece, order.described))


def _rows_of_file(file: FactFile, described: Described) -> Iterator[SavedRows]:
    """The rows of a file that describes facts, a piece at a time."""
    texts = [f"c{position}" for position, is_text in enumerate(described.shape.texts) if is_text]
    with parquet_file(location_of(file.path), read_dictionary=texts) as stored:
        for piece in stored.iter_batches(_PIECE):
            yield _saved_rows(piece, described)


def _saved_rows(piece: pa.RecordBatch, described: Described) -> SavedRows:
    """Described facts as rows."""
    facts = [
        column if type_ in Type.SYMBOL | Type.TERM else saved_numbers(column.to_numpy(), type_)
        for column, type_ in zip(piece.columns, described.relation.types, strict=False)
    ]
    explicit = piece.column(EXPLICIT).to_numpy(zero_copy_only=False)
    counts = {kind: piece.column(name).to_numpy() for name, kind in _KINDS.items() if name in piece.schema.names}
    return SavedRows(facts, piece.column(OP).to_numpy(), explicit, counts)
