"""Constants that are not RDF terms: errors in what users write, but states whose programs have them open and answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import evermat
from evermat import Materialisation, Program, ProgramError
from evermat.language import compile as compiling

BEFORE = '.decl p(x:term)\n.decl q(x:term)\np("a"@b).\np(<http://a/%zz>).\nq(x) :- p(x), x != <http://a/[>.\n'
RULE = "q(<http://b/%zz>) :- p(_)."
FACTS = [('"a"@b',), ("<http://a/%zz>",)]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state whose program, and a change of its rules, have constants that were accepted once."""
    with monkeypatch.context() as earlier:
        earlier.setattr(compiling, "check_terms", lambda *_: None)
        with Program.parse(BEFORE).materialise(engine="memory") as made:
            made.save(tmp_path / "state")
            made.update(add_rules=RULE)
    return tmp_path / "state"


def places(error: pytest.ExceptionInfo[ProgramError]) -> list[str]:
    return [problem.render().split("\n")[1].strip().removeprefix("--> ") for problem in error.value.problems]


def test_a_saved_program_opens_and_answers(state: Path) -> None:
    with evermat.open(state) as opened:
        assert sorted(opened["p"]) == FACTS
        assert sorted(opened.query("q(x)")) == [*FACTS, ("<http://b/%zz>",)]
        opened.update({"p": ["<http://c/>"]}, add_rules=".decl r(x:term)\nr(x) :- q(x), p(x).")
        assert sorted(opened["r"]) == [*FACTS, ("<http://c/>",)]
    with evermat.open(state, version=1) as first:
        assert sorted(first["q"]) == FACTS
    with evermat.open(state) as again:
        assert sorted(again["r"]) == [*FACTS, ("<http://c/>",)]


def test_the_rules_and_facts_can_be_removed(state: Path) -> None:
    with evermat.open(state) as opened:
        opened.update(remove_rules=f'{RULE}\np("a"@b).\np(<http://a/%zz>).')
        assert len(opened["p"]) == len(opened["q"]) == 0


def test_new_texts_about_such_a_state_are_checked(state: Path) -> None:
    with evermat.open(state) as opened:
        with pytest.raises(ProgramError, match="E216") as error:
            opened.update(add_rules='p("b"@en).\np("a"@b).')
        assert places(error) == ["<rules to add>:2:3"]
        with pytest.raises(ProgramError, match="E216") as error:
            opened.query('q(x), x != "a"@b')
        assert places(error) == ["<query>:1:12"]
        assert sorted(opened["p"]) == FACTS


def test_texts_of_users_are_checked(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(BEFORE)
    for read in (lambda: Program.parse(BEFORE), lambda: Program.read(tmp_path / "p.dl")):
        with pytest.raises(ProgramError, match="E216") as error:
            read()
        assert [place.partition(":")[2] for place in places(error)] == ["3:3", "4:3", "5:20"]


def test_what_ontologies_say_is_not_a_text_of_users(tmp_path: Path) -> None:
    """Functional syntax names what no RDF file can: it is translated as before."""
    (tmp_path / "o.ofn").write_text("Prefix(:=<http://x/>)\nOntology(SubClassOf(<http://x/[A]> :B))\n")
    for text in ("", '.decl p(x:term)\np("a"@en).\n'):
        assert Program.parse(text, ontology=tmp_path / "o.ofn").materialise(engine="memory") is not None


def test_half_of_a_surrogate_pair_is_an_error_with_its_place() -> None:
    for text, place in (('.decl p(x:term)\np("\ud800").', "<text>:2:4"), ("// \udfff", "<text>:1:4")):
        with pytest.raises(ProgramError, match=r"error\[E203\]: the character `\\ud(800|fff)` has no meaning") as error:
            Program.parse(text)
        assert places(error) == [place]
    with Program.parse(".decl p(x:symbol)").materialise(engine="memory") as made:
        assert isinstance(made, Materialisation)
        with pytest.raises(ProgramError, match="E203") as error:
            made.query('p("\ud800")')
        assert places(error) == ["<query>:1:4"]
        with pytest.raises(ProgramError, match="E203"):
            made.update(add_rules='p("\ud800").')
