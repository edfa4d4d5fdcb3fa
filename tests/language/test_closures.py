"""Closures: which rules are recognised, which are not, and that what is recognised means what the rules mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.core.source import Span
from evermat.language.builtins import Type
from evermat.language.model import Atom, Column, Program, Relation, Rule, Variable
from evermat.language.patterns.closures import MOST_PARTS, Closure, Member, find_closures, find_copies
from tests.support import oracle
from tests.support.golden import compile_text

Pairs = set[tuple]


def compiled(*lines: str) -> Program:
    """The program of some rules; relations are declared as they are first used, with columns of numbers."""
    arities: dict[str, int] = {}
    for name, terms in re.findall(r"(\w+)\(([^)]*)\)", "\n".join(lines)):
        arities.setdefault(name, len(terms.split(",")) if terms else 0)
    declared = [f".decl {name}({', '.join(f'c{i}:number' for i in range(n))})" for name, n in arities.items()]
    return compile_text("\n".join([*lines, *declared]))


def names(members: Iterable[Member]) -> str:
    return " ".join(member.relation + "'" * member.flipped for member in members)


def described(closure: Closure) -> str:
    """For instance `transitive p q'` or `linear p | e'`: a stroke is after what is flipped."""
    return f"{closure.kind} {names(closure.members)}" + (f" | {names(closure.bases)}" if closure.bases else "")


def found(*lines: str) -> dict[str, list[int]]:
    """The closures of rules, one in a line, and the lines of each closure's rules; all other recursive rules are `plain`."""
    program = compiled(*lines)
    result: dict[str, list[int]] = {}
    for stratum in program.strata:
        for title, rules in [*((described(c), c.rules) for c in stratum.closures), ("plain", stratum.plain)]:
            if rules:
                taken = result.setdefault(title, [])
                taken += [program.source.position(rule.span.start).line for rule in rules]
        taken_rules = [rule for closure in stratum.closures for rule in closure.rules]
        assert sorted(map(id, [*taken_rules, *stratum.plain])) == sorted(map(id, stratum.recursive))
    return {title: sorted(taken) for title, taken in result.items()}


# --- transitive --------------------------------------------------------------------------------------------

STEP = "r(x,z) :- r(x,y), r(y,z)."


@pytest.mark.parametrize(
    "rule",
    [
        STEP,
        "r(x,z) :- r(y,z), r(x,y).",
        "r(b,a) :- r(b,c), r(c,a).",
        "r(y,x) :- r(y,z), r(z,x).",
        "r(z,y) :- r(x,y), r(z,x).",
    ],
)
def test_a_transitive_rule_in_all_its_clothes(rule: str):
    assert found(rule) == {"transitive r": [1]}


def test_all_transitive_rules_of_a_relation_are_taken():
    assert found(STEP, "r(x,z) :- r(y,z), r(x,y).", STEP) == {"transitive r": [1, 2, 3]}


def test_other_rules_may_derive_into_the_relation():
    lines = (STEP, "r(x,y) :- e(x,y).", "r(x,y) :- r(y,x), f(x).", "r(x,z) :- r(x,y), e(y,z).", "r(1,x) :- r(x,x).")
    assert found(*lines) == {"transitive r": [1], "plain": [3, 4, 5]}


def test_the_relation_may_be_mutually_recursive_with_others():
    lines = (STEP, "s(x) :- r(x,y), f(y).", "r(x,y) :- s(x), s(y).", "t(x,y) :- r(x,y).", "r(x,y) :- t(x,y), s(x).")
    assert found(*lines) == {"transitive r": [1], "plain": [2, 3, 4, 5]}


def test_two_relations_of_a_stratum_have_closures_of_their_own():
    lines = (STEP, "q(x,z) :- q(x,y), q(y,z).", "q(x,y) :- r(x,y).", "r(x,y) :- q(x,y), e(x,y).")
    assert found(*lines) == {"transitive r": [1], "transitive q": [2], "plain": [3, 4]}


