"""A look at the Python of executors, before a DataFrame whose tasks need it leaves for code that does not explain its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakSet

from evermat.spark.jobs import run_named

_checked: WeakSet[Any] = WeakSet()  # the sessions whose executors have answered


def _answer(number: int) -> int:
    """Imports in a task what our tasks import."""
    from evermat.kernels import keeps_kernels  # noqa: PLC0415

    return number if keeps_kernels() else 0


def check_python(spark: Any) -> None:
    """Raises a `ResourceError` if tasks of a session cannot run our code; one small job for each session."""
    if spark in _checked:
        return
    from pyspark.sql.functions import udf  # noqa: PLC0415

    answer = udf(_answer, "long", useArrow=False)
    run_named(spark, "look at the Python of executors", spark.range(0, 1, 1, 1).select(answer("id")).collect, Path())
    _checked.add(spark)
