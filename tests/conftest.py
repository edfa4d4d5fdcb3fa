"""What holds for all tests."""

from __future__ import annotations

import os

import pytest

# Commands that do not say otherwise run without a JVM; tests of Spark say so.
os.environ["EVERMAT_ENGINE"] = "memory"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a JVM come first: one process runs them all, and whoever begins the longest work last ends last."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
