"""Formats of RDF without lines (Turtle, TriG, RDF/XML, JSON-LD): pyoxigraph parses them.

Triples come out of it as N-Triples text, a block at a time, which is then cut at its blanks: that takes less than to look
at each term from Python. If anything is wrong with a text, it is read again, statement by statement, to say what and where.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import DataError, Kind, Problem, Source, Span, ask_for, check_stop
from evermat.core import error_catalogue as errors
from evermat.io.error_report import Findings, fail
from evermat.io.rdf.document_type import with_double_quotes
from evermat.io.rdf.error_recovery import (
    DEEPEST,
    Lines,
    NotXmlError,
    Statement,
    check_xml,
    markup,
    repeated_ids,
    turtle_statements,
    xml_statements,
)
from evermat.io.rdf.json_ld import (
    MOST_LEVELS,
    NO_BASE,
    CheckedDepth,
    json_pieces,
    json_statements,
    relative_iri,
    remote_contexts,
    too_deep,
)
from evermat.io.rdf.ntriples import RELATIVE, cut_lines, in_our_words, with_default_named, without_position
from evermat.io.rdf.terms import Quads, column_of
from evermat.language import DIRECTION, TRIPLE_TERM, UnsupportedTermError, quote, unescape

if TYPE_CHECKING:
    from pyoxigraph import Quad

FORMS = {"ttl": "Turtle", "trig": "TriG", "rdf": "RDF/XML", "jsonld": "JSON-LD"}
_COPIES = 6  # of a text, while it is cut into terms
_BLOCK = 1 << 14  # triples that are yielded at a time
_GROUP = 256  # statements that are tried together
_START = 1 << 16  # bytes in which a document type is looked for
_ENTITY = b"<!ENTITY"
_PIECE = 1 << 16  # bytes of a document that are read at a time
_END = 1 << 12  # bytes in which the end of a document is looked for


def read_parsed(stream: BinaryIO, syntax: str, base: str | None) -> Iterator[Quads]:
    """The triples of a text without mistakes.

    Raises:
        SyntaxError, UnsupportedTermError, NotXmlError, TooDeepError, RelativeIriError: it has some; reading it statement by statement
            shows where.
        DataError: the base is none.
    """
    if syntax != "rdf":
        source: Any = CheckedDepth(stream) if syntax == "jsonld" else stream
        yield from _blocks(_parse(source, syntax, base), syntax)
        return
    start = stream.tell()
    entities = _ENTITY in stream.read(_START)
    stream.seek(start)
    if entities:
        check_xml(stream.read)
        stream.seek(start)
    watched = _Watched(stream, checked=entities)
    yield from _blocks(_parse(_Pieces(watched.pieces()), syntax, base), syntax)
    if not watched.closed:
        raise NotXmlError("it breaks off", 1, 1)  # pyoxigraph takes that for complete


class _Watched:
    """An XML document, read in pieces, and how it began and ended; all its entities are checked."""

    _NAME = re.compile(rb"<([^\s<>/?!=]+)")

    def __init__(self, stream: BinaryIO, *, checked: bool) -> None:
        self._stream, self._checked = stream, checked
        self._start = self._end = b""
        self._depth = 0

    def pieces(self) -> Iterator[bytes]:
        first = with_double_quotes(self._stream.read(_PIECE), self._stream.read)
        for piece in chain([first], iter(lambda: self._stream.read(_PIECE), b"")):
            if len(self._start) < _START:
                self._start += piece
            end = self._end + piece
            if not self._checked and _ENTITY in end:
                raise NotXmlError("it has entities", 1, 1)
            if self._is_deep(self._end[-1:], piece):
                raise NotXmlError("it may be nested too deeply", 1, 1)
            self._end = end[-_END:]
            yield piece

    def _is_deep(self, before: bytes, piece: bytes) -> bool:
        """Whether very many elements may be in each other, for `<` and `/>` may also be text; `before` is the byte before the piece."""
        pairs = before + piece
        other = pairs.count(b"<!") + pairs.count(b"<?") + 2 * pairs.count(b"</") + pairs.count(b"/>")
        self._depth += piece.count(b"<") - other
        return self._depth > DEEPEST

    @property
    def closed(self) -> bool:
        """Whether the document ends with the end of the element that it begins with; comments may follow."""
        root = self._NAME.search(_without_comments(self._start))
        end = _without_comments(self._end).rstrip()
        return root is None or re.search(rb"(?:</%b\s*|<%b\s[^<]*/)>$" % ((re.escape(root[1]),) * 2), end) is not None


def _without_comments(text: bytes) -> bytes:
    return re.sub(rb"<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", b"", text, flags=re.DOTALL)


def _parse(source: Any, syntax: str, base: str | None) -> Iterator[Quad]:
    import pyoxigraph as rdf  # noqa: PLC0415

    if syntax == "jsonld" and base is None:
        base = NO_BASE
    try:
        return iter(rdf.parse(source, format=rdf.RdfFormat.from_extension(syntax), base_iri=base))
    except ValueError as error:
        if isinstance(error, SyntaxError):
            raise
        raise fail(errors.BAD_BASE, base=base, why=in_our_words(str(error).rpartition(", ")[2])) from error


def _blocks(quads: Iterable[Quad], syntax: str) -> Iterator[Quads]:
    import pyoxigraph as rdf  # noqa: PLC0415

    graphs = syntax in ("trig", "jsonld")
    form = rdf.RdfFormat.N_QUADS if graphs else rdf.RdfFormat.N_TRIPLES
    rest = iter(quads)
    check_stop()
    while text := rdf.serialize(islice(rest, _BLOCK), format=form):
        ask_for(_COPIES * len(text))
        block = _held(text, graphs=graphs)
        if syntax == "jsonld":
            _refuse_relative(block)
        yield block
        check_stop()


class RelativeIriError(Exception):
    """A relative IRI in a text that has no base; `args` are the IRI."""


def _refuse_relative(quads: Quads) -> None:
    """Raises a `RelativeIriError` for a term that only its stand-in for a base has made absolute."""
    for column in quads.columns:
        terms = column.dictionary
        for term in terms.filter(pc.match_substring(terms, f"<{NO_BASE}")).to_pylist():
            if iri := relative_iri(term):
                raise RelativeIriError(iri)


def _held(text: bytes, *, graphs: bool) -> Quads:
    """The triples of a text that pyoxigraph has written."""
    cut = cut_lines(text, graphs=graphs)
    columns = [column.dictionary_encode() for column in cut.columns]
    columns = [pa.DictionaryArray.from_arrays(c.indices, c.dictionary.cast(pa.string())) for c in columns]
    objects = columns[2].dictionary
    if pc.any(pc.starts_with(objects, "<<"), min_count=0).as_py():
        raise UnsupportedTermError(*TRIPLE_TERM)
    if pc.any(pc.match_substring_regex(objects, '"@[A-Za-z0-9-]*--[a-z]+$'), min_count=0).as_py():
        raise UnsupportedTermError(*DIRECTION)
    # pyoxigraph escapes two characters more than the engine does.
    odd = pc.match_substring_regex(objects, r"\\uFFF[EF]")
    if pc.any(odd, min_count=0).as_py():
        terms = [
            _respelled(term) if is_odd.as_py() else term for term, is_odd in zip(objects.to_pylist(), odd, strict=True)
        ]
        columns[2] = column_of(columns[2].indices, pa.array(terms, pa.string()))
    if graphs:
        columns[3] = with_default_named(columns[3])
    return Quads(*columns)


def _respelled(literal: str) -> str:
    end = literal.rindex('"')
    return quote(unescape(literal[1:end])) + literal[end + 1 :]


# --- statement by statement ----------------------------------------------------------------------------------

_IRI_OF_XML = re.compile(r"^error while parsing IRI '(.*)': ", re.DOTALL)
_BASES = {
    "ttl": "`@base <IRI> .`",
    "trig": "`@base <IRI> .`",
    "rdf": '`xml:base="IRI"`',
    "jsonld": '`"@base": "IRI"` in a context',
}
_REMOTE = "LoadDocumentCallback"  # what pyoxigraph has none of


class _Position(NamedTuple):
    """Some characters of a line."""

    line: int
    span: Span


class Careful:
    """Reads a text statement by statement: those that are wrong are noted, each with its first mistake, and left out."""

    def __init__(self, text: bytes, syntax: str, base: str | None, findings: Findings) -> None:
        self._text = with_double_quotes(text) if syntax == "rdf" else text
        self._syntax, self._base, self._findings = syntax, base, findings
        self._lines = Lines(self._text)
        self.wrong = 0  # statements that were left out

    def read(self) -> Iterator[Quads]:
        """The triples of all other statements.

        Raises:
            DataError: there are no statements, for the text is not XML: also where mistakes are only counted.
        """
        for group in _grouped(self._all_but_repeated()):
            check_stop()
            quads = self._quads(group)
            if quads is not None:
                yield from quads
                continue
            for statement in group:
                quads = self._quads([statement])
                if quads is not None:
                    yield from quads
                else:
                    self._complain(statement)

    def _all_but_repeated(self) -> Iterator[Statement]:
        """The statements without those that give a name a second time, which are noted."""
        statements = self._statements()
        repeated = repeated_ids(self._text, self._base) if self._syntax == "rdf" else []
        if not repeated:
            yield from statements
            return
        for statement in statements:
            at = bisect_left(repeated, statement.start, key=lambda one: one.start)
            if at == len(repeated) or repeated[at].start >= statement.end:
                yield statement
                continue
            start, end, iri, first = repeated[at]
            self.wrong += 1
            why = f"<{iri}> is the name of an `rdf:ID` in line {first} already"
            self._findings.add(self._at(self._between(start, end), errors.BAD_RDF, form=FORMS["rdf"], why=why))

    def _statements(self) -> Iterable[Statement]:
        if self._syntax == "jsonld":
            if too_deep(self._text):
                why = f"it is nested more than {MOST_LEVELS} levels deep"
                raise DataError(self._at(_Position(1, Span(0, 1)), errors.BAD_RDF, form=FORMS["jsonld"], why=why))
            return json_statements(self._text)
        if self._syntax != "rdf":
            return turtle_statements(self._text, self._accepts, graphs=self._syntax == "trig")
        try:
            return xml_statements(self._text)
        except NotXmlError as error:
            why, line, column = error.args
            position = _Position(line, Span(column - 1, column))
            raise DataError(self._at(position, errors.BAD_RDF, form="XML", why=in_our_words(why))) from error

    def _accepts(self, text: bytes) -> bool:
        try:
            return not list(_parse(text, self._syntax, self._base))
        except SyntaxError:
            return False

    def _quads(self, group: list[Statement]) -> list[Quads] | None:
        """The triples of some statements with the same lead, or None if something is wrong with them."""
        pieces = [self._text[statement.start : statement.end] for statement in group]
        whole = group[0].lead + (b",\n" if self._syntax == "jsonld" else b"\n").join(pieces) + group[0].tail
        try:
            return list(_blocks(_parse(whole, self._syntax, self._base), self._syntax))
        except (SyntaxError, UnsupportedTermError, RelativeIriError):
            return None

    def _complain(self, statement: Statement) -> None:
        self.wrong += 1
        text = self._text[statement.start : statement.end]
        whole = statement.lead + text + statement.tail
        pieces = _Pieces(json_pieces(whole) if self._syntax == "jsonld" else markup(whole))
        source: Any = pieces if self._syntax in ("rdf", "jsonld") else whole
        try:
            for _ in _blocks(_parse(source, self._syntax, self._base), self._syntax):
                pass
        except SyntaxError as error:
            if self._syntax == "rdf" and statement.start and pieces.last[1] <= len(statement.lead):
                # It would be so for all.
                raise DataError(self._problem(error, self._in_xml(statement, pieces))) from error
            if self._syntax == "jsonld":
                self._complain_of_json(error, statement, pieces)
                return
            position = self._in_xml(statement, pieces) if self._syntax == "rdf" else self._in_turtle(error, statement)
            self._findings.add(self._problem(error, position))
        except RelativeIriError as error:
            at = max(text.find(f'"{error.args[0]}"'.encode()), 0)
            position = self._between(statement.start + at, statement.start + at + len(error.args[0].encode()) + 2)
            details = {"iri": error.args[0], "how": _BASES["jsonld"]}
            self._findings.add(self._at(position, errors.RELATIVE_IRI, **details))
        except UnsupportedTermError as error:
            why, sign = error.args
            at = statement.start + max(text.rfind(sign.encode()), 0)
            position = self._between(at, at + len(sign))
            self._findings.add(self._at(position, errors.BAD_RDF, form=FORMS[self._syntax], why=why))

    def _complain_of_json(self, error: SyntaxError, statement: Statement, pieces: _Pieces) -> None:
        """Notes what is wrong with a node. What is not JSON, or a context that is not there, concerns all nodes."""
        if error.lineno is not None:
            raise DataError(self._problem(error, self._in_turtle(error, statement))) from error
        if _REMOTE in error.msg or "remote context" in error.msg:
            for start, end in remote_contexts(self._text):
                iri = self._text[start:end].decode(errors="replace").strip('"')
                raise DataError(self._at(self._between(start, end), errors.REMOTE_CONTEXT, iri=f"<{iri}>")) from error
        if (
            pieces.last[1] > len(statement.lead) + statement.end - statement.start
        ):  # it was seen at the end of all nodes
            position = self._between(statement.start, statement.end)
        else:
            position = self._in_xml(statement, pieces)
        self._findings.add(self._problem(error, position))

    def _between(self, start: int, end: int) -> _Position:
        """The position of some bytes, as far as they are in one line."""
        number, column = self._lines.number(start), self._lines.column(start)
        last = self._lines.column(end) if self._lines.number(end) == number else len(self._lines.line(number))
        return _Position(number, Span(column, max(last, column + 1)))

    def _in_turtle(self, error: SyntaxError, statement: Statement) -> _Position:
        """Where an error is: pyoxigraph counts lines and columns from 1, beginning with the lead."""
        first, lead = self._lines.number(statement.start), statement.lead.count(b"\n")
        last = self._lines.number(max(statement.end - 1, statement.start))
        line = first + (error.lineno or 1) - 1 - lead
        if line < first:
            return self._between(statement.start, statement.end)
        if line > last:
            return self._between(statement.end, statement.end)
        before = self._lines.column(statement.start) if line == first else 0
        start = before + max((error.offset or 1) - 1, 0)
        end = before + (error.end_offset or 1) - 1 if error.end_lineno == error.lineno else len(self._lines.line(line))
        return _Position(line, Span(start, max(end, start + 1)))

    def _in_xml(self, statement: Statement, pieces: _Pieces) -> _Position:
        """Where an error is: in the piece that was read last."""
        start, end = pieces.last
        lead = len(statement.lead)
        if end > lead:
            start, end = max(start, lead) - lead + statement.start, end - lead + statement.start
        end = min(end, len(self._text))
        start += len(self._text[start:end]) - len(self._text[start:end].lstrip())
        return self._between(min(start, end), end)

    def _problem(self, error: SyntaxError, position: _Position) -> Problem:
        line = self._lines.line(position.line)
        why = without_position(error.msg)
        if why.endswith(RELATIVE):
            found = _IRI_OF_XML.match(why)
            iri = found[1] if found else line[position.span.start : position.span.end].strip("<>")
            return self._at(position, errors.RELATIVE_IRI, iri=iri, how=_BASES[self._syntax])
        return self._at(position, errors.BAD_RDF, form=FORMS[self._syntax], why=" ".join(in_our_words(why).split()))

    def _at(self, position: _Position, kind: Kind, **details: object) -> Problem:
        source = Source(self._findings.path, self._lines.line(position.line), position.line)
        return Problem(kind, details, source, position.span)


def _grouped(statements: Iterable[Statement]) -> Iterator[list[Statement]]:
    """Statements that can be parsed together."""
    for _, alike in groupby(statements, key=lambda statement: (statement.lead, statement.tail)):
        while group := list(islice(alike, _GROUP)):
            yield group


class _Pieces:
    """A stream that returns one piece at a time, and knows which one was the last."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, b""
        self.last = (0, 0)

    def read(self, size: int) -> bytes:
        if not self._rest:
            self._rest = next(self._pieces, b"")
            if self._rest:
                self.last = (self.last[1], self.last[1] + len(self._rest))
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece
