"""Writes relations as JSON lines: one object for each fact; see `jsonl_reader`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from evermat.language import Io, Type, format_float


def write_jsonl(sink: BinaryIO, io: Io, batches: Iterable[pa.RecordBatch], _path: Path) -> None:
    """Writes one object, keyed by the names of the columns, for each fact."""
    relation = io.relation
    keys = [f"{encode_basestring(column.name)}: " for column in relation.columns]
    for batch in batches:
        if not relation.columns:
            sink.write(b"{}\n" * batch.num_rows)
            continue
        spelled = [
            [key + SPELL[column.type](value) for value in array.to_pylist()]
            for key, column, array in zip(keys, relation.columns, batch.columns, strict=True)
        ]
        sink.write("".join(f"{{{', '.join(row)}}}\n" for row in zip(*spelled, strict=True)).encode())


def _spell_float(value: float) -> str:
    text = format_float(value)
    return f'"{text}"' if math.isinf(value) else text


SPELL: dict[Type, Callable[[Any], str]] = {
    Type.SYMBOL: encode_basestring,
    Type.TERM: encode_basestring,
    Type.NUMBER: str,
    Type.UNSIGNED: str,
    Type.FLOAT: _spell_float,
}
