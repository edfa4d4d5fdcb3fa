"""Tests of Spark run in folders of their own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever Spark leaves in the working directory is found there."""
    monkeypatch.chdir(tmp_path)
