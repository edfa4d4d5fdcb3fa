"""What tasks do. All of it is the columns engine at work on the files of some buckets; a task keeps nothing and may be run again anywhere.

A job has up to three kinds of tasks, with a shuffle in between. `Deriving` evaluates rules and sends heads to their buckets, `Grouping` turns bindings of
aggregates into heads, `Absorbing` computes in each bucket which facts are the result, and leaves them in files.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import Queue
from tempfile import TemporaryFile
from threading import Thread
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.columns.aggregates import Groups
from evermat.columns.counter import Counter
from evermat.columns.dictionary import Dictionary
from evermat.columns.levels import Buffers
from evermat.columns.operations import Sink
from evermat.columns.pipeline import Pipeline, Store
from evermat.columns.run import Jobs, Run
from evermat.columns.selection import Selection
from evermat.columns.table import Batch, Table
from evermat.columns.values import decode_arrow
from evermat.files.layout import arrow_schema
from evermat.files.parquet import parquet_schema
from evermat.plan.steps import STARTING, Plan, Role
from evermat.program.model import Relation, Rule
from evermat.spark.exchange import encode_facts
from evermat.spark.rounds.expressions import Counted, Expression, Files, generators
from evermat.spark.rounds.holding import Holding, add_amounts, batches_of
from evermat.spark.rounds.keeping import kept
from evermat.spark.rounds.packing import (
    Amounts,
    FactFile,
    Part,
    Shape,
    buckets_of,
    by_bucket,
    from_arrow,
    pack,
    to_arrow,
    unpack,
    write_file,
)

SENT = "bucket int, channel int, payload binary"
OUTCOME = "target int, bucket int, what string, path string, rows long, payload binary"

_FIGURES = -1  # the channel of figures, for the driver
_FLUSH = 1 << 22  # distinct heads that a task holds before it sends them
_PACKED = 1 << 20  # facts that travel together
_QUEUED = 8  # packets that wait to be sent
_ABSORBED = 1 << 28  # bytes of packed facts that a task absorbs at a time
_BYTES = 16  # of a packed fact, about
_SHOWN = 1 << 16  # facts in a batch for Spark
_MOST_SYMBOLS = 10_000_000  # after which a worker forgets its dictionary

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


@dataclass(frozen=True, eq=False)
class Channel:
    """Where what is found goes to: facts of a shape for a target; bindings of an aggregate rule become heads in another channel first."""

    shape: Shape
    target: int
    groups: Rule | None = None
    listing: bool = False  # only the keys of groups
    heads: int = -1


@dataclass(frozen=True, eq=False)
class Target:
    """A set of facts that is wanted: which, whether they are written to files or only counted, and how often each one arrived."""

    relation: str
    shape: Shape
    expression: Expression | None
    write: bool = True
    sign: int = 0  # of amounts that are written for the facts that arrived, or for those of `touched`
    touched: Expression | None = None
    sums: Counted | None = None  # amounts that are summed up and written


# --- the worker ----------------------------------------------------------------------------------------------

_dictionary = Dictionary()


def _worker_dictionary() -> Dictionary:
    """The symbols that this process knows; which ids they have is nobody else's business."""
    global _dictionary  # noqa: PLW0603
    if len(_dictionary) > _MOST_SYMBOLS:
        _dictionary = Dictionary()
    return _dictionary


