"""Eight agents read, change, save and reopen one materialisation for a while: in turns in one thread, and in eight threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.environment import LASTING, LONG
from tests.support.randomness import seeds
from tests.threads import alone
from tests.threads.harness import Agent, last_resort, run_interleaved, run_threads
from tests.threads.variants import VARIANTS, agents, check_end, world_of
from tests.threads.workload import START
from tests.threads.world import STEADY

SECONDS = 600.0 / len(VARIANTS) if LONG else 1.2  # of each variant: ten minutes in all
STEPS = 20_000 if LONG else 60
SLOW = {"cluster": 3}  # by what number steps are divided where each of them takes long
NEEDS_SNAPSHOTS = pytest.mark.skipif(not STEADY, reason="needs snapshots")
ATTACKED = VARIANTS if LONG else ("memory", "state", "schemes", "equality", "cluster")


@pytest.fixture(scope="module", autouse=True)
def _compared() -> None:
    alone.prepare()


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKED)
def test_agents_that_take_turns(name: str, tmp_path: Path) -> None:
    (seed,) = seeds(f"turns {name}", 1)
    steps = STEPS // SLOW.get(name, 1)
    with world_of(VARIANTS[name], seed, tmp_path, threaded=False) as world:
        done = run_interleaved(world, agents(VARIANTS[name]), seed, steps)
        updates, seen = check_end(world)
    assert updates > steps / 20
    assert seen > steps / 100
    assert done["ask"] + done["iterate"] > steps / 100


@NEEDS_SNAPSHOTS
@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKED)
def test_agents_in_threads(name: str, tmp_path: Path) -> None:
    """Most of what can happen does so in minutes only; what happens in a second, on a machine that may be busy, finds gross mistakes."""
    (seed,) = seeds(f"threads {name}", 1)
    with last_resort(SECONDS + 400), world_of(VARIANTS[name], seed, tmp_path, threaded=True) as world:
        done = run_threads(world, agents(VARIANTS[name]), seed, SECONDS)
        updates, seen = check_end(world)
    assert updates > 2
    assert seen > 2
    assert done.total() > (1000 if LONG else 5)


@LASTING
def test_agents_that_take_turns_on_spark(spark: Any, tmp_path: Path) -> None:
    variant, (seed,) = VARIANTS["cluster"], seeds("turns on Spark", 1)
    with world_of(variant, seed, tmp_path, threaded=False, spark=spark) as world:
        run_interleaved(world, agents(variant), seed, 12)
        check_end(world)


@NEEDS_SNAPSHOTS
@LASTING
def test_agents_in_threads_on_spark(spark: Any, tmp_path: Path) -> None:
    variant, (seed,) = VARIANTS["cluster"], seeds("threads on Spark", 1)
    with (
        last_resort(SECONDS + 600),
        world_of(variant, seed, tmp_path, threaded=True, spark=spark) as world,
    ):
        run_threads(world, agents(variant), seed, SECONDS)
        check_end(world)


@NEEDS_SNAPSHOTS
@pytest.mark.slow
def test_agents_that_share_nothing() -> None:
    """Programs are compiled, and materialised each by its own thread: what the process keeps for all of them mixes nothing up."""
    (seed,) = seeds("threads apart", 1)
    agents = [Agent(f"compiler {number}", alone.ALONE) for number in range(8)]
    with last_resort(SECONDS + 400):
        assert run_threads(None, agents, seed, SECONDS)["materialise_apart"] > 3


@pytest.mark.parametrize("name", ["memory", "schemes", "cluster"])
def test_the_oracle_derives_what_workloads_say(name: str) -> None:
    from tests.support import oracle

    (seed,) = seeds(f"workload {name}", 1)
    workload = VARIANTS[name].workload(seed)
    for version in [START, (1, 0, 1), (13, 26, 2), (17, 3, 3), (24, 9, 4)]:
        program = oracle.read(workload.oracle_text(version))
        found = oracle.materialise(program, workload.oracle_facts(version))
        assert found == workload.facts(version), version


@pytest.mark.parametrize("name", VARIANTS)
def test_no_fact_has_two_owners(name: str) -> None:
    (seed,) = seeds(f"owners {name}", 1)
    workload = VARIANTS[name].workload(seed)
    owned = [workload.explicit(part, step) for part in (0, 1) for step in range(0, 60, 7)]
    for one in owned[: len(owned) // 2]:
        for other in owned[len(owned) // 2 :]:
            assert not any(rows & other[name] for name, rows in one.items())


def test_axioms_derive_what_the_workload_of_equalities_says() -> None:
    import evermat

    (seed,) = seeds("workload of equalities", 1)
    workload = VARIANTS["equality"].workload(seed)
    for version in [START, (1, 0, 1), (5, 2, 2)]:
        text = workload.oracle_text(version).replace('"rewrite"', '"axiomatise"')
        m = evermat.Program.parse(text).materialise(workload.oracle_facts(version))
        assert {name: set(m[name]) for name in m} == workload.facts(version), version
