"""Relations as JSON lines: each line is one array, by position, or one object, by name.

The names in an object are exactly those of the columns; JSON gives them no order, so they never match by position.
JSON has no infinity: it is written as the string "inf" or "-inf", and also read as `Infinity`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import Kind, Span, ask_for, check_stop
from evermat.core import error_catalogue as errors
from evermat.io.blocks import BLOCK, Block, BlockReader
from evermat.io.error_report import RANGE_TEXTS, Findings, column_text, missing_columns, name_list, shown, term_details
from evermat.io.formats.csv_exact import lines_of
from evermat.io.formats.registry import InputFile
from evermat.io.schema import TEXTS, nullary, table_from_values
from evermat.io.term_columns import checked_column
from evermat.language import RANGES, Relation, TermFault, Type, Value, checked_terms

_BYTES_OF_VALUE = 72
_CONSTANTS = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}
_INFINITIES = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf}


class Pairs(dict[str, Any]):
    """A JSON object; `twice` is a name that it gives two values to."""

    twice: str | None = None


class _Constant(str):
    """`NaN`, `Infinity` or `-Infinity`, which are numbers for some writers of JSON."""

    __slots__ = ()


def _pairs(found: list[tuple[str, Any]]) -> Pairs:
    pairs = Pairs(found)
    if len(pairs) < len(found):
        seen: set[str] = set()
        for name, _ in found:
            pairs.twice = name if name in seen else pairs.twice
            seen.add(name)
    return pairs


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=lambda name: _Constant(_CONSTANTS[name]))


def block_reader(file: InputFile) -> BlockReader:
    """How a file is read: a fact in each line; only the last line may be empty."""
    return BlockReader(lambda block: read_block(block, file.io.relation, file.findings, check_terms=file.checks_terms))


def read_block(block: Block, relation: Relation, findings: Findings, *, check_terms: bool = True) -> pa.Table:
    """The facts of a block; errors are noted."""
    check_stop()
    if len(block.data) > BLOCK:  # a long record: its values take far more memory than their text
        ask_for(_BYTES_OF_VALUE * sum(map(block.data.count, (b",", b"[", b"{"))) + 6 * len(block.data))
    table = read_fast(block, relation, check_terms=check_terms)
    return read_slowly(block, relation, findings) if table is None else table


def read_slowly(block: Block, relation: Relation, findings: Findings) -> pa.Table:
    """The facts of a block, value by value; errors are noted and their lines left out."""
    rows = []
    for number, text, record in read_lines(block, findings):
        row = JsonFact(text, Span(0, len(text)), number, relation, findings).values(record)
        if row is not None:
            rows.append(row)
    if not relation.columns:
        return nullary(present=bool(rows))
    return table_from_values(relation, list(zip(*rows, strict=True)) or [()] * relation.arity)


def read_lines(block: Block, findings: Findings) -> Iterator[tuple[int, str, Any]]:
    """The lines of a block: their number, their text, and what they spell; lines that are not JSON are noted."""
    for number, text in lines_of(block, findings):
        try:
            record = _DECODER.decode(text)
        except json.JSONDecodeError as error:
            why = error.msg[0].lower() + error.msg[1:] if text.strip() else "nothing is in it"
            findings.at(errors.BAD_JSON, text, number, Span(error.pos, error.pos + 1), why=why)
        except (RecursionError, ValueError) as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else "a number in it is too long"
            findings.at(errors.BAD_JSON, text, number, Span(0, 1), why=why)
        else:
            yield number, text, record


def read_fast(block: Block, relation: Relation, *, check_terms: bool = True) -> pa.Table | None:
    """The facts of a block of ordinary lines, or None where one is not: checked by column, not by value."""
    expected = tuple(column.name for column in relation.columns)
    try:
        rows = [plain_row(record, expected) for record in plain_lines(block)]
    except NOT_PLAIN:
        return None
    return plain_table(rows, relation, check_terms=check_terms) if relation.columns else None


def plain_lines(block: Block) -> Iterator[Any]:
    """What the lines of a block spell; objects are lists of pairs. A line that is not ordinary raises an error."""
    scan: Callable[[str, int], tuple[Any, int]] = _PLAIN_DECODER.scan_once  # type: ignore[attr-defined]
    for line in block.data.replace(b"\r\n", b"\n").decode().removesuffix("\n").split("\n"):
        record, end = scan(line, 0)
        if end != len(line):
            raise ValueError(line)
        yield record


def plain_row(record: Any, expected: tuple[str, ...]) -> Sequence[Any]:
    """The values of an ordinary record in the order of the columns; any other raises an error."""
    if type(record) is not list or len(record) != len(expected):
        raise ValueError(record)
    if record and type(record[0]) is tuple:  # only objects, decoded as pairs, hold tuples
        found, values = zip(*record, strict=True)
        if found == expected:
            return values
        by_name = dict(record)
        return [by_name[name] for name in expected]
    return record


def plain_table(rows: Sequence[Sequence[Any]], relation: Relation, *, check_terms: bool = True) -> pa.Table | None:
    """The facts of ordinary rows, or None where a value does not have its column's type."""
    try:
        columns = list(zip(*rows, strict=True))
        for column, values in zip(relation.columns, columns, strict=True):
            if not _PLAIN_TYPES[column.type].issuperset(map(type, values)):
                return None
        table = table_from_values(relation, columns)
    except NOT_PLAIN:
        return None
    for position, column in enumerate(relation.columns):
        if column.type is Type.FLOAT:
            values = table.column(position)
            if not pc.all(pc.is_finite(values)).as_py():
                return None
            table = table.set_column(position, table.schema.field(position), pc.add(values, 0.0))
        elif column.type is Type.TERM and check_terms:
            terms, wrong = checked_column(table.column(position))
            if wrong is not None:
                return None
            table = table.set_column(position, table.schema.field(position), terms)
    return table