def bucket_of_task() -> int:
    """The bucket that the task at work here has."""
    from pyspark import TaskContext  # noqa: PLC0415

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def settle() -> None:
    """Spark's worker looks for garbage after every task. What the first one has loaded stays: no need to look at it again."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def _streamed(produce: Callable[[Callable[[pa.RecordBatch], None]], None]) -> Iterator[pa.RecordBatch]:
    """What a producer hands out, while it goes on in a thread of its own: little is held."""
    queue: Queue[pa.RecordBatch | BaseException | None] = Queue(_QUEUED)

    def run() -> None:
        try:
            produce(queue.put)
            queue.put(None)
        except BaseException as error:  # noqa: BLE001  # it goes on in the thread that waits
            queue.put(error)

    Thread(target=run, daemon=True).start()
    while (found := queue.get()) is not None:
        if isinstance(found, BaseException):
            raise found
        yield found
    settle()


# --- deriving ------------------------------------------------------------------------------------------------


@dataclass
class Figures:
    """What an evaluation came across."""

    instances: int = 0
    matches: int = 0
    undefined: dict[int, int] = field(default_factory=dict)  # by the place of the rule in the text
    sent: int = 0  # facts that went to another task
    sent_bytes: int = 0
    rounds: int = 0  # within one task

    def packed(self) -> bytes:
        """As a task hands them to the driver."""
        return pickle.dumps(self)

    def add(self, other: Figures) -> None:
        """Adds those of another task."""
        self.instances += other.instances
        self.matches += other.matches
        self.sent += other.sent
        self.sent_bytes += other.sent_bytes
        self.rounds = max(self.rounds, other.rounds)
        for place, count in other.undefined.items():
            self.undefined[place] = self.undefined.get(place, 0) + count


class Sending:
    """Packs batches by bucket and sends them."""

    def __init__(self, buckets: int, dictionary: Dictionary, send: Callable[[pa.RecordBatch], None]) -> None:
        self._buckets, self._dictionary, self._send = buckets, dictionary, send
        self._sent = self._bytes = 0

    def facts(self, channel: int, batch: Batch, shape: Shape, amounts: Amounts | None) -> None:
        """Sends facts, in their order within a bucket."""
        for bucket, places in by_bucket(buckets_of(batch, shape, self._buckets, self._dictionary)):
            for first in range(0, len(places), _PACKED):
                chosen = places[first : first + _PACKED]
                part = np.ascontiguousarray(batch[:, chosen])
                table = to_arrow(part, shape, self._dictionary, None if amounts is None else amounts[chosen])
                self.packet(bucket, channel, pack(table))
                self._sent += len(chosen)

    def packet(self, bucket: int, channel: int, payload: bytes) -> None:
        """Sends bytes to a bucket."""
        self._bytes += len(payload)
        columns = [pa.array([bucket], pa.int32()), pa.array([channel], pa.int32()), pa.array([payload], pa.binary())]
        self._send(pa.RecordBatch.from_arrays(columns, names=["bucket", "channel", "payload"]))

    def figures(self, figures: Figures) -> None:
        """Sends figures, by way of the first bucket."""
        figures.sent, figures.sent_bytes = self._sent, self._bytes
        self.packet(0, _FIGURES, figures.packed())


class _Outgoing:
    """What is found for one channel: each fact once, with how often it was found if that is counted."""

    def __init__(self, number: int, channel: Channel, sending: Sending, figures: Figures, *, counted: bool) -> None:
        self._number, self._channel, self._sending, self._figures, self._counted = (
            number,
            channel,
            sending,
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
class Deriving:
    """Evaluates rules. Of n tasks, task i has the i-th of n parts of all facts."""

    derivations: tuple[Derivation, ...]
    channels: tuple[Channel, ...]
    buckets: int
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]

        def derive(send: Callable[[pa.RecordBatch], None]) -> None:
            for number in numbers:
                self._derive(number, send)

        return _streamed(derive)

    def _derive(self, number: int, send: Callable[[pa.RecordBatch], None]) -> None:
        dictionary = _worker_dictionary()
        own = Part(self.buckets, self.tasks, number)
        sending, figures = Sending(self.buckets, dictionary, send), Figures()
        outgoing = {
            (d.channel, d.counted): _Outgoing(d.channel, self.channels[d.channel], sending, figures, counted=d.counted)
            for d in self.derivations
        }
        held = self._held(number, own, dictionary)
        for derivation in self.derivations:
            if derivation.own is not None or number == 0:
                sink = outgoing[derivation.channel, derivation.counted].sink
                self._evaluate(derivation, held, sink, figures, dictionary)
        for waiting in outgoing.values():
            waiting.flush()
        sending.figures(figures)

    def _held(self, number: int, own: Part, dictionary: Dictionary) -> dict[str, Holding]:
        """The facts that all derivations read, but for those that are too many to be held."""
        wanted: dict[str, list[Expression]] = {}
        held: dict[str, Holding] = {}
        everything = Part(self.buckets, 1, 0)
        mine: set[str] = set()
        for derivation in self.derivations:
            if derivation.own is None and number > 0:
                continue
            for read in derivation.reads:
                if read.name != derivation.chunked:
                    held.setdefault(read.name, Holding(read.name, read.shape, dictionary))
                    if read.expression is not None:
                        wanted.setdefault(read.name, []).append(read.expression)
            if derivation.own is not None:
                mine.add(derivation.own)
        for name, expressions in wanted.items():
            part = own if name in mine else everything
            first = expressions[0]
            if isinstance(first, Files) and all(expression is first for expression in expressions):
                held[name] = kept(name, held[name].shape, first, part, dictionary)
            else:
                held[name].load(expressions, part)
        return held

    def _evaluate(
        self, derivation: Derivation, held: Mapping[str, Holding], sink: Sink, figures: Figures, dictionary: Dictionary
    ) -> None:
        if derivation.chunked is None:
            _run(derivation, held, sink, figures, dictionary)
            return
        reads = [read for read in derivation.reads if read.name == derivation.chunked]
        for first in range(0, self.buckets, derivation.chunk):
            chunk = Holding(derivation.chunked, reads[0].shape, dictionary)
            chunk.load([r.expression for r in reads if r.expression], range(first, first + derivation.chunk))
            _run(derivation, {**held, derivation.chunked: chunk}, sink, figures, dictionary)


def _run(
    derivation: Derivation, held: Mapping[str, Holding], sink: Sink, figures: Figures, dictionary: Dictionary
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
    pipeline = Pipeline(derivation.plan, Store(tables, dictionary, Buffers(), Jobs(Run())), counted=derivation.counted)
    pipeline.run(select, sink)
    figures.matches += pipeline.matches
    if pipeline.undefined:
        place = derivation.plan.rule.span.start
        figures.undefined[place] = figures.undefined.get(place, 0) + pipeline.undefined


# --- loading -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Given:
    """An Arrow file with facts of a relation, as `reader` writes them, and the channel that they go to."""

    path: str
    relation: Relation
    channel: int


@dataclass(frozen=True, eq=False)
class Loading:
    """Sends given facts to their buckets; task i of n has the files i, i + n and so on."""

    given: tuple[Given, ...]
    channels: tuple[Channel, ...]
    buckets: int
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = [number for batch in batches for number in batch.column(0).to_pylist()]

        def load(send: Callable[[pa.RecordBatch], None]) -> None:
            sending = Sending(self.buckets, _worker_dictionary(), send)
            for number in numbers:
                for given in self.given[number :: self.tasks]:
                    self._send(given, sending)
            sending.figures(Figures())

        return _streamed(load)

    def _send(self, given: Given, sending: Sending) -> None:
        with pa.memory_map(given.path) as source:
            reader = pa.ipc.open_file(source)
            for number in range(reader.num_record_batches):
                facts = encode_facts(reader.get_batch(number), given.relation, _worker_dictionary())
                sending.facts(given.channel, facts, self.channels[given.channel].shape, None)


# --- grouping ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Grouping:
    """Turns the bindings of aggregates into heads: all bindings of a group are in one task. What else comes is handed on."""

    channels: tuple[Channel, ...]
    buckets: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _streamed(lambda send: self._group(batches, send))

    def _group(self, batches: Iterable[pa.RecordBatch], send: Callable[[pa.RecordBatch], None]) -> None:
        dictionary, bucket = _worker_dictionary(), bucket_of_task()
        sending = Sending(self.buckets, dictionary, send)
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
        for number, payload in _packets(batches):
            channel = None if number == _FIGURES else self.channels[number]
            if channel is None or channel.groups is None:
                sending.packet(bucket, number, payload)  # it is where it belongs already
                continue
            batch, amounts = from_arrow(unpack(payload), channel.shape, dictionary)
            if channel.listing:
                group_of(channel).listed(batch, batch.shape[1], None)
            else:
                group_of(channel).collect(batch, batch.shape[1], amounts)
        for group, heads in groups.values():
            group.send(partial(self._send_heads, sending, heads))
        sending.figures(Figures())

    def _send_heads(self, sending: Sending, heads: int, batch: Batch, n: int, _weights: Weights | None) -> None:
        sending.facts(heads, batch[:, :n], self.channels[heads].shape, np.ones(n, np.int64))


def _keys(rule: Rule) -> int:
    assert rule.aggregate is not None
    return len(rule.aggregate.keys)


def _packets(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    for batch in batches:
        yield from zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True)


# --- absorbing -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Absorbing:
    """Computes the targets in one bucket."""

    targets: tuple[Target, ...]
    channels: tuple[Channel, ...]
    folder: str
    buckets: int
    receives: bool  # whether facts arrive

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bucket = bucket_of_task()
        with _Waiting() as waiting:
            if self.receives:
                for number, payload in _packets(batches):
                    if number == _FIGURES:
                        yield outcome(0, bucket, "figures", None, payload)
                    else:
                        waiting.put(number, payload)
            else:
                for _ in batches:  # Spark uses a worker again only if it has read its input to the end
                    pass
            # Too much to be held is absorbed part by part: what arrived is read again for each.
            count = 1 + (waiting.size + self._bytes(bucket)) // _ABSORBED
            for number in range(count):
                part = Part(self.buckets, self.buckets * count, bucket + self.buckets * number)
                yield from self._absorb(waiting, part, bucket)
        settle()

    def _bytes(self, bucket: int) -> int:
        """About how much is held of facts that are in files already."""
        wanted = [e for target in self.targets for e in (target.expression, target.touched) if e is not None]
        files = [f for e in wanted for leaf in generators(e) if isinstance(leaf, Files) for f in leaf.files]
        files += [f for target in self.targets if target.sums is not None for f in target.sums.files]
        return sum(_BYTES * file.rows for file in files if file.bucket == bucket)

    def _absorb(self, waiting: _Waiting, part: Part, bucket: int) -> Iterator[pa.RecordBatch]:
        dictionary = _worker_dictionary()
        states = [_Absorption(target, dictionary) for target in self.targets]
        for number, payload in waiting:
            channel = self.channels[number]
            facts = part.only(*from_arrow(unpack(payload), channel.shape, dictionary), channel.shape, dictionary)
            states[channel.target].receive(*facts)
        for number, state in enumerate(states):
            for what, rows, table in state.results(part):
                file = None if table is None else write_file(table, Path(self.folder), bucket)
                yield outcome(number, bucket, what, file, b"", rows)


class _Waiting:
    """Packets that have arrived, in memory as long as they are few, else in a file of this machine; read as often as needed."""

    def __init__(self) -> None:
        self.size = 0
        self._held: list[tuple[int, bytes]] = []
        self._file: BinaryIO | None = None

    def put(self, channel: int, payload: bytes) -> None:
        """Takes in a packet."""
        self.size += len(payload)
        self._held.append((channel, payload))
        if self.size > _ABSORBED:
            if self._file is None:
                self._file = TemporaryFile()  # noqa: SIM115 - it is closed with this
            for one in self._held:
                pickle.dump(one, self._file)
            self._held.clear()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        if self._file is not None:
            end = self._file.tell()
            self._file.seek(0)
            while self._file.tell() < end:
                yield pickle.load(self._file)  # noqa: S301 - it was written above
        yield from self._held

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._file is not None:
            self._file.close()


def outcome(
    target: int, bucket: int, what: str, file: FactFile | None, payload: bytes, rows: int = 0
) -> pa.RecordBatch:
    """What a task tells the driver: an `OUTCOME`."""
    path = "" if file is None else file.path
    columns = {
        "target": pa.array([target], pa.int32()),
        "bucket": pa.array([bucket], pa.int32()),
        "what": pa.array([what]),
        "path": pa.array([path]),
        "rows": pa.array([rows], pa.int64()),
        "payload": pa.array([payload], pa.binary()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


class _Absorption:
    """One target in one bucket."""

    def __init__(self, target: Target, dictionary: Dictionary) -> None:
        self._target, self._dictionary = target, dictionary
        self._holding = Holding(target.relation, target.shape, dictionary)
        self._amounts: Amounts = np.zeros(0, np.int64)

    def receive(self, batch: Batch, amounts: Amounts | None) -> None:
        """Takes in facts that were derived."""
        rows = self._holding.receive(batch)
        if self._target.sign:
            count = self._holding.table.count
            if len(self._amounts) < count:
                grown = np.zeros(max(count, 2 * len(self._amounts)), np.int64)
                grown[: len(self._amounts)] = self._amounts
                self._amounts = grown
            add_amounts(self._amounts, rows, np.ones(len(rows), np.int64) if amounts is None else amounts)

    def results(self, part: Part) -> Iterator[tuple[str, int, pa.Table | None]]:
        """What there is of the target in a part of all facts: `facts`, and `amounts` if they are wanted."""
        target, holding = self._target, self._holding
        expressions = [e for e in (target.expression, target.touched) if e is not None]
        holding.load(expressions, part)
        table = holding.table
        if target.expression is not None:
            rows = holding.view(target.expression).rows(target.relation)
            if len(rows):
                facts = to_arrow(table.take(rows), target.shape, self._dictionary) if target.write else None
                yield "facts", len(rows), facts
        if target.sums is not None:
            amounts = holding.all_sums(target.sums, part)
            rows = np.flatnonzero(amounts).astype(np.int32)
            if len(rows):
                yield "amounts", len(rows), to_arrow(table.take(rows), target.shape, self._dictionary, amounts[rows])
        if target.sign:
            if target.touched is not None:
                rows = holding.view(target.touched).rows(target.relation)
                amounts = np.full(len(rows), target.sign, np.int64)
            else:
                rows = np.flatnonzero(self._amounts[: table.count]).astype(np.int32)
                amounts = target.sign * self._amounts[rows]
            if len(rows):
                yield "amounts", len(rows), to_arrow(table.take(rows), target.shape, self._dictionary, amounts)


# --- showing -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Showing:
    """Facts of a relation with the columns and types that users see; each task has one bucket."""

    relation: Relation
    shape: Shape
    expression: Expression

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dictionary = _worker_dictionary()
        for bucket in [number for batch in batches for number in batch.column(0).to_pylist()]:
            for facts in batches_of(self.expression, self.shape, dictionary, (bucket,)):
                for first in range(0, facts.shape[1], _SHOWN):
                    yield from self._shown(facts[:, first : first + _SHOWN], dictionary)
        settle()

    def _shown(self, batch: Batch, dictionary: Dictionary) -> Iterator[pa.RecordBatch]:
        if not self.relation.columns:
            yield pa.record_batch({"present": [True] * batch.shape[1]})
            return
        schema = parquet_schema(self.relation)
        columns = [decode_arrow(batch[i], t, dictionary) for i, t in enumerate(self.relation.types)]
        table = pa.Table.from_arrays(columns, schema=arrow_schema(self.relation)).cast(schema)
        yield from table.to_batches()


def figures_of(payload: Any) -> Figures:
    """The figures that a task has sent."""
    found: Figures = pickle.loads(bytes(payload))  # noqa: S301 - our own tasks wrote it
    return found
