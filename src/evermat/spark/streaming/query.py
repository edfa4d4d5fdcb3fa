"""Streaming queries whose batches are processed in the driver, and are recognised when Spark repeats them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from os import PathLike, fspath
from typing import TYPE_CHECKING, TypeAlias

from evermat.core import DataError, Problem
from evermat.core import error_catalogue as errors
from evermat.spark.jobs import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

Process: TypeAlias = Callable[[str, "DataFrame", int], None]
"""Processes a batch: the name of its stream, its rows, its number."""


def check_stream(frame: DataFrame) -> None:
    """Raises a `DataError` for a DataFrame that is not a stream, or whose batches are processed elsewhere."""
    if is_connect(frame.sparkSession):
        why = "it is one of Spark Connect, which has batches processed elsewhere"
        raise DataError(Problem(errors.NO_STREAM, {"why": why}))
    if not frame.isStreaming:
        raise DataError(Problem(errors.NO_STREAM, {"why": "it is an ordinary one, which `update` takes"}))


def start_query(
    frame: DataFrame,
    process: Process,
    *,
    checkpoint: str | PathLike[str],
    available_now: bool = False,
    interval: str | float | None = None,
) -> StreamingQuery:
    """Starts a query that processes its batches, one after the other, in a thread of Spark's.

    The name of the stream is made of the id in the checkpoint: it survives restarts, and differs for another checkpoint, whose batches are
    numbered from the beginning. If `process` raises an error, the query ends with it, and its batch is repeated after a restart.
    """
    if available_now and interval is not None:
        raise ValueError("`available_now` ends when everything is processed: it has no `interval`")
    started: Future[str] = Future()  # the first batch may be processed before `start` has returned

    def each(batch: DataFrame, number: int) -> None:
        process(f"spark:{started.result()}", batch, number)

    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", fspath(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif interval is not None:
        every = interval if isinstance(interval, str) else f"{round(interval * 1000)} milliseconds"
        writer = writer.trigger(processingTime=every)
    try:
        query = writer.start()
        started.set_result(query.id)
    except BaseException as error:
        started.set_exception(RuntimeError(f"the query was not started: {error}"))  # no batch may wait for ever
        raise
    return query
