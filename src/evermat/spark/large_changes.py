"""The changes of a micro-batch that is too large for the driver: executors read, check and net them, and only errors come here.

The batch is computed once. Its checked rows, and then what is left of each fact, are kept on the executors' disks until the update is done.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import DataError, Problem, Source, allow_pandas
from evermat.core import error_catalogue as errors
from evermat.io import nullary, parquet_schema, spell
from evermat.language import Relation, RelationNames
from evermat.spark.change_columns import ChangeColumns
from evermat.spark.sink import RELATION, VALUES, ChangeFrames, fact_text, how_alike

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

FEW_ROWS = 1 << 16  # that the driver takes without further ado
_SHOWN = 10  # problems of a batch that are reported
_INSERTED, _AT, _PROBLEMS, _LEFT = "inserted", "at", "problems", "left"
_PRESENT = "present"  # stands for the columns of a fact that has none
_CONFLICT = 0  # what is left of a fact that was inserted and deleted at once; else 1 or -1


class FrameChanges(NamedTuple):
    """Facts to insert and to delete, by relation, as DataFrames."""

    insert: dict[str, DataFrame]
    delete: dict[str, DataFrame]


@contextmanager
def changes_by_tasks(
    frames: ChangeFrames, batch: DataFrame, number: int, relations: RelationNames
) -> Iterator[FrameChanges]:
    """The insertions and deletions of a batch; no fact is in both. They can be read in the block.

    Raises:
        DataError: with some of the problems of the batch; of rows, only the values are known.
    """
    from pyspark import StorageLevel  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    allow_pandas()  # tasks over Arrow need it
    name = f"batch {number}"
    checker = RowChecker(frames, relations, tuple(batch.columns), name)
    positions = batch.toDF(*(f"c{i}" for i in range(len(batch.columns))))
    order = frames.columns.order
    checked = positions.mapInArrow(checker.__call__, _checked_schema(frames, batch.schema)).persist(
        StorageLevel.DISK_ONLY
    )
    keys = _keys(frames)
    netted = checked
    try:
        counted = checked.groupBy(*_named(frames), _INSERTED).agg(f.collect_list(_PROBLEMS).alias(_PROBLEMS)).collect()
        _raise_problems(row[_PROBLEMS] for row in counted)
        left = f.when(f.col(_INSERTED), 1).otherwise(-1)
        if len({row[_INSERTED] for row in counted}) > 1:
            at = f.lit(0) if order is None else f.col(_AT)
            latest = [f.max(f.when(f.col(_INSERTED) == sign, at)).alias(str(sign)) for sign in (True, False)]
            last = checked.groupBy(*keys).agg(*latest)
            left = _what_is_left(f.col("True"), f.col("False"), _CONFLICT + frames.columns.deletes_first)
            netted = last.select(*keys, left.alias(_LEFT)).persist(StorageLevel.DISK_ONLY)
            _raise_conflicts(netted, frames, relations, name)
        else:
            netted = checked.select(*keys, left.alias(_LEFT))
        names = [row[RELATION] for row in counted] if frames.relation is None else [frames.relation.name]
        changed = [relations[one] for one in dict.fromkeys(names)]
        signs = {sign: netted.where(f.col(_LEFT) == sign) for sign in (1, -1)}
        inserted, deleted = (
            {one.name: _facts(signs[sign], frames, one) for one in changed} if counted else {} for sign in (1, -1)
        )
        yield FrameChanges(inserted, deleted)
    finally:
        netted.unpersist()
        checked.unpersist()


def _named(frames: ChangeFrames) -> list[str]:
    """The column for the relation of a row, if there is one."""
    return [RELATION] if frames.relation is None else []


def _keys(frames: ChangeFrames) -> list[str]:
    """The columns that identify a fact."""
    if frames.relation is None:
        return [RELATION, VALUES]
    return [f"c{i}" for i in range(frames.relation.arity)] or [_PRESENT]


def _checked_schema(frames: ChangeFrames, given: StructType) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415
    from pyspark.sql.types import ArrayType, BinaryType, BooleanType, StringType, StructField, StructType  # noqa: PLC0415

    if frames.relation is None:
        types = [StringType(), ArrayType(StringType())]
    else:
        types = [from_arrow_type(field.type) for field in parquet_schema(frames.relation)]
    fields = [StructField(name, type_) for name, type_ in zip(_keys(frames), types, strict=True)]
    fields.append(StructField(_INSERTED, BooleanType()))
    if frames.columns.order is not None:
        fields.append(StructField(_AT, given[frames.columns.order].dataType))
    return StructType([*fields, StructField(_PROBLEMS, BinaryType())])


@dataclass(frozen=True)
class RowChecker:
    """Checks rows in a task: each becomes a fact in its one form, and whether and when it is inserted; or there are problems."""

    frames: ChangeFrames
    relations: RelationNames
    names: tuple[str, ...]
    batch: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch]).rename_columns(list(self.names))
            if not rows.num_rows:
                continue
            try:
                found = list(self.frames.read(rows, self.batch, self.relations, lambda _row: "a row"))
            except DataError as error:
                yield self._problems(rows, error)
                continue
            order = self.frames.columns.order
            for part in found:
                signs = pa.array(part.changed.signs)
                columns = self._facts(part.changed.relation, part.changed.table, len(signs))
                columns.append(signs)
                if order is not None:
                    columns.append(part.of(rows[order]).combine_chunks())
                columns.append(pa.nulls(len(signs), pa.binary()))
                yield pa.record_batch(columns, names=self._columns())

    def _columns(self) -> list[str]:
        at = [] if self.frames.columns.order is None else [_AT]
        return [*_keys(self.frames), _INSERTED, *at, _PROBLEMS]

    def _facts(self, relation: Relation, table: pa.Table, count: int) -> list[Any]:
        if self.frames.relation is not None:
            if not relation.columns:
                return [pa.array(np.ones(count, np.bool_))]
            types = [field.type for field in parquet_schema(relation)]
            return [pc.cast(column, type_).combine_chunks() for column, type_ in zip(table.columns, types, strict=True)]
        names = pa.array([relation.name] * count)
        spelled = [
            spell(column.combine_chunks(), type_).to_pylist()
            for column, type_ in zip(table.columns, relation.types, strict=False)
        ]
        values = list(zip(*spelled, strict=True)) if relation.columns else [()] * count
        return [names, pa.array(values, pa.list_(pa.string()))]

    def _problems(self, rows: pa.Table, error: DataError) -> pa.RecordBatch:
        """One row with problems: everything else in it is NULL."""
        relation = self.frames.relation
        facts: list[pa.DataType] = [pa.string(), pa.list_(pa.string())]
        if relation is not None:
            facts = [field.type for field in parquet_schema(relation)]
        order = self.frames.columns.order
        types = [*facts, pa.bool_(), *([] if order is None else [rows[order].type])]
        columns = [pa.nulls(1, type_) for type_ in types]
        return pa.record_batch([*columns, pa.array([pickle.dumps(error.problems)])], names=self._columns())


def _raise_problems(found: Iterable[Iterable[bytes]]) -> None:
    pickled = [bytes(one) for some in found for one in some]
    problems = {str(problem): problem for one in pickled for problem in pickle.loads(one)}  # noqa: S301 - our own tasks wrote it
    if problems:
        raise DataError(list(problems.values())[:_SHOWN])


def _what_is_left(inserted: Column, deleted: Column, alike: int) -> Column:
    """Whether a fact is inserted or deleted, by when it was last, if ever; `alike` if both are equally late."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    alone = f.when(deleted.isNull(), 1).when(inserted.isNull(), -1)
    return alone.when(inserted > deleted, 1).when(inserted < deleted, -1).otherwise(alike)


