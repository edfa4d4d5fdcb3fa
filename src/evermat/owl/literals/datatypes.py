r"""Sets of literals as regular expressions over their N-Triples text, in RE2's syntax.

A pattern matches every spelling of every value in a set, whatever datatype the literal is of: `"5"^^xsd:int` and
`"5.0"^^xsd:decimal` are integers. It says what `evermat.language.literal_values` says: `" 5"^^xsd:int`,
`"300"^^xsd:byte` and the thirtieth of February have no value. Only whether XML is well-formed is more than a pattern can say.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from math import ceil, floor

from evermat.language import INTEGER_RANGES, NAME_REST, NAME_START, BadEscapeError, unescape
from evermat.owl.literals.number_ranges import between, integers_between
from evermat.owl.literals.xsd_regex import UnreadableError, translated
from evermat.owl.vocabulary import LITERAL, RDF, XSD, owl, rdf, xsd

_XSD = XSD.replace(".", r"\.")
_INTEGER_NAMES = r"(?:\w*[Ii]nteger|(?:unsigned)?(?:[Ll]ong|[Ii]nt|[Ss]hort|[Bb]yte))"
_DECIMAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_CHARACTER = r'(?:[^"\\]|\\[^u]|\\u[0-9A-F]{4})'  # one, as the engine spells it
_TEXT = r'(?:[^"\\]|\\.)*'
_TAG = "[A-Za-z]+(?:-[A-Za-z0-9]+)*"
_LANGUAGE = f"@{_TAG}"
_SOLID = r'(?:[^"\\ ]|\\[^tnr])'  # not a blank
_FLOAT = r"(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN)"
_START, _REST = (re.sub(r"[^ -~]", lambda c: rf"\x{{{ord(c.group()):X}}}", part) for part in (NAME_START, NAME_REST))
_PLAIN_LITERAL = r"\^\^" + re.escape(rdf("PlainLiteral"))
_YEAR = "-?(?:[1-9][0-9]{3,}|0[0-9]{3})"
_LEAP_PART = "(?:0[48]|[2468][048]|[13579][26])"  # two digits that 4 divides, but for 00
_LEAP_YEAR = f"-?(?:[1-9][0-9]*)?(?:[0-9]{{2}}{_LEAP_PART}|(?:00|{_LEAP_PART})00)"
_MONTH, _DAY = "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])"
_DAY_OF_YEAR = "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
_DATE = f"(?:{_YEAR}-{_DAY_OF_YEAR}|{_LEAP_YEAR}-02-29)"
_TIME = r"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?|24:00:00(?:\.0+)?)"
_ZONE = "(?:Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))"
_DURATION_TIME = (
    r"T(?:[0-9]+H(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?|[0-9]+M(?:[0-9]+(?:\.[0-9]+)?S)?|[0-9]+(?:\.[0-9]+)?S)"
)
_DAY_TIME = rf"(?:[0-9]+D(?:{_DURATION_TIME})?|{_DURATION_TIME})"
_YEAR_MONTH = "(?:[0-9]+Y(?:[0-9]+M)?|[0-9]+M)"
# Of no months, and of no days: these durations are of both derived datatypes.
_NO_MONTHS = "(?:0+Y(?:0+M)?|0+M)"
_NO_TIME = _DURATION_TIME.replace("[0-9]", "0")
_NO_DAYS = f"(?:0+D(?:{_NO_TIME})?|{_NO_TIME})"
_SIXTY_FOUR = "[A-Za-z0-9+/] ?"
# The forms of literals that have only their own datatype.
_LEXICAL = {
    "boolean": "(?:true|false|1|0)",
    "double": _FLOAT,
    "float": _FLOAT,
    "hexBinary": "(?:[0-9A-Fa-f]{2})*",
    "base64Binary": (
        rf"(?:(?:(?:{_SIXTY_FOUR}){{4}})*(?:(?:{_SIXTY_FOUR}){{3}}[A-Za-z0-9+/]"
        rf"|(?:{_SIXTY_FOUR}){{2}}[AEIMQUYcgkosw048] ?=|{_SIXTY_FOUR}[AQgw] ?= ?=))?"
    ),
    "date": f"{_DATE}{_ZONE}?",
    "time": f"{_TIME}{_ZONE}?",
    "gYear": f"{_YEAR}{_ZONE}?",
    "gYearMonth": f"{_YEAR}-{_MONTH}{_ZONE}?",
    "gMonth": f"--{_MONTH}{_ZONE}?",
    "gMonthDay": f"--(?:{_DAY_OF_YEAR}|02-29){_ZONE}?",
    "gDay": f"---{_DAY}{_ZONE}?",
}
# The forms of strings, which are of any datatype of strings, or of none; each has only texts that those before it have, too.
_TEXTS = {
    "string": _TEXT,
    "normalizedString": r'(?:[^"\\]|\\[^tnr])*',
    "token": f"(?:{_SOLID}+(?: {_SOLID}+)*)?",
    "NMTOKEN": f"[:{_REST}]+",
    "Name": f"[:{_START}][:{_REST}]*",
    "NCName": f"[{_START}][{_REST}]*",
    "language": "[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*",
}
_TAGGED = f'"{_TEXT}"{_LANGUAGE}|"{_TEXT}@{_TAG}"{_PLAIN_LITERAL}'
_DATE_TIME = f"{_DATE}T{_TIME}"
_DURATION = f"-?P(?:{_YEAR_MONTH}(?:{_DAY_TIME})?|{_DAY_TIME})"
# The literals of datatypes that share values with others.
_SHARED = {
    "dateTime": rf'"{_DATE_TIME}{_ZONE}?"\^\^<{_XSD}dateTime>|"{_DATE_TIME}{_ZONE}"\^\^<{_XSD}dateTimeStamp>',
    "dateTimeStamp": rf'"{_DATE_TIME}{_ZONE}"\^\^<{_XSD}dateTime(?:Stamp)?>',
    "duration": (
        rf'"{_DURATION}"\^\^<{_XSD}duration>|"-?P{_YEAR_MONTH}"\^\^<{_XSD}yearMonthDuration>'
        rf'|"-?P{_DAY_TIME}"\^\^<{_XSD}dayTimeDuration>'
    ),
    "yearMonthDuration": (
        rf'"-?P{_YEAR_MONTH}"\^\^<{_XSD}(?:yearMonthD|d)uration>|"-?P{_NO_DAYS}"\^\^<{_XSD}(?:dayTimeD|d)uration>'
        rf'|"-?P{_YEAR_MONTH}{_NO_DAYS}"\^\^<{_XSD}duration>'
    ),
    "dayTimeDuration": (
        rf'"-?P{_DAY_TIME}"\^\^<{_XSD}(?:dayTimeD|d)uration>|"-?P{_NO_MONTHS}"\^\^<{_XSD}(?:yearMonthD|d)uration>'
        rf'|"-?P{_NO_MONTHS}{_DAY_TIME}"\^\^<{_XSD}duration>'
    ),
}


def _local(name: str) -> str:
    """The name of a datatype of XML Schema without its namespace, or nothing."""
    return name[len(XSD) + 1 : -1] if name.startswith(f"<{XSD}") else ""


ANY_LITERAL = '".*'
NONE = r"[^\x00-\x{10FFFF}]"  # what no text matches
_PLAIN_NAMES = (rdf("PlainLiteral"), rdf("XMLLiteral"))
DATATYPES = (rdf("XMLLiteral"), *map(xsd, (*INTEGER_RANGES, "decimal", *_TEXTS, "anyURI", *_LEXICAL, *_SHARED)))
"""The datatypes that say of each of their literals what it is not, too: those of OWL 2 RL, and dates and durations."""
RECOGNISED = rf'".*"(?:@.*|\^\^(?:<{_XSD}(?:{"|".join(filter(None, map(_local, DATATYPES)))})>|{"|".join(map(re.escape, _PLAIN_NAMES))}))?'
"""Literals of these datatypes, spelled as they ask for or not."""
DECIDED = rf'[^"].*|{RECOGNISED}'
"""Terms of which one can say that they are not in a set of literals: a literal of any other datatype may be in it."""


@cache
def datatype_pattern(name: str) -> str | None:
    """The literals in the value space of a datatype, or None if the datatype is not known."""
    if name == LITERAL:
        return ANY_LITERAL
    if name in (owl("real"), owl("rational")):
        rational = owl("rational").replace(".", r"\.")
        return rf'{_decimals()}|"[+-]?[0-9]+/0*[1-9][0-9]*"\^\^{rational}'
    if name == rdf("PlainLiteral"):
        return f"{_strings('string')}|{_TAGGED}"
    if name == rdf("langString"):
        return _TAGGED
    if name in (rdf("XMLLiteral"), rdf("HTML"), rdf("JSON")):
        return rf'"{_TEXT}"\^\^{re.escape(name)}'
    return _xsd_pattern(_local(name))


def _xsd_pattern(local: str) -> str | None:
    if local in INTEGER_RANGES:
        return _integers(*INTEGER_RANGES[local])
    if local == "decimal":
        return _decimals()
    if local in _TEXTS:
        return _strings(local)
    if local == "anyURI":
        return rf'"{_TEXT}"\^\^<{_XSD}anyURI>'
    return rf'"{_LEXICAL[local]}"\^\^<{_XSD}{local}>' if local in _LEXICAL else _SHARED.get(local)


def _integers(low: int | None, high: int | None) -> str:
    """The whole numbers between two, in all their spellings."""
    if low is not None and high is not None and low > high:
        return NONE
    whole = integers_between(low, high)
    point = r"(?:\.0*)?"
    zero = r"|[+-]?\.0+" if (low is None or low <= 0) and (high is None or high >= 0) else ""
    return rf'{_integers_as_typed(low, high)}|"(?:{whole}{point}{zero})"\^\^<{_XSD}decimal>'


def _decimals() -> str:
    """All decimal numbers."""
    return rf'{_integers_as_typed(None, None)}|"{_DECIMAL}"\^\^<{_XSD}decimal>'


@cache
def _integers_as_typed(low: int | None, high: int | None) -> str:
    """The whole numbers between two that are spelled as integers and are what their own datatypes allow."""
    of_bounds: dict[tuple[int | None, int | None], list[str]] = {}
    for name, (least, greatest) in INTEGER_RANGES.items():
        first = low if least is None else least if low is None else max(low, least)
        last = high if greatest is None else greatest if high is None else min(high, greatest)
        if first is None or last is None or first <= last:
            of_bounds.setdefault((first, last), []).append(name)
    return "|".join(
        rf'"{integers_between(*bounds)}"\^\^<{_XSD}(?:{"|".join(names)})>' for bounds, names in of_bounds.items()
    )


def _strings(kind: str) -> str:
    """The texts of a datatype that are what their own datatypes allow."""
    kinds = list(_TEXTS)
    at, text = kinds.index(kind), _TEXTS[kind]
    wider = rf'"{text}"(?:\^\^<{_XSD}(?:{"|".join(kinds[: at + 1])})>)?'
    narrower = [rf'"{_TEXTS[other]}"\^\^<{_XSD}{other}>' for other in kinds[at + 1 :]]
    return "|".join([wider, *narrower, f'"{text}@"{_PLAIN_LITERAL}'])


# --- facets --------------------------------------------------------------------------------------------------

_NUMBER = re.compile(rf'"(?P<number>{_DECIMAL})"\^\^<{_XSD}(?:decimal|{_INTEGER_NAMES})>')
_PLAIN = re.compile(rf'"(?P<text>{_TEXT})"(?:\^\^<[^>]*>)?')
_LENGTH = re.compile(r'"\+?(?P<number>[0-9]{1,4})"(?:\^\^<[^>]*>)?')
_LONGEST = 1000  # RE2 repeats no more often
_MOST_DIGITS = 50


def restriction_patterns(
    datatype: str, facets: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Patterns that literals match which are of a datatype and which facets allow, and the facets that no pattern says."""
    base = datatype_pattern(datatype)
    if base is None:
        return (), facets
    local = _local(datatype)
    if local in INTEGER_RANGES and (bounds := _bounds(*INTEGER_RANGES[local], facets)):
        return (_integers(*bounds),), ()
    patterns = [facet_pattern(datatype, facet, value) for facet, value in facets]
    unsaid = [facet for facet, pattern in zip(facets, patterns, strict=True) if pattern is None]
    return (base, *(pattern for pattern in patterns if pattern is not None)), tuple(unsaid)


