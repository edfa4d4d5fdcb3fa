"""What holds for all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.commands import compiled_kernels, evermat_command, kept_signals
from tests.support.randomness import register_profiles

__all__ = ["compiled_kernels", "evermat_command", "kept_signals"]

register_profiles()

# Commands that do not say otherwise run without a JVM; tests of Spark say so.
os.environ["EVERMAT_ENGINE"] = "memory"

# A shell starts what runs in the background with Ctrl-C ignored, and processes that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what uses a SparkSession `spark`, and has one process run all that is marked so, before anything else.

    That process starts one JVM, and it has the longest work: if it began later, the others would wait for it.
    """
    for item in items:
        if item.get_closest_marker("spark") or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One SparkSession for all tests of a process."""
    from evermat.spark.launch.session import session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with session(master="local[2]", memory=4 << 30, conf={}, name="tests") as made:
        yield made
