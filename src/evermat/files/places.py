"""Which file an `.input` or `.output` means, and in which format."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import NamedTuple

from evermat.program.model import Io

RDF_ENDINGS = (".nt", ".nq", ".ttl", ".trig", ".rdf", ".owl")


class Format(Enum):
    """How facts are laid out in a file."""

    TEXT = "text"
    JSONL = "jsonl"
    PARQUET = "parquet"
    RDF = "rdf"


class FilePlace(NamedTuple):
    """A file, its format, and whether it is compressed."""

    path: Path
    format: Format
    gzip: bool


def file_place(io: Io, folder: Path, default_ending: str) -> FilePlace:
    """The file of a relation: `io.path`, or the relation's name with the default ending, in `folder`."""
    return place_of(Path(folder, io.path or f"{io.relation.name}{default_ending}"))


def place_of(path: Path) -> FilePlace:
    """A file with the format that its name says.

    Only the endings of Parquet, JSON lines and RDF, and `.gz` after text or JSON lines, say anything; all other
    files are delimiter-separated text. Upper and lower case are the same.
    """
    name = Path(path.name.lower())
    gzip = name.suffix == ".gz"
    ending = Path(name.stem).suffix if gzip else name.suffix
    if ending in RDF_ENDINGS:
        return FilePlace(path, Format.RDF, gzip)
    if ending == ".parquet" and not gzip:
        return FilePlace(path, Format.PARQUET, gzip)
    return FilePlace(path, Format.JSONL if ending == ".jsonl" else Format.TEXT, gzip)
