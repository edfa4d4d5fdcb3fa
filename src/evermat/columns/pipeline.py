"""Plans over columns: batches of bindings are extended literal by literal.

A pipeline has one *level* for the start and one for each `Match`. A level owns a buffer with a row for every variable that is still
needed there; filters and computations work in place on it, a join fills the buffer of the next level in chunks.
So memory is bounded by the buffers however large a join, and every step is a few kernel calls per chunk. The last
level's buffer is laid out like the head: what arrives there is handed to the sink as it is.

A join sees its table as it was when the pipeline was started, although heads are appended to tables while it runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from evermat.columns import kernels
from evermat.columns.dictionary import Dictionary
from evermat.columns.expressions import compile_expression, compile_test
from evermat.columns.index import Index
from evermat.columns.run import Jobs
from evermat.columns.table import Batch, Rows, Table, Truth
from evermat.columns.values import encode
from evermat.plan.steps import STARTING, Check, Compute, Filter, Match, Plan, Role, Step
from evermat.program.model import Constant, Expression, Relation, Variable, variables_of

CHUNK = 1 << 14
_WEIGHT = Variable("'weight", None)  # type: ignore[arg-type]  # how many instances a binding stands for


class Selection(NamedTuple):
    """Rows of a table: those in lo … hi whose state satisfies `truth` (None: all).

    Where a few rows are read one after the other, not looked up, they may be listed instead.
    """

    lo: int
    hi: int
    truth: Truth | None = None
    rows: Rows | None = None

    @property
    def empty(self) -> bool:
        """Whether there can be no row."""
        return self.hi <= self.lo


Select = Callable[[Role, Relation], Selection]


def _new_buffer(size: int) -> Batch:
    return np.empty((max(size, 1), CHUNK), np.int64)


class Buffers:
    """Buffers that pipelines share, one for each depth and size: of all pipelines of a state only one runs at a time."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], Batch] = {}

    def get(self, depth: int, size: int) -> Batch:
        """The buffer of a level."""
        if (depth, size) not in self._made:
            self._made[depth, size] = _new_buffer(size)
        return self._made[depth, size]


@dataclass(frozen=True, slots=True)
class Store:
    """What pipelines work on."""

    tables: Mapping[str, Table]
    dictionary: Dictionary
    buffers: Buffers
    jobs: Jobs


class Sink(Protocol):
    """Takes batches [columns, capacity] of which the first n columns count, and their weights (None: 1 each)."""

    def __call__(self, batch: Batch, n: int, weights: npt.NDArray[np.int64] | None) -> None: ...


class Pipeline:
    """A compiled plan.

    With `counted`, every instance is reported: an atom that binds nothing multiplies the weight of a binding by the number
    of facts that agree. Without, one such fact is enough.
    """

    def __init__(self, plan: Plan, store: Store, *, counted: bool) -> None:
        tables, dictionary = store.tables, store.dictionary
        self.plan = plan
        self.matches = 0  # facts that were looked at
        self.undefined = 0  # bindings dropped because something had no value
        self.sink: Sink  # where the output goes, while it runs
        needed = _needed_after(plan, counted=counted)
        layout = _Layout(plan.output, dictionary)
        self._steps: list[_Operation] = []
        last = max((i for i, step in enumerate(plan.steps) if _opens_level(step)), default=-1)
        start = {_WEIGHT} if counted else set()
        level = _Level(layout if last == -1 else None, start, plan.steps, store.buffers, 0)
        self._start = level
        for i, step in enumerate(plan.steps):
            live = needed[i]
            if _opens_level(step):
                assert isinstance(step, Match)
                rest = plan.steps[i + 1 :]
                inner = _Level(layout if i == last else None, live, rest, store.buffers, level.depth + 1)
                table = tables[step.relation.name]
                self._steps.append(_matching(step, level, inner, table, dictionary, self, first=i == 0))
                level = inner
            elif isinstance(step, Match):
                self._steps.append(
                    _Exists(step, level, tables[step.relation.name], dictionary, counted=counted, live=live)
                )
            elif isinstance(step, Check):
                self._steps.append(_Absent(step, level, tables[step.relation.name], dictionary, live))
            elif isinstance(step, Compute):
                self._steps.append(_Computing(step, level, dictionary, live, self))
            else:
                self._steps.append(_Filtering(step, level, dictionary, live, self))
        self._steps.append(_Emit(level, layout, dictionary, self))
        for operation, following in zip(self._steps, self._steps[1:], strict=False):
            operation.next = following
        self._readers = [(operation.role, operation) for operation in self._steps if operation.role is not None]

    def run(self, select: Select, sink: Sink) -> None:
        """Sends the output of every binding to the sink."""
        for role, operation in self._readers:
            operation.selection = selection = select(role, operation.relation)
            if operation.required and selection.hi <= selection.lo:
                return
        self.sink = sink
        self._start.reset()
        self._steps[0].push(1)


