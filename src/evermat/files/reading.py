"""Reads the file of a relation, whatever its format."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from evermat.errors import BAD_GZIP, CANNOT_READ, IS_FOLDER, NO_FILE, NOT_GZIP, RDF_INPUT, DataError, did_you_mean
from evermat.files.findings import Findings, fail
from evermat.files.jsonl import read_jsonl
from evermat.files.parquet import read_parquet
from evermat.files.places import FilePlace, Format, file_place
from evermat.files.text import read_text
from evermat.program.model import Io

STDIN = "<stdin>"


def read_relation(io: Io, folder: Path) -> pa.Table:
    """The facts of a relation from its file in `folder`, or from standard input; duplicates are kept.

    Everything that is wrong with the file is raised as one `DataError` with its places.
    """
    if io.medium == "stdin":
        return read_text(sys.stdin.buffer, io, Findings(STDIN))
    place = file_place(io, folder, ".facts")
    if place.format is Format.RDF:
        raise fail(RDF_INPUT, path=place.path)
    with failing(place.path, f"relation `{io.relation.name}` is"):
        return _read(place, io)


def _read(place: FilePlace, io: Io) -> pa.Table:
    findings = Findings(str(place.path))
    if place.format is Format.PARQUET:
        return read_parquet(place.path, io.relation)
    with open_text(place) as stream:
        if place.format is Format.JSONL:
            return read_jsonl(stream, io.relation, findings)
        return read_text(stream, io, findings)


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
    if place.path.is_dir():
        raise fail(IS_FOLDER, path=place.path, why="only a `.parquet` may be a folder of files")
    with place.path.open("rb") as file:
        if not place.gzip:
            yield file
            return
        start = file.peek(2)[:2]
        if start and start != b"\x1f\x8b":
            raise fail(NOT_GZIP, path=place.path)
        with gzip.open(file) as stream:
            try:
                yield cast(BinaryIO, stream)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                why = "it breaks off" if isinstance(error, EOFError) else str(error)
                raise fail(BAD_GZIP, path=place.path, why=why) from error


def _no_file(path: Path, what: str) -> DataError:
    try:
        known = [other.name for other in path.parent.iterdir()]
    except OSError:
        return fail(NO_FILE, f"there is no folder `{path.parent}` either", path=path, what=what)
    return fail(NO_FILE, did_you_mean(path.name, known), path=path, what=what)
