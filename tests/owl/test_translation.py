"""Ontologies to programs: what every kind of axiom becomes, what is listed as beyond rules, and what is refused.

The cases are ontologies in `cases`, each beside the program that it becomes, and malformed ones in `cases/bad`, beside the message.
With EVERMAT_UPDATE_GOLDEN=1 the expected texts are written again, to be read before they are kept.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.core.errors import DataError
from evermat.language.terms import quote
from evermat.owl import load
from evermat.owl.rules.collect import _renamed
from evermat.owl.rules.model import Link, Member
from evermat.owl.translation import Translation, translate
from tests.support.environment import DATA, NEEDS_DATA

CASES = Path(__file__).parent / "cases"
FORMATS = (".ttl", ".ofn", ".owx", ".owl", ".obo")
PREFIXES = """
@prefix : <http://example.org/t#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def cases(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix in FORMATS)


def expect(path: Path, text: str) -> None:
    if os.environ.get("EVERMAT_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def translated(folder: Path, text: str, name: str = "t.ttl") -> Translation:
    path = folder / name
    path.write_text(PREFIXES + text if name.endswith(".ttl") else text, encoding="utf-8")
    return translate([path])


def rules(translation: Translation) -> list[str]:
    return [line for line in translation.text().splitlines() if line and not line.startswith(("//", "."))]


# --- every kind of axiom -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", cases(CASES))
def test_cases(name: str) -> None:
    translation = translate([CASES / name])
    text = translation.text()
    expect(CASES / f"{name}.dl", text)
    program = evermat.Program.parse(text)
    assert not program.warnings
    for options in ({"declare": True}, {"facts": True}, {"forbid": False}):
        evermat.Program.parse(translation.text(**options))
    triples = evermat.Program.parse(f".decl triple(s:term, p:term, o:term)\n{translation.text(triples=True)}")
    assert not [name for name in triples.relations if name.startswith("<")]


@pytest.mark.parametrize("name", cases(CASES / "bad"))
def test_what_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES / "bad")
    with pytest.raises(DataError) as found:
        translate([Path(name)])
    expect(CASES / "bad" / f"{name}.err", f"{found.value}\n")


