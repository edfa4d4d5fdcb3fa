"""One spelling for all literals of one value."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evermat
from evermat.language.literal_values import canonical_term

XSD = "http://www.w3.org/2001/XMLSchema#"


def literal(text: str, kind: str) -> str:
    return f'"{text}"^^<{XSD}{kind}>'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (literal("010", "integer"), literal("10", "integer")),
        (literal("+10", "byte"), literal("10.00", "decimal")),
        (literal("-0", "integer"), literal("0", "decimal")),
        (literal(" 1.50\\n", "decimal"), literal("01.5", "decimal")),
        (literal("1", "boolean"), literal("true", "boolean")),
        (literal("1e3", "double"), literal("1000", "double")),
        (literal("1e400", "double"), literal("INF", "double")),
        (literal("-1e39", "float"), literal("-INF", "float")),
        (literal("0.1", "float"), literal("0.100000001", "float")),
    ],
)
def test_equal_values(one: str, other: str) -> None:
    assert canonical_term(one) == canonical_term(other)
    assert canonical_term(canonical_term(one)) == canonical_term(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (literal("300", "byte"), literal("300", "integer")),
        (literal("1.0", "integer"), literal("1", "integer")),
        (literal("1", "float"), literal("1", "double")),
        (literal("1", "double"), literal("1", "decimal")),
        (literal("0.1", "double"), literal("0.100000001", "double")),
        (literal("-0", "double"), literal("0", "double")),
        (literal("", "decimal"), literal("0", "decimal")),
        ('"1"', literal("1", "integer")),
        ('"a"@en', '"a"'),
        ("<http://e/1>", literal("1", "integer")),
    ],
)
def test_different_values(one: str, other: str) -> None:
    assert canonical_term(one) != canonical_term(other)


@given(st.from_regex(r"[+-]?0{0,2}[0-9]{0,5}(\.[0-9]{0,5})?", fullmatch=True), st.data())
def test_decimals_are_equal_as_fractions_are(text: str, data: st.DataObject) -> None:
    other = data.draw(st.sampled_from([text + "0", "0" + text, text.rstrip("0"), "1" + text]))
    terms = [literal(t, "decimal") for t in (text, other)]
    try:
        values = [Fraction(t) for t in (text, other)]
    except ValueError:
        return
    assert (canonical_term(terms[0]) == canonical_term(terms[1])) == (values[0] == values[1])


def test_in_programs() -> None:
    m = evermat.Program.parse(
        f'.prefix xsd: <{XSD}> .decl v(t:term) .decl c(t:term, s:symbol) v("01"^^xsd:integer). v("1.0"^^xsd:decimal). v("x").'
        "c(y, s) :- v(x), y = canonical_term(x), s = to_string(x)."
    ).materialise()
    one = literal("1", "integer")
    assert set(m["c"]) == {(one, literal("01", "integer")), (one, literal("1.0", "decimal")), ('"x"', '"x"')}