def _raise_conflicts(netted: DataFrame, frames: ChangeFrames, relations: RelationNames, batch: str) -> None:
    """Raises a `DataError` if facts are both inserted and deleted; computes what is left of all facts."""
    found = netted.where(netted[_LEFT] == _CONFLICT).limit(_SHOWN).collect()
    problems = []
    for row in found:
        if frames.relation is None:
            relation, texts = relations[row[RELATION]], row[VALUES]
            typed = _typed(relation, pa.array([texts], pa.list_(pa.string())))
            values = [column[0].as_py() for column in typed.columns] if relation.columns else []
        else:
            relation = frames.relation
            values = [row[name] for name in _keys(frames)] if relation.columns else []
        details = {"fact": fact_text(relation, values), "how": how_alike(frames.columns)}
        problems.append(Problem(errors.BOTH_SIGNS, details, Source(batch, "")))
    if problems:
        raise DataError(problems)


def _facts(netted: DataFrame, frames: ChangeFrames, relation: Relation) -> DataFrame:
    """The facts of a relation in rows of keys."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    if frames.relation is None:
        netted = netted.where(netted[RELATION] == relation.name)
        if relation.columns:
            schema = from_arrow_schema(parquet_schema(relation))
            return netted.select(VALUES).mapInArrow(TypedFacts(relation).__call__, schema)
    elif relation.columns:
        return netted.select(*_keys(frames)).toDF(*(column.name for column in relation.columns))
    return netted.select()


@dataclass(frozen=True)
class TypedFacts:
    """Facts of a relation from lists of texts, which are right."""

    relation: Relation

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = parquet_schema(self.relation)
        for batch in batches:
            if batch.num_rows:
                typed = _typed(self.relation, batch.column(0))
                arrays = [
                    pc.cast(column, field.type).combine_chunks()
                    for column, field in zip(typed.columns, schema, strict=True)
                ]
                yield pa.record_batch(arrays, names=schema.names)


def _typed(relation: Relation, texts: Any) -> pa.Table:
    if not relation.columns:
        return nullary(present=True)
    known = RelationNames({relation.name: relation}, {})
    rows = pa.table({RELATION: pa.array([relation.name] * len(texts)), VALUES: texts})
    (read,) = ChangeFrames(None, ChangeColumns(None, None)).read(rows, relation.name, known)
    return read.changed.table
