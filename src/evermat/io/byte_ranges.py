"""Reads a file in parts that know nothing of each other, as tasks on several machines do.

A record belongs to the range of bytes in which it begins, so that any cut of a file into ranges gives each record to
one of them. What only the beginning or the end of a file has (a BOM, a header, an empty last line) is looked for
only there. `relocate` and `merge_findings` then make of the errors of the parts what the whole file would have given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from evermat.core import Problem, Source, open_input
from evermat.io.blocks import BLOCK, read_blocks
from evermat.io.error_report import Findings, FullError
from evermat.io.formats.registry import AS_IT_IS, InputFile, RdfOptions
from evermat.io.locate import FileRef, file_ref
from evermat.language import Io


def can_split(ref: FileRef, io: Io) -> bool:
    """Whether every line that ends ends a record, wherever one begins to read: not if quotes may hold newlines."""
    if ref.gzip or ref.format.block_reader is None:
        return False
    return not ref.format.block_reader(InputFile(ref, io, Findings(str(ref.path)))).quoted


def read_range(
    path: Path,
    start: int,
    end: int,
    io: Io,
    findings: Findings,
    size: int = BLOCK,
    options: RdfOptions = AS_IT_IS,
) -> tuple[pa.Table, int]:
    """The records that begin in the bytes [start, end) of a file that can be split, and how many lines they take.

    Errors are noted in `findings`, which counts lines from the first one of the range, and not raised; the table is
    then only a part. A header, and an empty last line, count as lines.
    """
    ref = file_ref(path)
    assert ref.format.block_reader is not None
    reader = ref.format.block_reader(InputFile(ref, io, findings, options))
    with open_input(path) as file:
        whole = file.seek(0, 2)
        begin, stop = (_next_record(file, min(at, whole)) for at in (start, end))
        part = _Part(file, begin, stop)
        stream = cast(BinaryIO, part)
        ends = {"first": begin == 0, "last": stop == whole}
        table = read_blocks(stream, reader, io.relation, findings, **ends, size=size)
        while part.read(BLOCK):  # after too many errors there is a rest, and its lines count too
            pass
    return table, part.lines


def relocate(problem: Problem, lines: int) -> Problem:
    """The same problem, so many lines further down in its file; one that has no line stays what it is."""
    source = problem.source
    if source is None or problem.span is None:
        return problem
    return problem.at(Source(source.name, source.text, source.first_line + lines))


def merge_findings(path: str | Path, parts: Iterable[Sequence[Problem]]) -> list[Problem]:
    """The errors of a file from those of its parts, in their order: as many as `Findings` would have kept."""
    merged = Findings(str(path))
    with suppress(FullError):
        for problem in chain.from_iterable(parts):
            merged.add(problem)
    return merged.all()


class _Part:
    """A stream over some bytes of a file, from one beginning of a record to another; counts the lines it has read."""

    def __init__(self, file: BinaryIO, begin: int, stop: int) -> None:
        self._file, self._left = file, max(stop - begin, 0)
        self.lines = 0
        file.seek(begin)

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        self.lines += data.count(b"\n")
        if data and not self._left and not data.endswith(b"\n"):
            self.lines += 1
        return data


def _next_record(file: BinaryIO, at: int) -> int:
    """Where the first record begins that does not begin before an offset: at the end of the file if there is none."""
    if at <= 0:
        return 0
    begin = at - 1  # if this byte ends a line, a record begins at the offset
    file.seek(begin)
    while line := file.readline(BLOCK):
        begin += len(line)
        if line.endswith(b"\n"):
            break
    return begin
