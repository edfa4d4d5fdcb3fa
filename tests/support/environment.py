"""The environment variables that decide which tests run, and how much they try.

`EVERMAT_LONG=1` runs the tests that take minutes each, and lets the others try many more examples, moments and cuts.
`EVERMAT_DATA` names a folder of public data sets; tests of them are skipped without it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

LONG = os.environ.get("EVERMAT_LONG", "0") not in {"", "0"}
LASTING = pytest.mark.skipif(not LONG, reason="takes long; EVERMAT_LONG=1 runs it")

DATA = Path(os.environ.get("EVERMAT_DATA", "no such folder"))
NEEDS_DATA = pytest.mark.skipif(not DATA.is_dir(), reason="EVERMAT_DATA names no folder with data")
