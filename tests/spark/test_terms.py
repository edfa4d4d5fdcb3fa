"""Columns of terms on Spark: tasks check files and frames, and updates refuse what is not a term."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rdflib

import evermat
from evermat import DataError, Program

pytestmark = pytest.mark.spark

PROGRAM = ".decl p(x:term, y:term)\n.decl q(y:term)\nq(y) :- p(_, y)."
GOOD = [("<http://a/é>", '"x"@EN'), ("_:b", '"s"^^<http://www.w3.org/2001/XMLSchema#string>')]
HELD = {("<http://a/é>", '"x"@en'), ("_:b", '"s"')}
BAD = [("<a:a>", '"x"'), ("http://a/b", '"x"')]
WHY = "an IRI stands between `<` and `>`"


@pytest.mark.parametrize("place", ["auto", "cluster"])
def test_terms(spark: Any, tmp_path: Path, place: Any) -> None:
    program = Program.parse(f"{PROGRAM}\n.input p")
    for name, rows in (("good", GOOD), ("bad", BAD)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.facts").write_text("".join("\t".join(row) + "\n" for row in rows))
    options = {"engine": spark, "place": place, "scratch": tmp_path / "scratch"}
    (tmp_path / "scratch").mkdir()
    with pytest.raises(DataError, match=r"p.facts:2:1\n"):
        program.materialise(inputs=tmp_path / "bad", **options)
    with program.materialise(inputs=tmp_path / "good", **options) as m:
        assert set(m["p"]) == HELD
        for given in (BAD, spark.createDataFrame(BAD, "x string, y string")):
            with pytest.raises(DataError) as error:
                m.update({"p": given})
            assert [problem.details["why"] for problem in error.value.problems] == [WHY]
        with pytest.raises(DataError):
            m.update(delete={"p": BAD})
        m.update(
            {"p": [(rdflib.URIRef("a:a"), evermat.literal(1))]},
            delete={"p": [(rdflib.BNode("b"), rdflib.Literal("s"))]},
        )
        assert set(m["q"]) == {('"x"@en',), ('"1"^^<http://www.w3.org/2001/XMLSchema#integer>',)}
        assert (rdflib.URIRef("a:a"), evermat.literal(1)) in m["p"]
        m.update({"p": spark.createDataFrame(GOOD, "x string, y string")})
        assert set(m["p"]) > HELD


def test_graphs(spark: Any) -> None:
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("a:a"), rdflib.URIRef("a:p"), rdflib.Literal("x", lang="EN")))
    program = Program.parse(".decl triple(s:term, p:term, o:term)")
    for given in ({"rdf": graph}, {"facts": {"triple": graph}}):
        with program.materialise(engine=spark, **given) as m:
            assert set(m["triple"]) == {("<a:a>", "<a:p>", '"x"@en')}
