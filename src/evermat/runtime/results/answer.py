"""The answer to a query."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock
from typing import BinaryIO, final

from evermat.columns import Batch, Dictionary, Solutions, rows_of
from evermat.core import AnswerFormat, this_process
from evermat.language import Relation as RelationSchema
from evermat.runtime.rows import EncodedRows, Tabular


@final
class _Solved(EncodedRows):
    """The rows of an answer: those of a table, or computed by each reader until one needs all of them."""

    def __init__(self, relation: RelationSchema, solutions: Solutions, dictionary: Dictionary) -> None:
        super().__init__(relation, dictionary)
        self._solutions, self._gathering = solutions, RLock()
        self._process = this_process()

    def gathered(self) -> Solutions:
        """All rows in a table; of several threads one computes them."""
        if self._solutions.computed is not None:
            self._process.check()
            with self._gathering:
                self._solutions.gather()
        return self._solutions

    def undefined(self) -> int:
        """How many bindings were dropped because an expression had no value."""
        if self._solutions.undefined is None:
            self.gathered()
        return self._solutions.undefined or 0

    def count(self) -> int:
        return self.gathered().table.count

    def chunks(self) -> Iterator[Batch]:
        computed = self._solutions.computed
        if computed is None:
            return rows_of(self._solutions.table)
        self._process.check()
        return computed()

    def found(self, row: Batch) -> bool:
        if self._solutions.computed is not None:
            return any(bool((chunk == row).all(axis=0).any()) for chunk in self.chunks())
        return bool(self._solutions.table.contains(row, None, 1)[0])

    def holds_any(self) -> bool:
        """Whether there is a row."""
        return any(chunk.shape[1] for chunk in self.chunks())

    @property
    def title(self) -> str:
        if not self.relation.columns:
            return str(self.holds_any()).lower()
        count = self.count()
        return f"{count:,} {'row' if count == 1 else 'rows'}"


@final
class Answer(Tabular):
    """The answer to a query: a set of rows, one column for each named variable. Later updates do not change it.

    The rows of an answer about a state directory are computed while they are read; `len`, `undefined`, tables and the printed form
    need all of them, and keep them.

    The answer to a query without variables is true or false: it has no columns, and one row, the empty one, or none.
    """

    def __init__(self, relation: RelationSchema, solutions: Solutions, dictionary: Dictionary) -> None:
        self._solved = _Solved(relation, solutions, dictionary)

    def _rows(self) -> EncodedRows:
        return self._solved

    @property
    def undefined(self) -> int:
        """How many bindings were dropped because an expression had no value."""
        return self._solved.undefined()

    @property
    def relation(self) -> RelationSchema:
        """The columns with their types."""
        return self._solved.relation

    def write(self, stream: BinaryIO, format: AnswerFormat = "table") -> None:  # noqa: A002
        """Writes the answer to a stream of bytes, such as `sys.stdout.buffer` or an open file.

        Rows are sorted, unless there are very many. The answer to a query without variables has one column `answer` and one row.

        Args:
            stream: where to.
            format: `table` (with a box if the stream is a terminal), `csv` (RFC 4180, with a line of names), `jsonl` (one
                object in each line) or `parquet`.
        """
        from evermat.runtime.results.answer_writer import write_answer

        write_answer(self, format, stream)

    def __bool__(self) -> bool:
        return self._solved.holds_any()

    def __repr__(self) -> str:
        return f"<Answer ({', '.join(self.columns)}): {self._solved.title}>"
