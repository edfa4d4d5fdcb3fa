"""RDF and ontologies on the command line: what is read, derived, written and refused, word for word."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.commands import Evermat

ONTOLOGY = """\
@prefix e: <http://e/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:Woman rdfs:subClassOf e:Person ; owl:disjointWith e:Man .
e:Man rdfs:subClassOf e:Person .
e:ancestor a owl:TransitiveProperty ; rdfs:domain e:Person .
e:parent rdfs:subPropertyOf e:ancestor ; owl:inverseOf e:child .
e:mother a owl:FunctionalProperty ; rdfs:subPropertyOf e:parent .
e:Person rdfs:subClassOf [ a owl:Restriction ; owl:onProperty e:mother ; owl:someValuesFrom e:Woman ] .
"""
DATA = """\
<http://e/a> <http://e/parent> <http://e/b> .
<http://e/b> <http://e/mother> <http://e/c> .
<http://e/c> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Woman> .
<http://e/c> <http://e/name> "Cäcilie"@de .
_:x <http://e/name> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""
QUERIES = """\
.prefix e: <http://e/>
.decl q(x:term, y:term)
q(x, y) :- e:ancestor(x, y), e:Woman(y).
.output q
"""
NOTE = (
    "note: 1 axiom says more than rules can\n"
    "note: `SubClassOf(e:Person ObjectSomeValuesFrom(e:mother e:Woman))`: ObjectSomeValuesFrom(e:mother e:Woman) as a superclass: "
    "it implies that something exists, without naming it; nothing of it is translated\n"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVERMAT_ENGINE", "memory")
    (tmp_path / "o.ttl").write_text(ONTOLOGY)
    (tmp_path / "d.nt").write_text(DATA)
    (tmp_path / "q.dl").write_text(QUERIES)
    return tmp_path


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_rules_of_ones_own_on_top_of_an_ontology(folder: Path, evermat_command: Evermat) -> None:
    assert evermat_command("run", "q.dl", "--ontology", "o.ttl", "--rdf", "d.nt") == (0, "", NOTE)
    assert lines(folder / "q.csv") == ["<http://e/a>\t<http://e/c>", "<http://e/b>\t<http://e/c>"]


def test_an_ontology_and_data_need_no_program(folder: Path, evermat_command: Evermat) -> None:
    done = evermat_command(
        "run", "--ontology", "o.ttl", "--rdf", "d.nt", "--export", "out/inferred.nt", "--export-facts", "inferred"
    )
    assert (done.code, done.out) == (0, "")
    found = lines(folder / "out" / "inferred.nt")
    assert found == sorted(found)
    assert "<http://e/a> <http://e/ancestor> <http://e/c> ." in found
    assert "<http://e/b> <http://e/child> <http://e/a> ." in found
    assert "<http://e/c> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Person> ." in found
    assert not any("name" in line for line in found)


@pytest.mark.slow
def test_export_then_import_is_the_identity(folder: Path, evermat_command: Evermat) -> None:
    asserted = ("--export-facts", "asserted")
    assert evermat_command("run", "--rdf", "d.nt", "--export", "1.nt", *asserted).code == 0
    assert lines(folder / "1.nt") == sorted(DATA.splitlines())
    for name in ("2.nt.gz", "2.ttl", "2.rdf", "2.nq", "2.trig"):
        assert evermat_command("run", "--rdf", "1.nt", "--export", name, *asserted).code == 0
        assert evermat_command("run", "--rdf", name, "--export", "3.nt", *asserted).code == 0
        assert [line.replace("_:b1 ", "_:x ") for line in lines(folder / "3.nt")] == lines(folder / "1.nt"), name


def test_several_files_and_their_blank_nodes(folder: Path, evermat_command: Evermat) -> None:
    (folder / "more.nt").write_text('_:x <http://e/name> "2" .\n')
    with gzip.open(folder / "yet.ttl.gz", "wt") as file:
        file.write('_:x <http://e/name> "3" . [] <http://e/name> "4" .')
    done = evermat_command("run", "--rdf", "d.nt", "more.nt", "yet.ttl.gz", "--export", "out.nt")
    assert done == (0, "", "")
    assert [line for line in lines(folder / "out.nt") if line.startswith("_:")] == [
        '_:f1_x <http://e/name> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
        '_:f2_x <http://e/name> "2" .',
        '_:f3_b1 <http://e/name> "3" .',
        '_:f3_b2 <http://e/name> "4" .',
    ]


@pytest.mark.slow
def test_axioms_in_the_data_may_change(folder: Path, evermat_command: Evermat) -> None:
    assert evermat_command("run", "--entailment", "rdfs", "--rdf", "o.ttl", "d.nt", "--state", "s").code == 0
    query = ("query", "--state", "s", "--format", "csv", "<http://e/Person>(x)")
    assert evermat_command(*query).out.split() == ["x", "<http://e/a>", "<http://e/b>", "<http://e/c>"]
    subclass = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    domain = "<http://www.w3.org/2000/01/rdf-schema#domain>"
    (folder / "1.del.nt").write_text(f"<http://e/ancestor> {domain} <http://e/Person> .\n")
    (folder / "1.add.nt").write_text(f"<http://e/Person> {subclass} <http://e/Animal> .\n")
    done = evermat_command("update", "--state", "s", "1.add.nt", "1.del.nt")
    assert done.code == 0
    assert done.err.startswith("version 2: ")
    assert evermat_command(*query).out.split() == ["x", "<http://e/c>"]
    assert evermat_command(*query[:-1], "<http://e/Animal>(x)").out.split() == ["x", "<http://e/c>"]
    assert evermat_command("export", "--state", "s", "all.nt").code == 0
    assert evermat_command("export", "--state", "s", "old.nt", "--version", "1", "--facts", "asserted").code == 0
    assert f"<http://e/ancestor> {domain} <http://e/Person> ." in lines(folder / "old.nt")


def test_what_has_no_relation_is_kept_and_updated(folder: Path, evermat_command: Evermat) -> None:
    assert evermat_command("run", "q.dl", "--rdf", "d.nt", "--state", "s").code == 0
    (folder / "x.add.ttl").write_text('<http://e/z> <http://e/name> "Z" ; <http://e/ancestor> <http://e/c> .')
    assert evermat_command("update", "--state", "s", "x.add.ttl").code == 0
    names = evermat_command("query", "--state", "s", "--format", "csv", '<http://e/name>(x, "Z")')
    assert names.out.split() == ["x", "<http://e/z>"]
    found = evermat_command("query", "--state", "s", "--format", "csv", "q(x, y)")
    assert found.out.split() == ["x,y", "<http://e/z>,<http://e/c>"]


@pytest.mark.slow
def test_an_inconsistency_is_named_with_its_facts(folder: Path, evermat_command: Evermat) -> None:
    (folder / "bad.nt").write_text("<http://e/c> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Man> .\n")
    done = evermat_command("run", "q.dl", "--ontology", "o.ttl", "--rdf", "d.nt", "bad.nt", "--state", "s")
    assert done.code == 3
    assert "`inconsistent(" in done.err
    assert "DisjointClasses(" in done.err
    assert "from `<http://e/Man>(<http://e/c>)`, `<http://e/Woman>(<http://e/c>)`" in done.err.replace(
        "`<http://e/Woman>(<http://e/c>)`, `<http://e/Man>(<http://e/c>)`",
        "`<http://e/Man>(<http://e/c>)`, `<http://e/Woman>(<http://e/c>)`",
    )
    assert not (folder / "s").exists()
    assert not (folder / "q.csv").exists()
    told = evermat_command(
        "run", "--ontology", "o.ttl", "--rdf", "d.nt", "bad.nt", "--allow-inconsistency", "--state", "s"
    )
    assert told.code == 0
    assert "DisjointClasses(" in evermat_command("query", "--state", "s", "inconsistent(x)").out


@pytest.mark.slow
def test_an_update_that_is_inconsistent_changes_nothing(folder: Path, evermat_command: Evermat) -> None:
    assert evermat_command("run", "q.dl", "--ontology", "o.ttl", "--rdf", "d.nt", "--state", "s").code == 0
    (folder / "x.add.nt").write_text(
        "<http://e/c> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Man> .\n"
    )
    done = evermat_command("update", "--state", "s", "x.add.nt")
    assert done.code == 3
    assert "DisjointClasses(" in done.err
    assert len(evermat_command("log", "--state", "s").out.splitlines()) == 2


def test_functional_properties_make_their_values_equal(folder: Path, evermat_command: Evermat) -> None:
    (folder / "more.nt").write_text("<http://e/b> <http://e/mother> <http://e/d> .\n")
    files = ("--ontology", "o.ttl", "--rdf", "d.nt", "more.nt")
    assert evermat_command("run", "q.dl", *files).code == 0
    assert "<http://e/a>\t<http://e/d>" in lines(folder / "q.csv")
    assert evermat_command("run", "q.dl", *files, "--equality", "off").code == 0
    assert "<http://e/a>\t<http://e/d>" not in lines(folder / "q.csv")


@pytest.mark.slow
def test_trivial_consequences_are_off_unless_asked_for(folder: Path, evermat_command: Evermat) -> None:
    for how in (("--ontology", "o.ttl"), ("--entailment", "owl2rl")):
        assert evermat_command("run", *how, "--rdf", "d.nt", "--export", "1.nt").code == 0
        assert evermat_command("run", *how, "--rdf", "d.nt", "--export", "2.nt", "--trivial").code == 0
        few, many = (set(lines(folder / name)) for name in ("1.nt", "2.nt"))
        assert few < many
        same = "<http://e/a> <http://www.w3.org/2002/07/owl#sameAs> <http://e/a> ."
        thing = "<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2002/07/owl#Thing> ."
        assert {same, thing} <= many - few


def test_translate_prints_a_program_that_runs(folder: Path, evermat_command: Evermat) -> None:
    code, out, err = evermat_command("translate", "o.ttl")
    assert code == 0
    assert "e:Person(x) :- e:Woman(x)." in out
    assert err.startswith("note: ")
    assert "ObjectSomeValuesFrom" in err
    assert evermat_command("translate", "o.ttl", "-o", "rules.dl").out == ""
    assert (folder / "rules.dl").read_text() == out
    assert evermat_command("check", "rules.dl").code == 0
    (folder / "rules.dl").write_text(out + "\n" + QUERIES.split("\n", 1)[1])
    assert evermat_command("run", "rules.dl", "--rdf", "d.nt").code == 0
    assert lines(folder / "q.csv") == ["<http://e/a>\t<http://e/c>", "<http://e/b>\t<http://e/c>"]


def test_check_shows_the_rules_of_an_ontology(folder: Path, evermat_command: Evermat) -> None:
    done = evermat_command("check", "q.dl", "--ontology", "o.ttl")
    assert done.code == 0
    assert "<http://e/ancestor>" in done.out
    assert "transitive" in done.out
    assert evermat_command("check").code == 2


# --- bad input ---------------------------------------------------------------------------------------------


def test_malformed_rdf_is_refused_or_skipped_and_counted(folder: Path, evermat_command: Evermat) -> None:
    (folder / "bad.nt").write_text('<http://e/a> <http://e/p> "1" .\n<http://e/a> <http://e/p> 1 .\n')
    done = evermat_command("run", "--rdf", "bad.nt", "--export", "out.nt")
    assert (done.code, done.err.splitlines()[1]) == (3, " --> bad.nt:2:27")
    assert not (folder / "out.nt").exists()
    done = evermat_command("run", "--rdf", "bad.nt", "--export", "out.nt", "--skip-malformed", "--stats", "s.json")
    assert done == (0, "", "warning: bad.nt: 1 malformed statement was left out\n")
    assert json.loads((folder / "s.json").read_text())["skipped"] == {"bad.nt": 1}
    assert lines(folder / "out.nt") == ['<http://e/a> <http://e/p> "1" .']


def test_relative_iris_need_a_base(folder: Path, evermat_command: Evermat) -> None:
    (folder / "r.ttl").write_text("<a> <http://e/p> <b> .")
    done = evermat_command("run", "--rdf", "r.ttl", "--export", "out.nt")
    assert done.code == 3
    assert "`a` is a relative IRI" in done.err
    assert "--base" in done.err
    assert evermat_command("run", "--rdf", "r.ttl", "--export", "out.nt", "--base", "http://b/").code == 0
    assert lines(folder / "out.nt") == ["<http://b/a> <http://e/p> <http://b/b> ."]


def test_an_import_that_is_not_there(folder: Path, evermat_command: Evermat) -> None:
    imports = "<http://e/o> a <http://www.w3.org/2002/07/owl#Ontology> ; <http://www.w3.org/2002/07/owl#imports> <http://e/gone> ."
    (folder / "i.ttl").write_text(imports)
    for command in (("run", "--ontology", "i.ttl"), ("translate", "i.ttl")):
        done = evermat_command(*command)
        assert done.code == 3
        assert done.err.startswith("error[E352]: `i.ttl` imports <http://e/gone>, which was not found\n")
        assert "--ignore-imports" in done.err
        assert evermat_command(*command, "--ignore-imports").code == 0


def test_files_that_are_not_there(folder: Path, evermat_command: Evermat) -> None:
    assert evermat_command("run", "--rdf", "dd.nt") == (
        3,
        "",
        "error[E300]: there is no file `dd.nt`\n  = note: triples are read from it\n  = help: did you mean `d.nt`?\n",
    )
    assert evermat_command("run", "--ontology", "none.ttl").code == 3
    assert evermat_command("run") == (
        2,
        "",
        "error[E200]: there is nothing to do: give a program, or `--rdf`, `--ontology` or `--entailment`\n",
    )
    assert evermat_command("run", "--rdf", "s3a://bucket/x.nt") == (
        2,
        "",
        "error[E200]: `s3a://bucket/x.nt` is read by Spark only: use `--engine spark`\n",
    )


def test_literals_as_subjects_are_not_exported(folder: Path, evermat_command: Evermat) -> None:
    (folder / "p.dl").write_text(".prefix e: <http://e/>\ne:isNameOf(y, x) :- e:name(x, y).\n")
    done = evermat_command("run", "p.dl", "--rdf", "d.nt", "--export", "out.nt")
    assert done == (0, "", "warning: out.nt: 2 facts are not RDF and left out (a literal as subject, …)\n")
    assert len(lines(folder / "out.nt")) == 5


MALFORMED = """\
Prefix(e:=<http://e/>)
Ontology(<http://e/o>
SubClassOf(e:Woman e:Person)
SubClassOf(e:Woman)
SubClassOf(e:Man e:Person)
)
"""
LEFT_OUT = """\
warning[W354]: something malformed is left out: this is not OWL functional syntax: `SubClassOf` has 1 part, not 2
 --> m.ofn:4:1
  |
4 | SubClassOf(e:Woman)
  | ^

"""
COUNTED = "warning: m.ofn: 1 malformed statement was left out\n"


def test_malformed_axioms_are_left_out_and_counted(folder: Path, evermat_command: Evermat) -> None:
    (folder / "m.ofn").write_text(MALFORMED)
    run = ("run", "--ontology", "m.ofn", "--rdf", "d.nt", "--export", "out.nt", "--stats", "s.json")
    done = evermat_command(*run)
    assert (done.code, done.err.splitlines()[1]) == (3, " --> m.ofn:4:1")
    assert evermat_command(*run, "--skip-malformed") == (0, "", LEFT_OUT + COUNTED)
    assert json.loads((folder / "s.json").read_text())["skipped"] == {"m.ofn": 1}
    assert "<http://e/c> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/Person> ." in lines(
        folder / "out.nt"
    )
    done = evermat_command("translate", "m.ofn", "--skip-malformed")
    assert (done.code, done.err) == (0, LEFT_OUT + COUNTED)
    assert "e:Person(x) :- e:Man(x)." in done.out
    done = evermat_command("check", "--ontology", "m.ofn", "--skip-malformed")
    assert (done.code, done.err) == (0, LEFT_OUT + COUNTED)


def test_notes_are_grouped_unless_all_are_wanted(folder: Path, evermat_command: Evermat) -> None:
    some = "[ owl:onProperty e:mother ; owl:someValuesFrom e:Woman ]"
    (folder / "o.ttl").write_text(ONTOLOGY + f"e:Dog rdfs:subClassOf {some} . e:Cat rdfs:subClassOf {some} .\n")
    reason = "ObjectSomeValuesFrom{} as a superclass: it implies that something exists, without naming it"
    each = [
        f"note: `SubClassOf(e:{name} ObjectSomeValuesFrom(e:mother e:Woman))`: {reason.format('(e:mother e:Woman)')}"
        f"{'; nothing of it is translated' * (name == 'Person')}\n"
        for name in ("Cat", "Dog", "Person")
    ]
    every = "".join(each)
    group = (
        f"note: 2 × SubClassOf: {reason.format('')}; for example `SubClassOf(e:Cat ObjectSomeValuesFrom(e:mother e:Woman))`\n"
        f"{each[2]}note: `--verbose` lists all of them\n"
    )
    assert evermat_command("translate", "o.ttl", "-o", "o.dl").err == group
    assert evermat_command("translate", "o.ttl", "-o", "o.dl", "--verbose").err == every
    title = "note: 3 axioms say more than rules can\n"
    assert evermat_command("check", "--ontology", "o.ttl").err == title + group
    assert evermat_command("check", "--ontology", "o.ttl", "--verbose").err == title + every


def test_prefixes_of_data_are_understood_about_a_state(folder: Path, evermat_command: Evermat) -> None:
    (folder / "d.ttl").write_text("@prefix ex: <http://e/> . ex:a ex:knows ex:b .")
    assert evermat_command("run", "--rdf", "d.ttl", "--state", "s").code == 0
    found = evermat_command("query", "--state", "s", "--format", "csv", "ex:knows(x, y)")
    assert found == (0, "x,y\n<http://e/a>,<http://e/b>\n", "")
    done = evermat_command("query", "--state", "s", "e:knows(x, y)")
    assert (done.code, done.err.splitlines()[-1]) == (2, "  = help: did you mean `ex:`?")
