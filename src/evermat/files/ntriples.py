"""Triples in N-Triples, each term as the engine holds it: one term, one spelling (see `program.terms`).

Almost all lines of real files have a plain form: terms that are valid for sure and spelled as the engine spells them.
One regular expression takes those apart, block by block; it takes less than the grammar does, never more. All other
lines are read by pyoxigraph, which knows the whole grammar, or says what is wrong with them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.errors import BAD_TRIPLE
from evermat.files.blocks import BLOCK, Block, blocks, read_blocks
from evermat.files.findings import Findings
from evermat.files.layout import arrow_schema
from evermat.files.records import decode
from evermat.program.model import Relation
from evermat.program.terms import XSD_STRING, literal_term
from evermat.source import Span

if TYPE_CHECKING:
    from pyoxigraph import Quad

_Triple = tuple[str, str, str]


def read_ntriples(stream: BinaryIO, relation: Relation, findings: Findings, size: int = BLOCK) -> pa.Table:
    """The triples of a text; `relation` has three columns of terms or symbols."""
    text = blocks(stream, size=size)
    table = read_blocks(text, lambda block: read_block(block, relation, findings), relation, findings)
    findings.raise_if_any()
    return table


def read_block(block: Block, relation: Relation, findings: Findings) -> pa.Table:
    """The triples of a block, in their order; errors are noted."""
    lines = _lines(block.data)
    columns, plain = read_fast(lines)
    if len(plain) < len(lines):
        odd = np.setdiff1d(np.arange(len(lines)), plain, assume_unique=True)
        texts = lines.take(pa.array(odd)).to_pylist()
        found, at = read_slowly(texts, odd, block.first_line, findings)
        order = pa.array(np.argsort(np.concatenate([plain, at]), kind="stable"))
        columns = [
            pa.concat_arrays([column, pa.array(values, pa.string())]).take(order)
            for column, values in zip(columns, list(zip(*found, strict=True)) or [()] * 3, strict=True)
        ]
    return pa.Table.from_arrays(columns, schema=arrow_schema(relation))


def _lines(data: bytes) -> Any:
    """The lines of a block with their ends, as an Arrow array of bytes."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
    if not data.endswith(b"\n"):
        ends = np.append(ends, len(data))
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


# --- plain lines ---------------------------------------------------------------------------------------------

# Part of RFC 3987: what every reader takes for a valid absolute IRI. There is only one way to match each text, which
# is what lets RE2 find the groups in one pass.
_LETTER = r"A-Za-z0-9\-._~!$&'()*+,;=:@\x{A0}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}"
_PERCENT = "%[0-9A-Fa-f][0-9A-Fa-f]"
_PATH = rf"(?:[{_LETTER}/]|{_PERCENT})*"
_QUERY = rf"(?:[{_LETTER}/?]|{_PERCENT})*"
_SERVER = rf"//[A-Za-z0-9.\-]+(?::[0-9]+)?(?:/{_PATH})?"
_IRI = rf"<[A-Za-z][A-Za-z0-9+.\-]*:(?:{_SERVER}|[{_LETTER}]{_PATH})(?:\?{_QUERY})?(?:#{_QUERY})?>"
_BLANK = r"_:[A-Za-z0-9_][A-Za-z0-9_\-]*"
# What the engine escapes is escaped, and nothing else.
_STRING = r'"(?:[^"\\\x00-\x1f\x7f]|\\[tbnrf"\\])*"'
_LANGUAGE = "@[A-Za-z][A-Za-z][A-Za-z]?(?:-[A-Za-z][A-Za-z])?"
_PLAIN = (
    rf"^[ \t]*(?P<s>{_IRI}|{_BLANK})[ \t]*(?P<p>{_IRI})[ \t]*"
    rf"(?P<o>{_IRI}|{_BLANK}|{_STRING}(?:{_LANGUAGE})?)(?:\^\^(?P<d>{_IRI}))?[ \t]*\.[ \t]*\r?\n?$"
)
_DROPPED = f"<{XSD_STRING}>"
_RESERVED = [f"<http://www.w3.org/1999/02/22-rdf-syntax-ns#{name}>" for name in ("langString", "dirLangString")]


def read_fast(lines: Any) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """The subjects, predicates and objects of the lines in plain form, and which lines those are."""
    try:
        texts = lines.cast(pa.string())
    except pa.ArrowInvalid:  # not UTF-8, or too long: somebody else will say where
        return [pa.array([], pa.string())] * 3, np.empty(0, np.int64)
    found = pc.extract_regex(texts, _PLAIN)
    plain = np.arange(len(lines))
    if found.null_count:
        plain = np.flatnonzero(found.is_valid())
        found = found.drop_null()
    subjects, predicates, objects, types = found.flatten()
    if _has_text(types):
        typed = pc.not_equal(types, "")
        # Only a string without a language has a type, and not one that says that it has a language.
        right = pc.and_(pc.ends_with(objects, '"'), pc.invert(pc.is_in(types, pa.array(_RESERVED))))
        fits = pc.or_(pc.invert(typed), right)
        if not pc.all(fits).as_py():
            plain = plain[fits.to_numpy(zero_copy_only=False)]
            subjects, predicates, objects, types = (a.filter(fits) for a in (subjects, predicates, objects, types))
        suffix = pc.binary_join_element_wise("^^", types, "")
        suffix = pc.if_else(pc.is_in(types, pa.array(["", _DROPPED])), "", suffix)
        objects = pc.binary_join_element_wise(objects, suffix, "")
    return [subjects, predicates, _with_small_languages(objects)], plain


