"""Where bindings lie while a plan runs: buffers, and the rows that variables have in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from evermat.columns.kernels import rows as row_kernels
from evermat.columns.storage.arrays import Batch, Numbers, Rows
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.encoding import encode
from evermat.engine import Jobs
from evermat.language import Constant, Expression, Variable
from evermat.plan import STARTING, Compute, Match, Step

CHUNK = 1 << 15
#: buffers of a query that are kept for the next one may have so many bytes; of queries at the same time, those of so many are kept
MOST_SPARE, SPARES = 1 << 22, 8
WEIGHT = Variable("'weight", None)  # type: ignore[arg-type]  # how many instances a binding stands for


def _new_buffer(size: int) -> Batch:
    return np.empty((max(size, 1), CHUNK), np.int64)


class Buffers:
    """Buffers that pipelines share, one for each depth and size: of all pipelines of a state only one runs at a time.

    Kernels trust that a buffer holds CHUNK bindings: one that was made for another number, and kept, is none of them.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[int, int, int], Batch] = {}

    def get(self, depth: int, size: int) -> Batch:
        key = depth, size, CHUNK
        if key not in self._made:
            self._made[key] = _new_buffer(size)
        return self._made[key]

    @property
    def nbytes(self) -> int:
        return sum(buffer.nbytes for buffer in self._made.values())


_spare: list[Buffers] = []


@contextmanager
def borrowed_buffers() -> Iterator[Buffers]:
    """Buffers for one user, within the block. They are kept for the next one: new memory costs more than a small query."""
    try:
        buffers = _spare.pop()
    except IndexError:  # none was made yet, or others use them
        buffers = Buffers()
    try:
        yield buffers
    finally:
        if buffers.nbytes <= MOST_SPARE and len(_spare) < SPARES:
            _spare.append(buffers)


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """What pipelines work on."""

    tables: Mapping[str, Any]  # of tables, or of what a reader has captured of them
    dictionary: Dictionary
    buffers: Buffers
    jobs: Jobs


def constants_in(terms: Iterable[tuple[int, object]], dictionary: Dictionary) -> list[tuple[int, int]]:
    """Those of some numbered terms that are constants, as integers."""
    return [(i, encode(term.value, term.type, dictionary)) for i, term in terms if isinstance(term, Constant)]


class Layout:
    """How the head (or the keys and value of an aggregate) lies in the last buffer."""

    def __init__(self, output: tuple[Expression, ...], dictionary: Dictionary) -> None:
        self.output = output
        self.size = len(output)
        self.constants = constants_in(enumerate(output), dictionary)

    def rows_of(self, variable: Variable) -> list[int]:
        return [row for row, term in enumerate(self.output) if term == variable]


class Level:
    """A buffer and the rows that its variables have in it. A variable may have several: the head may repeat it."""

    def __init__(
        self,
        layout: Layout | None,
        live: Iterable[Variable],
        steps: Iterable[Step],
        context: EvaluationContext,
        depth: int,
    ) -> None:
        self.depth, self._buffers, self.dictionary = depth, context.buffers, context.dictionary
        self.rows: dict[Variable, list[int]] = {}
        self.size = 0 if layout is None else layout.size
        self._layout = layout
        for variable in live:
            self.require(variable)
        # Variables computed before the next level begins have a row here as well.
        for step in steps:
            if isinstance(step, Compute):
                self.require(step.variable)
            elif opens_level(step):
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
        if WEIGHT in self.rows:
            self.buffer[self.rows[WEIGHT][0], 0] = 1

    def compress(self, live: Numbers, chosen: Rows) -> int:
        """Keeps the bindings whose positions are listed, in place: positions ascend, so nothing is overwritten too early."""
        row_kernels.compress_rows(self.buffer, live, chosen)
        return len(chosen)


def opens_level(step: Step) -> bool:
    """Whether a step multiplies bindings; an atom that binds nothing need not."""
    return isinstance(step, Match) and (bool(step.binds) or step.role in STARTING or bool(step.equal))


class Keys:
    """Puts the known columns of an atom into one batch, in the order of the columns."""

    def __init__(self, key: tuple[tuple[int, Variable | Constant], ...], level: Level) -> None:
        self.columns = tuple(column for column, _ in key)
        self._level = level
        rows = level.first_row
        self._sources = [(i, rows[known]) for i, (_, known) in enumerate(key) if isinstance(known, Variable)]
        self._constants = constants_in(((i, known) for i, (_, known) in enumerate(key)), level.dictionary)
        wanted = [row for _, row in self._sources]
        self._adjacent = bool(wanted) and not self._constants and wanted == [*range(wanted[0], wanted[0] + len(wanted))]
        self._batch: Batch | None = None

    def batch(self, n: int) -> Batch:
        """The keys of the first n bindings; valid until the next call."""
        if self._batch is None and self._adjacent:
            first = self._sources[0][1]
            self._batch = self._level.buffer[first : first + len(self.columns)]  # a view: always up to date
        elif self._batch is None or self._batch.shape[1] < n:
            # The start has one binding: most queries need no more, and would take longer to fill a whole buffer with constants.
            self._batch = np.empty((len(self.columns), n if n == 1 else CHUNK), np.int64)
            for i, value in self._constants:
                self._batch[i] = value
        if not self._adjacent:
            buffer = self._level.buffer
            for i, row in self._sources:
                self._batch[i, :n] = buffer[row, :n]
        return self._batch
