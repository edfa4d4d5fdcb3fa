"""Arrow tables that are to be the facts of a relation: columns matched, types converted, misfits named.

The columns match by name, in any order, if the names are those of the relation; otherwise by position, unless a name
stands at another position than in the relation. Rows are counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import Kind, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.io.error_report import RANGE_TEXTS, Findings, column_text, name_list, shown, term_details
from evermat.io.schema import ARROW_TYPES, TEXTS, arrow_schema, nullary
from evermat.io.term_columns import checked_column
from evermat.language import RANGES, Relation, Type


def conform(
    table: pa.Table,
    relation: Relation,
    name: str,
    row_name: Callable[[int], str] = lambda row: f"row {row + 1}",
    *,
    encoded: bool = False,
    check_terms: bool = True,
) -> pa.Table:
    """The table with exactly the relation's columns and types; with `encoded`, texts that are dictionary-encoded may stay so.

    Terms are in their one form; without `check_terms`, they are texts as they stand there. Errors call the table `name`, and a row, counted from 0, what `row_name` returns.

    Raises:
        DataError: it does not fit.
    """
    return _Conforming(table, relation, Findings(name), row_name, encoded, check_terms).table()


@dataclass(frozen=True)
class _Conforming:
    """Notes what is wrong with the columns of one table."""

    found: pa.Table
    relation: Relation
    findings: Findings
    row_name: Callable[[int], str]
    encoded: bool
    check_terms: bool

    def table(self) -> pa.Table:
        if not self.relation.columns:
            return nullary(present=self.found.num_rows > 0)
        columns: list[Any] = []
        with self.findings:
            order, matched = self._order()
            for position, index in enumerate(order):
                self._check_type(position, self.found.schema.field(index), matched)
            if not self.findings.problems:
                columns = [self._column(position, self.found.column(index)) for position, index in enumerate(order)]
        if self.encoded:
            fields = [field.with_type(c.type) for field, c in zip(arrow_schema(self.relation), columns, strict=True)]
            return pa.Table.from_arrays(columns, schema=pa.schema(fields))
        return pa.Table.from_arrays(columns, schema=arrow_schema(self.relation))

    def _order(self) -> tuple[list[int], str]:
        """The index in the file of each column of the relation, and how they were matched."""
        found, expected = list(self.found.schema.names), [column.name for column in self.relation.columns]
        if sorted(found) == sorted(expected):
            return [found.index(name) for name in expected], ""
        about = {"relation": self.relation.name, "expected": name_list(expected), "found": name_list(found)}
        if len(found) == len(expected):
            if any(a != b and a in expected for a, b in zip(found, expected, strict=True)):
                self.findings.whole(errors.COLUMN_ORDER, path=self.findings.path, **about)
                return [], ""
            return list(range(len(expected))), "the columns are matched by position: their names differ"
        for name in expected:
            if name not in found and len(found) < len(expected):
                help_ = did_you_mean(name, found)
                self.findings.whole(errors.MISSING_COLUMN, help_, column=name, things="columns", **about)
        for name in found:
            if name not in expected and len(found) > len(expected):
                self.findings.whole(errors.ADDITIONAL_COLUMN, did_you_mean(name, expected), name=name, **about)
        if not self.findings.problems:  # a name stands twice in the file
            self.findings.whole(errors.COLUMN_ORDER, path=self.findings.path, **about)
        return [], ""

    def _check_type(self, position: int, field: Any, matched: str) -> None:
        type_ = self.relation.columns[position].type
        test, accepted = _ACCEPTED[type_]
        if not test(field.type) and not pa.types.is_null(field.type):  # of no value, or of NULLs, the type is not known
            details = {"where": column_text(self.relation, position), "found": field.type, "type": type_}
            self.findings.whole(errors.COLUMN_TYPE, matched, accepted=accepted, **details)

    def _column(self, position: int, column: Any) -> Any:
        """The values of a column in the relation's type; what does not fit is noted."""
        values = self._typed(position, column)
        if values is None:
            return column
        if self.check_terms and self.relation.columns[position].type is Type.TERM:
            values, wrong = checked_column(values)
            if wrong is not None:
                details = term_details(self.relation, position, wrong.fault)
                details["where"] = f"{self.row_name(wrong.row)}, {details['where']}"
                self.findings.whole(errors.NOT_A_TERM, wrong.fault.in_a_file, **details)
        return values

    def _typed(self, position: int, column: Any) -> Any | None:
        """The values of a column in the Arrow type that they have in the relation; None if one does not fit, which is noted."""
        type_ = self.relation.columns[position].type
        column = _with_taken_texts(column)
        if pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in column.chunks):
            column = pc.cast(column, column.type.value_type)  # a code of NULL does not count as one
        if column.null_count:
            self._bad_value(errors.NULL_VALUE, position, pc.index(pc.is_null(column), True).as_py(), None)
            return None
        if pa.types.is_dictionary(column.type):
            if self.encoded and type_ in TEXTS and not any(has_wrong_text(chunk.dictionary) for chunk in column.chunks):
                return column
            column = pc.cast(column, column.type.value_type)
        if type_ in TEXTS and (wrong := first_wrong_text(column)) is not None:
            row, byte = wrong
            self._bad_value(errors.TEXT_NOT_UTF8, position, row, None, byte=byte)
            return None
        try:
            wanted = ARROW_TYPES[type_]
            # Arrow's functions let other threads run, also where they have nothing to do.
            values = column if column.type == wanted else pc.cast(column, wanted, safe=type_ is not Type.FLOAT)
        except pa.ArrowInvalid:
            self._first_misfit(position, column)
            return None
        if type_ is Type.FLOAT:
            nans = pc.is_nan(values)
            if pc.any(nans, min_count=0).as_py():
                self._bad_value(errors.NAN_VALUE, position, pc.index(nans, True).as_py(), None)
            return pc.add(values, 0.0)  # −0.0 becomes 0.0
        return values

    def _first_misfit(self, position: int, column: Any) -> None:
        """Notes the first integer that the column's type cannot hold."""
        type_ = self.relation.columns[position].type
        low, high = RANGES[type_]
        for row, value in enumerate(value for chunk in column.chunks for value in chunk.to_pylist()):
            if not low <= value <= high:
                kind = errors.NEGATIVE if type_ is Type.UNSIGNED and value < 0 else errors.DOES_NOT_FIT
                self._bad_value(kind, position, row, value)
                return

    def _bad_value(self, kind: Kind, position: int, row: int, value: object, **more: object) -> None:
        """Notes a value; its position is told by row and column."""
        type_ = self.relation.columns[position].type
        at = f"{self.row_name(row)}, {column_text(self.relation, position)}"
        details: dict[str, Any] = {"where": at, "value": shown(str(value)), "type": type_, **more}
        if type_ in RANGES:
            details["range"] = RANGE_TEXTS[type_]
        self.findings.whole(kind, **details)


