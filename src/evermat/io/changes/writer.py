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
from evermat.io.locate import file_ref
from evermat.io.schema import ARROW_TYPES
from evermat.io.sort import sorted_batches
from evermat.language import Column, Relation

_TYPES = {arrow: type_ for type_, arrow in reversed(ARROW_TYPES.items())}  # a string is taken for a symbol


class _Facts(Protocol):
    def to_arrow(self) -> pa.Table: ...


class Changed(Protocol):
    """What an update inserted and deleted, by relation."""

    @property
    def inserted(self) -> Mapping[str, _Facts]: ...
    @property
    def deleted(self) -> Mapping[str, _Facts]: ...


def write_changes(change: Changed, target: Path) -> None:
    """Writes a change to a file, whole or not at all, or with `-` to standard output.

    The file's name says the format: JSON lines (`.jsonl`), Parquet (`.parquet`), else tab-separated text; text and JSON
    lines may be compressed (`.gz`).

    Raises:
        DataError: a symbol cannot be written as plain text.
        ResourceError: the file cannot be written.
    """
    ref = file_ref(target)
    write = ref.format.write_changes
    if write is None:
        rule = "changes are written as tab-separated text, JSON lines (.jsonl) and Parquet (.parquet)"
        raise fail(errors.RDF_OUTPUT, path=target, why=f"it would be {ref.format.title}", rule=rule)
    with Outputs() as out:
        if str(target) in ("-", "/dev/stdout"):
            sink = BytesIO()
            write(sink, watched_each(_parts(change), every=1), STDOUT)
            out.print(sink.getvalue())
        else:
            out.fill(ref, "changes", lambda sink: write(sink, watched_each(_parts(change), every=1), target))
        out.commit()


def _parts(change: Changed) -> Iterator[WrittenRows]:
    """What changed, in the order in which it is written."""
    for name in sorted({*change.inserted, *change.deleted}):
        for sign, facts in ((DELETE, change.deleted), (INSERT, change.inserted)):
            if name in facts:
                table = facts[name].to_arrow()
                if table.num_rows:
                    types = [_TYPES[field.type] for field in table.schema]
                    columns = (Column(n, t, str(t)) for n, t in zip(table.column_names, types, strict=True))
                    relation = Relation(name, tuple(columns))  # enough to sort and to spell it
                    yield WrittenRows(sign, relation, sorted_batches(table, relation))