def _bounds(
    low: int | None, high: int | None, facets: tuple[tuple[str, str], ...]
) -> tuple[int | None, int | None] | None:
    """The first and the last of the whole numbers that facets allow, if that is all they say."""
    for facet, value in facets:
        found = _NUMBER.fullmatch(value)
        if found is None or len(found["number"]) > _MOST_DIGITS:
            return None
        number = Decimal(found["number"])
        match facet.removeprefix(f"<{XSD}"):
            case "minInclusive>" | "minExclusive>" as end:
                first = ceil(number) if end == "minInclusive>" else floor(number) + 1
                low = first if low is None else max(low, first)
            case "maxInclusive>" | "maxExclusive>" as end:
                last = floor(number) if end == "maxInclusive>" else ceil(number) - 1
                high = last if high is None else min(high, last)
            case _:
                return None
    return low, high


def facet_pattern(datatype: str, facet: str, value: str) -> str | None:
    """The literals that a facet of a datatype allows, or None if no pattern can say that.

    It speaks of values of the datatype: others may match.
    """
    local = _local(datatype)
    if local == "decimal" or local in INTEGER_RANGES or datatype in (owl("real"), owl("rational")):
        return _number_facet(facet, value)
    if local in _TEXTS or datatype == rdf("PlainLiteral"):
        return _string_facet(facet, value)
    return None


