"""What tasks do, without Spark: every cut of a file gives the same facts, and nothing that goes wrong is lost."""

from __future__ import annotations

import errno
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.encoding import decode_rows
from evermat.core.source import Source
from evermat.language.compile import compile_program
from evermat.language.model import Io
from evermat.spark.input.arrow_files import ArrowFileFacts
from evermat.spark.input.read_task import ContentReader, Outcome, Split, SplitReader, write_facts

TYPES = ".decl r(s:symbol, n:number, u:unsigned, f:float, t:term) .input r .decl on() .input on"


def inputs() -> dict[str, Io]:
    return {io.relation.name: io for io in compile_program(Source("<test>", TYPES)).inputs}


def facts(outcomes: list[Outcome], io: Io) -> list[tuple[Any, ...]]:
    dictionary = Dictionary(["already there"])
    rows = sum(outcome.rows for outcome in outcomes)
    batches = list(ArrowFileFacts([Path(outcome.file) for outcome in outcomes], rows).batches(io.relation, dictionary))
    found = [row for batch in batches for row in decode_rows(batch, io.relation.types, dictionary)]
    assert len(found) == rows
    return found


def over_the_wire(outcome: Outcome) -> Outcome:
    names = ("number", "path", "file", "rows", "lines", "details", "failure")
    return Outcome.of(dict(zip(names, outcome.record(), strict=True)))


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.integers(1, 400), st.integers(1, 60))
def test_all_types_in_pieces(lines: int, pieces: int) -> None:
    rows = [(f"s{i % 7}", i - 5, 2**64 - 1 - i, i / 4, f"<http://e.org/{i}>") for i in range(lines)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "r.facts")
        file.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
        cuts = np.linspace(0, file.stat().st_size, pieces + 1).astype(int).tolist()
        io = inputs()["r"]
        splits = tuple(Split(io, str(file), a, b) for a, b in pairwise(cuts))
        reader = SplitReader(splits, folder)
        outcomes = [over_the_wire(reader.read(number)) for number in range(pieces)]
        assert sum(outcome.lines for outcome in outcomes) == lines
        assert facts(outcomes, io) == rows
        assert list(Path(folder).glob("*.arrow")) == []


@pytest.mark.parametrize(("text", "present"), [("", False), ("()\n", True)])
def test_a_relation_without_columns(tmp_path: Path, text: str, present: bool) -> None:
    (tmp_path / "on.facts").write_text(text, encoding="utf-8")
    io = inputs()["on"]
    outcome = SplitReader((Split(io, str(tmp_path / "on.facts")),), str(tmp_path)).read(0)
    assert facts([over_the_wire(outcome)], io) == [()] * present


def test_problems_come_over_the_wire(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_text("a\tb\n", encoding="utf-8")
    outcome = SplitReader((Split(inputs()["r"], str(tmp_path / "r.facts")),), str(tmp_path)).read(0)
    assert outcome.problems
    back = over_the_wire(outcome)
    assert [problem.render() for problem in back.problems] == [problem.render() for problem in outcome.problems]


def test_contents_that_came_from_elsewhere(tmp_path: Path) -> None:
    io = inputs()["r"]
    reader = ContentReader(io, str(tmp_path))
    good = reader.read("hdfs://host/r.facts", b"a\t1\t2\t3\t_:t\n")
    assert facts([good], io) == [("a", 1, 2, 3.0, "_:t")]
    (problem,) = reader.read("hdfs://host/r.facts", b"a\t1\t2\t3\t_:t\nb\n").problems
    assert problem.render().splitlines()[1].strip() == "--> hdfs://host/r.facts:2:2"


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "on.facts").write_text("()\n", encoding="utf-8")

    def full(_table: pa.Table, file: Path) -> None:
        file.write_bytes(b"a part")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("evermat.spark.input.read_task.write_facts", full)
    outcome = SplitReader((Split(inputs()["on"], str(tmp_path / "on.facts")),), str(tmp_path)).read(0)
    assert (outcome.rows, outcome.failure) == (0, "No space left on device")
    assert list(tmp_path.glob("*.arrow")) == []


def test_symbols_are_dictionaries_where_they_repeat(tmp_path: Path) -> None:
    table = pa.table({"few": ["a", "b"] * 100, "many": [str(i) for i in range(200)]})
    write_facts(table, tmp_path / "x.arrow")
    schema = pa.ipc.open_file(pa.memory_map(str(tmp_path / "x.arrow"))).schema
    assert [pa.types.is_dictionary(field.type) for field in schema] == [True, False]
