"""Changes as JSON lines: each line is an object with `op`, `relation` and `values`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from evermat.core import Kind, Span, did_you_mean
from evermat.core import error_catalogue as errors
from evermat.io.blocks import Block
from evermat.io.changes.model import SIGNS, ChangedRows, Grouped, WrittenRows, read_text_changes
from evermat.io.error_report import Findings, shown
from evermat.io.formats.jsonl_reader import (
    NOT_PLAIN,
    JsonFact,
    Pairs,
    elements,
    kind_of,
    plain_lines,
    plain_row,
    plain_table,
    read_lines,
)
from evermat.io.formats.jsonl_writer import SPELL
from evermat.io.schema import nullary
from evermat.language import Relation, RelationNames, suggestion

NAMES = ("op", "relation", "values")


def read_block(
    block: Block, relations: RelationNames, findings: Findings, *, check_terms: bool = True
) -> Iterator[ChangedRows]:
    """The changes of a block; errors are noted."""
    found = read_quickly(block, relations, check_terms=check_terms)
    yield from read_slowly(block, relations, findings) if found is None else found


read_changed_jsonl = partial(read_text_changes, read=read_block)


def read_quickly(block: Block, relations: RelationNames, *, check_terms: bool = True) -> list[ChangedRows] | None:
    """The changes of a block of ordinary lines, or None where one is not: checked by column, not by value."""
    rows: dict[str, list[Sequence[Any]]] = {name: [] for name in relations}
    signs: dict[str, list[bool]] = {name: [] for name in relations}
    columns = {name: tuple(column.name for column in relation.columns) for name, relation in relations.items()}
    try:
        for record in plain_lines(block):
            (first, sign), (second, name), (third, values) = record
            if (first, second, third) != NAMES:
                by_name = dict(record)
                sign, name, values = by_name["op"], by_name["relation"], by_name["values"]
            if name not in rows:
                name = relations.full(name)
            signs[name].append(SIGNS[sign])
            rows[name].append(plain_row(values, columns[name]))
    except (*NOT_PLAIN, TypeError):  # not a name, a pair or a list
        return None
    found = []
    for name, facts in rows.items():
        if facts:
            relation = relations[name]
            table = plain_table(facts, relation, check_terms=check_terms) if relation.columns else nullary(present=True)
            if table is None:
                return None
            found.append(ChangedRows(relation, table, np.array(signs[name], np.bool_)))
    return found


def read_slowly(block: Block, relations: RelationNames, findings: Findings) -> Iterator[ChangedRows]:
    """The changes of a block, value by value; errors are noted and their lines left out."""
    found = Grouped()
    for number, text, record in read_lines(block, findings):
        line = _Line(text, number, findings)
        if not line.has_shape(record):
            continue
        relation = line.relation(record, relations)
        if relation is not None:
            fact = JsonFact(text, line.spans["values"], number, relation, findings)
            values = fact.values(record["values"])
            if values is not None:
                found.add(relation, values, insert=SIGNS[record["op"]])
    return found.facts(relations)


class _Line:
    """One line and what is wrong with it."""

    def __init__(self, text: str, number: int, findings: Findings) -> None:
        self.text, self.number, self._findings = text, number, findings
        self.spans: dict[str, Span] = {}

    def has_shape(self, record: Any) -> bool:
        """Whether a line is an object with the names that a change has; if not, that is noted."""
        if not isinstance(record, Pairs):
            return self._wrong(errors.CHANGE_RECORD, Span(0, len(self.text)), found=kind_of(record))
        self.spans = dict(elements(self.text))
        if record.twice is not None:
            found = f"an object with two values for `{record.twice}`"
            return self._wrong(errors.CHANGE_RECORD, self.spans[record.twice], found=found)
        end = self.text.rstrip().rfind("}")
        strange = [name for name in record if name not in NAMES]
        missing = [name for name in NAMES if name not in record]
        for name in strange:
            hint = did_you_mean(name, missing)
            self._wrong(
                errors.CHANGE_RECORD, self.spans[name], help=hint, found=f"an object with the name {shown(name)}"
            )
        for name in missing if not strange else ():
            self._wrong(errors.CHANGE_RECORD, Span(end, end + 1), found=f"an object without `{name}`")
        if strange or missing:
            return False
        values = record["values"]
        if not isinstance(values, list | Pairs):
            found = f"an object whose `values` is {kind_of(values)}"
            return self._wrong(errors.CHANGE_RECORD, self.spans["values"], found=found)
        return True

    def relation(self, record: Pairs, relations: RelationNames) -> Relation | None:
        """The relation of a change, or None, noted, where that or the sign is wrong."""
        sign, name, at, span = record["op"], record["relation"], self.spans["op"], self.spans["relation"]
        if not (isinstance(sign, str) and sign in SIGNS):
            self._wrong(errors.CHANGE_SIGN, at, value=shown(self.text[at.start : at.end]))
        elif not isinstance(name, str):
            self._wrong(errors.CHANGE_RECORD, span, found=f"an object whose `relation` is {kind_of(name)}")
        elif name in relations:
            return relations[name]
        else:
            self._wrong(errors.NO_SUCH_RELATION, span, suggestion(name, relations), name=shown(name)[1:-1])
        return None

    def _wrong(self, kind: Kind, span: Span, help: str = "", **details: object) -> bool:  # noqa: A002
        """Notes an error and returns False."""
        self._findings.at(kind, self.text, self.number, span, help, **details)
        return False


def write_changed_jsonl(sink: BinaryIO, parts: Iterable[WrittenRows], _path: Path) -> None:
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
