"""The Arrow form of a relation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evermat.language import Relation, Type

ARROW_TYPES: dict[Type, Any] = {
    Type.SYMBOL: pa.string(),
    Type.NUMBER: pa.int64(),
    Type.UNSIGNED: pa.uint64(),
    Type.FLOAT: pa.float64(),
    Type.TERM: pa.string(),
}
TEXTS = Type.SYMBOL | Type.TERM


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


def bytes_of(texts: Any) -> bytes:
    """All texts of an Arrow array of large strings, one behind the other."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    text: bytes = texts.buffers()[2].to_pybytes()[offsets[0] : offsets[-1]]
    return text
