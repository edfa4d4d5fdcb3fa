"""What a cluster has: cores, of which the number of buckets follows, and memory for tasks, of which it follows how much they hold.

All is read from settings and from a plan that does not run, so that it is the same over Spark Connect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evermat.spark.jobs import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_BUCKETS = 1024
_OPEN_END = 64  # buckets where executors come as there are tasks for them, without a bound
_NO_BOUND = 2**31 - 1  # Spark's default for the most executors
_MIB = 1 << 20
_USUAL = 4 << 30  # bytes of a task for which the limits of facts are made
_SIZE = re.compile(r"(\d+)\s*([kmgtp]?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_SPLITS = re.compile(r"splits=(\d+)")


@dataclass(frozen=True)
class TaskBudget:
    """How many facts a task holds.

    Attributes:
        memory: The bytes that a task may use outside Java; None if nothing bounds them but the machine.
        broadcast: The facts of one relation that every task may read whole, if the user has set a limit.
    """

    memory: int | None = None
    broadcast: int | None = None

    def of(self, usual: int) -> int:
        """What a limit of facts, or of bytes, is for these tasks."""
        return usual if self.memory is None else max(1, int(usual * min(1.0, self.memory / _USUAL)))

    def whole(self, usual: int) -> int:
        """What a limit of facts that every task reads is."""
        return self.broadcast or self.of(usual)


def default_buckets(spark: SparkSession) -> int:
    """Twice as many as there will be cores: that keeps all of them busy without much overhead.

    There are those cores that Spark has now, and those of the executors that it has been told to have, or at most to have.
    """
    conf = _Settings(spark)
    cores, per_executor = _cores_now(spark), conf.number("spark.executor.cores", 1)
    if conf.text("spark.dynamicAllocation.enabled") == "true":
        most = conf.number("spark.dynamicAllocation.maxExecutors", _NO_BOUND)
        if most >= _NO_BOUND:
            return max(_OPEN_END, _within(2 * cores))
        return _within(2 * max(cores, most * per_executor))
    told = conf.number("spark.executor.instances", 0) * per_executor
    return _within(2 * max(cores, told, conf.number("spark.cores.max", 0)))


def _within(buckets: int) -> int:
    return max(2, min(buckets, _MOST_BUCKETS))


@dataclass(frozen=True)
class TaskMemory:
    """The bytes that a Python worker may use, None where no setting bounds them, and which settings that follows from."""

    limit: int | None
    reason: str


def task_memory(spark: SparkSession) -> int | None:
    """The bytes that a Python worker may use, by the settings of executors; None where these do not bound them."""
    return explained_task_memory(spark).limit


def explained_task_memory(spark: SparkSession) -> TaskMemory:
    """The memory of tasks, and where it comes from.

    Where containers hold executors (YARN, Kubernetes), Python has the overhead of their memory; elsewhere only if a setting says so.
    """
    conf = _Settings(spark)
    master = conf.text("spark.master") or ""
    if master.startswith("local"):
        return TaskMemory(None, "tasks run on this machine")
    total, reason = conf.size("spark.executor.pyspark.memory"), "spark.executor.pyspark.memory"
    if not total:
        total, reason = conf.size("spark.executor.memoryOverhead"), "spark.executor.memoryOverhead"
    if total is None and master.startswith(("yarn", "k8s")):
        usual = "0.4" if master.startswith("k8s") else "0.1"
        factor = conf.text("spark.executor.memoryOverheadFactor") or usual
        least = conf.size("spark.executor.minMemoryOverhead") or 384 * _MIB
        total = max(least, int((conf.size("spark.executor.memory") or 1024 * _MIB) * float(factor)))
        reason = f"{factor} of spark.executor.memory, at least {least // _MIB} MiB"
    if total is None:
        return TaskMemory(None, "neither spark.executor.pyspark.memory nor spark.executor.memoryOverhead is set")
    slots = max(1, conf.number("spark.executor.cores", 1) // max(1, conf.number("spark.task.cpus", 1)))
    return TaskMemory(total // slots, reason + (f", for {slots} tasks at a time" if slots > 1 else ""))


class _Settings:
    """The settings of a session as they can be read over Connect as well."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def text(self, name: str) -> str | None:
        found = self._spark.conf.get(name, None)
        return None if found is None or found == "" else str(found)

    def number(self, name: str, default: int) -> int:
        found = self.text(name)
        return int(found) if found is not None and found.isdigit() else default

    def size(self, name: str) -> int | None:
        """Bytes; a number without a unit are MiB, as these settings have it."""
        found = _SIZE.fullmatch((self.text(name) or "").strip())
        if found is None:
            return None
        return int(found[1]) << _POWERS[found[2].lower() or "m"]


def _cores_now(spark: SparkSession) -> int:
    if not is_connect(spark):
        return int(spark.sparkContext.defaultParallelism)
    one: Any = spark.range(1)
    found = _SPLITS.findall(one._explain_string(mode="simple"))  # noqa: SLF001  # no job runs
    return int(found[-1]) if found else 2
