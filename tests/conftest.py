"""What holds for all tests."""

from __future__ import annotations

import os
import signal

import pytest

# Commands that do not say otherwise run without a JVM; tests of Spark say so.
os.environ["EVERMAT_ENGINE"] = "memory"

# A shell starts what runs in the background with Ctrl-C ignored, and processes that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a JVM come first: one process runs them all, and whoever begins the longest work last ends last."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
