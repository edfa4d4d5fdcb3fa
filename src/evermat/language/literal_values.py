"""Values of RDF literals: one spelling for all literals of one value.

The values are known of the datatypes that OWL 2 RL names, of rational numbers, and of XML Schema's dates and durations. Of one value
are what XML Schema 1.1 calls identical: +0 and −0 are two floats, and a time has its zone. A literal that is not spelled as such a
datatype asks for is a contradiction in itself, and differs from all others; with blanks around it a number is not spelled as it has to be,
for RDF does not take them away. A literal of any other datatype is identical to itself, and
whether it differs from another is not known.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from evermat.language.number_values import (
    INTEGER_RANGES,
    decimal_value,
    double_value,
    float_value,
    integer_value,
    rational_value,
)
from evermat.language.terms import BadEscapeError, literal_term, unescape
from evermat.language.time_values import DURATION_KINDS, TIME_KINDS, duration_value, time_value

_XSD = "http://www.w3.org/2001/XMLSchema#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RATIONAL = "http://www.w3.org/2002/07/owl#rational"
_LONGEST = 4000  # characters of what is computed with; Python does not read longer numbers
_LONGEST_RATIONAL = 1000  # characters of a fraction, which may have three times as many digits
_LONGEST_XML = 20_000  # characters, as the time may be the square of it

NAME_START = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
"""The characters with which a name of XML begins, without the colon, as they stand in a class of a regular expression."""
NAME_REST = NAME_START + "\\-.0-9\xb7\u0300-\u036f\u203f-\u2040"
"""Those that it goes on with."""

_STRINGS = {
    "string": ".*",
    "normalizedString": r"[^\t\n\r]*",
    "token": r"(?:[^\t\n\r ]+(?: [^\t\n\r ]+)*)?",
    "language": "[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*",
    "Name": f"[:{NAME_START}][:{NAME_REST}]*",
    "NCName": f"[{NAME_START}][{NAME_REST}]*",
    "NMTOKEN": f"[:{NAME_REST}]+",
}
_TAG = "[A-Za-z]+(?:-[A-Za-z0-9]+)*"
_PLAIN_LITERAL = re.compile(rf"(?P<text>.*)@(?P<language>(?:{_TAG})?)", re.DOTALL)
_BOOLEANS = {"0": "false", "1": "true", "false": "false", "true": "true"}
_HEX = re.compile("(?:[0-9A-Fa-f]{2})*")
_SIXTY_FOUR = re.compile(
    "(?:(?:(?:[A-Za-z0-9+/] ?){4})*"
    "(?:(?:[A-Za-z0-9+/] ?){3}[A-Za-z0-9+/]|(?:[A-Za-z0-9+/] ?){2}[AEIMQUYcgkosw048] ?=|[A-Za-z0-9+/] ?[AQgw] ?= ?=))?"
)
_Value = Callable[
    [str], str | None
]  # from the text of a literal to the term of its value, if it is spelled as it has to be


class _Datatype(NamedTuple):
    value: _Value
    longest: int = sys.maxsize  # characters of a text that is read


def canonical_term(term: str) -> str:
    """The spelling that stands for all RDF literals of the same value; any other term is its own."""
    return literal_value(term) or term


def different_values(one: str, other: str) -> bool:
    """Whether two terms are known to be literals of different values."""
    if one == other:
        return False
    values = literal_value(one), literal_value(other)
    return None not in values and values[0] != values[1]


def literal_value(term: str) -> str | None:
    """The literal that stands for all of the same value; None where no value is known."""
    if not term.startswith('"'):
        return None
    end = term.rindex('"') + 1
    if not term.startswith("^^", end):
        return term[:end] + term[end:].lower()
    datatype = _DATATYPES.get(term[end + 3 : -1])
    if datatype is None:
        return None
    try:
        text = unescape(term[1 : end - 1])
    except BadEscapeError:
        return None
    if len(text) > datatype.longest:
        return None
    return datatype.value(text) or term


def is_well_formed(term: str) -> bool | None:
    """Whether a literal with a datatype is spelled as that asks for; None if it is not known."""
    end = term.rindex('"') + 1
    datatype = _DATATYPES.get(term[end + 3 : -1])
    text = unescape(term[1 : end - 1])
    if datatype is None or len(text) > datatype.longest:
        return None
    return datatype.value(text) is not None


# --- datatypes -----------------------------------------------------------------------------------------------


def _typed(spelled: _Value, datatype: str) -> _Value:
    """Literals whose value has a spelling of a datatype."""

    def value(text: str) -> str | None:
        found = spelled(text)
        return None if found is None else literal_term(found, datatype=datatype)

    return value


def _number(spelled: _Value) -> _Value:
    """Numbers of which the whole ones are integers, and those with a fraction rational."""

    def value(text: str) -> str | None:
        found = spelled(text)
        if found is None:
            return None
        datatype = _RATIONAL if "/" in found else f"{_XSD}decimal" if "." in found else f"{_XSD}integer"
        return literal_term(found, datatype=datatype)

    return value


def _string(form: str) -> _Value:
    spelled = re.compile(form, re.DOTALL)
    return lambda text: literal_term(text) if spelled.fullmatch(text) else None


def _plain_literal(text: str) -> str | None:
    found = _PLAIN_LITERAL.fullmatch(text)
    return None if found is None else literal_term(found["text"], language=found["language"])


def _hex(text: str) -> str | None:
    return text.upper() if _HEX.fullmatch(text) else None


def _sixty_four(text: str) -> str | None:
    return text.replace(" ", "") if _SIXTY_FOUR.fullmatch(text) else None


def _xml(text: str) -> str | None:
    """The canonical form of a well-formed piece of XML, with its comments."""
    from xml.etree.ElementTree import ParseError, canonicalize  # noqa: PLC0415  (few programs have such literals)

    try:
        return canonicalize(f"<x>{text}</x>", with_comments=True).removeprefix("<x>").removesuffix("</x>")
    except (ParseError, ValueError):
        return None


def _scalars() -> Iterator[tuple[str, _Value]]:
    """The datatypes of XML Schema that are no strings, with their values."""
    yield "boolean", _typed(_BOOLEANS.get, f"{_XSD}boolean")
    yield "decimal", _number(decimal_value)
    for kind in INTEGER_RANGES:
        yield kind, _number(partial(integer_value, kind=kind))
    yield "float", _typed(float_value, f"{_XSD}float")
    yield "double", _typed(double_value, f"{_XSD}double")
    for kind in TIME_KINDS:
        general = "dateTime" if kind == "dateTimeStamp" else kind
        yield kind, _typed(partial(time_value, kind=kind), f"{_XSD}{general}")
    for kind in DURATION_KINDS:
        yield kind, _typed(partial(duration_value, kind=kind), f"{_XSD}duration")


_DATATYPES: dict[str, _Datatype] = {
    **{f"{_XSD}{kind}": _Datatype(_string(form)) for kind, form in _STRINGS.items()},
    **{f"{_XSD}{kind}": _Datatype(value, _LONGEST) for kind, value in _scalars()},
    f"{_XSD}hexBinary": _Datatype(_typed(_hex, f"{_XSD}hexBinary")),
    f"{_XSD}base64Binary": _Datatype(_typed(_sixty_four, f"{_XSD}base64Binary")),
    f"{_XSD}anyURI": _Datatype(_typed(str, f"{_XSD}anyURI")),
    f"{_RDF}PlainLiteral": _Datatype(_plain_literal),
    f"{_RDF}XMLLiteral": _Datatype(_typed(_xml, f"{_RDF}XMLLiteral"), _LONGEST_XML),
    _RATIONAL: _Datatype(_number(rational_value), _LONGEST_RATIONAL),
}
