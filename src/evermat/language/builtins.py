"""The built-in functions, tests and aggregates: a row each, with its types and what it computes.

A function that has no value for its arguments (division by zero, overflow, a `to_number` that fails) returns None.
"""

from __future__ import annotations

import hashlib
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntFlag
from functools import lru_cache, partial
from typing import Any

from evermat.language.literal_values import canonical_term, different_values
from evermat.language.terms import Value


class Type(IntFlag):
    """The primitive types; a union of flags is the set of types that something may still have."""

    SYMBOL = 1
    NUMBER = 2
    UNSIGNED = 4
    FLOAT = 8
    TERM = 16

    def __str__(self) -> str:
        return " or ".join((t.name or "").lower() for t in Type if t & self)


INTEGERS = Type.NUMBER | Type.UNSIGNED
NUMERIC = INTEGERS | Type.FLOAT
CONVERTIBLE = NUMERIC | Type.SYMBOL
ORDERED = NUMERIC | Type.SYMBOL
ANY = ORDERED | Type.TERM

MIN_NUMBER, MAX_NUMBER, MAX_UNSIGNED = -(2**63), 2**63 - 1, 2**64 - 1
RANGES = {Type.NUMBER: (MIN_NUMBER, MAX_NUMBER), Type.UNSIGNED: (0, MAX_UNSIGNED)}


@dataclass(frozen=True, slots=True)
class Function:
    """A built-in. `None` among the parameters or as the result stands for the one `shared` type.

    `compute` gets the type at which it is computed, then the arguments. It is the reference: constants in the text are
    computed with it, and the engines' vectorised forms are tested against it.
    """

    name: str
    compute: Callable[..., Value | None]
    parameters: tuple[Type | None, ...]
    result: Type | None
    shared: Type = ANY
    variadic: bool = False  # the last parameter may be repeated
    operator: bool = False  # it is written before its argument, or between its two

    def accepts(self, count: int) -> bool:
        return count >= len(self.parameters) if self.variadic else count == len(self.parameters)

    def parameter(self, position: int) -> Type | None:
        return self.parameters[min(position, len(self.parameters) - 1)]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A test of two values: both of one of the `shared` types, or else a text, at the right, tested by a symbol.

    A text is a symbol or the spelling of a term.
    """

    holds: Callable[[Any, Any], bool]
    negation: str
    shared: Type | None = None
    pattern: bool = False  # whether the left side is a regular expression


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over values of some types; without a `result` it has the type of the values."""

    values: Type
    result: Type | None = None
    zero: bool = False  # what it is for an empty group: 0, or else nothing
    counts: bool = False  # whether it depends on how often a value occurs
    bare: bool = False  # whether it is of bindings, not of values


# --- what they compute ---------------------------------------------------------------------------------------


def _divide(type_: Type, a: float, b: float) -> Value | None:
    """Integers truncate toward zero; dividing by zero has no value, for floats too."""
    if b == 0:
        return None
    if type_ is Type.FLOAT:
        return a / b
    quotient = abs(int(a)) // abs(int(b))
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(type_: Type, a: int, b: int) -> int | None:
    quotient = _divide(type_, a, b)
    return None if quotient is None else a - b * int(quotient)


def _power(type_: Type, a: float, b: float) -> Value | None:
    if type_ is Type.FLOAT:
        try:
            return math.pow(a, b)
        except (OverflowError, ValueError):
            return None
    if b < 0 or (abs(a) > 1 and b > 64):  # the latter does not fit, and would be slow to compute
        return None
    return int(int(a) ** int(b))


def _signed(value: int) -> int:
    """The low 64 bits, read as an int64."""
    value &= MAX_UNSIGNED
    return value - 2**64 if value > MAX_NUMBER else value


def _bits(operation: Callable[[int, int], int]) -> Callable[[Type, int, int], int]:
    """A bit operation on 64 bits; shifts take the low six bits of their right side, as in Soufflé."""

    def compute(type_: Type, a: int, b: int) -> int:
        value = operation(a, b)
        return value & MAX_UNSIGNED if type_ is Type.UNSIGNED else _signed(value)

    return compute


def _substring(_type: Type, text: str, start: int, length: int) -> str:
    """The code points [start, start + length); empty where the start lies outside."""
    if start < 0 or length < 0 or start > len(text):
        return ""
    return text[start : start + length]


