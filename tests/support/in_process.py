"""The Spark engine without Spark: the stages of its jobs run in this process, one task after the other.

It is as unkind as a cluster may be: every task gets its stage by way of pickled bytes, the symbols that the process knows may be forgotten before it, what
other tasks have sent arrives in any order, and some tasks run twice, of which only the second outcome counts; the files
that the first has left vanish, so that nobody can go on with them.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

import evermat
from evermat import Materialisation
from evermat.algebra import Counters
from evermat.columns.graph import delta_reachability
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.encoding import decode_rows
from evermat.core.errors import EvermatError
from evermat.engine.run import Limits, Run
from evermat.runtime import materialise
from evermat.runtime.engines import placement, spark_engine
from evermat.runtime.facts.inputs import FactSources
from evermat.spark.engine import connected_components, fact_sets, rename_jobs, resources, rules, transfer
from evermat.spark.engine.closure_access import ClusterAccess
from evermat.spark.engine.fact_sets import CountedFacts, FactSet, View
from evermat.spark.engine.job_runner import Cluster, Stage
from evermat.spark.engine.state import State
from evermat.spark.engine.tasks import derive, expand_closure, merge, pivot_fixpoint, serialization, worker
from evermat.spark.engine.tasks.serialization import FactFile, Shape, buckets_of, read_file
from evermat.spark.jobs import failure
from evermat.spark.scratch import Scratch
from evermat.testing import passing_of, state_of

# All modules whose tasks settle.
SETTLING = [m for n, m in sys.modules.items() if n.startswith("evermat.spark.engine") and hasattr(m, "settle")]
MOST_IN_A_BATCH = 8  # packets that a task is given at once


class InProcessCluster(Cluster):
    """Runs jobs in this process. Whoever may stop them is asked before every task."""

    memory: int | None = None  # of a task

    def __init__(
        self,
        rng: Random,
        scratch: Scratch,
        buckets: int,
        check: Callable[[], None] = lambda: None,
        progress: Callable[[str], None] | None = None,
        broadcast: int | None = None,
    ) -> None:
        self.rng = rng
        nothing: Any = None  # in the place of the session
        super().__init__(nothing, scratch, buckets, check, progress, broadcast)

    def _own_session(self, spark: Any) -> Any:
        return spark

    def _task_memory(self, spark: Any) -> int | None:
        return self.memory

    def close(self) -> None:
        """There is no session."""

    def execute(
        self, what: str, tasks: int, stages: Sequence[Stage], look: Callable[[], None] = lambda: None
    ) -> list[Any]:
        self.count_job()
        self._look = look
        inputs = [[pa.record_batch({"id": pa.array([number], pa.int64())})] for number in range(tasks)]
        try:
            for stage in stages[:-1]:
                inputs = self._shuffled(self._run(stage, inputs))
            return [row for batches in self._run(stages[-1], inputs) for batch in batches for row in batch.to_pylist()]
        except EvermatError:
            raise
        except Exception as error:
            raise failure(error, what, self.scratch.path) from error

    def _run(self, stage: Stage, inputs: list[list[pa.RecordBatch]]) -> list[list[pa.RecordBatch]]:
        """What the tasks of a stage hand out, one after the other in any order."""
        packed = cloudpickle.dumps(stage.__call__)
        found: list[list[pa.RecordBatch]] = [[] for _ in inputs]
        for number in self.rng.sample(range(len(inputs)), len(inputs)):
            if self.rng.random() < 0.2:
                before = _written_by(stage)
                self._run_task(packed, number, inputs[number])
                for file in _written_by(stage) - before:
                    Path(file).unlink()
            found[number] = self._run_task(packed, number, inputs[number])
        return found

    def _run_task(self, packed: bytes, number: int, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        self.check()
        self._look()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker, "bucket_of_task", lambda: number)
            for module in SETTLING:
                patch.setattr(module, "settle", lambda: None)  # it would keep all garbage of the tests, and its files
            if self.rng.random() < 0.3:
                worker._dictionary = Dictionary()
            return list(cloudpickle.loads(packed)(iter(batches)))

    def _shuffled(self, sent: list[list[pa.RecordBatch]]) -> list[list[pa.RecordBatch]]:
        """What was sent, by bucket. What comes from one task stays in its order; tasks do not wait for each other."""
        arriving: list[list[pa.RecordBatch]] = [[] for _ in range(self.buckets)]
        for batches in self.rng.sample(sent, len(sent)):
            if batches:
                table = pa.Table.from_batches(batches)
                for bucket in range(self.buckets):
                    own = table.filter(pa.array([b == bucket for b in table.column("bucket").to_pylist()]))
                    arriving[bucket] += own.combine_chunks().to_batches(self.rng.randint(1, MOST_IN_A_BATCH))
        assert sum(b.num_rows for bs in arriving for b in bs) == sum(b.num_rows for bs in sent for b in bs)
        return arriving


def materialise_in_process(
    program: evermat.Program,
    facts: Mapping[str, Any],
    *,
    place: str = "cluster",
    counters: str = "none",
    buckets: int = 3,
    rng: Random | None = None,
    limits: Limits = Limits(),  # noqa: B008
    scratch: Path | None = None,
) -> Materialisation:
    """A materialisation by the Spark engine; all its jobs run in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_engine, "Cluster", InProcessCluster)
        patch.setattr(connected_components, "components", _components)
        options = materialise.Options(
            limits,
            Counters[counters.upper()],
            placement=place,
            scratch=scratch,
            buckets=buckets,  # type: ignore[arg-type]
        )
        session: Any = rng or Random(0)  # in the place of the SparkSession
        return Materialisation(materialise.materialise_facts(program.compiled, FactSources(facts), options, session))


