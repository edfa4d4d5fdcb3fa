"""Relations in Parquet: one file, or a folder of files as Spark writes it.

How columns match is said in `column_match`. Rows and row groups are counted from 1.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evermat.core import ask_for, check_input, check_stop, library_input
from evermat.core import error_catalogue as errors
from evermat.io.column_match import conform
from evermat.io.error_report import fail
from evermat.io.formats.registry import InputFile
from evermat.io.locate import files_of
from evermat.io.schema import ARROW_TYPES
from evermat.language import Io, Relation, Type

PARQUET_UNSIGNED = pa.decimal128(20, 0)
_ROW_GROUP = 1 << 20
_LARGE = 1 << 28  # bytes of a row group that is read in parts
_ROWS = 1 << 16  # of such a part


def read_parquet(source: Any, file: InputFile) -> pa.Table:
    """The facts of a relation from a path, or a stream that can be read at any offset."""
    name = file.findings.path
    table, row_name = _read_file(source, name)
    return conform(table, file.io.relation, name, row_name, check_terms=file.checks_terms)


def read_tables(path: Path, what: str) -> Iterator[tuple[Path, pa.Table, Callable[[int], str]]]:
    """The tables of a file, or of all Parquet files of a folder in the order of their names.

    With each comes its file, and what errors call a row of it, counted from 0.
    """
    check_input(path)
    for part in files_of(path, what) if path.is_dir() else [path]:
        yield part, *_read_file(part, str(part))


def _read_file(source: Any, name: str) -> tuple[pa.Table, Callable[[int], str]]:
    opened = library_input(source) if isinstance(source, Path) else nullcontext(source)
    try:
        with opened as readable, pq.ParquetFile(readable) as file:
            return _read_groups(file), _row_names(file.metadata)
    except pa.ArrowInvalid as error:
        raise fail(errors.BAD_PARQUET, path=name, why=_first_sentence(error)) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise fail(errors.BAD_PARQUET, path=name, why=_first_sentence(error)) from error


def _read_groups(file: Any) -> pa.Table:
    """All rows: a row group, or of a large one some rows, at a time."""
    parts: list[pa.Table] = []
    for number in range(file.metadata.num_row_groups):
        check_stop()
        size = file.metadata.row_group(number).total_byte_size
        if size <= _LARGE:
            ask_for(size)
            parts.append(file.read_row_group(number))
        else:
            for batch in file.iter_batches(_ROWS, row_groups=[number]):
                check_stop()
                parts.append(pa.Table.from_batches([batch]))
    return pa.concat_tables(parts) if parts else file.read()


def _first_sentence(error: Exception) -> str:
    return str(error).split("\n")[0].split(". ")[0].rstrip(".")


def _row_names(metadata: Any) -> Callable[[int], str]:
    """What errors call a row: its position is told by row group, too."""

    def row_name(row: int) -> str:
        ends = accumulate(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        return f"row {row + 1} (row group {bisect_right(list(ends), row) + 1})"

    return row_name


def write_parquet(sink: BinaryIO, io: Io, batches: Iterable[pa.RecordBatch], _path: Path) -> None:
    """Writes one Parquet file; the fact of a nullary relation is a row of a column `present`."""
    relation = io.relation
    schema = parquet_schema(relation)
    with pq.ParquetWriter(sink, schema) as writer:
        for batch in batches:
            arrays = [pc.cast(array, field.type) for array, field in zip(batch.columns, schema, strict=False)]
            if not relation.columns:
                arrays = [pa.array([True] * batch.num_rows)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=_ROW_GROUP)


def parquet_schema(relation: Relation) -> pa.Schema:
    """The schema of a relation's Parquet file: an unsigned is decimal(20,0), which Spark can read."""
    if not relation.columns:
        return pa.schema([pa.field("present", pa.bool_(), nullable=False)])
    types = ARROW_TYPES | {Type.UNSIGNED: PARQUET_UNSIGNED}
    return pa.schema([pa.field(column.name, types[column.type], nullable=False) for column in relation.columns])
