"""Pivots: which there are, and that partitions by them can be computed by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.core.source import Source
from evermat.language.analysis.strata import Stratum
from evermat.language.compile import compile_program
from evermat.language.model import Atom, Program, Rule, Variable
from evermat.plan import pivot_columns as module
from evermat.plan.pivot_columns import pivots
from tests.support import oracle
from tests.support.strategies import Facts, RandomProgram, Sketch, random_facts, random_program
from tests.support.updates import derivations


def compiled(rules: str) -> Program:
    """The program of some rules; relations are declared as they are first used, with columns of numbers."""
    arities: dict[str, int] = {}
    for name, terms in re.findall(r"(\w+)\(([^)]*)\)", rules):
        arities.setdefault(name, len(terms.split(",")) if terms else 0)
    sketches = [Sketch(name, ["number"] * arity, 0) for name, arity in arities.items()]
    return compile_program(Source("rules", RandomProgram(sketches, [rules]).text))


def pivots_of(rules: str) -> dict[str, int] | None:
    """The pivots of the one recursive stratum."""
    (stratum,) = [s for s in compiled(rules).strata if s.recursive]
    return pivots(stratum)


# --- by example --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("path(x,z) :- path(x,y), edge(y,z).", {"path": 0}),
        ("path(x,z) :- edge(x,y), path(y,z).", {"path": 1}),
        ("path(x,y) :- edge(x,y). path(x,z) :- path(x,y), edge(y,z).", {"path": 0}),  # nonrecursive rules do not matter
        ("path(1,y) :- edge(1,y). path(x,z) :- path(x,y), edge(y,z).", {"path": 0}),
        ("p(x,z) :- p(x,y), edge(y,z). p(x,z) :- edge(x,y), p(y,z).", None),  # each has one, but not the same
        ("p(x,z) :- p(x,y), p(y,z).", None),
        ("p(x,y) :- p(y,x).", None),
        ("same(x,y) :- up(x,a), same(a,b), up(y,b).", None),
        ("p(x,y) :- p(x,y), e(x,y).", {"p": 0}),  # both would do
        ("p(x,w,z) :- p(x,v,z), e(v,w).", {"p": 0}),
        # several relations
        ("a(x,y) :- b(y,x). b(x,y) :- a(y,x), e(x).", {"a": 0, "b": 1}),
        ("a(x,y) :- b(y,x). b(x,y) :- a(y,x), e(x). a(x,y) :- a(z,y), e(z), e(x).", {"a": 1, "b": 0}),
        ("a(x,y) :- b(y,x). b(x,y) :- a(x,y), e(x).", None),
        ("a(x) :- b(y,x). b(x,y) :- a(y), e(x).", {"a": 0, "b": 1}),
        ("a(x,y,z) :- b(z,x,y). b(x,y,z) :- c(z,x,y). c(x,y,z) :- a(z,x,y).", {"a": 0, "b": 1, "c": 2}),
        ("a(x,y) :- b(x,y), c(x,y). b(x,y) :- a(x,z), e(z,y). c(x,y) :- a(x,z), e(z,y).", {"a": 0, "b": 0, "c": 0}),
        ("a(x,y) :- b(x,y), c(y,x). b(x,y) :- a(x,z), e(z,y). c(x,y) :- a(x,z), e(z,y).", None),
        ("a(x,y) :- b(x,y). b(x,y) :- c(x,y). c(x,y) :- a(y,x).", None),  # a ring with a twist
        ("a(x,y,z) :- b(x,y,z). b(x,y,z) :- c(x,y,z). c(x,y,z) :- a(y,x,z).", {"a": 2, "b": 2, "c": 2}),
        # several recursive atoms
        ("r(x,z) :- r(x,y), r(x,z), s(y,z).", {"r": 0}),
        ("r(x,z) :- r(y,z), r(x,z), s(y,z).", {"r": 1}),
        ("r(x,z) :- r(x,y), r(u,z), s(y,u).", None),
        # constants and `_`
        ("p(1,z) :- p(1,y), e(y,z).", None),
        ("p(1,y) :- p(z,y), e(z,y).", {"p": 1}),
        ("p(x,y) :- p(1,y), e(x,y).", {"p": 1}),
        ("p(x,y) :- p(_,y), e(x,y).", {"p": 1}),
        ("p(x,y) :- p(_,_), e(x,y).", None),
        ("p(x,y) :- p(x,_), p(_,y).", None),
        # a variable that is computed or tested to be equal is another one
        ("p(x,z) :- p(y,z), e(y,z), x = y.", {"p": 1}),
        ("p(x) :- p(y), e(x,y), x = y.", None),
        ("p(x,n) :- p(x,m), e(m,m), n = m + 1.", {"p": 0}),
        ("p(n) :- p(m), n = m + 1.", None),
        # variables that stand twice
        ("p(x,x) :- p(x,y), e(y,y).", {"p": 0}),
        ("p(x,x) :- p(y,x), e(y,y).", {"p": 1}),
        ("p(x,y) :- p(y,y), e(x,y).", {"p": 1}),
        ("a(x,y) :- b(x,x), e(x,y). b(x,y) :- a(y,z), e(x,z).", {"a": 0, "b": 1}),
        ("b(x,y) :- a(y,z), e(x,z). a(x,y) :- b(x,x), e(x,y).", {"b": 1, "a": 0}),
        # the first guess for `a` leaves `b` two columns, of which neither agrees with `c`
        ("a(x,y) :- b(x,x,y). b(x,y,z) :- c(z), e(x,y). c(x) :- a(y,x).", {"a": 1, "b": 2, "c": 0}),
        ("a(x,y,z) :- b(y,x,z). b(x,y,z) :- a(x,y,z).", {"a": 2, "b": 2}),  # two wrong guesses
        # no columns
        ("p() :- p(), e(x).", None),
        ("p(x) :- q(), e(x). q() :- p(_).", None),
        # what is negated is of a stratum below
        ("p(x,z) :- p(x,y), e(y,z), !e(z,x), !e(_,y).", {"p": 0}),
        ("p(x,z) :- p(x,y), e(y,z), !q(z). q(x) :- e(x,_).", {"p": 0}),
        # aggregates: below is well, over groups that recursion lists not
        ("p(x,n) :- p(x,y), e(y,z), n = max m : { e(y,m) }.", {"p": 0}),
        ("p(x,n) :- p(x,y), e(y,z), n = count : { e(y,_) }.", None),
    ],
)
def test_example(rules: str, expected: dict[str, int] | None) -> None:
    assert pivots_of(rules) == expected


def test_equivalence_has_none() -> None:
    (stratum,) = compile_program(Source("", ".decl near(x:symbol, y:symbol) eqrel")).strata
    assert pivots(stratum) is None


def test_no_recursion_has_none() -> None:
    assert [pivots(stratum) for stratum in compiled("a(x) :- b(x), c(x).").strata] == [None, None]


def test_relations_stand_in_the_order_of_the_stratum() -> None:
    program = compile_program(
        Source(
            "",
            ".decl b(x:number,y:number) .decl a(x:number,y:number) a(x,y) :- b(y,x). b(x,y) :- a(y,x).",
        )
    )
    (stratum,) = program.strata
    assert list((pivots(stratum) or {}).items()) == [("b", 0), ("a", 1)]


# --- by definition -----------------------------------------------------------------------------------------


def recursive_atoms(rule: Rule, stratum: Stratum) -> list[Atom]:
    return [a for a in rule.body if isinstance(a, Atom) and a.relation.name in stratum.relations]


def hands_on(rule: Rule, stratum: Stratum, choice: dict[str, int]) -> bool:
    """The definition: the head and all recursive atoms of a rule have the same variable in their pivot."""
    variable = rule.head.terms[choice[rule.head.relation.name]]
    found = [atom.terms[choice[atom.relation.name]] for atom in recursive_atoms(rule, stratum)]
    return isinstance(variable, Variable) and not rule.aggregate and all(term == variable for term in found)


def first_by_enumeration(program: Program, stratum: Stratum) -> dict[str, int] | None:
    """All choices in order; the first that the definition allows."""
    for columns in product(*(range(program.relations[name].arity) for name in stratum.relations)):
        choice = dict(zip(stratum.relations, columns, strict=True))
        if all(hands_on(rule, stratum, choice) for rule in stratum.recursive):
            return choice
    return None


def recursive_program(rng: Random) -> RandomProgram:
    """A few relations that depend on each other through rules that often hand something on."""
    relations = [Sketch(f"r{i}", ["number"] * rng.choice([1, 2, 2, 3, 3]), 0) for i in range(rng.randint(1, 4))]
    home = {r.name: rng.randrange(len(r.types)) for r in relations}
    faithful = rng.choice([0.0, 0.5, 0.95, 1.0])
    twisted = rng.random() < 0.3  # every atom has each of its variables once
    bound = "base(x, y), base(z, w)"

    def atom(relation: Sketch) -> str:
        if twisted:
            return f"{relation.name}({', '.join(rng.sample('xyz'[: len(relation.types)], len(relation.types)))})"
        terms = [rng.choice(["x", "y", "z", "w", "x", "y", "1"]) for _ in relation.types]
        if rng.random() < faithful:
            terms[home[relation.name]] = "x"
        return f"{relation.name}({', '.join(terms)})"

    rules = []
    for i, head in enumerate(relations * rng.choice([1, 2])):
        others = [relations[(i + 1) % len(relations)], *rng.choices(relations, k=rng.choice([0, 0, 1]))]
        rules.append(f"{atom(head)} :- {', '.join(map(atom, others))}, {bound}.")
    relations.append(Sketch("base", ["number", "number"], 0))
    return RandomProgram(relations, rules, random_facts(rng, relations))


def recursive_strata(program: Program) -> Iterator[Stratum]:
    return (stratum for stratum in program.strata if stratum.recursive)


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_program, recursive_program])
@settings(max_examples=300, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_is_the_first_choice_that_the_definition_allows(make, rng: Random) -> None:
    program = compile_program(Source("", make(rng).text))
    for stratum in recursive_strata(program):
        assert pivots(stratum) == first_by_enumeration(program, stratum)


# --- what pivots promise -----------------------------------------------------------------------------------


def consequences(rules: Iterable[Rule], facts: Facts) -> Facts:
    found: Facts = {}
    for rule in rules:
        found.setdefault(rule.head.relation.name, set()).update(derivations(rule, facts))
    return found


def fixpoint(rules: Iterable[Rule], facts: Facts) -> Facts:
    """The facts with all that rules derive from them."""
    while True:
        new = consequences(rules, facts)
        if all(rows <= facts[name] for name, rows in new.items()):
            return facts
        facts = {name: rows | new.get(name, set()) for name, rows in facts.items()}


def with_pivots(make, rng: Random) -> tuple[RandomProgram, Program]:
    """A random program with a pivot, if one comes soon."""
    for _ in range(50):
        random = make(rng)
        program = compile_program(Source("", random.text))
        if any(map(pivots, program.strata)):
            break
    return random, program


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_program, recursive_program])
@settings(max_examples=100, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_partitions_can_be_computed_by_themselves(make, rng: Random) -> None:
    random, program = with_pivots(make, rng)
    facts: Facts = {name: set(random.facts.get(name, ())) for name in program.relations}
    for stratum in program.strata:
        for name, rows in consequences(stratum.nonrecursive, facts).items():
            facts[name] |= rows
        whole = fixpoint(stratum.recursive, facts)
        if choice := pivots(stratum):
            parts = [
                part(stratum, facts, choice, value)
                for value in {row[i] for name, i in choice.items() for row in facts[name]}
            ]
            for name in stratum.relations:
                assert set().union(*(p[name] for p in parts)) == whole[name]
        facts = whole
    for name, rows in oracle.materialise(oracle.read(random.text), random.facts).items():
        assert facts[name] == rows


def part(stratum: Stratum, facts: Facts, choice: dict[str, int], value: object) -> Facts:
    """The fixpoint of the facts with one value in the pivot; it must not leave them."""
    start = facts | {name: {row for row in facts[name] if row[i] == value} for name, i in choice.items()}
    found = fixpoint(stratum.recursive, start)
    assert all(row[i] == value for name, i in choice.items() for row in found[name])
    return found


# --- large strata ------------------------------------------------------------------------------------------


def ring(count: int, rule: str) -> str:
    """A rule for each of many relations, each reading the next one."""
    return " ".join(rule.format(head=f"p{i}", body=f"p{(i + 1) % count}") for i in range(count))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{head}(x,y,z) :- {body}(x,u,v), e(u,v,y,z).", 0),
        ("{head}(y,z,x) :- {body}(u,v,x), e(u,v,y,z).", 2),
        ("{head}(x,y,y) :- {body}(z,y,y), e(x,z).", 1),  # a guess at every relation, none of them wrong
    ],
)
def test_many_relations_with_a_pivot(rule: str, expected: int) -> None:
    assert pivots_of(ring(300, rule)) == {f"p{i}": expected for i in range(300)}


@pytest.mark.slow
def test_a_dead_end_far_from_the_guess() -> None:
    rules = ring(300, "{head}(x,y,z) :- {body}(x,y,z).")
    assert pivots_of(f"{rules} p150(x,y,z) :- p150(u,v,z), e(x,y,u,v).") == {f"p{i}": 2 for i in range(300)}
    assert pivots_of(f"{rules} p150(x,y,z) :- p151(y,z,x).") is None
    last = "p299(x,y,z) :- p0(x,y,z)."
    assert last in rules
    assert pivots_of(rules.replace(last, "p299(x,y,z) :- p0(y,x,z).")) == {f"p{i}": 2 for i in range(300)}
    assert pivots_of(rules.replace(last, "p299(x,y,z) :- p0(y,z,x).")) is None


def test_many_rules_of_few_relations() -> None:
    rules = " ".join(f"a(x,y) :- b(y,x), e({i},x). b(x,y) :- a(y,x), e(x,{i})." for i in range(300))
    assert pivots_of(rules) == {"a": 0, "b": 1}


def different(first: str, second: str) -> str:
    """Rules under which two relations of three columns have different pivots; in between stands one column for each way."""
    between = f"{first}_{second}"
    by_first, by_second = f"{between}(x,x,y,y,z,z)", f"{between}(y,z,x,z,x,y)"
    pairs = [(f"{first}(x,y,z)", by_first), (by_first, f"{first}(x,y,z)")]
    pairs += [(f"{second}(x,y,z)", by_second), (by_second, f"{second}(x,y,z)")]
    return " ".join(f"{head} :- {body}." for head, body in pairs)


def graph(edges: Iterable[tuple[int, int]]) -> str:
    return " ".join(different(f"n{i}", f"n{k}") for i, k in edges)


def clique(nodes: range) -> list[tuple[int, int]]:
    return [(i, k) for i in nodes for k in nodes if i < k]


def test_guesses_are_taken_back() -> None:
    edges = [(0, 1), (0, 2), (3, 1), (3, 2), (1, 2), (0, 4), (4, 5), (5, 3)]  # 0 and 3 must be alike
    found = pivots_of(graph(edges))
    assert found is not None
    assert all(found[f"n{i}"] != found[f"n{k}"] for i, k in edges)
    assert found["n0"] == found["n3"] == 0
    assert pivots_of(graph([*edges, (0, 3)])) is None


def test_a_search_that_would_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [(i, i + 1) for i in range(40)]
    assert pivots_of(graph([*chain, *clique(range(40, 44))])) is None  # 2^40 ways to colour what comes before
    two_wrong_guesses = "a(x,y,z) :- b(y,x,z). b(x,y,z) :- a(x,y,z)."
    monkeypatch.setattr(module, "_DEAD_ENDS", 2)
    assert pivots_of(two_wrong_guesses) == {"a": 2, "b": 2}
    monkeypatch.setattr(module, "_DEAD_ENDS", 1)
    assert pivots_of(two_wrong_guesses) is None
