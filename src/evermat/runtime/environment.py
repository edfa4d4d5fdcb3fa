"""What a command needs of its machine: a Spark session of its own, and compiled kernels."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from evermat.columns import prepare_kernels
from evermat.kernels import keeps_kernels, watching_compilation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from evermat.store import Location


@dataclass(frozen=True)
class SparkOptions:
    """How a command's own SparkSession is made."""

    master: str | None = None  # the cluster as Spark names it; None is this machine alone
    memory: int = 1 << 30  # bytes, for columns and the JVM's heap together
    conf: Mapping[str, str] = field(default_factory=dict)  # settings of Spark
    scratch: Any = None  # a `Location` for temporary files, which driver and executors share
    buckets: int | None = None  # parts that facts on a cluster are divided into
    broadcast: int | None = None  # facts of a relation that each task may read whole

    @property
    def process_memory(self) -> int:
        """The bytes that are left for this process."""
        from evermat.spark import heap_share

        return max(self.memory - heap_share(self.memory), self.memory // 2)


def locate_scratch(value: Any) -> Location:
    """The scratch directory that an argument or an option names; an `ArgumentError` if it cannot be there."""
    from evermat.store import folder_location

    return folder_location("the scratch directory", "scratch", value)


@contextmanager
def spark_session(name: str, options: SparkOptions, say: Callable[[str], None]) -> Iterator[SparkSession]:
    """A session for the block, called `name` in Spark's user interface; `say` gets lines for the user."""
    prepare = partial(prepare_kernels, closures=True)
    threading.Thread(target=prepare, name="evermat-kernels", daemon=True).start()  # while Spark starts
    from evermat.spark import session, stores_classes

    with session(master=options.master, memory=options.memory, conf=options.conf, name=name) as spark:
        yield spark
        if stores_classes(spark):
            say("storing Spark's classes for this machine; later runs start faster")


def describe_cluster(options: SparkOptions, say: Callable[[str], None]) -> str:
    """What a run with these options would use of its Spark, as text; Spark is started for it, and one small job."""
    from evermat.spark import cluster_report

    with spark_session("evermat check", options, say) as spark:
        return cluster_report(spark, options.scratch, options.buckets, options.broadcast)


@contextmanager
def announced_compilation(say: Callable[[str], None]) -> Iterator[None]:
    """Says once, if kernels have to be compiled in the block: on a new machine that takes a while."""
    said = False

    def announce() -> None:
        nonlocal said
        if not said:
            said = True
            text = "compiling kernels for this machine; later runs start at once"
            if not keeps_kernels():
                text = "compiling kernels: there is no directory to keep them in (set NUMBA_CACHE_DIR)"
            say(text)

    with watching_compilation(announce):
        yield
