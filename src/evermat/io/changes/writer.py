"""Writes what an update changed in every relation, as a file of changes that can be read again.

The order is that of the names of the relations, then what was deleted before what was inserted, so that who applies the
lines one after the other never meets a fact twice, then that of the facts as in every output (see `ordering`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from json.encoder import encode_basestring
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from evermat.core.error_catalogue import RDF_OUTPUT
from evermat.io.atomic_outputs import STDOUT, Outputs
from evermat.io.changes.model import DELETE, INSERT
from evermat.io.error_report import fail
from evermat.io.formats.csv_writer import spell, write_rows
from evermat.io.formats.jsonl_writer import SPELL
from evermat.io.locate import FileRef, Format, file_ref
from evermat.io.schema import ARROW_TYPES
from evermat.io.sort import sorted_batches
from evermat.language.builtins import Type
from evermat.language.model import Column, Io, Relation

PARQUET = pa.schema(
    [
        pa.field("op", pa.string(), nullable=False),
        pa.field("relation", pa.string(), nullable=False),
        pa.field("values", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
    ]
)
_TYPES = {arrow: type_ for type_, arrow in reversed(ARROW_TYPES.items())}  # a string is taken for a symbol


class _Facts(Protocol):
    def to_arrow(self) -> pa.Table:
        """The facts as a table with the relation's columns."""


class Changed(Protocol):
    """What an update inserted and deleted, by relation."""

    @property
    def inserted(self) -> Mapping[str, _Facts]:
        """Facts that are new."""

    @property
    def deleted(self) -> Mapping[str, _Facts]:
        """Facts that hold no more."""


class _Part(NamedTuple):
    """The facts of one relation that came, or went, sorted."""

    sign: str
    relation: Relation
    batches: Iterable[pa.RecordBatch]


def write_changes(change: Changed, target: Path) -> None:
    """Writes a change to a file, whole or not at all, or with `-` to standard output.

    The file's name says the format: JSON lines (`.jsonl`), Parquet (`.parquet`), else tab-separated text; text and JSON
    lines may be compressed (`.gz`).

    Raises:
        DataError: a symbol cannot be written as plain text.
        ResourceError: the file cannot be written.
    """
    with Outputs() as out:
        if str(target) in ("-", "/dev/stdout"):
            sink = BytesIO()
            _write_text(sink, _parts(change), STDOUT)
            out.print(sink.getvalue())
        else:
            ref = file_ref(target)
            if ref.format is Format.RDF:
                rule = "changes are written as tab-separated text, JSON lines (.jsonl) and Parquet (.parquet)"
                raise fail(RDF_OUTPUT, path=target, why="it would be an RDF file", rule=rule)
            out.fill(ref, "changes", lambda sink: _write(sink, ref, _parts(change)))
        out.commit()


def _parts(change: Changed) -> Iterator[_Part]:
    """What changed, in the order in which it is written."""
    for name in sorted({*change.inserted, *change.deleted}):
        for sign, facts in ((DELETE, change.deleted), (INSERT, change.inserted)):
            if name in facts:
                table = facts[name].to_arrow()
                if table.num_rows:
                    relation = Relation(name, tuple(_column(field) for field in table.schema))
                    yield _Part(sign, relation, sorted_batches(table, relation))


def _column(field: pa.Field) -> Column:
    """A column of a relation, as far as its Arrow form tells: enough to sort and to spell it."""
    type_: Type = _TYPES[field.type]
    return Column(field.name, type_, str(type_))


def _write(sink: BinaryIO, ref: FileRef, parts: Iterable[_Part]) -> None:
    if ref.format is Format.PARQUET:
        _write_parquet(sink, parts)
    elif ref.format is Format.JSONL:
        _write_jsonl(sink, parts)
    else:
        _write_text(sink, parts, str(ref.path))


def _write_text(sink: BinaryIO, parts: Iterable[_Part], path: str) -> None:
    """Lines of sign, relation and values; those of a relation without columns have no values."""
    for sign, relation, batches in parts:
        begin = f"{sign}\t{relation.name}".encode()
        io = Io(relation, headers=True)  # no line is the first: none needs a mark before it
        for batch in batches:
            if not relation.columns:
                sink.write((begin + b"\n") * batch.num_rows)
                continue
            lines = BytesIO()
            write_rows(lines, io, [batch], path)
            values = lines.getvalue()  # every line ends with the only newline in it: symbols with one are refused
            sink.write(begin + b"\t" + values[:-1].replace(b"\n", b"\n" + begin + b"\t") + b"\n")


def _write_jsonl(sink: BinaryIO, parts: Iterable[_Part]) -> None:
    """Objects with `op`, `relation` and `values`."""
    for sign, relation, batches in parts:
        begin = f'{{"op": "{sign}", "relation": {encode_basestring(relation.name)}, "values": ['
        for batch in batches:
            if not relation.columns:
                sink.write(f"{begin}]}}\n".encode() * batch.num_rows)
                continue
            spelled = [
                map(SPELL[type_], array.to_pylist()) for type_, array in zip(relation.types, batch.columns, strict=True)
            ]
            sink.write("".join(f"{begin}{', '.join(row)}]}}\n" for row in zip(*spelled, strict=True)).encode())


def _write_parquet(sink: BinaryIO, parts: Iterable[_Part]) -> None:
    """Columns `op`, `relation` and `values`: the values are spelled as in text, for one schema has to suit all."""
    with pq.ParquetWriter(sink, PARQUET) as writer:
        for sign, relation, batches in parts:
            for batch in batches:
                columns = [spell(a, t).to_pylist() for a, t in zip(batch.columns, relation.types, strict=False)]
                rows = list(zip(*columns, strict=True)) if relation.columns else [()] * batch.num_rows
                arrays = [
                    pa.array([sign] * len(rows), pa.string()),
                    pa.array([relation.name] * len(rows), pa.string()),
                    pa.array(rows, PARQUET.field("values").type),
                ]
                writer.write_table(pa.Table.from_arrays(arrays, schema=PARQUET))