def _refuse(name: str) -> Any:
    raise ValueError(name)


# ValueError: also Arrow's and UTF-8's. StopIteration inside of a generator becomes a RuntimeError.
NOT_PLAIN = (ValueError, KeyError, RuntimeError, RecursionError, OverflowError)
_PLAIN_DECODER = json.JSONDecoder(object_pairs_hook=list, parse_constant=_refuse)
_PLAIN_TYPES: dict[Type, frozenset[type]] = {
    Type.SYMBOL: frozenset([str]),
    Type.TERM: frozenset([str]),
    Type.NUMBER: frozenset([int]),
    Type.UNSIGNED: frozenset([int]),
    Type.FLOAT: frozenset([int, float]),
}


class JsonFact:
    """An array or object that is to be a fact; it spans a line or a part of one."""

    def __init__(self, text: str, span: Span, number: int, relation: Relation, findings: Findings) -> None:
        self.text, self.span, self.number = text, span, number
        self.relation, self.findings = relation, findings

    def values(self, record: Any) -> list[Value] | None:
        """The values of the fact, or None where there are errors, which are noted."""
        if isinstance(record, Pairs):
            return self._object(record)
        if isinstance(record, list):
            return self._array(record)
        return self._wrong(errors.NOT_A_RECORD, self.span, found=kind_of(record))

    def _wrong(self, kind: Kind, span: Span, **details: Any) -> list[Value] | None:
        """Notes an error and returns None, the values of a line with errors."""
        self.findings.at(kind, self.text, self.number, span, relation=self.relation.name, **details)
        return None

    def _array(self, record: list[Any]) -> list[Value] | None:
        arity = self.relation.arity
        if len(record) == arity:
            return self._values(record, list(range(arity)))
        spans = [span for _, span in elements(self.text, self.span.start)]
        found, expected = (f"{count} column{'s' * (count != 1)}" for count in (len(record), arity))
        details = {"what": "this array", "found": found, "expected": expected}
        if len(record) < arity:
            end = self.text.rfind("]", 0, self.span.end)
            missing = missing_columns(self.relation, len(record))
            return self._wrong(errors.TOO_FEW_COLUMNS, Span(end, end + 1), **details, missing=missing)
        why = f"the last column is `{self.relation.columns[-1].name}`" if arity else "its fact is written `[]`"
        return self._wrong(errors.TOO_MANY_COLUMNS, Span(spans[arity].start, spans[-1].end), **details, why=why)

    def _object(self, record: Pairs) -> list[Value] | None:
        columns = [column.name for column in self.relation.columns]
        if record.twice is not None:
            span = [span for name, span in elements(self.text, self.span.start) if name == record.twice][-1]
            return self._wrong(errors.NOT_A_RECORD, span, found=f"an object with two values for `{record.twice}`")
        if record.keys() == {*columns}:
            return self._values([record[name] for name in columns], columns)
        for name, span in elements(self.text, self.span.start):
            if name not in columns:
                self._wrong(errors.ADDITIONAL_COLUMN, span, name=name, expected=name_list(columns))
        end = self.text.rfind("}", 0, self.span.end)
        for name in columns:
            if name not in record:
                found = name_list([*record])
                self._wrong(errors.MISSING_COLUMN, Span(end, end + 1), column=name, things="names", found=found)
        return None

    def _values(self, values: list[Any], keys: list[int] | list[str]) -> list[Value] | None:
        """The values in the types of the columns; `keys` tell where they stand in the line."""
        checked: list[Value] = []
        for position, value in enumerate(values):
            type_ = self.relation.columns[position].type
            result = _checked(value, type_)
            if type_ in TEXTS and not isinstance(result, Kind) and "\\u" in self.text and not _encodable(result):
                result = errors.JSON_TYPE
            if type_ is Type.TERM and isinstance(result, str):
                (term,) = checked_terms([result])
                if isinstance(term, TermFault):
                    span = dict(elements(self.text, self.span.start))[keys[position]]
                    details = term_details(self.relation, position, term)
                    self.findings.at(errors.NOT_A_TERM, self.text, self.number, span, term.in_a_file, **details)
                    continue
                result = term
            if isinstance(result, Kind):
                span = dict(elements(self.text, self.span.start))[keys[position]]
                self._wrong(result, span, **self._details(position, value, span))
            else:
                checked.append(result)
        return checked if len(checked) == len(values) else None

    def _details(self, position: int, value: object, span: Span) -> dict[str, object]:
        type_ = self.relation.columns[position].type
        details: dict[str, object] = {"where": column_text(self.relation, position), "type": type_}
        details["value"] = shown(self.text[span.start : span.end])
        details["found"] = kind_of(value)
        if type_ in TEXTS and isinstance(value, str) and not isinstance(value, _Constant):
            details["found"] = "text with half of a surrogate pair"
        elif type_ not in TEXTS:
            details["range"] = RANGE_TEXTS[type_]
        return details


