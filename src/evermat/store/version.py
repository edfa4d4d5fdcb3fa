"""What a version is, to those who read it and to those who write it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """What a writer says about the version that it commits.

    Attributes:
        program: The text of the program.
        algorithm: How the version was computed.
        seconds: How long that took.
        inserted: How many facts came, in all relations.
        deleted: How many facts went.
        facts: How many facts there are now.
        stats: Anything that JSON can hold.
        counters: Anything that JSON can hold; it belongs to the engine.
        batch: The id of a stream's batch, so that a replayed one is recognised.
    """

    program: str
    algorithm: str
    seconds: float
    inserted: int
    deleted: int
    facts: int
    stats: dict[str, Any] = field(default_factory=dict)
    counters: Any = None
    batch: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """One committed version; `program` is the name of its text, which `Store.program` reads."""

    number: int
    time: datetime
    algorithm: str
    seconds: float
    inserted: int
    deleted: int
    facts: int
    batch: str | None
    program: str
    stats: dict[str, Any]
    counters: Any
    relations: tuple[str, ...]
