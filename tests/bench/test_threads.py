"""The benchmark of threads and of two versions runs through, and writes what it measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import evermat
from bench import threads, two_trees
from tests.support.environment import LASTING
from tests.threads.world import STEADY

SOURCE = Path(evermat.__file__).parent.parent


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results go to the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "bench" / "results"


@LASTING
@pytest.mark.skipif(not STEADY, reason="needs snapshots")
def test_parts(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--quick"])
    threads.main()
    found = json.loads((here / "threads-quick.json").read_text())["measured"]
    assert {one["part"] for one in found} == set(threads.PARTS)
    assert all(one["ratio"] > 0 and one["updates"] > 0 for one in found if one["part"] == "queries")
    assert (here / "threads-quick.md").read_text() in capsys.readouterr().out


@LASTING
def test_another_version(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = ["w2", "updates of 1 fact"]
    arguments = ["bench", "--quick", "--only", "none", "--against", str(SOURCE), "--jobs", ",".join(some)]
    monkeypatch.setattr(sys, "argv", arguments)
    threads.main()
    against = json.loads((here / "threads-quick.json").read_text())["against"]
    assert list(against) == some
    assert all(0 < times["least"] <= times["ratio"] <= times["most"] for times in against.values())


@LASTING
def test_all_jobs_are_right() -> None:
    for name, job in two_trees.jobs(quick=True):
        for _ in range(2):
            assert job() == 0, name


def test_sources_that_are_not_there_are_not_compared(tmp_path: Path) -> None:
    """The installed package is not taken for the one that is asked for."""
    (tmp_path / "src").mkdir()
    with pytest.raises(SystemExit):
        two_trees.Child(tmp_path / "src", quick=True)
