"""Writes what an update changed in every relation, as a file of changes that can be read again.

The order is that of the names of the relations, then what was deleted before what was inserted, so that who applies the
lines one after the other never meets a fact twice, then that of the facts as in every output (see `ordering`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from evermat.core import error_catalogue as errors
from evermat.core import watched_each
from evermat.io.atomic_outputs import STDOUT, Outputs
from evermat.io.changes.model import DELETE, INSERT, WrittenRows
from evermat.io.error_report import fail
from evermat.io.formats.registry import TEXT
from evermat.io.locate import file_ref
from evermat.io.schema import ARROW_TYPES
from evermat.io.sort import sorted_batches
from evermat.language import Column, Relation, Type

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
            assert TEXT.write_changes is not None
            TEXT.write_changes(sink, watched_each(_parts(change), every=1), STDOUT)
            out.print(sink.getvalue())
        else:
            ref = file_ref(target)
            write = ref.format.write_changes
            if write is None:
                rule = "changes are written as tab-separated text, JSON lines (.jsonl) and Parquet (.parquet)"
                raise fail(errors.RDF_OUTPUT, path=target, why=f"it would be {ref.format.title}", rule=rule)
            out.fill(ref, "changes", lambda sink: write(sink, watched_each(_parts(change), every=1), target))
        out.commit()


def _parts(change: Changed) -> Iterator[WrittenRows]:
    """What changed, in the order in which it is written."""
    for name in sorted({*change.inserted, *change.deleted}):
        for sign, facts in ((DELETE, change.deleted), (INSERT, change.inserted)):
            if name in facts:
                table = facts[name].to_arrow()
                if table.num_rows:
                    relation = Relation(name, tuple(_column(field) for field in table.schema))
                    yield WrittenRows(sign, relation, sorted_batches(table, relation))


def _column(field: pa.Field) -> Column:
    """A column of a relation, as far as its Arrow form tells: enough to sort and to spell it."""
    type_: Type = _TYPES[field.type]
    return Column(field.name, type_, str(type_))