# --- layout of buffers -------------------------------------------------------------------------------------


class _Layout:
    """How the head (or the keys and value of an aggregate) lies in the last buffer."""

    def __init__(self, output: tuple[Expression, ...], dictionary: Dictionary) -> None:
        self.output = output
        self.size = len(output)
        self.constants = [
            (row, encode(term.value, term.type, dictionary))
            for row, term in enumerate(output)
            if isinstance(term, Constant)
        ]

    def rows_of(self, variable: Variable) -> list[int]:
        return [row for row, term in enumerate(self.output) if term == variable]


class _Level:
    """A buffer and the rows that its variables have in it. A variable may have several: the head may repeat it."""

    def __init__(
        self, layout: _Layout | None, live: Iterable[Variable], steps: Iterable[Step], buffers: Buffers, depth: int
    ) -> None:
        self.depth, self._buffers = depth, buffers
        self.rows: dict[Variable, list[int]] = {}
        self.size = 0 if layout is None else layout.size
        self._layout = layout
        for variable in live:
            self.require(variable)
        # Variables computed before the next level begins have their place here as well.
        for step in steps:
            if isinstance(step, Compute):
                self.require(step.variable)
            elif _opens_level(step):
                break
        self._buffer: Batch | None = None

    def require(self, variable: Variable) -> None:
        """Gives a variable its rows: those of the head where it has some, or a new one."""
        if variable not in self.rows:
            self.rows[variable] = self._layout.rows_of(variable) if self._layout else []
            if not self.rows[variable]:
                self.rows[variable] = [self.size]
                self.size += 1

    @property
    def first_row(self) -> dict[Variable, int]:
        """One row for each variable."""
        return {variable: rows[0] for variable, rows in self.rows.items()}

    @property
    def buffer(self) -> Batch:
        """Made when first needed. One with constants of the head is this level's own: they are filled in once."""
        if self._buffer is None:
            constants = self._layout.constants if self._layout else []
            self._buffer = _new_buffer(self.size) if constants else self._buffers.get(self.depth, self.size)
            for row, value in constants:
                self._buffer[row] = value
        return self._buffer

    def reset(self) -> None:
        """The start has one binding, of nothing, that counts once."""
        if _WEIGHT in self.rows:
            self.buffer[self.rows[_WEIGHT][0], 0] = 1

    def compress(self, live: list[int], chosen: Rows) -> int:
        """Keeps the bindings whose positions are listed, in place: positions ascend, so nothing is overwritten too early."""
        buffer = self.buffer
        for row in live:
            kernels.gather_batch(buffer, row, chosen, buffer, row)
        return len(chosen)


def _opens_level(step: Step) -> bool:
    """Whether a step multiplies bindings; an atom that binds nothing need not."""
    return isinstance(step, Match) and (bool(step.binds) or step.role in STARTING or bool(step.equal))


def _needed_after(plan: Plan, *, counted: bool) -> list[set[Variable]]:
    """The variables that are read after each step, or handed out."""
    needed = set(variables_of(*plan.output))
    if counted:
        needed.add(_WEIGHT)
    result: list[set[Variable]] = []
    for step in reversed(plan.steps):
        result.append(set(needed))
        match step:
            case Match() | Check():
                if isinstance(step, Match):
                    needed -= {variable for _, variable in step.binds}
                needed |= {known for _, known in step.key if isinstance(known, Variable)}
            case Compute():
                needed.discard(step.variable)
                needed |= set(variables_of(step.expression))
            case Filter():
                needed |= set(variables_of(step.test))
    return result[::-1]


