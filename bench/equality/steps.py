"""What one process does, told step by step: a process that is ended has told what it had done, and with what it was busy."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

REWRITE, AXIOMATISE = "rewrite", "axiomatise"
EQUALITY = {"bf-eq": REWRITE, "remat-eq": REWRITE, "bf": AXIOMATISE, "remat": AXIOMATISE}
"""What is done about equality, by the algorithm of updates."""
ALGORITHMS = tuple(EQUALITY)
SEARCHED = 1  # samples of each size in a search

What = Literal["materialise", "delete", "insert"]


@dataclass(frozen=True)
class Task:
    """One process: a shape, materialised and updated by an algorithm; or by two, to find where they take the same time."""

    shape: str
    small: bool
    algorithms: tuple[str, ...]
    sizes: tuple[int, ...]
    """How many facts are deleted; if there are none and two algorithms, that is looked for."""
    samples: int
    repeat: int
    """How often it is materialised, if that takes little time."""
    limit: float
    """Seconds for a step."""
    memory: float
    """GB of the process."""

    @classmethod
    def of(cls, text: str) -> Task:
        """From its JSON form."""
        found = json.loads(text)
        return cls(**{**found, "algorithms": tuple(found["algorithms"]), "sizes": tuple(found["sizes"])})

    def __str__(self) -> str:
        return json.dumps(asdict(self))


@dataclass
class Step:
    """A materialisation or an update. Times are in seconds: of the whole call, and of its phase `reason`."""

    what: What
    algorithm: str
    size: int = 0
    """How many explicit facts are deleted or put back."""
    sample: int = 0
    status: str = "begun"
    """`ok`, or why there is no result: `time`, `memory`, `failed`; `begun` where the process ended in the midst of it."""
    cpu: float = 0.0
    wall: float = 0.0
    reason_cpu: float = 0.0
    reason_wall: float = 0.0
    derivations: int = 0
    facts: int = 0
    """In all names, afterwards."""
    representatives: int | None = None
    """Facts over representatives, afterwards."""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == "ok"


def keep(file: Path, step: Step) -> None:
    """Adds a line to the report."""
    with file.open("a", encoding="utf-8") as report:
        report.write(json.dumps(asdict(step)) + "\n")


def kept(file: Path) -> list[Step]:
    """The steps of a report. Each was written when it began, and again when it was over."""
    found: dict[tuple[object, ...], Step] = {}
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            step = Step(**json.loads(line))
            found[step.what, step.algorithm, step.size, step.sample] = step
    return list(found.values())
