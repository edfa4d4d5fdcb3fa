"""What holds for all tests."""

from __future__ import annotations

import os

# Commands that do not say otherwise run without a JVM; tests of Spark say so.
os.environ["EVERMAT_ENGINE"] = "memory"