def _ordinal(_type: Type, text: str) -> int:
    """A number for a symbol that does not depend on how it is stored: 63 bits of a hash of its UTF-8 bytes."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


_NUMBER_TEXT = re.compile(r"\s*([+-]?)(?:0x([0-9A-Fa-f]+)|0b([01]+)|0*([0-9]+))\s*", re.ASCII)
_DIGITS = 64  # of the largest number, in binary
_FLOAT_TEXT = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*|\s*[+-]?inf\s*", re.ASCII)


def parse_integer(text: str) -> int | None:
    """The integer that a text spells in decimal, after `0x` in hexadecimal or after `0b` in binary, or None.

    One that no type can hold may be given as another one that no type can hold.
    """
    match = _NUMBER_TEXT.fullmatch(text)
    if match is None:
        return None
    sign, *spelled = match.groups()
    digits, base = next(
        (digits.lstrip("0") or "0", base) for digits, base in zip(spelled, (16, 2, 10), strict=True) if digits
    )
    return int(sign + digits, base) if len(digits) <= _DIGITS else int(f"{sign}1") << _DIGITS


def parse_float(text: str) -> float | None:
    """The float that a text spells, or None; `nan` is not one."""
    return float(text) if _FLOAT_TEXT.fullmatch(text) else None


def format_float(value: float) -> str:
    """The shortest text that reads back as the same float; whole numbers without `.0`."""
    return repr(value).removesuffix(".0")


def _to_string(_type: Type, value: Value) -> str:
    return format_float(value) if isinstance(value, float) else str(value)


def _to_integer(_type: Type, value: Value) -> int | None:
    if isinstance(value, str):
        return parse_integer(value)
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    return value


def _to_float(_type: Type, value: Value) -> float | None:
    return parse_float(value) if isinstance(value, str) else float(value)


def full_match(pattern: str, text: str) -> bool | None:
    """Whether the whole text matches a pattern in RE2's syntax, in linear time; None if it is not a pattern."""
    import pyarrow as pa  # noqa: PLC0415  (loaded only where a program matches)
    import pyarrow.compute as pc  # noqa: PLC0415

    if fault_of_pattern(pattern):  # looked at by itself: `a)|(b` would be one between our parentheses
        return None
    return bool(pc.match_substring_regex(pa.scalar(text), rf"\A(?:{pattern})\z").as_py())


