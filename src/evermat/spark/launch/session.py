"""The SparkSession of the command line: started quickly and quietly, and stopped without remains.

Callers from Python have a session. The command line starts one here; a process has one JVM at most.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evermat.core import EvermatError, Problem, ResourceError, allow_pandas, uninterrupted
from evermat.core import error_catalogue as errors
from evermat.spark.jobs import essential, python_trouble
from evermat.spark.launch.jvm import Running
from evermat.spark.launch.settings import check_master, check_settings, not_possible, reach, try_settings
from evermat.spark.new_session import new_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Modules of exceptions whose texts come from the JVM at every access: they cannot outlive it.
_SPOKEN_BY_JAVA = ("py4j.", "pyspark.errors.exceptions.captured")

_running: Running | None = None
_blocks = 0  # of `session`, that use a JVM which one of them has started: the last one to end stops it
#: held while Spark starts: another thread gets a session of the same one. `close_session` never waits for it: it may be called at any time
_opening = threading.Lock()


@contextmanager
def session(
    *, master: str | None, memory: int, conf: Mapping[str, str], name: str = "evermat"
) -> Iterator[SparkSession]:
    """A SparkSession for the block, stopped after it; see `open_session`.

    Raises:
        ResourceError: as `open_session`, or an exception of Spark ends the block.
    """
    global _blocks  # noqa: PLW0603
    with _opening:
        opens = _running is None or _blocks > 0
        spark = _opened(master, memory, conf, name)
        shares = opens and _running is not None
        _blocks += shares
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
            trouble = python_trouble(error, spark)
            if trouble is not None:
                raise trouble from None
            details = {"what": "do its work", "why": essential(error)}
            raise ResourceError(Problem(errors.SPARK_FAILED, details)) from None
        raise
    finally:
        if shares:
            with _opening:
                _blocks -= 1
                if not _blocks:
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
    with _opening:
        return _opened(master, memory, conf, name)


def _opened(master: str | None, memory: int, conf: Mapping[str, str], name: str) -> SparkSession:
    """As `open_session`; one thread at a time."""
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


def stores_classes(spark: SparkSession) -> bool:
    """Whether closing a session stops Spark, and takes longer this once so that later ones start faster."""
    return (
        _running is not None and _running.spark is spark and _running.archive is not None and _running.archive.missing
    )


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


def _forget() -> None:
    global _running, _blocks, _opening
    _running, _blocks, _opening = None, 0, threading.Lock()


os.register_at_fork(after_in_child=_forget)  # the JVM is the parent's


def _active() -> Any:
    """The existing SparkSession of this process, or None; PySpark is not loaded for that."""
    module = sys.modules.get("pyspark.sql")
    made = getattr(module, "SparkSession", None)  # while another thread imports the module it may not be there yet
    return None if made is None else made._instantiatedSession  # noqa: SLF001


def _another(conf: Mapping[str, str]) -> SparkSession:
    found = _running.spark if _running is not None else _active()
    made = new_session(found)
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
