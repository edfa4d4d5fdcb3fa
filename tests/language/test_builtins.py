"""The built-in functions and tests, at their edges: exact values."""

from __future__ import annotations

import math

import pytest

from evermat.language.builtins import MAX_NUMBER, MAX_UNSIGNED, MIN_NUMBER, NEGATION, Type, evaluate, holds

NUMBER, UNSIGNED, FLOAT, SYMBOL = Type.NUMBER, Type.UNSIGNED, Type.FLOAT, Type.SYMBOL
INFINITY = math.inf


def same(found: object, expected: object) -> bool:
    """Equal in type, value and sign of zero."""
    if isinstance(found, float) and isinstance(expected, float):
        return found == expected and math.copysign(1, found) == math.copysign(1, expected)
    return type(found) is type(expected) and found == expected


@pytest.mark.parametrize(
    ("a", "b", "quotient", "remainder"),
    [
        (7, 2, 3, 1),
        (-7, 2, -3, -1),
        (7, -2, -3, 1),
        (-7, -2, 3, -1),
        (1, 2, 0, 1),
        (-1, 2, 0, -1),
        (0, -5, 0, 0),
        (MIN_NUMBER, 2, MIN_NUMBER // 2, 0),
        (MIN_NUMBER, 1, MIN_NUMBER, 0),
        (MAX_NUMBER, MIN_NUMBER, 0, MAX_NUMBER),
        (MIN_NUMBER, MAX_NUMBER, -1, -1),
        (3, 0, None, None),
        (0, 0, None, None),
    ],
)
def test_division_truncates_toward_zero(a: int, b: int, quotient: int | None, remainder: int | None):
    assert evaluate("/", NUMBER, [a, b], NUMBER) == quotient
    assert evaluate("%", NUMBER, [a, b], NUMBER) == remainder


def test_the_one_quotient_that_overflows():
    assert evaluate("/", NUMBER, [MIN_NUMBER, -1], NUMBER) is None


@pytest.mark.parametrize(
    ("name", "type_", "arguments", "expected"),
    [
        ("+", NUMBER, [MAX_NUMBER, 1], None),
        ("+", NUMBER, [MAX_NUMBER, 0], MAX_NUMBER),
        ("-", NUMBER, [MIN_NUMBER, 1], None),
        ("*", NUMBER, [2**32, 2**31], None),
        ("*", NUMBER, [-(2**32), 2**31], MIN_NUMBER),
        (NEGATION, NUMBER, [MIN_NUMBER], None),
        (NEGATION, NUMBER, [MAX_NUMBER], -MAX_NUMBER),
        ("+", UNSIGNED, [MAX_UNSIGNED, 1], None),
        ("-", UNSIGNED, [1, 2], None),
        ("-", UNSIGNED, [2, 2], 0),
        ("*", UNSIGNED, [2**32, 2**32], None),
        ("/", UNSIGNED, [MAX_UNSIGNED, 2], 2**63 - 1),
        (NEGATION, UNSIGNED, [1], None),
        (NEGATION, UNSIGNED, [0], 0),
        ("^", NUMBER, [2, 62], 2**62),
        ("^", NUMBER, [2, 63], None),
        ("^", NUMBER, [-2, 63], MIN_NUMBER),
        ("^", NUMBER, [2, -1], None),
        ("^", NUMBER, [0, 0], 1),
        ("^", NUMBER, [-1, MAX_NUMBER], -1),
        ("^", NUMBER, [1, MAX_NUMBER], 1),
        ("^", NUMBER, [0, MAX_NUMBER], 0),
        ("^", NUMBER, [3, MAX_NUMBER], None),
        ("^", UNSIGNED, [2, 63], 2**63),
        ("^", UNSIGNED, [2, 64], None),
    ],
)
def test_integers_never_wrap_round(name: str, type_: Type, arguments: list[int], expected: int | None):
    assert evaluate(name, type_, arguments, type_) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("/", [1.0, 0.0], None),
        ("/", [0.0, 0.0], None),
        ("/", [-1.0, 4.0], -0.25),
        ("*", [1e308, 10.0], None),
        ("+", [1.7e308, 1.7e308], None),
        ("-", [INFINITY, INFINITY], None),
        ("+", [INFINITY, 1.0], INFINITY),
        ("*", [-INFINITY, 2.0], -INFINITY),
        ("*", [0.0, INFINITY], None),
        ("*", [-1.0, 0.0], 0.0),
        (NEGATION, [0.0], 0.0),
        ("-", [0.0, 0.0], 0.0),
        ("^", [2.0, 0.5], math.sqrt(2)),
        ("^", [-1.0, 0.5], None),
        ("^", [10.0, 400.0], None),
        ("^", [0.0, -1.0], None),
        ("^", [0.0, 0.0], 1.0),
        ("max", [-0.0, -1.0], 0.0),
        ("min", [1.5, -INFINITY], -INFINITY),
    ],
)
def test_floats_are_numbers_or_infinities_that_were_there(name: str, arguments: list[float], expected: float | None):
    assert same(evaluate(name, FLOAT, arguments, FLOAT), expected)