def test_closures_come_in_the_order_of_their_rules():
    program = compiled(
        "a(x,z) :- a(x,y), e(y,z).", "a(x,y) :- b(x,y), f(x).", "b(x,z) :- b(x,y), b(y,z).", "b(x,y) :- a(x,y), f(x)."
    )
    (stratum,) = [stratum for stratum in program.strata if stratum.recursive]
    assert [described(closure) for closure in stratum.closures] == ["linear a | e", "transitive b"]


# --- relations that copy each other ------------------------------------------------------------------------


def test_equal_relations_are_closed_together():
    assert found(STEP, "r(x,y) :- s(x,y).", "s(a,b) :- r(a,b).") == {"transitive r s": [1, 2, 3]}


def test_an_inverse_pair_is_closed_together():
    lines = ("n(x,y) :- b(y,x).", "b(x,y) :- n(y,x).", "b(x,z) :- b(x,y), b(y,z).")
    assert found(*lines) == {"transitive n b'": [1, 2, 3]}


@pytest.mark.parametrize(
    "rule",
    [
        "n(x,z) :- n(x,y), n(y,z).",
        "n(x,z) :- n(y,z), n(x,y).",
        "n(x,z) :- b(y,x), b(z,y).",
        "n(x,z) :- n(x,y), b(z,y).",
        "n(x,z) :- b(y,x), n(y,z).",
        "b(x,z) :- n(y,x), n(z,y).",
        "b(x,z) :- b(y,z), n(y,x).",
    ],
)
def test_a_transitive_rule_may_mix_an_inverse_pair(rule: str):
    assert found("n(x,y) :- b(y,x).", "b(x,y) :- n(y,x).", rule) == {"transitive n b'": [1, 2, 3]}


@pytest.mark.parametrize(
    "rule", ["n(x,z) :- b(x,y), n(y,z).", "n(x,z) :- b(x,y), b(y,z).", "n(x,z) :- n(x,y), b(y,z)."]
)
def test_a_rule_that_mixes_an_inverse_pair_wrongly_is_none(rule: str):
    assert found("n(x,y) :- b(y,x).", "b(x,y) :- n(y,x).", rule) == {"plain": [1, 2, 3]}


def test_three_relations_in_a_circle_of_copies():
    lines = ("a(x,y) :- b(y,x).", "b(x,y) :- c(x,y).", "c(x,y) :- a(y,x).", "c(x,z) :- c(x,y), b(y,z).")
    assert found(*lines) == {"transitive a b' c'": [1, 2, 3, 4]}


def test_an_odd_circle_of_turns_makes_its_relations_symmetric():
    lines = ("a(x,y) :- b(y,x).", "b(x,y) :- c(y,x).", "c(x,y) :- a(y,x).", "b(x,y) :- b(z,x), c(z,y).")
    assert found(*lines) == {"symmetric-transitive a b c": [1, 2, 3, 4]}


def test_equal_relations_with_a_turned_copy_are_symmetric():
    lines = ("a(x,y) :- b(x,y).", "b(x,y) :- a(x,y).", "b(x,y) :- a(y,x).", "a(x,z) :- a(x,y), a(y,z).")
    assert found(*lines) == {"symmetric-transitive a b": [1, 2, 3, 4]}


def test_copies_in_one_direction_only_stay():
    lines = ("a(x,y) :- b(x,y).", "b(x,y) :- a(x,y), e(x,y).", "a(x,z) :- a(x,y), a(y,z).")
    assert found(*lines) == {"transitive a": [3], "plain": [1, 2]}


def test_copies_without_a_transitive_rule_stay():
    assert found("a(x,y) :- b(y,x).", "b(x,y) :- a(y,x).") == {"plain": [1, 2]}
    assert found("a(x,y) :- a(y,x).") == {"plain": [1]}


def test_a_tautology_goes_where_its_relation_goes():
    assert found("r(x,y) :- r(x,y).", STEP) == {"transitive r": [1, 2]}
    assert found("r(x,y) :- r(x,y).") == {"plain": [1]}


