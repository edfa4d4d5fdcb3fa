"""Tasks that read inputs: files, or pieces of files, become Arrow files in the scratch folder.

The same code reads files in memory, so that facts and errors are the same. Problems of an input are reported to the driver, which knows
the position of a piece in its file; a task never fails because of its data. Nothing of the engine is loaded here, so that workers start quickly.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from evermat.core import DataError, Problem
from evermat.io import (
    AS_IT_IS,
    Findings,
    RdfOptions,
    Router,
    Skipped,
    conform,
    failing,
    file_ref,
    read_file,
    read_range,
    read_stream,
)
from evermat.language import Io, Relation
from evermat.spark.scratch_files import remove_files, writing
from evermat.store import Location, location_of

_BATCH = 1 << 20  # rows that the driver encodes at a time
_SAMPLE = 1 << 12  # texts that are looked at to see whether they repeat


@dataclass(frozen=True, slots=True)
class Split:
    """A file, or the records that begin in a range of its bytes, of one input."""

    io: Io
    path: str
    start: int = 0
    end: int | None = None  # the whole file
    options: RdfOptions = AS_IT_IS
    router: Router | None = None  # if triples are facts of many relations


OUTCOME = "number long, path string, file string, rows long, lines long, details binary, failure string"
_TYPES = {"long": pa.int64(), "string": pa.string(), "binary": pa.binary()}
_SCHEMA = pa.schema([(name, _TYPES[type_]) for name, type_ in map(str.split, OUTCOME.split(", "))])


@dataclass(frozen=True)
class Outcome:
    """The result of one split: a file with so many facts, from so many lines; or problems, or a failure of the system.

    Triples that belong to many relations are in a file for each: the `parts`, which are relation, file and number of facts.
    """

    number: int
    path: str
    file: str
    rows: int
    lines: int
    problems: tuple[Problem, ...] = ()
    failure: str = ""
    skipped: int = 0  # malformed statements that were left out
    parts: tuple[tuple[str, str, int], ...] = ()

    @property
    def files(self) -> list[str]:
        """The files with the facts."""
        return [file for _, file, _ in self.parts] if self.parts or not self.file else [self.file]

    def record(self) -> tuple[object, ...]:
        """The row of `OUTCOME` for the driver."""
        details = bytearray(pickle.dumps((self.problems, self.skipped, self.parts)))
        return self.number, self.path, self.file, self.rows, self.lines, details, self.failure

    @classmethod
    def of(cls, row: Any) -> Outcome:
        """The outcome of a row."""
        problems, skipped, parts = pickle.loads(bytes(row["details"]))  # noqa: S301 - our own tasks wrote it
        return cls(
            row["number"], row["path"], row["file"], row["rows"], row["lines"], problems, row["failure"], skipped, parts
        )


@dataclass(frozen=True)
class SplitReader:
    """Reads the split with a number."""

    splits: tuple[Split, ...]
    folder: str

    def __call__(self, number: int) -> tuple[object, ...]:
        return self.read(number).record()

    def read(self, number: int) -> Outcome:
        split = self.splits[number]
        path, lines = Path(split.path), 0
        findings = Skipped(split.path) if split.options.skip else Findings(split.path)
        try:
            with failing(path, f"relation `{split.io.relation.name}` is"):
                if split.end is None:
                    table = read_file(file_ref(path), split.io, split.options, findings)
                else:
                    table, lines = read_range(path, split.start, split.end, split.io, findings, options=split.options)
                    findings.raise_if_any()
        except DataError as error:
            return Outcome(number, split.path, "", 0, lines, tuple(error.problems))
        return kept_facts(number, split.path, table, lines, self.folder, split.router, findings)


@dataclass(frozen=True)
class ContentReader:
    """Reads the bytes of whole files as an input.

    These files have no numbers: labels of blank nodes begin with a hash of the file's name.
    """

    io: Io
    folder: str
    options: RdfOptions = AS_IT_IS
    router: Router | None = None

    def __call__(self, path: str, content: bytes) -> tuple[object, ...]:
        return self.read(path, content).record()

    def read(self, path: str, content: bytes) -> Outcome:
        ref = file_ref(Path(path))
        findings = Skipped(path) if self.options.skip and ref.is_rdf else Findings(path)
        options = replace(self.options, blank=f"f{sha256(path.encode()).hexdigest()[:12]}_")
        try:
            with failing(Path(path), f"relation `{self.io.relation.name}` is"):
                table = read_stream(BytesIO(content), ref, self.io, findings, options)
                findings.raise_if_any()
        except DataError as error:
            return Outcome(0, path, "", 0, 0, tuple(error.problems))
        return kept_facts(0, path, table, 0, self.folder, self.router, findings)


@dataclass(frozen=True)
class FrameWriter:
    """Checks the rows of a DataFrame, whose columns have these names, and writes them as facts of a relation."""

    relation: Relation
    names: tuple[str, ...]
    folder: str
    name: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        problems: list[Problem] = []
        pieces: list[pa.Table] = []
        for batch in batches:
            piece = pa.Table.from_batches([batch]).rename_columns(list(self.names))
            try:
                pieces.append(conform(piece, self.relation, self.name, lambda _row: "a row"))
            except DataError as error:
                problems += error.problems
        if problems:
            outcome = Outcome(0, "", "", 0, 0, tuple(problems))
        elif pieces:
            outcome = _written(0, "", pa.concat_tables(pieces), 0, self.folder)
            if outcome.failure:
                raise OSError(outcome.failure)
        else:
            return
        yield outcome_batch(outcome)


def outcome_batch(outcome: Outcome) -> pa.RecordBatch:
    """An outcome as the one row of a batch."""
    columns = [pa.array([value], type_) for value, type_ in zip(outcome.record(), _SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _written(number: int, path: str, table: pa.Table, lines: int, folder: str) -> Outcome:
    """Writes facts under a new name for each attempt, so that of a task that runs twice only one result counts."""
    file = location_of(folder) / f"{number}-{uuid4().hex}.arrow"
    try:
        write_facts(table, file)
    except OSError as error:
        remove_files([file])
        why = os.strerror(error.errno) if error.errno else str(error)
        return Outcome(number, path, str(file), 0, lines, (), why)
    return Outcome(number, path, str(file), table.num_rows, lines)


def kept_facts(
    number: int, path: str, table: pa.Table, lines: int, folder: str, router: Router | None, findings: Findings
) -> Outcome:
    """Writes facts to one file or, if a router assigns triples to relations, to several."""
    skipped = findings.count if isinstance(findings, Skipped) else 0
    if router is None:
        return replace(_written(number, path, table, lines, folder), skipped=skipped)
    parts = []
    for name, facts in router.route(table)[0].items():
        written = _written(number, path, facts, lines, folder)
        if written.failure:
            return written
        parts.append((name, written.file, written.rows))
    return Outcome(number, path, "", table.num_rows, lines, skipped=skipped, parts=tuple(parts))


def write_facts(table: pa.Table, file: Location) -> None:
    """Writes facts; the columns are those of their relation."""
    if table.num_columns:
        columns = [_compact(column) for column in table.columns]
        table = pa.table(dict(zip(map(str, range(len(columns))), columns, strict=True)))
    else:
        table = pa.table({"present": pa.array([True] * table.num_rows)})
    with writing(file) as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=_BATCH)


def _compact(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Encodes texts by one dictionary for all chunks, unless most of the first ones are different: then that saves nothing."""
    if not pa.types.is_string(column.type):
        return column
    sample = column.slice(0, _SAMPLE).combine_chunks()
    return column if 2 * len(sample.unique()) > len(sample) else column.dictionary_encode()