class _Keys:
    """Puts the known columns of an atom into one batch, in the order of the columns."""

    def __init__(self, key: tuple[tuple[int, Variable | Constant], ...], level: _Level, dictionary: Dictionary) -> None:
        self.columns = tuple(column for column, _ in key)
        self._level = level
        rows = level.first_row
        self._sources = [(i, rows[known]) for i, (_, known) in enumerate(key) if isinstance(known, Variable)]
        self._constants = [
            (i, encode(known.value, known.type, dictionary))
            for i, (_, known) in enumerate(key)
            if isinstance(known, Constant)
        ]
        wanted = [row for _, row in self._sources]
        self._adjacent = (
            not self._constants and wanted == list(range(wanted[0], wanted[0] + len(wanted))) if wanted else False
        )
        self._batch: Batch | None = None

    def batch(self, n: int) -> Batch:
        """The keys of the first n bindings; valid until the next call."""
        if self._batch is None:
            if self._adjacent:
                first = self._sources[0][1]
                self._batch = self._level.buffer[first : first + len(self.columns)]  # a view: always up to date
                return self._batch
            self._batch = np.empty((len(self.columns), CHUNK), np.int64)
            for i, value in self._constants:
                self._batch[i] = value
        if not self._adjacent:
            buffer = self._level.buffer
            for i, row in self._sources:
                self._batch[i, :n] = buffer[row, :n]
        return self._batch


# --- operations --------------------------------------------------------------------------------------------


class _Operation(ABC):
    """One step: takes the first n bindings of its level's buffer and pushes what comes of them to the next."""

    __slots__ = ("next", "relation", "required", "role", "selection")

    next: _Operation
    selection: Selection

    def __init__(self, role: Role | None = None, relation: Relation | None = None, *, required: bool = False) -> None:
        self.role = role
        self.relation: Relation = relation  # type: ignore[assignment]  # set wherever there is a role
        self.required = required  # without facts nothing can come of it

    @abstractmethod
    def push(self, n: int) -> None:
        """Handles the first n bindings."""


