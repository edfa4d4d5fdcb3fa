"""Spark jobs that have descriptions, can be watched and stopped, and fail in one line."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from evermat.core import EvermatError, Problem, ResourceError, check_stop
from evermat.core import error_catalogue as errors
from evermat.spark.executor_python import executor_python, python_failure
from evermat.spark.scratch_files import bucket_failed, no_exchange
from evermat.store import Location

_Result = TypeVar("_Result")

_DESCRIPTION = "spark.job.description"  # a property of the thread
_configuring = threading.Lock()
#: for each session the settings that are changed: by how many blocks, and the value before
_changed: WeakKeyDictionary[Any, dict[str, tuple[int, str | None]]] = WeakKeyDictionary()
_GLANCE = 0.1  # seconds between two looks at a job
_REPORT = 0.5  # seconds between two reports: each asks the JVM about every stage
_FAREWELL = 5.0  # seconds for a cancelled job to end


@contextmanager
def named(spark: Any, text: str) -> Iterator[None]:
    """Describes jobs that this thread starts within the block as `evermat: text` in Spark's user interface.

    Over Spark Connect, which has no descriptions, they have it as a tag.
    """
    description = f"evermat: {text}"
    context = _context(spark)
    if context is None:
        tag = description.replace(",", ";")  # a comma separates tags
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)
        return
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, description)
    try:
        yield
    finally:
        with suppress(Exception):  # the JVM may have ended: an exception of the block matters more
            context.setLocalProperty(_DESCRIPTION, before)


@contextmanager
def configured(spark: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Changes settings of a session within the block. Of blocks of several threads that overlap, the last one to end changes them back."""
    with _configuring:
        changed = _changed.setdefault(spark, {})
        for name in settings:
            blocks, before = changed.get(name) or (0, spark.conf.get(name, None))
            changed[name] = blocks + 1, before
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        with _configuring:
            for name in settings:
                blocks, before = changed.pop(name)
                if blocks > 1:
                    changed[name] = blocks - 1, before
                    continue
                with suppress(Exception):  # the JVM may have ended: an exception of the block matters more
                    spark.conf.unset(name) if before is None else spark.conf.set(name, before)


def run_named(
    spark: Any,
    what: str,
    action: Callable[[], _Result],
    scratch: Location,
    *,
    progress: Callable[[str], None] | None = None,
    check: Callable[[], None] = check_stop,
) -> _Result:
    """Runs jobs as `run_watched` does, with a description; an exception of Spark becomes an error about `what`."""
    try:
        with named(spark, what):
            return run_watched(spark, action, progress=progress, check=check)
    except EvermatError:
        raise
    except Exception as error:
        raise failure(error, what, scratch, spark) from error


def run_watched(
    spark: Any,
    action: Callable[[], _Result],
    *,
    progress: Callable[[str], None] | None = None,
    check: Callable[[], None] = check_stop,
) -> _Result:
    """Returns the result of `action`, which starts Spark jobs, in a thread of its own, so that this one can be interrupted.

    Properties of this thread, such as the description, hold for the jobs. If `check`, which is called ten times a second, raises or this
    thread is interrupted, the jobs are cancelled, and the exception is raised once they have ended, or after a few seconds. `progress` is
    called from time to time with the number of finished tasks.
    """
    from pyspark import InheritableThread  # noqa: PLC0415

    context = _context(spark)
    tag = f"evermat-{uuid4().hex}"
    ended: Future[_Result] = Future()

    def run() -> None:
        try:
            if context is None:
                spark.addTag(tag)
            else:
                context.addJobTag(tag)
                context.setInterruptOnCancel(True)  # or tasks would go on to their end
            ended.set_result(action())
        except BaseException as error:  # noqa: BLE001  # the waiting thread raises it
            ended.set_exception(error)

    tasks = _Tasks(context, tag) if context is not None and progress is not None else None
    thread = InheritableThread(target=run, session=spark, name="evermat-spark", daemon=True)
    thread.start()
    try:
        reported = time.monotonic()
        while not wait([ended], _GLANCE).done:
            check()
            if tasks is not None and progress is not None and time.monotonic() - reported >= _REPORT:
                reported = time.monotonic()
                if text := tasks.text():
                    progress(text)
    except BaseException:
        until = time.monotonic() + _FAREWELL
        while not ended.done() and time.monotonic() < until:
            with suppress(Exception):  # again and again: the action may only be about to start a job
                spark.interruptTag(tag) if context is None else context.cancelJobsWithTag(tag)
            wait([ended], _GLANCE)
        raise
    thread.join(_FAREWELL)
    return ended.result()


class _Tasks:
    """The number of finished tasks, in all jobs with a tag."""

    def __init__(self, context: Any, tag: str) -> None:
        self._tracker, self._context, self._tag = context.statusTracker(), context, tag

    def text(self) -> str:
        """`3 of 8 tasks`, or nothing if no job runs."""
        done = total = 0
        try:
            own = set(self._context._jsc.sc().statusTracker().getJobIdsForTag(self._tag))  # noqa: SLF001
            stages = {
                stage
                for job in self._tracker.getActiveJobsIds()
                if job in own and (known := self._tracker.getJobInfo(job)) is not None
                for stage in known.stageIds
            }
            for stage in stages:
                if (known := self._tracker.getStageInfo(stage)) is not None:
                    done += known.numCompletedTasks
                    total += known.numTasks
        except Exception:  # noqa: BLE001  # if the JVM has ended, the job itself fails
            return ""
        return f"{done:,} of {total:,} tasks" if total else ""


