"""Work that may be given up: what it took, told of in a step of a benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from evermat.core.errors import LimitError


class Timed(Protocol):
    """What is told of a step."""

    status: str
    cpu: float | None
    wall: float | None


def attempt(step: Timed, work: Callable[[], Any]) -> Any:
    """Does some work and notes what it took; None instead of a result if it was given up, and why in the status."""
    done = None
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        done = work()
    except LimitError as error:
        step.status = "memory" if "memory" in str(error) else "time"
    except MemoryError:
        step.status = "memory"
    step.cpu, step.wall = time.process_time() - cpu, time.perf_counter() - wall
    return done