@pytest.mark.parametrize(
    ("name", "type_", "arguments", "expected"),
    [
        ("band", NUMBER, [-1, 0xFF], 0xFF),
        ("bor", NUMBER, [MIN_NUMBER, 1], MIN_NUMBER + 1),
        ("bxor", NUMBER, [-1, -1], 0),
        ("bnot", NUMBER, [0], -1),
        ("bnot", UNSIGNED, [0], MAX_UNSIGNED),
        ("bshl", NUMBER, [1, 63], MIN_NUMBER),
        ("bshl", NUMBER, [1, 64], 1),
        ("bshl", NUMBER, [3, 63], MIN_NUMBER),
        ("bshl", NUMBER, [1, -1], MIN_NUMBER),
        ("bshl", UNSIGNED, [1, 63], 2**63),
        ("bshr", NUMBER, [-8, 1], -4),
        ("bshr", NUMBER, [-1, 63], -1),
        ("bshru", NUMBER, [-1, 1], MAX_NUMBER),
        ("bshru", NUMBER, [-1, 0], -1),
        ("bshr", UNSIGNED, [MAX_UNSIGNED, 63], 1),
        ("land", NUMBER, [5, -1], 1),
        ("land", NUMBER, [5, 0], 0),
        ("lor", NUMBER, [0, 0], 0),
        ("lxor", NUMBER, [2, 3], 0),
        ("lnot", NUMBER, [7], 0),
        ("lnot", UNSIGNED, [0], 1),
    ],
)
def test_bits_are_64(name: str, type_: Type, arguments: list[int], expected: int):
    assert evaluate(name, type_, arguments, type_) == expected


@pytest.mark.parametrize(
    ("text", "start", "length", "expected"),
    [
        ("abc", 0, 2, "ab"),
        ("abc", 1, 100, "bc"),
        ("abc", 3, 1, ""),
        ("abc", 4, 1, ""),
        ("abc", -1, 2, ""),
        ("abc", 0, -1, ""),
        ("abc", 1, 0, ""),
        ("a😀b", 1, 1, "😀"),
        ("a😀b", 2, 1, "b"),
        ("e\u0301", 0, 1, "e"),
        ("abc", MAX_NUMBER, MAX_NUMBER, ""),
        ("abc", 0, MAX_NUMBER, "abc"),
    ],
)
def test_substr_counts_code_points(text: str, start: int, length: int, expected: str):
    assert evaluate("substr", SYMBOL, [text, start, length], SYMBOL) == expected


@pytest.mark.parametrize(("text", "expected"), [("", 0), ("abc", 3), ("😀", 1), ("e\u0301", 2), ("北京", 2), ("\0", 1)])
def test_strlen_counts_code_points(text: str, expected: int):
    assert evaluate("strlen", SYMBOL, [text], NUMBER) == expected


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("-12", -12),
        ("+5", 5),
        (" 7 ", 7),
        ("007", 7),
        ("9223372036854775807", MAX_NUMBER),
        ("-9223372036854775808", MIN_NUMBER),
        ("9223372036854775808", None),
        ("9" * 5000, None),
        ("", None),
        ("-", None),
        ("1.0", None),
        ("1e3", None),
        ("0x10", 16),
        (" -0x1F ", -31),
        ("0b101", 5),
        ("-0x8000000000000000", MIN_NUMBER),
        ("0x8000000000000000", None),
        ("0x" + "0" * 5000 + "1", 1),
        ("0b" + "1" * 5000, None),
        ("0X10", None),
        ("0x", None),
        ("0b2", None),
        ("0o7", None),
        ("1_000", None),
        ("twelve", None),
        ("١٢", None),
        ("1 2", None),
    ],
)
def test_to_number_takes_what_spells_a_number(text: str, number: int | None):
    assert evaluate("to_number", SYMBOL, [text], NUMBER) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("18446744073709551615", MAX_UNSIGNED), ("18446744073709551616", None), ("-1", None), ("-0", 0)],
)
def test_to_unsigned(text: str, number: int | None):
    assert evaluate("to_unsigned", SYMBOL, [text], UNSIGNED) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.5", 1.5),
        ("-2", -2.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e-3", 0.001),
        ("-0.0", 0.0),
        ("inf", INFINITY),
        ("-inf", -INFINITY),
        ("1e400", None),
        ("nan", None),
        ("", None),
        ("1,5", None),
        ("0x1p3", None),
        ("1_0.0", None),
    ],
)
def test_to_float(text: str, number: float | None):
    assert same(evaluate("to_float", SYMBOL, [text], FLOAT), number)


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (NUMBER, -5, "-5"),
        (UNSIGNED, MAX_UNSIGNED, "18446744073709551615"),
        (FLOAT, 1.0, "1"),
        (FLOAT, 0.1, "0.1"),
        (FLOAT, 1e300, "1e+300"),
        (FLOAT, -INFINITY, "-inf"),
        (SYMBOL, "x", "x"),
    ],
)
def test_to_string(type_: Type, value: object, text: str):
    assert evaluate("to_string", type_, [value], SYMBOL) == text


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-320, 1.7976931348623157e308, 123456789.125])
def test_floats_survive_text(value: float):
    text = evaluate("to_string", FLOAT, [value], SYMBOL)
    assert evaluate("to_float", SYMBOL, [text], FLOAT) == value


