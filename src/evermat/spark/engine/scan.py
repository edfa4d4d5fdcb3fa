"""Reads facts of a set: into the driver, a bucket at a time, or as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.columns import Batch, Dictionary, decode_arrow, expand_names
from evermat.io import arrow_schema, parquet_schema
from evermat.language import Relation
from evermat.spark.dataframes import from_files, from_tasks
from evermat.spark.engine.fact_sets import View
from evermat.spark.engine.frame_pins import release_all
from evermat.spark.engine.tasks.rename_terms import union_find_of
from evermat.spark.engine.tasks.serialization import FactFile, Shape, buckets_of
from evermat.spark.engine.tasks.set_expressions import Combined, Expression, Files
from evermat.spark.engine.tasks.task_table import batches_of
from evermat.spark.engine.tasks.worker import numbers_of, settle, worker_dictionary
from evermat.spark.jobs import configured, is_connect
from evermat.store import ObjectPath, location_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_SHOWN = 1 << 16  # facts in a batch for Spark
_LISTED_BY_DRIVER = "spark.sql.sources.parallelPartitionDiscovery.threshold"


@dataclass(frozen=True, eq=False)
class ScanTask:
    """Yields facts of a relation, expanded if there are `names`, with the columns and types that users see; each task has one bucket."""

    relation: Relation
    shape: Shape
    expression: Expression
    buckets: int
    columns: tuple[int, ...] = ()  # the columns of terms
    names: Expression | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dictionary = worker_dictionary()
        union_find = union_find_of(self.names, dictionary, self.buckets)
        for bucket in numbers_of(batches):
            for held in batches_of(self.expression, self.shape, dictionary, (bucket,)):
                for facts in expand_names(held, np.array(self.columns, np.int64), union_find):
                    for first in range(0, facts.shape[1], _SHOWN):
                        yield from self._shown(facts[:, first : first + _SHOWN], dictionary)
        settle()

    def _shown(self, batch: Batch, dictionary: Dictionary) -> Iterator[pa.RecordBatch]:
        if not self.relation.columns:
            yield pa.record_batch({"present": [True] * batch.shape[1]})
            return
        schema = parquet_schema(self.relation)
        columns = [decode_arrow(batch[i], t, dictionary) for i, t in enumerate(self.relation.types)]
        table = pa.Table.from_arrays(columns, schema=arrow_schema(self.relation)).cast(schema)
        yield from table.to_batches()


def facts_of(view: View, name: str, dictionary: Dictionary) -> Iterator[Batch]:
    """Yields the facts of a relation; no more than a bucket is held at a time."""
    shape, expression = view.context.shapes[name], view.expression(name)
    for bucket in range(view.context.cluster.buckets):
        yield from batches_of(expression, shape, dictionary, (bucket,))


def frame_of(
    view: View,
    relation: Relation,
    spark: SparkSession,
    columns: Sequence[int] = (),
    names: Expression | None = None,
    kept: object = None,
) -> DataFrame:
    """The facts of a relation as a DataFrame over the current files; expanded in `columns` if there are `names`.

    The files, and what else is to be `kept`, exist as long as it exists, a DataFrame that is derived from it, or a view.
    """
    context, expression = view.context, view.expression(relation.name)
    shape, buckets = context.shapes[relation.name], context.cluster.buckets
    release_all()
    facts = Files(()) if expression is None else expression
    frame = _of_files(facts, relation, spark) if names is None else None
    if frame is None:
        showing = ScanTask(relation, shape, facts, buckets, tuple(columns), names)
        frame = from_tasks(spark, relation, showing.__call__, buckets, view.count(relation.name))
    context.cluster.frame_pins.keep(frame, (expression, names, kept))
    return frame


def _of_files(facts: Expression, relation: Relation, spark: SparkSession) -> DataFrame | None:
    """The facts as Spark reads them from files, where it can."""
    match facts:
        case Files(added) if added:
            removed: tuple[FactFile, ...] = ()
        case Combined("-", Files(added), Files(removed)):
            pass
        case _:
            return None
    if any(isinstance(location_of(file.path), ObjectPath) for file in (*added, *removed)):
        return None  # Spark reads buckets only with libraries that it may not have: tasks do it
    with _listing(spark):
        return from_files(spark, relation, [file.path for file in added], [file.path for file in removed])


def _listing(spark: SparkSession) -> AbstractContextManager[None]:
    """Has the driver look at files; it would have tasks do that, if there are many."""
    return nullcontext() if is_connect(spark) else configured(spark, {_LISTED_BY_DRIVER: "100000"})


def holds(view: View, name: str, fact: Batch, dictionary: Dictionary) -> bool:
    """Whether a fact is in a view; only its bucket is read."""
    context = view.context
    shape, expression = context.shapes[name], view.expression(name)
    bucket = int(buckets_of(fact, shape, context.cluster.buckets, dictionary)[0])
    found = batches_of(expression, shape, dictionary, (bucket,))
    return any(bool(np.all(batch == fact, axis=0).any()) for batch in found)
