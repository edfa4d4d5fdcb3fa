"""Rules that look at names, though equal terms are represented by one: each in small, against the axioms; and what is said where it cannot be."""

from __future__ import annotations

import pytest

import evermat
from evermat.language.terms import SAME_AS
from tests.support.updates import facts_of

A, B, C = "<http://e/a>", "<http://e/bb>", "<http://e/c>"
HEADER = f"""
.prefix e: <http://e/>
.prefix owl: <http://www.w3.org/2002/07/owl#>
.decl p(x:term) .decl q(x:term) .decl r(x:term) .decl t(x:term, y:term)
.decl n(k:number) .decl s(text:symbol) .decl u(x:term, k:number)
.decl {SAME_AS}(x:term, y:term)
"""
FACTS = {"p": {(A,), (C,)}, "q": {(A,)}, "t": {(A, B), (B, C)}, SAME_AS: {(A, B)}}
RULES = [
    # tests
    "r(x) :- p(x), x != e:a.",
    "r(x) :- p(x), x = e:bb.",
    "r(x) :- p(x), e:bb = e:a.",
    "r(x) :- p(x), e:bb != e:a.",
    'r(x) :- p(x), match(".*bb>", x).',
    'r(x) :- p(x), contains("bb", x).',
    'r(x) :- p(x), contains("bb", x), contains("a>", x).',
    'r(x) :- p(x), q(y), match(".*bb>", x), match(".*a>", y).',
    "r(x) :- p(x), q(y), x = y.",
    "r(x) :- p(x), q(y), x != y.",
    "n(1) :- p(x), q(y), x = y, x != y.",
    "n(1) :- t(x, x).",
    "n(1) :- t(x, y), x = y.",
    "n(1) :- t(x, y), x != y, q(y).",
    "n(1) :- p(x), x = e:bb, x != e:bb.",
    'r(x) :- p(x), x = e:bb, match(".*a>", x).',
    'r(y) :- p(x), x = y, y = z, match(".*a>", x), match(".*bb>", z).',
    'x = y :- p(x), p(y), x != y, contains("c", x), contains("a", y).',
    "x = y :- t(x, y), x != y.",
    "x = y :- t(x, z), t(z, y), x != z, y != z, x != y.",
    "x = e:c :- p(x), x != e:c.",
    # computations
    "n(k) :- p(x), k = strlen(to_string(x)).",
    "n(k) :- p(x), x = e:bb, k = strlen(to_string(x)).",
    "s(k) :- p(x), k = to_string(x).",
    "s(k) :- p(x), q(y), x = y, k = cat(to_string(x), to_string(y)).",
    "s(k) :- p(x), x = y, y != e:a, k = to_string(x).",
    "u(x, k) :- p(x), k = strlen(to_string(x)).",
    "n(k) :- t(x, y), k = strlen(to_string(x)) - strlen(to_string(y)).",
    # negation
    "r(x) :- p(x), !q(x).",
    "r(x) :- p(x), !q(e:bb).",
    "r(x) :- p(x), !t(x, _), x != e:a.",
    "r(x) :- p(x), !owl:sameAs(x, x).",
    "r(x) :- p(x), !owl:sameAs(e:bb, x).",
    # aggregates
    "n(k) :- k = count : { p(_) }.",
    "n(k) :- k = count : { p(x) }.",
    "n(k) :- k = count : { p(e:bb) }.",
    "n(k) :- k = count : { t(_, _) }.",
    "n(k) :- k = count : { t(x, x) }.",
    "n(k) :- k = count : { p(x), q(x) }.",
    "n(k) :- k = count : { p(x), q(y) }.",
    "n(k) :- k = count : { p(x), x = e:bb }.",
    "n(k) :- k = count : { p(x), q(y), x = y }.",
    "n(k) :- k = count : { p(x), q(y), x != y }.",
    "n(k) :- k = count : { p(x), !q(x) }.",
    "n(k) :- k = count : { p(x) ; q(x) }.",
    "n(k) :- k = count : { p(x), x != e:a ; q(x), x = e:a }.",
    "n(k) :- k = count : { owl:sameAs(_, _) }.",
    "n(k) :- k = sum strlen(to_string(x)) : { p(x) }.",
    "n(k) :- k = sum m : { p(x), m = strlen(to_string(x)) }.",
    "n(k) :- k = min strlen(to_string(x)) : { p(x), x = e:bb }.",
    "n(k) :- k = max strlen(to_string(x)) : { p(x), x != e:bb ; q(x), x = e:a }.",
    "n(k) :- k = max strlen(to_string(x)) : { t(x, _) }.",
    "s(k) :- k = max to_string(x) : { q(x) }.",
    "s(k) :- k = min to_string(x) : { q(x), x != e:a }.",
    "u(x, k) :- p(x), k = count : { t(x, _) }.",
    "u(x, k) :- p(x), k = count : { t(y, x), p(y) }.",
    "u(x, k) :- p(x), x != e:a, k = count : { t(x, _) }.",
    "u(x, k) :- p(x), k = count : { t(x, y), y != e:a }.",
    "u(x, k) :- p(x), y = x, k = count : { t(y, _) }.",
    "n(k) :- p(x), k = count : { p(y), q(x) }.",
    "n(k) :- k = count : { p(x), 2 = count : { q(_) } }.",
    "n(k) :- k = count : { p(x), 2 = count : { t(x, _) } }.",
]


