"""Relations in Parquet: one file, or a folder of files as Spark writes it.

How columns match is said in `arrow`. Rows and row groups are counted from 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evermat.errors import BAD_PARQUET, NO_FILE
from evermat.files.arrow import conform
from evermat.files.findings import fail
from evermat.files.layout import ARROW_TYPES, table_of
from evermat.program.builtins import Type
from evermat.program.model import Relation

UNSIGNED = pa.decimal128(20, 0)
_ROW_GROUP = 1 << 20


# --- reading -----------------------------------------------------------------------------------------------


def read_parquet(path: Path, relation: Relation) -> pa.Table:
    """The facts of a relation from a Parquet file, or from all Parquet files of a folder."""
    if not path.is_dir():
        return _read_file(path, relation)
    parts = sorted(part for part in path.iterdir() if part.suffix == ".parquet" and part.name[0] not in "._")
    if not parts:
        hint = "the folder has no files that end in `.parquet`"
        raise fail(NO_FILE, hint, path=path / "*.parquet", relation=relation.name)
    return table_of(relation, [_read_file(part, relation) for part in parts])


def _read_file(path: Path, relation: Relation) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            return _read_rows(path, file, relation)
    except pa.ArrowInvalid as error:
        raise fail(BAD_PARQUET, path=path, why=_first_sentence(error)) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise fail(BAD_PARQUET, path=path, why=_first_sentence(error)) from error


def _first_sentence(error: Exception) -> str:
    return str(error).split("\n")[0].split(". ")[0].rstrip(".")


def _read_rows(path: Path, file: Any, relation: Relation) -> pa.Table:
    """The facts of one open file; a row's place is told by row group, too."""

    def place_of(row: int) -> str:
        group, begin = 0, 0
        while row >= begin + file.metadata.row_group(group).num_rows:
            begin += file.metadata.row_group(group).num_rows
            group += 1
        return f"row {row + 1} (row group {group + 1})"

    return conform(file.read(), relation, str(path), place_of)


# --- writing -----------------------------------------------------------------------------------------------


def write_parquet(sink: BinaryIO, relation: Relation, batches: Iterable[pa.RecordBatch]) -> None:
    """Writes one Parquet file; the fact of a nullary relation is a row of a column `present`."""
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
    types = ARROW_TYPES | {Type.UNSIGNED: UNSIGNED}
    return pa.schema([pa.field(column.name, types[column.type], nullable=False) for column in relation.columns])
