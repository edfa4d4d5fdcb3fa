"""Lines of ranges of bytes, as Spark cuts files, give the facts and errors of whole files: for all cuts of odd texts. No JVM."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from evermat.core.errors import DataError
from evermat.io import read_relation
from evermat.language import Column, Io, Relation, Type
from evermat.spark.input.line_task import LineReader
from evermat.spark.input.outcomes import located
from evermat.spark.input.read_task import Outcome

S, N = Type.SYMBOL, Type.NUMBER
LINES = [b"a\t1", b"a\t2\r", b"\t3", b"x y\t4", b"\xc3\xa9\t5", b"<http://e/a> <http://e/b> _:c ."]
ODD = [b"only one", b"", b"\r", b"a\tb\tc", b"\xff\t\xfe", b"\xef\xbb\xbf\tb", b'"a\t1']


def relation(*types: Type) -> Relation:
    return Relation("r", tuple(Column(f"c{i}", type_, str(type_)) for i, type_ in enumerate(types)))


def lines_of(data: bytes) -> list[tuple[int, bytes]]:
    """Lines with their offsets, as Hadoop has them: without newlines, and without a byte order mark at the beginning."""
    found, at = [], 0
    for line in data.split(b"\n")[: None if data and not data.endswith(b"\n") else -1]:
        found.append((at, line.removeprefix(b"\xef\xbb\xbf") if not at else line))
        at += len(line) + 1
    return found


def batches(path: str, data: bytes, piece: int, rng: random.Random) -> Iterator[pa.RecordBatch]:
    """What a task gets of a file that is cut after every so many bytes: a line belongs to the range before if it begins at a cut."""
    rows = []
    for start in range(0, max(len(data), 1), piece):
        end = min(start + piece, len(data))
        for at, line in lines_of(data):
            if start < at <= end or at == start == 0:
                rows.append((line + b"\n", path, start, end >= len(data)))
    while rows:
        part, rows = rows[: (size := rng.randrange(1, 9))], rows[size:]
        columns = [list(column) for column in zip(*part, strict=True)]
        yield pa.record_batch(
            [pa.array(columns[0], pa.binary()), columns[1], pa.array(columns[2], pa.int64()), columns[3]],
            ["text", "path", "start", "last"],
        )


def in_ranges(io: Io, file: Path, folder: Path, piece: int, rng: random.Random) -> object:
    """The facts, or the problems, of a file that is read in ranges."""
    reader = LineReader(io, str(folder))
    rows = [row for batch in reader(batches(str(file), file.read_bytes(), piece, rng)) for row in batch.to_pylist()]
    outcomes = sorted(map(Outcome.of, rows), key=lambda outcome: outcome.number)
    if outcomes and outcomes[-1].number % 2:
        outcomes.pop()
    if problems := located(outcomes):
        return [problem.render() for problem in problems]
    found: list[tuple[object, ...]] = []
    for outcome in outcomes:
        with pa.ipc.open_file(outcome.file) as facts:
            table = facts.read_all()
        assert table.num_rows == outcome.rows
        found += (
            zip(*(column.to_pylist() for column in table.columns), strict=True)
            if io.relation.columns
            else [()] * table.num_rows
        )
    return sorted(set(found))


def whole(io: Io, folder: Path) -> object:
    try:
        table = read_relation(io, folder)
    except DataError as error:
        return [problem.render() for problem in error.problems]
    if not io.relation.columns:
        return [()] * min(table.num_rows, 1)
    return sorted(set(zip(*(column.to_pylist() for column in table.columns), strict=True)))


@pytest.mark.parametrize("ending", ["facts", "nt", "jsonl"])
def test_any_cut_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    rng = random.Random(ending)
    (tmp_path / "out").mkdir()
    file = tmp_path / f"r.{ending}"
    for _ in range(25):
        monkeypatch.setattr("evermat.spark.input.line_task._TEXT", rng.randrange(1, 60))
        monkeypatch.setattr("evermat.spark.input.line_task._ROWS", rng.randrange(1, 20))
        lines = rng.choices(LINES, k=rng.randrange(12)) + rng.choices(ODD, k=rng.choice([0, 0, 1, 14]))
        rng.shuffle(lines)
        if ending == "jsonl":
            lines = [b'["a", 1]' if line in LINES else line for line in lines]
        mark = rng.choice([b"", b"\xef\xbb\xbf"])
        end = rng.choice([b"", b"\n", b"\n\n", b"\r\n\r\n", b"\n\r", b"\na\t7"])
        file.write_bytes(mark + b"\n".join(lines) + end)
        types = rng.choice([(S, N), (S, S), (S,), (N,), ()])
        if ending == "nt":
            types = (Type.TERM,) * 3
        io = Io(relation(*types), path=file.name, headers=rng.random() < 0.3)
        expected = whole(io, tmp_path)
        for piece in (1, 2, 5, 17, 1 << 20):
            assert in_ranges(io, file, tmp_path / "out", piece, rng) == expected, (file.read_bytes(), types, piece, io)


def test_values_with_newlines_need_one_range(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    file = tmp_path / "r.csv"
    io = Io(relation(S, N), path=file.name, rfc4180=True, delimiter=",", headers=True)
    rng = random.Random(1)
    for data in ('x,y\r\n"a\nb",1\n"c""\n\n",2', 'x,y\n"a\nb",1\n"open,2\n', '"x\ny",y\na,b\n"a\nb",c\n'):
        file.write_text(data, encoding="utf-8", newline="")
        assert in_ranges(io, file, tmp_path / "out", 1 << 20, rng) == whole(io, tmp_path)
