"""The SparkSession of the command line: started quickly and quietly, and gone without a trace in the end.

Who calls Evermat from Python brings a session. The command line starts one here; a process has one JVM at most.
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

# Where exceptions are from whose texts are asked from the JVM, again and again: they cannot outlive it.
_SPOKEN_BY_JAVA = ("py4j.", "pyspark.errors.exceptions.captured")

_running: Running | None = None


@contextmanager
def session(
    *, master: str | None, memory: int, conf: Mapping[str, str], name: str = "evermat"
) -> Iterator[SparkSession]:
    """A SparkSession for the block; see `open_session`. After the block, nothing of it is left.

    Raises:
        ResourceError: as `open_session`, or Spark has failed during the block in a way that nobody has dealt with.
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
        ended = _last_words()
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

    A process has one Spark: if there is one already, the session is a new one of that, and that goes on afterwards. In a process that
    `spark-submit` has started, Spark is the one that was submitted to, with its settings.

    Args:
        master: the cluster as Spark names it, or `sc://host:port` for Spark Connect; None is this machine alone.
        memory: bytes that the whole command may use.
        conf: settings of Spark; they count more than ours.
        name: what the application is called in Spark's user interface.

    Raises:
        ProgramError: the master or a setting is not spelled as it must be.
        ResourceError: Spark cannot be started, or there is no cluster at that address.
    """
    global _running  # noqa: PLW0603
    check_master(master)
    check_settings(conf)
    if _running is not None or _active() is not None:
        return _another(conf)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _submitted()
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
    """Whether closing the session takes longer, this once, so that later ones start faster."""
    return _running is not None and _running.archive is not None and _running.archive.missing


def close_session(*, well: bool = False) -> None:
    """Stops what `open_session` has started, and removes its files; does nothing if there is nothing.

    If all went well there may be time to store Spark's classes.
    """
    global _running  # noqa: PLW0603
    running = _running
    if running is None:
        return
    with uninterrupted(), _without_warnings():
        running.close(well=well)
        _running = None
    atexit.unregister(close_session)


def _last_words() -> str | None:
    return None if _running is None else _running.last_words()


def _active() -> Any:
    """The SparkSession that this process has already, or None; PySpark is not loaded for that."""
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


def _submitted() -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    made = SparkSession.builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keeps warnings of PySpark, which are for those who program with it, from the users of the command line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
