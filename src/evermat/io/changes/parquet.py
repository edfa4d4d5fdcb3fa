"""Changes in Parquet, one file or a folder of files.

- The column `op` holds `+` or `-`. The column `relation`, if there is one, names the relation of each row; without it
  the relation is the file's name up to the first dot (`edge.parquet`, `edge.2024-05-01.parquet`).
- The other columns are those of the relation, matched as in a relation's own file: by name or else by position. One
  file has one schema, so that all its relations have as many columns, of types that suit them all.
- Beside `op` and `relation` there may be, instead, one column `values` with lists of texts, spelled as in a text file:
  that holds changes of any relations, and is what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evermat.core import DataError, Kind, count_of, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.io.changes.model import DELETE, INSERT, ChangedRows, WrittenRows
from evermat.io.column_match import conform, first_wrong_text, is_text
from evermat.io.error_report import Findings, shown, term_details, wrong_count
from evermat.io.formats.csv_exact import number, number_details, typed_text
from evermat.io.formats.csv_fast import convert
from evermat.io.formats.csv_writer import spell
from evermat.io.formats.parquet import read_tables
from evermat.io.formats.registry import UpdateFiles
from evermat.io.open import failing
from evermat.io.schema import TEXTS, arrow_schema, nullary
from evermat.language import Relation, RelationNames, TermFault, Type, suggestion

_SCHEMA = pa.schema(
    [
        pa.field("op", pa.string(), nullable=False),
        pa.field("relation", pa.string(), nullable=False),
        pa.field("values", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
    ]
)
Rows = npt.NDArray[np.int64]


def read_changed_parquet(update: UpdateFiles) -> list[ChangedRows]:
    """The changes of a Parquet file, or of all Parquet files of a folder in the order of their names."""
    (path,) = update.paths
    relation = path.name.partition(".")[0]
    with failing(path, "changes are"):
        return [
            rows
            for part, table, row_name in read_tables(path, "changes are")
            for rows in ChangedTable(part, relation, table, update.relations, row_name, update.checks_terms).facts()
        ]


@dataclass
class ChangedTable:
    """One table of changes."""

    _path: Path
    _default: str
    _table: pa.Table
    _relations: RelationNames
    _row_name: Callable[[int], str]
    _check_terms: bool = True

    def __post_init__(self) -> None:
        self._findings = Findings(str(self._path))

    def facts(self) -> Iterator[ChangedRows]:
        """The changes by relation; everything that is wrong with any of them is raised at once."""
        found: list[ChangedRows] = []
        with self._findings:
            insert = self._signs()
            groups = list(self._groups())
            if not self._findings.problems:
                rest = self._rest()
                found = [self._read(relation, rest, rows, insert) for relation, rows in groups]
        return iter(found)

    # --- signs and relations ---

    def _texts(self, name: str) -> Any | None:
        """The texts of the column of that name, or None if there is none; other types are noted."""
        found = [i for i, column in enumerate(self._table.column_names) if column == name]
        if not found:
            return None
        column = self._table.column(found[0])
        if not is_text(column.type):
            self._findings.whole(
                errors.CHANGE_COLUMNS, what=f"the column `{name}` is of the type `{column.type}`", path=self._path
            )
            return None
        if column.null_count:
            row = pc.index(pc.is_null(column), True).as_py()
            self._findings.whole(errors.NULL_VALUE, where=self._where(row, name))
            return None
        if pa.types.is_dictionary(column.type):
            column = pc.cast(column, column.type.value_type)
        if (wrong := first_wrong_text(column)) is not None:
            self._findings.whole(errors.TEXT_NOT_UTF8, where=self._where(wrong[0], name), byte=wrong[1])
            return None
        return pc.cast(column, pa.large_string()).combine_chunks()

    def _where(self, row: int, column: str) -> str:
        return f"{self._row_name(row)}, column `{column}`"

    def _signs(self) -> npt.NDArray[np.bool_]:
        """Whether each row is inserted."""
        if "op" not in self._table.column_names:
            hint = did_you_mean("op", self._table.column_names)
            self._findings.whole(errors.CHANGE_COLUMNS, hint, what="there is no column `op`", path=self._path)
        signs = self._texts("op")
        if signs is None:
            return np.empty(0, np.bool_)
        insert: npt.NDArray[np.bool_] = pc.equal(signs, INSERT).to_numpy(zero_copy_only=False)
        delete = pc.equal(signs, DELETE).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(~(insert | delete)).tolist():
            value = f"{shown(signs[row].as_py())} in {self._where(row, 'op')},"
            self._findings.whole(errors.CHANGE_SIGN, value=value)
        return insert

    def _groups(self) -> Iterator[tuple[Relation, Rows]]:
        """The relations of the rows; those that are not known are noted."""
        if "relation" not in self._table.column_names:
            relation = self._known(self._default, "the file's name up to the first dot names the relation")
            if relation is not None:
                yield relation, np.arange(self._table.num_rows)
            return
        column = self._texts("relation")
        if column is None or not len(column):
            return
        encoded = column.dictionary_encode()
        number: dict[str, tuple[int, str]] = {}  # a relation may have several names
        numbers = [
            number.setdefault(self._relations.full(name), (len(number), name))[0]
            for name in encoded.dictionary.to_pylist()
        ]
        codes = np.array(numbers)[encoded.indices.to_numpy(zero_copy_only=False)]
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(number)))
        for (_, name), rows in zip(number.values(), np.split(order, ends[:-1]), strict=True):
            relation = self._known(name, f"it stands in {self._where(int(rows[0]), 'relation')}")
            if relation is not None:
                yield relation, rows

    def _known(self, name: str, why: str) -> Relation | None:
        relation = self._relations.get(name)
        if relation is None:
            hint = suggestion(name, self._relations)
            self._findings.whole(errors.NO_SUCH_RELATION, f"{why}; {hint}" if hint else why, name=shown(name)[1:-1])
        return relation

    # --- values ---

    def _rest(self) -> pa.Table:
        """The columns that hold values: all but the first `op` and the first `relation`."""
        every = self._table.column_names
        taken = {every.index(name) for name in ("op", "relation") if name in every}
        return self._table.select([i for i in range(len(every)) if i not in taken])

    def _read(self, relation: Relation, rest: pa.Table, rows: Rows, insert: npt.NDArray[np.bool_]) -> ChangedRows:
        chosen = rest if len(rows) == rest.num_rows else rest.take(pa.array(rows))
        if _is_spelled(rest):
            table = self._spelled(relation, chosen.column(0), rows)
        elif not relation.columns and not rest.num_columns:
            table = nullary(present=True)
        else:
            table = self._conformed(relation, chosen, rows)
        return ChangedRows(relation, table, insert[rows])

    def _conformed(self, relation: Relation, table: pa.Table, rows: Rows) -> pa.Table:
        def name_of(row: int) -> str:
            return self._row_name(int(rows[row]))

        try:
            return conform(table, relation, str(self._path), name_of, check_terms=self._check_terms)
        except DataError as error:
            for problem in error.problems:
                self._findings.add(problem)
            return arrow_schema(relation).empty_table()

    def _spelled(self, relation: Relation, column: Any, rows: Rows) -> pa.Table:
        """The facts of a relation whose values are spelled as texts."""
        lists = column.combine_chunks()
        counts = pc.fill_null(pc.list_value_length(lists), -1).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(counts != relation.arity).tolist():
            self._wrong_count(relation, int(counts[row]), self._row_name(int(rows[row])))
        empty = arrow_schema(relation).empty_table()
        if self._findings.problems or not relation.columns:
            return nullary(present=True) if not relation.columns else empty
        flat = lists.flatten()
        if pa.types.is_dictionary(flat.type):
            flat = pc.cast(flat, flat.type.value_type)
        if (wrong := first_wrong_text(flat)) is not None:
            row, position = divmod(wrong[0], relation.arity)
            where = self._value_place(relation, position, int(rows[row]))
            self._findings.whole(errors.TEXT_NOT_UTF8, where=where, byte=wrong[1])
            return empty
        flat = pc.cast(flat, pa.string())
        columns = []
        for position, type_ in enumerate(relation.types):
            texts = flat.take(pa.array(np.arange(position, len(flat), relation.arity)))
            if texts.null_count:
                row = int(rows[pc.index(pc.is_null(texts), True).as_py()])
                self._findings.whole(errors.NULL_VALUE, where=self._value_place(relation, position, row))
                return empty
            values = None
            with suppress(pa.ArrowInvalid):
                values = convert(pa.chunked_array([texts]), type_ if self._check_terms else _unchecked(type_))
            columns.append(values if values is not None else self._one_by_one(relation, position, texts, rows))
        if self._findings.problems:
            return empty
        return pa.Table.from_arrays(columns, schema=arrow_schema(relation))

    def _one_by_one(self, relation: Relation, position: int, texts: Any, rows: Rows) -> Any:
        """The values of a column that some texts spell in an unusual way, or not at all."""
        type_ = relation.columns[position].type
        values = []
        for row, spelled in zip(rows.tolist(), texts.to_pylist(), strict=True):
            value = typed_text(spelled, type_) if type_ in TEXTS else number(spelled, type_)
            if isinstance(value, TermFault):
                details = term_details(relation, position, value)
                details["where"] = self._value_place(relation, position, row)
                self._findings.whole(errors.NOT_A_TERM, value.in_a_file, **details)
            elif isinstance(value, Kind):
                details = number_details(relation, position, spelled, value)
                details["where"] = self._value_place(relation, position, row)
                self._findings.whole(value, **details)
            else:
                values.append(value)
        return pa.array(values, arrow_schema(relation).field(position).type)

    def _value_place(self, relation: Relation, position: int, row: int) -> str:
        return f"{self._row_name(row)}, value {position + 1} (`{relation.columns[position].name}`)"

    def _wrong_count(self, relation: Relation, count: int, at: str) -> None:
        if count < 0:
            self._findings.whole(errors.NULL_VALUE, where=f"{at}, column `values`")
            return
        kind, details = wrong_count(relation, count, f"the change in {at}", count_of(count, "value"))
        self._findings.whole(kind, **details)


def _unchecked(type_: Type) -> Type:
    return Type.SYMBOL if type_ is Type.TERM else type_


def _is_spelled(rest: pa.Table) -> bool:
    """Whether the only column holds lists of texts."""
    if rest.column_names != ["values"]:
        return False
    type_ = rest.schema.field(0).type
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_)) and is_text(type_.value_type)


def write_changed_parquet(sink: BinaryIO, parts: Iterable[WrittenRows], _path: Path) -> None:
    """Columns `op`, `relation` and `values`: the values are spelled as in text, for one schema has to suit all."""
    with pq.ParquetWriter(sink, _SCHEMA) as writer:
        for sign, relation, batches in parts:
            for batch in batches:
                columns = [spell(a, t).to_pylist() for a, t in zip(batch.columns, relation.types, strict=False)]
                rows = list(zip(*columns, strict=True)) if relation.columns else [()] * batch.num_rows
                arrays = [
                    pa.array([sign] * len(rows), pa.string()),
                    pa.array([relation.name] * len(rows), pa.string()),
                    pa.array(rows, _SCHEMA.field("values").type),
                ]
                writer.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA))
