"""Rows as files: Arrow tables to Parquet and back, each file checked as a whole before anything looks into it."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.store.delta_log import Part, part_name
from evermat.store.disk import damaged, read
from evermat.store.names import NONRECURSIVE, OP, ORIGIN, RECURSIVE, VERSION, column_names

# Rows of a file: large enough to compress well, small enough that several threads share a large relation.
PART_ROWS = 2_000_000
_SMALL = 1 << 22  # bytes that are written in one piece
_SMALL_ROWS = 100_000  # not worth a second thread or thought

_TYPES = {str(t): t for t in (pa.string(), pa.int64(), pa.decimal128(20, 0), pa.float64())}
_DELTA_TYPES = {"string": "string", "int64": "long", "decimal128(20, 0)": "decimal(20,0)", "double": "double"}

Columns = tuple[tuple[str, str], ...]


def stored_columns(schema: pa.Schema) -> Columns:
    """The names and types under which the fact columns are stored."""
    types = []
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        name = "string" if pa.types.is_large_string(kind) else str(kind)
        if name not in _TYPES:
            raise TypeError(f"a column of a relation cannot be of the type {field.type}")
        types.append(name)
    return tuple(zip(column_names(schema.names), types, strict=True))


def fact_schema(columns: Columns) -> pa.Schema:
    """The stored fact columns."""
    return pa.schema([pa.field(name, _TYPES[kind]) for name, kind in columns])


def table_schema(columns: Columns) -> pa.Schema:
    """All stored columns, in the order in which they stand in the files."""
    own = [(ORIGIN, pa.string()), (NONRECURSIVE, pa.int64()), (RECURSIVE, pa.int64()), (OP, pa.string())]
    return pa.schema([*fact_schema(columns), *(pa.field(*column) for column in own)])


def delta_fields(columns: Columns) -> list[tuple[str, str]]:
    """All columns of a relation's table as Delta types, the partition column included."""
    own = [(ORIGIN, "string"), (NONRECURSIVE, "long"), (RECURSIVE, "long"), (OP, "string"), (VERSION, "long")]
    return [*((name, _DELTA_TYPES[kind]) for name, kind in columns), *own]


def as_stored(rows: pa.Table, columns: Columns) -> pa.Table:
    """The rows with the stored columns: facts by position, the rest by name.

    A missing `_op` is `+`, missing counters are null. Dictionaries stay: Parquet writes them as they are.
    """
    schema = table_schema(columns)
    if rows.num_columns < len(columns):
        raise TypeError(f"the rows have {rows.num_columns} columns, but there are {len(columns)} fact columns")
    arrays = []
    for position, field in enumerate(schema):
        if position < len(columns):
            array = rows.column(position)
        elif field.name in rows.column_names[len(columns) :]:
            array = rows.column(rows.column_names.index(field.name, len(columns)))
        elif field.name == ORIGIN:
            raise TypeError(f"the rows have no column `{ORIGIN}`")
        else:
            array = pa.repeat(pa.scalar("+" if field.name == OP else None, field.type), rows.num_rows)
        if not (pa.types.is_dictionary(array.type) and array.type.value_type == field.type):
            array = array.cast(field.type)
        arrays.append(array)
    return pa.table(arrays, names=schema.names)


class _Checked(io.RawIOBase):
    """A file that is written once from start to end, with a running checksum; its caller closes the descriptor."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self.size = 0
        self.checksum = 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        size = len(view)
        self.checksum = zlib.crc32(view, self.checksum)
        self.size += size
        while view:
            view = view[os.write(self._descriptor, view) :]
        return size

    def tell(self) -> int:
        return self.size

    def writable(self) -> bool:
        return True


def write_part(folder: Path, entry: int, number: int, rows: pa.Table, version: int = 0) -> Part:
    """Writes rows as one data file of a table, which is neither in the log nor durable yet."""
    partition = f"_version={version}/" if version else ""
    home = folder / partition
    home.mkdir(parents=True, exist_ok=True)
    temporary = home / f".{entry}-{number}.part"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        sink = _Checked(descriptor)
        if rows.nbytes < _SMALL:
            buffer = pa.BufferOutputStream()
            _write_parquet(rows, buffer)
            sink.write(buffer.getvalue())
        else:
            _write_parquet(rows, pa.PythonFile(sink, mode="w"))
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    path = partition + part_name(entry, number, sink.checksum)
    temporary.rename(folder / path)
    return Part(path, sink.size, rows.num_rows, version)


def _write_parquet(rows: pa.Table, sink: Any) -> None:
    pq.write_table(
        rows,
        sink,
        compression="zstd",
        use_dictionary=True,
        write_page_checksum=True,
        row_group_size=PART_ROWS,  # a dictionary is written, and read, once for each group
        # Minimum and maximum would be computed over all values of a dictionary, used or not.
        write_statistics=[field.name for field in rows.schema if not pa.types.is_dictionary(field.type)],
        store_schema=False,  # other readers get plain columns, whatever ours were encoded as
    )


def read_part(folder: Path, part: Part, strings: Sequence[str] = ()) -> pa.Table:
    """The rows of a data file, whose every byte is checked; `strings` are dictionaries, as they are written."""
    file = folder / part.path
    raw = read(file)
    if len(raw) != part.size:
        raise damaged(file, f"it has {len(raw)} bytes instead of {part.size}")
    if zlib.crc32(raw) != part.checksum:
        raise damaged(file, "its checksum is wrong")
    try:
        stored = pq.ParquetFile(pa.BufferReader(raw), read_dictionary=[*strings])
        return stored.read(use_threads=part.rows > _SMALL_ROWS)
    except (pa.ArrowException, OSError) as error:
        raise damaged(file, "it is not a Parquet file") from error


def read_rows(folder: Path, part: Part, columns: Columns) -> pa.Table:
    """The rows of a relation in a data file; strings, `_origin` and `_op` are dictionaries if that is faster."""
    strings = [name for name, kind in columns if kind == "string"]
    table = read_part(folder, part, [*strings, ORIGIN, OP])
    schema = table_schema(columns)
    if table.column_names != schema.names or table.num_rows != part.rows:
        raise damaged(folder / part.path, "its columns or rows are not those of the relation")
    return table
