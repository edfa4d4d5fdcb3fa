"""Rows as files: Arrow tables to Parquet and back, each file checked as a whole before anything looks into it.

The name of a data file says all about it: `<kind>-<level>-<first>-<last>-<rows>-<entry>-<number>-<checksum>.parquet`,
in a bucket with a writer before the checksum.
A *snapshot* has all facts as of the version `first`. *Changes* have the rows of the versions `first` to `last`, ascending;
level n was merged from sixteen files of level n-1, and level 0 has the rows of one version.
"""

from __future__ import annotations

import io
import os
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evermat.store.disk import (
    Unread,
    contents_of,
    create,
    damaged,
    mkdir,
    reading,
    rename,
    temporary_of,
    unlink,
    write,
    write_file,
)
from evermat.store.location import Location, ObjectPath
from evermat.store.names import NONRECURSIVE, OP, ORIGIN, RECURSIVE, VERSION, column_names

# Rows of a file: large enough to compress well, small enough that several threads share a large relation.
PART_ROWS = 2_000_000
_SMALL = 1 << 22  # bytes that are written in one piece
_SMALL_ROWS = 100_000  # not worth a second thread or thought
_TINY_ROWS = 32  # not worth a dictionary or compression

SNAPSHOT, CHANGES = "snapshot", "changes"
_NAME = re.compile(r"(snapshot|changes)-(\d+)-(\d+)-(\d+)-(\d+)-(\d+)-(\d+)(?:-w\d+x[0-9a-f]{8})?-[0-9a-f]{8}\.parquet")

_TYPES = {str(t): t for t in (pa.string(), pa.int64(), pa.decimal128(20, 0), pa.float64())}
_DELTA_TYPES = {"string": "string", "int64": "long", "decimal128(20, 0)": "decimal(20,0)", "double": "double"}

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A data file: its path in the table's folder, its size, the number of its rows, and the versions that these are of."""

    path: str
    size: int
    rows: int
    first: int
    last: int
    level: int = 0
    entry: int = 0
    snapshot: bool = False
    number: int = 0

    @property
    def checksum(self) -> int:
        """The CRC-32 of the whole file, which its name carries."""
        return int(self.path[-16:-8], 16)

    @property
    def order(self) -> tuple[int, int, int, int]:
        """Sorts the files of a table by version."""
        return self.first, self.last, self.entry, self.number

    @staticmethod
    def of(path: str, size: int) -> Part:
        """The data file of this name; a `ValueError` if it is not one of evermat."""
        found = _NAME.fullmatch(path)
        if found is None:
            raise ValueError(f"`{path}` is not a data file of evermat")
        level, first, last, rows, entry, number = map(int, found.groups()[1:])
        return Part(path, size, rows, first, last, level, entry, found.group(1) == SNAPSHOT, number)


@dataclass(frozen=True, slots=True)
class PartName:
    """The name of a data file but for the number of its rows, its number among those of its entry, and its checksum.

    `writer` is set in a bucket, where several write at a time: their files must have different names (see `attempt`).
    """

    entry: int
    first: int
    last: int
    level: int = 0
    snapshot: bool = False
    writer: str = ""

    def part(self, rows: int, number: int, size: int, checksum: int) -> Part:
        kind = SNAPSHOT if self.snapshot else CHANGES
        numbers = f"{self.level}-{self.first}-{self.last}-{rows}-{self.entry}-{number}"
        path = f"{kind}-{numbers}{self.writer and f'-{self.writer}'}-{checksum:08x}.parquet"
        return Part(path, size, rows, self.first, self.last, self.level, self.entry, self.snapshot, number)


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
    return pa.schema([*fact_schema(columns), *(pa.field(*column) for column in own), pa.field(VERSION, pa.int64())])


def delta_fields(columns: Columns) -> list[tuple[str, str]]:
    """All columns of a relation's table as Delta types."""
    own = [(ORIGIN, "string"), (NONRECURSIVE, "long"), (RECURSIVE, "long"), (OP, "string"), (VERSION, "long")]
    return [*((name, _DELTA_TYPES[kind]) for name, kind in columns), *own]


def as_stored(rows: pa.Table, columns: Columns, version: int) -> pa.Table:
    """The rows with the stored columns: facts by position, the rest by name.

    A missing `_op` is `+`, missing counters are null. Dictionaries stay: Parquet writes them as they are.
    """
    schema = table_schema(columns)
    if rows.num_columns < len(columns):
        raise TypeError(f"the rows have {rows.num_columns} columns, but there are {len(columns)} fact columns")
    arrays = []
    own = rows.column_names[len(columns) :]
    for position, field in enumerate(schema):
        if position < len(columns):
            array = rows.column(position)
        elif field.name in own:
            array = rows.column(len(columns) + own.index(field.name))
        elif field.name == ORIGIN:
            raise TypeError(f"the rows have no column `{ORIGIN}`")
        elif field.name == VERSION:
            array = pa.array(np.full(rows.num_rows, version))
        else:
            array = pa.repeat(pa.scalar("+" if field.name == OP else None, field.type), rows.num_rows)
        if not (
            array.type == field.type or (pa.types.is_dictionary(array.type) and array.type.value_type == field.type)
        ):
            array = array.cast(field.type)
        arrays.append(array)
    return pa.table(arrays, names=schema.names)


