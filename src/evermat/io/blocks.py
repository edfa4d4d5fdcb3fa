"""Cuts a text into blocks of whole records, so that no file has to fit into memory as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from evermat.core import LimitError, ask_for, check_stop
from evermat.io.error_report import Findings, FullError
from evermat.io.schema import table_of
from evermat.language import Relation

BLOCK = 8 << 20
PIECE = 64 << 10  # of a block that is not ordinary, only pieces of about this size are read slowly
#: bytes that reading takes for each byte of a block; for each byte of a record that is longer than a block
ORDINARY, LONG = 8, 10
BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Some whole records; every one ends with a newline, except perhaps the last one of the file."""

    first_line: int
    data: bytes


class BlockReader(NamedTuple):
    """How a text is read block by block."""

    read: Callable[[Block], pa.Table]
    quoted: bool = False  # whether quotes may hold newlines
    headers: bool = False  # whether the first record holds the names of the columns
    keep_empty: bool = False  # whether an empty last line is a record
    size: int = BLOCK  # bytes that are read at a time, at most


def blocks(
    stream: BinaryIO,
    *,
    quoted: bool = False,
    headers: bool = False,
    keep_empty: bool = False,
    marked: bool = True,
    size: int = BLOCK,
    line: int = 1,
) -> Iterator[Block]:
    """The records of a text: without BOM, without the header, and without an empty last line unless `keep_empty`.

    `quoted` texts may have newlines within quotes; a block never ends there. What is not `marked` is not the beginning
    of a file: a BOM belongs to a value there. `line` is the number of the first line.
    """
    data = stream.read(max(size, len(BOM) + 1))
    if marked:
        data = data.removeprefix(BOM)
    while data:
        check_stop()
        more = stream.read(size)
        cut = _end_of_records(data, quoted=quoted) if more else len(data)
        if headers and cut:
            begin = _end_of_first(data, quoted=quoted)
            line, data, cut, headers = line + data.count(b"\n", 0, begin), data[begin:], cut - begin, False
        if cut:
            part = data[:cut]
            if not more and not keep_empty:
                part = _without_empty_end(part)
            if part:
                _ask_for(part, line)
                yield Block(line, part)
            line += part.count(b"\n")
            data = data[cut:] + more
        else:
            _ask_for(data, line)
            data, size = data + more, max(size, len(data))  # one long record: read in growing steps


def pieces(block: Block, *, quoted: bool = False) -> Iterator[Block]:
    """The same records in about eight smaller blocks."""
    size, line = len(block.data) // 8 + 1, block.first_line
    return blocks(BytesIO(block.data), quoted=quoted, keep_empty=True, marked=False, size=size, line=line)


def read_blocks(
    stream: BinaryIO,
    reader: BlockReader,
    relation: Relation,
    findings: Findings,
    *,
    first: bool = True,
    last: bool = True,
    size: int = BLOCK,
) -> pa.Table:
    """The facts of a text, which may be the `first` or the `last` part of a file or neither.

    If there are errors, they are noted, and the table is only a part.
    """
    return table_of(relation, list(read_tables(stream, reader, findings, first=first, last=last, size=size)))


def read_tables(
    stream: BinaryIO,
    reader: BlockReader,
    findings: Findings,
    *,
    first: bool = True,
    last: bool = True,
    marked: bool | None = None,
    size: int = BLOCK,
) -> Iterator[pa.Table]:
    """Yields the facts of a text block by block, up to the first error; see `read_blocks`. The `first` part may have a BOM, unless `marked` denies it."""
    text = blocks(
        stream,
        quoted=reader.quoted,
        headers=reader.headers and first,
        keep_empty=reader.keep_empty or not last,
        marked=first if marked is None else marked,
        size=min(size, reader.size),
    )
    with suppress(FullError):
        for block in text:
            part = reader.read(block)
            if not findings.problems:
                yield part


def _ask_for(data: bytes, line: int) -> None:
    """Refuses a block that cannot be read within the limit of memory."""
    try:
        ask_for((LONG if len(data) > 2 * BLOCK else ORDINARY) * len(data))
    except LimitError as error:
        if len(data) <= 2 * BLOCK:
            raise
        note = f"nothing was written: the record that begins in line {line:,} is longer than {len(data):,} bytes"
        raise LimitError(replace(problem, help=note) for problem in error.problems) from None


def _end_of_records(data: bytes, *, quoted: bool) -> int:
    """The end of the last record that is complete, or 0: the last newline outside of quotes."""
    at = data.rfind(b"\n")
    if quoted:
        odd = data.count(b'"', 0, at + 1) % 2
        while odd and at >= 0:
            quote = data.rfind(b'"', 0, at)  # all newlines behind it are within quotes, too
            at = data.rfind(b"\n", 0, quote)
            odd ^= data.count(b'"', at + 1, quote + 1) % 2
    return at + 1


def _end_of_first(data: bytes, *, quoted: bool) -> int:
    begin, at = 0, data.find(b"\n")
    odd = quoted and data.count(b'"', 0, max(at, 0)) % 2
    while odd and at >= 0:
        begin = data.find(b'"', at)  # all newlines before it are within quotes, too
        at = data.find(b"\n", begin) if begin >= 0 else -1
        odd ^= data.count(b'"', begin, max(at, begin)) % 2
    return at + 1 if at >= 0 else len(data)


def _without_empty_end(data: bytes) -> bytes:
    for end in (b"\r\n", b"\n", b"\r"):
        rest = data.removesuffix(end)
        if rest != data:
            return rest if not rest or rest.endswith(b"\n") else data
    return data
