"""The benchmarks of updates and of durable states run through and write what they measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import state, updates
from tests.support.environment import LASTING


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results go to the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench", "--quick"])
    return tmp_path / "bench" / "results"


@pytest.mark.slow
def test_updates(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--rounds", "2", "--algorithms", "auto,dred"])
    updates.main()
    found = json.loads((here / "updates-quick.json").read_text())["measured"]
    assert {(f["shape"], f["algorithm"]) for f in found} == {
        (shape, algorithm) for shape in updates.SHAPES for algorithm in ("auto", "dred")
    }
    assert all(0 < f[what]["min_wall_ms"] <= f[what]["max_wall_ms"] for f in found for what in ("insert", "delete"))
    assert (here / "updates-quick.md").read_text() in capsys.readouterr().out


@LASTING
def test_state(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--work", str(tmp_path)])
    state.main()
    found = json.loads((here / "state-quick.json").read_text())["measured"]
    assert {f["part"] for f in found} == set(state.PARTS)
    for f in found:
        if f["part"] == "updates":
            assert 0 < f["commit"]["min"] < f["wall"]["max"]
            assert f["changed"]["edge"] == {"min": 100, "median": 100, "max": 100}
        elif f["part"] == "opening":
            assert f["bytes"] > 0 and f["parquet_bytes"] > 0 and f["wall"]["min"] > 0
    assert (here / "state-quick.md").read_text() in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--work", str(tmp_path), "--only", "versions"])
    state.main()
    again = json.loads((here / "state-quick.json").read_text())["measured"]
    assert again[:-1] == found[:-1], "the other parts are as they were"
    assert again[-1] != found[-1]
    assert [p.name for p in tmp_path.iterdir()] == ["bench"], "temporary states are gone"