class _Checked(io.RawIOBase):
    """A file that is written once from start to end, with a running checksum; its caller closes the descriptor."""

    def __init__(self, descriptor: int, file: Path) -> None:
        super().__init__()
        self._descriptor, self._file = descriptor, file
        self.size = 0
        self.checksum = 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.checksum = zlib.crc32(view, self.checksum)
        self.size += len(view)
        write(self._descriptor, view, self._file)
        return len(view)

    def tell(self) -> int:
        return self.size

    def writable(self) -> bool:
        return True


def write_part(folder: Location, name: PartName, number: int, rows: pa.Table, *, makes_folder: bool = True) -> Part:
    """Writes rows as one data file of a table, which is neither in the log nor durable yet."""
    if makes_folder:
        mkdir(folder)
    if rows.nbytes < _SMALL or isinstance(folder, ObjectPath):
        buffer = pa.BufferOutputStream()
        _write_parquet(rows, buffer)
        raw = buffer.getvalue()
        part = name.part(rows.num_rows, number, raw.size, zlib.crc32(raw))
        write_file(folder / part.path, memoryview(raw))
        return part
    temporary = temporary_of(folder / f"{name.entry}-{name.first}-{name.level}-{number}")
    descriptor = create(temporary)
    try:
        sink = _Checked(descriptor, temporary)
        _write_parquet(rows, pa.PythonFile(sink, mode="w"))
        part = name.part(rows.num_rows, number, sink.size, sink.checksum)
        rename(temporary, folder / part.path)
    except BaseException:
        unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    return part


def plain(table: pa.Table) -> pa.Table:
    """The table without dictionaries."""
    columns = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def _write_parquet(rows: pa.Table, sink: Any) -> None:
    if rows.num_rows <= _TINY_ROWS:
        options = {"compression": "none", "use_dictionary": False, "write_statistics": False, "store_schema": False}
        pq.write_table(plain(rows), sink, **options)
        return
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


def read_part(
    folder: Location, part: Part, strings: Sequence[str] = (), source: io.FileIO | Unread | None = None
) -> pa.Table:
    """The rows of a data file, whose every byte is checked; `strings` are dictionaries, as they are written.

    If the file has been opened already, `source` is read.
    """
    file = folder / part.path
    with reading(file):
        raw = contents_of(file) if source is None else source.readall()
    if len(raw) != part.size:
        raise damaged(file, f"it has {len(raw)} bytes instead of {part.size}")
    if zlib.crc32(raw) != part.checksum:
        raise damaged(file, "its checksum is wrong")
    try:
        stored = pq.ParquetFile(pa.BufferReader(raw), read_dictionary=[*strings])
        return stored.read(use_threads=part.rows > _SMALL_ROWS)
    except (pa.ArrowException, OSError) as error:
        raise damaged(file, "it is not a Parquet file") from error


def read_rows(folder: Location, part: Part, columns: Columns, source: io.FileIO | Unread | None = None) -> pa.Table:
    """The rows of a relation in a data file; strings, `_origin` and `_op` are dictionaries if that is faster."""
    strings = [name for name, kind in columns if kind == "string"]
    table = read_part(folder, part, [*strings, ORIGIN, OP], source)
    expected = table_schema(columns).names
    if VERSION not in table.column_names:  # of format 1, where it is in the path
        table = table.append_column(VERSION, pa.array(np.full(table.num_rows, part.last)))
    if table.column_names != expected or (part.rows and table.num_rows != part.rows):
        raise damaged(folder / part.path, "its columns or rows are not those of the relation")
    return table


def read_current(
    folder: Location, part: Part, columns: Columns, version: int, source: io.FileIO | Unread | None = None
) -> pa.Table:
    """Of each fact in a data file the last row that is not newer than a version."""
    table = read_rows(folder, part, columns, source)
    if part.last > version:
        table = table.filter(pc.less_equal(table[VERSION], version))
    return table if part.first == part.last else last_rows(table, len(columns))


def last_rows(table: pa.Table, arity: int) -> pa.Table:
    """Of each fact the last row, in order; `arity` is the number of fact columns, which come first."""
    count = table.num_rows
    if count < 2:
        return table
    keys = np.zeros(count, np.int64)
    for position in range(arity):
        keys = _paired(keys, _coded(table.column(position)))
    _, found = np.unique(keys[::-1], return_index=True)
    return table if len(found) == count else table.take(pa.array(np.sort(count - 1 - found)))


def _paired(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Numbers that are equal where both are."""
    _, left = np.unique(one, return_inverse=True)
    _, right = np.unique(other, return_inverse=True)
    paired: npt.NDArray[np.int64] = left.astype(np.int64) * (int(right.max()) + 1) + right
    return paired


def _coded(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Numbers that are equal where values are."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    whole = pa.concat_arrays(column.chunks)
    if pa.types.is_floating(whole.type):
        whole = whole.view(pa.int64())
    elif not pa.types.is_integer(whole.type):
        whole = whole.dictionary_encode().indices
    codes: npt.NDArray[np.int64] = whole.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes
