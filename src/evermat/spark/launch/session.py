"""The SparkSession of the command line: started quickly and quietly, and stopped without remains.

Callers from Python have a session. The command line starts one here; a process has one JVM at most.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evermat.core import EvermatError, Problem, ResourceError, allow_pandas, uninterrupted
from evermat.core import error_catalogue as errors
from evermat.spark.jobs import essential
from evermat.spark.launch.jvm import Running
from evermat.spark.launch.settings import check_master, check_settings, not_possible, reach, try_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Modules of exceptions whose texts come from the JVM at every access: they cannot outlive it.
_SPOKEN_BY_JAVA = ("py4j.", "pyspark.errors.exceptions.captured")

_running: Running | None = None


@contextmanager
def session(
    *, master: str | None, memory: int, conf: Mapping[str, str], name: str = "evermat"
) -> Iterator[SparkSession]:
    """A SparkSession for the block, stopped after it; see `open_session`.

    Raises:
        ResourceError: as `open_session`, or an exception of Spark ends the block.
    """
    before = _running
    spark = open_session(master=master, memory=memory, conf=conf, name=name)
    well = False
    try:
        yield spark
        well = True
    except EvermatError:
        raise
    except Exception as error:
        ended = None if _running is None else _running.last_words()
        if ended is not None:
            raise ResourceError(Problem(errors.SPARK_ENDED, {"why": ended})) from error
        if type(error).__module__.startswith(_SPOKEN_BY_JAVA):
            details = {"what": "do its work", "why": essential(error)}
            raise ResourceError(Problem(errors.SPARK_FAILED, details)) from None
        raise
    finally:
        if _running is not before:
            close_session(well=well)


def open_session(*, master: str | None, memory: int, conf: Mapping[str, str], name: str = "evermat") -> SparkSession:
    """Starts Spark and returns a session, which `close_session` or the end of the process stops.

    A process has one Spark: if one is running already, this is another session of it, and it runs on afterwards. In a process that
    `spark-submit` has started, the session is the submitted one, with its settings. `master` is the cluster as Spark names it, or
    `sc://host:port` for Spark Connect, and None this machine alone; `memory` are the bytes that the whole command may use.

    Raises:
        ProgramError: the master or a setting is misspelled.
        ResourceError: Spark cannot be started, or there is no cluster at that address.
    """
    global _running  # noqa: PLW0603
    check_master(master)
    check_settings(conf)
    if _running is not None or _active() is not None:
        return _another(conf)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        from pyspark.sql import SparkSession  # noqa: PLC0415

        submitted = SparkSession.builder.getOrCreate()
        submitted.sparkContext.setLogLevel("ERROR")
        return submitted
    if master is not None:
        reach(master)
    with uninterrupted():
        running = _running = Running()  # from here on `close_session` finds it
    atexit.register(close_session)
    try:
        with _without_warnings():
            if master is not None and master.startswith("sc://"):
                allow_pandas()
                return running.connect(master, conf, name)
            return running.start(master, memory, conf, name)
    except BaseException:
        close_session()
        raise


def stores_classes() -> bool:
    """Whether closing the session takes longer this once, so that later ones start faster."""
    return _running is not None and _running.archive is not None and _running.archive.missing


def close_session(*, well: bool = False) -> None:
    """Stops the session of `open_session`, if there is one, and deletes its files; if all went well, Spark's classes are stored."""
    global _running  # noqa: PLW0603
    running = _running
    if running is None:
        return
    with uninterrupted(), _without_warnings():
        running.close(well=well)
        _running = None
    atexit.unregister(close_session)


def _active() -> Any:
    """The existing SparkSession of this process, or None; PySpark is not loaded for that."""
    module = sys.modules.get("pyspark.sql")
    return None if module is None else module.SparkSession._instantiatedSession  # noqa: SLF001


def _another(conf: Mapping[str, str]) -> SparkSession:
    found = _running.spark if _running is not None else _active()
    made = found.newSession()
    made.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        try_settings(made, conf)
    except Exception as error:
        wrong = not_possible(conf, essential(error), str(error))
        if wrong is None:
            raise
        raise wrong from None
    return made


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppresses warnings of PySpark, which are for programmers and not for users of the command line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