@pytest.mark.parametrize("name", cases(CASES / "skipped"))
def test_what_is_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES / "skipped")
    with pytest.raises(DataError):
        translate([Path(name)])
    translation = translate([Path(name)], skip_malformed=True)
    shown = [
        *(problem.render() for problem in translation.warnings),
        str(dict(translation.skipped)),
        translation.text(facts=True),
    ]
    expect(CASES / "skipped" / f"{name}.txt", "\n\n".join(shown))
    program = evermat.Program.parse("", ontology=name, skip_malformed=True)
    assert program.skipped == translation.skipped
    assert [problem.render() for problem in program.warnings] == [problem.render() for problem in translation.warnings]
    assert program.materialise().skipped == translation.skipped


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.owx", '<Ontology xmlns="http://www.w3.org/2002/07/owl#"><SubClassOf></Ontology>', "mismatched tag"),
        (
            "a.owx",
            '<Other xmlns="http://www.w3.org/2002/07/owl#"/>',
            "the document is an element `Other`, not `Ontology`",
        ),
        ("a.ofn", "SubClassOf(<http://e/a> <http://e/b>)", "a text is prefixes and one ontology"),
        ("a.rdf", "<a><b></a>", "mismatched tag"),
    ],
)
def test_what_cannot_be_left_out(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        translate([tmp_path / name], skip_malformed=True)


def test_only_the_first_ten_places_of_a_file_are_kept(tmp_path: Path) -> None:
    wrong = "\n".join(f"SubClassOf(:A{i})" for i in range(30))
    (tmp_path / "a.ofn").write_text(f"Prefix(:=<http://e/>) Ontology(\n{wrong}\nSubClassOf(:A :B))")
    translation = translate([tmp_path / "a.ofn"], skip_malformed=True)
    assert list(translation.skipped.values()) == [30]
    assert [p.source.position(p.span.start).line for p in translation.warnings if p.source and p.span] == [
        *range(2, 12)
    ]
    assert rules(translation) == ["e:B(x) :- e:A(x)."]


@pytest.mark.parametrize("form", [".ofn", ".owx"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_damaged_ontology_loses_only_what_is_damaged(
    form: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Axioms whose lines are whole are read, whatever happens to the lines of others."""
    axioms = [f"SubClassOf(:A{i} :B{i})" for i in range(8)]
    if form == ".owx":
        axioms = [f'<SubClassOf><Class IRI="A{i}"/><Class IRI="B{i}"/></SubClassOf>' for i in range(8)]
    damaged = data.draw(st.sets(st.integers(0, 7), min_size=1, max_size=3))
    for number in damaged:
        text = axioms[number]
        if form == ".owx":
            axioms[number] = data.draw(
                st.sampled_from([text.replace("Class ", "Clas "), text.replace("IRI", "I", 1), "<Annotation/>"])
            )
        else:
            at = data.draw(st.integers(0, len(text) - 1))
            axioms[number] = (
                text[:at] + data.draw(st.sampled_from(['"', "$", "(", ")", "no:x", "<a b>", "#", "= "])) + text[at:]
            )
    head, tail = ("Prefix(:=<http://e/>)\nOntology(<http://e/o>", ")") if form == ".ofn" else (
        '<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://e/">', "</Ontology>"
    )  # fmt: skip
    path = tmp_path_factory.mktemp("damaged") / f"a{form}"
    path.write_text("\n".join([head, *axioms, tail]))
    translation = translate([path], skip_malformed=True)
    found = {rule.axiom for rule in translation.rules}
    assert {f"SubClassOf(e:A{i} e:B{i})" for i in range(8) if i not in damaged} <= found


# --- notes -----------------------------------------------------------------------------------------------------


def test_notes_are_grouped_by_kind_and_reason(tmp_path: Path) -> None:
    some = "[ a owl:Restriction ; owl:onProperty :p ; owl:someValuesFrom :B ]"
    translation = translated(
        tmp_path,
        f":A rdfs:subClassOf {some} . :B rdfs:subClassOf {some} . :C owl:equivalentClass {some} . :Other rdfs:subClassOf {some} .\n"
        ":D rdfs:subClassOf [ owl:unionOf ( :A :B ) ] . :E rdfs:subClassOf [ owl:unionOf ( :A ) ; owl:complementOf :B ] .",
    )
    groups = translation.note_groups
    assert sum(map(len, groups)) == len(translation.notes) == 6
    assert {note for group in groups for note in group.notes} == set(translation.notes)
    assert str(groups[0]) == (
        "3 × SubClassOf: ObjectSomeValuesFrom as a superclass: it implies that something exists, without naming it; "
        "for example `SubClassOf(t:A ObjectSomeValuesFrom(t:p t:B))`"
    )
    assert [str(group) for group in groups if len(group) == 1] == [str(group.notes[0]) for group in groups[1:]]
    program = evermat.Program.parse("", ontology=tmp_path / "t.ttl")
    assert program.note_groups == groups
    assert program.notes == translation.notes


@NEEDS_DATA
def test_the_notes_of_a_real_ontology_are_few_groups(tmp_path: Path) -> None:
    path = tmp_path / "ro.owl"
    path.write_bytes(gzip.decompress((DATA / "ontologies" / "ro.owl.gz").read_bytes()))
    translation = translate([path], imports="ignore")
    groups = translation.note_groups
    assert sum(map(len, groups)) == len(translation.notes) > 20
    assert len(groups) < len(translation.notes) / 2
    assert not [group.reason for group in groups if "<" in group.reason]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no file"):
        translate([tmp_path / "no.ttl"])


def test_the_same_axioms_in_other_words_are_the_same_rules(tmp_path: Path) -> None:
    turtle = translated(
        tmp_path,
        """
        <http://example.org/t> a owl:Ontology .
        :d a owl:DatatypeProperty ; rdfs:range xsd:integer .
        :A rdfs:subClassOf [ a owl:Restriction ; owl:onProperty [ owl:inverseOf :p ] ; owl:allValuesFrom :B ] ; owl:hasKey ( :d ) .
        [] a owl:AllDifferent ; owl:members ( :a :b :c ) .
        """,
    )
    functional = translated(
        tmp_path,
        """Prefix(:=<http://example.org/t#>) Ontology(<http://example.org/t>
        Declaration(DataProperty(:d)) DifferentIndividuals(:c :b :a) HasKey(:A () (:d)) DataPropertyRange(:d xsd:integer)
        SubClassOf(:A ObjectAllValuesFrom(ObjectInverseOf(:p) :B)))""",
        "t.ofn",
    )
    assert rules(turtle) == rules(functional)
    assert len(rules(turtle)) == 8


@pytest.mark.slow
def test_the_text_does_not_depend_on_hashes() -> None:
    script = (
        "from pathlib import Path; from evermat.owl.translation import translate; import sys; "
        "t = [translate([Path(p)]) for p in sys.argv[1:]]; print([x.text(declare=True) for x in t], [x.triples.to_pylist() for x in t])"
    )
    paths = [str(CASES / name) for name in ("known.ttl", "functional.ofn", "individuals.ttl", "equivalent_classes.ttl")]
    texts = {
        subprocess.run(
            [sys.executable, "-c", script, *paths],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


# --- texts ---------------------------------------------------------------------------------------------------


def test_names_that_a_program_uses_otherwise_are_triples(tmp_path: Path) -> None:
    translation = translated(tmp_path, ":A rdfs:subClassOf :B . :p rdfs:domain :A .")
    taken = {"<http://example.org/t#A>": 2, "<http://example.org/t#p>": 1, "inconsistent": 1}
    text = translation.text(taken=taken, declare=True)
    assert text.splitlines()[2:] == [
        ".prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>",
        ".prefix t: <http://example.org/t#>",
        "",
        ".decl other_triple(s:term, p:term, o:term)",
        ".decl t:B(s:term)",
        "",
        "// SubClassOf",
        "t:B(x) :- other_triple(x, rdf:type, t:A).",
        "",
        "// ObjectPropertyDomain",
        "other_triple(x, rdf:type, t:A) :- other_triple(x, t:p, _).",
    ]


def test_relations_of_the_translation_give_way_to_those_of_the_program(tmp_path: Path) -> None:
    translation = translated(
        tmp_path,
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom :B ] . "
        "[ owl:onProperty :p ; owl:someValuesFrom :B ] rdfs:subClassOf :C .",
    )
    assert "known_1(x) :- t:A(x)." in translation.text()
    assert "known_3(x) :- t:A(x)." in translation.text(taken={"known_1": 1, "known_2": 3})


def test_facts_can_be_a_part_of_the_text(tmp_path: Path) -> None:
    translation = translated(tmp_path, ':a a :A ; :p :b, "x"@en ; rdfs:label "a" . _:n a :A . :a owl:sameAs :c .')
    (facts,) = [part for part in translation.text(facts=True).split("\n\n") if part.startswith("// Facts")]
    stated = ["t:A(_:ontology1).", "t:A(t:a).", "t:p(t:a, t:b).", 't:p(t:a, "x"@en).', "owl:sameAs(t:a, t:c)."]
    assert sorted(facts.splitlines()[1:]) == sorted(stated)
    assert "Facts" not in translation.text()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.text(), st.sampled_from(["", "@en-GB", "^^xsd:token", "^^<http://example.org/type>"]))
def test_literals_mean_the_same_in_the_text(tmp_path_factory: pytest.TempPathFactory, text: str, suffix: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):
        return
    path = tmp_path_factory.getbasetemp() / "literal.ttl"
    path.write_text(f"{PREFIXES}:a :p {quote(text)}{suffix} .", encoding="utf-8")
    translation = translate([path])
    program = evermat.Program.parse(translation.text(facts=True))
    assert list(program.materialise()["<http://example.org/t#p>"]) == [
        (translation.triples["s"][0].as_py(), translation.triples["o"][0].as_py())
    ]


def test_triples_are_those_of_all_files_with_their_blank_nodes_apart(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(PREFIXES + "_:x :p _:y . _:y :p _:x .", encoding="utf-8")
    (tmp_path / "b.nt").write_text("_:x <http://example.org/t#p> _:x .\n", encoding="utf-8")
    found = translate([tmp_path / "a.ttl", tmp_path / "b.nt"], blank="n").triples
    p = "<http://example.org/t#p>"
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        ("_:n1", p, "_:n2"),
        ("_:n2", p, "_:n1"),
        ("_:n3", p, "_:n3"),
    ]


def test_classes_and_properties_are_listed(tmp_path: Path) -> None:
    translation = translated(
        tmp_path,
        ":A a owl:Class . :a a :B ; :p 1 . :q a owl:ObjectProperty . :n a owl:AnnotationProperty . :C rdfs:subClassOf :D . :A :n 1 .",
    )
    assert translation.classes == tuple(f"<http://example.org/t#{name}>" for name in "ABCD")
    assert translation.properties == tuple(f"<http://example.org/t#{name}>" for name in "pq")


# --- sizes ---------------------------------------------------------------------------------------------------


def test_products_of_unions_are_not_written_out(tmp_path: Path) -> None:
    unions = " ".join(
        f"[ owl:unionOf ( {' '.join(f':C{part}_{i}' for i in range(12))} [ owl:oneOf ( :a{part} ) ] ) ]"
        for part in range(5)
    )
    translation = translated(tmp_path, f"[ owl:intersectionOf ( {unions} ) ] rdfs:subClassOf :Z .")
    assert len(translation.rules) < 400
    program = evermat.Program.parse(translation.text())
    t = "<http://example.org/t#{}>".format
    facts = {t(f"C{part}_{part}"): [(t("x"),)] for part in range(4)}
    assert (t("x"),) not in program.materialise(facts)[t("Z")]
    m = program.materialise({**facts, t("C4_0"): [(t("x"),)], t("C3_7"): [(t("a4"),)]})
    assert set(m[t("Z")]) == {(t("x"),)}


def test_long_lists_do_not_become_pairs(tmp_path: Path) -> None:
    translation = translated(
        tmp_path,
        f"""
        [] a owl:AllDisjointClasses ; owl:members ( {" ".join(f":C{i}" for i in range(200))} ) .
        [] a owl:AllDisjointProperties ; owl:members ( {" ".join(f":p{i}" for i in range(200))} ) .
        [] a owl:AllDifferent ; owl:members ( {" ".join(f":a{i}" for i in range(200))} ) .
        """,
    )
    assert len(translation.rules) == 3 * 201
    t = "<http://example.org/t#{}>".format
    program = evermat.Program.parse(translation.text(forbid=False))

    def violated(facts: dict[str, list[tuple[str, ...]]]) -> list[str]:
        return [text.partition("(")[0] for (text,) in program.materialise(facts)["inconsistent"]]

    assert violated({t("C1"): [("<x:x>",)], t("C2"): [("<x:y>",)]}) == []
    assert violated({t("C1"): [("<x:x>",)], t("C199"): [("<x:x>",)]}) == ["DisjointClasses"]
    assert violated({t("p1"): [("<x:x>", "<x:y>")], t("p2"): [("<x:x>", "<x:y>")]}) == ["DisjointObjectProperties"]
    same = "<http://www.w3.org/2002/07/owl#sameAs>"
    assert violated({same: [(t("a3"), t("a3"))]}) == []
    assert violated({same: [(t("a3"), t("a7"))]}) == ["DifferentIndividuals"]


@pytest.mark.slow
def test_deep_expressions_are_noted(tmp_path: Path) -> None:
    depth = 3000
    text = ":A rdfs:subClassOf " + "[ owl:complementOf " * depth + ":B" + " ]" * depth + " ."
    (note,) = translated(tmp_path, text).notes
    assert note.why == "it is nested more than 100 levels deep"
    half = ":A rdfs:subClassOf " + "[ owl:complementOf " * 80 + ":B" + " ]" * 80 + " ."
    assert rules(translated(tmp_path, half)) == ["t:B(x) :- t:A(x)."]


# --- imports -------------------------------------------------------------------------------------------------


def ontology(path: Path, *, imports: str = "", says: str = "", version: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"{PREFIXES}<http://example.org/{path.stem.split()[0]}> a owl:Ontology"
        f"{f' ; owl:imports {imports}' if imports else ''}{f' ; owl:versionIRI {version}' if version else ''} . {says}",
        encoding="utf-8",
    )
    return path


def test_imports_are_found_among_the_files_that_are_given(tmp_path: Path) -> None:
    one = ontology(tmp_path / "one" / "a.ttl", imports="<http://example.org/b#> , <http://example.org/c/2.0>")
    two = ontology(tmp_path / "two" / "b.ttl", says=":A rdfs:subClassOf :B .", imports="<http://example.org/a>")
    three = ontology(tmp_path / "three" / "c.ttl", says=":B rdfs:subClassOf :C .", version="<http://example.org/c/2.0>")
    assert rules(translate([one, two, three])) == ["t:B(x) :- t:A(x).", "t:C(x) :- t:B(x)."]


def test_imports_are_found_beside_the_file(tmp_path: Path) -> None:
    first = ontology(tmp_path / "a.ttl", imports="<http://example.org/some/b.owl> , <http://example.org/c>")
    ontology(tmp_path / "b.ttl", says=":A rdfs:subClassOf :B .", imports="<http://example.org/a>")
    (tmp_path / "c.ofn").write_text(
        "Prefix(:=<http://example.org/t#>) Ontology(<http://example.org/c> Import(<http://www.w3.org/2002/07/owl>) SubClassOf(:B :C))",
        encoding="utf-8",
    )
    translation = translate([first])
    assert rules(translation) == ["t:B(x) :- t:A(x).", "t:C(x) :- t:B(x)."]
    assert translation.title == "Translated from a.ttl, b.ttl, c.ofn"
    (tmp_path / "c.ofn").unlink()
    without = translate([first], imports="ignore")
    assert rules(without) == ["t:B(x) :- t:A(x)."]
    assert [(note.axiom, note.why) for note in without.notes] == [("Import(<http://example.org/c>)", "it is not there")]


def test_a_catalogue_says_where_imports_are(tmp_path: Path) -> None:
    first = ontology(tmp_path / "a.ttl", imports="<http://example.org/elsewhere> , <http://example.org/absolute>")
    ontology(tmp_path / "modules" / "some name.ttl", says=":A rdfs:subClassOf :B .")
    ontology(tmp_path / "far" / "x.ttl", says=":B rdfs:subClassOf :C .")
    catalogue = tmp_path / "catalog-v001.xml"
    catalogue.write_text(
        f"""<?xml version="1.0" encoding="UTF-8" standalone="no"?>
        <catalog prefer="public" xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">
          <group id="Folder Repository" xml:base=""><uri name="http://example.org/elsewhere" uri="modules/some%20name.ttl"/></group>
          <uri id="2" name="http://example.org/absolute" uri="{(tmp_path / "far" / "x.ttl").as_uri()}"/>
        </catalog>""",
        encoding="utf-8",
    )
    assert rules(translate([first])) == ["t:B(x) :- t:A(x).", "t:C(x) :- t:B(x)."]
    catalogue.write_text("<catalog>\n <uri", encoding="utf-8")
    with pytest.raises(DataError) as found:
        translate([first])
    assert str(found.value).splitlines()[:2] == [
        "error[E353]: this is not a catalogue in XML: unclosed token",
        f" --> {catalogue}:2:2",
    ]


def test_a_missing_import_is_told_once(tmp_path: Path) -> None:
    gone = "<http://example.org/gone>"
    files = [ontology(tmp_path / name / "a.ttl", imports=f"{gone} , <http://example.org/x#{name}>") for name in "xyz"]
    for name, path in zip("xyz", files, strict=True):
        path.write_text(path.read_text().replace("<http://example.org/a>", f"<http://example.org/x#{name}>"))
    with pytest.raises(DataError) as found:
        translate(files)
    (problem,) = found.value.problems
    assert str(problem.render()).startswith(f"error[E352]: `{files[0]}` imports {gone}, which was not found\n")
    (note,) = translate(files, imports="ignore").notes
    assert note.axiom == f"Import({gone})"


def test_an_import_may_be_brought_by_another_file(tmp_path: Path) -> None:
    first = ontology(tmp_path / "a" / "a.ttl", imports="<http://example.org/c>")
    second = ontology(tmp_path / "b" / "b.ttl", imports="<http://example.org/c>")
    ontology(tmp_path / "b" / "c.ttl", says=":A rdfs:subClassOf :B .")
    assert rules(translate([first, second])) == ["t:B(x) :- t:A(x)."]


def test_catalogues_are_read_and_imports_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for imports grows with the files, not with the imports of all files."""
    count = 20
    imports = " , ".join(f"<http://example.org/o{i}>" for i in range(count))
    files = [ontology(tmp_path / f"o{i}.ttl", imports=f"{imports} , <http://example.org/gone>") for i in range(count)]
    entries = "".join(f'<uri name="http://example.org/o{i}" uri="o{i}.ttl"/>' for i in range(count))
    (tmp_path / "catalog-v001.xml").write_text(f"<catalog>{entries}</catalog>")
    called: Counter[str] = Counter()

    def counted(name: str) -> None:
        original = getattr(load, name)

        def spy(*arguments: object, **options: object) -> object:
            called[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(load, name, spy)

    for name in ("_catalog", "_beside", "_read"):
        counted(name)
    assert len(load.load(files[:1], base=None, imports="ignore", blank="b").files) == count
    assert called == {"_catalog": 1, "_beside": count, "_read": count}


def test_imports_never_leave_their_folder_by_name(tmp_path: Path) -> None:
    ontology(tmp_path / "secret.ttl", says=":A rdfs:subClassOf :B .")
    first = ontology(tmp_path / "in" / "a.ttl", imports="<http://example.org/..%2Fsecret>")
    with pytest.raises(DataError, match=r"imports <http://example\.org/\.\.%2Fsecret>, which was not found"):
        translate([first])


# --- literals and inconsistency ------------------------------------------------------------------------------


def test_inconsistencies_are_found_and_named(tmp_path: Path) -> None:
    translation = translated(
        tmp_path,
        """
        :Cat owl:disjointWith :Dog .
        :age a owl:DatatypeProperty , owl:FunctionalProperty ; rdfs:range xsd:nonNegativeInteger .
        :name rdfs:range xsd:string .
        :fun a owl:FunctionalProperty .
        """,
    )
    program = evermat.Program.parse(translation.text(forbid=False))
    t, x = "<http://example.org/t#{}>".format, "<x:x>"
    integer = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format

    def violated(facts: dict[str, list[tuple[str, ...]]]) -> list[str]:
        return sorted(text for (text,) in program.materialise(facts)["inconsistent"])

    assert violated({t("Cat"): [(x,)], t("Dog"): [("<x:y>",)]}) == []
    assert violated({t("Cat"): [(x,)], t("Dog"): [(x,)]}) == ["DisjointClasses(t:Cat t:Dog)"]
    assert violated({t("age"): [(x, integer(7)), (x, integer("007"))]}) == []
    assert violated({t("age"): [(x, integer(7)), (x, integer(8))]}) == ["FunctionalDataProperty(t:age)"]
    assert violated({t("age"): [(x, integer(-7))]}) == ["DataPropertyRange(t:age xsd:nonNegativeInteger)"]
    assert violated({t("age"): [(x, "<x:y>")]}) == ["DataPropertyRange(t:age xsd:nonNegativeInteger)"]
    assert violated({t("name"): [(x, '"\\"a\\""'), (x, "<x:y>")]}) == []
    assert violated({t("name"): [(x, '"a"@en')]}) == ["DataPropertyRange(t:name xsd:string)"]
    assert violated({t("fun"): [(x, "<x:a>"), (x, "<x:b>")]}) == []
    assert violated({t("fun"): [(x, '"a"'), (x, '"b"')]}) == ["DifferentIndividuals of literals"]
    with pytest.raises(DataError, match="DisjointClasses"):
        evermat.Program.parse(translation.text()).materialise({t("Cat"): [(x,)], t("Dog"): [(x,)]})


# --- real ontologies -----------------------------------------------------------------------------------------


@NEEDS_DATA
def test_univ_bench_is_translated() -> None:
    translation = translate([DATA / "lubm" / "univ-bench.owl"])
    text = translation.text()
    for rule in (
        "ub:Person(x) :- ub:Student(x).",
        "ub:Student(x) :- ub:Person(x), ub:takesCourse(x, y), ub:Course(y).",
        "ub:worksFor(x, y) :- ub:headOf(x, y).",
        "ub:degreeFrom(y, x) :- ub:hasAlumnus(x, y).",
        "ub:Faculty(x) :- ub:teacherOf(x, _).",
        "ub:subOrganizationOf(x, z) :- ub:subOrganizationOf(x, y), ub:subOrganizationOf(y, z).",
    ):
        assert rule in text.splitlines()
    assert len(translation.notes) == 8
    assert all(
        "SomeValuesFrom" in note.why and note.translated for note in translation.notes if "Equivalent" in note.axiom
    )


@NEEDS_DATA
def test_nothing_of_the_relation_ontology_is_lost() -> None:
    """Counted by queries that know nothing of the translation."""
    path = DATA / "ontologies" / "ro.owl.gz"
    translation = translate([path])
    found = {(rule.head, rule.body) for rule in translation.rules}
    store = ox.Store()
    store.load(gzip.decompress(path.read_bytes()), format=ox.RdfFormat.RDF_XML)
    prefixes = {"owl": "http://www.w3.org/2002/07/owl#", "rdfs": "http://www.w3.org/2000/01/rdf-schema#"}

    def ask(query: str) -> list[tuple[str, ...]]:
        return [tuple(map(str, row)) for row in store.query(query, prefixes=prefixes)]

    transitive = ask("SELECT ?p { ?p a owl:TransitiveProperty FILTER isIRI(?p) }")
    assert len(transitive) == 45
    for (p,) in transitive:
        assert (Link(p, "x", "z"), (Link(p, "x", "y"), Link(p, "y", "z"))) in found
    subs = ask("SELECT ?p ?q { ?p rdfs:subPropertyOf ?q FILTER NOT EXISTS { ?p a owl:AnnotationProperty } }")
    assert len(ask("SELECT ?p ?q { ?p rdfs:subPropertyOf ?q }")) == 801
    assert len(subs) == 726  # the others are about annotations
    inverse = dict(ask("SELECT ?p ?q { ?p owl:inverseOf ?q FILTER isBlank(?p) }"))
    for p, q in subs:
        body = Link(inverse[p], "y", "x") if p in inverse else Link(p, "x", "y")
        head = Link(inverse[q], "y", "x") if q in inverse else Link(q, "x", "y")
        assert q.endswith("#topObjectProperty>") or _renamed(head, (body,)) in found
    mentioned = ask("SELECT ?a { ?a owl:annotatedProperty owl:propertyChainAxiom }")
    assert len(ask("SELECT ?p ?l { ?p owl:propertyChainAxiom ?l }")) + len(mentioned) == 160 + 8
    pairs = ask("SELECT ?p ?a ?b { ?p owl:propertyChainAxiom (?a ?b) }")
    triples = ask("SELECT ?p ?a ?b ?c { ?p owl:propertyChainAxiom (?a ?b ?c) }")
    assert len(pairs) + len(triples) == 160
    for p, *links in (*pairs, *triples):
        terms = "xyzu"
        body = tuple(
            Link(inverse[q], terms[i + 1], terms[i]) if q in inverse else Link(q, terms[i], terms[i + 1])
            for i, q in enumerate(links)
        )
        assert _renamed(Link(p, "x", terms[len(links)]), body) in found
    for c, d in ask("SELECT ?c ?d { ?c rdfs:subClassOf ?d FILTER (isIRI(?c) && isIRI(?d)) }"):
        assert (Member(d, "x"), (Member(c, "x"),)) in found


@pytest.mark.slow
@NEEDS_DATA
def test_functional_syntax_and_owl_xml_of_real_ontologies_give_the_same_text(tmp_path: Path) -> None:
    horned = pytest.importorskip("pyhornedowl")
    (tmp_path / "ro.owl").write_bytes(gzip.decompress((DATA / "ontologies" / "ro.owl.gz").read_bytes()))
    expected = translate([tmp_path / "ro.owl"]).text().replace("ro.owl", "")
    other = horned.open_ontology_from_file(str(tmp_path / "ro.owl"), "rdf")
    for form in ("ofn", "owx"):
        path = tmp_path / f"ro.{form}"
        path.write_text(other.save_to_string(form), encoding="utf-8")
        assert translate([path]).text().replace(path.name, "") == expected


# --- whatever a file says ------------------------------------------------------------------------------------

_OWL = [
    *(
        "onProperty",
        "someValuesFrom",
        "allValuesFrom",
        "hasValue",
        "hasSelf",
        "maxCardinality",
        "minQualifiedCardinality",
    ),
    *(
        "onClass",
        "onDataRange",
        "intersectionOf",
        "unionOf",
        "complementOf",
        "oneOf",
        "equivalentClass",
        "disjointWith",
    ),
    *("disjointUnionOf", "hasKey", "propertyChainAxiom", "inverseOf", "members", "distinctMembers", "onDatatype"),
    *(
        "withRestrictions",
        "datatypeComplementOf",
        "sourceIndividual",
        "assertionProperty",
        "targetIndividual",
        "imports",
    ),
    *("Class", "Restriction", "AllDifferent", "AllDisjointClasses", "NegativePropertyAssertion", "FunctionalProperty"),
    *("DatatypeProperty", "ObjectProperty", "AnnotationProperty", "Thing", "Nothing", "TransitiveProperty", "sameAs"),
]
_NAMES = [
    *(f"owl:{name}" for name in _OWL),
    *(
        "rdf:type",
        "rdf:first",
        "rdf:rest",
        "rdf:nil",
        "rdfs:subClassOf",
        "rdfs:subPropertyOf",
        "rdfs:domain",
        "rdfs:range",
    ),
    *("rdfs:Datatype", "rdfs:Literal", "xsd:integer", "xsd:minInclusive", "xsd:pattern", ":A", ":B", ":p", ":q", ":a"),
    *("swrl:Imp", "swrl:body", "swrl:head", "swrl:ClassAtom", "swrl:classPredicate", "swrl:argument1", "swrl:Variable"),
]
_NODES = [*_NAMES, *("_:x", "_:y", "_:z") * 6, *(":A", ":B", ":p", ":a") * 3]
_VALUES = [*_NODES, '"x"', "1", "0", "true", '"[a"', '"y"@en', '"-1"^^xsd:integer']


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(*map(st.sampled_from, (_NODES, _NAMES, _VALUES))), max_size=25))
def test_no_graph_is_too_odd(tmp_path_factory: pytest.TempPathFactory, triples: list[tuple[str, str, str]]) -> None:
    path = tmp_path_factory.getbasetemp() / "odd.ttl"
    prefix = "@prefix swrl: <http://www.w3.org/2003/11/swrl#> ."
    path.write_text("\n".join([PREFIXES, prefix, *(f"{s} {p} {o} ." for s, p, o in triples)]), encoding="utf-8")
    translation = translate([path], imports="ignore")
    evermat.Program.parse(translation.text())
    evermat.Program.parse(translation.text(declare=True, facts=True))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["functional.ofn", "structure.owx"]), st.data())
def test_a_damaged_file_is_refused_or_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    text = (CASES / name).read_text(encoding="utf-8")
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 30)))
    insert = data.draw(st.sampled_from(["", "(", ")", '"', "<", ">", ":A", " 1 ", "é", "</Class>", "ObjectOneOf("]))
    path.write_text(text[:begin] + insert + text[end:], encoding="utf-8")
    try:
        translation = translate([path], imports="ignore")
    except DataError as error:
        assert f"{name}:" in str(error) or "is a relative IRI" in str(error) or f"{name}` is no ontology" in str(error)
    else:
        evermat.Program.parse(translation.text())
