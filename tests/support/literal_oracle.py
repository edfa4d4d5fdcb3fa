"""An oracle for values of literals: the lexical-to-value mappings of XML Schema 1.1, as `elementpath` has them.

Where elementpath is known to deviate, the text is read by the standard library, or is not asked about; each case says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
from elementpath import datatypes as xs
from hypothesis import strategies as st

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

INTEGERS: dict[str, Callable[[str], int]] = {
    "integer": xs.Integer,
    "nonPositiveInteger": xs.NonPositiveInteger,
    "negativeInteger": xs.NegativeInteger,
    "nonNegativeInteger": xs.NonNegativeInteger,
    "positiveInteger": xs.PositiveInteger,
    "unsignedLong": xs.UnsignedLong,
    "unsignedInt": xs.UnsignedInt,
    "unsignedShort": xs.UnsignedShort,
    "unsignedByte": xs.UnsignedByte,
    "long": xs.Long,
    "int": xs.Int,
    "short": xs.Short,
    "byte": xs.Byte,
}
TIMES = {
    "dateTime": xs.DateTime,
    "dateTimeStamp": xs.DateTimeStamp,
    "date": xs.Date,
    "time": xs.Time,
    "gYear": xs.GregorianYear,
    "gYearMonth": xs.GregorianYearMonth,
    "gMonth": xs.GregorianMonth,
    "gMonthDay": xs.GregorianMonthDay,
    "gDay": xs.GregorianDay,
}
DURATIONS = {
    "duration": xs.Duration,
    "yearMonthDuration": xs.YearMonthDuration,
    "dayTimeDuration": xs.DayTimeDuration,
}
_FORMS_OF_DURATIONS = {
    "duration": re.compile(".*"),
    "yearMonthDuration": re.compile("[^DT]*"),
    "dayTimeDuration": re.compile("[^YM]*(T.*)?"),
}
STRINGS: dict[str, Callable[[str], str]] = {
    "string": str,
    "normalizedString": xs.NormalizedString,
    "token": xs.XsdToken,
    "language": xs.Language,
    "Name": xs.Name,
    "NCName": xs.NCName,
    "NMTOKEN": xs.NMToken,
}
KINDS = (
    *(*INTEGERS, "decimal", *TIMES, *DURATIONS, *STRINGS),
    *("double", "float", "boolean", "hexBinary", "base64Binary", "anyURI", "PlainLiteral"),
)
"""All datatypes that OWL 2 RL names but for `rdf:XMLLiteral`, and XML Schema's other dates and durations."""


# elementpath normalises blanks first, as a parser of XML does; RDF takes texts as they are.
_BLANKS = re.compile(r"[\t\n\r]|^ | $|  ")


def datatype_of(kind: str) -> str:
    return (RDF if kind == "PlainLiteral" else XSD) + kind


def oracle_value(text: str, kind: str) -> Hashable | None:
    """The value of a literal, or None if it is not spelled as its datatype asks for."""
    try:
        return _read(text, kind)
    except (ValueError, OverflowError, ArithmeticError):
        return None


def is_of(value: Hashable | None, kind: str) -> bool:
    """Whether a value is one of those of a datatype."""
    match value:
        case ("number", Fraction() as number) if kind in INTEGERS:
            return number.denominator == 1 and oracle_value(str(number), kind) is not None
        case ("text", str(text), "") if kind in STRINGS:
            return oracle_value(text, kind) is not None
        case ("duration", months, seconds):
            return kind == "duration" or (
                not (seconds if kind == "yearMonthDuration" else months) and kind in DURATIONS
            )
        case ("dateTime", *_, zone):
            return kind == "dateTime" or (kind == "dateTimeStamp" and zone is not None)
        case (name, *_):
            return kind == {"number": "decimal", "text": "PlainLiteral"}.get(str(name), name)
    return False


def _read(text: str, kind: str) -> Hashable | None:
    if kind == "string":
        return "text", text, ""
    if kind == "anyURI":
        return kind, text  # elementpath wants what RFC 3986 allows; XML Schema 1.1 lets any text be one
    if kind == "PlainLiteral":
        front, at, tag = text.rpartition("@")
        xs.Language(tag or "en")
        return ("text", front, tag.lower()) if at else None
    if kind == "normalizedString":
        return None if re.search(r"[\t\n\r]", text) else ("text", text, "")  # elementpath changes them to spaces
    if _BLANKS.search(text) or not (text.isascii() or kind in STRINGS):  # Python's digits are of any script
        return None
    if kind in STRINGS:
        return "text", str(STRINGS[kind](text)), ""
    if kind in INTEGERS:
        return ("number", Fraction(INTEGERS[kind](text))) if "_" not in text else None  # Python's `int` reads `1_0`
    if kind == "decimal":
        return ("number", Fraction(xs.DecimalProxy(text))) if " " not in text else None  # elementpath takes blanks away
    if kind in ("double", "float"):
        xs.DoubleProxy.validate(text)
        number = text.replace("INF", "inf")
        return kind, repr(
            float(number) if kind == "double" else nearest_float(number)
        )  # elementpath's floats have 64 bits
    if kind == "boolean":
        return kind, bool(xs.BooleanProxy(text))
    if kind == "hexBinary":
        return kind, xs.HexBinary(text).decode()
    if kind == "base64Binary":
        return kind, xs.Base64Binary(text).decode()
    if kind in DURATIONS:
        found = DURATIONS[kind].fromstring(text)
        if not _FORMS_OF_DURATIONS[kind].fullmatch(text):  # elementpath looks at the value: `P0Y` has no months
            return None
        return "duration", found.months, Fraction(found.seconds)
    return _time(text, kind)


