"""Further sessions of a Spark, with settings of their own."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from evermat.spark.jobs import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def new_session(spark: SparkSession) -> SparkSession:
    """Another session of the same Spark. Before 4.3, Spark Connect has no method for it: another client of the server is its session."""
    if not is_connect(spark) or hasattr(type(spark), "newSession"):
        return spark.newSession()
    client: Any = spark.client  # type: ignore[attr-defined,unused-ignore]
    channel = copy(client._builder)  # noqa: SLF001
    channel._params = {name: value for name, value in channel._params.items() if name != "session_id"}  # noqa: SLF001
    connect: Any = type(spark)
    made: SparkSession = connect(channel, userId=client._user_id)  # noqa: SLF001
    return made