@pytest.mark.parametrize(
    ("name", "type_", "value", "result", "expected"),
    [
        ("ftoi", FLOAT, -1.9, NUMBER, -1),
        ("ftoi", FLOAT, 1e30, NUMBER, None),
        ("ftoi", FLOAT, INFINITY, NUMBER, None),
        ("ftou", FLOAT, -1.0, UNSIGNED, None),
        ("ftou", FLOAT, 1.9, UNSIGNED, 1),
        ("itou", NUMBER, -1, UNSIGNED, None),
        ("utoi", UNSIGNED, 2**63, NUMBER, None),
        ("itof", NUMBER, 2**53 + 1, FLOAT, float(2**53)),
        ("utof", UNSIGNED, MAX_UNSIGNED, FLOAT, float(2**64)),
        ("to_number", FLOAT, 2.9, NUMBER, 2),
    ],
)
def test_conversions(name: str, type_: Type, value: float, result: Type, expected: object):
    assert same(evaluate(name, type_, [value], result), expected)


def test_cat_min_and_max_take_any_number():
    assert evaluate("cat", SYMBOL, ["a", "", "b", "😀"], SYMBOL) == "ab😀"
    assert evaluate("min", NUMBER, [3, 1, 2], NUMBER) == 1
    assert evaluate("max", SYMBOL, ["b", "a\U0001f600", "\uffff"], SYMBOL) == "\uffff"


def test_ord_depends_on_the_text_alone():
    assert evaluate("ord", SYMBOL, ["banana"], NUMBER) == 3473875771406480285
    assert evaluate("ord", SYMBOL, [""], NUMBER) == evaluate("ord", SYMBOL, [""], NUMBER)
    values = {evaluate("ord", SYMBOL, [f"s{i}"], NUMBER) for i in range(1000)}
    assert len(values) == 1000
    assert all(0 <= value <= MAX_NUMBER for value in values)


# --- tests -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [("a", "b"), ("Z", "a"), ("", "a"), ("a", "aa"), ("z", "é"), ("\uffff", "\U0001f600"), ("e\u0301", "é")],
)
def test_symbols_compare_by_their_utf8_bytes(left: str, right: str):
    assert left.encode() < right.encode()
    assert holds("<", left, right)
    assert holds("<=", left, right)
    assert holds("!=", left, right)
    assert not holds(">", left, right)
    assert not holds(">=", left, right)
    assert not holds("=", left, right)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a.*", "abc", True),
        ("b", "abc", False),
        ("a|ab", "ab", True),
        ("", "", True),
        (".", "😀", True),
        (".", "\n", False),
        ("a$", "a\n", False),
        ("(?i)ABC", "abc", True),
        ("[0-9]+", "٣", False),
        ("a", "ab", False),
        ("x*", "", True),
    ],
)
def test_match_is_a_full_match(pattern: str, text: str, expected: bool):
    assert holds("match", pattern, text) is expected
    assert holds("!match", pattern, text) is not expected


def test_match_takes_linear_time():
    assert not holds("match", "(a+)+b", "a" * 5000)


@pytest.mark.parametrize(("part", "whole", "expected"), [("", "", True), ("b", "abc", True), ("abc", "b", False)])
def test_contains_asks_for_its_first_argument_in_the_second(part: str, whole: str, expected: bool):
    assert holds("contains", part, whole) is expected
    assert holds("!contains", part, whole) is not expected


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "(?P<n", "\\", "(?=a)", "(a)\\1", "[z-a]", "a)|(b"])
def test_a_pattern_that_cannot_be_read_matches_nothing(pattern: str):
    assert not holds("match", pattern, "a")
    assert not holds("!match", pattern, "a")
