"""The example of section 3.1 of *Combining rewriting and incremental materialisation maintenance for Datalog programs with equality*, step by step.

R is a bijection there. The paper has c ≈ c for every c that there is; here such facts hold only where rules derive them, as these do for all ends of R,
or where c is the same as something else. So R ≈ R and ≈ ≈ ≈ are missing, and 12 facts of the paper's 14 hold before the deletion.
"""

from __future__ import annotations

import pytest

import evermat
from evermat import Materialisation
from evermat.language.terms import SAME_AS
from tests.support.equality.checks import ALGORITHMS
from tests.support.oracle import Facts
from tests.support.updates import facts_of

A, B, C, D, R = (f"<http://e/{name}>" for name in "abcdR")
HEADER = '.prefix e: <http://e/>\n.pragma "equality" "rewrite"\n'
RULES = """
y1 = y2 :- e:R(y1, x), e:R(y2, x){}.
y1 = y2 :- e:R(x, y1), e:R(x, y2){}.
"""
TRIPLES = ".decl triple(s:term, p:term, o:term)\n"
EXPLICIT = {(A, B), (C, D), (A, D)}
ALL_NAMES = {(x, y) for x in (A, C) for y in (B, D)}
ALL_SAME = {(x, y) for names in ((A, C), (B, D)) for x in names for y in names}


@pytest.fixture(params=[False, True], ids=["relations", "triples"])
def triples(request: pytest.FixtureRequest) -> bool:
    """How the facts are held."""
    return request.param


def facts(triples: bool, edges: set[tuple], same: set[tuple]) -> Facts:
    """Facts about R, and facts that say what is the same."""
    if triples:
        return {"triple": {(x, R, y) for x, y in edges} | {(x, SAME_AS, y) for x, y in same}}
    return {R: edges, SAME_AS: same}


def represented(m: Materialisation) -> Facts:
    return {name: set(m[name].representatives) for name in m}


def materialised(triples: bool, test: str = "") -> Materialisation:
    program = evermat.Program.parse(HEADER + (TRIPLES if triples else "") + RULES.format(test, test))
    return program.materialise(facts(triples, EXPLICIT, set()))


def assert_before(m: Materialisation, triples: bool) -> None:
    """(π, I) of E."""
    assert represented(m) == facts(triples, {(A, B)}, {(A, A), (B, B)})
    assert facts_of(m) == facts(triples, ALL_NAMES, ALL_SAME)
    assert sum(len(m[name]) for name in m) == 12
    assert [m.representative(term) for term in (A, B, C, D, R, SAME_AS)] == [A, B, A, B, R, SAME_AS]
    assert [m.names(term) for term in (A, B, C, D, R)] == [[A, C], [B, D], [A, C], [B, D], [R]]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_example_of_the_paper(triples: bool, algorithm: str) -> None:
    m = materialised(triples)
    assert_before(m, triples)
    edge = facts(triples, {(A, D)}, set())
    change = m.update(delete=edge, algorithm=algorithm)
    # (π′, I′): I′ contains I, though only facts were deleted.
    reflexive = {(x, x) for x in (A, B, C, D)}
    after = facts(triples, {(A, B), (C, D)}, reflexive)
    assert represented(m) == facts_of(m) == after
    assert [m.representative(term) for term in (A, B, C, D, R, SAME_AS)] == [A, B, C, D, R, SAME_AS]
    assert [m.names(term) for term in (A, B, C, D)] == [[A], [B], [C], [D]]
    assert {n: set(rows) for n, rows in change.deleted.items()} == facts(
        triples, {(A, D), (C, B)}, ALL_SAME - reflexive
    )
    assert change.inserted.total == 0
    change = m.update(insert=edge, algorithm=algorithm)
    assert {n: set(rows) for n, rows in change.inserted.items()} == facts(
        triples, {(A, D), (C, B)}, ALL_SAME - reflexive
    )
    assert change.deleted.total == 0
    assert_before(m, triples)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_example_with_rules_that_ask_for_different_names(triples: bool, algorithm: str) -> None:
    m = materialised(triples, test=", y1 != y2")
    assert_before(m, triples)
    edge = facts(triples, {(A, D)}, set())
    m.update(delete=edge, algorithm=algorithm)
    assert represented(m) == facts_of(m) == facts(triples, {(A, B), (C, D)}, set())
    m.update(insert=edge, algorithm=algorithm)
    assert_before(m, triples)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_was_not_said_cannot_be_deleted(triples: bool, algorithm: str) -> None:
    """Explicit facts keep the names under which they came: c R b only follows."""
    m = materialised(triples)
    assert not m.update(delete=facts(triples, {(C, B)}, {(A, C), (A, A)}), algorithm=algorithm)
    assert_before(m, triples)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_is_left_of_nothing(triples: bool, algorithm: str) -> None:
    m = materialised(triples)
    m.update(delete=facts(triples, EXPLICIT, set()), algorithm=algorithm)
    assert not any(len(m[name]) or len(m[name].representatives) for name in m)
    assert m.representative(C) == C
    m.update(insert=facts(triples, EXPLICIT, set()), algorithm=algorithm)
    assert_before(m, triples)
