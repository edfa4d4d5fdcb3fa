"""Tasks that rename terms: they find facts that mention some terms, compute normal forms, and expand facts.

Representatives are in files of pairs, a name and its representative, which every task reads as a whole, as does the driver. Terms that are in no
pair represent themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.columns import Batch, Dictionary, UnionFind, count_names, expand_names
from evermat.language import Type
from evermat.spark.engine.tasks.serialization import Part, Shape
from evermat.spark.engine.tasks.set_expressions import Expression
from evermat.spark.engine.tasks.task_table import batches_of
from evermat.spark.engine.tasks.worker import Figures, Outbox, SendTask, numbers_of, outcome, settle, worker_dictionary

PAIR = Shape.of((Type.TERM, Type.TERM))


@dataclass(frozen=True, eq=False)
class RenameInput:
    """Facts of a relation, and the columns in which terms are renamed."""

    shape: Shape
    columns: tuple[int, ...]
    expression: Expression

    def batches(self, dictionary: Dictionary, part: Part) -> Iterator[Batch]:
        """Its facts in a part of all facts."""
        return batches_of(self.expression, self.shape, dictionary, part)

    def positions(self) -> npt.NDArray[np.int64]:
        """The columns as an array, for kernels."""
        return np.array(self.columns, np.int64)


def read_pairs(batches: Iterable[Batch]) -> Batch:
    """All pairs of a name and its representative in one batch."""
    return np.concatenate([np.empty((2, 0), np.int64), *batches], axis=1)


def _all_pairs(pairs: Expression | None, dictionary: Dictionary, buckets: int) -> Batch:
    return read_pairs(batches_of(pairs, PAIR, dictionary, Part(buckets, 1, 0)))


def give_representatives(union_find: UnionFind, pairs: Batch) -> None:
    """Assigns names their representatives, which represent themselves."""
    if pairs.shape[1]:
        own = np.unique(pairs[1])
        union_find.assign(np.concatenate([pairs[0], own]), np.concatenate([pairs[1], own]))


def union_find_of(pairs: Expression | None, dictionary: Dictionary, buckets: int) -> UnionFind:
    """The renaming that some pairs describe."""
    found = UnionFind(dictionary)
    give_representatives(found, _all_pairs(pairs, dictionary, buckets))
    return found


# --- facts in normal form ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RenameTask(SendTask):
    """Sends facts under other names."""

    facts: tuple[RenameInput, ...]
    pairs: Expression | None


class RewriteTask(RenameTask):
    """Sends facts that mention a name of some pair: first of all relations as they are, then, if there are channels, in normal form."""

    def send(self, numbers: Sequence[int], dictionary: Dictionary, outbox: Outbox, figures: Figures) -> None:
        del figures
        representatives = _Representatives(_all_pairs(self.pairs, dictionary, self.buckets))
        for number in numbers:
            self._rewrite(Part(self.buckets, self.tasks, number), representatives, dictionary, outbox)

    def _rewrite(self, part: Part, representatives: _Representatives, dictionary: Dictionary, outbox: Outbox) -> None:
        for number, named in enumerate(self.facts):
            for batch in named.batches(dictionary, part):
                mentions = np.zeros(batch.shape[1], np.bool_)
                for column in named.columns:
                    mentions |= representatives.find(batch[column])[0]
                if mentions.any():
                    moved = np.ascontiguousarray(batch[:, mentions])
                    outbox.facts(number, moved, named.shape, None)
                    if len(self.channels) > len(self.facts):
                        outbox.facts(len(self.facts) + number, representatives.normal(moved, named), named.shape, None)


class _Representatives:
    """The representatives of a few terms among many."""

    def __init__(self, pairs: Batch) -> None:
        order = np.argsort(pairs[0])
        self._names, self._representatives = pairs[0][order], pairs[1][order]

    def find(self, terms: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
        """Which terms are in a pair, and the positions of the pairs."""
        positions = np.searchsorted(self._names, terms)
        known = positions < len(self._names)
        known[known] = self._names[positions[known]] == terms[known]
        return known, positions

    def normal(self, batch: Batch, named: RenameInput) -> Batch:
        """Facts with representatives instead of names."""
        made = batch.copy()
        for column in named.columns:
            known, positions = self.find(batch[column])
            made[column, known] = self._representatives[positions[known]]
        return made


# --- expanded facts ------------------------------------------------------------------------------------------


class ExpandNamesTask(RenameTask):
    """Sends the expanded facts of each relation to its channel."""

    def send(self, numbers: Sequence[int], dictionary: Dictionary, outbox: Outbox, figures: Figures) -> None:
        del figures
        union_find = union_find_of(self.pairs, dictionary, self.buckets)
        for part in (Part(self.buckets, self.tasks, number) for number in numbers):
            for channel, named in enumerate(self.facts):
                for batch in named.batches(dictionary, part):
                    for made in expand_names(batch, named.positions(), union_find):
                        outbox.facts(channel, made, named.shape, None)


@dataclass(frozen=True, eq=False)
class CountNamesTask:
    """Reports the numbers of expanded facts. Task i of n has the i-th of n parts of all facts."""

    facts: tuple[RenameInput, ...]
    pairs: Expression | None
    buckets: int
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dictionary = worker_dictionary()
        union_find = union_find_of(self.pairs, dictionary, self.buckets)
        for number in numbers_of(batches):
            part = Part(self.buckets, self.tasks, number)
            for target, named in enumerate(self.facts):
                parts = named.batches(dictionary, part)
                rows = sum(int(count_names(batch, named.positions(), union_find).sum()) for batch in parts)
                if rows:
                    yield outcome(target, number, "facts", None, b"", rows)
        settle()
