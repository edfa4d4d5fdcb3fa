"""Reads the files of a relation, whatever their format."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from evermat.errors import (
    BAD_GZIP,
    CANNOT_READ,
    IS_FOLDER,
    NO_FILE,
    NOT_GZIP,
    DataError,
    Problem,
    did_you_mean,
)
from evermat.files.findings import Findings, fail
from evermat.files.jsonl import read_jsonl
from evermat.files.layout import table_of
from evermat.files.ntriples import read_ntriples
from evermat.files.parquet import read_parquet
from evermat.files.places import FilePlace, Format, input_places, misfit
from evermat.files.text import read_text
from evermat.program.model import Io

STDIN = "<stdin>"


def read_relation(io: Io, folder: Path) -> pa.Table:
    """The facts of a relation from its files in `folder`, or from standard input; duplicates are kept.

    Everything that is wrong with the files is raised as one `DataError` with its places.
    """
    if io.medium == "stdin":
        return read_text(sys.stdin.buffer, io, Findings(STDIN))
    places = input_places(io, folder)
    parts: list[pa.Table] = []
    problems: list[Problem] = []
    for place in places:
        try:
            part = read_place(place, io)
        except DataError as error:
            problems += error.problems
            parts.clear()
        else:
            if not problems:
                parts.append(part)
    if problems:
        raise DataError(problems)
    return parts[0] if len(parts) == 1 else table_of(io.relation, parts)


def read_place(place: FilePlace, io: Io) -> pa.Table:
    """The facts of one file.

    Raises:
        DataError: with everything that is wrong with the file.
    """
    with failing(place.path, f"relation `{io.relation.name}` is"):
        if place.format is Format.PARQUET:
            return read_parquet(place.path, str(place.path), io.relation)
        _refuse_folder(place.path)
        with place.path.open("rb") as file:
            return read_stream(file, place, io, Findings(str(place.path)))


def read_stream(stream: BinaryIO, place: FilePlace, io: Io, findings: Findings) -> pa.Table:
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
    with _decompressed(stream, place) as text:
        if place.is_ntriples:
            return read_ntriples(text, io.relation, findings)
        if place.format is Format.JSONL:
            return read_jsonl(text, io.relation, findings)
        return read_text(text, io, findings)


@contextmanager
def failing(path: Path, what: str) -> Iterator[None]:
    """Turns what the system says about a file into an error of ours; `what` is read from it ('changes are')."""
    try:
        yield
    except FileNotFoundError as error:
        raise _no_file(path, what) from error
    except OSError as error:
        raise fail(CANNOT_READ, path=path, what=what, why=error.strerror or str(error)) from error


@contextmanager
def open_text(place: FilePlace) -> Iterator[BinaryIO]:
    """The text of a file, decompressed where its name says so; an empty file is an empty text also then."""
    _refuse_folder(place.path)
    with place.path.open("rb") as file, _decompressed(file, place) as text:
        yield text


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise fail(IS_FOLDER, path=path, why="only a `.parquet` may be a folder of files")


@contextmanager
def _decompressed(stream: BinaryIO, place: FilePlace) -> Iterator[BinaryIO]:
    if not place.gzip:
        yield stream
        return
    file = stream if isinstance(stream, BufferedReader) else BufferedReader(cast(Any, stream))
    start = file.peek(2)[:2]
    if start and start != b"\x1f\x8b":
        raise fail(NOT_GZIP, path=place.path)
    with gzip.open(file) as text:
        try:
            yield cast(BinaryIO, text)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            why = "it breaks off" if isinstance(error, EOFError) else str(error)
            raise fail(BAD_GZIP, path=place.path, why=why) from error


def _no_file(path: Path, what: str) -> DataError:
    try:
        known = [other.name for other in path.parent.iterdir()]
    except OSError:
        return fail(NO_FILE, f"there is no folder `{path.parent}` either", path=path, what=what)
    return fail(NO_FILE, did_you_mean(path.name, known), path=path, what=what)
