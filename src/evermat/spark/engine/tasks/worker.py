"""What all tasks share: the worker process that they run in, what they send to each other, and what they tell the driver.

All of them are the columns engine at work on the files of some buckets; a task keeps nothing and may be run again anywhere. A job has up to
three kinds, with a shuffle in between: `DeriveTask` evaluates rules and sends heads to their buckets, `GroupTask` turns bindings of aggregates into heads, `MergeTask` computes
in each bucket which facts are the result, and leaves them in files.
"""

from __future__ import annotations

import gc
import pickle
from abc import ABC, abstractmethod
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
_MOST_SYMBOLS = 10_000_000  # after which a worker forgets its dictionary


# --- the worker ----------------------------------------------------------------------------------------------

_dictionary = Dictionary()


def worker_dictionary() -> Dictionary:
    """The symbols that this process knows; their ids mean nothing outside of it."""
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


def streamed(produce: Callable[[Callable[[pa.RecordBatch], None]], None]) -> Iterator[pa.RecordBatch]:
    """Yields what a producer sends, while it goes on in a thread of its own: little is held."""
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


# --- what is sent --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Channel:
    """Where what is found goes to: facts of a shape for a target; bindings of an aggregate rule become heads in another channel first."""

    shape: Shape
    target: int
    groups: Rule | None = None
    listing: bool = False  # only the keys of groups
    heads: int = -1


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


class Outbox:
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
        self.packet(0, FIGURES, figures.packed())


def numbers_of(batches: Iterable[pa.RecordBatch]) -> list[int]:
    """The numbers that Spark gives the first tasks of a job."""
    return [number for batch in batches for number in batch.column(0).to_pylist()]


@dataclass(frozen=True, eq=False)
class SendTask(ABC):
    """A first task of a job: finds facts and sends them to their buckets, by channel. Of n tasks, task i has the i-th of n parts of its input."""

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
        """Sends what is found in the parts with these numbers."""


def packets_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
    """The channels and payloads of what has arrived."""
    for batch in batches:
        yield from zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True)


# --- what the driver is told ---------------------------------------------------------------------------------


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


def figures_of(payload: Any) -> Figures:
    """The figures that a task has sent."""
    found: Figures = pickle.loads(bytes(payload))  # noqa: S301 - our own tasks wrote it
    return found