@pytest.mark.slow
def test_a_long_circle_of_copies_needs_no_deep_stack():
    n = 1500
    lines = [f"r{i}(x,y) :- r{(i + 1) % n}(x,y)." for i in range(n)]
    assert found(*lines, "r0(x,z) :- r1(x,y), r2(y,z).").keys() == {"plain"}  # an engine could not tell so many apart


@pytest.mark.parametrize("n", [MOST_PARTS, MOST_PARTS + 1])
def test_closures_have_only_so_many_members_and_bases(n: int):
    lines = [f"r{i}(x,y) :- r{(i + 1) % n}(x,y)." for i in range(n)]
    circle = found(*lines, "r0(x,z) :- r1(x,y), r2(y,z).")
    linear = found(*(f"r(x,z) :- r(x,y), b{i}(y,z)." for i in range(n - 1)))
    assert ("plain" in circle) == ("plain" in linear) == (n > MOST_PARTS)


# --- symmetric ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", list(product([False, True], repeat=3)))
def test_in_a_symmetric_relation_any_orientation_will_do(turns: tuple[bool, ...]):
    head, first, second = (b + a if turn else a + b for turn, (a, b) in zip(turns, ["xz", "xy", "yz"], strict=True))
    rule = f"r({','.join(head)}) :- r({','.join(first)}), r({','.join(second)})."
    assert found("r(x,y) :- r(y,x).", rule) == {"symmetric-transitive r": [1, 2]}
    forwards = turns in {(False, False, False), (True, True, True)}
    assert found(rule) == ({"transitive r": [1]} if forwards else {"plain": [1]})


@pytest.mark.parametrize(
    "rule",
    [
        "r(x,y) :- r(x,z), r(x,y).",
        "r(x,y) :- r(x,y), r(y,x).",
        "r(x,y) :- r(x,a), r(b,y).",
        "r(x,x) :- r(x,y), r(y,z).",
    ],
)
def test_in_a_symmetric_relation_not_every_join_will_do(rule: str):
    lines = ("r(x,y) :- r(y,x).", rule)
    assert found(*lines) == {"plain": [1, 2]}
    assert found(*lines, STEP) == {"symmetric-transitive r": [1, 3], "plain": [2]}


def test_equivalence_relations_are_symmetric_closures():
    program = compile_text(".decl e(x:symbol, y:symbol) eqrel .decl f(x:symbol)\ne(x,y) :- e(x,z), f(z), f(y).")
    (stratum,) = [stratum for stratum in program.strata if stratum.recursive]
    (closure,) = stratum.closures
    assert described(closure) == "symmetric-transitive e"
    assert [str(rule) for rule in closure.rules] == ["e(y, x) :- e(x, y).", "e(x, z) :- e(x, y), e(y, z)."]
    assert [str(rule) for rule in stratum.plain] == ["e(x, y) :- e(x, z), f(z), f(y)."]


# --- linear ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("p(x,z) :- p(x,y), e(y,z).", "linear p | e"),
        ("p(x,z) :- e(y,z), p(x,y).", "linear p | e"),
        ("p(x,z) :- p(x,y), e(z,y).", "linear p | e'"),
        ("p(b,a) :- e(a,c), p(b,c).", "linear p | e'"),
        ("p(x,z) :- e(x,y), p(y,z).", "linear p' | e'"),
        ("p(x,z) :- p(y,z), e(x,y).", "linear p' | e'"),
        ("p(x,z) :- e(y,x), p(y,z).", "linear p' | e"),
    ],
)
def test_linear_rules(rule: str, expected: str):
    assert found(rule) == {expected: [1]}
    assert found("p(x,y) :- e(x,y).", rule, "p(x,y) :- p(x,x), e(x,y).") == {expected: [2], "plain": [3]}


def test_a_linear_closure_has_a_base_for_each_of_its_rules():
    lines = (
        "p(x,z) :- p(x,y), e(y,z).",
        "p(x,z) :- p(x,y), f(z,y).",
        "p(x,z) :- p(x,y), e(z,y).",
        "p(a,c) :- e(b,c), p(a,b).",
    )
    assert found(*lines) == {"linear p | e f' e'": [1, 2, 3, 4]}


