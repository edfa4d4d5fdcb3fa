"""Tasks that evaluate rules, or read given facts, and send what they find; and tasks that turn bindings of aggregates into heads."""

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
from evermat.language import Relation, Rule
from evermat.plan import STARTING, Plan, Role
from evermat.spark.engine.tasks import worker
from evermat.spark.engine.tasks.serialization import Part, Shape, from_arrow, unpack
from evermat.spark.engine.tasks.set_expressions import Expression, Files
from evermat.spark.engine.tasks.task_table import TaskTable
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
from evermat.spark.engine.tasks.worker_cache import cached

_FLUSH = 1 << 22  # distinct heads that a task holds before it sends them

Weights = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Read:
    """What a step of a plan reads: facts of a relation under the name that the plan has for them."""

    name: str
    shape: Shape
    role: Role
    expression: Expression | None  # None: nothing


@dataclass(frozen=True, eq=False)
class Derivation:
    """A plan, where each step reads from, and the channel of what it finds.

    Of the relation named `own` a task reads its own buckets only, so that every instance is found by exactly one task; without it the first task
    does all. The relation named `chunked` is too large to be held and is read a few buckets at a time.
    """

    plan: Plan
    channel: int
    counted: bool
    reads: tuple[Read, ...]
    own: str | None = None
    chunked: str | None = None
    chunk: int = 1  # buckets at a time


class _Outgoing:
    """What is found for one channel: each fact once, with how often it was found if that is counted."""

    def __init__(self, number: int, channel: Channel, outbox: Outbox, figures: Figures, *, counted: bool) -> None:
        self._number, self._channel, self._sending, self._figures, self._counted = (
            number,
            channel,
            outbox,
            figures,
            counted,
        )
        self._begin()

    def _begin(self) -> None:
        self._table = Table(self._channel.shape.arity)
        self._counter = Counter(self._table)

    def sink(self, batch: Batch, n: int, weights: Weights | None) -> None:
        """Takes in facts."""
        self._figures.instances += n if weights is None else int(weights.sum())
        if self._counted:
            self._counter.add_tuples(batch, n, weights)
        else:
            self._table.add_new(batch, 0, n)
        if self._table.count > _FLUSH:
            self.flush()

    def flush(self) -> None:
        """Sends what there is."""
        if not self._table.count:
            return
        for rows in self._table.scan(None, chunk=_FLUSH):
            amounts = self._counter.get(rows) if self._counted else None
            self._sending.facts(self._number, self._table.take(rows), self._channel.shape, amounts)
        self._begin()


@dataclass(frozen=True, eq=False)
class DeriveTask(SendTask):
    """Evaluates rules."""

    derivations: tuple[Derivation, ...]

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
        """The facts that all derivations read, but for those that are too many to be held."""
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
                held[name] = cached(name, held[name].shape, first, part, dictionary)
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
    """Evaluates one plan over what is held."""
    selections: dict[tuple[Role, str], Selection] = {}
    for read in derivation.reads:
        if read.expression is None:
            selections[read.role, read.name] = Selection(0, 0)
        else:
            view = held[read.name].view(read.expression)
            selections[read.role, read.name] = (
                view.start(read.name) if read.role in STARTING else view.select(read.name)
            )

    def select(role: Role, relation: Relation) -> Selection:
        return selections[role, relation.name]

    tables = {name: holding.table for name, holding in held.items()}
    pipeline = Pipeline(
        derivation.plan, EvaluationContext(tables, dictionary, Buffers(), Jobs(Run())), counted=derivation.counted
    )
    pipeline.run(select, sink)
    figures.matches += pipeline.matches
    if pipeline.undefined:
        place = derivation.plan.rule.span.start
        figures.undefined[place] = figures.undefined.get(place, 0) + pipeline.undefined


# --- loading -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GivenFile:
    """An Arrow file with facts of a relation, as `reader` writes them, and the channel that they go to."""

    path: str
    relation: Relation
    channel: int


@dataclass(frozen=True, eq=False)
class LoadTask(SendTask):
    """Sends given facts to their buckets; task i of n has the files i, i + n and so on."""

    given: tuple[GivenFile, ...]

    def send(self, numbers: Sequence[int], dictionary: Dictionary, outbox: Outbox, figures: Figures) -> None:
        del figures
        for given in (file for number in numbers for file in self.given[number :: self.tasks]):
            with pa.memory_map(given.path) as source:
                reader = pa.ipc.open_file(source)
                for number in range(reader.num_record_batches):
                    facts = encode_table(reader.get_batch(number), given.relation, dictionary)
                    outbox.facts(given.channel, facts, self.channels[given.channel].shape, None)


# --- grouping ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GroupTask:
    """Turns the bindings of aggregates into heads: all bindings of a group are in one task. All else is sent on."""

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
                if one.groups is not None and not _keys(one.groups):
                    group_of(one)
        for number, payload in packets_of(batches):
            channel = None if number == FIGURES else self.channels[number]
            if channel is None or channel.groups is None:
                outbox.packet(bucket, number, payload)  # it is where it belongs already
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


def _keys(rule: Rule) -> int:
    assert rule.aggregate is not None
    return len(rule.aggregate.keys)
