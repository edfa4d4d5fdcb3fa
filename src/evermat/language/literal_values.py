"""One spelling for all literals of one value, as far as XML Schema's numbers and truth values go.

Numbers of `decimal` and of the types derived from it are one value space; `float` and `double` are each their own. A literal whose
datatype is another, or which is not spelled as its datatype asks for, is its own canonical form.
"""

from __future__ import annotations

import re
import struct

from evermat.language.terms import BadEscapeError, unescape

_XSD = "http://www.w3.org/2001/XMLSchema#"
_TYPED = re.compile(rf'"(?P<text>.*)"\^\^<{re.escape(_XSD)}(?P<type>[A-Za-z]+)>', re.DOTALL)
_DECIMAL = re.compile(r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN", re.ASCII)
_BOOLEAN = {"0": "false", "1": "true", "false": "false", "true": "true"}
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

_DIGITS = 4000  # of a number that is compared with others; Python does not read longer ones


def canonical_term(term: str) -> str:
    """The spelling that stands for all RDF literals of the same value; any other term is its own."""
    typed = _TYPED.fullmatch(term)
    if typed is None:
        return term
    try:
        text = unescape(typed["text"]).strip(" \t\n\r")
    except BadEscapeError:
        return term
    kind = typed["type"]
    if kind == "boolean":
        return f'"{_BOOLEAN[text]}"^^<{_XSD}boolean>' if text in _BOOLEAN else term
    if kind in ("float", "double"):
        return f'"{_float(text, kind)}"^^<{_XSD}{kind}>' if _FLOAT.fullmatch(text) else term
    if kind == "decimal" or kind in INTEGER_RANGES:
        return _decimal(text, kind) or term
    return term


def _decimal(text: str, kind: str) -> str:
    """The canonical form of a decimal number, or nothing if it is none of its type."""
    found = _DECIMAL.fullmatch(text)
    if found is None or not (found["whole"] or found["part"]) or len(text) > _DIGITS:
        return ""
    whole, part = found["whole"].lstrip("0") or "0", (found["part"] or "").rstrip("0")
    sign = "-" if found["sign"] == "-" and (whole != "0" or part) else ""
    if kind in INTEGER_RANGES:
        number, (low, high) = int(sign + whole), INTEGER_RANGES[kind]
        too_small, too_large = low is not None and number < low, high is not None and number > high
        if found["part"] is not None or too_small or too_large:
            return ""
    return f'"{sign}{whole}.{part}"^^<{_XSD}decimal>' if part else f'"{sign}{whole}"^^<{_XSD}integer>'


def _float(text: str, kind: str) -> str:
    """The shortest spelling of the nearest float."""
    value = float(text.replace("INF", "inf"))
    if kind == "float":
        try:
            (value,) = struct.unpack("f", struct.pack("f", value))
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return repr(value).replace("inf", "INF").replace("nan", "NaN")
