"""The 14 queries of LUBM, written as Datalog, over LUBM(1) with the rules that univ-bench translates to: the published answers.

Data, ontology and answers are read from the folder that the environment variable EVERMAT_DATA names; without it these tests are skipped.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import evermat
from bench.universities import ONTOLOGIES
from tests.support import environment
from tests.support.environment import LASTING

DATA = environment.DATA / "lubm"
COUNTS = (4, 0, 6, 34, 719, 7790, 67, 7790, 208, 4, 224, 15, 1, 5916)

PREFIX = ".prefix ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n"
DEPARTMENT = "http://www.Department0.University0.edu"
UNIVERSITY = "<http://www.University0.edu>"
QUERIES = [
    f"ub:GraduateStudent(x), ub:takesCourse(x, <{DEPARTMENT}/GraduateCourse0>)",
    "ub:GraduateStudent(x), ub:University(y), ub:Department(z), "
    "ub:memberOf(x, z), ub:subOrganizationOf(z, y), ub:undergraduateDegreeFrom(x, y)",
    f"ub:Publication(x), ub:publicationAuthor(x, <{DEPARTMENT}/AssistantProfessor0>)",
    f"ub:Professor(x), ub:worksFor(x, <{DEPARTMENT}>), ub:name(x, y1), ub:emailAddress(x, y2), ub:telephone(x, y3)",
    f"ub:Person(x), ub:memberOf(x, <{DEPARTMENT}>)",
    "ub:Student(x)",
    f"ub:Student(x), ub:Course(y), ub:takesCourse(x, y), ub:teacherOf(<{DEPARTMENT}/AssociateProfessor0>, y)",
    f"ub:Student(x), ub:Department(y), ub:memberOf(x, y), ub:subOrganizationOf(y, {UNIVERSITY}), ub:emailAddress(x, z)",
    "ub:Student(x), ub:Faculty(y), ub:Course(z), ub:advisor(x, y), ub:teacherOf(y, z), ub:takesCourse(x, z)",
    f"ub:Student(x), ub:takesCourse(x, <{DEPARTMENT}/GraduateCourse0>)",
    f"ub:ResearchGroup(x), ub:subOrganizationOf(x, {UNIVERSITY})",
    f"ub:Chair(x), ub:Department(y), ub:worksFor(x, y), ub:subOrganizationOf(y, {UNIVERSITY})",
    f"ub:Person(x), ub:hasAlumnus({UNIVERSITY}, x)",
    "ub:UndergraduateStudent(x)",
]
COLUMNS = ["x", "x, y, z", "x", "x, y1, y2, y3", "x", "x", "x, y", "x, y, z", "x, y, z", "x", "x", "x, y", "x", "x"]
NUMBERS = range(1, len(QUERIES) + 1)

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="EVERMAT_DATA names no folder with data")


def rules() -> str:
    """The queries as rules of a program, each with a relation for its answers."""
    lines = [PREFIX]
    for number, columns, body in zip(NUMBERS, COLUMNS, QUERIES, strict=True):
        typed = ", ".join(f"{column}:term" for column in columns.split(", "))
        lines.append(f".decl q{number}({typed})\nq{number}({columns}) :- {body}.\n")
    return "".join(lines)


def published(number: int) -> set[tuple[str, ...]]:
    """The published answers, in the spelling of N-Triples."""
    with gzip.open(DATA / "answers-csv" / f"answers_query{number}.csv.gz", "rt", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    if head == ["NO ANSWERS."]:
        return set()
    assert [column.lower() for column in head] == COLUMNS[number - 1].split(", ")
    return {tuple(f"<{value}>" if value.startswith("http:") else f'"{value}"' for value in row) for row in rows}


def named(facts: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """The facts without blank nodes: those of two ontologies have different labels."""
    return {fact for fact in facts if not any(term.startswith("_:") for term in fact)}


def check(m: Any) -> None:
    """All answers are those that were published."""
    for number, count in zip(NUMBERS, COUNTS, strict=True):
        answers = set(m[f"q{number}"])
        assert len(answers) == count, f"query {number}"
        assert answers == published(number), f"query {number}"


@pytest.fixture(scope="module")
def univ_bench() -> Any:
    program = evermat.Program.parse(rules(), ontology=[DATA / "univ-bench.owl"])
    return program.materialise({}, rdf=[DATA / "lubm1.nt.gz"])


@pytest.mark.slow
def test_the_published_answers_are_published_in_the_published_numbers() -> None:
    assert [len(published(number)) for number in NUMBERS] == list(COUNTS)


def test_rules_give_the_published_answers(univ_bench: Any) -> None:
    check(univ_bench)


@pytest.mark.parametrize("number", NUMBERS)
def test_queries_give_the_published_answers(univ_bench: Any, number: int) -> None:
    answers = univ_bench.query(QUERIES[number - 1])
    order = [answers.columns.index(column) for column in COLUMNS[number - 1].split(", ")]
    assert {tuple(row[column] for column in order) for row in answers} == published(number)


@pytest.mark.slow
def test_the_ontology_of_our_generator_says_the_same(univ_bench: Any, tmp_path: Path) -> None:
    ontology = tmp_path / "universities.ttl"
    ontology.write_text(ONTOLOGIES["lubm"](), encoding="utf-8")
    program = evermat.Program.parse(rules(), ontology=[ontology])
    ours = program.materialise({}, rdf=[DATA / "lubm1.nt.gz"])
    check(ours)
    classes_and_properties = {name for name, _ in univ_bench.items() if name.startswith("<")}
    assert classes_and_properties == {name for name, _ in ours.items() if name.startswith("<")}
    for name in classes_and_properties:
        assert named(ours[name]) == named(univ_bench[name]), name


@LASTING
def test_spark_gives_the_published_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
    monkeypatch.chdir(tmp_path)
    program = evermat.Program.parse(rules(), ontology=[DATA / "univ-bench.owl"])
    check(program.materialise({}, rdf=[DATA / "lubm1.nt.gz"], engine=spark))