def _time(text: str, kind: str) -> Hashable:
    """All parts of a date or a time, also those that its datatype does not have."""
    found = TIMES[kind].fromstring(text)
    year = found.year
    if "T24:" in text and "-12-31T" in text:  # elementpath forgets to count the year, unless it is one of Python's
        year = int(text[: text.index("-12-31T")]) + 1
        year -= year <= 0  # as elementpath counts years before the first
    zone = None if found.tzinfo is None else found.tzinfo.utcoffset(None)
    day = () if kind == "time" else (year, found.month, found.day)  # that midnight is of the next day is not said
    return kind.removesuffix("Stamp"), day, found.hour, found.minute, found.second, found.microsecond, zone


def nearest_float(text: str) -> float:
    """The nearest float of 32 bits, of all that there are near by."""
    if text.lstrip("+-") in ("inf", "NaN"):
        return float(text)
    number = Fraction(text)
    with np.errstate(over="ignore"):
        near = np.float32(float(text))
        choices = [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    beyond = Fraction(2) ** 128  # what infinity is taken for in rounding

    def distance(one: np.float32) -> Fraction:
        exact = Fraction(float(one)) if np.isfinite(one) else beyond * (1 if one > 0 else -1)
        return abs(exact - number)

    found = float(min(choices, key=lambda one: (distance(one), int(one.view(np.uint32)) & 1)))
    return math.copysign(found, float(text))


# --- texts -------------------------------------------------------------------------------------------------------

_ZONE = "(Z|[+-](00|0[19]|1[0-5]):(00|30|60)|)"
_YEAR = "-?(0000|0001|0004|0100|0400|1999|2000|20[0-2][0-9]|9999|10000|012024|12024|400)"
_DAY = "(01-(0[01]|3[12])|02-(28|29|30)|0[469]-3[01]|12-31|13-01)"
_CLOCK = r"(0[0-9]|1[0-9]|2[0-5]):(00|59|60):(00|59|60)(\.[0-9]{0,3}0?)?|24:00:00(\.0{0,2}1?)?"
_WHOLE = "[+-]?0?(0|1|10|127|128|129|255|256|32767|32768|32769|65535|65536|2147483647|2147483648|2147483649|4294967295|4294967296"
_WHOLE += "|9223372036854775807|9223372036854775808|9223372036854775809|18446744073709551615|18446744073709551616)"
_FLOAT = r"[+-]?([0-9]{0,2}(\.[0-9]{0,2}0?)?|16777217|16777219|3402823[56]e32|0\.1|0\.10000000149)([eE][+-]?([0-9]|4[56]|3[789]|32[34]|30[89]))?|[+-]?INF|NaN"
_PARTS = r"([0-9]{1,2}Y)?(1[0-9]M)?([0-9]D)?(T(2?[0-9]H)?([0-9]{1,3}M)?([0-9]{1,4}(\.[0-9]{0,2}0?)?S)?)?"
_NAMES = "[A-Za-z:_0-9.-]{0,3}|[a-z]{1,9}(-[a-z0-9]{1,2})*"
_FORMS = {
    **dict.fromkeys(INTEGERS, rf"{_WHOLE}(\.0?)?"),
    "decimal": rf"{_WHOLE}?(\.[0-9]{{0,2}}0?)?",
    "dateTime": f"{_YEAR}-{_DAY}T({_CLOCK}){_ZONE}",
    "dateTimeStamp": f"{_YEAR}-{_DAY}T({_CLOCK}){_ZONE}",
    "date": f"{_YEAR}-{_DAY}{_ZONE}",
    "time": f"({_CLOCK}){_ZONE}",
    "gYear": f"{_YEAR}{_ZONE}",
    "gYearMonth": f"{_YEAR}-(0[0-9]|1[0-3]){_ZONE}",
    "gMonth": f"--(0[0-9]|1[0-3]){_ZONE}",
    "gMonthDay": f"--{_DAY}{_ZONE}",
    "gDay": f"---(0[0-9]|29|3[0-2]){_ZONE}",
    **dict.fromkeys(DURATIONS, f"-?P{_PARTS}"),
    **dict.fromkeys(STRINGS, f"{_NAMES}|[ab ]{{0,4}}|[a\t\n\r]{{1,2}}"),
    "double": _FLOAT,
    "float": _FLOAT,
    "boolean": "0|1|true|false|True|10",
    "hexBinary": "[0-9aAbBfFg]{0,4}",
    "base64Binary": "([A-Zaw048+/] ?){0,5}(= ?){0,2}",
    "anyURI": "(http://)?[a b%41]{0,3}",
    "PlainLiteral": "[ab@]{0,2}(@(en|EN|en-GB|e_n)?)?",
}
_DAMAGE = "0123456789+-.:TZPYMDHSeEINF= _@\t\n"


@st.composite
def texts(draw: st.DrawFn, kind: str) -> str:
    """Texts that look like literals of a datatype; many are, and some are of one value."""
    text = draw(_TEXTS[kind])
    if draw(st.integers(0, 4)):
        return text
    at = draw(st.integers(0, len(text)))
    damage = (
        _DAMAGE + "é" if kind in STRINGS else _DAMAGE + "١²"
    )  # elementpath takes other signs for parts of names than XML does
    return text[:at] + draw(st.sampled_from(damage)) * draw(st.integers(0, 1)) + text[at + draw(st.integers(0, 1)) :]


_TEXTS = {kind: st.from_regex(form, fullmatch=True) for kind, form in _FORMS.items()}
