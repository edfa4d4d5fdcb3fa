"""Tasks that expand a closure, whose graph is in a file that all of them read, to facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.columns import Batch, Connections, Dictionary
from evermat.spark.engine.tasks.merge import Target, TargetMerge, written_results
from evermat.spark.engine.tasks.serialization import Part, Shape, buckets_of, pack, unpack
from evermat.spark.engine.tasks.worker import Figures, Outbox, SendTask, numbers_of, outcome, settle, worker_dictionary
from evermat.spark.scratch_files import reading, writing
from evermat.store import Location, location_of

_HELD = 16_000_000  # pairs that a task holds at most


@dataclass(frozen=True, eq=False)
class GraphFile:
    """A file with connections, and with the texts of nodes whose values are texts."""

    path: str
    symmetric: bool
    flipped: tuple[bool, ...]  # of each member of the closure: whether its facts are reversed pairs

    @classmethod
    def write(
        cls,
        path: Location,
        connections: Connections,
        texts: pa.Array,
        is_text: npt.NDArray[np.bool_],
        flipped: Iterable[bool],
    ) -> GraphFile:
        """Writes connections; `texts` are those of the nodes that are texts."""
        kept = connections.kept if connections.kept is not None else np.zeros(0, np.bool_)
        packed = np.frombuffer(pack(pa.table({"texts": texts})), np.uint8)
        with writing(path) as file:
            np.savez(
                file, values=connections.values, tails=connections.tails, heads=connections.heads, kept=kept,
                sources=connections.sources, targets=connections.targets, is_text=is_text, texts=packed,
            )  # fmt: skip
        return cls(str(path), connections.symmetric, tuple(flipped))

    def read(self, dictionary: Dictionary) -> Connections:
        """The connections, with values as a dictionary has them."""
        with reading(location_of(self.path)) as source, np.load(source) as file:
            values, is_text = file["values"], file["is_text"]
            if is_text.any():
                values[is_text] = dictionary.encode_arrow(unpack(file["texts"].tobytes()).column(0))
            kept = file["kept"]
            return Connections(
                values, file["tails"], file["heads"], kept if len(kept) else None, file["sources"], file["targets"],
                self.symmetric,
            )  # fmt: skip

    def facts(self, batch: Batch) -> Iterator[Batch]:
        """Pairs as facts of each member."""
        for flipped in self.flipped:
            yield np.ascontiguousarray(batch[::-1]) if flipped else batch


@dataclass(frozen=True, eq=False)
class ExpandClosureTask(SendTask):
    """Sends pairs to their buckets; task i of n has the sources i, i + n and so on."""

    graph: GraphFile

    def send(self, numbers: Sequence[int], dictionary: Dictionary, outbox: Outbox, figures: Figures) -> None:
        connections = self.graph.read(dictionary)
        for number in numbers:
            own = replace(connections, sources=np.ascontiguousarray(connections.sources[number :: self.tasks]))
            for batch in own.batches():
                figures.instances += batch.shape[1]
                for channel, facts in enumerate(self.graph.facts(batch)):
                    outbox.facts(channel, facts, self.channels[channel].shape, None)


@dataclass(frozen=True, eq=False)
class ExpandLocallyTask:
    """Writes the pairs of one bucket: its task has the sources whose facts belong there."""

    graph: GraphFile
    targets: tuple[Target, ...]
    shape: Shape  # of the column that decides on buckets
    folder: str
    buckets: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dictionary = worker_dictionary()
        connections = self.graph.read(dictionary)
        for bucket in numbers_of(batches):
            count = 1 + len(connections.sources) * len(connections.targets) // (self.buckets * _HELD)
            values, figures = np.ascontiguousarray(connections.values[connections.sources][None, :]), Figures()
            parts = buckets_of(values, self.shape, self.buckets * count, dictionary)
            for number in range(bucket, self.buckets * count, self.buckets):
                own = replace(connections, sources=connections.sources[parts == number])
                yield from self._connect(own, Part(self.buckets, self.buckets * count, number), figures)
            yield outcome(0, bucket, "figures", None, figures.packed())
        settle()

    def _connect(self, connections: Connections, part: Part, figures: Figures) -> Iterator[pa.RecordBatch]:
        dictionary = worker_dictionary()
        merges = [TargetMerge(target, dictionary) for target in self.targets]
        for batch in connections.batches():
            figures.instances += batch.shape[1]
            for merge, facts in zip(merges, self.graph.facts(batch), strict=True):
                merge.receive(facts, None)
        yield from written_results(merges, part, self.folder, part.number % self.buckets)
