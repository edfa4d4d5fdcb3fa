"""The steps of a plan over columns: each takes the bindings in one buffer and pushes the results to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from evermat.columns.evaluation import buffers
from evermat.columns.evaluation.buffers import WEIGHT, Keys, Layout, Level, constants_in
from evermat.columns.evaluation.expressions import compile_expression, compile_test
from evermat.columns.kernels import rows as row_kernels
from evermat.columns.storage.arrays import Batch, Mask, Numbers, Rows, positions_in
from evermat.columns.storage.readable_table import ReadableTable
from evermat.columns.storage.selection import Selection, contains, count_rows
from evermat.columns.storage.table import Table
from evermat.core import check_stop
from evermat.engine import Jobs
from evermat.language import Constant, Relation, Variable
from evermat.plan import Check, Compute, Filter, Match, Role


class Sink(Protocol):
    """Takes batches [columns, capacity] of which the first n columns count, and their weights (None: 1 each)."""

    def __call__(self, batch: Batch, n: int, weights: Numbers | None) -> None: ...


def locating(table: Table) -> Sink:
    """A sink that only sees to it that every tuple has a row in a table."""

    def sink(batch: Batch, n: int, weights: Numbers | None) -> None:
        del weights
        table.locate(batch, n)

    return sink


def appending(table: Table, bits: int, jobs: Jobs) -> Sink:
    """A sink that appends tuples which are not in a table, with state `bits`, and reports all to the run."""

    def sink(batch: Batch, n: int, weights: Numbers | None) -> None:
        del weights
        table.add_new(batch, bits, n)
        jobs.run.derived(n)

    return sink


class Figures(Protocol):
    """What operations report to, and where the last one sends its output: the pipeline."""

    sink: Sink
    matches: int
    undefined: int


class Operation(ABC):
    """One step: takes the first n bindings of its level's buffer and pushes the results to the next."""

    next: Operation
    selection: Selection

    def __init__(self, role: Role | None = None, relation: Relation | None = None, *, required: bool = False) -> None:
        self.role = role
        self.relation: Relation = relation  # type: ignore[assignment]  # set wherever there is a role
        self.required = required  # without facts it has no results

    @abstractmethod
    def push(self, n: int) -> None:
        """Handles the first n bindings."""


class Emit(Operation):
    """The end: what is in the buffer is the output."""

    def __init__(self, level: Level, layout: Layout, pipeline: Figures) -> None:
        super().__init__()
        self._level, self._pipeline = level, pipeline
        self._size = layout.size
        self._weight = level.rows[WEIGHT][0] if WEIGHT in level.rows else None
        # An aggregate may output an expression that is not a variable.
        self._computed = [
            (row, compile_expression(term, level.first_row, level.dictionary))
            for row, term in enumerate(layout.output)
            if not isinstance(term, Variable | Constant)
        ]
        self._view: Batch | None = None

    def push(self, n: int) -> None:
        if self._view is None:
            self._view = self._level.buffer[: self._size]
        keep = None
        for row, evaluate in self._computed:
            values, valid = evaluate(self._level.buffer, n)
            self._view[row, :n] = values
            if valid is not None and not valid.all():
                keep = valid if keep is None else keep & valid
        if keep is not None:
            chosen = positions_in(keep)
            self._pipeline.undefined += n - len(chosen)
            n = self._level.compress(np.arange(self._level.size), chosen)
        if n:
            weights = None if self._weight is None else self._level.buffer[self._weight, :n]
            self._pipeline.sink(self._view, n, weights)


class SelectOperation(Operation):
    """A step that keeps some of the bindings."""

    def __init__(self, step: Filter | Compute | Check | Match, level: Level, live: set[Variable]) -> None:
        if isinstance(step, Check | Match):
            super().__init__(step.role, step.relation, required=isinstance(step, Match))
        else:
            super().__init__()
        self._level = level
        rows = [row for variable, rows in level.rows.items() if variable in live for row in rows]
        self._live = np.array(rows, np.int64)  # still needed

    def keep(self, chosen: Rows, n: int) -> None:
        """Pushes those of the first n bindings that were chosen."""
        if len(chosen) < n:
            n = self._level.compress(self._live, chosen)
        if n:
            self.next.push(n)


class FilterRows(SelectOperation):
    """A test: keeps the bindings for which it holds."""

    def __init__(self, step: Filter, level: Level, live: set[Variable], pipeline: Figures) -> None:
        super().__init__(step, level, live)
        self._pipeline = pipeline
        self._test = compile_test(step.test, level.first_row, level.dictionary)

    def push(self, n: int) -> None:
        truth, valid = self._test(self._level.buffer, n)
        if valid is not None:
            self._pipeline.undefined += n - int(np.count_nonzero(np.broadcast_to(valid, (n,))))
        self.keep(positions_in(truth), n)