@contextmanager
def silenced() -> Iterator[None]:
    """Keeps PySpark from writing the stack traces of exceptions that this thread meets in the block to standard error."""
    from pyspark.logger import PySparkLogger  # noqa: PLC0415

    # Created otherwise, it would not take what PySpark passes.
    log = PySparkLogger.getLogger("SQLQueryContextLogger")
    own = threading.get_ident()
    log.addFilter(silence := lambda record: record.thread != own)
    try:
        yield
    finally:
        log.removeFilter(silence)


def _context(spark: Any) -> Any:
    """The SparkContext of a session, or None over Spark Connect, which has none."""
    return None if is_connect(spark) else spark.sparkContext


def is_connect(spark: Any) -> bool:
    """Whether the session uses Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


# Before the message in a line of a stack trace: `Caused by: ` and the name of a Java class.
_CAUSE = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
_JAVA_CLASS = re.compile(r"^\(?(?:[a-z_][\w$]*\.)+([A-Z][\w$]*)(?:[:)]\s*|$)")
_PYTHON_ERROR = re.compile(r"^(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Iteration)\b(?:: .*)?$")
_ERROR_CLASS = re.compile(r"^\[[A-Z][A-Z0-9_.]+\]\s*")
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w{5}(?:[; ].*)?$")
# These only report that something failed; the reason follows.
_MESSENGERS = (
    "Job aborted",
    "Task failed while",
    "[TASK_WRITE_FAILED]",
    "An error occurred while calling",
    "[FAILED_EXECUTE_UDF]",
)
_GRPC = re.compile(r'RPC that terminated with:.*?\bdetails = "([^"\n]+)"', re.DOTALL)
_ABORTED = re.compile(r"^Job aborted due to stage failure: ")  # here the reason is in the same line
_IN_A_TASK = re.compile(rf"error\[E{errors.NO_EXCHANGE.code}\]: .*`(.+)`: (.+)")
_LONGEST = 500


def essential(error: BaseException) -> str:
    """The root cause of an exception of Spark or Py4J in one line, without the stack trace.

    >>> essential(ValueError("first line" + chr(10) + "second line"))
    'first line'
    >>> essential(KeyboardInterrupt())
    'KeyboardInterrupt'
    """
    text = whole_text(error)
    causes = _CAUSE.findall(text)
    connection = _GRPC.search(text)
    line = (
        (connection[1] if connection else "")
        or _last_of_python(text)
        or (causes[-1] if causes else "")
        or _first_that_matters(text)
    )
    found = _JAVA_CLASS.match(line)
    if found is not None:
        line = line[found.end() :] or found[1]
    line = _SQL_STATE.sub("", _ERROR_CLASS.sub("", line.strip())).strip()
    if len(line) > _LONGEST:
        line = line[:_LONGEST] + "…"
    return line or type(error).__name__


def is_full_disk(error: BaseException) -> bool:
    """Whether a full disk, on any machine, is the cause of an exception."""
    return "No space left on device" in whole_text(error)


def failure(error: Exception, what: str, scratch: Location, spark: Any) -> ResourceError:
    """The error for a job that failed; a full disk, a service that refuses a task, and a Python that cannot run tasks, are reported as such."""
    if is_full_disk(error):
        return no_exchange(scratch, "No space left on device")
    if (refused := _IN_A_TASK.search(whole_text(error))) is not None:
        return bucket_failed(refused[1], refused[2])
    return python_trouble(error, spark) or ResourceError(
        Problem(errors.SPARK_FAILED, {"what": what, "why": essential(error)})
    )


def python_trouble(error: BaseException, spark: Any) -> ResourceError | None:
    """The error for a job that failed because of the Python of its tasks; None if there is another reason."""
    try:
        python = executor_python(spark)
    except Exception:  # noqa: BLE001  # the JVM may have ended
        python = "python3"
    return python_failure(whole_text(error), python)


def whole_text(error: BaseException) -> str:
    """The texts of an exception and of all its causes, those from Java with their stack traces."""
    parts: list[str] = []
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        parts.append(str(following))
        with suppress(Exception):  # asks the JVM, which may have ended; most exceptions have no such method
            parts.append(str(following.getStackTrace()))  # type: ignore[attr-defined]
        following = following.__cause__ or following.__context__
    return "\n".join(parts)


def _last_of_python(text: str) -> str:
    """The last line of the traceback of a Python worker, if there is one."""
    if "Traceback (most recent call last)" not in text:
        return ""
    traceback = text.rsplit("Traceback (most recent call last)", maxsplit=1)[-1]
    found = [line.strip() for line in traceback.splitlines() if _PYTHON_ERROR.match(line.strip())]
    return found[0] if found else ""


def _first_that_matters(text: str) -> str:
    """The first line that has a reason."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [
        line for line in lines if line and not line.startswith(("at ", "... ", "JVM stacktrace", "Driver stacktrace"))
    ]
    for line in lines:
        reported = line.removeprefix(": ")
        plain = _ABORTED.sub("", _JAVA_CLASS.sub("", reported))
        if plain and not plain.startswith(_MESSENGERS):
            return plain if _ABORTED.search(_JAVA_CLASS.sub("", reported)) else reported
    return lines[0] if lines else ""
