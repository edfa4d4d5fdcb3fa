"""Reads delimiter-separated text one field at a time: slow, and exact about the position of every error.

This is the meaning of a text file; `text` has a faster way that must agree with it:

- A record ends with a newline or with the text; one carriage return before that belongs to the end, any other one to
  the value. Nothing else ends a record.
- Fields are separated by the delimiter and taken as they are: blanks count, nothing is quoted, nothing means NULL.
- With rfc4180, a field that begins with a quote ends with one and may hold delimiters, newlines and doubled quotes;
  a quote may stand nowhere else.
- An empty line is a record with one empty field: right for a relation with one symbol, too few columns for others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from evermat.core import Kind, Span, count_of
from evermat.core import error_catalogue as errors
from evermat.io.blocks import Block
from evermat.io.error_report import (
    RANGE_TEXTS,
    SPELLING_TEXTS,
    Findings,
    column_text,
    shown,
    term_details,
    wrong_count,
)
from evermat.io.schema import TEXTS
from evermat.language import (
    RANGES,
    Io,
    Relation,
    TermFault,
    Type,
    Value,
    checked_terms,
    is_held,
    parse_float,
    parse_integer,
)

NULLARY = "()"


class Field(NamedTuple):
    """A value as text and the characters of the record that spell it."""

    text: str
    span: Span


class Record(NamedTuple):
    """The fields of a record and the text, from the beginning of its first line, in which their spans count."""

    number: int
    text: str
    fields: list[Field]


def read_records(block: Block, io: Io, findings: Findings) -> list[list[Value]]:
    """The values of a block, one list for each column; records with errors are noted and left out."""
    relation = io.relation
    columns: list[list[Value]] = [[] for _ in relation.columns]
    records = _quoted(block, io, findings) if io.rfc4180 else plain_records(block, io.delimiter, findings)
    for record in records:
        values = typed_values(record, relation, findings)
        if values is not None:
            for column, value in zip(columns, values, strict=True):
                column.append(value)
    return columns


def count_nullary(block: Block, relation: Relation, findings: Findings) -> int:
    """How often the one fact of a nullary relation stands in a block: as `()`, or as an empty line."""
    found = 0
    for line_number, line in lines_of(block, findings):
        if line in ("", NULLARY):
            found += 1
        else:
            why = "the fact of a relation without columns is written `()`"
            kind, details = wrong_count(relation, 1, "this line", "1 column", why)
            findings.at(kind, line, line_number, Span(0, len(line)), **details)
    return found


def typed_values(record: Record, relation: Relation, findings: Findings) -> list[Value] | None:
    """The values of a record, or None where something is wrong with it."""
    if len(record.fields) != relation.arity:
        _wrong_count(record, relation, findings)
        return None
    values: list[Value] = []
    for position, (column, field) in enumerate(zip(relation.columns, record.fields, strict=True)):
        value = typed_text(field.text, column.type) if column.type in TEXTS else number(field.text, column.type)
        if isinstance(value, TermFault):
            note(
                record,
                field.span,
                errors.NOT_A_TERM,
                findings,
                value.in_a_file,
                **term_details(relation, position, value),
            )
        elif isinstance(value, Kind):
            note(record, field.span, value, findings, **number_details(relation, position, field.text, value))
        else:
            values.append(value)
    return values if len(values) == relation.arity else None


def typed_text(value: str, type_: Type) -> str | TermFault:
    """A text as a value of its column, or why it is not the term that it should be."""
    if type_ is not Type.TERM or is_held(value):
        return value
    return checked_terms([value])[0]


def integer(text: str, type_: Type) -> int | Kind:
    """The integer that a field spells, or what is wrong with it."""
    value = parse_integer(text) if text == text.strip() else None
    if value is None:
        return errors.NOT_A_NUMBER
    if type_ is Type.UNSIGNED and value < 0:
        return errors.NEGATIVE
    low, high = RANGES[type_]
    return value if low <= value <= high else errors.DOES_NOT_FIT


def floating(text: str) -> float | Kind:
    """The float that a field spells, or what is wrong with it: NaN, blanks, or too large to be anything but infinity."""
    if text.lower().lstrip("+-") == "nan":
        return errors.NAN_VALUE
    value = None if text != text.strip() else parse_float(text)
    if value is None:
        return errors.NOT_A_NUMBER
    if math.isinf(value) and "inf" not in text:
        return errors.DOES_NOT_FIT
    return value + 0.0  # −0.0 becomes 0.0


def number(text: str, type_: Type) -> float | Kind:
    """The number of a numeric type that a field spells, or what is wrong with it."""
    return floating(text) if type_ is Type.FLOAT else integer(text, type_)


def number_details(relation: Relation, position: int, text: str, kind: Kind) -> dict[str, Any]:
    """What the message about a bad number says."""
    type_ = relation.columns[position].type
    why = "the field is empty" if kind is errors.NOT_A_NUMBER and not text else SPELLING_TEXTS[type_]
    where = column_text(relation, position)
    return {"where": where, "value": shown(text), "type": type_, "why": why, "range": RANGE_TEXTS[type_]}


def _wrong_count(record: Record, relation: Relation, findings: Findings) -> None:
    fields, end = record.fields, record.fields[-1].span.end
    empty = len(fields) == 1 and not record.text.rstrip("\r\n")
    found = "nothing in it" if empty else count_of(len(fields), "column")
    kind, details = wrong_count(relation, 0 if empty else len(fields), "this line", found)
    few = len(fields) < relation.arity
    note(record, Span(end, end + 1) if few else Span(fields[relation.arity].span.start, end), kind, findings, **details)


def note(record: Record, span: Span, kind: Kind, findings: Findings, help: str = "", **details: object) -> None:  # noqa: A002
    """Notes an error in the line of the record in which the span begins."""
    begin = record.text.rfind("\n", 0, span.start) + 1
    stop = record.text.find("\n", span.start)
    line = record.text[begin : len(record.text) if stop < 0 else stop].removesuffix("\r")
    line_number = record.number + record.text.count("\n", 0, begin)
    within = Span(span.start - begin, max(span.end, span.start + 1) - begin)
    findings.at(kind, line, line_number, within, help, **details)


def lines_of(block: Block, findings: Findings) -> Iterator[tuple[int, str]]:
    """The numbered lines of a block without their ends; lines that are not UTF-8 are noted and left out."""
    lines = block.data.split(b"\n")
    if not lines[-1] and len(lines) > 1:
        lines.pop()
    for line_number, line in enumerate(lines, block.first_line):
        text = decode(line.removesuffix(b"\r"), line_number, findings)
        if text is not None:
            yield line_number, text


def decode(line: bytes, number: int, findings: Findings) -> str | None:
    """The text of a line, or None, noted, where it is not valid UTF-8."""
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        before = line[: error.start].decode()
        span = Span(len(before), len(before) + 1)
        findings.at(errors.DATA_NOT_UTF8, line.decode(errors="replace"), number, span, byte=error.start + 1)
        return None


def plain_records(block: Block, delimiter: str, findings: Findings) -> Iterator[Record]:
    """The records of a block in which nothing is quoted; lines that are not UTF-8 are noted and left out."""
    for line_number, line in lines_of(block, findings):
        fields = []
        start = 0
        for text in line.split(delimiter):
            fields.append(Field(text, Span(start, start + len(text))))
            start += len(text) + len(delimiter)
        yield Record(line_number, line, fields)


_QUOTED_FIELD = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"')  # never goes back: that would take memory for each step


def _quoted(block: Block, io: Io, findings: Findings) -> Iterator[Record]:
    """The records of a block with quoted fields; after a quote that is wrong, reading goes on in the next line."""
    text = block.data.decode(errors="surrogateescape")  # what is not UTF-8 becomes a lone surrogate
    bare = re.compile(rf'[^"\n{re.escape(io.delimiter)}]*')
    at, line_number = 0, block.first_line
    while at < len(text):
        begin = at
        fields: list[Field] = []
        bad = False
        while True:
            field, at, wrong = _field(text, at, bare, io.delimiter)
            if wrong is not None:
                record = Record(line_number, text[begin : _line_end(text, max(at, field.span.end))], fields)
                span = Span(field.span.start - begin, field.span.end - begin)
                kind, what = wrong
                column = min(len(fields), io.relation.arity - 1)
                note(record, span, kind, findings, where=column_text(io.relation, column), what=what)
                at = len(text) if kind is errors.OPEN_QUOTE else _line_end(text, field.span.end)
                bad = True
            else:
                fields.append(Field(field.text, Span(field.span.start - begin, field.span.end - begin)))
            if bad or not text.startswith(io.delimiter, at):
                break
            at += len(io.delimiter)
        end = at
        at += 2 if text.startswith("\r\n", at) else 1
        if not bad and _is_utf8(text[begin:end], line_number, findings):
            yield Record(line_number, text[begin:end], fields)
        line_number += text.count("\n", begin, at)


def _is_utf8(record: str, number: int, findings: Findings) -> bool:
    """Whether a record was valid UTF-8; if not, its lines that are not are noted."""
    try:
        record.encode()
    except UnicodeEncodeError:
        for line_number, line in enumerate(record.encode(errors="surrogateescape").split(b"\n"), number):
            decode(line.removesuffix(b"\r"), line_number, findings)
        return False
    return True


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _field(text: str, at: int, bare: re.Pattern[str], delimiter: str) -> tuple[Field, int, tuple[Kind, str] | None]:
    """The field that begins at an offset, the offset after it, and what is wrong with it."""
    if text.startswith('"', at):
        match = _QUOTED_FIELD.match(text, at)
        if match is None:
            return Field("", Span(at, at + 1)), at, (errors.OPEN_QUOTE, "")
        end = match.end()
        after = text[end : end + 2]
        if after[:1] in ("", "\n", delimiter) or after == "\r\n" or (after == "\r" and end + 1 == len(text)):
            return Field(match.group(1).replace('""', '"'), Span(at, end)), end, None
        return Field("", Span(end, end + 1)), end, (errors.STRAY_QUOTE, "there is text after the closing quote")
    match = bare.match(text, at)
    assert match is not None
    end = match.end()
    if text.startswith('"', end):
        return Field("", Span(end, end + 1)), end, (errors.STRAY_QUOTE, "there is a quote inside an unquoted value")
    stop = end
    if text.startswith("\n", end) or end == len(text):
        stop -= text.endswith("\r", at, end)
    return Field(text[at:stop], Span(at, stop)), end, None
