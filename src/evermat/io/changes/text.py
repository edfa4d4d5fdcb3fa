"""Changes as tab-separated text: blocks are taken apart by relation, and each part is read like a relation's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evermat.core import Span, count_of
from evermat.core import error_catalogue as errors
from evermat.io.blocks import PIECE, Block, pieces
from evermat.io.changes.model import SIGNS, ChangedRows, Grouped, WrittenRows, read_text_changes
from evermat.io.error_report import Findings, shown, wrong_count
from evermat.io.formats.csv_exact import NULLARY, Field, Record, note, plain_records, typed_values
from evermat.io.formats.csv_fast import read_fast
from evermat.io.formats.csv_writer import write_rows
from evermat.io.schema import nullary
from evermat.language import Io, Relation, RelationNames, suggestion

_TAB, _NEWLINE = b"\t", b"\n"
_DELIMITER = "\t"


def read_block(
    block: Block, relations: RelationNames, findings: Findings, *, check_terms: bool = True
) -> Iterator[ChangedRows]:
    """The changes of a block; errors are noted."""
    found = read_quickly(block.data, relations, check_terms=check_terms)
    if found is not None:
        yield from found
        return
    parts = [block] if len(block.data) <= PIECE else list(pieces(block))
    if len(parts) == 1:  # also one long line
        yield from read_slowly(block, relations, findings)
        return
    for part in parts:
        yield from read_block(part, relations, findings, check_terms=check_terms)


read_changed_text = partial(read_text_changes, read=read_block)


def read_quickly(data: bytes, relations: RelationNames, *, check_terms: bool = True) -> list[ChangedRows] | None:
    """The changes of a block, or None where something is wrong or unusual."""
    split = _split(data if data.endswith(_NEWLINE) else data + _NEWLINE)
    if split is None:
        return None
    insert, heads, rests = split
    encoded = heads.dictionary_encode()
    number: dict[str, int] = {}  # the same relation has two heads if not all its lines have values
    numbers = np.array(
        [number.setdefault(relations.full(_name(head)), len(number)) for head in encoded.dictionary.to_pylist()]
    )
    codes = numbers[encoded.indices.to_numpy()]
    ends = np.cumsum(np.bincount(codes)).tolist()
    if len(number) > 1:
        order = np.argsort(codes, kind="stable")
        rests, insert = rests.take(pa.array(order)), insert[order]
    offsets = np.frombuffer(rests.buffers()[1], np.int64)[rests.offset : rests.offset + len(rests) + 1]
    text = rests.buffers()[2]
    found = []
    for name, begin, end in zip(number, [0, *ends], ends, strict=False):
        relation = relations.get(name)
        if relation is None:
            return None
        lines = text[int(offsets[begin]) : int(offsets[end])].to_pybytes()
        table = _read_values(lines, relation, end - begin, check_terms=check_terms)
        if table is None:
            return None
        found.append(ChangedRows(relation, table, insert[begin:end]))
    return found


def _split(data: bytes) -> tuple[npt.NDArray[np.bool_], pa.Array, pa.Array] | None:
    """The sign, the relation and the values of each line, the latter two with what ends them; None if that is not so.

    A line without values has its end after the relation, and nothing for the values.
    """
    text = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(text == ord(_NEWLINE)) + 1
    starts = np.concatenate([[0], ends[:-1]])
    if (ends - starts < 3).any():
        return None
    sign = text[starts]
    insert = sign == ord("+")
    if not ((insert | (sign == ord("-"))) & (text[starts + 1] == ord(_TAB))).all():
        return None
    tabs = np.append(np.flatnonzero(text == ord(_TAB)), len(text))
    second = tabs[np.minimum(np.searchsorted(tabs, starts + 2), len(tabs) - 1)] + 1
    cuts = np.empty(3 * len(starts) + 1, np.int64)
    cuts[0:-1:3], cuts[1::3], cuts[2::3], cuts[-1] = starts, starts + 2, np.minimum(second, ends), len(text)
    parts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(cuts) - 1, [None, pa.py_buffer(cuts), pa.py_buffer(data)]
    )
    every = np.arange(0, len(cuts) - 1, 3)
    return insert, parts.take(pa.array(every + 1)), parts.take(pa.array(every + 2))


def _name(head: bytes) -> str:
    """The name of a relation without the tab, or the end of the line, behind it."""
    plain = head.removesuffix(_TAB) if head.endswith(_TAB) else head.removesuffix(_NEWLINE).removesuffix(b"\r")
    return plain.decode(errors="replace")


def _read_values(lines: bytes, relation: Relation, count: int, *, check_terms: bool) -> pa.Table | None:
    """The facts of a relation, whose values stand in lines; None where a line has none, or something is unusual."""
    if not relation.columns:
        right = {*lines.replace(b"\r\n", b"\n").split(b"\n")} <= {b"", NULLARY.encode()}
        return nullary(present=True) if right else None
    table = read_fast(lines, Io(relation), check_terms=check_terms) if lines else None
    return table if table is not None and table.num_rows == count else None


def read_slowly(block: Block, relations: RelationNames, findings: Findings) -> Iterator[ChangedRows]:
    """The changes of a block, field by field; lines with errors are noted and left out."""
    found = Grouped()
    for record in plain_records(block, _DELIMITER, findings):
        relation = _relation(record, relations, findings)
        if relation is None:
            continue
        rest = record._replace(fields=_value_fields(record, relation))
        if len(rest.fields) != relation.arity:
            _wrong_count(rest, relation, findings)
            continue
        values = typed_values(rest, relation, findings)
        if values is not None:
            found.add(relation, values, insert=SIGNS[record.fields[0].text])
    return found.facts(relations)


def _relation(record: Record, relations: RelationNames, findings: Findings) -> Relation | None:
    """The relation of a change, or None, noted, where that or the sign is wrong."""
    sign, *rest = record.fields
    if sign.text not in SIGNS:
        value = shown(sign.text) if sign.text else "nothing" if record.text else "an empty line"
        note(record, sign.span, errors.CHANGE_SIGN, findings, value=value)
        return None
    name = rest[0] if rest else Field("", Span(sign.span.end, sign.span.end))
    if not name.text:
        note(record, name.span, errors.CHANGE_RELATION, findings)
        return None
    relation = relations.get(name.text)
    if relation is None:
        hint = suggestion(name.text, relations)
        note(record, name.span, errors.NO_SUCH_RELATION, findings, help=hint, name=shown(name.text)[1:-1])
    return relation


def _value_fields(record: Record, relation: Relation) -> list[Field]:
    """The fields of a change that are values: those behind sign and relation, but not what stands for no value."""
    values = record.fields[2:]
    stand_in = not relation.columns and len(values) == 1 and values[0].text in ("", NULLARY)
    return [] if stand_in else values


def _wrong_count(record: Record, relation: Relation, findings: Findings) -> None:
    fields, end = record.fields, len(record.text)
    kind, details = wrong_count(relation, len(fields), "this change", count_of(len(fields), "value"))
    few = len(fields) < relation.arity
    span = Span(end, end + 1) if few else Span(fields[relation.arity].span.start, fields[-1].span.end)
    note(record, span, kind, findings, **details)


def write_changed_text(sink: BinaryIO, parts: Iterable[WrittenRows], path: Path) -> None:
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
