"""Every algorithm equals recomputation after every update, on random programs; so do the counters that are valid."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.engines import Engine, randomly
from tests.support.strategies import Features, random_program
from tests.support.updates import ALGORITHMS, applied, assert_right, facts_of, random_update


def rounds(engine: Engine) -> range:
    return range(4 if engine.in_memory else 2)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@randomly(memory=60, spark=2)
def test_updates_equal_recomputation(engine: Engine, algorithm: str, rng: Random) -> None:
    random = random_program(rng, Features(recursion=algorithm != "counting"))
    m = engine.materialise(random.text, random.facts, rng.choice(["none", "nonrecursive", "both"]))
    explicit = random.facts
    for _ in rounds(engine):
        delete, insert = random_update(rng, random.relations, explicit)
        before = facts_of(m)
        change = m.update(insert=insert, delete=delete, algorithm=algorithm)
        explicit = applied(explicit, delete, insert)
        after = facts_of(m)
        for name in after:
            assert set(change.inserted[name]) == after[name] - before[name]
            assert set(change.deleted[name]) == before[name] - after[name]
        del change  # which keeps files of facts
        assert_right(m, random, explicit)


@pytest.mark.slow
@randomly(memory=60, spark=4)
def test_any_algorithm_may_follow_any_other(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    m = engine.materialise(random.text, random.facts)
    explicit = random.facts
    for _ in rounds(engine):
        delete, insert = random_update(rng, random.relations, explicit)
        m.update(insert=insert, delete=delete, algorithm=rng.choice(ALGORITHMS[1:]))
        explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)
