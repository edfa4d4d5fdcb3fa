"""What `evermat check --master` shows: how a run on this Spark would divide facts, and what its tasks run with.

All of it is what a run uses: the numbers are computed by the same functions, and one small job asks an executor. No rule is evaluated.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from evermat.core import ResourceError
from evermat.spark.engine.resources import TaskBudget, default_buckets, explained_task_memory
from evermat.spark.engine.rules import MOST_HELD
from evermat.spark.executor_python import executor_python
from evermat.spark.jobs import is_connect, run_named
from evermat.spark.scratch import Scratch
from evermat.spark.scratch_files import reading, writing
from evermat.store import Location, location_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIB = 1 << 20
_MARK = b"seen"


def cluster_report(
    spark: SparkSession, scratch: Location | None = None, buckets: int | None = None, broadcast: int | None = None
) -> str:
    """Lines about a run with these options on a session.

    Raises:
        ResourceError: tasks cannot run, or the scratch directory cannot be made.
    """
    return "\n".join(f"{name + ':':<15}{text}" for name, text in _lines(spark, scratch, buckets, broadcast)) + "\n"


def _lines(
    spark: SparkSession, scratch: Location | None, buckets: int | None, broadcast: int | None
) -> Iterator[tuple[str, str]]:
    master = spark.conf.get("spark.master", None) or "a Spark Connect server"
    yield "cluster", f"{master}, Spark {spark.version}"
    if not is_connect(spark):
        yield "driver", f"Python {platform.python_version()}, Java {_java(spark)}"
    with Scratch(scratch) as folder:
        mark = folder.path / "seen"
        with folder.writing(), writing(mark) as file:
            file.write(_MARK)
        found = _asked(spark, mark)
    same = found["python"] == platform.python_version() and found["evermat"] == _version()
    yield (
        "executors",
        f"Python {found['python']}, Evermat {found['evermat']}: `{executor_python(spark)}`"
        + ("" if same else f" (the driver has Evermat {_version()})"),
    )
    given = "by `--buckets`" if buckets is not None else "twice the cores that there are or will be"
    yield "buckets", f"{buckets or default_buckets(spark):,}, {given}"
    memory = explained_task_memory(spark)
    size = "not bounded" if memory.limit is None else f"{memory.limit // _MIB:,} MiB"
    yield "task memory", f"{size}: {memory.reason}"
    limit = TaskBudget(memory.limit, broadcast).whole(MOST_HELD)
    by = "by `--broadcast`" if broadcast is not None else "as task memory allows" if memory.limit else "the default"
    yield "broadcast", f"{limit:,} facts of one relation, {by}"
    where = scratch or folder.path.parent
    seen = "an executor sees it" if found["sees"] else "an executor does not see it: choose one that all machines share"
    yield "scratch", f"{where}, {seen}" + ("" if scratch else " (`--scratch DIR` names another one)")


def _version() -> str:
    """The version of Evermat in this process."""
    return str(sys.modules["evermat"].__version__)


def _java(spark: SparkSession) -> str:
    return str(spark.sparkContext._jvm.java.lang.System.getProperty("java.version"))  # type: ignore[union-attr,unused-ignore]  # noqa: SLF001


class _Ask:
    """What a task knows about its process, as JSON."""

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def __call__(self, _number: int) -> str:
        from evermat.kernels import keeps_kernels  # noqa: PLC0415  # with numba, which tasks need

        keeps_kernels()

        python = ".".join(map(str, sys.version_info[:3]))
        return json.dumps({"python": python, "evermat": _version(), "sees": _sees(location_of(self._mark))})


def _sees(mark: Location) -> bool:
    """Whether this process can read what the driver has written."""
    try:
        with reading(mark) as file:
            return bool(file.read() == _MARK)
    except (OSError, ResourceError):
        return False


def _asked(spark: SparkSession, mark: Location) -> dict[str, Any]:
    from pyspark.sql.functions import udf  # noqa: PLC0415

    ask = udf(_Ask(str(mark)), "string", useArrow=False)
    frame = spark.range(0, 1, 1, 1).select(ask("id").alias("answer"))
    rows = run_named(spark, "look at an executor", frame.collect, mark.parent)
    found: dict[str, Any] = json.loads(rows[0]["answer"])
    return found
