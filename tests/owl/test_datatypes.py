"""Sets of literals as patterns: every spelling of every value matches, and nothing else."""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.language.builtins import fault_of_pattern
from evermat.language.literal_values import different_values, literal_value
from evermat.language.terms import literal_term, quote
from evermat.owl.literals.datatypes import DECIDED, datatype_pattern, restriction_patterns
from evermat.owl.literals.number_ranges import between, integers_between
from evermat.owl.literals.xsd_regex import UnreadableError, translated
from evermat.owl.vocabulary import XSD, owl, rdf, rdfs, xsd
from tests.support.literal_oracle import KINDS, datatype_of, is_of, oracle_value
from tests.support.literal_oracle import texts as oracle_texts


def matches(pattern: str, texts: list[str]) -> list[bool]:
    assert not fault_of_pattern(pattern)
    return pc.match_substring_regex(pa.array(texts), rf"\A(?:{pattern})\z").to_pylist()


def typed(text: str, datatype: str) -> str:
    return literal_term(text, datatype=datatype if ":" in datatype else XSD + datatype)


# --- numbers -------------------------------------------------------------------------------------------------

whole = st.integers(-1200, 1200)
decimals = st.builds(lambda n, places: Decimal(n).scaleb(-places), st.integers(-3000, 3000), st.integers(0, 3))


@st.composite
def spelled(draw: st.DrawFn, number: Decimal) -> str:
    """A decimal number in one of its spellings."""
    front, _, back = f"{abs(number):f}".partition(".")
    back += "0" * draw(st.integers(0, 2))
    front = "0" * draw(st.integers(0, 2)) + front
    if int(front) == 0 and back and draw(st.booleans()):
        front = ""
    point = "." if back or draw(st.booleans()) else ""
    sign = "-" if number < 0 else draw(st.sampled_from(["", "+"] if number > 0 else ["", "+", "-"]))
    return f"{sign}{front}{point}{back}"


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.none() | whole, st.none() | whole, st.lists(whole, min_size=20, max_size=20))
def test_whole_numbers_between_two(low: int | None, high: int | None, numbers: list[int]) -> None:
    if low is not None and high is not None and low > high:
        low, high = high, low
    numbers += [bound + step for bound in (low, high) if bound is not None for step in (-1, 0, 1)]
    pattern = integers_between(low, high)
    expected = [(low is None or number >= low) and (high is None or number <= high) for number in numbers]
    assert matches(pattern, [str(number) for number in numbers]) == expected
    assert matches(pattern, [f"{'-' * (n < 0)}00{abs(n)}" for n in numbers]) == expected
    assert matches(pattern, ["", "+", "-", "1.5", "x", "1x"]) == [False] * 6


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data(), decimals, st.lists(decimals, min_size=10, max_size=10))
def test_decimal_numbers_on_one_side_of_another(data: st.DataObject, bound: Decimal, numbers: list[Decimal]) -> None:
    step = Decimal("0.001")
    numbers += [bound, bound + step, bound - step, bound + 1, bound - 1, Decimal(0)]
    texts = [data.draw(spelled(number)) for number in numbers]
    assert matches(between(low=bound), texts) == [number >= bound for number in numbers]
    assert matches(between(low=bound, open_=True), texts) == [number > bound for number in numbers]
    assert matches(between(high=bound), texts) == [number <= bound for number in numbers]
    assert matches(between(high=bound, open_=True), texts) == [number < bound for number in numbers]