def has_wrong_text(texts: Any) -> bool:
    """Whether a text of an Arrow array is not valid UTF-8: Arrow takes it from files and from others as it is."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


def first_wrong_text(column: Any) -> tuple[int, int] | None:
    """The row, counted from 0, of the first text that is not valid UTF-8, and the number of the byte that is wrong."""
    row = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if has_wrong_text(chunk):
            for at, text in enumerate(pc.cast(chunk, pa.large_binary()).to_pylist(), row):
                try:
                    (text or b"").decode()
                except UnicodeDecodeError as error:
                    return at, error.start + 1
        row += len(chunk)
    return None


def _with_taken_texts(column: Any) -> Any:
    """The column with texts that Arrow's functions take: categories of polars are views, which cannot be taken by their codes."""
    if not pa.types.is_dictionary(column.type) or column.type.value_type != pa.string_view():
        return column
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(pa.large_string()))
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, pa.dictionary(column.type.index_type, pa.large_string()))


def is_text(type_: Any) -> bool:
    """Whether an Arrow type is one of texts."""
    if pa.types.is_dictionary(type_):
        return is_text(type_.value_type)
    return type_ in (pa.string(), pa.large_string(), pa.string_view())


def _is_integer(type_: Any) -> bool:
    return bool(pa.types.is_integer(type_) or (pa.types.is_decimal(type_) and type_.scale == 0))


def _is_float(type_: Any) -> bool:
    return bool(pa.types.is_floating(type_) or pa.types.is_integer(type_))


_TEXT: tuple[Callable[[Any], bool], str] = (is_text, "string columns, also large or dictionary-encoded ones")
_INTEGER: tuple[Callable[[Any], bool], str] = (_is_integer, "integer columns and decimals without a fraction")
_FLOAT: tuple[Callable[[Any], bool], str] = (_is_float, "float, double and integer columns")
_ACCEPTED = {Type.SYMBOL: _TEXT, Type.TERM: _TEXT, Type.NUMBER: _INTEGER, Type.UNSIGNED: _INTEGER, Type.FLOAT: _FLOAT}
