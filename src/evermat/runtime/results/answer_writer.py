"""Answers as text and files: a table for people, and CSV, JSON lines and Parquet for programs.

Rows are sorted as in every output, unless there are very many. The answer to a query without variables has one column `answer` and one row with its
truth value there; as a table it is `true` or `false`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.core import ANSWER_FORMATS, AnswerFormat
from evermat.io import FORMATS, arrow_schema, sorted_batches, spell
from evermat.language import Column, Io, Relation, Type

if TYPE_CHECKING:
    from evermat.runtime.results.answer import Answer

_TRUTH = "answer"  # the column of a truth value
_SORTED = 5_000_000  # rows that are sorted; more are written as they are found
_BOXED = 1000  # rows up to which a terminal gets a box: drawing it takes long
_NUMERIC = Type.NUMBER | Type.UNSIGNED | Type.FLOAT


def write_answer(answer: Answer, format: AnswerFormat, stream: BinaryIO) -> None:  # noqa: A002
    """Writes an answer to a stream of bytes; see `Answer.write`."""
    ANSWER_FORMATS.check(format)
    relation = answer.relation
    if not relation.columns:
        _write_truth(bool(answer), format, stream)
        return
    batches, count = _in_order(answer, in_memory=format == "table")
    if format == "table":
        boxed = stream.isatty() and count <= _BOXED
        (_write_box if boxed else _write_aligned)(relation, _rows(relation, batches), stream)
    else:
        file_format = FORMATS["text" if format == "csv" else format]
        file_format.write(stream, Io(relation, delimiter=",", headers=True, rfc4180=True), batches, Path())


def _in_order(answer: Answer, *, in_memory: bool) -> tuple[Iterator[pa.RecordBatch], int]:
    """The rows in their order, and how many there are; if they are very many and need not be in memory, as they come."""
    batches = answer.batches()
    first: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        first.append(batch)
        count += batch.num_rows
        if count > _SORTED and not in_memory:
            return chain(first, batches), count
    return sorted_batches(pa.Table.from_batches(first, arrow_schema(answer.relation)), answer.relation), count


def _write_truth(truth: bool, format_: str, stream: BinaryIO) -> None:
    text = json.dumps(truth)
    match format_:
        case "csv":
            stream.write(f"{_TRUTH}\n{text}\n".encode())
        case "jsonl":
            stream.write(f'{{"{_TRUTH}": {text}}}\n'.encode())
        case "parquet":
            pq.write_table(pa.table({_TRUTH: [truth]}), stream)
        case _:
            stream.write(f"{text}\n".encode())


def _rows(relation: Relation, batches: Iterable[pa.RecordBatch]) -> Iterator[Sequence[str]]:
    """The rows as texts that a terminal shows as they are: what cannot be printed is escaped."""
    for batch in batches:
        columns = [
            map(_visible, spell(array, type_).to_pylist())
            for array, type_ in zip(batch.columns, relation.types, strict=True)
        ]
        yield from zip(*columns, strict=True)


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _is_number(column: Column) -> bool:
    return column.type in _NUMERIC


def _write_aligned(relation: Relation, rows: Iterable[Sequence[str]], stream: BinaryIO) -> None:
    """Columns side by side under their names; numbers stand at the right."""
    from rich.cells import cell_len

    names = [column.name for column in relation.columns]
    lines = [names, *rows]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    right = [_is_number(column) for column in relation.columns]
    for line in lines:
        blanks = [" " * (width - cell_len(text)) for text, width in zip(line, widths, strict=True)]
        cells = [b + text if r else text + b for text, b, r in zip(line, blanks, right, strict=True)]
        stream.write(("  ".join(cells).rstrip(" ") + "\n").encode())


def _write_box(relation: Relation, rows: Iterable[Sequence[str]], stream: BinaryIO) -> None:
    """A table drawn with lines; values that are too wide for the terminal are folded, never cut."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = list(rows)
    table = Table(box=box.ROUNDED)
    for column in relation.columns:
        justify = "right" if _is_number(column) else "left"
        table.add_column(Text(column.name), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in listed:
        table.add_row(*map(Text, row))
    drawn = StringIO()
    Console(file=drawn, force_terminal=True, width=shutil.get_terminal_size().columns).print(table)
    count = f"{len(listed):,} {'row' if len(listed) == 1 else 'rows'}"
    stream.write(f"{drawn.getvalue()}{count}\n".encode())
