"""Moves facts, counters and Δ from the memory of the driver to files on a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evermat.algebra import Counters
from evermat.columns import Rows, facts_in
from evermat.columns import State as ColumnsState
from evermat.columns import View as ColumnsView
from evermat.language import Relation
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.fact_sets import FactSet
from evermat.spark.engine.job_runner import Job
from evermat.spark.engine.state import State
from evermat.spark.engine.tasks.derive import InputFile
from evermat.spark.engine.tasks.merge import Target
from evermat.spark.engine.tasks.serialization import Amounts, FactFile
from evermat.spark.engine.tasks.set_expressions import ARRIVED
from evermat.spark.engine.tasks.worker import Channel
from evermat.store import Location

_ROWS = 1 << 22  # facts that are written at a time


def move_state(source: ColumnsState, target: State, left: ColumnsView | None) -> FactSet:
    """Copies a state in memory to an empty state on a cluster, and returns the facts of `left` there."""
    for name in source.tables:
        target.given.append(name, list(_written(source, target, name, source.given.rows(name))))
        # There every fact is in a file, also of relations that a storage scheme holds here.
        shape, batches = target.context.shapes[name], facts_in(source.materialised, name, _ROWS)
        files = [file for batch in batches for file in target.cluster.write(shape, batch, source.dictionary)]
        target.materialised.append(name, files)
        for amounts, counted in (
            (target.nonrecursive_counter, source.nonrecursive_counter),
            (target.recursive_counter, source.recursive_counter),
        ):
            rows = source.materialised.rows(name)
            counts = counted.counters[name].get(rows)
            if counts.any():
                amounts.append(name, list(_written(source, target, name, rows[counts > 0], counts[counts > 0])))
    if target.representatives is not None:
        target.representatives.take_over(target, stored=False)
    for rules in source.strata:
        stratum, valid = rules.stratum, source.counters[rules.stratum]
        target.record_counters(stratum, valid if rules.counts_copies else Counters.NONE)
        target.record_work(stratum, source.work(stratum))
    waiting = FactSet("left", target.context)
    if left is not None:
        for name in left.names:
            waiting.append(name, list(_written(source, target, name, left.rows(name))))
    return waiting


def _written(
    source: ColumnsState, target: State, name: str, rows: Rows, amounts: Amounts | None = None
) -> Iterator[FactFile]:
    for first in range(0, len(rows), _ROWS):
        batch = source.tables[name].take(rows[first : first + _ROWS])
        own = None if amounts is None else amounts[first : first + _ROWS]
        yield from target.cluster.write(target.context.shapes[name], batch, source.dictionary, own)


def load_files(
    context: EngineContext, relations: Mapping[str, Relation], files: Mapping[str, Sequence[Location]], what: str
) -> FactSet:
    """A set of the facts in some files, by relation."""
    loaded = FactSet(what, context)
    names = [name for name in files if files[name]]
    if names:
        shapes = context.shapes
        job = Job(f"load {', '.join(names)[:60]}", [Target(name, shapes[name], ARRIVED) for name in names])
        job.channels = [Channel(shapes[name], number) for number, name in enumerate(names)]
        job.inputs = [
            InputFile(str(p), relations[name], number) for number, name in enumerate(names) for p in files[name]
        ]
        job.tasks = min(len(job.inputs), context.cluster.buckets)
        for name, found in zip(names, context.run(job), strict=True):
            loaded.append(name, found.facts)
    return loaded
