"""Turns a batch of rows into an update.

A stream of changes has a column for what a row does, and

- either the columns of one relation, found by their names,
- or `relation` and `values`, a list of texts as in a text file, for changes of any relations.

Of a fact that a batch both inserts and deletes the last row decides, where the rows have an order (see `change_columns`). Where they have none, or
two rows with the same `sequence` differ, the batch is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import collected_errors, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.io import ChangedRows, ChangedTable, FileChanges, Findings, FullError, conform, name_list, nullary
from evermat.language import Atom, Constant, Relation, RelationNames
from evermat.spark.change_columns import OP, ChangeColumns, Ranks, row_name

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

RELATION, VALUES = "relation", "values"
_SPELLED = {RELATION: "string", VALUES: "array<string>"}
_INSERTED, _DELETED = "'inserted", "'deleted"  # no names that a column can have
_STREAM = "the stream"  # its name in errors


class ReadRows(NamedTuple):
    """Changes of one relation in a batch, and which rows of the batch they are; None for all."""

    changed: ChangedRows
    rows: npt.NDArray[np.bool_] | None

    def of(self, values: Any) -> Any:
        """Those of some values by row."""
        return values if self.rows is None else values.filter(pa.array(self.rows))


@dataclass(frozen=True)
class ChangeFrames:
    """The batches of a stream of changes: of one relation, or of any if it is None."""

    relation: Relation | None
    columns: ChangeColumns

    @classmethod
    def of(cls, schema: StructType, relation: Relation | None, *, signed: bool = True) -> ChangeFrames:
        """The kind of the batches of a stream, by its columns; raises a `DataError` if it does not have the required ones.

        Unless it has to be `signed`, a stream without a column for what a row does inserts all rows.
        """
        names, fields = [field.name for field in schema.fields], {field.name: field for field in schema.fields}
        findings = Findings(_STREAM)
        for name in fields:
            if names.count(name) > 1:
                findings.whole(errors.STREAM_COLUMNS, what=f"there are two columns `{name}`")
        facts = [*_SPELLED] if relation is None else _column_names(relation)
        columns = ChangeColumns.among([*fields], facts, findings)
        if columns.sign is None and signed:
            _no_sign(fields, relation, findings)
        elif columns.sign is not None and fields[columns.sign].dataType.simpleString() != "string":
            _wrong_type(fields[columns.sign], findings)
        if relation is None:
            _check_spelled(fields, columns, findings)
        elif not (columns.sign is None and OP in facts and signed):
            _check_columns(fields, relation, columns, findings)
        if columns.order is not None and not _has_order(fields[columns.order].dataType):
            _wrong_type(fields[columns.order], findings)
        findings.raise_if_any()
        if relation is not None and relation.columns:
            arrow = pa.schema([(name, _arrow_type(fields[name].dataType)) for name in facts])
            conform(arrow.empty_table(), relation, _STREAM)
        return cls(relation, columns)

    def changes_of(self, rows: pa.Table, number: int | str, relations: RelationNames) -> FileChanges:
        """The insertions and deletions of a batch; no fact is in both. Raises a `DataError` with all problems of the batch.

        The batch has a number, or another name for errors.
        """
        changes = FileChanges({}, {})
        if not rows.num_rows:
            return changes
        name = f"batch {number}" if isinstance(number, int) else number
        found = list(self.read(rows, name, relations))
        findings = Findings(name)
        with suppress(FullError):
            ranks = self.columns.ranks(rows)
            for part in found:
                _resolve(part.changed, part.of(pa.array(ranks)).to_numpy(), changes, findings, self.columns)
        findings.raise_if_any()
        return changes

    def read(
        self, rows: pa.Table, name: str, relations: RelationNames, name_of: Callable[[int], str] = row_name
    ) -> Iterator[ReadRows]:
        """The changes in rows by relation. Raises a `DataError` with all their problems, in which `name_of` names rows."""
        findings = Findings(name)
        found: list[ChangedRows] = []
        rows_of: dict[str, npt.NDArray[np.bool_]] = {}
        signs = np.ones(rows.num_rows, np.bool_)
        with collected_errors() as collecting:
            with collecting(), findings:
                signs = self.columns.signs(rows, findings, name_of)
                self.columns.check_order(rows, findings, name_of)
            texts = pa.array(np.where(signs, "+", "-"), pa.string())
            if self.relation is None:
                known, default = relations, ""
                others = rows.select([*_SPELLED])
                rows_of = _rows_of(rows[RELATION], relations)
            else:
                known, default = RelationNames({self.relation.name: self.relation}, {}), self.relation.name
                # Named by their positions, so that a relation may have a column of the same name.
                facts = _column_names(self.relation)
                others = rows.select(facts).rename_columns([f"'{i}" for i in range(len(facts))])
            changed = pa.table([texts, *others.columns], names=[OP, *others.column_names])
            with collecting():
                found = list(ChangedTable(Path(name), default, changed, known, name_of).facts())
        for part in found:
            yield ReadRows(part, rows_of.get(part.relation.name))


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


def _no_sign(fields: Mapping[str, StructField], relation: Relation | None, findings: Findings) -> None:
    if relation is not None and OP in _column_names(relation):
        what = f"`{relation.name}` has a column `{OP}` itself, and can only be one of any relations"
        findings.whole(errors.STREAM_COLUMNS, what=what)
    else:
        _missing(OP, fields, findings)


def _check_spelled(fields: Mapping[str, StructField], columns: ChangeColumns, findings: Findings) -> None:
    for name, type_ in _SPELLED.items():
        if name not in fields:
            _missing(name, fields, findings)
        elif fields[name].dataType.simpleString() != type_:
            _wrong_type(fields[name], findings)
    if all(name in fields for name in _SPELLED):
        for name in columns.others([*fields], [*_SPELLED]):
            findings.whole(
                errors.STREAM_COLUMNS, what=f"`{name}` is not a column of a stream of changes of any relations"
            )


def _check_columns(
    fields: Mapping[str, StructField], relation: Relation, columns: ChangeColumns, findings: Findings
) -> None:
    expected = _column_names(relation)
    about = {"relation": relation.name, "expected": name_list(expected), "found": name_list([*fields])}
    strange = columns.others([*fields], expected)
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


def _equal(column: Any, value: str | None) -> npt.NDArray[np.bool_]:
    if value is None:
        return np.zeros(len(column), np.bool_)  # NULL names no relation, and is refused
    found: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(column, value), False).to_numpy()
    return found


def _resolve(part: ChangedRows, ranks: Ranks, changes: FileChanges, findings: Findings, columns: ChangeColumns) -> None:
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
    if columns.deletes_first:
        inserted = inserted + (inserted == deleted)
    for row in np.flatnonzero(inserted == deleted).tolist():
        values = [column[row].as_py() for column in facts.columns] if relation.columns else []
        findings.whole(errors.BOTH_SIGNS, fact=fact_text(relation, values), how=how_alike(columns))
    for chosen, rows in ((changes.insert, inserted > deleted), (changes.delete, inserted < deleted)):
        if rows.any():
            chosen[name] = facts.filter(pa.array(rows)) if relation.columns else nullary(present=True)


def fact_text(relation: Relation, values: list[Any]) -> str:
    """A fact as errors show it."""
    return str(Atom(relation, tuple(map(Constant, values, relation.types))))


def how_alike(columns: ChangeColumns) -> str:
    """Why the order of rows does not decide between two of them."""
    return "" if columns.order is None else f" with the same `{columns.order}`"
