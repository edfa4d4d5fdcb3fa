"""Changes of rules of a program in which equal terms are represented by one."""

from __future__ import annotations

import pytest

import evermat
from evermat.language.terms import SAME_AS

A, B, C = "<http://e/a>", "<http://e/b>", "<http://e/c>"
TEXT = """\
.prefix e: <http://e/>
.decl p(x:term, y:term) .decl q(x:term, n:number) .decl r(x:term)
x = y :- p(x, z), p(y, z).
"""
COUNT = "q(x, n) :- p(x, _), n = count : { p(x, _) }."
FACTS = {"p": [(A, C), (B, C), (C, B)]}


def of(text: str) -> evermat.Materialisation:
    return evermat.Program.parse(text).materialise(FACTS)


@pytest.mark.parametrize(
    "rule", [COUNT, "r(x) :- p(e:b, x).", 'r(x) :- p(x, _), match(".*b.*", x).', "y = x :- p(x, y)."]
)
def test_rules_come_and_go(rule: str) -> None:
    m = of(TEXT)
    m.update(add_rules=rule)
    expected = of(TEXT + rule)
    for name in expected:
        assert set(m[name]) == set(expected[name])
        assert set(m[name].representatives) == set(expected[name].representatives)
    m.update(remove_rules=rule, delete={"p": [(C, B)]})
    assert {name: set(m[name]) for name in ("q", "r")} == {"q": set(), "r": set()}
    assert set(m["p"]) == {(A, C), (B, C)}
    assert m.names(A) == [A, B]


def test_an_equation_that_goes_parts_what_it_made_equal() -> None:
    m = of(TEXT + "r(x) :- p(x, e:c).")
    assert m.names(A) == [A, B]
    change = m.update(remove_rules="x = y :- p(x, z), p(y, z).")
    assert m.names(A) == [A]
    assert set(m["p"]) == set(FACTS["p"])
    assert set(m["r"]) == {(A,), (B,)}
    assert set(change.deleted[SAME_AS]) == {(x, y) for x in (A, B) for y in (A, B)} | {(C, C)}


def test_the_first_equation_of_a_program_is_axiomatised() -> None:
    m = evermat.Program.parse(TEXT.partition("x = y")[0] + COUNT).materialise(FACTS)
    m.update(add_rules="x = y :- p(x, z), p(y, z).")
    expected = evermat.Program.parse(TEXT + COUNT, equality="axiomatise").materialise(FACTS)
    assert {name: set(m[name]) for name in ("p", "q")} == {name: set(expected[name]) for name in ("p", "q")}
    assert m.program.equality == "axiomatise"


def test_what_is_done_about_equality_stays() -> None:
    m = of(TEXT)
    with pytest.raises(
        evermat.ProgramError, match=r"E264.*cannot change the treatment of equality from `rewrite` to `off`"
    ):
        m.update(add_rules='.pragma "equality" "off"')
    with pytest.raises(evermat.ProgramError, match="E262"):
        m.update(add_rules="r(v) :- p(_, w), v = canonical_term(w).")
    assert m.names(A) == [A, B]