def test_of_rules_that_keep_different_columns_the_more_numerous_are_taken():
    left, right, other = "p(x,z) :- p(x,y), e(y,z).", "p(x,z) :- e(x,y), p(y,z).", "p(x,z) :- f(x,y), p(y,z)."
    assert found(left, right) == {"linear p | e": [1], "plain": [2]}
    assert found(right, left) == {"linear p' | e'": [1], "plain": [2]}
    assert found(left, right, other) == {"linear p' | e' f'": [2, 3], "plain": [1]}


def test_the_column_that_is_kept_may_be_of_another_type():
    program = compile_text(
        ".decl p(x:symbol, y:number) .decl e(x:number, y:number)\np(x,z) :- p(x,y), e(y,z).\np(x,y) :- p(x,z), e(y,z)."
    )
    assert [described(c) for stratum in program.strata for c in stratum.closures] == ["linear p | e e'"]


def test_a_linear_relation_may_be_copied():
    lines = ("p(x,z) :- p(x,y), e(y,z).", "p(x,y) :- q(y,x).", "q(x,y) :- p(y,x).", "q(x,z) :- q(x,y), f(y,z).")
    assert found(*lines) == {"linear p | e": [1], "linear q | f": [4], "plain": [2, 3]}


def test_linear_rules_of_a_transitive_relation_stay():
    lines = (STEP, "r(x,z) :- r(x,y), e(y,z).", "s(x,y) :- r(x,y).", "r(x,y) :- s(x,y).", "s(x,z) :- e(x,y), s(y,z).")
    assert found(*lines) == {"transitive r s": [1, 3, 4], "plain": [2, 5]}


# --- near misses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        "r(x,x) :- r(x,y), r(y,x).",
        "r(x,y) :- r(x,y), r(y,x).",
        "r(x,y) :- r(x,y), r(x,y).",
        "r(y,z) :- r(x,y), r(x,z).",
        "r(x,y) :- r(x,z), r(y,z).",
        "r(z,x) :- r(x,y), r(y,z).",
        "r(x,y) :- r(x,a), r(b,y).",
        "r(x,y) :- r(x,x), r(x,y).",
        "r(x,z) :- r(x,y), r(y,z), r(x,z).",
        "r(x,z) :- r(x,y), r(y,z), e(x,z).",
        "r(x,z) :- r(x,y), r(y,z), x != z.",
        "r(x,z) :- r(x,y), r(y,z), z = x.",
        "r(x,z) :- r(x,y), r(y,z), !e(x,z).",
        "r(x,z) :- r(x,y), r(y,z), z = count : { e(y,_) }.",
        "r(x,z) :- r(x,1), r(1,z).",
        "r(1,z) :- r(1,y), r(y,z).",
        "r(x,z) :- r(x,_), r(_,z).",
        "r(x,y+1) :- r(x,z), r(z,y).",
        "r(x,z,w) :- r(x,y,w), r(y,z,w).",
        "r(x) :- r(y), e(y,x).",
        # linear
        "p(x,z) :- p(x,y), e(y,z), f(z).",
        "p(x,z) :- p(x,y), e(y,z), e(y,z).",
        "p(x,z) :- p(x,y), e(y,z), y < z.",
        "p(x,z) :- p(x,y), e(y,z), !e(z,y).",
        "p(x,z) :- p(x,_), e(_,z).",
        "p(x,z) :- p(x,1), e(1,z).",
        "p(x,z) :- p(x,z), e(z,z).",
        "p(x,z) :- p(x,z), e(x,z).",
        "p(x,x) :- p(x,y), e(y,x).",
        "p(x,z) :- p(x,y), e(x,z).",
        "p(z,x) :- p(x,y), e(y,z).",
        "p(x,z) :- p(y,x), e(y,z).",
        "p(x,z) :- p(y,x), e(x,z).",
        "p(x,z) :- e(x,z), p(z,y).",
        "p(x,z) :- p(x,y), e(y,z,1).",
        "p(x,z) :- p(x,y), e(z).",
        "p(x,n) :- p(x,y), n = count : { e(y,_) }.",
    ],
)
def test_near_misses_stay(rule: str):
    assert set(found(rule)) == {"plain"}


