"""Rows on their way from the tasks that write them to the process that commits them: few in the message of a task, many in a file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from evermat.core import Problem, ResourceError
from evermat.core import error_catalogue as errors

_IN_MESSAGE = 1 << 18  # bytes of rows that a message may have: those of all tasks pass through the driver's memory
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"  # what Spark tells tasks of a stream


@dataclass(frozen=True)
class StagedRows(WriterCommitMessage):  # type: ignore[misc]
    """The rows of one task.

    Attributes:
        rows: How many there are.
        content: The rows, unless they are in a file.
        file: The file, in a folder of the write.
        query: The id of the streaming query whose micro-batch this is; it is the same for all who continue from one checkpoint.
    """

    rows: int
    content: bytes
    file: str
    query: str


@dataclass(frozen=True)
class Staging:
    """Where tasks write rows: in a folder for each write, within one that all machines share.

    A micro-batch that is repeated has the same folder, so that what a crash left there is removed with it.
    """

    within: str
    write: str

    @classmethod
    def of(cls, scratch: str | None) -> Staging:
        return cls(scratch or tempfile.gettempdir(), uuid4().hex)

    def stage(self, batches: Iterable[pa.RecordBatch]) -> StagedRows:
        """The message of a task about its rows; a task that fails leaves no file."""
        query, folder = self._of_task()
        held: list[pa.RecordBatch] = []
        rest = iter(batches)
        size = 0
        for batch in rest:
            held.append(batch)
            size += batch.nbytes
            if size > _IN_MESSAGE:
                break
        else:
            return StagedRows(sum(batch.num_rows for batch in held), _encoded(held), "", query)
        file = folder / f"{uuid4().hex}.arrow"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            rows = _write(file, held, rest)
        except OSError as error:
            _remove(file)
            details = {"path": file, "why": error.strerror or str(error), "rest": "it is needed to exchange rows"}
            raise ResourceError(Problem(errors.CANNOT_WRITE, details)) from error
        except BaseException:
            _remove(file)
            raise
        return StagedRows(rows, b"", str(file), query)

    def _of_task(self) -> tuple[str, Path]:
        """The streaming query and the folder of a task."""
        from pyspark import TaskContext

        context = TaskContext.get()
        query, batch = (None, None) if context is None else map(context.getLocalProperty, (_QUERY, _BATCH))
        name = self.write if query is None else f"{query}-{batch}"
        return query or "", Path(self.within, f"evermat-rows-{name}")


def _write(file: Path, held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> int:
    """Writes batches, of which few are held, and returns the number of rows."""
    rows = 0
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, held[0].schema, options=_COMPRESSED) as writer:
        for some in (held, rest):
            for batch in some:
                writer.write_batch(batch)
                rows += batch.num_rows
            held = []
    return rows


def _remove(file: Path) -> None:
    with suppress(OSError):
        file.unlink()


def _encoded(batches: Sequence[pa.RecordBatch]) -> bytes:
    if not batches:
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema, options=_COMPRESSED) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


@contextmanager
def staged_rows(messages: Sequence[StagedRows | None]) -> Iterator[pa.Table | None]:
    """The rows of all tasks, in the order of the tasks; None if there are none. Their files are removed at the end of the block.

    Raises:
        ResourceError: this process does not see what tasks have written.
    """
    try:
        tables = []
        for message in messages:
            if message is not None and message.rows:
                table = _read(message)
                if table.num_rows != message.rows:
                    why = f"a task has written {message.rows:,} rows, and {table.num_rows:,} came back"
                    raise ResourceError(Problem(errors.SPARK_FAILED, {"what": "exchange rows", "why": why}))
                tables.append(table)
        yield _concatenated(tables)
    finally:
        remove_staged(messages)


def _concatenated(tables: list[pa.Table]) -> pa.Table | None:
    """The rows of all tables; of rows without columns, which are all the same, those of the first."""
    if len(tables) < 2 or not tables[0].num_columns:
        return tables[0] if tables else None
    return pa.concat_tables(tables)


def _read(message: StagedRows) -> pa.Table:
    if message.content:
        return pa.ipc.open_stream(message.content).read_all()
    file = Path(message.file)
    if not file.exists():
        raise ResourceError(Problem(errors.SCRATCH_NOT_SHARED, {"path": file.parent}))
    with pa.OSFile(str(file)) as source:
        return pa.ipc.open_stream(source).read_all()


def remove_staged(messages: Sequence[StagedRows | None]) -> None:
    """Removes the folders of a write, with what tasks left in them that were killed or ran twice."""
    for folder in {Path(message.file).parent for message in messages if message is not None and message.file}:
        shutil.rmtree(folder, ignore_errors=True)
