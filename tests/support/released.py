"""Waiting for Spark to let DataFrames go."""

from __future__ import annotations

import time
from pathlib import Path

from evermat.spark.engine import frame_pins


def is_emptied(folder: Path) -> bool:
    """Whether a scratch folder is empty, once what DataFrames have kept is released."""
    until = time.monotonic() + 60
    while list(folder.iterdir()) and time.monotonic() < until:
        for pins in list(frame_pins._all):
            pins.release(collect=True)
    return not list(folder.iterdir())
