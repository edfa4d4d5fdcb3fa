"""Limits and signals end commands, whatever they are doing; nothing is left, and memory stays within the limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import limits

SECONDS = 5.0  # of which some pass before the work begins, on a machine that is busy
ENDS = 25.0
MORE = 128 << 20  # bytes

CASES = [(work, how) for work in limits.ALL for how in work.cuts]


@pytest.mark.slow
@pytest.mark.parametrize(("work", "how"), CASES, ids=[f"{work.name}: {how}" for work, how in CASES])
def test_cut(work: limits.Work, how: str, tmp_path: Path) -> None:
    outcome = limits.cut(work, how, tmp_path, seconds=SECONDS)
    assert limits.is_right(how, outcome), outcome
    if how == "memory":
        assert outcome.peak < limits.MEMORY + MORE, outcome
    else:
        assert outcome.seconds < ENDS, outcome
