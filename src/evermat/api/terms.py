"""RDF terms from Python values."""

from __future__ import annotations

import math
import re
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from evermat.core import without_internals, wrong_argument, wrong_type
from evermat.language import (
    MalformedTermError,
    Term,
    checked_term,
    iri_term,
    is_term,
    is_well_formed,
    literal_term,
    malformed_argument,
    term_of,
    typed_literal,
)

_XSD = "http://www.w3.org/2001/XMLSchema#"
_LONGEST = 10_000  # digits of a decimal: written without an exponent, one could fill the memory
_ZONE = re.compile(r"[+-](?:0\d|1[0-3]):[0-5]\d|[+-]14:00")  # as XML Schema has them
_VALUES = "a str, bool, int, float, Decimal, datetime, date, time, timedelta or bytes"


@without_internals
def iri(iri: str) -> Term:
    """Makes the RDF term of an IRI.

    >>> import evermat
    >>> str(evermat.iri("http://example.org/tim"))
    '<http://example.org/tim>'

    Args:
        iri: an absolute IRI, without `<` and `>`; also one of rdflib or pyoxigraph.

    Raises:
        ArgumentError: the IRI is relative or malformed.
        TypeError: it is not a text.
    """
    try:
        return Term(iri_term(_iri_text("iri", iri)))
    except MalformedTermError as error:
        raise malformed_argument(error.fault, "iri") from None


@without_internals
def blank_node(label: str) -> Term:
    """Makes the RDF term of a blank node.

    >>> import evermat
    >>> str(evermat.blank_node("b1"))
    '_:b1'

    Args:
        label: the label, without `_:`.

    Raises:
        ArgumentError: the label is malformed.
        TypeError: it is not a text.
    """
    if not isinstance(label, str) or is_term(label):
        raise wrong_type("label", label, "a text without `_:`")
    if label.startswith("_:"):
        raise wrong_argument(f"`label` is {label!r}: a label is given without `_:`")
    try:
        return Term(checked_term(f"_:{label}"))
    except MalformedTermError as error:
        raise malformed_argument(error.fault._replace(text=label), "label") from None


@without_internals
def literal(value: Any, *, datatype: str | None = None, language: str | None = None) -> Term:
    """Makes the RDF term of a literal.

    The datatype of a text is `xsd:string`. Other values have the datatype of XML Schema that contains them: `bool` xsd:boolean, `int`
    xsd:integer, `float` xsd:double, `Decimal` xsd:decimal, `datetime` xsd:dateTime, `date` xsd:date, `time` xsd:time, `timedelta`
    xsd:dayTimeDuration, `bytes` xsd:hexBinary.

    >>> import evermat
    >>> str(evermat.literal("Tim", language="en")), str(evermat.literal(True))
    ('"Tim"@en', '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>')

    Args:
        value: a text or another value.
        datatype: the IRI of another datatype. Texts are not checked against it, spellings of other values are.
        language: a language tag, for texts without a datatype.

    Raises:
        ArgumentError: there is no such literal.
        TypeError: the value has no datatype.
    """
    value = _plain(value)
    if language is not None:
        return _tagged(value, datatype, language)
    if isinstance(value, str):
        text, own = value, None
    else:
        text, own = _spelled(value)
    try:
        if datatype is None:
            return Term(literal_term(text, datatype=own) if own else checked_term(literal_term(text)))
        named = _iri_text("datatype", datatype)
        if named.startswith("xsd:"):
            raise wrong_argument(f"`datatype` is {named!r}: write the whole IRI, {_XSD + named[4:]!r}")
        made = typed_literal(text, named)
    except MalformedTermError as error:
        raise malformed_argument(error.fault, "value" if datatype is None else "datatype") from None
    if own is not None and is_well_formed(made) is False:
        raise wrong_argument(f"{value!r} is not a value of the datatype {named!r}, as `{text}` does not spell one")
    return Term(made)


