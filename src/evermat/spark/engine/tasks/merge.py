"""Tasks that compute the results of a job in one bucket."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import BinaryIO, Self

import numpy as np
import pyarrow as pa

from evermat.columns import Batch, Dictionary, grown
from evermat.spark.engine.tasks import worker
from evermat.spark.engine.tasks.serialization import Amounts, Part, Shape, from_arrow, to_arrow, unpack, write_file
from evermat.spark.engine.tasks.set_expressions import Counted, Expression, Files, generators
from evermat.spark.engine.tasks.task_table import TaskTable, add_amounts
from evermat.spark.engine.tasks.worker import FIGURES, Channel, outcome, packets_of, settle, worker_dictionary

AT_ONCE = 1 << 28  # bytes of packed facts that a task merges at a time
_BYTES = 16  # of a packed fact, about


@dataclass(frozen=True, eq=False)
class Target:
    """A wanted set of facts, which are written to files or only counted; with the amounts of arrived facts if there is a `sign`."""

    relation: str
    shape: Shape
    expression: Expression | None
    write: bool = True
    sign: int = 0  # of amounts that are written for the facts that arrived, or for those of `touched`
    touched: Expression | None = None
    sums: Counted | None = None  # amounts that are summed up and written


@dataclass(frozen=True, eq=False)
class MergeTask:
    """Computes the targets in one bucket."""

    targets: tuple[Target, ...]
    channels: tuple[Channel, ...]
    folder: str
    buckets: int
    receives: bool  # whether facts arrive
    at_once: int  # bytes of packed facts that are merged at a time

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bucket = worker.bucket_of_task()
        with _Packets(self.at_once) as waiting:
            if self.receives:
                for number, payload in packets_of(batches):
                    if number == FIGURES:
                        yield outcome(0, bucket, "figures", None, payload)
                    else:
                        waiting.put(number, payload)
            else:
                for _ in batches:  # Spark uses a worker again only if it has read its input to the end
                    pass
            # Too many facts are merged part by part: received packets are read again for each.
            count = 1 + (waiting.size + self._bytes(bucket)) // self.at_once
            for number in range(count):
                part = Part(self.buckets, self.buckets * count, bucket + self.buckets * number)
                yield from self._merge(waiting, part, bucket)
        settle()

    def _bytes(self, bucket: int) -> int:
        """An estimate of the memory for facts that are in files."""
        wanted = [e for target in self.targets for e in (target.expression, target.touched) if e is not None]
        files = [f for e in wanted for leaf in generators(e) if isinstance(leaf, Files) for f in leaf.files]
        files += [f for target in self.targets if target.sums is not None for f in target.sums.files]
        return sum(_BYTES * file.rows for file in files if file.bucket == bucket)

    def _merge(self, waiting: _Packets, part: Part, bucket: int) -> Iterator[pa.RecordBatch]:
        dictionary = worker_dictionary()
        states = [TargetMerge(target, dictionary) for target in self.targets]
        for number, payload in waiting:
            channel = self.channels[number]
            facts = part.only(*from_arrow(unpack(payload), channel.shape, dictionary), channel.shape, dictionary)
            states[channel.target].receive(*facts)
        yield from written_results(states, part, self.folder, bucket)


class _Packets:
    """Received packets, in memory as long as they are few, else in a local file; they can be read repeatedly."""

    def __init__(self, most: int) -> None:
        self.size, self._most = 0, most
        self._held: list[tuple[int, bytes]] = []
        self._file: BinaryIO | None = None

    def put(self, channel: int, payload: bytes) -> None:
        self.size += len(payload)
        self._held.append((channel, payload))
        if self.size > self._most:
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


class TargetMerge:
    """One target in one bucket."""

    def __init__(self, target: Target, dictionary: Dictionary) -> None:
        self._target, self._dictionary = target, dictionary
        self._holding = TaskTable(target.relation, target.shape, dictionary)
        self._amounts: Amounts = np.zeros(0, np.int64)

    def receive(self, batch: Batch, amounts: Amounts | None) -> None:
        rows = self._holding.receive(batch)
        if self._target.sign:
            self._amounts = grown(self._amounts, self._holding.table.count)
            add_amounts(self._amounts, rows, np.ones(len(rows), np.int64) if amounts is None else amounts)

    def results(self, part: Part) -> Iterator[tuple[str, int, pa.Table | None]]:
        """The results of the target in a part of all facts: `facts`, and `amounts` if they are wanted."""
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


def written_results(merges: Sequence[TargetMerge], part: Part, folder: str, bucket: int) -> Iterator[pa.RecordBatch]:
    """Writes the results of all targets in a part of a bucket, and yields the outcomes."""
    for number, merge in enumerate(merges):
        for what, rows, table in merge.results(part):
            file = None if table is None else write_file(table, folder, bucket)
            yield outcome(number, bucket, what, file, b"", rows)
