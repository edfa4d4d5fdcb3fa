"""Numbers as texts spell them, with the reason where a text spells none."""

from __future__ import annotations

import math
import re

from evermat.core import Kind
from evermat.core import error_catalogue as errors
from evermat.language import RANGES, Type, parse_float

_INTEGER = re.compile(r"([+-]?)0*([0-9]+)", re.ASCII)
_DIGITS = 20  # of the largest unsigned


def integer(text: str, type_: Type) -> int | Kind:
    """The integer that a field spells in decimal, or what is wrong with it."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return errors.NOT_A_NUMBER
    sign, digits = match.groups()
    if type_ is Type.UNSIGNED and sign == "-" and digits != "0":
        return errors.NEGATIVE
    if len(digits) > _DIGITS:
        return errors.DOES_NOT_FIT
    value = int(sign + digits)
    low, high = RANGES[type_]
    return value if low <= value <= high else errors.DOES_NOT_FIT


def floating(text: str) -> float | Kind:
    """The float that a field spells, or what is wrong with it: NaN, blanks, or too large to be anything but infinity."""
    if text.lower().lstrip("+-") == "nan":
        return errors.NAN_VALUE
    value = None if text != text.strip() else parse_float(text)
    if value is None:
        return errors.NOT_A_NUMBER
    if math.isinf(value) and "inf" not in text:
        return errors.DOES_NOT_FIT
    return value + 0.0  # −0.0 becomes 0.0


def number(text: str, type_: Type) -> float | Kind:
    """The number of a numeric type that a field spells, or what is wrong with it."""
    return floating(text) if type_ is Type.FLOAT else integer(text, type_)