@pytest.mark.parametrize("name", ["byte", "int", "long", "unsignedLong", "nonNegativeInteger", "negativeInteger"])
def test_derived_datatypes_have_their_bounds(name: str) -> None:
    bounds = {
        "byte": (-128, 127),
        "int": (-(2**31), 2**31 - 1),
        "long": (-(2**63), 2**63 - 1),
        "unsignedLong": (0, 2**64 - 1),
        "nonNegativeInteger": (0, 10**30),
        "negativeInteger": (-(10**30), -1),
    }
    low, high = bounds[name]
    pattern = datatype_pattern(xsd(name))
    assert pattern is not None
    inside = [typed(str(n), t) for n in (low, high, (low + high) // 2) for t in (name, "integer", "decimal")]
    assert all(matches(pattern, inside))
    outside = [
        typed(str(n), "integer") for n in ((low - 1) if low > -(10**30) else 0, high + 1 if high < 10**30 else -1)
    ]
    assert not any(matches(pattern, outside))
    assert matches(pattern, [typed(f"{high}.00", "decimal"), typed(f"{high}.5", "decimal")]) == [True, False]


# --- datatypes -----------------------------------------------------------------------------------------------

GOOD = {
    "string": ["", "a b", 'say "x" \\ \n\t'],
    "normalizedString": ["", " a  b "],
    "token": ["", "a", "a b"],
    "language": ["en", "de-CH"],
    "Name": ["a", "a:b-1", "ärger"],
    "NCName": ["a", "_b.c"],
    "NMTOKEN": ["1a", "-"],
    "boolean": ["true", "false", "1", "0"],
    "integer": ["0", "-0", "+12", "007"],
    "decimal": ["1", "1.", ".5", "-1.50"],
    "double": ["1", "1e5", "-1.5E-3", "INF", "NaN", ".5"],
    "float": ["1", "-INF"],
    "dateTime": ["2024-02-29T12:00:00", "-0044-03-15T00:00:00.5Z", "2024-01-01T24:00:00+14:00"],
    "dateTimeStamp": ["2024-01-01T00:00:00Z"],
    "date": ["2024-01-31", "2024-01-31+01:00"],
    "time": ["23:59:59.999"],
    "gYear": ["2024", "-0001"],
    "gYearMonth": ["2024-12"],
    "gMonth": ["--12"],
    "gMonthDay": ["--12-31"],
    "gDay": ["---31"],
    "duration": ["P1Y2M3DT4H5M6.7S", "-P1D", "PT1S"],
    "yearMonthDuration": ["P1Y", "P3M"],
    "dayTimeDuration": ["P1DT1H", "PT5M"],
    "hexBinary": ["", "0aFF"],
    "base64Binary": ["", "YQ==", "YWI=", "YWJj"],
    "anyURI": ["http://x/", "a b"],
}
BAD = {
    "normalizedString": ["a\tb"],
    "token": [" a", "a  b", "a\n"],
    "language": ["", "123", "toolonglanguage"],
    "Name": ["", "1a", "a b"],
    "NCName": ["a:b"],
    "NMTOKEN": ["", "a b"],
    "boolean": ["TRUE", "yes"],
    "integer": ["", "1.0", "1e3", " 1"],
    "decimal": [".", "1e3", "INF"],
    "double": ["", "1e", "inf"],
    "dateTime": ["2024-13-01T00:00:00", "2024-01-01", "2024-01-01T25:00:00", "24-01-01T00:00:00"],
    "dateTimeStamp": ["2024-01-01T00:00:00"],
    "date": ["2024-1-1", "2024-00-01"],
    "time": ["24:00:01", "1:00:00"],
    "duration": ["P", "1Y", "PT"],
    "yearMonthDuration": ["P1D"],
    "dayTimeDuration": ["P1Y"],
    "hexBinary": ["a", "xy"],
    "base64Binary": ["a", "YQ="],
}


@pytest.mark.parametrize("name", GOOD)
def test_datatypes(name: str) -> None:
    pattern = datatype_pattern(xsd(name))
    assert pattern is not None
    assert all(matches(pattern, [typed(text, name) for text in GOOD[name]]))
    assert not any(matches(pattern, [typed(text, name) for text in BAD.get(name, ["x"])]) if name in BAD else [])
    others = [typed(text, other) for other in GOOD for text in GOOD[other] if not _may_share(name, other)]
    assert not any(matches(pattern, [*others, "<http://x/>", "_:b1"]))


FAMILIES = [
    {"string", "normalizedString", "token", "language", "Name", "NCName", "NMTOKEN"},
    {"integer", "decimal"},
    {"dateTime", "dateTimeStamp"},
    {"duration", "yearMonthDuration", "dayTimeDuration"},
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_patterns_are_the_value_spaces_of_xml_schema(kind: str) -> None:
    """What rules say of datatypes is what the value function says."""

    @settings(max_examples=2, deadline=None)  # compiling patterns takes long
    @given(st.lists(oracle_texts(kind), min_size=40, max_size=40))
    def check(found: list[str]) -> None:
        terms = [typed(text, datatype_of(kind)) for text in found]
        values = [oracle_value(text, kind) for text in found]
        assert all(matches(DECIDED, terms))
        for other in KINDS:
            pattern = datatype_pattern(f"<{datatype_of(other)}>")
            assert pattern is not None
            expected = [is_of(value, other) for value in values]
            assert list(zip(terms, matches(pattern, terms), strict=True)) == list(zip(terms, expected, strict=True)), (
                other
            )

    check()


def _may_share(one: str, other: str) -> bool:
    return one == other or any({one, other} <= family for family in FAMILIES)


def test_datatypes_that_are_not_of_xml_schema() -> None:
    plain, tagged, number = quote("a"), '"a"@en', typed("1", "integer")
    everything = [plain, tagged, number, "<http://x/>", "_:b"]

    def found(datatype: str) -> list[bool]:
        pattern = datatype_pattern(datatype)
        assert pattern is not None
        return matches(pattern, everything)

    assert found(rdfs("Literal")) == [True, True, True, False, False]
    assert found(rdf("PlainLiteral")) == [True, True, False, False, False]
    assert found(rdf("langString")) == [False, True, False, False, False]
    assert found(owl("real")) == [False, False, True, False, False]
    assert found(rdf("HTML")) == [False] * 5
    rational = typed("1/2", owl("rational")[1:-1])
    assert matches(datatype_pattern(owl("real")) or "", [rational, rational.replace("/2", "/0")]) == [True, False]
    assert datatype_pattern("<http://example.org/own>") is None
    assert datatype_pattern(xsd("unheardOf")) is None


def test_only_literals_of_known_datatypes_are_outside_others() -> None:
    known = [quote("a"), '"a"@en', typed("x", "integer"), "<http://x/>", "_:b"]
    known += [typed("<a>", rdf(name)[1:-1]) for name in ("XMLLiteral", "PlainLiteral")]
    assert all(matches(DECIDED, known))
    unknown = ["http://example.org/own", rdf("HTML")[1:-1], owl("rational")[1:-1]]
    assert not any(matches(DECIDED, [typed("a", name) for name in (*unknown, "unheardOf")]))


@pytest.mark.parametrize("name", GOOD)
def test_values_are_known_of_what_the_patterns_match(name: str) -> None:
    wrong = typed("\x00", name)  # differs from all others
    if name not in ("string", "normalizedString", "token", "anyURI"):
        assert all(different_values(typed(text, name), wrong) for text in GOOD[name])
    assert all(literal_value(typed(text, name)) == typed(text, name) for text in BAD.get(name, ()) if text != " 1")
    family = next((family for family in FAMILIES if name in family), {name})
    patterns = [datatype_pattern(xsd(other)) or "" for other in family]
    values = [literal_value(typed(text, name)) or "" for text in GOOD[name]]
    assert all(any(found) for found in zip(*(matches(pattern, values) for pattern in patterns), strict=True))


# --- facets --------------------------------------------------------------------------------------------------


def test_facets() -> None:
    def allowed(datatype: str, *facets: tuple[str, str]) -> list[str]:
        patterns, unsaid = restriction_patterns(datatype, facets)
        assert not unsaid
        texts = ["", "a", "ab", 'a"', "\n", "äöü", "12", "7", "7.5", "-3"]
        literals = [typed(t, k) for t in texts for k in ("string", "integer", "decimal")] + [
            '"x"@de',
            '"x"@de-at',
            '"x"@den',
        ]
        found = [all(row) for row in zip(*(matches(pattern, literals) for pattern in patterns), strict=True)]
        return [literal for literal, fits in zip(literals, found, strict=True) if fits]

    assert allowed(xsd("string"), (xsd("length"), typed("2", "integer"))) == [
        quote(t) for t in ("ab", 'a"', "12", "-3")
    ]
    assert allowed(xsd("string"), (xsd("minLength"), typed("3", "integer"))) == [quote("äöü"), quote("7.5")]
    assert allowed(xsd("string"), (xsd("maxLength"), typed("0", "integer"))) == [quote("")]
    assert allowed(xsd("string"), (xsd("pattern"), quote("a."))) == [quote("ab"), quote('a"')]
    assert allowed(rdf("PlainLiteral"), (rdf("langRange"), quote("DE"))) == ['"x"@de', '"x"@de-at']
    sevens = [typed("7", "integer"), typed("7", "decimal")]
    bounds = (xsd("minExclusive"), typed("-3", "integer")), (xsd("maxInclusive"), typed("7.4", "decimal"))
    assert allowed(xsd("integer"), *bounds) == sevens
    assert allowed(xsd("decimal"), *bounds) == sevens
    assert allowed(xsd("byte"), (xsd("minInclusive"), typed("200", "integer"))) == []


@pytest.mark.parametrize(
    ("datatype", "facet", "value"),
    [
        ("dateTime", "minInclusive", typed("2024-01-01T00:00:00", "dateTime")),
        ("double", "maxInclusive", typed("1", "double")),
        ("decimal", "totalDigits", typed("3", "integer")),
        ("integer", "minInclusive", quote("three")),
        ("string", "pattern", quote("[a-z-[aeiou]]")),
        ("string", "pattern", quote("(")),
        ("string", "pattern", quote("\\i")),
        ("string", "pattern", quote("a{99999}")),
        ("string", "length", typed("100000", "integer")),
        ("string", "length", quote("x")),
        ("string", "minInclusive", quote("x")),
    ],
)
def test_what_no_pattern_says_is_told(datatype: str, facet: str, value: str) -> None:
    _, unsaid = restriction_patterns(xsd(datatype), ((xsd(facet), value),))
    assert unsaid == ((xsd(facet), value),)


PATTERNS = [
    *(
        "a.b",
        "[a-c]+x?",
        "[^a]{2,3}",
        r"\d{1,3}-\w+",
        r"(foo|bar\.baz)*",
        r'a"b\\c',
        r"\S+",
        r"[\s,]*",
        "a{2}|b{1,}|",
        ".*",
    ),
    *("[!-z]+", "[-a]*", r"[\]\\]+", r"\n|\t", r"[^\n]+", "(a|(b|c)+)?d"),
]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(PATTERNS), st.text(st.sampled_from('ab"cdfo.,x-12\\\n\t\r ]ä'), max_size=6))
def test_patterns_match_the_same_texts_as_they_stand_in_n_triples(pattern: str, text: str) -> None:
    # In XML Schema `.` is no line end, and classes are those of Unicode.
    python = pattern.replace(".*", r"[^\n\r]*").replace("a.b", r"a[^\n\r]b")
    assert matches(f'"{translated(pattern)}"', [quote(text)]) == [re.fullmatch(python, text) is not None]


@pytest.mark.parametrize(
    "pattern", ["(a", "a)", "[a", "*", "a**", r"\c", r"\p{IsGreek}", "[a-z-[b]]", "[b-a]", "a{2", "\\"]
)
def test_patterns_without_a_counterpart(pattern: str) -> None:
    with pytest.raises(UnreadableError):
        translated(pattern)