def _number_facet(facet: str, value: str) -> str | None:
    found = _NUMBER.fullmatch(value)
    if found is None or len(found["number"]) > _MOST_DIGITS:
        return None
    number = Decimal(found["number"])
    end = facet.removeprefix(f"<{XSD}").removesuffix(">")
    if end not in ("minInclusive", "minExclusive", "maxInclusive", "maxExclusive"):
        return None
    open_ = end.endswith("Exclusive")
    allowed = between(low=number, open_=open_) if end.startswith("min") else between(high=number, open_=open_)
    return rf'"{allowed}"\^\^<{_XSD}(?:decimal|{_INTEGER_NAMES})>'


def _string_facet(facet: str, value: str) -> str | None:
    found = _PLAIN.fullmatch(value)
    if found is None:
        return None
    if facet == f"<{RDF}langRange>":
        return _language_range(found["text"])
    local = facet.removeprefix(f"<{XSD}").removesuffix(">")
    if local == "pattern":
        try:
            return _with_text(translated(unescape(found["text"])))
        except (UnreadableError, BadEscapeError):
            return None
    length = _LENGTH.fullmatch(value)
    if length is None or int(length["number"]) > _LONGEST:
        return None
    bounds = {"length": "{%s}", "minLength": "{%s,}", "maxLength": "{0,%s}"}
    return _with_text(_CHARACTER + bounds[local] % int(length["number"])) if local in bounds else None


def _with_text(pattern: str) -> str:
    """Strings, with a language or without, whose text matches a pattern."""
    types = rf"\^\^<{_XSD}(?:{'|'.join(_TEXTS)})>"
    return f'"{pattern}"(?:{_LANGUAGE}|{types})?|"{pattern}@(?:{_TAG})?"{_PLAIN_LITERAL}'


def _language_range(language: str) -> str | None:
    if language == "*":
        return _TAGGED
    if re.fullmatch(_TAG, language) is None:
        return None
    tag = f"{language.lower()}(?:-[a-z0-9-]*)?"
    return f'"{_TEXT}"@{tag}|"{_TEXT}@(?i:{tag})"{_PLAIN_LITERAL}'
