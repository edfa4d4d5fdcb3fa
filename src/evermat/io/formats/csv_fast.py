"""Reads delimiter-separated text fast: Arrow splits the fields, and only what looks odd is read by `csv_exact`.

Arrow's reader takes several things that are not meant: it ends records at a lone carriage return, fills up empty
lines with empty fields, skips a BOM, reads hexadecimal numbers, NaN and `Infinity`, and is not strict about quotes.
`read_fast` looks for each of them and gives the block back; `records` then reads it, or names what is wrong with it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from evermat.core import check_stop
from evermat.io.blocks import BLOCK, BOM, PIECE, Block, BlockReader, pieces
from evermat.io.error_report import Findings
from evermat.io.formats.csv_exact import count_nullary, read_records
from evermat.io.formats.registry import InputFile
from evermat.io.schema import ARROW_TYPES, TEXTS, arrow_schema, nullary, table_from_values, table_of
from evermat.io.term_columns import checked_column
from evermat.language import Io, Type

_INFINITIES = ["inf", "+inf", "-inf"]


def block_reader(file: InputFile) -> BlockReader:
    """How a text is read, as its `.input` describes it."""
    io = file.io
    is_fact = io.relation.types in ((), (Type.SYMBOL,), (Type.TERM,))  # an empty line, also at the end of a file
    read = partial(read_block, io=io, findings=file.findings, check_terms=file.checks_terms)
    return BlockReader(read, io.rfc4180, io.headers, is_fact)


def read_block(block: Block, io: Io, findings: Findings, *, check_terms: bool = True) -> pa.Table:
    """The facts of a block; errors are noted."""
    if not io.relation.columns:
        return nullary(present=count_nullary(block, io.relation, findings) > 0)
    table = read_fast(block.data, io, check_terms=check_terms)
    if table is not None:
        return table
    check_stop()
    parts = [block] if len(block.data) <= PIECE else list(pieces(block, quoted=io.rfc4180))
    if len(parts) == 1:  # also one long record
        return read_slowly(block, io, findings)
    return table_of(io.relation, [read_block(part, io, findings, check_terms=check_terms) for part in parts])


def read_slowly(block: Block, io: Io, findings: Findings) -> pa.Table:
    """The facts of a block, field by field."""
    return table_from_values(io.relation, read_records(block, io, findings))


def read_fast(data: bytes, io: Io, *, check_terms: bool = True) -> pa.Table | None:
    """The facts of a block, or None where it is wrong or would be misread."""
    relation = io.relation
    quotes = io.rfc4180 and b'"' in data
    if not io.delimiter.isascii() or io.delimiter in '\r\n"\0':
        return None
    if data.startswith(BOM):
        data = BOM + data  # Arrow takes one away, and here it belongs to a value
    if b"\r" in data and (data.endswith(b"\r") or data.count(b"\r") != data.count(b"\r\n")):
        return None
    filled_up = relation.arity > 1 and all(type_ in TEXTS for type_ in relation.types)  # empty lines
    if filled_up and (data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or b"\n\r\n" in data):
        return None
    if quotes and not _well_quoted(data, io.delimiter):
        return None
    fields = [f"f{position}" for position in range(relation.arity)]
    try:
        table = csv.read_csv(
            pa.BufferReader(_arrow_owned(data)),
            read_options=csv.ReadOptions(column_names=fields, block_size=_block_size(len(data))),
            parse_options=csv.ParseOptions(
                delimiter=io.delimiter,
                quote_char='"' if quotes else False,
                double_quote=quotes,
                escape_char=False,
                newlines_in_values=quotes,
                ignore_empty_lines=False,
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(fields, pa.string()),
                null_values=[],
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
        types = relation.types if check_terms else [Type.SYMBOL if t is Type.TERM else t for t in relation.types]
        columns = [convert(column, type_) for column, type_ in zip(table.columns, types, strict=True)]
    except pa.ArrowInvalid:
        return None
    if any(column is None for column in columns):
        return None
    return pa.Table.from_arrays(columns, schema=arrow_schema(relation))


def _block_size(length: int) -> int:
    """How much Arrow reads at a time: all of what may be one long record, which it does not read from several blocks."""
    return max(1 << 20, length // 8) if length <= 2 * BLOCK else min(length + 1, (1 << 31) - 1)


def _arrow_owned(data: bytes) -> Any:
    """A copy that Arrow's threads may let go of at any time: freeing Python's memory in them can abort the process.

    A thread that still holds Python's buffer when the interpreter ends would wait for a lock that is gone.
    """
    buffer = pa.allocate_buffer(len(data))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(data, np.uint8)
    return buffer


def _well_quoted(data: bytes, delimiter: str) -> bool:
    """Whether every quote opens or closes a field, or is doubled inside a quoted field.

    Quotes alternate between opening and closing; a doubled quote closes and opens again. So every first, third, …
    quote must follow the beginning of a field or a quote, and every other one be followed by the end or a quote.
    """
    text = np.frombuffer(b"\n" + data + b"\n", np.uint8)
    at = np.flatnonzero(text == ord('"'))
    if len(at) % 2:
        return False
    opens, closes = at[0::2], at[1::2]
    doubled = opens[1:] == closes[:-1] + 1
    before, after = text[opens - 1], text[closes + 1]
    begins = (before == ord(delimiter)) | (before == ord("\n"))
    ends = (after == ord(delimiter)) | (after == ord("\n")) | (after == ord("\r"))
    begins[1:] |= doubled
    ends[:-1] |= doubled
    return bool(begins.all() and ends.all())


def convert(column: Any, type_: Type) -> Any | None:
    """A column of texts as values; None, or an error from Arrow, where a text does not spell a value."""
    if type_ is Type.TERM:
        terms, wrong = checked_column(column)
        return None if wrong else terms
    if type_ in TEXTS:
        return column
    values = pc.cast(column, ARROW_TYPES[type_])
    if type_ is not Type.FLOAT:
        hexadecimal = any(_has_x(chunk) for chunk in column.chunks)
        return None if hexadecimal else values
    finite = pc.is_finite(values)
    if not pc.all(finite, min_count=0).as_py():
        odd = column.filter(pc.invert(finite))
        if not pc.all(pc.is_in(odd, pa.array(_INFINITIES))).as_py():
            return None
    return pc.add(values, 0.0)  # −0.0 becomes 0.0


def _has_x(chunk: Any) -> bool:
    """Whether a text of an Arrow array has an x, as hexadecimal numbers do."""
    data = chunk.buffers()[2]
    if data is None:
        return False
    text = np.frombuffer(data, np.uint8)
    return bool(((text | 0x20) == ord("x")).any())
