"""Files, programs, states, queries and command lines that were damaged or made wrong in any way: they are understood or refused.

Each runs in a process of its own, see `tests.fuzz.inputs`. With EVERMAT_LONG=1, 2,000 of them are tried.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
COUNT = 2000 if os.environ.get("EVERMAT_LONG") else 100


@pytest.mark.slow
def test_every_input_is_understood_or_refused() -> None:
    command = [sys.executable, "-m", "tests.fuzz.inputs", str(COUNT), "26"]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
    assert f"{COUNT} cases, seed 26" in done.stdout
    assert "0 failures" in done.stdout
