"""What is attacked: the same agents on every way to hold facts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

import evermat
from evermat.columns.state import reclaim
from evermat.testing import state_of
from tests.support.in_process import materialise_in_process
from tests.support.schemes import use_schemes
from tests.threads import alone, reads, states, writes
from tests.threads.equalities import Equalities
from tests.threads.graphs import Graph, SmallGraph, StoredGraph
from tests.threads.harness import Agent, Background, Operation
from tests.threads.reads import RDF, READS, Read, changing, equal_terms, holding_snapshots
from tests.threads.workload import RULES, START, Workload
from tests.threads.world import FOLLOWS, STEADY, World, started

GENERAL = ("auto", "dred", "dred-c", "bf", "bf-c", "remat")
ALL = (*GENERAL, "dred-c-mod", "bf-c-mod")
RECLAIMED = 0.2  # after how many of all updates


@dataclass(frozen=True)
class Variant:
    """A workload and how its facts are held.

    Attributes:
        options: of `materialise`.
        state: whether there is a state directory.
        schemes: whether every relation has a storage scheme that can have one.
        algorithms: those that maintain.
        reads: the operations that read.
        spark: whether the Spark engine holds the facts; its tasks run in this process.
    """

    workload: type[Workload]
    options: Mapping[str, Any] = field(default_factory=dict)
    state: bool = False
    schemes: bool = False
    algorithms: tuple[str, ...] = ALL
    reads: Mapping[Read, int] = field(default_factory=lambda: {**READS, **RDF})
    spark: bool = False


VARIANTS = {
    "memory": Variant(Graph),
    "counters": Variant(Graph, {"counters": "both"}, algorithms=ALL),
    "state": Variant(Graph, {"counters": "both"}, state=True, algorithms=GENERAL),
    "schemes": Variant(StoredGraph, schemes=True),
    "schemes in a state": Variant(StoredGraph, state=True, schemes=True),
    "equality": Variant(Equalities, algorithms=("auto", "bf-eq", "remat-eq", "dred"), reads={**READS, equal_terms: 3}),
    "equality in a state": Variant(
        Equalities, state=True, algorithms=("auto", "bf-eq", "remat-eq"), reads={**READS, equal_terms: 3}
    ),
    "cluster": Variant(SmallGraph, algorithms=("auto", "dred", "bf"), spark=True),
}


def agents(variant: Variant) -> list[Agent]:
    """Three writers, and five readers that do other things as well."""
    reading: dict[Operation, int] = {changing(read): 2 * weight for read, weight in variant.reads.items()}
    on_disk: dict[Operation, int] = {}
    ruling: dict[Operation, int] = {writes.update(RULES): 6, writes.fail: 3}
    if STEADY:
        reading[holding_snapshots(dict(variant.reads))] = 12
    if variant.state:
        on_disk = {operation: 4 * weight for operation, weight in states.STATES.items()}
        ruling |= {states.reopen: 1, states.save_again: 1}
        if FOLLOWS:
            on_disk |= {operation: 4 * weight for operation, weight in states.FOLLOWING.items()}
    elif not variant.spark:
        ruling[writes.save_and_close] = 1
    apart: dict[Operation, int] = dict(alone.ALONE)
    writing = [
        Agent(
            f"writer of part {part}",
            {writes.update(part, variant.algorithms): 6, writes.stream(part): 2, writes.update_by_files(part): 1},
        )
        for part in (0, 1)
    ]
    return [
        *writing,
        Agent("writer of rules", ruling),
        *(Agent(f"reader {number}", reading) for number in range(3)),
        Agent("reader of states", {**reading, **on_disk}),
        Agent("reader and compiler", {**reading, **apart}),
    ]


@contextmanager
def world_of(variant: Variant, seed: int, folder: Path, *, threaded: bool, spark: Any = None) -> Iterator[World]:
    """A world of a variant, in which what was deleted is often reclaimed; with a session, Spark's executors hold its facts."""
    chance, workload = Random(f"{seed} reclaim"), variant.workload(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reclaim.Waste, "is_due", lambda _self, _state: chance.random() < RECLAIMED)
        if variant.schemes:
            use_schemes(patch)
        if spark is not None:
            program = evermat.Program.parse(workload.text)
            m = program.materialise(workload.oracle_facts(START), engine=spark, place="cluster", scratch=folder)
            world = World(workload, m, folder, threaded=threaded)
        elif variant.spark:
            world = _on_cluster(workload, seed, folder, threaded=threaded)
        else:
            world = started(workload, folder, state=variant.state, threaded=threaded, **variant.options)
        try:
            yield world
        finally:
            Background(world.close, "closing").result()  # in a thread: whatever hangs might hang this, too


def _on_cluster(workload: Workload, seed: int, folder: Path, *, threaded: bool) -> World:
    program = evermat.Program.parse(workload.text)
    m = materialise_in_process(program, workload.oracle_facts(START), buckets=2, rng=Random(seed), scratch=folder)
    cluster, one_at_a_time = state_of(m).cluster, threading.Lock()
    execute: Callable[..., Any] = cluster.execute

    def locked(*given: Any, **options: Any) -> Any:
        """What stands for executors is not made for several jobs at once; real ones are."""
        with one_at_a_time:
            return execute(*given, **options)

    cluster.execute = locked
    return World(workload, m, folder, threaded=threaded)


def check_end(world: World) -> tuple[int, int]:
    """Checks all relations when everything is done; returns how many updates there were, and how many versions were seen."""
    window = world.window()
    window.end()
    version = reads.checked_whole(world, world.m)
    window.claim_version("the last version", version, lambda one: one)
    return sum(version), world.ledger.check_history()