def _plain(value: Any) -> Any:
    """A value as one of Python's own types; raises a `TypeError` for a term."""
    if is_term(value):
        raise TypeError(f"`value` is of type {type(value).__name__}: it is a term already, which rows take as it is")
    numpy = sys.modules.get("numpy")
    if (
        numpy is not None
        and isinstance(value, numpy.generic)
        and not isinstance(value, numpy.datetime64 | numpy.timedelta64)
    ):
        return value.item()
    return value


def _tagged(value: Any, datatype: object, language: object) -> Term:
    if not isinstance(language, str):
        raise wrong_type("language", language, "a language tag such as 'en'")
    if datatype is not None:
        raise wrong_argument("a literal has a language or a datatype: use `language` or `datatype`, not both")
    if not isinstance(value, str):
        raise wrong_argument(f"only texts have a language, and `value` is of type {type(value).__name__}")
    if not re.fullmatch("[A-Za-z0-9-]+", language):
        raise wrong_argument(
            f"`language` is {language!r}: a language tag has letters, digits and `-`, as 'en' or 'de-AT'"
        )
    try:
        return Term(checked_term(literal_term(value, language=language)))
    except MalformedTermError as error:
        if "surrogate" in error.fault.why:
            raise malformed_argument(error.fault._replace(text=value), "value") from None
        raise malformed_argument(error.fault._replace(text=language), "language") from None


def _iri_text(name: str, value: Any) -> str:
    """An IRI without `<` and `>`, given as a text or a term; a `TypeError` for anything else."""
    if is_term(value):
        term = term_of(value)
        if term.startswith("<"):
            return term[1:-1]
    elif isinstance(value, str):
        return str(value)
    raise wrong_type(name, value, "the text of an IRI")


def _spelled(value: Any) -> tuple[str, str]:
    """How XML Schema spells a value that is not a text, and the datatype."""
    text, name = _spelled_by_name(value)
    return text, _XSD + name


def _spelled_by_name(value: Any) -> tuple[str, str]:
    match value:
        case bool():
            return str(value).lower(), "boolean"
        case int():
            return str(int(value)), "integer"
        case float():
            return _float(value), "double"
        case Decimal():
            return _decimal(value), "decimal"
        case datetime():  # before dates, as each is one
            return _zoned(value.isoformat(), value), "dateTime"
        case date():
            return value.isoformat(), "date"
        case time():
            return _zoned(value.isoformat(), value), "time"
        case timedelta():
            return _duration(value), "dayTimeDuration"
        case bytes() | bytearray():
            return value.hex().upper(), "hexBinary"
    raise wrong_type("value", value, _VALUES)


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    return float.__repr__(value)


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise wrong_argument(f"`value` is {value!r}: xsd:decimal has only finite numbers")
    if abs(value.adjusted()) > _LONGEST:
        raise wrong_argument(f"`value` is {value!r}: a decimal has at most {_LONGEST:,} digits")
    return format(value, "f")


def _zoned(text: str, value: datetime | time) -> str:
    """A time, if XML Schema has its zone."""
    if value != value:  # pandas.NaT  # noqa: PLR0124
        raise wrong_argument(f"`value` is {value!r}: it is not a time")
    offset = value.utcoffset()
    if offset is not None and not _ZONE.fullmatch(text[-6:]):
        raise wrong_argument(
            f"`value` is {value!r}: a zone of XML Schema has whole minutes, and is at most 14 hours from UTC"
        )
    return text


def _duration(value: timedelta) -> str:
    if value != value:  # pandas.NaT  # noqa: PLR0124
        raise wrong_argument(f"`value` is {value!r}: it is not a duration")
    sign, value = ("-", -value) if value < timedelta() else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{value.microseconds:06}".rstrip("0") if value.microseconds else ""
    days = f"{value.days}D" if value.days else ""
    clock = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M")) if number)
    if seconds or fraction:
        clock += f"{seconds}{fraction}S"
    if not (days or clock):
        clock = "0S"
    return f"{sign}P{days}{'T' if clock else ''}{clock}"