def test_a_base_must_be_of_a_lower_stratum():
    lines = ("p(x,z) :- p(x,y), e(y,z).", "e(x,y) :- p(y,x), f(x).")
    assert found(*lines) == {"plain": [1, 2]}


def test_a_rule_over_relations_that_are_not_equal_is_not_transitive():
    lines = ("r(x,z) :- r(x,y), s(y,z).", "s(x,y) :- r(x,y).")
    assert found(*lines) == {"plain": [1, 2]}


def test_strata_without_recursion_have_no_closures():
    program = compiled("p(x,z) :- e(x,y), e(y,z).", "p(x,y) :- e(y,x).")
    assert [(stratum.closures, stratum.plain) for stratum in program.strata] == [((), ())] * len(program.strata)


# --- at random ---------------------------------------------------------------------------------------------

OWN, LOWER, VALUES = ("p", "q", "r"), ("e", "f"), range(4)
RELATIONS = {name: Relation(name, tuple(Column(c, Type.NUMBER, "number") for c in "ab")) for name in (*OWN, *LOWER)}


def atom(name: str, terms: str) -> Atom:
    return Atom(RELATIONS[name], tuple(Variable(term, Type.NUMBER) for term in terms))


def random_rules(random: Random) -> list[Rule]:
    own = OWN[: random.randint(1, len(OWN))]
    return [random_rule(random, own) for _ in range(random.randint(1, 7))]


def random_rule(random: Random, own: Iterable[str]) -> Rule:
    """A recursive rule over pairs, most often one that is a copy, a join or nearly so."""

    def some(names: Iterable[str], terms: str) -> Atom:
        return atom(random.choice([*names]), random.choice([terms, terms, terms[::-1]]))

    form = random.choice(["copy", "copy", "join", "join", "linear", "any"])
    if form == "copy":
        head, body = some(own, "xy"), [some(own, "xy")]
    elif form == "join":
        head, body = some(own, "xz"), [some(own, "xy"), some(own, "yz")]
    elif form == "linear":
        head = some(own, "xz")
        body = [some([head.relation.name], "xy"), some(LOWER, "yz")]
    else:
        body = [some(own, random.choice(["xy", "xz"])), some((*own, *LOWER), random.choice(["xy", "yz"]))]
        bound = sorted({str(term) for a in body for term in a.terms})
        head = some(own, "".join(random.sample(bound, 2)))
    random.shuffle(body)
    return Rule(head, tuple(body), Span(0, 0))


def turned(pairs: Pairs, flipped: bool) -> Pairs:
    return {pair[::-1] for pair in pairs} if flipped else pairs


def meaning(closure: Closure, facts: dict[str, Pairs]) -> Pairs:
    """R = X ∘ B*, by the definition."""

    def edges(members: Iterable[Member]) -> Pairs:
        return {pair for member in members for pair in turned(facts[member.relation], member.flipped)}

    result = edges(closure.members)
    if closure.symmetric:
        result |= turned(result, True)
    steps = edges(closure.bases) if closure.bases else set(result)
    while more := {(u, w) for u, v in result for a, w in steps if a == v} - result:
        result |= more
    return result


def evaluated(rules: Iterable[Rule], facts: dict[str, Pairs]) -> dict[str, Pairs]:
    """All that rules derive from facts, naively."""
    facts = {name: set(pairs) for name, pairs in facts.items()}
    while True:
        new = {(r.head.relation.name, oracle.head(r, b)) for r in rules for b in oracle.bindings(r.body, facts)}
        if all(pair in facts[name] for name, pair in new):
            return facts
        for name, pair in new:
            facts[name].add(pair)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.randoms(use_true_random=True))
