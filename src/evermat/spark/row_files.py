"""The rows of a DataFrame in files of the scratch folder: computed once, counted, and read as often as wanted.

At a path Spark itself writes and reads Parquet files. To a bucket it gets only with libraries that it may not have; there tasks do
both. The driver's Java holds none of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.core import allow_pandas
from evermat.spark.scratch_files import parquet_file, uri_for_spark, write_parquet
from evermat.store import Location, ObjectPath, location_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_WRITTEN = "part long, number long, path string, rows long"
_TYPES = (pa.int64(), pa.int64(), pa.string(), pa.int64())
_FILE_BYTES = 1 << 26  # that a task holds before it writes a file
_SENT_ROWS = 1 << 16
_READERS = 64  # tasks that read files again, at most


@dataclass(frozen=True)
class RowFiles:
    """Parquet files with the rows of a DataFrame, in the order of its partitions, and their number."""

    folder: Location
    files: Sequence[Location]
    rows: int
    schema: StructType = field(repr=False)

    @classmethod
    def of(cls, frame: DataFrame, folder: Location) -> RowFiles:
        """Computes a frame, and writes its rows to a folder that does not exist or is empty.

        This process may not see all of them, if it does not share the folder with those that have written.
        """
        if isinstance(folder, ObjectPath):
            return cls._of_tasks(frame, folder)
        frame.write.mode("append").option("compression", "zstd").parquet(f"file://{folder}")
        files = sorted(folder.glob("part-*.parquet"))
        return cls(folder, files, sum(pq.read_metadata(file).num_rows for file in files), frame.schema)

    @classmethod
    def _of_tasks(cls, frame: DataFrame, folder: Location) -> RowFiles:
        allow_pandas()  # tasks over Arrow need it
        found = frame.mapInArrow(_WriteRows(str(folder)).__call__, _WRITTEN).collect()
        found.sort(key=lambda one: (one["part"], one["number"]))
        files = [location_of(one["path"]) for one in found]
        return cls(folder, files, sum(one["rows"] for one in found), frame.schema)

    def frame(self, spark: SparkSession) -> DataFrame:
        """A DataFrame that reads the files."""
        if isinstance(self.folder, Path):
            return spark.read.schema(self.schema).parquet(uri_for_spark(self.folder))
        count = max(1, min(len(self.files), _READERS))
        reader = _ReadRows(tuple(map(str, self.files)), count)
        return spark.range(0, count, 1, count).mapInArrow(reader.__call__, self.schema)


@dataclass(frozen=True)
class _WriteRows:
    """Writes the rows of a partition to files. Each attempt has names of its own, so only those count that the driver is told of."""

    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        for number, rows in enumerate(_files(batches)):
            file = location_of(self.folder) / f"part-{part:05}-{number:05}-{uuid4().hex}.parquet"
            write_parquet(rows, file, compression="zstd")
            outcome = (part, number, str(file), rows.num_rows)
            columns = [pa.array([value], type_) for value, type_ in zip(outcome, _TYPES, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=["part", "number", "path", "rows"])


def _files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of each file."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size > _FILE_BYTES:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


@dataclass(frozen=True)
class _ReadRows:
    """Yields the rows of files; task i of n has the files i, i + n and so on."""

    files: tuple[str, ...]
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for file in self.files[number :: self.tasks]:
                    with parquet_file(location_of(file)) as stored:
                        yield from stored.iter_batches(_SENT_ROWS)
