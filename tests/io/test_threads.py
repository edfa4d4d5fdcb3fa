"""Files are read and written in many threads at once, each as if it were alone."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from threading import get_ident

import pytest

from evermat.core import EvermatError
from evermat.io import Outputs, read_relation
from evermat.language.model import Io
from tests.io.relations import relation, rows_of, table, write
from tests.io.test_errors import COMMA, QUADS, TRIG, TRIPLES, TURTLE, XML
from tests.support.many_threads import THREADS, at_once, same_in_threads

NUMBERS = [(number, f"s{number % 7}", number / 2) for number in range(-50, 50)]
TERMS = [(f"<http://x/{number}>", "<http://x/p>", f'"é {number}"@en') for number in range(60)]
ONE = table(relation("n"), [(1,)])


def written(types: str, rows: list[tuple], path: str, **options: object) -> Callable[[Path], object]:
    """Writes a file and reads it: its facts, and its size unless the format says when it was made."""

    def run(folder: Path) -> object:
        io = Io(relation(types), path=path, **options)  # type: ignore[arg-type]
        write(table(io.relation, rows), io, folder)
        return rows_of(read_relation(io, folder)), (folder / path).stat().st_size

    return run


def malformed(types: str, path: str, content: bytes, **options: object) -> Callable[[Path], object]:
    """What is said about a file with some content."""

    def run(folder: Path) -> object:
        (folder / path).write_bytes(content)
        try:
            return rows_of(read_relation(Io(relation(types), path=path, **options), folder))  # type: ignore[arg-type]
        except EvermatError as error:
            return str(error).replace(str(folder), "")

    return run


CASES = [
    *(written("nsf", NUMBERS, path) for path in ("r.csv", "r.csv.gz", "r.jsonl", "r.jsonl.gz", "r.parquet")),
    written("nsf", NUMBERS, "q.csv", headers=True, **COMMA),
    *(written("ttt", TERMS, f"r.{ending}") for ending in ("nt", "nq", "ttl", "trig", "rdf", "nt.gz", "jsonl")),
    malformed("ttt", "b.ttl", TURTLE),
    malformed("tttt", "b.trig", TRIG),
    malformed("ttt", "b.rdf", XML.encode()),
    malformed("tts", "b.nt", TRIPLES),
    malformed("tttt", "b.nq", QUADS),
    malformed("sn", "b.csv", b'"a",1\n"b"c,2\nd"e,3\n"f\ng,4\n', **COMMA),
    malformed("f", "b.facts", b"1\nNaN\n1e400\nInfinity\n"),
    malformed("n", "b.gz", gzip.compress(b"1\n" * 100, mtime=0)[:-9]),
    malformed("n", "b.jsonl", b"[1]\n[true]\n[2\n"),
    malformed("n", "b.parquet", b"hello world, not parquet"),
]


def test_files_of_all_formats(tmp_path: Path) -> None:
    def run(case: Callable[[Path], object]) -> object:
        folder = tmp_path / str(get_ident())
        folder.mkdir(exist_ok=True)
        return case(folder)

    same_in_threads(run, CASES)


def test_outputs_that_fail_take_no_folder_from_others(tmp_path: Path) -> None:
    def put(folder: Path, number: int) -> Callable[[], None]:
        def run() -> None:
            with Outputs() as out:
                out.write(ONE, Io(relation("n"), path=f"{number}.csv"), folder)
                if number % 2:
                    out.commit()

        return run

    for attempt in range(60):
        folder = tmp_path / str(attempt) / "new"
        at_once(*(put(folder, number) for number in range(THREADS)))
        assert sorted(path.name for path in folder.iterdir()) == [f"{number}.csv" for number in range(1, THREADS, 2)]


def test_the_last_of_several_outputs_to_one_file_counts_as_a_whole(tmp_path: Path) -> None:
    def put(number: int) -> Callable[[], None]:
        return lambda: write(table(relation("n"), [(number,)] * 1000), Io(relation("n"), path="r.csv"), tmp_path)

    at_once(*map(put, range(THREADS)), seconds=0.3)
    (path,) = tmp_path.iterdir()
    lines = path.read_text().split()
    assert lines == [lines[0]] * 1000


def test_what_is_printed_is_not_mixed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    def put(number: int) -> Callable[[], None]:
        facts, io = table(relation("n"), [(number,)] * 100), Io(relation("n"), "stdout")
        return lambda: write(facts, io, Path())

    at_once(*map(put, range(THREADS)), seconds=0.2)
    parts = capsysbinary.readouterr().out.split(b"---------------\n")[1:]
    values = {b"".join(line for line in part.splitlines() if line.isdigit()) for part in parts}
    assert values == {str(number).encode() * 100 for number in range(THREADS)}
