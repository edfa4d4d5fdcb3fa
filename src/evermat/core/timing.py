"""How long the phases of a job took: start, read, encode, reason, write."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class PhaseTimer:
    """Wall and CPU seconds by phase, in the order in which they were entered.

    Attributes:
        wall: The seconds that passed, by phase.
        cpu: The seconds that the process computed.
    """

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.cpu: dict[str, float] = {}

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """Adds the time spent inside to a phase."""
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.add(phase, time.perf_counter() - wall, time.process_time() - cpu)

    def add(self, phase: str, wall: float, cpu: float) -> None:
        """Adds seconds to a phase."""
        self.wall[phase] = round(self.wall.get(phase, 0.0) + wall, 6)
        self.cpu[phase] = round(self.cpu.get(phase, 0.0) + cpu, 6)
