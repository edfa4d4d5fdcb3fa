"""Files of triples are compared by what they say, not by how they name blank nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import differences

RDF_TYPE = f"<{differences.RDF}type>"
ONTOLOGY = f"""\
<http://u/Chair> <{differences.OWL}equivalentClass> _:{{0}} .
_:{{0}} <{differences.OWL}intersectionOf> _:{{1}} .
_:{{1}} <{differences.RDF}first> <http://u/Person> .
_:{{1}} <{differences.RDF}rest> _:{{2}} .
_:{{2}} <{differences.RDF}first> _:{{3}} .
_:{{2}} <{differences.RDF}rest> <{differences.RDF}nil> .
_:{{3}} <{differences.OWL}onProperty> <http://u/headOf> .
_:{{3}} <{differences.OWL}someValuesFrom> <http://u/Department> .
<http://u/a> {RDF_TYPE} _:{{3}} .
"""


def test_blank_nodes_are_the_same_if_they_say_the_same(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.nt", tmp_path / "ours.nt"
    theirs.write_text(
        ONTOLOGY.format("a", "b", "c", "d") + f'<http://u/a> <http://u/name> "a"^^<{differences.XSD}string> .\n'
    )
    ours.write_text(ONTOLOGY.format("b", "d", "x1", "a") + '<http://u/a> <http://u/name> "a" .\n')
    assert differences.compare(theirs, ours) == ({}, {}, 10)
    restriction = "_:[owl:onProperty <http://u/headOf>; owl:someValuesFrom <http://u/Department>]"
    assert ("<http://u/a>", "rdf:type", restriction) in differences.triples_in(ours)


def test_what_one_has_and_the_other_has_not(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.nt", tmp_path / "ours.nt"
    both = f"<http://u/a> {RDF_TYPE} <http://u/C> .\n"
    theirs.write_text(both + "<http://u/b> <http://u/p> <http://u/c> .\n<http://u/a> <http://u/p> <http://u/c> .\n")
    ours.write_text(f"<http://u/a> {RDF_TYPE} <http://u/D> .\n" + both)
    only_theirs, only_ours, common = differences.compare(theirs, ours)
    assert only_theirs == {("facts", "<http://u/p>"): differences.Kind(2, "<http://u/a> <http://u/p> <http://u/c>")}
    assert only_ours == {("facts", "<http://u/D>"): differences.Kind(1, "<http://u/a> rdf:type <http://u/D>")}
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
    assert differences.kind((subject, property_, value))[0] == why
