"""Common parts of all tasks: the worker process, packets between tasks, and outcomes for the driver.

All tasks run the columns engine on the files of some buckets; a task has no state and may be run again anywhere. A job has up to three kinds of
tasks, with shuffles between them: `DeriveTask` evaluates rules and sends heads to their buckets, `GroupTask` turns bindings of aggregates into
heads, `MergeTask` computes the resulting facts of each bucket and writes them to files.
"""

from __future__ import annotations

import gc
import pickle
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from queue import Queue
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa

from evermat.columns import Batch, Dictionary
from evermat.language import Rule
from evermat.spark.engine.tasks.serialization import Amounts, FactFile, Shape, buckets_of, by_bucket, pack, to_arrow

SENT = "bucket int, channel int, payload binary"
OUTCOME = "target int, bucket int, what string, path string, rows long, payload binary"

FIGURES = -1  # the channel of figures, for the driver
_PACKED = 1 << 20  # facts that travel together
_QUEUED = 8  # packets that wait to be sent
_MOST_SYMBOLS = 10_000_000  # after which a worker drops its dictionary


# --- the worker ----------------------------------------------------------------------------------------------

_dictionary = Dictionary()


def worker_dictionary() -> Dictionary:
    """The dictionary of this process; its ids are valid only here."""
    global _dictionary  # noqa: PLW0603
    if len(_dictionary) > _MOST_SYMBOLS:
        _dictionary = Dictionary()
    return _dictionary


def bucket_of_task() -> int:
    """The bucket of the current task."""
    from pyspark import TaskContext  # noqa: PLC0415

    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


def settle() -> None:
    """Exempts all objects of the first task from garbage collection, which Spark's worker runs after every task."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def streamed(produce: Callable[[Callable[[pa.RecordBatch], None]], None]) -> Iterator[pa.RecordBatch]:
    """Yields the batches of a producer, which runs in a thread of its own: few are held."""
    queue: Queue[pa.RecordBatch | BaseException | None] = Queue(_QUEUED)

    def run() -> None:
        try:
            produce(queue.put)
            queue.put(None)
        except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
            queue.put(error)

    Thread(target=run, daemon=True).start()
    while (found := queue.get()) is not None:
        if isinstance(found, BaseException):
            raise found
        yield found
    settle()


# --- packets -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Channel:
    """A destination of facts of a shape: a target; bindings of an aggregate rule become heads in another channel first."""

    shape: Shape
    target: int
    groups: Rule | None = None
    listing: bool = False  # only the keys of groups
    heads: int = -1


@dataclass
class Figures:
    """Statistics of an evaluation."""

    instances: int = 0
    matches: int = 0
    undefined: Counter[int] = field(default_factory=Counter)  # by the position of the rule in the text
    sent: int = 0  # facts that were sent to another task
    sent_bytes: int = 0
    rounds: int = 0  # within one task

    def packed(self) -> bytes:
        return pickle.dumps(self)

    def add(self, other: Figures) -> None:
        self.instances += other.instances
        self.matches += other.matches
        self.sent += other.sent
        self.sent_bytes += other.sent_bytes
        self.rounds = max(self.rounds, other.rounds)
        self.undefined += other.undefined


class Outbox:
    """Packs batches by bucket and sends them."""

    def __init__(self, buckets: int, dictionary: Dictionary, send: Callable[[pa.RecordBatch], None]) -> None:
        self._buckets, self._dictionary, self._send = buckets, dictionary, send
        self._sent = self._bytes = 0

    def facts(self, channel: int, batch: Batch, shape: Shape, amounts: Amounts | None) -> None:
        """Sends facts, in their order within a bucket."""
        for bucket, columns in by_bucket(buckets_of(batch, shape, self._buckets, self._dictionary)):
            for first in range(0, len(columns), _PACKED):
                chosen = columns[first : first + _PACKED]
                part = np.ascontiguousarray(batch[:, chosen])
                table = to_arrow(part, shape, self._dictionary, None if amounts is None else amounts[chosen])
                self.packet(bucket, channel, pack(table))
                self._sent += len(chosen)

    def packet(self, bucket: int, channel: int, payload: bytes) -> None:
        self._bytes += len(payload)
        columns = [pa.array([bucket], pa.int32()), pa.array([channel], pa.int32()), pa.array([payload], pa.binary())]
        self._send(pa.RecordBatch.from_arrays(columns, names=["bucket", "channel", "payload"]))

    def figures(self, figures: Figures) -> None:
        """Sends figures to the driver, through the first bucket."""
        figures.sent, figures.sent_bytes = self._sent, self._bytes
        self.packet(0, FIGURES, figures.packed())


def numbers_of(batches: Iterable[pa.RecordBatch]) -> list[int]:
    """The numbers of the first tasks of a job."""
    return [number for batch in batches for number in batch.column(0).to_pylist()]


@dataclass(frozen=True, eq=False)
class SendTask(ABC):
    """A first task of a job, which sends facts to their buckets, by channel. Task i of n has the i-th of n parts of its input."""

    channels: tuple[Channel, ...]
    buckets: int
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = numbers_of(batches)

        def produce(send: Callable[[pa.RecordBatch], None]) -> None:
            dictionary, figures = worker_dictionary(), Figures()
            outbox = Outbox(self.buckets, dictionary, send)
            self.send(numbers, dictionary, outbox, figures)
            outbox.figures(figures)

        return streamed(produce)

    @abstractmethod
    def send(self, numbers: Sequence[int], dictionary: Dictionary, outbox: Outbox, figures: Figures) -> None:
        """Sends the facts of the parts with these numbers."""


def packets_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """The channels and payloads of received packets."""
    for batch in batches:
        yield from zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True)


# --- outcomes ------------------------------------------------------------------------------------------------


def outcome(
    target: int, bucket: int, what: str, file: FactFile | None, payload: bytes, rows: int = 0
) -> pa.RecordBatch:
    """A row of `OUTCOME` for the driver."""
    columns = {
        "target": pa.array([target], pa.int32()),
        "bucket": pa.array([bucket], pa.int32()),
        "what": pa.array([what]),
        "path": pa.array(["" if file is None else file.path]),
        "rows": pa.array([rows], pa.int64()),
        "payload": pa.array([payload], pa.binary()),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def figures_of(payload: Any) -> Figures:
    """The figures that a task has sent."""
    found: Figures = pickle.loads(bytes(payload))  # noqa: S301 - our own tasks wrote it
    return found
