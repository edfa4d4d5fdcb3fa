"""The file formats: a format is a module and a row of `FORMATS`.

The rows name functions without importing them: reading CSV loads neither JSON nor Parquet nor RDF.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from evermat.core import deferred
from evermat.io.blocks import BLOCK

if TYPE_CHECKING:
    import pyarrow as pa

    from evermat.core import Problem
    from evermat.io.blocks import BlockReader
    from evermat.io.changes.model import ChangedRows, WrittenRows
    from evermat.io.error_report import Findings
    from evermat.io.locate import FileRef
    from evermat.language import Io, RelationNames


@dataclass(frozen=True, slots=True)
class RdfOptions:
    """How RDF is read."""

    base: str | None = None  # what relative IRIs are relative to, if the file does not say it
    skip: bool = False  # whether malformed statements are left out and counted
    blank: str = ""  # what the labels of blank nodes begin with


AS_IT_IS = RdfOptions()


class InputFile(NamedTuple):
    """A file with facts of a relation, and what takes its errors."""

    ref: FileRef
    io: Io
    findings: Findings
    options: RdfOptions = AS_IT_IS
    checks_terms: bool = True  # if not, the caller does when it encodes the facts


class UpdateFiles(NamedTuple):
    """The files of one update: one, or two of RDF."""

    paths: Sequence[Path]
    relations: RelationNames
    options: RdfOptions = AS_IT_IS
    skipped: dict[str, int] | None = None  # how many malformed statements of which RDF file were left out
    size: int = BLOCK  # bytes of a text that are read at a time
    checks_terms: bool = True  # else texts of columns of terms are taken as they are, for they are checked later


@dataclass(frozen=True, eq=False, kw_only=True)
class FileFormat:
    """What is known of a format.

    A format whose records are lines has a `block_reader`, and its files can be read in parts. Any other has `read`, which
    gets a stream that can be read twice.
    """

    title: str  # what messages call a file of this format
    write: Callable[[BinaryIO, Io, Iterable[pa.RecordBatch], Path], int | None]  # returns how many facts it left out
    read_changes: Callable[[UpdateFiles], Iterable[ChangedRows]]
    write_changes: Callable[[BinaryIO, Iterable[WrittenRows], Path], None] | None = None
    block_reader: Callable[[InputFile], BlockReader] | None = None
    read: Callable[[Any, InputFile], pa.Table] | None = None
    refusal: Callable[..., Problem | None] = lambda _ref, _relation, **_output: None  # of facts that it cannot hold
    endings: Mapping[str, str] = field(default_factory=dict)  # of names, in lower case: the syntax that each means
    compressible: bool = True  # whether `.gz` may follow the ending
    random_access: bool = False  # whether `read` also takes a path, and prefers it
    folders: bool = False  # whether a folder with such an ending holds files of this format and no others
    triples: bool = False


_rdf = partial(
    FileFormat,
    title="an RDF file",
    triples=True,
    refusal=deferred("evermat.io.rdf.terms:refusal"),
    write=deferred("evermat.io.rdf.writer:write_facts"),
    read_changes=deferred("evermat.io.changes.rdf:read_changed_rdf"),
)

FORMATS: dict[str, FileFormat] = {
    "text": FileFormat(
        title="a text file",
        block_reader=deferred("evermat.io.formats.csv_fast:block_reader"),
        write=deferred("evermat.io.formats.csv_writer:write_text"),
        read_changes=deferred("evermat.io.changes.text:read_changed_text"),
        write_changes=deferred("evermat.io.changes.text:write_changed_text"),
    ),
    "jsonl": FileFormat(
        title="a file of JSON lines",
        endings={".jsonl": "jsonl"},
        block_reader=deferred("evermat.io.formats.jsonl_reader:block_reader"),
        write=deferred("evermat.io.formats.jsonl_writer:write_jsonl"),
        read_changes=deferred("evermat.io.changes.jsonl:read_changed_jsonl"),
        write_changes=deferred("evermat.io.changes.jsonl:write_changed_jsonl"),
    ),
    "parquet": FileFormat(
        title="a Parquet file",
        endings={".parquet": "parquet"},
        compressible=False,
        random_access=True,
        folders=True,
        read=deferred("evermat.io.formats.parquet:read_parquet"),
        write=deferred("evermat.io.formats.parquet:write_parquet"),
        read_changes=deferred("evermat.io.changes.parquet:read_changed_parquet"),
        write_changes=deferred("evermat.io.changes.parquet:write_changed_parquet"),
    ),
    "ntriples": _rdf(
        endings={".nt": "nt", ".nq": "nq"},
        block_reader=deferred("evermat.io.rdf.ntriples:block_reader"),
    ),
    "rdf": _rdf(
        endings={".ttl": "ttl", ".trig": "trig", ".jsonld": "jsonld", ".rdf": "rdf", ".owl": "rdf", ".xml": "rdf"},
        read=deferred("evermat.io.rdf.read:read_facts"),
    ),
}
ENDINGS: dict[str, FileFormat] = {ending: form for form in FORMATS.values() for ending in form.endings}
TEXT = FORMATS["text"]  # what a file is whose ending says nothing
