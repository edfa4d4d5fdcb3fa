"""Count and checksum of a result file of integers, the same for every engine.

Each row is mixed into 64 bits, column after column: ``h = (h ^ column) * K mod 2**64`` and then
``h ^= h >> 32``, starting from a constant. The checksum is the sum of all rows modulo 2**64, so
the order of rows does not matter but every row, its columns' order and its repetitions do.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.model import Answer

SEED = 0x243F6A8885A308D3
MULTIPLIER = 0x1D8E4E27C47D124F
CHUNK_BYTES = 16 << 20


def mix(rows: NDArray[np.int64]) -> int:
    """The checksum of an array with one row per fact."""
    h = np.full(len(rows), SEED, np.uint64)
    for column in rows.T:
        h ^= column.astype(np.uint64)
        h *= np.uint64(MULTIPLIER)
        h ^= h >> np.uint64(32)
    return int(h.sum(dtype=np.uint64))


def answer_of_rows(rows: NDArray[np.int64]) -> Answer:
    """The answer held by an array of distinct rows."""
    return Answer(len(rows), mix(rows))


def answer_of_file(path: Path, columns: int) -> Answer:
    """The answer held by a tab-separated file of integers without a header."""
    count = total = 0
    rest = b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            rows = _parse(whole + newline, columns)
            count, total = count + len(rows), total + mix(rows)
    if rest:
        rows = _parse(rest + b"\n", columns)
        count, total = count + len(rows), total + mix(rows)
    return Answer(count, total % 2**64)


def _parse(text: bytes, columns: int) -> NDArray[np.int64]:
    """Rows of integers; ValueError where the text is anything else."""
    characters = np.frombuffer(text, np.uint8)
    separators = characters[(characters == ord("\t")) | (characters == ord("\n"))]
    wanted = np.frombuffer(b"\t" * (columns - 1) + b"\n", np.uint8)
    lines, left = divmod(len(separators), columns)
    if left or (separators.reshape(lines, columns) != wanted).any():
        raise ValueError(f"not a table of {columns} tab-separated columns")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            numbers = np.fromstring(text.decode("ascii"), np.int64, sep=" ")
        except (DeprecationWarning, ValueError) as problem:
            raise ValueError(f"not a table of integers: {problem}") from None
    if len(numbers) != lines * columns:
        raise ValueError(f"not a table of {columns} integers in each line")
    return numbers.reshape(lines, columns)
