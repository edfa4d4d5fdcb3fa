"""RDF in all its formats: which one a file has, and the triples in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

import pyarrow as pa

from evermat.core import error_catalogue as errors
from evermat.io.blocks import BOM, blocks
from evermat.io.error_report import Findings, Skipped, fail
from evermat.io.formats.registry import AS_IT_IS, FORMATS, InputFile, RdfOptions
from evermat.io.locate import FileRef, file_ref
from evermat.io.open import failing, open_text, read_all
from evermat.io.rdf.error_recovery import NotXmlError
from evermat.io.rdf.json_ld import TooDeepError
from evermat.io.rdf.ntriples import LINES, in_our_words, read_block, without_position
from evermat.io.rdf.terms import Numbered, Prefixed, Quads, Triples, facts_of, triples_table
from evermat.io.rdf.turtle import FORMS, Careful, RelativeIriError, read_parsed
from evermat.io.schema import table_of
from evermat.language import UnsupportedTermError

SYNTAXES = ("nt", "nq", "ttl", "trig", "jsonld", "rdf", "ofn", "owx")
_ONTOLOGIES = {"ofn": "OWL functional syntax", "owx": "OWL/XML"}
_NAMED = {f".{syntax}": syntax for syntax in SYNTAXES if syntax != "rdf"}
_START = 1 << 16  # bytes that tell the format
_T = TypeVar("_T")
Labels: TypeAlias = Prefixed | Numbered  # what the blank nodes of a file are called


def read_triples(path: Path, options: RdfOptions = AS_IT_IS) -> Triples:
    """The triples of an RDF file, the names of graphs dropped; duplicates are kept.

    Raises:
        DataError: with everything that is wrong with the file, or if it cannot be read.
    """
    findings = Skipped(str(path)) if options.skip else Findings(str(path))
    with failing(path, "triples are"), open_text(rdf_ref(path)) as text:
        parts = read_rdf(text, path.name, options, findings, lambda quads: quads)
    problems = tuple(findings.first) if isinstance(findings, Skipped) else ()
    return Triples(triples_table(parts), findings.count, problems)


def rdf_ref(path: Path) -> FileRef:
    """A file that is RDF whatever its name says."""
    ref = file_ref(path)
    return ref if ref.is_rdf else ref._replace(format=FORMATS["rdf"])


def read_facts(stream: BinaryIO, file: InputFile) -> pa.Table:
    """The facts of a relation from a file in any format of RDF."""
    relation = file.io.relation
    parts = read_rdf(stream, file.ref.path.name, file.options, file.findings, lambda quads: facts_of(quads, relation))
    return table_of(relation, parts)


def read_rdf(
    stream: BinaryIO,
    name: str,
    options: RdfOptions,
    findings: Findings,
    keep: Callable[[Quads], _T],
    labels: Callable[[], Labels] | None = None,
    size: int = LINES,
) -> list[_T]:
    """What `keep` returns for the triples of a text, block by block; raises what is wrong, unless `findings` are `Skipped`.

    The name of the file says the format, as far as names do. A text in a format without lines is perhaps read twice; of
    others, at most `size` bytes are read at a time. `labels` say what blank nodes are called, if not as everywhere.
    """
    syntax = _syntax(stream, name)
    if syntax in _ONTOLOGIES:
        raise fail(errors.RDF_INPUT, path=findings.path, form=_ONTOLOGIES[syntax])
    with findings:
        if syntax not in ("nt", "nq"):
            return _read_parsed(stream, syntax, options, findings, keep, labels or (lambda: Numbered(options.blank)))
        kept: list[_T] = []
        called = labels() if labels is not None else Prefixed(options.blank)
        for block in blocks(stream, size=size):
            quads = read_block(block, findings, graphs=syntax == "nq")
            if not findings.problems:
                kept.append(keep(called.rename(quads)))
        return kept


def _read_parsed(
    stream: BinaryIO,
    syntax: str,
    options: RdfOptions,
    findings: Findings,
    keep: Callable[[Quads], _T],
    labels: Callable[[], Labels],
) -> list[_T]:
    """The same for formats without lines."""
    start = stream.tell()
    if stream.read(len(BOM)) == BOM:
        start += len(BOM)
    stream.seek(start)
    called = labels()
    try:
        return [keep(called.rename(quads)) for quads in read_parsed(stream, syntax, options.base)]
    except (SyntaxError, UnsupportedTermError, NotXmlError, TooDeepError, RelativeIriError) as error:
        wrong: Exception = error
    stream.seek(start)
    called = labels()
    careful = Careful(read_all(stream), syntax, options.base, findings)
    kept = [keep(called.rename(quads)) for quads in careful.read()]
    if not careful.wrong and isinstance(wrong, SyntaxError):  # what only the text as a whole shows: a name given twice
        why = " ".join(in_our_words(without_position(wrong.msg)).split())
        findings.whole(errors.BAD_RDF, form=FORMS[syntax], why=why)
    return kept


_COMMENTS = re.compile(rb"(?:\s+|#[^\r\n]*)*")
_FUNCTIONAL = re.compile(rb"(?:Prefix|Ontology)\s*\(")
_TURTLE = re.compile(rb"@prefix\b|@base\b|(?i:PREFIX\s|BASE\s*<)|<[^<>\s]*:[^<>\s]*>|_:|\[|$")
_BEFORE_ROOT = re.compile(  # never goes back: that would take forever where a document type is not complete
    rb"(?>\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*+(?:\[(?>\"[^\"]*\"|'[^']*'|<!--.*?-->|<\?.*?\?>|[^\]])*+\]\s*)?>)*+",
    re.DOTALL,
)
_ONTOLOGY_XML = re.compile(rb"<(?:[^\s<>/:]+:)?Ontology[\s>/]")


def sniff(start: bytes, name: str) -> str:
    """The format of a file: one of `SYNTAXES`.

    The ending says it, or for `.owl`, `.xml`, `.rdf` and endings that are not those of RDF the beginning of the text,
    decompressed: some ten thousand bytes are enough.
    """
    ending = Path(name.lower().removesuffix(".gz")).suffix
    if ending in _NAMED:
        return _NAMED[ending]
    start = start.removeprefix(BOM)
    comments = _COMMENTS.match(start)
    begin = comments.end() if comments else 0
    if _FUNCTIONAL.match(start, begin):
        return "ofn"
    before = _BEFORE_ROOT.match(start)
    root = before.end() if before else 0
    if _ONTOLOGY_XML.match(start, root):
        return "owx"
    if _TURTLE.match(start, begin) and (begin < len(start) or start.lstrip().startswith(b"#")):
        return "ttl"
    return "rdf"


def _syntax(stream: BinaryIO, name: str) -> str:
    """The format of a text, which is then read from where it was."""
    if Path(name.lower().removesuffix(".gz")).suffix in _NAMED:
        return sniff(b"", name)
    at = stream.tell()
    start = stream.read(_START)
    stream.seek(at)
    return sniff(start, name)
