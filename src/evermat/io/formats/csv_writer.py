"""Writes delimiter-separated text.

Plain text cannot hold every symbol: a delimiter or the end of a line inside a value would read back as something
else, so it is refused. With rfc4180 such values are quoted.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from evermat.core import error_catalogue as errors
from evermat.io.error_report import fail
from evermat.io.formats.csv_exact import NULLARY
from evermat.io.schema import TEXTS, bytes_of
from evermat.language import Io, Type, format_float, quote

_BOM = "\ufeff"
_INTEGERS = Type.NUMBER | Type.UNSIGNED
_EXACT = 1e16  # below it, repr spells a whole float with all its digits


def write_text(sink: BinaryIO, io: Io, batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """Writes the facts, one in each line, after a line with the names of the columns if the `.output` asks for it."""
    relation = io.relation
    if io.headers:
        sink.write((io.delimiter.join(_header(column.name, io) for column in relation.columns) + "\n").encode())
    write_rows(sink, io, batches, path)


def write_rows(sink: BinaryIO, io: Io, batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """Writes only the lines of the facts."""
    plain_numbers = all(type_ in _INTEGERS for type_ in io.relation.types)
    fast = plain_numbers and io.delimiter.isascii() and io.delimiter not in '0123456789-\r\n"\0'
    options = csv.WriteOptions(include_header=False, delimiter=io.delimiter if fast else ",", quoting_style="none")
    first = not io.headers
    for batch in batches:
        if not io.relation.columns:
            sink.write(f"{NULLARY}\n".encode() * batch.num_rows)
        elif fast:
            csv.write_csv(batch, sink, options)
        else:
            text = _lines(batch, io, path)
            if first and text.startswith(_BOM.encode()):
                sink.write(_BOM.encode())  # a reader takes the first one for a mark
            sink.write(text)
        first = False


def _header(name: str, io: Io) -> str:
    return '"' + name.replace('"', '""') + '"' if io.rfc4180 and (io.delimiter in name or '"' in name) else name


def _lines(batch: pa.RecordBatch, io: Io, path: Path) -> bytes:
    """The lines of a batch; a value that would break them is an error."""
    fields = [spell(array, type_) for array, type_ in zip(batch.columns, io.relation.types, strict=True)]
    if io.rfc4180:
        fields = [_quoted(array, io.delimiter) for array in fields]
    lines = pc.binary_join_element_wise(fields[-1], _text(""), _text("\n"))
    if len(fields) > 1:
        lines = pc.binary_join_element_wise(*fields[:-1], lines, _text(io.delimiter))
    text = bytes_of(lines)
    if not io.rfc4180:
        delimiters = text.count(io.delimiter.encode())
        if b"\r" in text or text.count(b"\n") != len(batch) or delimiters != len(batch) * (len(fields) - 1):
            _refuse(fields, io, path)
    return text


def spell(array: Any, type_: Type) -> Any:
    """A column as texts."""
    if type_ in TEXTS or type_ in _INTEGERS:
        return pc.cast(array, pa.large_string())
    values = array.to_numpy(zero_copy_only=False)
    if bool((np.abs(values) < _EXACT).all() and (np.trunc(values) == values).all()):
        return pc.cast(pc.cast(array, pa.int64()), pa.large_string())
    return pa.array([format_float(value) for value in values.tolist()], pa.large_string())


def _quoted(array: Any, delimiter: str) -> Any:
    """The texts with those quoted that need it: also one that looks like the mark at the beginning of a file."""
    pattern = '["\\r\\n' + _BOM + _escaped(delimiter) + "]"
    needed = pc.match_substring_regex(array, pattern)
    if not pc.any(needed, min_count=0).as_py():
        return array
    doubled = pc.replace_substring(array, '"', '""')
    return pc.if_else(needed, pc.binary_join_element_wise(_text('"'), doubled, _text('"'), _text("")), array)


def _text(value: str) -> Any:
    return pa.scalar(value, pa.large_string())


def _escaped(delimiter: str) -> str:
    return f"\\x{{{ord(delimiter):x}}}"


def _refuse(fields: list[Any], io: Io, path: Path) -> None:
    """Raises the error about the first value that plain text cannot hold."""
    for position, array in enumerate(fields):
        at = pc.index(pc.match_substring_regex(array, f"[\\r\\n{_escaped(io.delimiter)}]"), True).as_py()
        if at >= 0:
            value = array[at].as_py()
            delimiter = "a tab" if io.delimiter == "\t" else f"the delimiter `{io.delimiter}`"
            what = delimiter if io.delimiter in value else "a newline" if "\n" in value else "a carriage return"
            short = value if len(value) <= 40 else value[:40] + "…"
            place: dict[str, Any] = {"position": position + 1, "column": io.relation.columns[position].name}
            about = {"value": f"`{quote(short)}`", "relation": io.relation.name, "what": what}
            raise fail(errors.NOT_PLAIN_TEXT, path=path, **place, **about)