class ComputeColumn(SelectOperation):
    """A computation: gives a variable its value, and drops bindings for which there is none."""

    def __init__(self, step: Compute, level: Level, live: set[Variable], pipeline: Figures) -> None:
        super().__init__(step, level, live)
        self._pipeline = pipeline
        self._evaluate = compile_expression(step.expression, level.first_row, level.dictionary)
        self._rows = level.rows[step.variable]
        self._solved = step.solved

    def push(self, n: int) -> None:
        buffer = self._level.buffer
        values, valid = self._evaluate(buffer, n)
        for row in self._rows:
            buffer[row, :n] = values
        if valid is None or (valid := np.broadcast_to(valid, (n,))).all():
            self.next.push(n)
        else:
            chosen = positions_in(valid)
            if not self._solved:
                self._pipeline.undefined += n - len(chosen)
            self.keep(chosen, n)


class Facts(Protocol):
    """The facts of a relation as steps look them up by some columns."""

    def contains(self, keys: Batch, n: int, selection: Selection) -> Mask:
        """Which of n facts are selected."""

    def counts(self, keys: Batch, n: int, selection: Selection, *, counted: bool) -> Numbers | Mask:
        """How many selected facts have each of n keys, or whether any has if they are not counted."""

    def count(self, selection: Selection, *, counted: bool) -> int:
        """How many facts are selected, or not 0 if any is and they are not counted."""


class TableFacts:
    """The rows of a table."""

    def __init__(self, table: ReadableTable, columns: tuple[int, ...]) -> None:
        self._table, self._columns = table, columns

    def contains(self, keys: Batch, n: int, selection: Selection) -> Mask:
        return contains(self._table, keys, n, selection)

    def counts(self, keys: Batch, n: int, selection: Selection, *, counted: bool) -> Numbers | Mask:
        index, (lo, hi, truth, _) = self._table.index(self._columns), selection
        return (index.counts if counted else index.exists)(keys, truth, lo=lo, hi=hi, n=n)

    def count(self, selection: Selection, *, counted: bool) -> int:
        return count_rows(self._table, selection, stop_at_first=not counted)


class Absent(SelectOperation):
    """A negated atom: keeps the bindings whose fact does not exist."""

    def __init__(self, step: Check, level: Level, facts: Facts, live: set[Variable]) -> None:
        super().__init__(step, level, live)
        self._facts, self._keys = facts, Keys(step.key, level)

    def push(self, n: int) -> None:
        if self.selection.empty:
            self.next.push(n)
        else:
            self.keep(positions_in(self._facts.contains(self._keys.batch(n), n, self.selection), wanted=False), n)


class Exists(SelectOperation):
    """An atom that binds nothing: keeps the bindings for which some fact agrees, or multiplies their weight."""

    def __init__(self, step: Match, level: Level, facts: Facts, *, counted: bool, live: set[Variable]) -> None:
        super().__init__(step, level, live)
        self._facts, self._keys = facts, Keys(step.key, level)
        self._full = len(step.key) == step.relation.arity
        self._counted = counted
        self._weight = level.rows[WEIGHT][0] if counted else -1

    def push(self, n: int) -> None:
        found: Numbers | Mask
        if self._full:
            found = self._facts.contains(self._keys.batch(n), n, self.selection)
        elif self._keys.columns:
            found = self._facts.counts(self._keys.batch(n), n, self.selection, counted=self._counted)
        else:  # any fact of the relation agrees with every binding
            found = np.full(n, self._facts.count(self.selection, counted=self._counted))
        if self._counted and not self._full:
            multiply(self._level.buffer[self._weight, :n], found)
        self.keep(positions_in(found), n)


def multiply(weights: Numbers, factor: Numbers | Mask) -> None:
    """Weights times numbers of facts; numbers of instances beyond 64 bits are refused, not wrapped."""
    factors = factor if factor.dtype == np.bool_ else np.require(factor, np.int64, ("C", "W"))
    if not row_kernels.multiply_weights(weights, factors):
        raise OverflowError("more than 2^63 instances of one rule for one fact")


class MatchOperation(Operation):
    """An atom that binds variables: `_binds` are its columns that go to rows of the inner buffer, `_carry` rows of known variables."""

    def __init__(self, step: Match, level: Level, inner: Level, pipeline: Figures, *, first: bool = False) -> None:
        super().__init__(step.role, step.relation, required=True)
        self._level, self._inner, self._pipeline, self._equal = level, inner, pipeline, step.equal
        self._carry = [(level.rows[v][0], row) for v, rows in inner.rows.items() if v in level.rows for row in rows]
        self._binds = [(column, row) for column, variable in step.binds for row in inner.rows.get(variable, ())]
        self._weight_row = inner.rows[WEIGHT][0] if first and WEIGHT in inner.rows else None


