"""The answer to a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, final

from evermat.columns import Batch, Dictionary, Solutions, rows_of
from evermat.core import AnswerFormat
from evermat.language import Relation as RelationSchema
from evermat.runtime.rows import Tabular


@final
class Answer(Tabular):
    """The answer to a query: a set of rows, one column for each named variable. Later updates do not change it.

    The rows of an answer about a state directory are computed while they are read; `len`, `undefined`, tables and the printed form
    need all of them, and keep them.

    The answer to a query without variables is true or false: it has no columns, and one row, the empty one, or none.
    """

    def __init__(self, relation: RelationSchema, solutions: Solutions, dictionary: Dictionary) -> None:
        super().__init__(relation, dictionary)
        self._solutions = solutions

    @property
    def undefined(self) -> int:
        """How many bindings were dropped because an expression had no value."""
        if self._solutions.undefined is None:
            self._solutions.gather()
        return self._solutions.undefined or 0

    @property
    def relation(self) -> RelationSchema:
        """The columns with their types."""
        return self._relation

    def _chunks(self) -> tuple[Dictionary, Iterator[Batch]]:
        return self._dictionary, self._batches()

    def _batches(self) -> Iterator[Batch]:
        computed = self._solutions.computed
        return rows_of(self._solutions.table) if computed is None else computed()

    def _found(self, row: Batch) -> bool:
        if self._solutions.computed is not None:
            return any(bool((chunk == row).all(axis=0).any()) for chunk in self._batches())
        return bool(self._solutions.table.contains(row, None, 1)[0])

    def write(self, stream: BinaryIO, format: AnswerFormat = "table") -> None:  # noqa: A002
        """Writes the answer to a stream of bytes, such as `sys.stdout.buffer` or an open file.

        Rows are sorted, unless there are very many. The answer to a query without variables has one column `answer` and one row.

        Args:
            stream: where to.
            format: `table` (with a box if the stream is a terminal), `csv` (RFC 4180, with a line of names), `jsonl` (one
                object in each line) or `parquet`.
        """
        from evermat.runtime.answer_writer import write_answer

        write_answer(self, format, stream)

    def __len__(self) -> int:
        return self._solutions.gather().count

    def __bool__(self) -> bool:
        if self._solutions.computed is not None:
            return any(chunk.shape[1] for chunk in self._batches())
        return self._solutions.table.count > 0

    @property
    def _title(self) -> str:
        if not self._relation.columns:
            return str(bool(self)).lower()
        return f"{len(self):,} {'row' if len(self) == 1 else 'rows'}"

    def __repr__(self) -> str:
        return f"<Answer ({', '.join(self.columns)}): {self._title}>"