def _encodable(value: Value) -> bool:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def kind_of(value: object) -> str:
    """What a value of JSON is, in words."""
    return _KINDS[type(value)]


_KINDS: dict[type, str] = {
    bool: "a truth value",
    float: "a float",
    _Constant: "a float",
    int: "a number",
    str: "a string",
    type(None): "null",
    list: "an array",
    Pairs: "an object",
}


def _checked(value: Any, type_: Type) -> Value | Kind:
    """A value in the type of its column, or what is wrong with it."""
    if value is None:
        return errors.NULL_VALUE
    if type_ is Type.FLOAT:
        return _float(value)
    if type_ in RANGES and type(value) is int:
        low, high = RANGES[type_]
        if low <= value <= high:
            return value
        return errors.NEGATIVE if type_ is Type.UNSIGNED and value < 0 else errors.DOES_NOT_FIT
    return value if type_ in TEXTS and type(value) is str else errors.JSON_TYPE


def _float(value: Any) -> float | Kind:
    if type(value) is float:
        return errors.DOES_NOT_FIT if math.isinf(value) else value + 0.0
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            return errors.DOES_NOT_FIT
    if isinstance(value, str):
        if isinstance(value, _Constant) and value == "nan":
            return errors.NAN_VALUE
        return _INFINITIES.get(value, errors.JSON_TYPE)
    return errors.JSON_TYPE


def elements(text: str, start: int = 0) -> list[tuple[Any, Span]]:
    """The spans of the values of an array, by position, or of an object, by name. The text is known to be right."""
    begin = _skip(text, start)
    is_object = text.startswith("{", begin)
    spans: list[tuple[Any, Span]] = []
    at = _skip(text, begin + 1)
    while at < len(text) and text[at] not in "]}":
        key: Any = len(spans)
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, at)
        _, end = _DECODER.raw_decode(text, at)
        spans.append((key, Span(at, end)))
        at = _skip(text, end)
    return spans


def _skip(text: str, at: int) -> int:
    """The offset of the next value or closing bracket."""
    while at < len(text) and text[at] in " \t\r\n,:":
        at += 1
    return at
