"""Numbers of XML Schema and OWL as values: decimals and rationals are one value space, floats and doubles each their own."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from fractions import Fraction

INTEGER_RANGES: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 2**8 - 1),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-(2**7), 2**7 - 1),
}
"""The least and the greatest value of each datatype of XML Schema that is derived from integers."""

_DECIMAL = re.compile(r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN", re.ASCII)
_RATIONAL = re.compile(r"(?P<above>[+-]?[0-9]+)/(?P<below>0*[1-9][0-9]*)", re.ASCII)


def decimal_value(text: str) -> str | None:
    """The shortest spelling of a decimal number; whole numbers have no point."""
    found = _DECIMAL.fullmatch(text)
    if found is None or not (found["whole"] or found["part"]):
        return None
    whole, part = found["whole"].lstrip("0") or "0", (found["part"] or "").rstrip("0")
    sign = "-" if found["sign"] == "-" and (whole != "0" or part) else ""
    return f"{sign}{whole}.{part}" if part else f"{sign}{whole}"


def integer_value(text: str, kind: str) -> str | None:
    """The shortest spelling of a number of a datatype that is derived from integers."""
    value = decimal_value(text) if "." not in text else None
    if value is None:
        return None
    low, high = INTEGER_RANGES[kind]
    inside = (low is None or int(value) >= low) and (high is None or int(value) <= high)
    return value if inside else None


def rational_value(text: str) -> str | None:
    """The spelling of a rational number in decimals if it has one, else as a fraction in lowest terms."""
    found = _RATIONAL.fullmatch(text)
    if found is None:
        return None
    number = Fraction(int(found["above"]), int(found["below"]))
    rest, places = number.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    if rest != 1:
        return f"{number.numerator}/{number.denominator}"
    digits = f"{abs(number.numerator) * 10**places // number.denominator:0{places + 1}d}"
    point = len(digits) - places
    return decimal_value(f"{'-' * (number < 0)}{digits[:point]}.{digits[point:]}")


def double_value(text: str) -> str | None:
    """The shortest spelling of the nearest double."""
    return _spelled(_read(text)) if _FLOAT.fullmatch(text) else None


def float_value(text: str) -> str | None:
    """The shortest spelling, as a double, of the nearest float."""
    if not _FLOAT.fullmatch(text):
        return None
    value = _read(text)
    if math.isfinite(value) and value:
        # To round twice goes wrong where the double lies halfway between two floats and the number does not: of two doubles
        # about a number that is none, the odd one lies on the same side of whatever is halfway.
        exact, rounded = Decimal(text), Decimal(value)
        if exact != rounded and not struct.pack("<d", value)[0] & 1:
            value = math.nextafter(value, math.inf if exact > rounded else -math.inf)
        try:
            (value,) = struct.unpack("<f", struct.pack("<f", value))
        except OverflowError:
            value = math.copysign(math.inf, value)
    return _spelled(value)


def _read(text: str) -> float:
    return float(text.replace("INF", "inf"))


def _spelled(value: float) -> str:
    return repr(value).replace("inf", "INF").replace("nan", "NaN")
