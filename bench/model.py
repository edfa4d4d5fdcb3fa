"""The nouns of the harness: workloads, engines, and what one run of one on the other gave.

This module imports nothing heavy: the processes that are measured import it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

Status = Literal["ok", "wrong", "timeout", "failed", "absent"]


@dataclass(frozen=True)
class Answer:
    """What a result is compared by: its rows, and a checksum that their order does not change."""

    rows: int
    checksum: int


@dataclass(frozen=True)
class Workload:
    """Facts, one program for each dialect, and the answer that all of them must give."""

    name: str
    title: str
    result: str
    """The relation that is written and checked."""
    columns: int
    """The number of columns of the result."""
    programs: Mapping[str, str]
    """Program text by dialect: ``dl``, ``sql``, ``nemo``, ``clingo``."""
    facts: Callable[[], Iterator[tuple[str, Rows]]]
    """Generates the input relations, always the same."""
    expected: Answer


@dataclass(frozen=True)
class Job:
    """One run of one engine: where its inputs are and where its outputs go."""

    program: Path
    facts: Path
    out: Path
    report: Path
    result: str
    threads: int = 1

    @property
    def result_file(self) -> Path:
        """Where every engine leaves the result, tab-separated."""
        return self.out / f"{self.result}.csv"


@dataclass
class Phases:
    """Seconds by phase, as the engine itself tells them, and anything else worth keeping."""

    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Peer:
    """An engine: how to tell whether it is installed, how to start it, how to read its report."""

    name: str
    dialect: str
    version: Callable[[], str | None]
    """The version, or None where the engine is not installed."""
    command: Callable[[Job], list[str]]
    phases: Callable[[Job], Phases]
    note: str = ""
    """What a reader of the results must know about how this engine was run."""
    prepare: Callable[[Job], None] | None = None
    """Work before the measured run, such as compiling the program. It is not timed."""


@dataclass
class Measurement:
    """One repetition. Times are kept only where ``status`` is ``ok``."""

    engine: str
    workload: str
    repetition: int
    status: Status
    wall: float | None = None
    cpu: float | None = None
    peak_mb: float | None = None
    phases: Phases = field(default_factory=Phases)
    answer: Answer | None = None
    detail: str = ""

    def as_json(self) -> dict[str, Any]:
        """Plain data for the results file."""
        return asdict(self)
