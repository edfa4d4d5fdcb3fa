"""What an update changed in names is told when it is asked for, and is the same whenever that is."""

from __future__ import annotations

from random import Random

import pytest

import evermat
from tests.support.equality import naive
from tests.support.equality.checks import assert_changed
from tests.support.equality.programs import applied, random_sample, random_update


@pytest.mark.parametrize("seed", range(6))
def test_changes_are_told_later(seed: int) -> None:
    rng = Random(seed)
    sample = random_sample(rng, triples=bool(seed % 2))
    m = evermat.Program.parse(sample.text, equality="rewrite").materialise(sample.facts)
    explicit, told = sample.explicit, []
    for _ in range(4):
        before = naive.materialise(sample.program, explicit).facts
        delete, insert = random_update(rng, sample, explicit, before)
        explicit = applied(explicit, delete, insert)
        change = m.update(insert=insert, delete=delete)
        told.append((change, before, naive.materialise(sample.program, explicit).facts))
    for change, before, after in told:
        assert_changed(change, before, after)
        assert change.stats["deleted"] == change.deleted.total
        assert {name: len(m[name]) for name in m} == {name: len(set(m[name])) for name in m}
