"""Turns a batch of rows into an update: the rows of a batch have no order, unless they have a column for it.

A stream of changes has a column `op`, which holds `+` or `-`, and

- either the columns of one relation, found by their names,
- or `relation` and `values`, a list of texts as in a text file, for changes of any relations.

Of a fact that a batch both inserts and deletes the greatest `sequence` decides. Without that column, or if both have the same, the batch is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import did_you_mean
from evermat.core import error_catalogue as errors
from evermat.io import ChangedRows, ChangedTable, FileChanges, Findings, FullError, conform, name_list, nullary
from evermat.language import Atom, Constant, Relation, RelationNames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField

OP, RELATION, VALUES, SEQUENCE = "op", "relation", "values", "sequence"
_SPELLED = {OP: "string", RELATION: "string", VALUES: "array<string>"}
_INSERTED, _DELETED = "'inserted", "'deleted"  # no names that a column can have
_STREAM = "the stream"  # its name in errors

Ranks = npt.NDArray[np.int64]


class ChangeFrames:
    """The batches of a stream of changes: of one relation, or of any."""

    def __init__(self, relation: Relation | None, *, ordered: bool) -> None:
        self._relation, self._ordered = relation, ordered

    @classmethod
    def of(cls, frame: DataFrame, relation: Relation | None) -> ChangeFrames:
        """The kind of the batches of a stream, by its columns; raises a `DataError` if it does not have the required ones."""
        fields = {field.name: field for field in frame.schema.fields}
        findings = Findings(_STREAM)
        for name in fields:
            if frame.columns.count(name) > 1:
                findings.whole(errors.STREAM_COLUMNS, what=f"there are two columns `{name}`")
        if relation is None:
            _check_spelled(fields, findings)
        else:
            _check_columns(fields, relation, findings)
        ordered = SEQUENCE in fields and not (relation is not None and SEQUENCE in _column_names(relation))
        if ordered and not _has_order(fields[SEQUENCE].dataType):
            _wrong_type(fields[SEQUENCE], findings)
        findings.raise_if_any()
        if relation is not None and relation.columns:
            schema = pa.schema([(name, _arrow_type(fields[name].dataType)) for name in _column_names(relation)])
            conform(schema.empty_table(), relation, _STREAM)
        return cls(relation, ordered=ordered)

    def changes_of(self, rows: pa.Table, number: int, relations: RelationNames) -> FileChanges:
        """The insertions and deletions of a batch; no fact is in both. Raises a `DataError` with all problems of the batch."""
        changes = FileChanges({}, {})
        if not rows.num_rows:
            return changes
        batch = f"batch {number}"
        ranks = _ranks(rows[SEQUENCE], batch) if self._ordered else np.zeros(rows.num_rows, np.int64)
        if self._relation is None:
            known, default = relations, ""
            changed = rows.select([OP, RELATION, VALUES])
            ranks_of = {name: ranks[found] for name, found in _rows_of(rows[RELATION], relations).items()}
        else:
            known, default = RelationNames({self._relation.name: self._relation}, {}), self._relation.name
            columns = _column_names(self._relation)
            # Named by their positions, so that a relation may have a column of the same name.
            changed = rows.select([OP, *columns]).rename_columns([OP, *(f"'{i}" for i in range(len(columns)))])
            ranks_of = {default: ranks}
        table = ChangedTable(Path(batch), default, changed, known, lambda row: f"row {row + 1}")
        findings = Findings(batch)
        with suppress(FullError):
            for part in table.facts():
                _resolve(part, ranks_of[part.relation.name], changes, findings, ordered=self._ordered)
        findings.raise_if_any()
        return changes


# --- columns -------------------------------------------------------------------------------------------------


def _rows_of(column: pa.ChunkedArray, relations: RelationNames) -> dict[str, npt.NDArray[np.bool_]]:
    """Which rows are about each relation; it may have several names."""
    found: dict[str, npt.NDArray[np.bool_]] = {}
    for name in pc.unique(column).to_pylist():
        full, rows = relations.full(name), _equal(column, name)
        found[full] = found[full] | rows if full in found else rows
    return found


def _column_names(relation: Relation) -> list[str]:
    return [column.name for column in relation.columns]


def _check_spelled(fields: Mapping[str, StructField], findings: Findings) -> None:
    for name, type_ in _SPELLED.items():
        if name not in fields:
            _missing(name, fields, findings)
        elif fields[name].dataType.simpleString() != type_:
            _wrong_type(fields[name], findings)
    if all(name in fields for name in _SPELLED):
        for name in fields:
            if name not in {*_SPELLED, SEQUENCE}:
                findings.whole(
                    errors.STREAM_COLUMNS, what=f"`{name}` is not a column of a stream of changes of any relations"
                )


def _check_columns(fields: Mapping[str, StructField], relation: Relation, findings: Findings) -> None:
    expected = _column_names(relation)
    about = {"relation": relation.name, "expected": name_list(expected), "found": name_list([*fields])}
    if OP in expected:
        what = f"`{relation.name}` has a column `{OP}` itself, and can only be one of any relations"
        findings.whole(errors.STREAM_COLUMNS, what=what)
        return
    if OP not in fields:
        _missing(OP, fields, findings)
    elif fields[OP].dataType.simpleString() != _SPELLED[OP]:
        _wrong_type(fields[OP], findings)
    strange = [name for name in fields if name not in (*expected, OP, SEQUENCE)]
    for name in expected:
        if name not in fields:
            findings.whole(errors.MISSING_COLUMN, did_you_mean(name, strange), column=name, things="columns", **about)
    for name in strange:
        findings.whole(errors.ADDITIONAL_COLUMN, did_you_mean(name, expected), name=name, **about)


def _missing(name: str, fields: Mapping[str, StructField], findings: Findings) -> None:
    what = f"there is no column `{name}` among {name_list([*fields])}"
    findings.whole(errors.STREAM_COLUMNS, did_you_mean(name, [*fields]), what=what)


def _wrong_type(field: StructField, findings: Findings) -> None:
    what = f"the column `{field.name}` is of the type `{field.dataType.simpleString()}`"
    findings.whole(errors.STREAM_COLUMNS, what=what)


def _has_order(type_: DataType) -> bool:
    from pyspark.sql import types  # noqa: PLC0415

    times = (types.DateType, types.TimestampType, types.TimestampNTZType)
    return isinstance(type_, (types.NumericType, types.StringType, *times))


def _arrow_type(type_: DataType) -> Any:
    """The Arrow type of values from Spark; for one without an Arrow type, a type that no column has and that is then refused."""
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    try:
        return to_arrow_type(type_)
    except PySparkException:
        return pa.month_day_nano_interval()


# --- order ---------------------------------------------------------------------------------------------------


def _ranks(column: Any, batch: str) -> Ranks:
    """The rank of each row in the order of a column; equal values have equal ranks."""
    if column.null_count:
        findings = Findings(batch)
        row = pc.index(pc.is_null(column), True).as_py() + 1
        findings.whole(errors.NULL_VALUE, where=f"row {row}, column `{SEQUENCE}`")
        findings.raise_if_any()
    coded = column.combine_chunks().dictionary_encode()
    of_values = np.empty(len(coded.dictionary), np.int64)
    of_values[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(of_values))
    ranks: Ranks = of_values[coded.indices.to_numpy()]
    return ranks


def _equal(column: Any, value: str | None) -> npt.NDArray[np.bool_]:
    if value is None:
        return np.zeros(len(column), np.bool_)  # NULL names no relation, and is refused
    found: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(column, value), False).to_numpy()
    return found


def _resolve(part: ChangedRows, ranks: Ranks, changes: FileChanges, findings: Findings, *, ordered: bool) -> None:
    """Adds the facts of one relation to the insertions or deletions; those that would be both are findings."""
    relation, table, signs = part
    name = relation.name
    if not relation.columns:
        table = pa.table({"'fact": np.zeros(len(signs), np.int64)})
    if signs.all() or not signs.any():
        chosen = changes.insert if signs[0] else changes.delete
        chosen[name] = table if relation.columns else nullary(present=True)
        return
    keys = table.column_names
    last = (
        table.append_column(_INSERTED, pa.array(np.where(signs, ranks, -1)))
        .append_column(_DELETED, pa.array(np.where(signs, -1, ranks)))
        .group_by(keys)
        .aggregate([(_INSERTED, "max"), (_DELETED, "max")])
    )
    facts = last.select(keys)
    inserted, deleted = (last[f"{column}_max"].to_numpy() for column in (_INSERTED, _DELETED))
    for row in np.flatnonzero(inserted == deleted).tolist():
        values = [column[row].as_py() for column in facts.columns] if relation.columns else []
        fact = str(Atom(relation, tuple(map(Constant, values, relation.types))))
        how = f" with the same `{SEQUENCE}`" if ordered else ""
        findings.whole(errors.BOTH_SIGNS, fact=fact, how=how)
    for chosen, rows in ((changes.insert, inserted > deleted), (changes.delete, inserted < deleted)):
        if rows.any():
            chosen[name] = facts.filter(pa.array(rows)) if relation.columns else nullary(present=True)
