"""Limits and signals end commands, whatever they are doing; nothing is left, and memory stays within the limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import limits
from evermat.core.watch import current_watch, passed_limit
from tests.support.commands import Evermat
from tests.support.environment import LASTING

SECONDS = 5.0  # of which some pass before the work begins, on a machine that is busy
ENDS = 60.0  # seconds: the work takes minutes
MORE = 128 << 20  # bytes

#: work of each kind that would take minutes on any machine; the rest is tried in the long mode
ALWAYS = {
    "count: seconds",
    "negation: interrupt",
    "rounds: seconds",
    "equality: interrupt",
    "gzip bomb of texts: memory",
    "long line: memory",
    "JSON: huge array: memory",
    "query: seconds",
    "update: terminate",
}
CASES = {f"{work.name}: {how}": (work, how) for work in limits.ALL for how in work.cuts}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name if name in ALWAYS else pytest.param(name, marks=LASTING) for name in CASES])
def test_cut(name: str, tmp_path: Path) -> None:
    work, how = CASES[name]
    outcome = limits.cut(work, how, tmp_path, seconds=SECONDS)
    assert limits.is_right(how, outcome), outcome
    if how == "memory":
        assert outcome.peak < limits.MEMORY + MORE, outcome
    else:
        assert outcome.seconds < ENDS, outcome


def test_some_work_is_always_cut() -> None:
    assert CASES.keys() >= ALWAYS


def test_no_limit_of_a_command_outlives_it(tmp_path: Path, evermat_command: Evermat) -> None:
    (tmp_path / "p.dl").write_text(".decl a(x:number)\na(1).\n.output a\n")
    arguments = ["--engine", "memory", "--memory", "100g", "--limit-seconds", "100", "--state", tmp_path / "s"]
    assert evermat_command("run", tmp_path / "p.dl", "-D", tmp_path, *arguments).code == 0
    assert current_watch() is None
    assert passed_limit(1 << 60) is None
