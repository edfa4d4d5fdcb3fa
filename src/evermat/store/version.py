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
    """One committed version of a state directory.

    Attributes:
        number: Its number; the first version is 1.
        time: The time at which it was committed, in UTC.
        algorithm: The algorithm that computed it.
        seconds: The time that this took.
        inserted: The number of facts that it inserted, in all relations, explicit and derived.
        deleted: The number of facts that it deleted.
        facts: The number of facts in it.
        batch: For an update of a stream, its name and how far it was followed with this version, else None.
        program: The name of the program's text in the directory.
        stats: The statistics of the update, as in `Change.stats`.
        counters: What the engine records to continue from this version.
        relations: The names of the relations.
    """

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