@pytest.mark.parametrize("rule", RULES)
def test_rules_that_look_at_names(rule: str) -> None:
    found, expected = (
        evermat.Program.parse(HEADER + rule, equality=equality).materialise(FACTS)
        for equality in ("rewrite", "axiomatise")
    )
    assert facts_of(found) == facts_of(expected)
    for change in (
        {"delete": {SAME_AS: [(A, B)]}},
        {"insert": {SAME_AS: [(B, C)]}, "delete": {"q": [(A,)]}},
        {"insert": {SAME_AS: [(A, C)], "q": [(B,)]}},
        {"delete": {SAME_AS: [(B, C)], "t": [(A, B)]}},
        {"delete": {SAME_AS: [(A, C)], "p": [(A,)]}},
    ):
        found.update(**change, algorithm="bf-eq")
        expected.update(**change)
        assert facts_of(found) == facts_of(expected)


@pytest.mark.parametrize("body", list(dict.fromkeys(rule.partition(" :- ")[2].removesuffix(".") for rule in RULES)))
def test_queries_that_look_at_names(body: str) -> None:
    """Other than heads, answers are not in all names: a name is an answer if it is one."""
    found, expected = (
        evermat.Program.parse(HEADER, equality=equality).materialise(FACTS) for equality in ("rewrite", "axiomatise")
    )
    answer, right = found.query(body), expected.query(body)
    assert answer.columns == right.columns
    assert len(answer) == len(right)
    assert set(answer) == set(right)
    texts = right.columns.index("k") if "k" in right.columns else None  # k is no term
    normal = {tuple(A if value == B and i != texts else value for i, value in enumerate(row)) for row in right}
    assert set(found.query(body, representatives=True)) == normal


GROUPING = "u(x, k) :- p(x), k = count : { t(x, y), x != y }."
COMPUTING = "r(y) :- p(x), y = canonical_term(x)."
RESTRICTION = 'use the axioms of equality instead: `.pragma "equality" "axiomatise"` or `--equality axiomatise`'


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            GROUPING,
            "error[E263]: equality cannot be rewritten, because an aggregate inspects the names of `x`, by which it groups",
        ),
        (
            COMPUTING,
            "error[E262]: equality cannot be rewritten, because this rule computes terms: ",
        ),
    ],
)
def test_rules_that_need_the_axioms(rule: str, message: str) -> None:
    """Whoever asks for representatives is told; who does not gets the axioms."""
    with pytest.raises(evermat.ProgramError) as refused:
        evermat.Program.parse(HEADER + rule, equality="rewrite")
    assert str(refused.value).startswith(message)
    assert RESTRICTION in str(refused.value)
    equation = "\nx = y :- t(x, y), q(y)."
    chosen = evermat.Program.parse(HEADER + rule + equation)
    asked = evermat.Program.parse(HEADER + rule + equation, equality="axiomatise")
    assert facts_of(chosen.materialise(FACTS)) == {
        name: rows for name, rows in facts_of(asked.materialise(FACTS)).items() if name != "other_triple"
    }


def test_what_is_done_by_default() -> None:
    facts = {"p": [(A,)], SAME_AS: [(A, B)]}
    m = evermat.Program.parse(HEADER).materialise(facts)
    assert (len(m["p"]), m.names(A)) == (1, [A])  # nothing says that owl:sameAs is more than a relation
    m = evermat.Program.parse(HEADER + "x = y :- t(x, y).").materialise(facts)
    assert (len(m["p"]), len(m["p"].representatives), m.names(A)) == (2, 1, [A, B])
    m = evermat.Program.parse(HEADER + "x = y :- t(x, y).", equality="off").materialise(facts)
    assert (len(m["p"]), m.names(A)) == (1, [A])
    for text in ('.pragma "equality" "rewrite"', '.pragma "equality" "axiomatise"'):
        assert len(evermat.Program.parse(HEADER + text).materialise(facts)["p"]) == 2
    with pytest.raises(evermat.ProgramError, match="`equality=sometimes` is not valid"):
        evermat.Program.parse('.pragma "equality" "sometimes"')
    with pytest.raises(ValueError, match="'auto', 'rewrite', 'axiomatise' or 'off'"):
        evermat.Program.parse("", equality="sometimes")
