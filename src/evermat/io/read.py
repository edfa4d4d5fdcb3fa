"""Reads the files of a relation, whatever their format."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from evermat.core.errors import DataError, Problem
from evermat.io.error_report import Findings, Skipped
from evermat.io.formats.csv_fast import read_text
from evermat.io.formats.jsonl_reader import read_jsonl
from evermat.io.formats.parquet import read_parquet
from evermat.io.locate import FilePlace, Format, input_places, misfit
from evermat.io.open import decompressed, failing, refuse_folder
from evermat.io.rdf.read import read_rdf
from evermat.io.rdf.terms import AS_IT_IS, RdfOptions, facts_of
from evermat.io.schema import table_of
from evermat.language.model import Io

STDIN = "<stdin>"


def read_relation(
    io: Io,
    folder: Path,
    options: RdfOptions = AS_IT_IS,
    blanks: Mapping[Path, str] | None = None,
    skipped: dict[str, int] | None = None,
) -> pa.Table:
    """The facts of a relation from its files in `folder`, or from standard input; duplicates are kept.

    Everything that is wrong with the files is raised as one `DataError` with its places.

    Args:
        io: the relation, and what its `.input` says.
        folder: where files are looked for.
        options: how RDF files are read.
        blanks: what labels of blank nodes begin with, by file; see `blank_prefixes`. Without it, this is all that is read.
        skipped: is told how many malformed statements of which RDF file were left out, if the options ask for that.
    """
    if io.medium == "stdin":
        return read_text(sys.stdin.buffer, io, Findings(STDIN))
    places = input_places(io, folder)
    if blanks is None:
        blanks = blank_prefixes(place.path for place in places if place.format is Format.RDF)
    parts: list[pa.Table] = []
    problems: list[Problem] = []
    for place in places:
        findings = (
            Skipped(str(place.path)) if options.skip and place.format is Format.RDF else Findings(str(place.path))
        )
        own = replace(options, blank=options.blank + blanks.get(place.path, ""))
        try:
            part = read_place(place, io, own, findings)
        except DataError as error:
            problems += error.problems
            parts.clear()
        else:
            if not problems:
                parts.append(part)
        if skipped is not None and isinstance(findings, Skipped) and findings.count:
            skipped[findings.path] = findings.count
    if problems:
        raise DataError(problems)
    return parts[0] if len(parts) == 1 else table_of(io.relation, parts)


def rdf_inputs(inputs: Iterable[Io], folder: Path) -> list[Path]:
    """The RDF files that some inputs mean, each once, in the order of the inputs.

    Raises:
        DataError: an input means no file, or one that does not suit it.
    """
    files = (place for io in inputs if io.medium == "file" for place in input_places(io, folder))
    return list(dict.fromkeys(place.path for place in files if place.format is Format.RDF))


def blank_prefixes(paths: Iterable[Path]) -> dict[Path, str]:
    """What the labels of blank nodes begin with in each of the RDF files that a run reads: nothing if it is only one."""
    files = list(dict.fromkeys(paths))
    return {path: f"f{number}_" if len(files) > 1 else "" for number, path in enumerate(files, 1)}


def read_place(place: FilePlace, io: Io, options: RdfOptions = AS_IT_IS, findings: Findings | None = None) -> pa.Table:
    """The facts of one file; with findings that are `Skipped`, malformed statements of RDF are counted there.

    Raises:
        DataError: with everything that is wrong with the file.
    """
    with failing(place.path, f"relation `{io.relation.name}` is"):
        if place.format is Format.PARQUET:
            return read_parquet(place.path, str(place.path), io.relation)
        refuse_folder(place.path)
        with place.path.open("rb") as file:
            return read_stream(file, place, io, findings or Findings(str(place.path)), options)


def read_stream(
    stream: BinaryIO, place: FilePlace, io: Io, findings: Findings, options: RdfOptions = AS_IT_IS
) -> pa.Table:
    """The facts of a file whose bytes, compressed or not, come from a stream; `place` says only what they are.

    Raises:
        DataError: with everything that is wrong with the file, which errors call `findings.path`.
    """
    problem = misfit(place, io.relation)
    if problem is not None:
        raise DataError(problem)
    if place.format is Format.PARQUET:
        source: Any = stream if stream.seekable() else pa.BufferReader(stream.read())
        return read_parquet(source, findings.path, io.relation)
    with decompressed(stream, place) as text:
        if place.format is Format.RDF:
            parts = read_rdf(text, place.path.name, options, findings, lambda quads: facts_of(quads, io.relation))
            return table_of(io.relation, parts)
        if place.format is Format.JSONL:
            return read_jsonl(text, io.relation, findings)
        return read_text(text, io, findings)
