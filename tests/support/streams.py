"""Random streams of updates, and what they have to keep."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from evermat import Materialisation
from tests.support.strategies import Facts, RandomProgram, Sketch
from tests.support.updates import applied, assert_right, random_update


def random_stream(rng: Random, relations: list[Sketch], explicit: Facts, length: int) -> list[tuple[Facts, Facts]]:
    """Updates, as facts to insert and to delete, of which most delete some of what the one before has inserted."""
    updates: list[tuple[Facts, Facts]] = []
    inserted: Facts = {}
    share = rng.choice([0.0, 0.5, 1.0])
    for _ in range(length):
        delete, insert = random_update(rng, relations, explicit if rng.random() < 0.7 else {})
        for name, rows in inserted.items():
            delete.setdefault(name, set()).update(row for row in sorted(rows) if rng.random() < share)
        if rng.random() < 0.5:  # else what is in both is inserted
            delete = {name: rows - insert.get(name, set()) for name, rows in delete.items()}
        updates.append((insert, delete))
        explicit, inserted = applied(explicit, delete, insert), insert
    return updates


def follow(
    m: Materialisation, random: RandomProgram, updates: list[tuple[Facts, Facts]], algorithm: str, *, marking: bool
) -> Iterator[dict]:
    """Follows a stream, and compares with recomputation after every update; the stats of each."""
    explicit = random.facts
    stream = m.stream(updates, algorithm=algorithm, marking=marking)
    for insert, delete in updates:
        stats = next(stream).stats
        explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)
        yield stats
    assert next(stream, None) is None
