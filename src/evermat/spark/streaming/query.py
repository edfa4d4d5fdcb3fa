"""Streaming queries whose batches are processed in the driver, and are recognised when they come again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from os import PathLike, fspath
from typing import TYPE_CHECKING, TypeAlias

from evermat.core import DataError, Problem
from evermat.core import error_catalogue as errors
from evermat.spark.jobs import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

Process: TypeAlias = Callable[[str, "DataFrame", int], None]
"""Processes a batch: of which stream, its rows, its number."""


def check_stream(frame: DataFrame) -> None:
    """Refuses what is no stream, or one whose batches this process cannot see.

    Raises:
        DataError: it is none.
    """
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
    """Starts a query that hands its batches over, one after the other, in a thread of Spark's.

    The name of the stream is made of the id that the checkpoint keeps: it survives restarts, and with another checkpoint, whose batches are counted
    from the beginning, it is another. If `process` raises an error, the query ends with it, and its batch comes again after a restart.
    """
    if available_now and interval is not None:
        raise ValueError("`available_now` ends when everything is processed: it has no `interval`")
    started = _Started()

    def each(batch: DataFrame, number: int) -> None:
        process(f"spark:{started.id()}", batch, number)

    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", fspath(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif interval is not None:
        every = interval if isinstance(interval, str) else f"{round(interval * 1000)} milliseconds"
        writer = writer.trigger(processingTime=every)
    with started:
        query = writer.start()
        started.tell(query.id)
    return query


class _Started:
    """The id of a query, for its batches: the first may be there before `start` has returned."""

    def __init__(self) -> None:
        self._known = threading.Event()
        self._id: str | None = None

    def tell(self, query_id: str) -> None:
        self._id = query_id

    def id(self) -> str:
        self._known.wait()
        if self._id is None:
            raise RuntimeError("the query was not started")
        return self._id

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_error: object) -> None:
        self._known.set()  # also if it was not started: nobody must wait for ever
