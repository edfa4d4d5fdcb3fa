"""Versions of a state, as their writer describes them and as readers get them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """A writer's description of the version that it commits.

    Attributes:
        program: The text of the program.
        algorithm: The algorithm that computed the version.
        seconds: The time that it took.
        inserted: The number of inserted facts, in all relations.
        deleted: The number of deleted facts.
        facts: The number of facts now.
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
