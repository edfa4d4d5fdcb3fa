"""The Arrow form of a relation, and how the columns of a file are named in messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from evermat.language.builtins import MAX_NUMBER, MAX_UNSIGNED, MIN_NUMBER, Type
from evermat.language.model import Relation

ARROW_TYPES: dict[Type, Any] = {
    Type.SYMBOL: pa.string(),
    Type.NUMBER: pa.int64(),
    Type.UNSIGNED: pa.uint64(),
    Type.FLOAT: pa.float64(),
    Type.TERM: pa.string(),
}
TEXTS = Type.SYMBOL | Type.TERM
_SHOWN = 40  # characters of a value that a message shows
_RANGES = {
    Type.NUMBER: f"a `number` lies between {MIN_NUMBER} and {MAX_NUMBER}",
    Type.UNSIGNED: f"an `unsigned` lies between 0 and {MAX_UNSIGNED}",
    Type.FLOAT: "a `float` lies between -1.7976931348623157e308 and 1.7976931348623157e308; infinity is spelled `inf`",
}
_SPELLINGS = {
    Type.NUMBER: "a `number` is spelled with decimal digits and perhaps a sign, without blanks",
    Type.UNSIGNED: "an `unsigned` is spelled with decimal digits, without blanks",
    Type.FLOAT: "a `float` is spelled like `-1.5`, `2e-9` or `inf`, without blanks",
}


def arrow_schema(relation: Relation) -> pa.Schema:
    """The columns of a relation as an Arrow schema: symbols and terms are strings, and nothing is NULL."""
    return pa.schema([pa.field(column.name, ARROW_TYPES[column.type], nullable=False) for column in relation.columns])


def nullary(*, present: bool) -> pa.Table:
    """The table of a relation without columns: one row if its only fact holds, else none."""
    return pa.table({"present": pa.array([True] * present, pa.bool_())}).select([])


def table_of(relation: Relation, parts: Sequence[pa.Table]) -> pa.Table:
    """One table from the tables of the blocks of a file."""
    if not relation.columns:
        return nullary(present=any(part.num_rows for part in parts))
    schema = arrow_schema(relation)
    return pa.concat_tables([part.cast(schema) for part in parts]) if parts else schema.empty_table()


def table_from_values(relation: Relation, columns: Sequence[Sequence[object]]) -> pa.Table:
    """A table from one list of values for each column."""
    schema = arrow_schema(relation)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def where(relation: Relation, position: int) -> str:
    """The column at a position, counted from 0, as messages name it."""
    return f"column {position + 1} (`{relation.columns[position].name}`)"


def columns_text(count: int) -> str:
    """`1 column`, `2 columns`."""
    return f"{count} column" if count == 1 else f"{count} columns"


def names(items: Sequence[str]) -> str:
    """Names in backticks, separated by commas."""
    return ", ".join(f"`{item}`" for item in items) or "none"


def shown(text: str) -> str:
    """A value in backticks; what cannot be printed is escaped, and a long text is cut."""
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return "`" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + "`"


def range_of(type_: Type) -> str:
    """The values of a numeric type, as a sentence."""
    return _RANGES[type_]


def spelling_of(type_: Type) -> str:
    """How a value of a numeric type is spelled in text, as a sentence."""
    return _SPELLINGS[type_]
