"""Cuts a text in Turtle, TriG or RDF/XML into statements that can be parsed one by one.

What follows a mistake is not to be trusted: a parser that goes on may take the rest for something else. So a text with
mistakes is cut: into what ends with a dot, also within the braces of a graph, or into the elements below the root of an
XML document. Each is parsed with what it needs of the text before it, and one that is wrong is left out as a whole.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import urljoin
from xml.parsers import expat


class Statement(NamedTuple):
    """The bytes [start, end) of a text; it is parsed between a lead and a tail."""

    start: int
    end: int
    lead: bytes = b""
    tail: bytes = b""


# --- Turtle and TriG -----------------------------------------------------------------------------------------

_BETWEEN = re.compile(rb"(?:[ \t\r\n]+|#[^\r\n]*)*")
_DIRECTIVE = re.compile(rb"(?:PREFIX[ \t\r\n]+[^\s:#<>]*:[ \t\r\n]*|BASE[ \t\r\n]*)<[^<>\s]*>", re.IGNORECASE)
_AT_DIRECTIVE = (b"@prefix", b"@base")
_TOKEN = re.compile(
    rb"""
      \#[^\r\n]*
    | <[^<>"\s]*>
    | \"\"\"[^"\\]*(?:(?:\\.|""?(?!"))[^"\\]*)*\"\"\"
    | '''[^'\\]*(?:(?:\\.|''?(?!'))[^'\\]*)*'''
    | "[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"
    | '[^'\\\r\n]*(?:\\.[^'\\\r\n]*)*'
    | \\.
    | (?P<dot>\.(?![\w:%\\.\x80-\xff-]))     # all else goes on with a name or a number
    | (?P<open>\{(?!\|))
    | (?P<close>(?<!\|)\})
    """,
    re.VERBOSE | re.DOTALL,
)


def turtle_statements(text: bytes, accepts: Callable[[bytes], bool], *, graphs: bool) -> Iterator[Statement]:
    """The statements of a text, apart from its declarations of prefixes and bases: these are in the leads.

    A declaration that is not right, as `accepts` says, is yielded as a statement. With `graphs` braces enclose graphs, as in TriG.
    """
    at, declared, lead, tail = 0, b"", b"", b""
    while (begin := _BETWEEN.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # it matches nothing, too
        directive = _DIRECTIVE.match(text, begin)
        if directive is not None:
            at, sign = directive.end(), "dot"
        else:
            at, sign = _end(text, begin, graphs=graphs, inside=bool(tail))
        statement = text[begin:at]
        if directive is not None or statement.startswith(_AT_DIRECTIVE):
            if accepts(declared + statement):
                declared = lead = declared + statement + b"\n"
            else:
                yield Statement(begin, at, declared)
        elif sign == "open":
            lead, tail = declared + statement + b"\n", b"\n}"
        elif sign == "close" and tail:
            if statement != b"}":
                yield Statement(begin, at - 1, lead, tail)
            lead, tail = declared, b""
        else:  # a graph that nothing closes is an error of its last statement
            tail = tail if sign else b""
            yield Statement(begin, at, lead, tail)
    if tail:
        yield Statement(len(text), len(text), lead)


def _end(text: bytes, begin: int, *, graphs: bool, inside: bool) -> tuple[int, str]:
    """Where a statement ends, and what ends it."""
    for token in _TOKEN.finditer(text, begin):
        kind = token.lastgroup
        if kind == "dot" or (graphs and kind == ("close" if inside else "open")):
            return token.end(), str(kind)
    return begin + len(text[begin:].rstrip()), ""


# --- RDF/XML -------------------------------------------------------------------------------------------------

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns# RDF"
DEEPEST = 10_000  # elements in each other: oxigraph looks through all of them for each


_ID, _BASE = "http://www.w3.org/1999/02/22-rdf-syntax-ns# ID", "http://www.w3.org/XML/1998/namespace base"
_ID_IN_TAG = re.compile(rb"""(?<=:)ID\s*=\s*(?:"[^"]*"|'[^']*')""")


class NotXmlError(Exception):
    """A text that is not an XML document; `args` are the reason, the line and the column, counted from 1."""


#: What expat raises: the last two about an encoding that Python does not know, or that expat cannot use.
XML_ERRORS = (expat.ExpatError, LookupError, ValueError)


def xml_error(error: Exception) -> tuple[str, int, int]:
    """What is wrong with a document, and the line and the column, counted from 1; its encoding stands in the first line."""
    if isinstance(error, expat.ExpatError):
        return expat.ErrorString(error.code), error.lineno, error.offset + 1
    return f"its encoding cannot be read ({error})", 1, 1


def xml_statements(text: bytes) -> list[Statement]:
    """The elements below the root of a document, or the whole document if its root is not what holds several."""
    root, end, depth = "", len(text), 0
    starts: list[int] = []

    def begin(name: str, _attributes: object) -> None:
        nonlocal root, depth
        if depth == 0:
            root = name
        elif depth == 1:
            starts.append(parser.CurrentByteIndex)
        depth += 1
        if depth > DEEPEST:
            why = f"this is nested more than {DEEPEST:,} levels deep"
            raise NotXmlError(why, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1)

    def stop(_name: str) -> None:
        nonlocal end, depth
        depth -= 1
        if depth == 0:
            end = parser.CurrentByteIndex

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = begin, stop
    try:
        parser.Parse(text, True)
    except XML_ERRORS as error:
        raise _not_xml(error) from error
    if root != _RDF or not starts:
        return [Statement(0, len(text))]
    lead, tail = text[: starts[0]], text[end:]
    return [Statement(*ends, lead, tail) for ends in zip(starts, [*starts[1:], end], strict=True)]


class RepeatedId(NamedTuple):
    """The bytes [start, end) of an `rdf:ID` that names what another has named before, and the line of that one."""

    start: int
    end: int
    iri: str
    first: int


def repeated_ids(text: bytes, base: str | None) -> list[RepeatedId]:
    """Every `rdf:ID` of a document that says the same as one before it; nothing if the document is not XML."""
    bases, lines = [base or ""], dict[str, int]()
    found: list[RepeatedId] = []

    def begin(_name: str, attributes: dict[str, str]) -> None:
        bases.append(urljoin(bases[-1], attributes[_BASE]) if _BASE in attributes else bases[-1])
        if (id_ := attributes.get(_ID)) is None:
            return
        iri = f"{bases[-1].partition('#')[0]}#{id_}"
        if iri not in lines:
            lines[iri] = parser.CurrentLineNumber
            return
        start = parser.CurrentByteIndex
        tag = text[start : text.find(b">", start) + 1]
        at = _ID_IN_TAG.search(tag)
        first, last = at.span() if at else (0, len(tag))
        found.append(RepeatedId(start + first, start + last, iri, lines[iri]))

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = begin, lambda _name: bases.pop()
    try:
        parser.Parse(text, True)
    except XML_ERRORS:
        return []
    return found


def check_xml(read: Callable[[int], bytes]) -> None:
    """Reads a document to see whether it is one, and whether its entities do not stand for vastly more than it is."""
    parser = expat.ParserCreate(namespace_separator=" ")
    try:
        while piece := read(1 << 16):
            parser.Parse(piece, False)
        parser.Parse(b"", True)
    except XML_ERRORS as error:
        raise _not_xml(error) from error


def _not_xml(error: Exception) -> NotXmlError:
    return NotXmlError(*xml_error(error))


def markup(text: bytes) -> Iterator[bytes]:
    """The text in pieces that end where markup may end, so that a parser has read no more than what it complains about."""
    at = 0
    while at < len(text):
        end = text.find(b">", at) + 1 or len(text)
        yield text[at:end]
        at = end


class Lines:
    """Turns offsets in a text into lines and columns."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in re.finditer(b"\n", text))]

    def number(self, at: int) -> int:
        """The number of the line with a byte, counted from 1."""
        return bisect_right(self._starts, at)

    def column(self, at: int) -> int:
        """The number of characters before a byte in its line."""
        return len(self._text[self._starts[self.number(at) - 1] : at].decode(errors="replace"))

    def line(self, number: int) -> str:
        """The text of a line, without its end; others count more lines, and what they call the next is the last."""
        number = min(number, len(self._starts))
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self._text)
        return self._text[start:end].decode(errors="replace").rstrip("\r\n")
