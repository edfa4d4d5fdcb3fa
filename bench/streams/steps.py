"""What one process does. It is told step by step as in `bench.storage`: a process that is ended has told what it had done."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

SECTIONS = ("trans", "seq", "map", "shares", "latency", "structured", "arrival")
ALGORITHMS = ("bf", "bf-c", "dred", "auto")
SHARES, SHARED_BY = (0.1, 0.5, 1.0), ("bf", "auto")  # what is deleted soon, and by whom
SIZES, SMALL_SIZES = (10, 100, 1_000, 10_000), (10, 100)
OFF, ON = "off", "on"
MARKING = {OFF: False, ON: True}
MEMORY, STATE = "memory", "state"
REFERENCE = "reference, "  # begins the names of steps of the paper's algorithm
FRAME, FILES = "rows", "files"
FOLLOWED = (FRAME, FILES)
ALONE, TOGETHER = "one by one", "coalesced"


class Case(NamedTuple):
    """A subject of the section `shares`."""

    program: str
    size: int
    """Facts that an update inserts, and that it deletes."""
    share: float
    """Of what an update deletes, so much was inserted by the update before."""

    @classmethod
    def of(cls, text: str) -> Case:
        program, size, percent = text.split()
        return cls(program, int(size), int(percent.rstrip("%")) / 100)

    def __str__(self) -> str:
        return f"{self.program} {self.size} {self.share:.0%}"


@dataclass(frozen=True)
class Task:
    """One process."""

    section: str
    subject: str
    """The size of updates, a track, a policy, or a case."""
    small: bool = False
    algorithm: str = "auto"
    repeat: int = 3
    """How often a stream is processed, with marking and without it, in turns."""
    limit: float = 600.0
    """Seconds for a step."""
    data: str | None = None
    """The folder with streams."""

    @classmethod
    def of(cls, text: str) -> Task:
        """From its JSON form."""
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self))


def summary(latencies: list[float], facts: int, seconds: float) -> dict[str, Any]:
    """What is told of updates that took so long each, with so many facts given, in so many seconds in all."""
    p50, p90, p99 = (float(p) for p in np.percentile(latencies, (50, 90, 99)))
    return {
        "updates": len(latencies),
        "p50": p50,
        "p90": p90,
        "p99": p99,
        "most": max(latencies),
        "updates_per_second": len(latencies) / seconds,
        "facts_per_second": facts / seconds,
        "latencies": [round(latency, 6) for latency in latencies],
    }
