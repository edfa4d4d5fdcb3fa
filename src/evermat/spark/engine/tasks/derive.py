"""Tasks that evaluate rules, or read files of facts, and send facts; and tasks that turn bindings of aggregates into heads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.columns import (
    Batch,
    Buffers,
    Counter,
    Dictionary,
    EvaluationContext,
    Groups,
    Pipeline,
    Selection,
    Sink,
    Table,
    encode_table,
)
from evermat.engine import Jobs, Run
from evermat.language import Relation
from evermat.plan import STARTING, Plan, Role
from evermat.spark.engine.tasks import worker
from evermat.spark.engine.tasks.serialization import Part, Shape, from_arrow, unpack
from evermat.spark.engine.tasks.set_expressions import Expression, Files
from evermat.spark.engine.tasks.task_table import TaskTable, cached
from evermat.spark.engine.tasks.worker import (
    FIGURES,
    Channel,
    Figures,
    Outbox,
    SendTask,
    packets_of,
    streamed,
    worker_dictionary,
)
from evermat.spark.scratch_files import reading
from evermat.store import location_of

_FLUSH = 1 << 22  # distinct heads that a task holds before it sends them

Weights = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Read:
    """Facts of a relation that a step of a plan reads, under the name that the plan has for them."""

    name: str
    shape: Shape
    role: Role
    expression: Expression | None  # None: nothing


@dataclass(frozen=True, eq=False)
class Derivation:
    """A plan, the facts that its steps read, and the channel of its heads.

    A task reads only its own buckets of the relation named `own`, so that exactly one task finds every instance; without it the first task
    finds all. The relation named `chunked` is too large to be held and is read a few buckets at a time.
    """

    plan: Plan
    channel: int
    counted: bool
    reads: tuple[Read, ...]
    own: str | None = None
    chunked: str | None = None
    chunk: int = 1  # buckets at a time


class _Outgoing:
    """Facts for one channel: each once, with the number of its derivations if that is counted."""

    def __init__(self, number: int, channel: Channel, outbox: Outbox, figures: Figures, *, counted: bool) -> None:
        self._number, self._channel, self._counted = number, channel, counted
        self._outbox, self._figures = outbox, figures
        self._begin()

    def _begin(self) -> None:
        self._table = Table(self._channel.shape.arity)
        self._counter = Counter(self._table)

    def sink(self, batch: Batch, n: int, weights: Weights | None) -> None:
        self._figures.instances += n if weights is None else int(weights.sum())
        if self._counted:
            self._counter.add_tuples(batch, n, weights)
        else:
            self._table.add_new(batch, 0, n)
        if self._table.count > _FLUSH:
            self.flush()

    def flush(self) -> None:
        if not self._table.count:
            return
        for rows in self._table.scan(None, chunk=_FLUSH):
            amounts = self._counter.get(rows) if self._counted else None
            self._outbox.facts(self._number, self._table.take(rows), self._channel.shape, amounts)
        self._begin()


@dataclass(frozen=True, eq=False)
class DeriveTask(SendTask):
    """Evaluates rules."""

    derivations: tuple[Derivation, ...]
    most_cached: int  # facts that a worker keeps from job to job

    def send(self, numbers: Sequence[int], dictionary: Dictionary, outbox: Outbox, figures: Figures) -> None:
        outgoing = {
            (d.channel, d.counted): _Outgoing(d.channel, self.channels[d.channel], outbox, figures, counted=d.counted)
            for d in self.derivations
        }
        for number in numbers:
            held = self._held(number, Part(self.buckets, self.tasks, number), dictionary)
            for derivation in self.derivations:
                if derivation.own is not None or number == 0:
                    sink = outgoing[derivation.channel, derivation.counted].sink
                    self._evaluate(derivation, held, sink, figures, dictionary)
        for waiting in outgoing.values():
            waiting.flush()

    def _held(self, number: int, own: Part, dictionary: Dictionary) -> dict[str, TaskTable]:
        """The facts that all derivations read, except for relations that are too large to be held."""
        wanted: dict[str, list[Expression]] = {}
        held: dict[str, TaskTable] = {}
        everything = Part(self.buckets, 1, 0)
        mine: set[str] = set()
        for derivation in self.derivations:
            if derivation.own is None and number > 0:
                continue
            for read in derivation.reads:
                if read.name != derivation.chunked:
                    held.setdefault(read.name, TaskTable(read.name, read.shape, dictionary))
                    if read.expression is not None:
                        wanted.setdefault(read.name, []).append(read.expression)
            if derivation.own is not None:
                mine.add(derivation.own)
        for name, expressions in wanted.items():
            part = own if name in mine else everything
            first = expressions[0]
            if isinstance(first, Files) and all(expression is first for expression in expressions):
                held[name] = cached(name, held[name].shape, first, part, dictionary, self.most_cached)
            else:
                held[name].load(expressions, part)
        return held

    def _evaluate(
        self,
        derivation: Derivation,
        held: Mapping[str, TaskTable],
        sink: Sink,
        figures: Figures,
        dictionary: Dictionary,
    ) -> None:
        if derivation.chunked is None:
            _run(derivation, held, sink, figures, dictionary)
            return
        reads = [read for read in derivation.reads if read.name == derivation.chunked]
        for first in range(0, self.buckets, derivation.chunk):
            chunk = TaskTable(derivation.chunked, reads[0].shape, dictionary)
            chunk.load([r.expression for r in reads if r.expression], range(first, first + derivation.chunk))
            _run(derivation, {**held, derivation.chunked: chunk}, sink, figures, dictionary)


def _run(
    derivation: Derivation, held: Mapping[str, TaskTable], sink: Sink, figures: Figures, dictionary: Dictionary
) -> None:
    """Evaluates one plan over the held facts."""
    selections: dict[tuple[Role, str], Selection] = {}
    for read in derivation.reads:
        selection = Selection(0, 0)
        if read.expression is not None:
            view = held[read.name].view(read.expression)
            selection = view.start(read.name) if read.role in STARTING else view.select(read.name)
        selections[read.role, read.name] = selection
    tables = {name: table.table for name, table in held.items()}
    context = EvaluationContext(tables, dictionary, Buffers(), Jobs(Run()))
    pipeline = Pipeline(derivation.plan, context, counted=derivation.counted)
    pipeline.run(lambda role, relation: selections[role, relation.name], sink)
    figures.matches += pipeline.matches
    figures.undefined[derivation.plan.rule.span.start] += pipeline.undefined


# --- loading -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InputFile:
    """An Arrow file with facts of a relation, as `read_task` writes them, and the channel that they are sent to."""

    path: str
    relation: Relation
    channel: int


@dataclass(frozen=True, eq=False)
class LoadTask(SendTask):
    """Sends facts of files to their buckets; task i of n has the files i, i + n and so on."""

    inputs: tuple[InputFile, ...]

    def send(self, numbers: Sequence[int], dictionary: Dictionary, outbox: Outbox, figures: Figures) -> None:
        del figures
        for file in (file for number in numbers for file in self.inputs[number :: self.tasks]):
            with reading(location_of(file.path)) as source:
                reader = pa.ipc.open_file(source)
                for number in range(reader.num_record_batches):
                    facts = encode_table(reader.get_batch(number), file.relation, dictionary)
                    outbox.facts(file.channel, facts, self.channels[file.channel].shape, None)


# --- grouping ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GroupTask:
    """Turns the bindings of aggregates into heads: all bindings of a group are in one task. All other packets are forwarded."""

    channels: tuple[Channel, ...]
    buckets: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return streamed(lambda send: self._group(batches, send))

    def _group(self, batches: Iterable[pa.RecordBatch], send: Callable[[pa.RecordBatch], None]) -> None:
        dictionary, bucket = worker_dictionary(), worker.bucket_of_task()
        outbox = Outbox(self.buckets, dictionary, send)
        groups: dict[int, tuple[Groups, int]] = {}

        def group_of(channel: Channel) -> Groups:
            assert channel.groups is not None
            key = id(channel.groups)
            if key not in groups:
                groups[key] = Groups(channel.groups, dictionary), channel.heads
            return groups[key][0]

        if bucket == 0:  # where the one group of an aggregate without keys is
            for one in self.channels:
                if one.groups is not None and one.groups.aggregate is not None and not one.groups.aggregate.keys:
                    group_of(one)
        for number, payload in packets_of(batches):
            channel = None if number == FIGURES else self.channels[number]
            if channel is None or channel.groups is None:
                outbox.packet(bucket, number, payload)  # it is in its bucket already
                continue
            batch, amounts = from_arrow(unpack(payload), channel.shape, dictionary)
            if channel.listing:
                group_of(channel).listed(batch, batch.shape[1], None)
            else:
                group_of(channel).collect(batch, batch.shape[1], amounts)
        for group, heads in groups.values():
            group.send(partial(self._send_heads, outbox, heads))
        outbox.figures(Figures())

    def _send_heads(self, outbox: Outbox, heads: int, batch: Batch, n: int, _weights: Weights | None) -> None:
        outbox.facts(heads, batch[:, :n], self.channels[heads].shape, np.ones(n, np.int64))
