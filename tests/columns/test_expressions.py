"""Every built-in on every type, at the edges: whole columns against the scalar meaning."""

from __future__ import annotations

import itertools
import math

import pytest

import evermat
from evermat.columns.evaluation.aggregates import _ACCUMULATORS
from evermat.language.builtins import AGGREGATES, FUNCTIONS, NEGATION, TESTS, Type, evaluate, holds

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
EDGES = {
    Type.NUMBER: [0, 1, -1, 2, -3, 7, 62, 63, 64, 2**31, -(2**31), 2**32 + 1, 3037000500, 2**62, 2**63 - 1, -(2**63)],
    Type.UNSIGNED: [0, 1, 2, 3, 10, 63, 64, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**64 - 1],
    Type.FLOAT: [0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 0.1, 1e308, -1e308, 5e-324, 1e19, 2.0**63, math.inf, -math.inf],
    Type.SYMBOL: ["", "a", "ab", "Z", "é", "～", "😀", "12", "-7", " 5", "1e3", "inf", "a.*", "9223372036854775808"],
    Type.TERM: ["<http://e/a>", "_:b", '"a"', '"a"@en', *(f'"{text}"^^<{INTEGER}>' for text in ("1", "01", "2", "x"))],
}
PREFIX = {NEGATION: "-", "bnot": "bnot", "lnot": "lnot"}
INFIX = ["+", "-", "*", "/", "%", "^", "band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor"]


def signatures() -> list[tuple[str, tuple[Type, ...], Type]]:
    """Every function with every combination of types that it takes; `min`, `max` and `cat` with two arguments."""
    found = []
    for function in FUNCTIONS.values():
        for shared in EDGES:
            types = [function.parameter(i) for i in range(len(function.parameters))]
            fixed = [t for t in types if t is not None]
            if any(t is None for t in types) and not shared & function.shared:
                continue
            if len(types) == 1 and fixed and not shared & fixed[0]:
                continue
            arguments = tuple(shared if t is None or len(types) == 1 else t for t in types)
            found.append((function.name, arguments, shared if function.result is None else function.result))
    return sorted(set(found))


def call(name: str, count: int) -> str:
    if name in PREFIX:
        return f"{PREFIX[name]} x"
    return f"x {name} y" if name in INFIX else f"{name}({', '.join('xyz'[:count])})"


def shown(part: object) -> str:
    return "_".join(map(str, part)) if isinstance(part, tuple) else str(part)


@pytest.mark.parametrize(("name", "types", "result"), signatures(), ids=shown)
def test_functions(name: str, types: tuple[Type, ...], result: Type) -> None:
    names = "xyz"[: len(types)]
    columns = ", ".join(f"{v}:{t}" for v, t in zip(names, types, strict=True))
    arguments = ", ".join(names)
    text = (
        f".decl a({columns}) .decl r({columns}, v:{result}) r({arguments}, {call(name, len(types))}) :- a({arguments})."
    )
    rows = list(itertools.product(*(EDGES[t] for t in types)))
    expected = {}
    for row in rows:
        value = evaluate(name, types[0], list(row), result)
        if value is not None:
            expected[row] = value
    materialised = evermat.Program.parse(text).materialise({"a": rows})
    assert {row[:-1]: row[-1] for row in materialised["r"]} == expected
    assert materialised.stats["undefined"] == len(rows) - len(expected)


@pytest.mark.parametrize("type_", EDGES, ids=str)
@pytest.mark.parametrize("operator", TESTS)
def test_tests(operator: str, type_: Type) -> None:
    if not type_ & (TESTS[operator].shared or Type.SYMBOL):
        return
    word = operator.lstrip("!")
    written = f"{word}(x, y)" if word.isalpha() else f"x {operator} y"
    negated = operator[0] == "!" and word.isalpha()
    text = f".decl a(x:{type_}, y:{type_}) .decl r(x:{type_}, y:{type_}) r(x, y) :- a(x, y), {'!' * negated}{written}."
    rows = list(itertools.product(EDGES[type_], repeat=2))
    found = set(evermat.Program.parse(text).materialise({"a": rows})["r"])
    assert found == {(x, y) for x, y in rows if holds(operator, x, y)}


def test_every_test_has_a_negation() -> None:
    assert {test.negation for test in TESTS.values()} == set(TESTS)
    assert all(TESTS[test.negation].negation == name for name, test in TESTS.items())


def test_the_engine_has_an_accumulator_for_every_aggregate() -> None:
    assert set(_ACCUMULATORS) == set(AGGREGATES)
