"""Keeps what DataFrames read until Spark cannot read it any more.

In this process a DataFrame that is derived from another one does not refer to it, and a view refers to nothing at all. But their plans do, in the
JVM: all have the same function, or the same list of files. So a weak reference of Java shows when the last of them does not exist any more. Over
Spark Connect plans are objects of this process, which refer to each other.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evermat.spark.jobs import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_all: set[FramePins] = set()  # that have pins: DataFrames outlive what has made them


class FramePins:
    """Objects that are kept for DataFrames whose rows a function or files have."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._pins: list[
            tuple[Callable[[], Any], object]
        ] = []  # what returns None in the end, and what is kept so long

    def keep(self, frame: DataFrame, kept: object) -> None:
        """Keeps an object as long as the DataFrame, one derived from it, or a view of them exists."""
        if is_connect(frame.sparkSession):
            plan: Any = frame
            pin: Callable[[], Any] = weakref.ref(plan._plan)  # noqa: SLF001
        else:
            jvm: Any = frame.sparkSession._jvm  # noqa: SLF001
            pin = jvm.java.lang.ref.WeakReference(_leaf(frame)).get
        with self._changing:
            self._pins.append((pin, kept))
        _all.add(self)

    def release(self, *, collect: bool = False) -> None:
        """Releases what no DataFrame can read any more, as far as the JVM has noticed; with `collect` it has a look."""
        if not self._pins:
            return
        try:
            if collect:
                gc.collect()
                _collect_in_jvm()
            with self._changing:
                before, self._pins = self._pins, [pin for pin in self._pins if pin[0]() is not None]
                if not self._pins:
                    _all.discard(self)
            del before  # outside of the lock: with the last pin an engine may be closed
        except Exception:  # noqa: BLE001  # the JVM may have ended: then jobs say so
            return


def release_all() -> None:
    """Releases what no DataFrame can read any more, of all materialisations, also of those that are closed."""
    for pins in list(_all):
        pins.release()


def _leaf(frame: DataFrame) -> Any:
    """What all plans over a DataFrame share: the function of its tasks, or the files that it reads."""
    plan: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    while plan.nodeName() not in ("MapInArrow", "LogicalRelation"):
        plan = plan.children().apply(0)
    # Also plans that Spark has copied and changed have them.
    return plan.functionExpr().func() if plan.nodeName() == "MapInArrow" else plan.relation().location()


def _collect_in_jvm() -> None:
    from pyspark import SparkContext  # noqa: PLC0415

    context: Any = SparkContext._active_spark_context  # noqa: SLF001
    if context is not None:
        context._jvm.System.gc()  # noqa: SLF001
