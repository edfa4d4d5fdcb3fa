"""Facts that have no rows: whoever reads them finds what a table would hold."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from tests.support.scheme_cases import CLOSURES, NODES, READERS, Case, parsed, read_by_rules, schemes_of
from tests.support.schemes import use_schemes
from tests.support.strategies import Features, random_program, random_query
from tests.support.updates import assert_counters_right, facts_of

DECLARED = " ".join(f".decl {name}(x:number)" for name in "abuvlrd") + " "
THREE = " ".join(f".decl {name}(x:number, y:symbol, z:float)" for name in "abu") + " "
PAIRS = " ".join(f".decl {name}(x:number, y:number)" for name in "abetu") + " "
INVERSE = (
    "t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z). b(y, x) :- t(x, y). t(y, x) :- b(x, y). "
    "u(x, y) :- t(x, y). u(x, y) :- b(x, y). u(x, y) :- a(x, y). "
)

UNIONS = {
    "chain": Case(
        DECLARED + "u(x) :- a(x). u(x) :- b(x). v(x) :- u(x).",
        {"a": {(1,), (2,)}, "b": {(2,), (3,)}},
        {"u": {(1,), (2,), (3,)}, "v": {(1,), (2,), (3,)}},
        {"u": "union", "v": "union"},
    ),
    "diamond": Case(
        DECLARED + "l(x) :- a(x). r(x) :- a(x). r(x) :- b(x). d(x) :- l(x). d(x) :- r(x).",
        {"a": {(1,), (2,)}, "b": {(2,), (3,)}},
        {"l": {(1,), (2,)}, "r": {(1,), (2,), (3,)}, "d": {(1,), (2,), (3,)}},
        {"l": "union", "r": "union", "d": "union"},
    ),
    "explicit facts": Case(
        DECLARED + "u(x) :- a(x). u(x) :- b(x). v(x) :- u(x).",
        {"a": {(1,), (2,)}, "b": {(2,)}, "u": {(2,), (4,)}, "v": {(1,), (5,)}},
        {"u": {(1,), (2,), (4,)}, "v": {(1,), (2,), (4,), (5,)}},
        {"u": "union", "v": "union"},
    ),
    "other rules": Case(
        DECLARED + "u(x) :- a(x). u(y) :- b(x), y = x + 1. v(x) :- u(x). v(x) :- b(x), !a(x).",
        {"a": {(1,), (2,)}, "b": {(1,), (7,)}},
        {"u": {(1,), (2,), (8,)}, "v": {(1,), (2,), (7,), (8,)}},
        {"u": "union", "v": "union"},
    ),
    "three columns": Case(
        THREE + "u(x, y, z) :- a(x, y, z). u(p, q, r) :- b(p, q, r).",
        {"a": {(1, "a", 0.5), (1, "b", 0.5)}, "b": {(1, "a", 0.5), (2, "a", 0.5)}, "u": {(0, "", -1.0)}},
        {"u": {(1, "a", 0.5), (1, "b", 0.5), (2, "a", 0.5), (0, "", -1.0)}},
        {"u": "union"},
    ),
    "over closures": Case(
        PAIRS + "t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z). "
        "b(x, y) :- a(x, y). b(x, z) :- b(x, y), e(y, z). u(x, y) :- t(x, y). u(x, y) :- b(x, y).",
        {"e": {(1, 2), (2, 3), (3, 1)}, "a": {(1, 3), (9, 2)}, "u": {(1, 1), (4, 4)}},
        {"u": {(x, y) for x in (1, 2, 3, 9) for y in (1, 2, 3)} | {(4, 4)}},
        {"t": "intervals", "b": "intervals", "u": "union"},
    ),
    "of everything": Case(
        PAIRS + "t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z). a(x, y) :- e(x, y). b(x, y) :- a(x, y). "
        + "".join(f"u(x, y) :- {name}(x, y). " for name in "abet"),
        {"e": {(1, 2), (2, 3)}, "b": {(3, 3)}},
        {"a": {(1, 2), (2, 3)}, "b": {(1, 2), (2, 3), (3, 3)}, "u": {(1, 2), (2, 3), (1, 3), (3, 3)}},
        {"t": "intervals", "a": "union", "b": "union", "u": "union"},
    ),
    "closure and inverse, no cycle": Case(
        PAIRS + INVERSE,
        {"e": {(1, 2), (2, 3), (5, 2)}, "a": {(2, 1), (1, 3), (7, 8)}, "u": {(3, 1), (8, 8)}},
        {
            "u": {(1, 2), (2, 3), (5, 2), (1, 3), (5, 3), (2, 1), (3, 2), (2, 5), (3, 1), (3, 5), (7, 8), (8, 8)},
        },
        {"t": "intervals", "b": "intervals", "u": "union"},
    ),
    "closure and inverse, cycles": Case(
        PAIRS + INVERSE,
        {"e": {(1, 2), (2, 1), (2, 3), (4, 4)}, "a": {(2, 1), (7, 8)}, "u": {(3, 1)}},
        {"u": {(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (2, 3), (3, 1), (3, 2), (4, 4), (7, 8)}},
        {"t": "intervals", "b": "intervals", "u": "union"},
    ),
    "nothing": Case(
        DECLARED + "u(x) :- a(x). v(x) :- u(x).", {}, {"u": set(), "v": set()}, {"u": "union", "v": "union"}
    ),
}  # fmt: skip
VALUES = {
    "symbol": ["", "é\n", "c", "🦀"],
    "number": [-(2**63), 2**63 - 1, 0, -1],
    "unsigned": [2**64 - 1, 2**63, 0, 1],
    "float": [float("-inf"), 5e-324, -1.5e300, 0.25],
}


@pytest.fixture(autouse=True)
def used(monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)


@pytest.mark.parametrize("counters", ["none", "both"])
@pytest.mark.parametrize(
    "case", [*CLOSURES.values(), *UNIONS.values()], ids=[*CLOSURES, *(f"union: {u}" for u in UNIONS)]
)
def test_facts(case: Case, counters: str) -> None:
    program = parsed(case.text)
    m, plain = (program.materialise(case.facts, counters=counters, schemes=s) for s in ("auto", "plain"))
    assert schemes_of(m) == case.schemes
    assert schemes_of(plain) == {}
    assert facts_of(m) == facts_of(plain)
    for name, rows in case.expected.items():
        assert set(m[name]) == rows
        assert all(row in m[name] for row in rows)
        assert m.stats["schemes"][name]["facts"] == len(rows)
        table = m[name].to_arrow()
        assert sorted(zip(*(column.to_pylist() for column in table.columns), strict=True)) == sorted(rows)
    assert_counters_right(m, case.facts)


@pytest.mark.parametrize("name", CLOSURES)
def test_rules_read_them_in_every_way(name: str) -> None:
    case = CLOSURES[name]
    facts = case.facts | {"node": {(x,) for x in NODES}}
    m = parsed(case.text + READERS).materialise(facts, counters="both")
    assert schemes_of(m).items() >= case.schemes.items()
    found = facts_of(m)
    expected = read_by_rules(case.expected["t"])
    assert {relation: found[relation] for relation in expected} == expected
    assert_counters_right(m, facts)


@pytest.mark.parametrize("counters", ["none", "both"])
def test_rules_read_unions_in_every_way(counters: str) -> None:
    """The same pairs, of which some have several sources: a closure, a copy of it, and explicit facts."""
    case = CLOSURES["transitive"]
    text = case.text.replace("t(", "c(") + ".decl t(x:number, y:number) t(x, y) :- c(x, y). t(x, y) :- e(x, y). "
    facts = case.facts | {"node": {(x,) for x in NODES}, "t": {(1, 4), (9, 3)}}
    m = parsed(text + READERS).materialise(facts, counters=counters)
    assert schemes_of(m).items() >= {"c": "intervals", "t": "union"}.items()
    found = facts_of(m)
    expected = read_by_rules(case.expected["t"] | {(9, 3)})
    assert {relation: found[relation] for relation in expected} == expected
    assert_counters_right(m, facts)


@pytest.mark.parametrize("type_", VALUES)
def test_values_of_all_types(type_: str) -> None:
    one, two, three, four = VALUES[type_]
    text = PAIRS.replace("number", type_) + (
        "t(x, y) :- e(x, y). t(x, z) :- t(x, y), t(y, z). u(x, y) :- t(x, y). u(x, y) :- a(x, y)."
        f".decl others(x:{type_}, n:number) others(x, n) :- e(x, _), n = count : {{ u(x, _) }}."
    )
    m = parsed(text).materialise({"e": [(one, two), (two, three)], "a": [(four, four), (one, three)]})
    assert schemes_of(m) == {"t": "intervals", "u": "union"}
    assert set(m["t"]) == {(one, two), (two, three), (one, three)}
    assert set(m["u"]) == {(one, two), (two, three), (one, three), (four, four)}
    assert set(m["others"]) == {(one, 2), (two, 1)}
    assert (four, one) not in m["u"]
    assert set(m.query("u(x, y), !t(x, y)")) == {(four, four)}


def test_a_linear_closure_begins_at_values_of_another_type() -> None:
    text = """
    .decl e(x:number, y:number) .decl f(x:symbol, y:number) .decl t(x:symbol, y:number)
    t(x, y) :- f(x, y).
    t(x, z) :- t(x, y), e(y, z).
    """
    m = parsed(text).materialise({"e": [(0, 1), (1, 2), (2, 0)], "f": [("a", 0), ("b", 7)]})
    assert schemes_of(m) == {"t": "intervals"}
    assert set(m["t"]) == {("a", 0), ("a", 1), ("a", 2), ("b", 7)}
    assert set(m.query("t(x, 2)")) == {("a",)}


def test_members_that_are_not_there() -> None:
    case = CLOSURES["transitive"]
    m = parsed(case.text).materialise(case.facts)
    for row in [(2, 1), (1, 1), (77, 1), (1, 77), (77, 77), (2**62, -1)]:
        assert row not in m["t"]
    assert (1,) not in m["t"]
    assert ("1", "2") not in m["t"]
    assert not m.query("t(77, x)")
    assert not m.query("t(x, 77)")


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_queries_are_answered_alike(rng: Random) -> None:
    random = random_program(rng, Features(closures=1.0, unions=0.7))
    program = evermat.Program.parse(random.text)
    with pytest.MonkeyPatch.context() as patch:
        use_schemes(patch)
        m, plain = (program.materialise(random.facts, schemes=s) for s in ("auto", "plain"))
    for _ in range(8):
        text, _variables = random_query(rng, random.relations)
        answer, expected = m.query(text), plain.query(text)
        assert set(answer) == set(expected), text
        assert (len(answer), answer.undefined) == (len(expected), expected.undefined), text


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1, 10**12], ids=["dense", "far apart"])
@pytest.mark.parametrize("turned", [False, True])
@settings(max_examples=15, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_unions_of_unions_are_asked_alike(rng: Random, scale: int, *, turned: bool) -> None:
    """Of two closures, the inverse of one, and tables, through unions that share sources; in every way that a query can ask."""
    text = PAIRS + INVERSE + (
        ".decl c, g, v, w, top(x:number, y:number) c(x, y) :- g(x, y). c(x, z) :- c(x, y), g(y, z). "
        "v(x, y) :- u(x, y). v(x, y) :- c(x, y). w(x, y) :- a(x, y). w(x, y) :- t(x, y). "
        "top(x, y) :- w(x, y). top(x, y) :- v(x, y)."
    )  # fmt: skip
    facts = {
        name: {(scale * rng.randrange(8), scale * rng.randrange(8)) for _ in range(rng.randrange(9))}
        for name in ("e", "a", "g", "u", "top")
    }
    with pytest.MonkeyPatch.context() as patch:
        use_schemes(patch, turned=turned)
        m, plain = (parsed(text).materialise(facts, schemes=s) for s in ("auto", "plain"))
    assert schemes_of(m).items() >= {"u": "union", "v": "union", "w": "union", "top": "union"}.items()
    for name in ("t", "u", "v", "w", "top"):
        expected = set(plain[name])
        streamed = [tuple(row.values()) for batch in m.query_batches(f"{name}(x, y)") for row in batch.to_pylist()]
        assert sorted(streamed) == sorted(expected)
        assert sorted(m[name]) == sorted(expected)
        assert len(m[name]) == len(expected)
        for x in range(9):
            for y in range(9):
                assert ((scale * x, scale * y) in m[name]) == ((scale * x, scale * y) in expected)
            key = scale * x
            for query in (f"{name}({key}, y)", f"{name}(y, {key})", f"{name}({key}, {key})"):
                assert sorted(m.query(query)) == sorted(plain.query(query)), query
            for atom in (f"{name}({key}, y)", f"{name}(y, {key})"):  # nothing is found twice
                query = f"n = count : {{ {atom} }}"
                assert list(m.query(query)) == list(plain.query(query)), query
