"""What the engines that are Python libraries share: their process, its arguments, its report."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from bench.model import Job, Phases


def installed(distribution: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def child_command(module: str, job: Job) -> list[str]:
    """Run a peer module's ``main`` on a job, in a process of its own."""
    paths = (job.program, job.facts, job.out, job.report)
    return [sys.executable, "-m", module, *map(str, paths), job.result, str(job.threads)]


def read_report(job: Job) -> Phases:
    """The phases that the child wrote."""
    return Phases(**json.loads(job.report.read_text(encoding="utf-8")))


class Clock:
    """Wall and CPU seconds by phase; ``start`` is the CPU spent before the first phase."""

    def __init__(self) -> None:
        """Begin counting with what the process has used so far."""
        self.phases = Phases(cpu={"start": time.process_time()})

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a block as one phase."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.phases.wall[name] = time.perf_counter() - wall
        self.phases.cpu[name] = time.process_time() - cpu


def child_main(run: Callable[[Job, Clock], None]) -> None:
    """The entry point of a peer module: decode the arguments, run, write the report."""
    program, facts, out, report = map(Path, sys.argv[1:5])
    job = Job(program, facts, out, report, sys.argv[5], int(sys.argv[6]))
    clock = Clock()
    run(job, clock)
    job.report.write_text(json.dumps(vars(clock.phases)), encoding="utf-8")
