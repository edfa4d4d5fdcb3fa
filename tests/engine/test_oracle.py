"""Materialisation against the oracle: facts, counters, and every way to keep them, on every engine."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from evermat import Materialisation
from evermat.algebra import Counters
from evermat.columns.evaluation import buffers
from evermat.testing import state_of
from tests.support import oracle
from tests.support.engines import EVERYWHERE, Engine, on_engines, randomly
from tests.support.strategies import Facts, random_program
from tests.support.updates import (
    assert_counters_right,
    counts,
    facts_of,
)


def assert_all_in_tables(m: Materialisation) -> None:
    """In memory every row of a table is in I after materialisation."""
    if not m.on_cluster:
        assert all(state_of(m).materialised.holds_all(name) for name in m.program.relations)


@pytest.mark.slow
@pytest.mark.parametrize("counters", ["none", "nonrecursive", "both"])
@randomly(memory=150, spark=4, engines=EVERYWHERE)
def test_facts_equal_those_of_the_oracle(engine: Engine, counters: str, rng: Random) -> None:
    random = random_program(rng)
    m = engine.materialise(random.text, random.facts, counters)
    assert facts_of(m) == oracle.materialise(oracle.read(random.text), random.facts)
    assert_all_in_tables(m)


@pytest.mark.slow
@randomly(memory=150, spark=4, engines=EVERYWHERE)
def test_counters_equal_brute_force(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    m = engine.materialise(random.text, random.facts, "both")
    valid = {state_of(m).valid_counters(stratum) for stratum in m.program.strata}
    # A closure that outgrows the driver is begun again: its recursive derivations are counted no more.
    assert valid <= {Counters.BOTH, Counters.MODULAR} | ({Counters.NONRECURSIVE} if engine._name == "auto" else set())
    assert_counters_right(m, random.facts)


@pytest.mark.slow
@randomly(memory=60, spark=3)
def test_tiny_chunks_give_the_same(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffers, "CHUNK", 3)
        m = engine.materialise(random.text, random.facts, "both")
    assert facts_of(m) == oracle.materialise(oracle.read(random.text), random.facts)


@pytest.mark.slow
@on_engines
def test_a_product_is_counted_without_being_enumerated(engine: Engine) -> None:
    width = 250 if engine.in_memory else 5
    facts: Facts = {"e": {(i, j) for i in range(400) for j in range(width)}}  # in memory 10^10 instances of one head
    text = ".decl e(x:number, y:number) .decl p() p() :- e(_, _), e(_, _)."
    m = engine.materialise(text, facts, "both")
    assert facts_of(m)["p"] == {()}
    assert counts(m, state_of(m).nonrecursive_counter, "p") == Counter({(): (400 * width) ** 2})


@on_engines
def test_a_long_chain_takes_as_many_rounds(engine: Engine) -> None:
    length = 300 if engine.in_memory else 30
    text = ".decl e(x:number, y:number) .decl t(x:number, y:number) t(x, y) :- e(x, y). t(x, z) :- t(x, y), e(y, z)."
    m = engine.materialise(text, {"e": {(i, i + 1) for i in range(length)}})
    assert len(m["t"]) == length * (length + 1) // 2
