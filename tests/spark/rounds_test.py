"""The Spark engine equals recomputation, after every update, by every algorithm: the oracle decides."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import evermat
from tests import oracle
from tests.maintenance.updates import ALGORITHMS, applied, facts_of, random_update
from tests.strategies import Features, random_program

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("seed", range(2))
def test_updates_equal_recomputation(spark: Any, algorithm: str, seed: int) -> None:
    rng = Random(f"{algorithm} {seed}")
    random = random_program(rng, Features(recursion=algorithm != "counting"))
    program = evermat.Program.parse(random.text)
    with program.materialise(random.facts, engine=spark, place="cluster", counters=rng.choice(["none", "both"])) as m:
        explicit = random.facts
        assert facts_of(m) == oracle.materialise(oracle.read(random.text), explicit)
        for _ in range(2):
            delete, insert = random_update(rng, random.relations, explicit)
            before = facts_of(m)
            change = m.update(insert=insert, delete=delete, algorithm=algorithm)
            explicit = applied(explicit, delete, insert)
            after = facts_of(m)
            assert after == oracle.materialise(oracle.read(random.text), explicit)
            for name in after:
                assert set(change.inserted[name]) == after[name] - before[name]
                assert set(change.deleted[name]) == before[name] - after[name]
