"""Tests of Spark run in folders of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.standalone import Cluster, cluster


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Spark leaves in the working directory is found there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all tests of a process, which leave it with two workers."""
    with cluster(tmp_path_factory.mktemp("standalone"), workers=2) as made:
        yield made
