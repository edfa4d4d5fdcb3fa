"""Values of facts, and the N-Triples form in which RDF terms are held."""

from __future__ import annotations

import re

Value = int | float | str

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SAME_AS = "<http://www.w3.org/2002/07/owl#sameAs>"

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_ESCAPES |= {c: c for c in "\\\"'"}
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f\x7f]')
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", '"': '\\"', "\\": "\\\\"}


def is_unicode(text: str) -> bool:
    """Whether a text has an encoding: half of a surrogate pair is not a character: it could not be written anywhere."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class BadEscapeError(ValueError):
    """An escape sequence that has no meaning; `args` are the sequence and its offset."""


def unescape(text: str) -> str:
    """The string that a text between quotes stands for."""
    if "\\" not in text:
        return text

    def replacement(match: re.Match[str]) -> str:
        code = match.group(1)
        if code in _ESCAPES:
            return _ESCAPES[code]
        if len(code) > 1:
            point = int(code[1:], 16)
            if point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF:
                return chr(point)
        raise BadEscapeError(match.group(), match.start())

    return _ESCAPE.sub(replacement, text)


def quote(text: str) -> str:
    """A string as it stands in a program or in N-Triples."""
    return '"' + _TO_ESCAPE.sub(lambda m: _SHORT.get(m.group()) or f"\\u{ord(m.group()):04X}", text) + '"'


def literal_term(text: str, *, language: str = "", datatype: str = "") -> str:
    """The N-Triples form of an RDF literal; language tags are compared in lower case."""
    if language:
        return f"{quote(text)}@{language.lower()}"
    return quote(text) if datatype in ("", XSD_STRING) else f"{quote(text)}^^<{datatype}>"
