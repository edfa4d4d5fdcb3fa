"""One SparkSession for all tests of a process. Tests that use it carry the mark `xdist_group("spark")`: one process starts the JVM."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from evermat.spark.launch.session import session

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with session(master="local[2]", memory=4 << 30, conf={}, name="tests") as made:
        yield made


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Spark leaves in the working directory is found there."""
    monkeypatch.chdir(tmp_path)