def test_a_closure_means_what_its_rules_mean(random: Random):
    rules = random_rules(random)
    closures = find_closures(rules, OWN)
    members = [member.relation for closure in closures for member in closure.members]
    taken = [rule for closure in closures for rule in closure.rules]
    assert len({*members}) == len(members)
    assert len({*taken}) == len(taken)
    for closure in closures:
        every = list(product(VALUES, repeat=2))
        facts = {name: set(random.sample(every, random.randint(0, 4))) for name in RELATIONS}
        expected = facts | {m.relation: turned(meaning(closure, facts), m.flipped) for m in closure.members}
        assert evaluated(closure.rules, facts) == expected, (described(closure), [str(rule) for rule in rules], facts)


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=True))
def test_other_clothes_change_nothing(random: Random):
    """Names of variables, the order of the body, and the order of a relation's columns do not matter."""
    rules = random_rules(random)
    flipped = {name for name in RELATIONS if random.random() < 0.5}

    def dressed(rule: Rule) -> Rule:
        new = dict(zip("xyz", random.sample("abcxyz", 3), strict=True))
        head, *body = (
            atom(a.relation.name, "".join(new[str(t)] for t in a.terms)[:: -1 if a.relation.name in flipped else 1])
            for a in (rule.head, *rule.body)
        )
        return Rule(head, tuple(random.sample(body, len(body))), rule.span)

    others = [dressed(rule) for rule in rules]

    def split(rules: list[Rule]) -> list[tuple[str, set[str], set[str], list[int]]]:
        return [
            (c.kind, {m.relation for m in c.members}, {b.relation for b in c.bases}, [rules.index(r) for r in c.rules])
            for c in find_closures(rules, OWN)
        ]

    assert split(rules) == split(others)


# --- copies ------------------------------------------------------------------------------------------------


def copied(*lines: str) -> str:
    """What rules copy into the one closure of a program, by the stratum of which it is."""
    (stratum,) = (stratum for stratum in compiled(*lines).strata if stratum.closures)
    copies = find_copies(stratum.closures[0], stratum.nonrecursive)
    assert all(copy.rule in stratum.nonrecursive for copy in copies)
    return names(copy.source for copy in copies)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["r(x,y) :- e(x,y).", STEP], "e"),
        (["r(x,y) :- e(y,x).", STEP], "e'"),
        (["r(a,b) :- e(a,b).", "r(x,y) :- f(y,x).", "r(x,y) :- e(y,x).", STEP], "e f' e'"),
        (["r(x,y) :- e(x,y), f(x,y).", "r(x,x) :- e(x,x).", "r(x,1) :- e(x,1).", "r(x,y) :- g(x,y,_).", STEP], ""),
        (["r(x,y) :- e(x,y), x < y.", "r(x,y) :- e(x,y), !f(x,y).", STEP], ""),
        (["r(x,y) :- e(x,y).", "r(x,z) :- r(x,y), e(y,z)."], "e"),
        (["r(x,y) :- e(x,y).", "r(x,z) :- e(x,y), r(y,z)."], "e'"),  # edges lead backwards
        (["r(x,y) :- e(x,y).", "q(x,y) :- f(x,y).", "q(y,x) :- r(x,y).", "r(y,x) :- q(x,y).", STEP], "e f'"),
        (["r(x,y) :- e(x,y).", "r(y,x) :- r(x,y).", STEP], "e"),
    ],
)
def test_what_is_copied_into_a_closure(lines: list[str], expected: str) -> None:
    assert copied(*lines) == expected


def test_copies_need_parts() -> None:
    rules = [f"r(x,y) :- e{i}(x,y)." for i in range(MOST_PARTS)]
    assert copied(*rules, STEP) == ""
    assert copied(*rules[1:], STEP) == names(Member(f"e{i}", flipped=False) for i in range(1, MOST_PARTS))
    symmetric = "r(y,x) :- r(x,y)."
    assert copied(*rules[: MOST_PARTS // 2], STEP, symmetric) == ""
    assert copied(*rules[1 : MOST_PARTS // 2], STEP, symmetric) != ""
