"""Tasks that read text which Spark cuts into lines: parts of files that may be far away, none of which a task holds whole.

Spark's reader yields the lines of a range of bytes, without their newlines, in order; ours takes them as it takes any text. Only two
things are lost: which newline ends the last line, which means nothing, and a byte order mark, which Spark removes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from itertools import groupby, pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import DataError
from evermat.io import (
    AS_IT_IS,
    BlockReader,
    Findings,
    InputFile,
    RdfOptions,
    Router,
    Skipped,
    failing,
    file_ref,
    read_tables,
    table_of,
)
from evermat.language import Io
from evermat.spark.input.read_task import Outcome, kept_facts, outcome_batch

_TEXT = 1 << 23  # bytes that are read at a time
_ROWS = 1 << 22  # facts that a task holds before it writes them
#: what a task gets of each line: its bytes and a newline, and the range of bytes in which Spark found it
COLUMNS = (
    "cast(concat(value, '\\n') as binary) as text",
    "_metadata.file_path as path",
    "_metadata.file_block_start as start",
    "_metadata.file_block_start + _metadata.file_block_length >= _metadata.file_size as last",
)


class Range(NamedTuple):
    """A range of bytes of a file; the `last` one reaches its end."""

    path: str
    start: int
    last: bool


@dataclass(frozen=True)
class LineReader:
    """Reads the lines of an input; batches have `COLUMNS`.

    The number of an outcome is twice the start of its range. An empty line at the end of a range may be the end of the file, where
    it means nothing. Whether it is shows when all ranges are read, so that it has an outcome of its own, with the next number.
    Labels of blank nodes begin with a hash of the file's name.
    """

    io: Io
    folder: str
    options: RdfOptions = AS_IT_IS
    router: Router | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for range_, runs in groupby(_runs(batches), key=lambda run: run[0]):
            for outcome in self.read(range_, (text for _, text in runs)):
                yield outcome_batch(outcome)

    def read(self, range_: Range, texts: Iterator[bytes]) -> Iterator[Outcome]:
        """The outcomes of a range, whose text comes in pieces of whole lines."""
        path = unquote(range_.path)
        ref = file_ref(Path(path))
        assert ref.format.block_reader is not None
        options = replace(self.options, blank=f"f{sha256(path.encode()).hexdigest()[:12]}_")
        findings = Skipped(path) if options.skip and ref.is_rdf else Findings(path)
        reader = ref.format.block_reader(InputFile(ref, self.io, findings, options))
        lines = _Lines(texts, holds_back=not (range_.last or reader.keep_empty))
        first = range_.start == 0
        yield from self._outcomes(2 * range_.start, path, lines, reader, findings, first=first, last=range_.last)
        if lines.held:
            first = first and not lines.count
            end = _Lines(iter([lines.held]))
            findings = Findings(path)
            reader = ref.format.block_reader(InputFile(ref, self.io, findings, options))
            yield from self._outcomes(2 * range_.start + 1, path, end, reader, findings, first=first, last=False)

    def _outcomes(
        self, number: int, path: str, lines: _Lines, reader: BlockReader, findings: Findings, *, first: bool, last: bool
    ) -> Iterator[Outcome]:
        """Of many facts there are several outcomes; the last one has the number of lines."""
        held: list[pa.Table] = []
        try:
            with failing(Path(path), f"relation `{self.io.relation.name}` is"):
                tables = read_tables(cast(BinaryIO, lines), reader, findings, first=first, last=last, marked=False)
                for table in tables:
                    held.append(table)
                    if sum(one.num_rows for one in held) >= _ROWS:
                        yield self._kept(number, path, held, 0, findings)
                        held = []
                lines.finish()
                findings.raise_if_any()
        except DataError as error:
            yield Outcome(number, path, "", 0, lines.count, tuple(error.problems))
            return
        outcome = self._kept(number, path, held, lines.count, findings)
        yield replace(outcome, skipped=findings.count)

    def _kept(self, number: int, path: str, held: list[pa.Table], lines: int, findings: Findings) -> Outcome:
        table = table_of(self.io.relation, held)
        return replace(kept_facts(number, path, table, lines, self.folder, self.router, findings), skipped=0)


class _Lines:
    """A stream over pieces of whole lines, which counts them; `held` is an empty last line that it holds back."""

    def __init__(self, texts: Iterator[bytes], *, holds_back: bool = False) -> None:
        self._texts, self._holds_back = texts, holds_back
        self._rest = BytesIO()
        self.count = 0
        self.held = b""

    def read(self, size: int) -> bytes:
        parts = [self._rest.read(size)]
        missing = size - len(parts[0])
        while missing > 0 and (text := next(self._texts, b"")):
            text = self._without_end(text)
            parts.append(text[:missing])
            missing -= len(parts[-1])
            if missing <= 0:
                self._rest = BytesIO(text[len(parts[-1]) :])
        data = b"".join(parts)
        self.count += data.count(b"\n")
        return data

    def finish(self) -> None:
        """Counts what is left: after too many errors there is a rest."""
        while self.read(_TEXT):
            pass

    def _without_end(self, text: bytes) -> bytes:
        if not self._holds_back:
            return text
        text = self.held + text
        self.held = _empty_end(text)
        return text[: len(text) - len(self.held)]


def _empty_end(text: bytes) -> bytes:
    """The last line with its newline if it is empty, else nothing."""
    for end in (b"\r\n", b"\n"):
        rest = text.removesuffix(end)
        if rest != text and (not rest or rest.endswith(b"\n")):
            return end
    return b""


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Range, bytes]]:
    """The lines of batches, joined as long as they are of one range."""
    for batch in batches:
        rows = batch.num_rows
        if not rows:
            continue
        text, path, start, last = batch.columns
        cuts = [0, rows]
        if (path[0], start[0]) != (path[rows - 1], start[rows - 1]):
            other = pc.or_(
                pc.not_equal(path.slice(1), path.slice(0, rows - 1)),
                pc.not_equal(start.slice(1), start.slice(0, rows - 1)),
            )
            cuts[1:1] = pc.add(pc.indices_nonzero(other), 1).to_pylist()
        for begin, end in pairwise(cuts):
            range_ = Range(path[begin].as_py(), start[begin].as_py(), last[begin].as_py())
            yield range_, _joined(text.slice(begin, end - begin))


def _joined(lines: pa.Array) -> bytes:
    """All lines as one text, which they are in memory already."""
    numbers = np.int64 if pa.types.is_large_binary(lines.type) else np.int32
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, numbers)
    begin, end = int(ends[lines.offset]), int(ends[lines.offset + len(lines)])
    return bytes(data.slice(begin, end - begin).to_pybytes())