class Scan(MatchOperation):
    """The first atom, or one of which nothing is known: every binding meets every selected row."""

    def __init__(
        self, step: Match, level: Level, inner: Level, table: ReadableTable, pipeline: Figures, *, first: bool
    ) -> None:
        super().__init__(step, level, inner, pipeline, first=first)
        self._table, self._first = table, first
        # Known columns of an atom that is scanned are constants, tested on the row itself.
        self._keys = constants_in(step.key, level.dictionary)
        assert len(self._keys) == len(step.key)

    def push(self, n: int) -> None:
        lo, hi, truth, listed = self.selection
        if listed is None and truth is None and not self._keys and not self._equal and self._first:
            inner, table = self._inner, self._table
            buffer = inner.buffer
            self._pipeline.matches += hi - lo
            for first in range(lo, hi, buffers.CHUNK):
                check_stop()
                end = min(first + buffers.CHUNK, hi)
                for column, row in self._binds:
                    row_kernels.copy_column(table.rows, column, first, end, buffer, row)
                if self._weight_row is not None:
                    row_kernels.fill_row(buffer, self._weight_row, 0, end - first, 1)
                self.next.push(end - first)
            return
        chunks = (
            self._table.scan(truth, lo, hi, buffers.CHUNK)
            if listed is None
            else (listed[first : first + buffers.CHUNK] for first in range(0, len(listed), buffers.CHUNK))
        )
        for rows in chunks:
            check_stop()
            self._pipeline.matches += len(rows) * n
            chosen = self._agreeing(rows)
            if len(chosen):
                self._push_rows(chosen, n)

    def _agreeing(self, rows: Rows) -> Rows:
        """Those of the rows that hold the known constants and equal values where they must be equal."""
        for column, value in self._keys:
            rows = rows[self._table.rows[rows, column] == value]
        for a, b in self._equal:
            rows = rows[self._table.rows[rows, a] == self._table.rows[rows, b]]
        return rows

    def _push_rows(self, rows: Rows, n: int) -> None:
        """A product: for every binding all rows, for as many bindings at once as there is room for."""
        buffer, outer = self._inner.buffer, self._level.buffer if self._carry else None
        size = len(rows)
        together = max(buffers.CHUNK // size, 1)
        for first in range(0, n, together):
            check_stop()
            count = min(together, n - first)
            for column, row in self._binds:
                self._table.gather(column, rows, buffer, row)
                if count > 1:
                    buffer[row, size : count * size] = np.tile(buffer[row, :size], count - 1)
            for source, row in self._carry:
                assert outer is not None
                if count == 1:
                    row_kernels.fill_row(buffer, row, 0, size, outer[source, first])
                else:
                    buffer[row, : count * size] = np.repeat(outer[source, first : first + count], size)
            if self._weight_row is not None:
                row_kernels.fill_row(buffer, self._weight_row, 0, count * size, 1)
            self.next.push(count * size)


class Join(MatchOperation):
    """An atom of which some columns are known: an index gives the rows of each binding."""

    def __init__(self, step: Match, level: Level, inner: Level, table: ReadableTable, pipeline: Figures) -> None:
        super().__init__(step, level, inner, pipeline)
        self._table, self._keys = table, Keys(step.key, level)
        self._binds_carry = _pairs(self._binds), _pairs(self._carry)

    def push(self, n: int) -> None:
        index = self._table.index(self._keys.columns)
        lo, hi, truth, _ = self.selection
        table, push, (binds, carry) = self._table, self.next.push, self._binds_carry
        outer, buffer = self._level.buffer, self._inner.buffer
        for positions, rows in index.join(self._keys.batch(n), truth, lo=lo, hi=hi, n=n, chunk=buffers.CHUNK):
            check_stop()
            self._pipeline.matches += len(rows)
            if self._equal:
                agree = np.flatnonzero(
                    np.logical_and.reduce([table.rows[rows, a] == table.rows[rows, b] for a, b in self._equal])
                )
                if not len(agree):
                    continue
                positions, rows = positions[agree], rows[agree]  # noqa: PLW2901
            row_kernels.gather_joined(table.rows, rows, binds, outer, positions, carry, buffer)
            push(len(rows))


def _pairs(pairs: list[tuple[int, int]]) -> Numbers:
    """Pairs of numbers as kernels take them."""
    return np.array(pairs, np.int64).reshape(len(pairs), 2)
