"""The benchmark of OWL 2 RL compares what reasoners say, not how they name blank nodes; it runs through and writes what it measured."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import owl

LASTING = pytest.mark.skipif(os.environ.get("EVERMAT_LONG") != "1", reason="takes long; EVERMAT_LONG=1 runs it")
RDF_TYPE = f"<{owl.RDF}type>"
ONTOLOGY = f"""\
<http://u/Chair> <{owl.OWL}equivalentClass> _:{{0}} .
_:{{0}} <{owl.OWL}intersectionOf> _:{{1}} .
_:{{1}} <{owl.RDF}first> <http://u/Person> .
_:{{1}} <{owl.RDF}rest> _:{{2}} .
_:{{2}} <{owl.RDF}first> _:{{3}} .
_:{{2}} <{owl.RDF}rest> <{owl.RDF}nil> .
_:{{3}} <{owl.OWL}onProperty> <http://u/headOf> .
_:{{3}} <{owl.OWL}someValuesFrom> <http://u/Department> .
<http://u/a> {RDF_TYPE} _:{{3}} .
"""


def test_blank_nodes_are_the_same_if_they_say_the_same(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.nt", tmp_path / "ours.nt"
    theirs.write_text(ONTOLOGY.format("a", "b", "c", "d") + f'<http://u/a> <http://u/name> "a"^^<{owl.XSD}string> .\n')
    ours.write_text(ONTOLOGY.format("b", "d", "x1", "a") + '<http://u/a> <http://u/name> "a" .\n')
    assert owl.compare(theirs, ours) == ({}, {}, 10)
    restriction = "_:[owl:onProperty <http://u/headOf>; owl:someValuesFrom <http://u/Department>]"
    assert ("<http://u/a>", "rdf:type", restriction) in owl.triples_in(ours)


def test_what_one_has_and_the_other_has_not(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.nt", tmp_path / "ours.nt"
    both = f"<http://u/a> {RDF_TYPE} <http://u/C> .\n"
    theirs.write_text(both + "<http://u/b> <http://u/p> <http://u/c> .\n<http://u/a> <http://u/p> <http://u/c> .\n")
    ours.write_text(f"<http://u/a> {RDF_TYPE} <http://u/D> .\n" + both)
    only_theirs, only_ours, common = owl.compare(theirs, ours)
    assert only_theirs == {("facts", "<http://u/p>"): owl.Kind(2, "<http://u/a> <http://u/p> <http://u/c>")}
    assert only_ours == {("facts", "<http://u/D>"): owl.Kind(1, "<http://u/a> rdf:type <http://u/D>")}
    assert common == 1


@pytest.mark.parametrize(
    ("triple", "why"),
    [
        ('"a" owl:sameAs "a"', "a literal as subject"),
        ("<u:a> owl:sameAs <u:a>", "everything is the same as itself"),
        ("<u:a> owl:sameAs <u:b>", "facts"),
        ("<u:a> rdf:type owl:Thing", "everything is a thing"),
        ("xsd:string rdf:type rdfs:Datatype", "about the vocabularies themselves"),
        ("owl:Nothing rdfs:subClassOf <u:C>", "about the vocabularies themselves"),
        ("<u:C> rdfs:subClassOf <u:C>", "everything is below itself"),
        ("<u:C> rdfs:subClassOf owl:Thing", "everything is below the top"),
        ("<u:C> rdf:type owl:Class", "what names stand for"),
        ("<u:a> rdf:type _:[owl:onProperty <u:p>]", "instances of classes without a name"),
        ("<u:C> rdfs:subClassOf _:[owl:onProperty <u:p>]", "about classes without a name"),
        ("<u:C> rdfs:subClassOf <u:D>", "axioms that follow from axioms"),
        ("<u:a> rdf:type <u:C>", "facts"),
        ("<u:a> <u:p> <u:b>", "facts"),
    ],
)
def test_kinds(triple: str, why: str) -> None:
    subject, property_, value = triple.split(" ", 2)
    assert owl.kind((subject, property_, value))[0] == why


def parts_of(options: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs it without the others, which need not be installed."""
    everywhere = ["--quick", "--engines", "none", "--work", str(folder), "--out", str(folder / "results")]
    monkeypatch.setattr(sys, "argv", ["owl", *everywhere, *options])
    owl.main()
    return json.loads((folder / "results" / "owl-quick.json").read_text(encoding="utf-8"))["parts"]


def test_it_runs_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    parts = parts_of(["--only", "lubm"], tmp_path, monkeypatch)
    assert (tmp_path / "results" / "owl-quick.md").read_text(encoding="utf-8") in capsys.readouterr().out
    assert parts.keys() == {"lubm"}
    assert {one["status"] for one in parts["lubm"]} == {"ok"}
    assert [one["engine"] for one in parts["lubm"]] == ["evermat", "evermat, exported", "evermat, over triples"]


@LASTING
def test_all_parts_run_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts_of(["--only", "differences,parsing"], tmp_path, monkeypatch)
    parts = parts_of(["--only", "uobm"], tmp_path, monkeypatch)  # the others are kept
    assert parts["differences"] == []
    assert {one["format"] for one in parts["parsing"]} == {"N-Triples", "Turtle", "RDF/XML"}
    (one,) = parts["uobm"]
    assert one["status"] == "ok"
    assert one["triples_out"] > 2 * one["triples_in"]
    assert one["same"] > 0
