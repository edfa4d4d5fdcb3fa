"""Writes rows to data files: a table at once, or in pieces so that they need not all be in memory.

The committing thread pulls pieces, one relation after the other, while other threads write files. Only a few files of
pieces are in progress at any time, and the next piece is not pulled before one of them is done: so memory is bounded,
whatever the number of pieces and relations. Rows that tasks elsewhere can write do not come here at all: see `remote_write`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from evermat.store.data_files import PART_ROWS, Columns, Part, PartName, as_stored, table_schema, write_part
from evermat.store.disk import sync, writing
from evermat.store.location import Location
from evermat.store.remote_write import RemoteRows, Target, first_number, write_remotely

Pieces: TypeAlias = pa.Table | Iterable[pa.Table]
"""The rows of a relation: one table, or tables that are pulled once and together have no fact twice."""

_JOINED_BYTES = 1 << 27  # pieces that are larger together become files of their own
_OF_A_TABLE = 1 << 14  # bytes of a table beside its values, roughly: they count where pieces are tiny
_SMALL_ROWS = 1000  # rows that are not worth another thread
_AHEAD = 3  # files of pieces that are written while the next pieces are pulled


@dataclass(frozen=True, slots=True)
class Order:
    """Rows that become data files of one table, by this name."""

    folder: Location
    name: PartName
    columns: Columns
    rows: Pieces | None

    @property
    def target(self) -> Target:
        return Target(self.folder, self.name, self.columns)


def surely_empty(rows: Pieces | None) -> bool:
    """Whether there are certainly no rows; of pieces that is unknown before they are pulled."""
    return rows is None or (isinstance(rows, pa.Table) and not rows.num_rows)


def write_rows(
    pool: Callable[[], ThreadPoolExecutor], orders: Iterable[Order], state: Location, made: list[Location]
) -> list[list[tuple[Part, pa.Table]]]:
    """Writes the rows of many tables side by side; returns for each order the files, with the rows of small ones.

    Small tables are written by this thread. When this returns or raises, no file is being written any more, and `made` has
    all that were. Exceptions of an iterable are passed on; errors of the system become errors about `state`.
    """
    orders = list(orders)
    remote = _written_remotely(orders, state, made)
    made_here: dict[int, tuple[Part, pa.Table]] = {}  # by the number of the order
    files: list[list[Future[tuple[Part, pa.Table]]]] = []
    ahead: set[Future[tuple[Part, pa.Table]]] = set()
    try:
        for order in orders:
            files.append([])
            if len(files) - 1 in remote:
                continue
            here = isinstance(order.folder, Path)  # each request to a bucket takes a while
            if here and isinstance(order.rows, pa.Table) and order.rows.num_rows <= _SMALL_ROWS:
                if order.rows.num_rows:
                    made_here[len(files) - 1] = _write(order, 0, [order.rows], state, made)
                continue
            with closing(_files(order.rows)) as contents:
                for number, pieces in enumerate(contents):
                    future = pool().submit(_write, order, number, pieces, state, made)
                    files[-1].append(future)
                    if not isinstance(order.rows, pa.Table):  # a table is in memory anyway
                        ahead.add(future)
                    while len(ahead) > _AHEAD:
                        ready, ahead = wait(ahead, return_when=FIRST_COMPLETED)
                        for written in ready:
                            written.result()  # raises if it could not be written
        return [
            remote[number]
            if number in remote
            else [made_here[number]]
            if number in made_here
            else [future.result() for future in of_one]
            for number, of_one in enumerate(files)
        ]
    finally:
        for future in chain.from_iterable(files):
            future.cancel()
        wait(chain.from_iterable(files))


def _written_remotely(
    orders: Sequence[Order], state: Location, made: list[Location]
) -> dict[int, list[tuple[Part, pa.Table]]]:
    """The files that tasks write instead of this process, by the number of the order; their rows are not known here."""
    wanted = {
        number: (order.rows, order.target)
        for number, order in enumerate(orders)
        if isinstance(order.rows, RemoteRows) and order.rows.is_large
    }
    found = zip(wanted, write_remotely(list(wanted.values()), state, made), strict=True)
    unknown = {number: table_schema(orders[number].columns).empty_table() for number in wanted}
    return {number: [(part, unknown[number]) for part in parts] for number, parts in found if parts is not None}


def write_parts(target: Target, rows: Iterable[pa.Table]) -> Iterator[Part]:
    """Writes rows as data files that survive a power loss, in a task; yields them. The folder exists."""
    first = first_number()
    with closing(_files(rows)) as contents:
        for number, pieces in enumerate(contents):
            stored = joined([as_stored(piece, target.columns, target.name.last) for piece in pieces], target.columns)
            part = write_part(target.folder, target.name, first + number, stored, makes_folder=False)
            sync(target.folder / part.path)
            yield part


def _files(rows: Pieces | None) -> Generator[list[pa.Table], None, None]:
    """The contents of each file: a part of a large piece, or several small pieces; files are never empty."""
    source = iter(() if rows is None else [rows] if isinstance(rows, pa.Table) else rows)
    try:
        held: list[pa.Table] = []
        count = size = 0
        for part in _cut(source):
            weight = part.nbytes + _OF_A_TABLE
            if held and (count + part.num_rows > PART_ROWS or size + weight > _JOINED_BYTES):
                yield held
                held, count, size = [], 0, 0
            held.append(part)
            count += part.num_rows
            size += weight
        if held:
            yield held
    finally:
        if isinstance(source, Generator):
            source.close()  # after a failure its owner should not have to wait for that


def _cut(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The pieces, cut to the number of rows of a file; without empty ones."""
    for piece in pieces:
        for start in range(0, piece.num_rows, PART_ROWS):
            yield piece.slice(start, PART_ROWS)


def _write(
    order: Order, number: int, pieces: Sequence[pa.Table], state: Location, made: list[Location]
) -> tuple[Part, pa.Table]:
    rows = joined([as_stored(piece, order.columns, order.name.last) for piece in pieces], order.columns)
    with writing(state):
        part = write_part(order.folder, order.name, number, rows)
    made.append(order.folder / part.path)
    return part, rows if rows.num_rows <= _SMALL_ROWS else rows.slice(0, 0)


def joined(tables: Sequence[pa.Table], columns: Columns) -> pa.Table:
    """Stored rows as one table in which a column has one dictionary: Parquet writes plain values after a second one."""
    if len(tables) == 1:
        return tables[0]
    joined = {}
    for position, field in enumerate(table_schema(columns)):
        arrays = [table.column(position) for table in tables]
        coded = all(pa.types.is_dictionary(array.type) for array in arrays)
        # The common dictionary may have more values than the indices of a piece can count.
        kind = pa.dictionary(pa.int32(), field.type) if coded else field.type
        chunks = [chunk for array in arrays for chunk in array.cast(kind).chunks]
        joined[field.name] = pa.chunked_array(chunks, kind)
    return pa.table(joined).unify_dictionaries()
