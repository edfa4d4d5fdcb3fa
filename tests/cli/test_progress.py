"""What a long job says meanwhile, and what the first one says."""

from __future__ import annotations

import os
import pty
import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from numba.core import event

from evermat.cli import progress
from evermat.cli.main import main
from evermat.cli.run import say
from evermat.columns.kernels.warm_up import warm_up
from evermat.kernels import jit
from evermat.runtime import environment
from tests.support.commands import Evermat

COUNTING = ".decl n(x:number)\nn(0).\nn(x + 1) :- n(x), x < 50.\n.printsize n\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("evermat.core.watch.LOOK_EVERY", 0)
    path = tmp_path / "count.dl"
    path.write_text(COUNTING)
    return path


def test_a_short_job_says_nothing(program: Path, evermat_command: Evermat) -> None:
    assert evermat_command("run", program) == (0, "n\t51\n", "")


def test_plain_lines_where_there_is_no_terminal(
    program: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0)
    code, out, err = evermat_command("run", program)
    assert (code, out) == (0, "n\t51\n")
    lines = err.splitlines()
    assert len(lines) > 10
    assert all(re.fullmatch(r"stratum 1 of 1, round \d+: \d+ facts?, \d+ s", line) for line in lines), err
    assert "stratum 1 of 1, round 20: 19 facts, 0 s" in lines


def everything(descriptor: int) -> str:
    """What a terminal got before it was closed; Linux ends with an error."""
    found = b""
    with suppress(OSError):
        while part := os.read(descriptor, 4096):
            found += part
    os.close(descriptor)
    return found.decode()


@pytest.mark.usefixtures("kept_signals")
def test_a_changing_line_on_a_terminal(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0)
    monkeypatch.setattr(sys, "argv", ["evermat", "run", str(program)])
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with pytest.raises(SystemExit) as ended:
            main()
        monkeypatch.undo()
    shown = everything(ours)
    assert not ended.value.code
    assert re.match(r"\r\x1b\[Kstratum 1 of 1, round \d+: \d+ facts, 0 s", shown)
    assert shown.endswith("\r\x1b[K")  # wiped away
    assert "\n" not in shown


def test_nothing_is_said_where_all_kernels_are_there(program: Path, evermat_command: Evermat) -> None:
    warm_up()
    assert evermat_command("run", program).err == ""


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (True, "compiling kernels for this machine; later runs start at once\n"),
        (False, "compiling kernels: there is no directory to keep them in (set NUMBA_CACHE_DIR)\n"),
    ],
)
def test_compiling_is_announced_once(
    kept: bool, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(jit, "CACHE_FOLDER", tmp_path if kept else None)
    with environment.announced_compilation(say):
        for _ in range(2):  # what numba does when it compiles a function
            with event.trigger_event("numba:compile", data={}):
                pass
    assert capsys.readouterr().err == expected