@lru_cache(maxsize=4096)
def fault_of_pattern(pattern: str) -> str:
    """What is wrong with a pattern, or nothing."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    try:
        pc.match_substring_regex(pa.scalar(""), pattern)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return ""


# --- the tables ----------------------------------------------------------------------------------------------


def _same(name: str, compute: Callable[..., Value | None], shared: Type, count: int = 2, **more: bool) -> Function:
    """A function whose arguments and result have one type."""
    return Function(name, compute, (None,) * count, None, shared, **more)


NEGATION = "- "  # no word: all words may name relations
_binary = partial(_same, operator=True)
_unary = partial(_same, count=1)

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in [
        _binary("+", lambda _, a, b: a + b, NUMERIC),
        _binary("-", lambda _, a, b: a - b, NUMERIC),
        _binary("*", lambda _, a, b: a * b, NUMERIC),
        _binary("/", _divide, NUMERIC),
        _binary("^", _power, NUMERIC),
        _binary("%", _remainder, INTEGERS),
        _binary("band", _bits(lambda a, b: a & b), INTEGERS),
        _binary("bor", _bits(lambda a, b: a | b), INTEGERS),
        _binary("bxor", _bits(lambda a, b: a ^ b), INTEGERS),
        _binary("bshl", _bits(lambda a, b: a << (b & 63)), INTEGERS),
        _binary("bshr", _bits(lambda a, b: a >> (b & 63)), INTEGERS),
        _binary("bshru", _bits(lambda a, b: (a & MAX_UNSIGNED) >> (b & 63)), INTEGERS),
        _binary("land", lambda _, a, b: int(bool(a) and bool(b)), INTEGERS),
        _binary("lor", lambda _, a, b: int(bool(a) or bool(b)), INTEGERS),
        _binary("lxor", lambda _, a, b: int(bool(a) != bool(b)), INTEGERS),
        _unary(NEGATION, lambda _, a: -a, NUMERIC),
        _unary("bnot", lambda type_, a: _bits(lambda x, _: ~x)(type_, a, 0), INTEGERS, operator=True),
        _unary("lnot", lambda _, a: int(not a), INTEGERS, operator=True),
        _same("min", lambda _, *values: min(values), ORDERED, variadic=True),
        _same("max", lambda _, *values: max(values), ORDERED, variadic=True),
        _same("cat", lambda _, *texts: "".join(texts), Type.SYMBOL, variadic=True),
        Function("strlen", lambda _, text: len(text), (Type.SYMBOL,), Type.NUMBER),
        Function("substr", _substring, (Type.SYMBOL, Type.NUMBER, Type.NUMBER), Type.SYMBOL),
        Function("ord", _ordinal, (Type.SYMBOL,), Type.NUMBER),
        Function("to_string", _to_string, (ANY,), Type.SYMBOL),
        Function("canonical_term", lambda _, term: canonical_term(term), (Type.TERM,), Type.TERM),
        Function("different_values", lambda _, a, b: int(different_values(a, b)), (Type.TERM, Type.TERM), Type.NUMBER),
        Function("to_number", _to_integer, (CONVERTIBLE,), Type.NUMBER),
        Function("to_unsigned", _to_integer, (CONVERTIBLE,), Type.UNSIGNED),
        Function("to_float", _to_float, (CONVERTIBLE,), Type.FLOAT),
        Function("itof", _to_float, (Type.NUMBER,), Type.FLOAT),
        Function("itou", _to_integer, (Type.NUMBER,), Type.UNSIGNED),
        Function("utof", _to_float, (Type.UNSIGNED,), Type.FLOAT),
        Function("utoi", _to_integer, (Type.UNSIGNED,), Type.NUMBER),
        Function("ftoi", _to_integer, (Type.FLOAT,), Type.NUMBER),
        Function("ftou", _to_integer, (Type.FLOAT,), Type.UNSIGNED),
    ]
}

TOTAL = frozenset(
    [
        "strlen",
        "ord",
        "to_string",
        "cat",
        "min",
        "max",
        "canonical_term",
        "different_values",
        "land",
        "lor",
        "lxor",
        "lnot",
    ]
)
"""The functions that have a value for all arguments."""

# Symbols compare by their UTF-8 bytes, which is the order of their code points.
TESTS: dict[str, Comparison] = {
    "=": Comparison(operator.eq, "!=", ANY),
    "!=": Comparison(operator.ne, "=", ANY),
    "<": Comparison(operator.lt, ">=", ORDERED),
    "<=": Comparison(operator.le, ">", ORDERED),
    ">": Comparison(operator.gt, "<=", ORDERED),
    ">=": Comparison(operator.ge, "<", ORDERED),
    "contains": Comparison(lambda part, whole: part in whole, "!contains"),
    "!contains": Comparison(lambda part, whole: part not in whole, "contains"),
    "match": Comparison(lambda pattern, text: full_match(pattern, text) is True, "!match", pattern=True),
    "!match": Comparison(lambda pattern, text: full_match(pattern, text) is False, "match", pattern=True),
}

AGGREGATES: dict[str, Aggregate] = {
    "count": Aggregate(ANY, Type.NUMBER, zero=True, counts=True, bare=True),
    "sum": Aggregate(NUMERIC, zero=True, counts=True),
    "mean": Aggregate(NUMERIC, Type.FLOAT, counts=True),
    "min": Aggregate(ORDERED),
    "max": Aggregate(ORDERED),
}


def evaluate(name: str, type_: Type, arguments: list[Value], result: Type) -> Value | None:
    """The value of a function at arguments of `type_`, or None where it has none."""
    value = FUNCTIONS[name].compute(type_, *arguments)
    if value is None or (isinstance(value, float) and math.isinf(value) and not _any_infinite(arguments)):
        return None
    return representable(value, result)


def _any_infinite(arguments: list[Value]) -> bool:
    """Infinity may be passed on, or spelled out in a text, but never comes from an overflow."""
    return any(math.isinf(a) if isinstance(a, float) else isinstance(a, str) and "inf" in a.lower() for a in arguments)


def representable(value: Value, type_: Type) -> Value | None:
    """The value as it is stored, or None where the type cannot hold it: NaN never, −0.0 as 0.0."""
    if type_ in RANGES:
        low, high = RANGES[type_]
        return value if low <= value <= high else None  # type: ignore[operator]
    if type_ is Type.FLOAT:
        number = float(value)
        return None if math.isnan(number) else number + 0.0
    return value


def holds(name: str, left: Value, right: Value) -> bool:
    """Whether a test holds."""
    return TESTS[name].holds(left, right)
