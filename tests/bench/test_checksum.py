"""Checksums: what they depend on, and a second formulation of them in SQL."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import checksum
from bench.checksum import MULTIPLIER, SEED, answer_of_file, answer_of_rows

ROWS = np.array([[1, 2], [2, 1], [0, 0], [-1, 7], [2**62, -(2**62)]])


def write(path: Path, rows: np.ndarray, end: str = "\n") -> Path:
    path.write_text("\n".join("\t".join(map(str, row)) for row in rows.tolist()) + end)
    return path


def in_python(rows: np.ndarray) -> int:
    """The definition, one row after another in unbounded integers."""
    total = 0
    for row in rows.tolist():
        h = SEED
        for value in row:
            h = ((h ^ (value % 2**64)) * MULTIPLIER) % 2**64
            h ^= h >> 32
        total += h
    return total % 2**64


def test_the_definition() -> None:
    assert answer_of_rows(ROWS).checksum == in_python(ROWS)


def test_order_of_rows_does_not_matter_but_everything_else_does() -> None:
    answer = answer_of_rows(ROWS)
    assert answer_of_rows(ROWS[::-1]) == answer
    assert answer_of_rows(ROWS[:, ::-1]) != answer
    assert answer_of_rows(ROWS[:-1]) != answer
    assert answer_of_rows(np.vstack([ROWS, ROWS[:1]])) != answer
    swapped = ROWS.copy()
    swapped[:2, 1] = swapped[1::-1, 1]
    assert answer_of_rows(swapped) != answer


@pytest.mark.parametrize("chunk", [1, 3, 7, 1 << 20])
@pytest.mark.parametrize("end", ["\n", ""])
def test_a_file_is_read_in_chunks_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, end: str
) -> None:
    monkeypatch.setattr(checksum, "CHUNK_BYTES", chunk)
    assert answer_of_file(write(tmp_path / "r.csv", ROWS, end), 2) == answer_of_rows(ROWS)


def test_an_empty_file_is_an_empty_relation(tmp_path: Path) -> None:
    (tmp_path / "r.csv").touch()
    assert answer_of_file(tmp_path / "r.csv", 2) == answer_of_rows(ROWS[:0])


@pytest.mark.parametrize("text", ["1\t2\n3\n", "1\t2\t3\n4\n", "1,2\n", "a\tb\n", "1 2\n", "1\t2.5\n"])
def test_anything_but_a_table_of_integers_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(ValueError, match="not a table"):
        answer_of_file(tmp_path / "r.csv", 2)


def test_the_same_in_sql(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    path = write(tmp_path / "r.csv", ROWS)
    mask = f"{2**64 - 1}::HUGEINT"
    mixed = f"{SEED}::HUGEINT"
    for column in "ab":
        mixed = f"((xor({mixed}, {column}::HUGEINT & {mask}) * {MULTIPLIER}::HUGEINT) & {mask})"
        mixed = f"xor({mixed}, {mixed} >> 32::HUGEINT)"
    # (h ^ column) < 2**64 and the multiplier < 2**61, so that products stay below 2**127.
    found = duckdb.execute(
        f"SELECT count(*), sum({mixed}) & {mask} FROM read_csv("
        f"'{path}', delim='\t', header=false, columns={{'a': 'BIGINT', 'b': 'BIGINT'}})"
    ).fetchone()
    answer = answer_of_rows(ROWS)
    assert found == (answer.rows, answer.checksum)
