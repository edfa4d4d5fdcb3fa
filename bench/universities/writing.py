"""Universities as files of N-Triples."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bench.universities.department import ALMA_MATERS
from bench.universities.lubm import lubm
from bench.universities.ontologies import ONTOLOGIES
from bench.universities.uobm import uobm
from bench.universities.vocabulary import RDF_TYPE, UB, UO


def write(
    kind: str, universities: int, sink: BinaryIO, *, seed: int = 0, departments: int | None = None, first: int = 0
) -> int:
    """Universities as N-Triples, from a first one on; the number of triples. `departments` sets their number for all universities."""
    if kind not in ONTOLOGIES:
        raise ValueError(f"there is no kind `{kind}` of universities")
    space, generate = (UB, lubm) if kind == "lubm" else (UO, partial(uobm, universities=first + universities))
    triples = 0
    typed = np.zeros(
        max(ALMA_MATERS, first + universities), bool
    )  # the only thing that grows, by a byte for each university
    for university in range(first, first + universities):
        named = np.zeros(len(typed), bool)
        named[university] = True
        for text, department in generate(university, seed, departments):
            sink.write(text.encode())
            triples += text.count("\n")
            if department is not None:
                named[np.concatenate([np.ravel(department.degrees), department.graduate_degrees])] = True
        new = np.flatnonzero(named & ~typed)
        typed |= named
        text = "".join([f"<http://www.University{u}.edu> {RDF_TYPE} <{space}University> .\n" for u in new.tolist()])
        sink.write(text.encode())
        triples += len(new)
    return triples


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to write, compressed if its name says so, with the same bytes each time; `-` is the standard output."""
    if str(path) == "-":
        yield sys.stdout.buffer
        return
    with path.open("wb") as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed, io.BufferedWriter(packed, 1 << 20) as buffered:
            yield buffered


def generate(kind: str, universities: int, path: Path, *, seed: int = 0) -> int:
    """Universities as a file of N-Triples; the number of triples."""
    with opened(path) as sink:
        return write(kind, universities, sink, seed=seed)