class _Emit(_Operation):
    """The end: what is in the buffer is the output."""

    __slots__ = ("_computed", "_level", "_pipeline", "_size", "_view", "_weight")

    def __init__(self, level: _Level, layout: _Layout, dictionary: Dictionary, pipeline: Pipeline) -> None:
        super().__init__()
        self._level, self._pipeline = level, pipeline
        self._size = layout.size
        self._weight = level.rows[_WEIGHT][0] if _WEIGHT in level.rows else None
        # An aggregate may hand out an expression that is not a variable.
        self._computed = [
            (row, compile_expression(term, level.first_row, dictionary))
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
            chosen = np.flatnonzero(keep).astype(np.int32)
            self._pipeline.undefined += n - len(chosen)
            n = self._level.compress(list(range(self._level.size)), chosen)
        if n:
            weights = None if self._weight is None else self._level.buffer[self._weight, :n]
            self._pipeline.sink(self._view, n, weights)


class _Filtering(_Operation):
    __slots__ = ("_level", "_live", "_pipeline", "_test")

    def __init__(
        self, step: Filter, level: _Level, dictionary: Dictionary, live: set[Variable], pipeline: Pipeline
    ) -> None:
        super().__init__()
        self._level, self._pipeline = level, pipeline
        self._test = compile_test(step.test, level.first_row, dictionary)
        self._live = _live_rows(level, live)

    def push(self, n: int) -> None:
        truth, valid = self._test(self._level.buffer, n)
        if valid is not None:
            self._pipeline.undefined += n - int(np.count_nonzero(np.broadcast_to(valid, (n,))))
        chosen = np.flatnonzero(truth)
        if len(chosen) == n:
            self.next.push(n)
        elif len(chosen):
            self.next.push(self._level.compress(self._live, chosen.astype(np.int32)))


class _Computing(_Operation):
    __slots__ = ("_evaluate", "_level", "_live", "_pipeline", "_rows", "_solved")

    def __init__(
        self, step: Compute, level: _Level, dictionary: Dictionary, live: set[Variable], pipeline: Pipeline
    ) -> None:
        super().__init__()
        self._level, self._pipeline = level, pipeline
        self._evaluate = compile_expression(step.expression, level.first_row, dictionary)
        self._rows = level.rows[step.variable]
        self._solved = step.solved
        self._live = _live_rows(level, live)

    def push(self, n: int) -> None:
        buffer = self._level.buffer
        values, valid = self._evaluate(buffer, n)
        for row in self._rows:
            buffer[row, :n] = values
        if valid is not None and not (valid := np.broadcast_to(valid, (n,))).all():
            chosen = np.flatnonzero(valid).astype(np.int32)
            if not self._solved:
                self._pipeline.undefined += n - len(chosen)
            n = self._level.compress(self._live, chosen)
        if n:
            self.next.push(n)


class _Absent(_Operation):
    """A negated atom: keeps the bindings whose fact is not there."""

    __slots__ = ("_keys", "_level", "_live", "_table")

    def __init__(self, step: Check, level: _Level, table: Table, dictionary: Dictionary, live: set[Variable]) -> None:
        super().__init__(step.role, step.relation)
        self._level, self._table = level, table
        self._keys = _Keys(step.key, level, dictionary)
        self._live = _live_rows(level, live)

    def push(self, n: int) -> None:
        if not self.selection.empty:
            present = contains(self._table, self._keys.batch(n), n, self.selection)
            chosen = np.flatnonzero(~present)
            if len(chosen) < n:
                n = self._level.compress(self._live, chosen.astype(np.int32))
        if n:
            self.next.push(n)


class _Exists(_Operation):
    """An atom that binds nothing: keeps the bindings for which some fact agrees, or multiplies their weight."""

    __slots__ = ("_counted", "_full", "_index", "_keys", "_level", "_live", "_table", "_weight")

    def __init__(
        self, step: Match, level: _Level, table: Table, dictionary: Dictionary, *, counted: bool, live: set[Variable]
    ) -> None:
        super().__init__(step.role, step.relation, required=True)
        self._level, self._table = level, table
        self._keys = _Keys(step.key, level, dictionary)
        self._full = len(step.key) == table.arity
        self._index: Index | None = None
        self._counted = counted
        self._weight = level.rows[_WEIGHT][0] if counted else -1
        self._live = _live_rows(level, live)

    def push(self, n: int) -> None:
        if self._full:
            chosen = np.flatnonzero(contains(self._table, self._keys.batch(n), n, self.selection))
        elif not self._keys.columns:
            self._push_all(n)
            return
        else:
            if self._index is None:
                self._index = self._table.index(self._keys.columns)
            keys = self._keys.batch(n)
            lo, hi, truth, _ = self.selection
            if self._counted:
                found = self._index.counts(keys, truth, lo=lo, hi=hi, n=n)
                chosen = np.flatnonzero(found)
                _multiply(self._level.buffer[self._weight, :n], found)
            else:
                chosen = np.flatnonzero(self._index.exists(keys, truth, lo=lo, hi=hi, n=n))
        if len(chosen) < n:
            n = self._level.compress(self._live, chosen.astype(np.int32))
        if n:
            self.next.push(n)

    def _push_all(self, n: int) -> None:
        """Any fact of the relation agrees with every binding."""
        count = count_rows(self._table, self.selection, stop_at_first=not self._counted)
        if count:
            if self._counted:
                _multiply(self._level.buffer[self._weight, :n], count)
            self.next.push(n)


def _multiply(weights: npt.NDArray[np.int64], factor: npt.NDArray[np.int64] | int) -> None:
    """Weights times numbers of facts; numbers of instances beyond 64 bits are refused, not wrapped."""
    product = weights * factor
    if np.any(np.asarray(weights, np.float64) * factor > 9.2e18):
        raise OverflowError("more than 2^63 instances of one rule for one fact")
    weights[:] = product


class _Scan(_Operation):
    """The first atom, or one of which nothing is known: every binding meets every selected row."""

    __slots__ = (
        "_binds",
        "_carry",
        "_equal",
        "_first",
        "_inner",
        "_keys",
        "_level",
        "_pipeline",
        "_table",
        "_weight_row",
    )

    def __init__(
        self,
        step: Match,
        level: _Level,
        inner: _Level,
        table: Table,
        dictionary: Dictionary,
        pipeline: Pipeline,
        *,
        first: bool,
    ) -> None:
        super().__init__(step.role, step.relation, required=True)
        self._pipeline = pipeline
        self._table, self._level, self._inner, self._first = table, level, inner, first
        self._carry = _carried(level, inner)
        self._binds = [(column, row) for column, variable in step.binds for row in inner.rows.get(variable, ())]
        # Known columns of an atom that is scanned are constants, tested on the row itself.
        self._keys = [
            (column, encode(known.value, known.type, dictionary))
            for column, known in step.key
            if isinstance(known, Constant)
        ]
        assert len(self._keys) == len(step.key)
        self._equal = step.equal
        self._weight_row = inner.rows[_WEIGHT][0] if first and _WEIGHT in inner.rows else None

    def push(self, n: int) -> None:
        lo, hi, truth, listed = self.selection
        if listed is None and truth is None and not self._keys and not self._equal and self._first:
            inner, table = self._inner, self._table
            buffer = inner.buffer
            self._pipeline.matches += hi - lo
            for first in range(lo, hi, CHUNK):
                end = min(first + CHUNK, hi)
                for column, row in self._binds:
                    table.read(column, first, end, buffer, row)
                if self._weight_row is not None:
                    buffer[self._weight_row, : end - first] = 1
                self.next.push(end - first)
            return
        chunks = (
            self._table.scan(truth, lo, hi, CHUNK)
            if listed is None
            else (listed[first : first + CHUNK] for first in range(0, len(listed), CHUNK))
        )
        for rows in chunks:
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
        buffer, outer = self._inner.buffer, self._level.buffer if self._carry else None
        for i in range(n):  # a product: for every binding all rows
            for column, row in self._binds:
                self._table.gather(column, rows, buffer, row)
            for source, row in self._carry:
                assert outer is not None
                buffer[row, : len(rows)] = outer[source, i]
            if self._weight_row is not None:
                buffer[self._weight_row, : len(rows)] = 1
            self.next.push(len(rows))


class _Join(_Operation):
    """An atom of which some columns are known: an index gives the rows of each binding."""

    __slots__ = ("_binds", "_carry", "_equal", "_index", "_inner", "_keys", "_level", "_pipeline", "_table")

    def __init__(
        self, step: Match, level: _Level, inner: _Level, table: Table, dictionary: Dictionary, pipeline: Pipeline
    ) -> None:
        super().__init__(step.role, step.relation, required=True)
        self._pipeline = pipeline
        self._table, self._level, self._inner = table, level, inner
        self._keys = _Keys(step.key, level, dictionary)
        self._carry = _carried(level, inner)
        self._binds = [(column, row) for column, variable in step.binds for row in inner.rows.get(variable, ())]
        self._equal = step.equal
        self._index: Index | None = None

    def push(self, n: int) -> None:
        if self._index is None:
            self._index = self._table.index(self._keys.columns)
        lo, hi, truth, _ = self.selection
        table, gather, push = self._table, kernels.gather_batch, self.next.push
        outer, buffer = self._level.buffer, self._inner.buffer
        for positions, rows in self._index.join(self._keys.batch(n), truth, lo=lo, hi=hi, n=n, chunk=CHUNK):
            self._pipeline.matches += len(rows)
            if self._equal:
                agree = np.flatnonzero(
                    np.logical_and.reduce([table.rows[rows, a] == table.rows[rows, b] for a, b in self._equal])
                )
                if not len(agree):
                    continue
                positions, rows = positions[agree], rows[agree]  # noqa: PLW2901
            for source, row in self._carry:
                gather(outer, source, positions, buffer, row)
            for column, row in self._binds:
                table.gather(column, rows, buffer, row)
            push(len(rows))


def _matching(
    step: Match,
    level: _Level,
    inner: _Level,
    table: Table,
    dictionary: Dictionary,
    pipeline: Pipeline,
    *,
    first: bool,
) -> _Operation:
    """A join where something is known of the atom that depends on the binding, else a scan."""
    if step.key and not (first and step.role in STARTING):
        return _Join(step, level, inner, table, dictionary, pipeline)
    return _Scan(step, level, inner, table, dictionary, pipeline, first=first)


def _carried(level: _Level, inner: _Level) -> list[tuple[int, int]]:
    """Rows of variables that both buffers hold."""
    return [(level.rows[v][0], row) for v, rows in inner.rows.items() if v in level.rows for row in rows]


def _live_rows(level: _Level, live: set[Variable]) -> list[int]:
    return [row for variable, rows in level.rows.items() if variable in live for row in rows]


def contains(table: Table, batch: Batch, n: int, selection: Selection) -> npt.NDArray[np.bool_]:
    """Which tuples are among the selected rows."""
    lo, hi, truth, _ = selection
    if lo == 0 and hi >= table.count:
        return table.contains(batch, truth, n)
    rows = table.find(batch, n)
    present = (rows >= lo) & (rows < hi)
    if truth is not None and table.count:
        present &= truth[table.state[rows]] != 0
    return present


def count_rows(table: Table, selection: Selection, *, stop_at_first: bool) -> int:
    """How many rows are selected, or 1 if any is."""
    lo, hi, truth, _ = selection
    if truth is None:
        return max(hi - lo, 0)
    count = 0
    for rows in table.scan(truth, lo, hi):
        count += len(rows)
        if stop_at_first:
            break
    return count
