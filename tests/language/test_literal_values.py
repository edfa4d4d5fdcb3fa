"""Values of literals: one spelling for all literals of one value, and which literals are known to differ.

The oracle reads literals with the standard library alone.
"""

from __future__ import annotations

import base64
from collections.abc import Hashable
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.language.literal_values import canonical_term, different_values, literal_value
from evermat.language.terms import literal_term

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RATIONAL = "http://www.w3.org/2002/07/owl#rational"


def literal(text: str, kind: str) -> str:
    return literal_term(text, datatype=kind if ":" in kind else XSD + kind)


SAME = [
    (literal("010", "integer"), literal("10", "integer")),
    (literal("+10", "byte"), literal("10.00", "decimal")),
    (literal("-0", "integer"), literal("0", "decimal")),
    (literal("1.50", "decimal"), literal("01.5", "decimal")),
    (literal("3/2", RATIONAL), literal("1.5", "decimal")),
    (literal("-6/9", RATIONAL), literal("-2/3", RATIONAL)),
    (literal("10/5", RATIONAL), literal("2", "int")),
    (literal("1", "boolean"), literal("true", "boolean")),
    (literal("1e3", "double"), literal("1000", "double")),
    (literal("1e400", "double"), literal("INF", "double")),
    (literal("-1e39", "float"), literal("-INF", "float")),
    (literal("0.1", "float"), literal("0.100000001", "float")),
    (literal("NaN", "float"), literal("NaN", "float")),
    (literal("a b", "token"), '"a b"'),
    (literal("a", "NCName"), literal("a", "language")),
    (literal("a@", RDF + "PlainLiteral"), '"a"'),
    (literal("a@b@EN", RDF + "PlainLiteral"), '"a@b"@en'),
    (literal("00:00:00Z", "time"), literal("00:00:00.0Z", "time")),
    (literal("24:00:00", "time"), literal("00:00:00", "time")),
    (literal("2023-12-31T24:00:00", "dateTime"), literal("2024-01-01T00:00:00.000", "dateTime")),
    (literal("2024-01-01T00:00:00+00:00", "dateTime"), literal("2024-01-01T00:00:00Z", "dateTimeStamp")),
    (literal("-0001-12-31T24:00:00", "dateTime"), literal("0000-01-01T00:00:00", "dateTime")),
    (literal("2024-02-29-00:00", "date"), literal("2024-02-29Z", "date")),
    (literal("---31Z", "gDay"), literal("---31+00:00", "gDay")),
    (literal("--02-29Z", "gMonthDay"), literal("--02-29-00:00", "gMonthDay")),
    (literal("-0000", "gYear"), literal("0000", "gYear")),
    (literal("P1Y", "yearMonthDuration"), literal("P12M", "duration")),
    (literal("P1DT1.50S", "dayTimeDuration"), literal("PT24H1.5S", "duration")),
    (literal("-P0D", "duration"), literal("P0Y", "duration")),
    (literal("0aFf", "hexBinary"), literal("0AFF", "hexBinary")),
    (literal("Y Q = =", "base64Binary"), literal("YQ==", "base64Binary")),
    (literal("<a  y='1' x='2'/>", RDF + "XMLLiteral"), literal('<a x="2" y="1"></a>', RDF + "XMLLiteral")),
]
DIFFERENT = [
    (literal("1.85", "decimal"), literal("1.97", "decimal")),
    (literal("300", "byte"), literal("300", "integer")),
    (literal("1.0", "integer"), literal("1", "integer")),
    (literal("1/0", RATIONAL), literal("1", "integer")),
    (literal("1", "float"), literal("1", "double")),
    (literal("1", "double"), literal("1", "decimal")),
    (literal("0.1", "double"), literal("0.100000001", "double")),
    (literal("-0", "double"), literal("0", "double")),
    (literal("-0", "float"), literal("0", "float")),
    (literal("", "decimal"), literal("0", "decimal")),
    (literal("1", "boolean"), literal("1", "integer")),
    ('"1"', literal("1", "integer")),
    ('"a"@en', '"a"'),
    ('"a"@en', '"a"@en-gb'),
    ('"a"', literal("a", "anyURI")),
    (literal("http://e/%41", "anyURI"), literal("http://e/A", "anyURI")),
    (literal(" a", "token"), '" a"'),
    (literal(" 3 ", "int"), literal("3", "int")),
    (literal("1.5\n", "decimal"), literal("1.5", "decimal")),
    (literal("true ", "boolean"), literal("true", "boolean")),
    (literal("2024-02-29", "date"), literal("2024-02-29Z", "date")),
    (literal("2024-01-01T12:00:00Z", "dateTime"), literal("2024-01-01T13:00:00+01:00", "dateTime")),
    (literal("2023-02-29", "date"), literal("2023-03-01", "date")),
    (literal("2024-02-01", "date"), literal("2024-02-01T00:00:00", "dateTime")),
    (literal("P1M", "duration"), literal("P30D", "duration")),
    (literal("P1D", "yearMonthDuration"), literal("P1D", "duration")),
    (literal("P1M", "dayTimeDuration"), literal("P1M", "duration")),
    (literal("00", "hexBinary"), literal("AA==", "base64Binary")),
    (literal("<a/>", RDF + "XMLLiteral"), literal("<b/>", RDF + "XMLLiteral")),
    (literal("<a>", RDF + "XMLLiteral"), literal("<a></a>", RDF + "XMLLiteral")),
]
OWN = "http://example.org/own"
UNKNOWN = [
    (literal("1", OWN), literal("2", OWN)),
    (literal("1", OWN), '"1"'),
    (literal("1", "unheardOf"), literal("1", "integer")),
    (literal("{}", RDF + "JSON"), literal("<a/>", RDF + "HTML")),
    ("<http://e/1>", literal("1", "integer")),
    ("_:b", '"b"'),
    (literal("9" * 5000, "integer"), literal("1", "integer")),
    (literal("<a>" * 10_000, RDF + "XMLLiteral"), literal("<a/>", RDF + "XMLLiteral")),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_values(one: str, other: str) -> None:
    assert canonical_term(one) == canonical_term(other)
    assert not different_values(one, other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_values(one: str, other: str) -> None:
    assert canonical_term(one) != canonical_term(other)
    assert different_values(one, other)
    assert different_values(other, one)


@pytest.mark.parametrize(("one", "other"), UNKNOWN)
def test_values_that_nobody_knows(one: str, other: str) -> None:
    assert canonical_term(one) != canonical_term(other)
    assert not different_values(one, other)
    assert not different_values(other, one)


# --- the oracle ----------------------------------------------------------------------------------------------


def nearest_float(text: str) -> float:
    """The nearest float of 32 bits, of all that there are near by."""
    number, near = Fraction(text), np.float32(float(text))
    choices = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    return float(min(choices, key=lambda c: (abs(Fraction(float(c)) - number), int(c.view(np.uint32)) & 1)))


def zone_of(text: str) -> tuple[str, int | None]:
    """A text without its zone, and the minutes of that."""
    if text.endswith("Z"):
        return text[:-1], 0
    if text[-6:-5] in ("+", "-") and text[-3] == ":":
        minutes = int(text[-5:-3]) * 60 + int(text[-2:])
        return text[:-6], -minutes if text[-6] == "-" else minutes
    return text, None


def read(text: str, kind: str) -> Hashable:
    """The value of a literal that is spelled as its datatype asks for."""
    match kind:
        case "decimal" | "integer" | "long" | "rational":
            return "number", Fraction(text)
        case "double":
            return kind, str(float(text))
        case "float":
            return kind, str(nearest_float(text))
        case "boolean":
            return kind, text in ("1", "true")
        case "hexBinary":
            return kind, bytes.fromhex(text)
        case "base64Binary":
            return kind, base64.b64decode(text.replace(" ", ""))
        case "dateTime" | "dateTimeStamp":
            text, zone = zone_of(text)
            midnight = "T24:" in text
            moment = datetime.fromisoformat(text.replace("T24:", "T00:")[:19]) + timedelta(days=midnight)
            return "dateTime", moment, Fraction("0" + text[19:] if text[19:] else 0), zone
        case "date":
            text, zone = zone_of(text)
            return kind, datetime.fromisoformat(text), zone
        case "time":
            text, zone = zone_of(text)
            return kind, int(text[:2]) % 24, text[3:8], Fraction("0" + text[8:] if text[8:] else 0), zone
        case "duration" | "dayTimeDuration" | "yearMonthDuration":
            return "duration", *length(text)
    return "string", text


def length(text: str) -> tuple[Fraction, Fraction]:
    """The months and the seconds of a duration."""
    sign = -1 if text.startswith("-") else 1
    dated, _, timed = text.lstrip("-P").partition("T")
    months = seconds = Fraction(0)
    for part, units in ((dated, {"Y": (12, 0), "M": (1, 0), "D": (0, 86400)}), (timed, {"H": 3600, "M": 60, "S": 1})):
        number = ""
        for character in part:
            if character not in units:
                number += character
                continue
            unit = units[character]
            month, second = unit if isinstance(unit, tuple) else (0, unit)
            months += sign * month * Fraction(number)
            seconds += sign * second * Fraction(number)
            number = ""
    return months, seconds


ZONE = r"(Z|[+-]00:00|[+-]0[12]:00|)"
CLOCK = r"((00|01|23):0[01]:0[01](\.[01]0?)?|24:00:00(\.0)?)"
DATE = r"(2023-12-(30|31)|2024-(01-0[12]|02-29|03-01))"
SPELLINGS = {
    "decimal": r"[+-]?0?[01](\.[05]0?)?",
    "integer": "[+-]?0?[012]",
    "long": "[+-]?0?[012]",
    "rational": "[+-]?0?[0-4]/[1-4]",
    "double": r"[+-]?(0|1|10|0\.1|16777217)([eE][+-]?[01])?",
    "float": r"[+-]?(0|1|10|0\.1|16777217|16777217\.0000000001|16777216\.9999999999|1e-45|0\.7006492321624085e-45)",
    "boolean": "0|1|true|false",
    "hexBinary": "(0a|0A|b0|B0)?",
    "base64Binary": "(YQ==|Y Q==|YQ = =|YWI=|Y W I =|YWJj|)",
    "string": "[ab]?",
    "token": "[ab]?",
    "NMTOKEN": "[ab]",
    "dateTime": f"{DATE}T{CLOCK}{ZONE}",
    "dateTimeStamp": f"{DATE}T{CLOCK}(Z|[+-]00:00|[+-]0[12]:00)",
    "date": f"{DATE}{ZONE}",
    "time": f"{CLOCK}{ZONE}",
    "duration": r"-?P([01]Y|12M|[01]D|)T([01]H|60M|3600S|1\.50?S)",
    "dayTimeDuration": r"-?P([01]DT0S|T(24H|1440M|86400S|1\.50S))",
    "yearMonthDuration": "-?P([01]Y|[01]Y12M|12M|0M)",
}
SPELLED = {kind: st.from_regex(form, fullmatch=True) for kind, form in SPELLINGS.items()}
FAMILIES = [
    *(["decimal", "integer", "long", "rational"], ["string", "token", "NMTOKEN"], ["dateTime", "dateTimeStamp"]),
    *(["duration", "dayTimeDuration", "yearMonthDuration"], ["double"], ["float"], ["boolean"], ["hexBinary"]),
    *(["base64Binary"], ["date"], ["time"], list(SPELLINGS)),
]


@st.composite
def spelled_literals(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Three texts with their datatypes, which are often of one value."""
    family = draw(st.sampled_from(FAMILIES))
    kinds = [draw(st.sampled_from(family)) for _ in range(3)]
    return [(draw(SPELLED[kind]), kind) for kind in kinds]


@settings(max_examples=400, deadline=None)
@given(spelled_literals())
def test_values_are_what_the_standard_library_reads(found: list[tuple[str, str]]) -> None:
    terms = [literal(text, RATIONAL if kind == "rational" else kind) for text, kind in found]
    values = [read(text, kind) for text, kind in found]
    assert [literal_value(canonical_term(term)) for term in terms] == [literal_value(term) for term in terms]
    for (one, value), (other, another) in combinations(zip(terms, values, strict=True), 2):
        assert (canonical_term(one) == canonical_term(other)) == (value == another)
        assert different_values(one, other) == different_values(other, one) == (value != another)


@settings(max_examples=300, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(-3, 3), st.integers(1, 40))
def test_floats_are_rounded_once(start: float, step: int, digits: int) -> None:
    """Numbers beside the middle between two floats."""
    above = float(np.nextafter(np.float32(start), np.float32(np.inf)))
    if abs(above) > 1e38:
        return
    middle = (Fraction(start) + Fraction(above)) / 2
    places = 160
    text = f"{int(middle * 10**places) + step * 10 ** (places - min(places, digits + 45))}e-{places}"
    value = literal_value(literal(text, "float"))
    assert value is not None
    assert float(value[1 : value.rindex('"')]) == nearest_float(text)


@given(st.text(max_size=20), st.sampled_from([*SPELLINGS, "anyURI", "Name", "language", "gYear", "unheardOf"]))
def test_no_text_is_too_odd(text: str, kind: str) -> None:
    term = literal(text, kind)
    assert canonical_term(canonical_term(term)) == canonical_term(term)
    assert not different_values(term, canonical_term(term))


def test_in_programs() -> None:
    m = evermat.Program.parse(
        f'.prefix xsd: <{XSD}> .decl v(t:term) .decl c(t:term, s:symbol) v("01"^^xsd:integer). v("1.0"^^xsd:decimal). v("x").'
        "c(y, s) :- v(x), y = canonical_term(x), s = to_string(x)."
        ".decl d(s:symbol, t:symbol) d(to_string(x), to_string(y)) :- v(x), v(y), different_values(x, y) = 1."
    ).materialise()
    one, a, b = literal("1", "integer"), literal("01", "integer"), literal("1.0", "decimal")
    assert set(m["c"]) == {(one, a), (one, b), ('"x"', '"x"')}
    assert set(m["d"]) == {(a, '"x"'), (b, '"x"'), ('"x"', a), ('"x"', b)}
