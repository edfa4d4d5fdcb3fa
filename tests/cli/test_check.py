"""What `evermat check` shows; `EVERMAT_UPDATE_GOLDEN=1` writes the expected text again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.commands import Evermat

FOLDER = Path(__file__).parent / "check"


@pytest.mark.parametrize("name", ["everything", "closures"])
def test_whole_texts(name: str, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    code, out, err = evermat_command("check", f"{name}.dl")
    assert (code, err) == (0, "")
    golden = FOLDER / f"{name}.txt"
    if os.environ.get("EVERMAT_UPDATE_GOLDEN"):
        golden.write_text(out, encoding="utf-8")
    assert out == golden.read_text(encoding="utf-8")


def test_nothing(tmp_path: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.dl").touch()
    assert evermat_command("check", "empty.dl") == (0, "empty.dl: no relations, no rules, no facts, no strata\n", "")


def test_warnings_go_to_stderr(tmp_path: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text('.decl a(x:number)\n.pragma "magic"\n')
    assert evermat_command("check", "p.dl") == (
        0,
        "p.dl: 1 relation, no rules, no facts, 1 stratum\n\nstratum 1\n  a(x: number)\n",
        (
            "warning[W280]: `.pragma` is accepted but has no effect\n"
            " --> p.dl:2:1\n"
            "  |\n"
            '2 | .pragma "magic"\n'
            "  | ^^^^^^^^^^^^^^^\n"
            "  = note: there is no such pragma\n\n"
        ),
    )


@pytest.mark.parametrize(
    ("pragma", "shown"), [("rewrite", "one of them represents all"), ("axiomatise", "by its axioms")]
)
def test_what_is_done_about_equality(pragma: str, shown: str, tmp_path: Path, evermat_command: Evermat) -> None:
    program = tmp_path / "p.dl"
    program.write_text(f'.prefix e: <http://e/>\n.pragma "equality" "{pragma}"\nx = y :- e:p(x, z), e:p(y, z).\n')
    assert f"equal terms: {shown}\n" in evermat_command("check", str(program)).out
