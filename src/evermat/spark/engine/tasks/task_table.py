"""Facts of one relation in the memory of a task, and which of them belong to which set."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

import numpy as np

from evermat.columns import Batch, Dataset, Dictionary, Difference, Intersection, Rows, Table, Union, View
from evermat.spark.engine.tasks.serialization import Amounts, FactFile, Shape, read_file
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
    """The facts that some expressions speak of, with a bit of the state word for each leaf.

    Facts of leaves that generate (see `generators`) have a row; of all other leaves only those that have one already are
    noted. So what is held is bounded by what the expressions can be, however large the sets that they exclude.
    """

    def __init__(self, name: str, shape: Shape, dictionary: Dictionary) -> None:
        self.name, self.shape, self._dictionary = name, shape, dictionary
        self.table = Table(shape.arity)
        self._tables = {name: self.table}
        self._sets: dict[int, Dataset] = {}

    def receive(self, batch: Batch) -> Rows:
        """Takes in facts that have arrived; their rows."""
        rows = self.table.locate(batch)
        self.table.set_bits(rows, self._set(ARRIVED).bit)
        return rows

    def load(self, expressions: Iterable[Expression], buckets: Container[int]) -> None:
        """Reads what the expressions speak of, in these buckets, or in a `Part` of all facts."""
        wanted = list(expressions)
        generating = {id(leaf): leaf for expression in wanted for leaf in generators(expression)}
        for leaf in generating.values():
            if isinstance(leaf, Files):
                self._load_facts(leaf, buckets)
        for leaf in {id(leaf): leaf for expression in wanted for leaf in leaves(expression)}.values():
            if id(leaf) in generating or isinstance(leaf, Arrived) or id(leaf) in self._sets:
                continue
            if isinstance(leaf, Counted):
                self._note_counted(leaf, buckets)
            else:
                self._note(leaf, buckets)
        for dataset in self._sets.values():
            inside = self.table.state[: self.table.count] & np.uint16(dataset.bit)
            dataset.sizes[self.name] = int(np.count_nonzero(inside))

    def append(self, leaf: Files, files: Iterable[FactFile], part: Container[int]) -> None:
        """Reads more files of the one set that is held, which is called `leaf` from now on; none of their facts is there yet."""
        self._sets = {id(leaf): next(iter(self._sets.values()), Dataset("0", 1, self._tables))}
        self._leaf = leaf  # as long as it is referred to, no other object has its id
        for file in files:
            for batch, _ in read_file(file, self.shape, self._dictionary, part):
                self.table.add_new(batch, 1)
        self._sets[id(leaf)].sizes[self.name] = self.table.count

    def view(self, expression: Expression) -> View:
        """The expression over what has been loaded."""
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
        for file in _in(leaf.files, buckets):
            for batch, _ in read_file(file, self.shape, self._dictionary, buckets):
                if fresh:  # no fact is in two files, so rows are not needed
                    self.table.add_new(batch, bit)
                else:
                    self.table.set_bits(self.table.locate(batch), bit)

    def _note(self, leaf: Files, buckets: Container[int]) -> None:
        bit = self._set(leaf).bit
        for file in _in(leaf.files, buckets) if self.table.count else ():
            for batch, _ in read_file(file, self.shape, self._dictionary, buckets):
                rows = self.table.find(batch)
                self.table.set_bits(rows[rows >= 0], bit)

    def _note_counted(self, leaf: Counted, buckets: Container[int]) -> None:
        rows = np.flatnonzero(self.sums(leaf, buckets) > 0).astype(np.int32)
        self.table.set_bits(rows, self._set(leaf).bit)

    def all_sums(self, leaf: Counted, buckets: Container[int]) -> Amounts:
        """As `sums`, for all facts that have amounts: they get rows."""
        for file in _in(leaf.files, buckets):
            for batch, _ in read_file(file, self.shape, self._dictionary, buckets):
                self.table.locate(batch)
        return self.sums(leaf, buckets)

    def sums(self, leaf: Counted, buckets: Container[int]) -> Amounts:
        """For each row the sum of the amounts in files."""
        sums = np.zeros(self.table.count, np.int64)
        for file in _in(leaf.files, buckets) if self.table.count else ():
            for batch, amounts in read_file(file, self.shape, self._dictionary, buckets):
                assert amounts is not None
                rows = self.table.find(batch)
                add_amounts(sums, rows[rows >= 0], amounts[rows >= 0])
        return sums


def batches_of(
    expression: Expression | None, shape: Shape, dictionary: Dictionary, buckets: Container[int]
) -> Iterator[Batch]:
    """The facts of an expression in some buckets; held only if there is something to find out."""
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
    if (
        len(rows)
        and max(np.abs(sums[rows].astype(np.float64)).max(), np.abs(amounts.astype(np.float64)).max()) > _LARGE
    ):
        raise OverflowError("more than 2^62 derivations of one fact")


def _in(files: Iterable[FactFile], buckets: Container[int]) -> Iterable[FactFile]:
    return (file for file in files if file.bucket in buckets)
