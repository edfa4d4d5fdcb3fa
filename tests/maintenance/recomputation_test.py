"""Every algorithm equals recomputation after every update, on random programs; so do the counters that are valid."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from tests.maintenance.updates import ALGORITHMS, applied, assert_right, facts_of, random_update
from tests.strategies import Features, RandomProgram, random_program

ROUNDS = 4


def materialised(random: RandomProgram, counters: str = "none"):
    return evermat.Program.parse(random.text).materialise(random.facts, counters=counters)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_updates_equal_recomputation(algorithm: str, rng: Random) -> None:
    random = random_program(rng, Features(recursion=algorithm != "counting"))
    m = materialised(random, rng.choice(["none", "nonrecursive", "both"]))
    explicit = random.facts
    for _ in range(ROUNDS):
        delete, insert = random_update(rng, random.relations, explicit)
        before = facts_of(m)
        change = m.update(insert=insert, delete=delete, algorithm=algorithm)
        explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)
        after = facts_of(m)
        for name in after:
            assert set(change.inserted[name]) == after[name] - before[name]
            assert set(change.deleted[name]) == before[name] - after[name]


@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_any_algorithm_may_follow_any_other(rng: Random) -> None:
    random = random_program(rng)
    m = materialised(random)
    explicit = random.facts
    for _ in range(ROUNDS):
        delete, insert = random_update(rng, random.relations, explicit)
        m.update(insert=insert, delete=delete, algorithm=rng.choice(ALGORITHMS[1:]))
        explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)
