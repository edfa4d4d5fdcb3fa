"""N-Triples and N-Quads, each term as the engine holds it: one term, one spelling (see `language.terms`).

Almost all lines of real files have a plain form: terms that are valid for sure, with single blanks between them. Such
lines are cut at their blanks, all of a block at once, and regular expressions look at each different term of the block;
they take less than the grammar does, never more. Lines of N-Triples with other blanks between plain terms are taken apart
by one regular expression each. All other lines are read by pyoxigraph, which knows the whole grammar, or says what is
wrong with them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import Span
from evermat.core import error_catalogue as errors
from evermat.io.blocks import Block, BlockReader
from evermat.io.error_report import Findings
from evermat.io.formats.csv_exact import decode
from evermat.io.formats.registry import InputFile
from evermat.io.rdf.terms import DEFAULT_GRAPH, Prefixed, Quads, column_of, encode, facts_of
from evermat.io.term_columns import GRAPH, NODE, OBJECT, PROPERTY, as_held, is_plain
from evermat.language import (
    PLAIN_BLANK,
    PLAIN_IRI,
    PLAIN_LANGUAGE,
    PLAIN_STRING,
    TRIPLE_TERM,
    UnsupportedTermError,
    spelled,
)

if TYPE_CHECKING:
    from pyoxigraph import Quad

_Terms = tuple[str, ...]
Rows = npt.NDArray[np.int64]
LINES = 2 << 20  # bytes that are read at a time: larger blocks take longer, for memory has to be found for them
_NEWLINE, _RETURN, _SPACE, _DOT = b"\n\r ."


def block_reader(file: InputFile) -> BlockReader:
    """How a file of facts is read."""
    labels, relation, graphs = Prefixed(file.options.blank), file.io.relation, file.ref.syntax == "nq"

    def read(block: Block) -> pa.Table:
        return facts_of(labels.rename(read_block(block, file.findings, graphs=graphs)), relation)

    return BlockReader(read, size=LINES)


def read_block(block: Block, findings: Findings, *, graphs: bool = False) -> Quads:
    """The triples of a block, in their order; errors are noted. With `graphs` the block is one of N-Quads."""
    data = block.data if block.data.endswith(b"\n") else block.data + b"\n"
    cut = cut_lines(data, graphs=graphs)
    plain, at = read_plain(cut)
    if len(at) == cut.lines:
        return plain
    rest = np.setdiff1d(np.arange(cut.lines), at, assume_unique=True)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + 1
    lines = _pieces(data, np.concatenate([[0], ends])).take(pa.array(rest))
    parts: list[tuple[list[Any], Rows]] = [([column.cast(pa.string()) for column in plain.columns], at)]
    if not graphs:
        columns, spaced = read_fast(lines)
        parts.append((columns, rest[spaced]))
        left = np.setdiff1d(np.arange(len(lines)), spaced, assume_unique=True)
        lines, rest = lines.take(pa.array(left)), rest[left]
    if len(lines):
        found, odd = read_slowly(lines.to_pylist(), rest, block.first_line, findings, graphs=graphs)
        width = 4 if graphs else 3
        slow = [pa.array(values, pa.string()) for values in list(zip(*found, strict=True)) or [()] * width]
        parts.append((slow, odd))
    order = pa.array(np.argsort(np.concatenate([rows for _, rows in parts]), kind="stable"))
    together = (pa.concat_arrays(columns).take(order) for columns in zip(*(some for some, _ in parts), strict=True))
    return Quads(*map(encode, together))


def _pieces(data: bytes, cuts: npt.NDArray[np.int64]) -> Any:
    """The parts of a text between one cut and the next, as an Arrow array of bytes."""
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(cuts) - 1, [None, pa.py_buffer(cuts.astype(np.int64, copy=False)), pa.py_buffer(data)]
    )


# --- lines with single blanks --------------------------------------------------------------------------------


class Cut(NamedTuple):
    """The terms, as Arrow arrays of bytes, of those lines that look as if they were cut rightly, and the lines' numbers.

    Whether they are terms is not checked yet. A line without a graph has nothing in the last column, if there is one.
    """

    columns: list[Any]
    rows: Rows
    lines: int


def cut_lines(data: bytes, *, graphs: bool) -> Cut:
    """Cuts lines, which all end with a newline, at their first two blanks and at the one before the dot.

    With `graphs` what is behind the last but one blank, if that is none of the first two, is taken for the name of a
    graph unless a quote is in it: then it is the end of a literal.
    """
    text = np.frombuffer(data, np.uint8)
    blanks = np.flatnonzero(text <= _SPACE)  # and control characters; no term of a plain line has any of these
    kinds = text[blanks]
    ends = np.flatnonzero(kinds == _NEWLINE)  # the ends of lines, and all below, are numbers of blanks
    first = np.concatenate([[0], ends[:-1] + 1])
    last = ends - 1
    last -= (kinds[last] == _RETURN) & (blanks[last] + 1 == blanks[ends])
    rows = np.flatnonzero(last - first >= 2)
    first, last = first[rows], last[rows]
    stop = blanks[last]
    ok = (kinds[first] == _SPACE) & (kinds[first + 1] == _SPACE) & (kinds[last] == _SPACE)
    ok &= (text[stop + 1] == _DOT) & (blanks[last + 1] == stop + 2)
    rows, first, last, stop = rows[ok], first[ok], last[ok], stop[ok]
    starts = np.concatenate([[0], blanks[ends[:-1]] + 1])[rows]
    second = blanks[first + 1]
    terms = [(starts, blanks[first]), (blanks[first] + 1, second), (second + 1, stop)]
    if graphs:
        before = blanks[last - 1]
        named = (before > second) & (kinds[last - 1] == _SPACE)
        tails = _between(data, [(np.where(named, before + 1, stop), stop)])[0]
        named &= pc.match_substring_regex(tails, '^[<_][^"]*$').to_numpy(zero_copy_only=False)
        end = np.where(named, before, stop)
        terms[2:] = [(second + 1, end), (np.minimum(end + 1, stop), stop)]
    return Cut(_between(data, terms), rows, len(ends))


def _between(data: bytes, places: Sequence[tuple[Rows, Rows]]) -> list[Any]:
    """The parts of a text between beginnings and ends, one array for each pair; they follow each other in each line."""
    width = 2 * len(places)
    count = len(places[0][0])
    cuts = np.empty(width * count + 1, np.int64)
    for i, (start, end) in enumerate(places):
        cuts[2 * i : -1 : width], cuts[2 * i + 1 : -1 : width] = start, end
    cuts[-1] = len(data)
    pieces = _pieces(data, cuts)
    return [pieces.take(pa.array(np.arange(2 * i, width * count, width))) for i in range(len(places))]


def read_plain(cut: Cut) -> tuple[Quads, Rows]:
    """The triples of those lines that are plain, and the numbers of these lines."""
    encoded = [column.dictionary_encode() for column in cut.columns]
    try:
        terms = [column.dictionary.cast(pa.string()) for column in encoded]
    except pa.ArrowInvalid:  # not UTF-8: the exact reader reports where
        return Quads(*[encode([])] * len(encoded)), np.empty(0, np.int64)
    codes = [column.indices for column in encoded]
    rows = cut.rows
    right = np.ones(len(rows), np.bool_)
    for code, some, form in zip(codes, terms, (NODE, PROPERTY, OBJECT, GRAPH), strict=False):
        plain = is_plain(some, form)
        if not pc.all(plain).as_py():
            right &= plain.to_numpy(zero_copy_only=False)[code.to_numpy()]
    if not right.all():
        rows, chosen = rows[right], pa.array(right)
        columns = [column_of(code.filter(chosen), some) for code, some in zip(codes, terms, strict=True)]
        codes, terms = [column.indices for column in columns], [column.dictionary for column in columns]
    columns = [pa.DictionaryArray.from_arrays(code, some) for code, some in zip(codes, terms, strict=True)]
    columns[2] = _respelled(columns[2], as_held)
    if len(columns) == 4:
        columns[3] = with_default_named(columns[3])
    return Quads(*columns), rows


def _respelled(column: Any, spell: Any) -> Any:
    """The column with terms as the engine spells them; two that were different may be the same then."""
    terms = spell(column.dictionary)
    return column if terms is column.dictionary else column_of(column.indices, terms)


def with_default_named(column: Any) -> Any:
    """A column of graphs with a name for the one that has none."""
    if column.dictionary.index("").as_py() < 0:
        return column
    return column_of(column.indices, pc.if_else(pc.equal(column.dictionary, ""), DEFAULT_GRAPH, column.dictionary))


# --- lines with other blanks ---------------------------------------------------------------------------------

_SPACED = (
    rf"^[ \t]*(?P<s>{PLAIN_IRI}|{PLAIN_BLANK})[ \t]*(?P<p>{PLAIN_IRI})[ \t]*"
    rf"(?P<o>{PLAIN_IRI}|{PLAIN_BLANK}|{PLAIN_STRING}(?:{PLAIN_LANGUAGE})?)(?P<d>\^\^{PLAIN_IRI})?[ \t]*\.[ \t]*\r?\n?$"
)


def read_fast(lines: Any) -> tuple[list[Any], Rows]:
    """The subjects, predicates and objects of the lines with plain terms, and which lines those are."""
    try:
        texts = lines.cast(pa.string())
    except pa.ArrowInvalid:  # not UTF-8, or too long: the exact reader reports where
        return [pa.array([], pa.string())] * 3, np.empty(0, np.int64)
    found = pc.extract_regex(texts, _SPACED)
    plain = np.flatnonzero(found.is_valid())
    subjects, predicates, objects, types = found.drop_null().flatten()
    objects = pc.binary_join_element_wise(objects, types, "")
    right = is_plain(objects, OBJECT)  # not so where something has a type that can have none
    if not pc.all(right, min_count=0).as_py():
        plain = plain[right.to_numpy(zero_copy_only=False)]
        subjects, predicates, objects = (a.filter(right) for a in (subjects, predicates, objects))
    return [subjects, predicates, as_held(objects)], plain


# --- all other lines -----------------------------------------------------------------------------------------

_PREFIX = re.compile(r"^Parser error (?:at|between) [^:]*: ")
_BLANKS = b" \t\r\n"
RELATIVE = "No scheme found in an absolute IRI"


def read_slowly(
    lines: Sequence[bytes], numbers: Rows, first_line: int, findings: Findings, *, graphs: bool = False
) -> tuple[list[_Terms], Rows]:
    """The triples of some lines, and the number of the line of each; errors are noted and their lines left out.

    Lines are numbered from 0 in a block that begins with `first_line`.
    """
    stripped = [line.strip(_BLANKS) for line in lines]
    some = [i for i, line in enumerate(stripped) if line and (line[:1] != b"#" or b"\r" in line)]
    together = _read_together([stripped[i] for i in some], graphs=graphs)
    if together is not None:
        return together, numbers[some]
    found: list[_Terms] = []
    at: list[int] = []
    for i in some:
        line = lines[i].removesuffix(b"\n").removesuffix(b"\r")
        triples = _read_line(line, int(numbers[i]) + first_line, findings, graphs=graphs)
        found += triples
        at += [int(numbers[i])] * len(triples)
    return found, np.array(at, np.int64)


def _read_together(lines: Sequence[bytes], *, graphs: bool) -> list[_Terms] | None:
    """The triples of lines with one triple each, or None if that is not so."""
    if not lines:
        return []
    try:
        quads = _parsed(b"\n".join(lines), graphs=graphs)
    except (SyntaxError, UnsupportedTermError):
        return None
    # A carriage return ends a line, too. Without any, no line has more than one triple, and none of these has none.
    return None if len(quads) != len(lines) or any(b"\r" in line for line in lines) else quads


def _read_line(line: bytes, number: int, findings: Findings, *, graphs: bool) -> list[_Terms]:
    """The triples of a line: several if carriage returns end lines, none if something is wrong."""
    text = decode(line, number, findings)
    if text is None:
        return []
    form = {"form": "N-Quads", "ending": ".nq"} if graphs else {"form": "N-Triples", "ending": ".nt"}
    graph = ", perhaps a graph," * graphs
    try:
        return _parsed(line, graphs=graphs)
    except SyntaxError as error:
        span = _span(error, text)
        why = _reason(error.msg, text, span, form["form"])
        findings.at(errors.BAD_TRIPLE, text, number, span, why=why, graph=graph, **form)
    except UnsupportedTermError as error:
        why, sign = error.args
        at = max(text.rfind(sign), 0)
        findings.at(errors.BAD_TRIPLE, text, number, Span(at, at + len(sign)), why=why, graph=graph, **form)
    return []


def _parsed(lines: bytes, *, graphs: bool) -> list[_Terms]:
    import pyoxigraph as rdf  # noqa: PLC0415

    form = rdf.RdfFormat.N_QUADS if graphs else rdf.RdfFormat.N_TRIPLES
    return [terms_of(quad, graphs=graphs) for quad in rdf.parse(lines, format=form)]


def _reason(message: str, line: str, span: Span, form: str) -> str:
    """Why a line is wrong, from what pyoxigraph says."""
    why = without_position(message)
    if form == "N-Triples":
        why = why.replace("Quads", "Triples")
    if why == RELATIVE:
        return f"`{line[span.start : span.end]}` is a relative IRI, and {form} has only absolute ones"
    if why.startswith("The subject of") and line[: span.start].rpartition("\r")[2].strip():
        return "nothing but a dot can follow the object"
    return in_our_words(why)


def without_position(message: str) -> str:
    """What pyoxigraph says is wrong, without where."""
    return _PREFIX.sub("", message)


def in_our_words(why: str) -> str:
    """What pyoxigraph says is wrong, as a part of a sentence."""
    if why.startswith("Unexpected end") or why == "no element found":
        return "it ends too early"
    if why.startswith("Unexpected text event"):
        return "there is text where only elements can be"
    return "it is not valid UTF-8" if "UTF-8" in why and "only" not in why.lower() else why[:1].lower() + why[1:]


def _span(error: SyntaxError, text: str) -> Span:
    """The characters of a line that an error is about; pyoxigraph counts from 1, and carriage returns as lines."""
    begin = 0
    for _ in range((error.lineno or 1) - 1):
        begin = text.find("\r", begin) + 1
    start = min(begin + max((error.offset or 1) - 1, 0), len(text))
    end = begin + (error.end_offset or 0) - 1 if error.end_lineno == error.lineno else len(text)
    return Span(start, max(end, start + 1))


def terms_of(quad: Quad, *, graphs: bool) -> _Terms:
    """The terms of a triple as the engine holds them."""
    import pyoxigraph as rdf  # noqa: PLC0415

    if isinstance(quad.subject, rdf.Triple):
        raise UnsupportedTermError(*TRIPLE_TERM)
    triple = str(quad.subject), str(quad.predicate), spelled(quad.object)
    if not graphs:
        return triple
    named = not isinstance(quad.graph_name, rdf.DefaultGraph)
    return *triple, str(quad.graph_name) if named else DEFAULT_GRAPH
