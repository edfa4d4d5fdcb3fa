"""The benchmark of OWL 2 RL runs through and writes what it measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import owl
from tests.support.environment import LASTING


def parts_of(options: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs it without the others, which need not be installed."""
    everywhere = ["--quick", "--engines", "none", "--work", str(folder), "--out", str(folder / "results")]
    monkeypatch.setattr(sys, "argv", ["owl", *everywhere, *options])
    owl.main()
    return json.loads((folder / "results" / "owl-quick.json").read_text(encoding="utf-8"))["parts"]


@pytest.mark.slow
def test_it_runs_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    parts = parts_of(["--only", "lubm"], tmp_path, monkeypatch)
    assert (tmp_path / "results" / "owl-quick.md").read_text(encoding="utf-8") in capsys.readouterr().out
    assert parts.keys() == {"lubm"}
    assert {one["status"] for one in parts["lubm"]} == {"ok"}
    assert [one["engine"] for one in parts["lubm"]] == ["evermat", "evermat, exported", "evermat, over triples"]


@LASTING
def test_all_parts_run_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts_of(["--only", "differences,parsing"], tmp_path, monkeypatch)
    parts = parts_of(["--only", "uobm"], tmp_path, monkeypatch)  # the others are kept
    assert parts["differences"] == []
    assert {one["format"] for one in parts["parsing"]} == {"N-Triples", "Turtle", "RDF/XML"}
    (one,) = parts["uobm"]
    assert one["status"] == "ok"
    assert one["triples_out"] > 2 * one["triples_in"]
    assert one["same"] > 0
