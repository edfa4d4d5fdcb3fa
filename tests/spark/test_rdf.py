"""RDF files and ontologies on Spark: the same triples as in memory, wherever rules are evaluated and files are cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evermat
from evermat.spark.input import plan
from tests.support.environment import LONG

pytestmark = pytest.mark.spark

ONTOLOGY = """\
@prefix e: <http://e/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:Woman rdfs:subClassOf e:Person ; owl:disjointWith e:Man .
e:ancestor a owl:TransitiveProperty ; rdfs:domain e:Person .
e:parent rdfs:subPropertyOf e:ancestor ; owl:inverseOf e:child .
e:mother a owl:FunctionalProperty ; rdfs:subPropertyOf e:parent .
"""
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An ontology and data in two formats; the lines are cut into many pieces."""
    monkeypatch.setattr(plan, "_PIECE", 1 << 10)
    (tmp_path / "o.ttl").write_text(ONTOLOGY)
    chain = [f"<http://e/n{i}> <http://e/parent> <http://e/n{i + 1}> ." for i in range(40)]
    labels = [f'_:n{i} <http://e/label> "{i}"@en .' for i in range(20)]
    (tmp_path / "d.nt").write_text("\n".join([*chain, *labels]) + "\n")
    (tmp_path / "d.ttl").write_text(
        "@prefix e: <http://e/> . e:n3 e:mother e:m1, e:m2 . e:m1 a e:Woman . [] e:label 'x', e:n1 ."
    )
    return {"ontology": tmp_path / "o.ttl", "rdf": [tmp_path / "d.nt", tmp_path / "d.ttl"]}


def rows(m: Any, facts: str = "all") -> Iterator[tuple[str, str, str]]:
    for table in m.triples(facts):
        yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


@pytest.mark.parametrize("place", ["driver", "cluster"] if LONG else ["cluster"])
def test_the_same_triples_as_in_memory(spark: Any, files: dict[str, Any], place: str, tmp_path: Path) -> None:
    program = evermat.Program.parse("", ontology=files["ontology"])
    own = {"<http://e/Man>": [("<http://e/adam>",)], "<http://e/parent>": [("<http://e/n0>", "<http://e/adam>")]}
    wanted = program.materialise(own, rdf=files["rdf"])
    m = program.materialise(own, rdf=files["rdf"], engine=spark, place=place)
    try:
        for facts in ("all", "asserted", "inferred"):
            assert list(rows(m, facts)) == list(rows(wanted, facts))
        assert ("<http://e/n0>", "<http://e/ancestor>", "<http://e/m2>") in set(rows(m, "inferred"))
        assert m.export(tmp_path / "x.nt.gz") == wanted.export(tmp_path / "y.nt.gz")
        change = {"<http://e/Man>": [("<http://e/m2>",)]}
        for made in (m, wanted):
            with pytest.raises(evermat.DataError, match="DisjointClasses") as error:
                made.update(insert=change)
            assert "`<http://e/Woman>(<http://e/m2>)`" in error.value.problems[0].note
        assert list(rows(m)) == list(rows(wanted))
    finally:
        m.close()


def test_what_is_malformed_is_told_or_counted(spark: Any, files: dict[str, Any]) -> None:
    path = files["rdf"][0]
    path.write_text(path.read_text() + '<http://e/a> <http://e/p> .\n_:a <http://e/p> "1" .\n')
    program = evermat.Program.parse("")
    with pytest.raises(evermat.DataError) as error:
        program.materialise(rdf=path, engine=spark)
    (problem,) = error.value.problems
    assert f"{path}:61:27" in problem.render()
    m = program.materialise(rdf=path, engine=spark, skip_malformed=True)
    assert m.skipped == {str(path): 1}
    assert len(m["other_triple"]) == 61
    far = program.materialise(rdf=[path.as_uri(), str(files["rdf"][1])], engine=spark, skip_malformed=True)
    assert list(far.skipped.values()) == [1]
    assert len(far["other_triple"]) == 61 + 5
    assert len({s for s, _, _ in far["other_triple"] if s.startswith("_:")}) == 20 + 1 + 1
