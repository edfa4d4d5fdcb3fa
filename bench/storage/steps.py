"""What one process does, told step by step: a process that is ended has told what it had done, and with what it was busy."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench.storage.shapes import Protocol

AUTO, PLAIN = "auto", "plain"
SCHEMES = (AUTO, PLAIN)

What = Literal["materialise", "insert", "delete", "query"]


@dataclass(frozen=True)
class Task:
    """One process: a shape, stored in one way, and what is done with it."""

    shape: str
    protocol: Protocol
    schemes: str
    small: bool
    repeat: int
    """How often it is materialised, or all queries of a kind are asked, if that takes little time."""
    limit: float
    """Seconds for a step."""
    memory: float
    """GB of the process."""
    data: str | None = None
    """The folder with real graphs."""

    @classmethod
    def of(cls, text: str) -> Task:
        """From its JSON form."""
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return json.dumps(asdict(self))


@dataclass
class Step:
    """A materialisation, an update, or queries of one kind. Times are in seconds; those of queries are averages."""

    what: What
    name: str = ""
    """Of queries: the relation and the kind."""
    number: int = 0
    """Which of several."""
    status: str = "begun"
    """`ok`, `wrong`, or why there is no result: `time`, `memory`; `begun` where the process ended in the midst of it."""
    cpu: float = 0.0
    wall: float = 0.0
    reason_cpu: float = 0.0
    facts: int = 0
    """Of all relations afterwards; of queries, rows of all answers."""
    checksum: int = 0
    """Of all rows of all answers."""
    stored: int = 0
    """Bytes of all that is stored."""
    grown: int = 0
    """Bytes by which the process has grown since before it was materialised."""
    peak: int = 0
    """The most bytes by which it had grown in this step."""
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def key(self) -> tuple[str, str, int]:
        """What it is among the steps of a process."""
        return self.what, self.name, self.number


def keep(file: Path, step: Step) -> None:
    """Adds a line to the report."""
    with file.open("a", encoding="utf-8") as report:
        report.write(json.dumps(asdict(step)) + "\n")


def kept(file: Path) -> list[Step]:
    """The steps of a report. Each was written when it began, and again when it was over."""
    found: dict[tuple[str, str, int], Step] = {}
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            step = Step(**json.loads(line))
            found[step.key] = step
    return list(found.values())
