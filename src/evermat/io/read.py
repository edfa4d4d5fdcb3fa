"""Reads the files of a relation, whatever their format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from evermat.core import DataError, collected_errors, open_input, standard_input
from evermat.io.blocks import read_blocks
from evermat.io.error_report import Findings, Skipped
from evermat.io.formats.registry import AS_IT_IS, TEXT, InputFile, RdfOptions
from evermat.io.locate import FileRef, input_files
from evermat.io.open import decompressed, failing, read_all, refuse_folder
from evermat.io.schema import table_of
from evermat.language import Io

STDIN = "<stdin>"


def read_relation(
    io: Io,
    folder: Path,
    options: RdfOptions = AS_IT_IS,
    blanks: Mapping[Path, str] | None = None,
    skipped: dict[str, int] | None = None,
    *,
    check_terms: bool = True,
) -> pa.Table:
    """The facts of a relation from its files in `folder`, or from standard input; duplicates are kept.

    Everything that is wrong with the files is raised as one `DataError` with its positions. `blanks` says what labels of
    blank nodes begin with, by file (see `blank_prefixes`); without it, this is all that is read. `skipped` is told how many
    malformed statements of which RDF file were left out, if the options ask for that. Without `check_terms`, texts of columns
    of terms are taken as they are.
    """
    if io.medium == "stdin":
        ref = FileRef(Path(STDIN), TEXT, gzip=False)
        with failing(ref.path, f"relation `{io.relation.name}` is"):
            return _read(standard_input(), InputFile(ref, io, Findings(STDIN), checks_terms=check_terms))
    refs = input_files(io, folder)
    if blanks is None:
        blanks = blank_prefixes(ref.path for ref in refs if ref.is_rdf)
    parts: list[pa.Table] = []
    with collected_errors() as collecting:
        for ref in refs:
            findings = Skipped(str(ref.path)) if options.skip and ref.is_rdf else Findings(str(ref.path))
            own = replace(options, blank=options.blank + blanks.get(ref.path, ""))
            with collecting():
                parts.append(read_file(ref, io, own, findings, check_terms=check_terms))
            if skipped is not None and findings.count:
                skipped[findings.path] = findings.count
    return parts[0] if len(parts) == 1 else table_of(io.relation, parts)


def rdf_inputs(inputs: Iterable[Io], folder: Path) -> list[Path]:
    """The RDF files that some inputs mean, each once, in the order of the inputs.

    Raises:
        DataError: an input means no file, or one that does not suit it.
    """
    files = (ref for io in inputs if io.medium == "file" for ref in input_files(io, folder))
    return list(dict.fromkeys(ref.path for ref in files if ref.is_rdf))


def blank_prefixes(paths: Iterable[Path]) -> dict[Path, str]:
    """What the labels of blank nodes begin with in each of the RDF files that a run reads: nothing if it is only one."""
    files = list(dict.fromkeys(paths))
    return {path: f"f{number}_" if len(files) > 1 else "" for number, path in enumerate(files, 1)}


def read_file(
    ref: FileRef,
    io: Io,
    options: RdfOptions = AS_IT_IS,
    findings: Findings | None = None,
    *,
    check_terms: bool = True,
) -> pa.Table:
    """The facts of one file; with findings that are `Skipped`, malformed statements of RDF are counted there.

    Raises:
        DataError: with everything that is wrong with the file.
    """
    findings = findings or Findings(str(ref.path))
    with failing(ref.path, f"relation `{io.relation.name}` is"):
        if ref.format.random_access:
            return _read(ref.path, InputFile(ref, io, findings, options, check_terms))
        refuse_folder(ref.path)
        with open_input(ref.path) as file:
            return read_stream(file, ref, io, findings, options, check_terms=check_terms)


def read_stream(
    stream: BinaryIO,
    ref: FileRef,
    io: Io,
    findings: Findings,
    options: RdfOptions = AS_IT_IS,
    *,
    check_terms: bool = True,
) -> pa.Table:
    """The facts of a file whose bytes, compressed or not, come from a stream; `ref` says only what they are.

    Errors call the file `findings.path`.
    """
    if problem := ref.format.refusal(ref, io.relation):
        raise DataError(problem)
    file = InputFile(ref, io, findings, options, check_terms)
    if ref.format.random_access:
        return _read(stream if stream.seekable() else pa.BufferReader(read_all(stream)), file)
    with decompressed(stream, ref) as text:
        return _read(text, file)


def _read(source: Any, file: InputFile) -> pa.Table:
    form = file.ref.format
    if form.block_reader is None:
        assert form.read is not None
        return form.read(source, file)
    with file.findings:
        return read_blocks(source, form.block_reader(file), file.io.relation, file.findings)
