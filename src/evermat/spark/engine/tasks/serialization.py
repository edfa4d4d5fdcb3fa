"""Serialization of batches of columns as Parquet files and as packed Arrow bytes, and the buckets of facts.

Numbers of all types are integers as in the columns engine; symbols are texts, so that a file is valid in every process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.columns import Batch, Dictionary
from evermat.language import Type
from evermat.spark.scratch_files import parquet_file, write_parquet
from evermat.store import location_of

Amounts = npt.NDArray[np.int64]

_READ_ROWS = 1 << 18
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_AMOUNT = "amount"
_NULLARY = "present"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FactFile:
    """A file with facts of one relation and one bucket. The driver deletes it when nothing refers to this any more."""

    path: str
    rows: int
    bucket: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of facts in files: which of them are texts; and which columns decide on the bucket."""

    texts: tuple[bool, ...]
    home: tuple[int, ...]

    @classmethod
    def of(cls, types: Sequence[Type], home: Sequence[int] | None = None) -> Shape:
        """The shape of facts with columns of these types; by default all columns decide."""
        texts = tuple(type_ in (Type.SYMBOL, Type.TERM) for type_ in types)
        return cls(texts, tuple(range(len(types)) if home is None else home))

    @property
    def arity(self) -> int:
        return len(self.texts)


def buckets_of(batch: Batch, shape: Shape, count: int, dictionary: Dictionary) -> npt.NDArray[np.int64]:
    """The bucket of each fact, of so many."""
    mixed = np.zeros(batch.shape[1], np.uint64)
    for column in shape.home:
        values = batch[column]
        mixed ^= dictionary.hashes()[values] if shape.texts[column] else values.view(np.uint64)
        mixed *= _FACTOR
        mixed ^= mixed >> _HALF
    return (mixed % np.uint64(count)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Part:
    """One of `count` parts of all facts: some of the buckets, or, if there are more parts than buckets, some facts of one."""

    buckets: int
    count: int
    number: int

    def __post_init__(self) -> None:
        assert self.count <= self.buckets or self.count % self.buckets == 0

    def __contains__(self, bucket: object) -> bool:
        assert isinstance(bucket, int)
        fewer = min(self.count, self.buckets)
        return bucket % fewer == self.number % fewer

    def only(
        self, batch: Batch, amounts: Amounts | None, shape: Shape, dictionary: Dictionary
    ) -> tuple[Batch, Amounts | None]:
        """The facts of a batch, from buckets that overlap the part, that are in it."""
        if self.count <= self.buckets:
            return batch, amounts
        chosen = np.flatnonzero(buckets_of(batch, shape, self.count, dictionary) == self.number)
        return np.ascontiguousarray(batch[:, chosen]), None if amounts is None else amounts[chosen]


def by_bucket(buckets: npt.NDArray[np.int64]) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
    """The positions of the facts of each bucket that occurs."""
    order = np.argsort(buckets, kind="stable")
    ordered = buckets[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(order) else np.empty(0, np.intp)
    for start, end in zip(starts, np.r_[starts[1:], len(order)], strict=True):
        yield int(ordered[start]), order[start:end]


def to_arrow(batch: Batch, shape: Shape, dictionary: Dictionary, amounts: Amounts | None = None) -> pa.Table:
    """A batch as Arrow columns."""
    columns: dict[str, pa.Array] = {}
    for position, is_text in enumerate(shape.texts):
        values = batch[position]
        columns[f"c{position}"] = (
            dictionary.decode_compactly(values.astype(np.int32)) if is_text else pa.array(np.ascontiguousarray(values))
        )
    if not columns:
        columns[_NULLARY] = pa.array(np.ones(batch.shape[1], np.bool_))
    if amounts is not None:
        columns[_AMOUNT] = pa.array(amounts)
    return pa.table(columns)


def from_arrow(table: pa.Table | pa.RecordBatch, shape: Shape, dictionary: Dictionary) -> tuple[Batch, Amounts | None]:
    """The batch of Arrow columns, and the amounts if there are any."""
    batch = np.empty((shape.arity, table.num_rows), np.int64)
    for position, is_text in enumerate(shape.texts):
        column = table.column(position)
        batch[position] = dictionary.encode_arrow(column) if is_text else column.to_numpy()
    amounts = table.column(table.num_columns - 1).to_numpy() if table.schema.names[-1] == _AMOUNT else None
    return batch, amounts


def pack(table: pa.Table) -> bytes:
    """Arrow columns as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpack(payload: pa.Buffer | bytes) -> pa.Table:
    """The Arrow columns in some bytes."""
    with pa.ipc.open_stream(payload) as reader:
        return reader.read_all()


def write_file(table: pa.Table, folder: str, bucket: int) -> FactFile:
    """Writes facts of a bucket; the name is new, so that of a task that runs twice only one result counts."""
    path = location_of(folder) / f"{bucket}-{uuid4().hex}.parquet"
    texts = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    write_parquet(table, path, use_dictionary=texts, write_statistics=False)
    return FactFile(str(path), table.num_rows, bucket)


def read_file(
    file: FactFile, shape: Shape, dictionary: Dictionary, part: object = None
) -> Iterator[tuple[Batch, Amounts | None]]:
    """The facts of a file, or of a part of it, a piece at a time."""
    texts = [f"c{position}" for position, is_text in enumerate(shape.texts) if is_text]
    with parquet_file(location_of(file.path), read_dictionary=texts) as stored:
        if stored.metadata.num_rows != file.rows:
            raise OSError(f"{file.path} has {stored.metadata.num_rows} facts, and not {file.rows}")
        for piece in stored.iter_batches(_READ_ROWS):
            batch, amounts = from_arrow(piece, shape, dictionary)
            if isinstance(part, Part):
                batch, amounts = part.only(batch, amounts, shape, dictionary)
            yield batch, amounts