def _has_text(array: Any) -> bool:
    """Whether a value of an array of texts is not empty."""
    return bool(pc.sum(pc.binary_length(array), min_count=0).as_py())


def _with_small_languages(objects: Any) -> Any:
    """The objects with the tags of languages in lower case."""
    tagged = pc.invert(pc.or_(pc.ends_with(objects, '"'), pc.ends_with(objects, ">")))
    rows = np.flatnonzero(tagged)
    if not len(rows):
        return objects
    some = objects.take(pa.array(rows))
    large = pc.match_substring_regex(some, '^".*"@[a-z-]*[A-Z]')
    if not pc.any(large).as_py():
        return objects
    changed = [_with_small_language(text) for text in some.filter(large).to_pylist()]
    mask = np.zeros(len(objects), np.bool_)
    mask[rows[large.to_numpy(zero_copy_only=False)]] = True
    return pc.replace_with_mask(objects, pa.array(mask), pa.array(changed, pa.string()))


def _with_small_language(literal: str) -> str:
    text, _, language = literal.rpartition("@")
    return f"{text}@{language.lower()}"


# --- all other lines -----------------------------------------------------------------------------------------

_PREFIX = re.compile(r"^Parser error (?:at|between) [^:]*: ")
_BLANKS = b" \t\r\n"


def read_slowly(
    lines: Sequence[bytes], numbers: npt.NDArray[np.int64], first_line: int, findings: Findings
) -> tuple[list[_Triple], npt.NDArray[np.int64]]:
    """The triples of some lines, and the number of the line of each; errors are noted and their lines left out.

    Lines are numbered from 0 in a block that begins with `first_line`.
    """
    stripped = [line.strip(_BLANKS) for line in lines]
    some = [i for i, line in enumerate(stripped) if line and (line[:1] != b"#" or b"\r" in line)]
    together = _read_together([stripped[i] for i in some])
    if together is not None:
        return together, numbers[some]
    found: list[_Triple] = []
    at: list[int] = []
    for i in some:
        line = lines[i].removesuffix(b"\n").removesuffix(b"\r")
        triples = _read_line(line, int(numbers[i]) + first_line, findings)
        found += triples
        at += [int(numbers[i])] * len(triples)
    return found, np.array(at, np.int64)


def _read_together(lines: Sequence[bytes]) -> list[_Triple] | None:
    """The triples of lines with one triple each, or None if that is not so."""
    if not lines:
        return []
    import pyoxigraph as rdf  # noqa: PLC0415

    try:
        quads = list(rdf.parse(b"\n".join(lines), format=rdf.RdfFormat.N_TRIPLES))
    except SyntaxError:
        return None
    # A carriage return ends a line, too. Without any, no line has more than one triple, and none of these has none.
    if len(quads) != len(lines) or any(b"\r" in line for line in lines):
        return None
    try:
        return [_terms(quad) for quad in quads]
    except _UnsupportedError:
        return None


def _read_line(line: bytes, number: int, findings: Findings) -> list[_Triple]:
    """The triples of a line: several if carriage returns end lines, none if something is wrong."""
    import pyoxigraph as rdf  # noqa: PLC0415

    text = decode(line, number, findings)
    if text is None:
        return []
    try:
        return [_terms(quad) for quad in rdf.parse(line, format=rdf.RdfFormat.N_TRIPLES)]
    except SyntaxError as error:
        span = _span(error, text)
        findings.at(BAD_TRIPLE, text, number, span, why=_reason(error.msg, text[: span.start]))
    except _UnsupportedError as error:
        why, sign = error.args
        at = max(text.rfind(sign), 0)
        findings.at(BAD_TRIPLE, text, number, Span(at, at + len(sign)), why=why)
    return []


def _reason(message: str, before: str) -> str:
    """Why a line is wrong, from what pyoxigraph says; `before` is the line up to there."""
    why = _PREFIX.sub("", message).replace("Quads", "Triples")
    if why.startswith("Unexpected end"):
        return "it ends too early"
    if why.startswith("The subject of") and before.rpartition("\r")[2].strip():
        return "nothing but a dot can follow the object"
    return why[:1].lower() + why[1:]


def _span(error: SyntaxError, text: str) -> Span:
    """The characters of a line that an error is about; pyoxigraph counts from 1, and carriage returns as lines."""
    begin = 0
    for _ in range((error.lineno or 1) - 1):
        begin = text.find("\r", begin) + 1
    start = min(begin + max((error.offset or 1) - 1, 0), len(text))
    end = begin + (error.end_offset or 0) - 1 if error.end_lineno == error.lineno else len(text)
    return Span(start, max(end, start + 1))


class _UnsupportedError(Exception):
    """Something that pyoxigraph reads and Evermat does not; `args` are what, and the signs that begin it."""


def _terms(quad: Quad) -> _Triple:
    """The terms of a triple as the engine holds them."""
    import pyoxigraph as rdf  # noqa: PLC0415

    subject, object_ = quad.subject, quad.object
    if isinstance(object_, rdf.Literal):
        if object_.direction is not None:
            raise _UnsupportedError("texts with a direction (RDF 1.2) are not supported", "--")
        spelled = literal_term(object_.value, language=object_.language or "", datatype=object_.datatype.value)
    elif isinstance(object_, rdf.Triple) or isinstance(subject, rdf.Triple):
        raise _UnsupportedError("triples as terms (RDF 1.2) are not supported", "<<")
    else:
        spelled = str(object_)
    return str(subject), str(quad.predicate), spelled
