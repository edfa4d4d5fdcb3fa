"""From the memory of the driver to a cluster: facts, counters and what is left to be done become files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evermat.columns.state import State as ColumnsState
from evermat.columns.table import Rows
from evermat.columns.views import View as ColumnsView
from evermat.spark.rounds.packing import Amounts, FactFile, Shape, buckets_of, by_bucket, to_arrow, write_file
from evermat.spark.rounds.sets import FactSet
from evermat.spark.rounds.state import State

_ROWS = 1 << 22  # facts that are written at a time


def move(source: ColumnsState, target: State, left: ColumnsView) -> FactSet:
    """Gives an empty state on a cluster all that a state in memory has; `left` in files."""
    for name in source.tables:
        for there, here in ((target.explicit, source.explicit), (target.materialised, source.materialised)):
            there.append(name, list(_written(source, target, name, here.rows(name))))
        for amounts, counted in (
            (target.nonrecursive_counter, source.nonrecursive_counter),
            (target.recursive_counter, source.recursive_counter),
        ):
            rows = source.materialised.rows(name)
            counts = counted.counters[name].get(rows)
            if counts.any():
                amounts.append(name, list(_written(source, target, name, rows[counts > 0], counts[counts > 0])))
    for stratum, valid in source.counters.items():
        target.record_counters(stratum, valid)
        target.record_work(stratum, source.work(stratum))
    waiting = FactSet("left", target.workshop)
    for name in left.names:
        waiting.append(name, list(_written(source, target, name, left.rows(name))))
    return waiting


def _written(
    source: ColumnsState, target: State, name: str, rows: Rows, amounts: Amounts | None = None
) -> Iterator[FactFile]:
    shape: Shape = target.workshop.shapes[name]
    cluster, dictionary = target.cluster, source.dictionary
    for first in range(0, len(rows), _ROWS):
        chosen = rows[first : first + _ROWS]
        batch = source.tables[name].take(chosen)
        for bucket, places in by_bucket(buckets_of(batch, shape, cluster.buckets, dictionary)):
            own = None if amounts is None else amounts[first : first + _ROWS][places]
            table = to_arrow(batch[:, places], shape, dictionary, own)
            yield cluster.adopt(write_file(table, Path(cluster.folder), bucket))