def _components(view: View, members: Sequence[str], state: State, run: Run) -> FactSet:
    """In the place of `connected_components.components`, which needs Spark: the same, computed here."""
    del run
    graph: nx.Graph = nx.Graph()
    access = ClusterAccess(state.context)
    for name in members:
        graph.add_edges_from(access.facts(view, name).T.tolist())
    relation = connected_components.components_relation([state.program.relations[name] for name in members])
    state.context.shapes[relation.name] = Shape.of(relation.types, (1,))
    pairs = [(node, min(part)) for part in nx.connected_components(graph) for node in part]
    return access.listed({relation.name: [np.array(pairs, np.int64).reshape(-1, 2).T]})


@contextmanager
def narrow(rng: Random, few: int = 2) -> Iterator[int]:
    """Within the block, any of the bounds that decide how work is divided may be about as small as `few`; a number of buckets."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (rules, "_SMALL", 0),  # many tasks divide the work
            (rules, "_PER_TASK", few),  # even more tasks
            (rules, "MOST_HELD", few - 1),  # literals are read a few buckets at a time
            (rename_jobs, "_SMALL", 0),  # many tasks rename terms
            (fact_sets, "_MOST_FILES", 2),  # files are put together all the time
            (derive, "_FLUSH", few),  # a task sends the same head more than once
            (worker, "_PACKED", few),
            (merge, "AT_ONCE", 500 * few),  # a bucket is merged part by part
            (serialization, "_READ_ROWS", few),
            (transfer, "_ROWS", few),
            (pivot_fixpoint, "_WRITTEN", few),
            (pivot_fixpoint, "_SMALL", 0),  # no stratum is done by one task
            (pivot_fixpoint, "_ROOM", rng.randint(1, 4 * few)),  # tasks give up, and rounds go on
            (expand_closure, "_HELD", few),  # a bucket's pairs are written part by part
            (delta_reachability, "CHUNK", few),  # a closure outgrows the driver in its middle
            (placement, "_EDGES", few),  # graphs are too large for the driver
        ):
            assert hasattr(module, name)
            if rng.random() < 0.4:
                patch.setattr(module, name, value)
        if rng.random() < 0.2:
            # Tasks work piece by piece; where bounds are small already, pieces would be of a few bytes.
            patch.setattr(InProcessCluster, "memory", 1 << 14 if merge.AT_ONCE > 1 << 20 else resources._USUAL // 2)
        fitting = rng.choice([0, 2 * few, 10 * few])  # facts that may be in the driver, for `auto`
        patch.setattr(placement, "_BYTES_PER_FACT", 1 << 9)  # more than that of any text in tests
        memory = int(fitting * placement._BYTES_PER_FACT / placement._MEMORY_SHARE) + 1
        patch.setattr(placement, "available_bytes", lambda: memory)
        yield rng.choice([1, 2, 5])


# --- what must be true between two updates -------------------------------------------------------------------


def counts(m: Materialisation, counter: CountedFacts, name: str) -> Counter[tuple[Any, ...]]:
    """How often facts of a relation are derived: the sums of all amounts, without those that are 0."""
    relation, shape = m.program.relations[name], state_of(m).context.shapes[name]
    sums: Counter[tuple[Any, ...]] = Counter()
    for file in counter.files.get(name, ()):
        for batch, amounts in read_file(file, shape, state_of(m).dictionary):
            assert amounts is not None
            for row, amount in zip(
                decode_rows(batch, relation.types, state_of(m).dictionary), amounts.tolist(), strict=True
            ):
                sums[row] += amount
    return Counter({row: amount for row, amount in sums.items() if amount})


def assert_files_right(m: Materialisation) -> None:
    """Each file holds facts of its bucket; no fact is added twice, or taken out without having been added; no other files are there."""
    state = state_of(m)
    used = {
        file.path
        for counter in (state.nonrecursive_counter, state.recursive_counter)
        for files in counter.files.values()
        for file in files
    }
    sets_of_facts = {state.given, state.explicit, state.materialised}
    if passing_of(m) is not None:
        sets_of_facts |= {passing_of(m).inserted, passing_of(m).gained, passing_of(m).met}
    if state.version.expansion is not None:
        sets_of_facts |= set(state.version.expansion._named.values())
    for held in sets_of_facts:
        for name in m.program.relations:
            added, gone = held.files(name)
            rows = _rows(m, name, added)
            out = _rows(m, name, gone)
            assert len(rows) == len(set(rows)), f"{held.name} has facts of {name} twice"
            assert len(out) == len(set(out)), f"facts of {name} went twice from {held.name}"
            assert set(out) <= set(rows), f"facts of {name} went from {held.name} that were not there"
            used |= {file.path for file in (*added, *gone)}
    if _files(state.cluster.scratch.path) != used:
        gc.collect()  # what went wrong before may hold on to sets
    assert _files(state.cluster.scratch.path) == used


def _rows(m: Materialisation, name: str, files: Sequence[FactFile]) -> list[tuple[int, ...]]:
    shape, buckets = state_of(m).context.shapes[name], state_of(m).cluster.buckets
    found: list[tuple[int, ...]] = []
    for file in files:
        for batch, amounts in read_file(file, shape, state_of(m).dictionary):
            assert amounts is None
            assert set(buckets_of(batch, shape, buckets, state_of(m).dictionary).tolist()) <= {file.bucket}
            found += [tuple(batch[:, i].tolist()) for i in range(batch.shape[1])]
    return found


def _written_by(stage: Stage) -> set[str]:
    """The files in the folder of a job, if this is the stage that has one: jobs of other threads have others."""
    folder = getattr(stage, "folder", None)
    return set() if folder is None else _files(Path(folder))


def _files(folder: Path) -> set[str]:
    return {str(file) for file in folder.rglob("*") if not file.is_dir()}
