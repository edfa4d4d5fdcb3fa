"""Facts of one relation in the memory of a task, with the sets that each belongs to; and those that a worker caches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator

import numpy as np

from evermat.columns import Batch, Dataset, Dictionary, Difference, Intersection, Rows, Table, Union, View
from evermat.spark.engine.tasks.serialization import Amounts, FactFile, Part, Shape, read_file
from evermat.spark.engine.tasks.set_expressions import (
    ARRIVED,
    Arrived,
    Combined,
    Counted,
    Expression,
    Files,
    Leaf,
    generators,
    leaves,
)

_MOST_LEAVES = 16  # bits of a state word
_LARGE = 1 << 62
_OPERATIONS: dict[str, type[Union | Intersection | Difference]] = {"|": Union, "&": Intersection, "-": Difference}


class TaskTable:
    """The facts of some expressions, with a bit of the state word for each leaf.

    Facts of leaves that generate (see `generators`) have a row; facts of all other leaves are recorded only if they have one already. So
    memory is bounded by the largest possible result of the expressions, however large the sets that they exclude.
    """

    def __init__(self, name: str, shape: Shape, dictionary: Dictionary) -> None:
        self.name, self.shape, self.dictionary = name, shape, dictionary
        self.table = Table(shape.arity)
        self.paths: set[str] = set()  # of the files that `append` has read
        self._tables = {name: self.table}
        self._sets: dict[int, Dataset] = {}

    def receive(self, batch: Batch) -> Rows:
        """Adds facts that have arrived and returns their rows."""
        rows = self.table.locate(batch)
        self.table.set_bits(rows, self._set(ARRIVED).bit)
        return rows

    def load(self, expressions: Iterable[Expression], buckets: Container[int]) -> None:
        """Reads the files of some expressions, in these buckets, or in a `Part` of all facts."""
        wanted = list(expressions)
        generating = {id(leaf): leaf for expression in wanted for leaf in generators(expression)}
        for leaf in generating.values():
            if isinstance(leaf, Files):
                self._load_facts(leaf, buckets)
        for leaf in {id(leaf): leaf for expression in wanted for leaf in leaves(expression)}.values():
            if id(leaf) in generating or isinstance(leaf, Arrived) or id(leaf) in self._sets:
                continue
            bit = self._set(leaf).bit
            if isinstance(leaf, Counted):
                self.table.set_bits(np.flatnonzero(self.sums(leaf, buckets) > 0).astype(np.int32), bit)
                continue
            for batch, _ in self._read(leaf, buckets) if self.table.count else ():
                rows = self.table.find(batch)
                self.table.set_bits(rows[rows >= 0], bit)
        for dataset in self._sets.values():
            dataset.recount(self.name)

    def append(self, leaf: Files, part: Container[int]) -> None:
        """Reads the new files of the one set that is held, which has grown to `leaf`; none of their facts is held yet."""
        self._sets = {id(leaf): next(iter(self._sets.values()), Dataset("0", 1, self._tables))}
        self._leaf = leaf  # as long as it is referred to, no other object has its id
        for file in _in(leaf.files, part):
            if file.path not in self.paths:
                for batch, _ in read_file(file, self.shape, self.dictionary, part):
                    self.table.add_new(batch, 1)
                self.paths.add(file.path)
        self._sets[id(leaf)].sizes[self.name] = self.table.count

    def view(self, expression: Expression) -> View:
        """The expression over the loaded facts."""
        if isinstance(expression, Combined):
            return _OPERATIONS[expression.operator](self.view(expression.left), self.view(expression.right))
        return self._sets.get(id(expression)) or self._set(expression)

    def _set(self, leaf: Leaf) -> Dataset:
        found = self._sets.get(id(leaf))
        if found is None:
            number = len(self._sets)
            assert number < _MOST_LEAVES, "an expression over too many sets"
            found = self._sets[id(leaf)] = Dataset(str(number), 1 << number, self._tables)
        return found

    def _load_facts(self, leaf: Files, buckets: Container[int]) -> None:
        if id(leaf) in self._sets:
            return
        bit, fresh = self._set(leaf).bit, self.table.count == 0
        for batch, _ in self._read(leaf, buckets):
            if fresh:  # no fact is in two files, so rows are not needed
                self.table.add_new(batch, bit)
            else:
                self.table.set_bits(self.table.locate(batch), bit)

    def all_sums(self, leaf: Counted, buckets: Container[int]) -> Amounts:
        """As `sums`, for all facts that have amounts: they get rows."""
        for batch, _ in self._read(leaf, buckets):
            self.table.locate(batch)
        return self.sums(leaf, buckets)

    def sums(self, leaf: Counted, buckets: Container[int]) -> Amounts:
        """For each row the sum of the amounts in files."""
        sums = np.zeros(self.table.count, np.int64)
        for batch, amounts in self._read(leaf, buckets) if self.table.count else ():
            assert amounts is not None
            rows = self.table.find(batch)
            add_amounts(sums, rows[rows >= 0], amounts[rows >= 0])
        return sums

    def _read(self, leaf: Files | Counted, buckets: Container[int]) -> Iterator[tuple[Batch, Amounts | None]]:
        for file in _in(leaf.files, buckets):
            yield from read_file(file, self.shape, self.dictionary, buckets)


MOST_CACHED = 16_000_000  # facts

_cache: OrderedDict[tuple[str, Shape, Part], TaskTable] = OrderedDict()


def cached(name: str, shape: Shape, leaf: Files, part: Part, dictionary: Dictionary, most: int) -> TaskTable:
    """The facts of some files, in a part of all facts, only to be read; a worker process keeps up to `most` from job to job.

    A set that does not change is read once, and of a set that grows only new files are read. The cache only saves time: a lookup is decided by
    the names of files, which are never written twice.
    """
    key = (name, shape, part)
    found = _cache.pop(key, None)
    paths = {file.path for file in _in(leaf.files, part)}
    if found is None or found.dictionary is not dictionary or not found.paths <= paths:
        found = TaskTable(name, shape, dictionary)
    found.append(leaf, part)
    _cache[key] = found  # the last one to be evicted
    while sum(held.table.count for held in _cache.values()) > most and len(_cache) > 1:
        _cache.popitem(last=False)
    if found.table.count > most:
        del _cache[key]
    return found


def batches_of(
    expression: Expression | None, shape: Shape, dictionary: Dictionary, buckets: Container[int]
) -> Iterator[Batch]:
    """The facts of an expression in some buckets; they are held only if the expression has operators."""
    if isinstance(expression, Files):
        for file in _in(expression.files, buckets):
            for batch, _ in read_file(file, shape, dictionary, buckets):
                yield batch
    elif expression is not None:
        holding = TaskTable("facts", shape, dictionary)
        holding.load([expression], buckets)
        yield holding.table.take(holding.view(expression).rows("facts"))


def add_amounts(sums: Amounts, rows: Rows, amounts: Amounts) -> None:
    """Adds amounts to the sums of rows, which may be listed repeatedly; nothing wraps."""
    np.add.at(sums, rows, amounts)
    if max(np.abs(some.astype(np.float64)).max(initial=0) for some in (sums[rows], amounts)) > _LARGE:
        raise OverflowError("more than 2^62 derivations of one fact")


def _in(files: Iterable[FactFile], buckets: Container[int]) -> Iterable[FactFile]:
    return (file for file in files if file.bucket in buckets)
