"""Keeps what DataFrames read until Spark cannot read it any more.

In this process a DataFrame that is derived from another one does not refer to it, and a view refers to nothing at all. But their plans do, in the
JVM: all have the same function, which reads the files. So a weak reference of Java shows when the last of them does not exist any more. Over Spark Connect
plans are objects of this process, which have the function themselves.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from evermat.spark.jobs import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FramePins:
    """Objects that are kept for DataFrames whose rows a function produces."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._pins: list[
            tuple[Any, object]
        ] = []  # a weak reference to the function in the JVM, and what is kept for it
        self._queue: Any = None  # has weak references whose functions do not exist any more

    def keep(self, frame: DataFrame, kept: object) -> None:
        """Keeps an object as long as the DataFrame, one derived from it, or a view of them exists."""
        if is_connect(frame.sparkSession):
            weakref.finalize(frame, lambda _kept: None, kept)
            return
        jvm: Any = frame.sparkSession._jvm  # noqa: SLF001
        plan: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        while plan.nodeName() != "MapInArrow":
            plan = plan.child()
        function = plan.functionExpr().func()  # also in plans that Spark has copied and changed
        with self._changing:
            if self._queue is None:
                self._queue = jvm.java.lang.ref.ReferenceQueue()
            self._pins.append((jvm.java.lang.ref.WeakReference(function, self._queue), kept))

    def release(self) -> None:
        """Releases what no DataFrame can read any more, as far as the JVM has noticed."""
        if not self._pins:
            return
        try:
            with self._changing:
                fewer = False
                while self._queue.poll() is not None:
                    fewer = True
                if fewer:
                    self._pins = [pin for pin in self._pins if pin[0].get() is not None]
        except Exception:  # noqa: BLE001  # the JVM may have ended: then jobs say so
            return
