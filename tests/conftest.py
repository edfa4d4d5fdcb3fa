"""What holds for all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.commands import compiled_kernels, evermat_command, kept_signals

__all__ = ["compiled_kernels", "evermat_command", "kept_signals"]

# Commands that do not say otherwise run without a JVM; tests of Spark say so.
os.environ["EVERMAT_ENGINE"] = "memory"

# A shell starts what runs in the background with Ctrl-C ignored, and processes that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a JVM come first: one process runs them all, and whoever begins the longest work last ends last."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One SparkSession for all tests of a process."""
    from evermat.spark.launch.session import session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with session(master="local[2]", memory=4 << 30, conf={}, name="tests") as made:
        yield made
