"""Opens files for reading: what the system says about them becomes an error of ours, and what is compressed is not seen."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

from evermat.core import ask_for, check_input, check_stop, did_you_mean, open_input
from evermat.core import error_catalogue as errors
from evermat.io.error_report import fail
from evermat.io.locate import FileRef

_PIECE = 1 << 20  # bytes


@contextmanager
def failing(path: Path, what: str) -> Iterator[None]:
    """Turns what the system says about a file into an error of ours; `what` is read from it ('changes are')."""
    try:
        yield
    except FileNotFoundError as error:
        hint = f"there is no folder `{path.parent}` either"
        with suppress(OSError):
            hint = did_you_mean(path.name, [other.name for other in path.parent.iterdir()])
        raise fail(errors.NO_FILE, hint, path=path, what=what) from error
    except OSError as error:
        raise fail(errors.CANNOT_READ, path=path, what=what, why=error.strerror or str(error)) from error


class CheckedStream:
    """A stream whose reader may be stopped by the limits of its job, before each piece."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        check_stop()
        return self._stream.read(size) if size >= 0 else read_all(self._stream)


def read_all(stream: BinaryIO) -> bytes:
    """All that is left of a stream; read in pieces, as a small file may hold a lot."""
    pieces: list[bytes] = []
    size = 0
    while piece := stream.read(_PIECE):
        pieces.append(piece)
        size += len(piece)
        check_stop()
        ask_for(size)  # for the pieces together
    return b"".join(pieces)


@contextmanager
def open_text(ref: FileRef) -> Iterator[BinaryIO]:
    """The text of a file, decompressed where its name says so; an empty file is an empty text also then."""
    refuse_folder(ref.path)
    with open_input(ref.path) as file, decompressed(file, ref) as text:
        yield text


def refuse_folder(path: Path) -> None:
    """Raises an error if the file is a folder."""
    check_input(path)
    if path.is_dir():
        raise fail(errors.IS_FOLDER, path=path, why="only a `.parquet` may be a folder of files")


@contextmanager
def decompressed(stream: BinaryIO, ref: FileRef) -> Iterator[BinaryIO]:
    """The text of a file whose bytes come from a stream; one that is not read by blocks can be read a second time."""
    if ref.format.block_reader is None and not stream.seekable():
        stream = BytesIO(read_all(stream))
    if not ref.gzip:
        yield cast(BinaryIO, CheckedStream(stream))
        return
    file = stream if isinstance(stream, BufferedReader) else BufferedReader(cast(Any, stream))
    start = file.peek(2)[:2]
    if start and start != b"\x1f\x8b":
        raise fail(errors.NOT_GZIP, path=ref.path)
    with gzip.open(file) as text:
        try:
            yield cast(BinaryIO, CheckedStream(cast(BinaryIO, text)))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            why = "it breaks off" if isinstance(error, EOFError) else str(error)
            raise fail(errors.BAD_GZIP, path=ref.path, why=why) from error
