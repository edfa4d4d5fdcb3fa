"""Writes triples as RDF.

Columns may hold what is not RDF: rules derive facts with literals as subjects, and users put any text into a column. Such
triples are left out and counted. N-Triples and N-Quads are put together from the terms as they are; the other formats come
from pyoxigraph.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.io.locate import file_ref
from evermat.io.rdf.terms import BLANK, DEFAULT_GRAPH, WITH_GRAPHS, with_terms
from evermat.io.schema import bytes_of
from evermat.io.term_columns import GRAPH, NODE, OBJECT, PROPERTY, is_plain
from evermat.language import RDF_TYPE, BadEscapeError, Io, Relation, unescape

_BATCH = 1 << 17  # triples that are written at a time
Mask = npt.NDArray[np.bool_]


class Written(NamedTuple):
    """How many triples were written to an RDF file.

    Attributes:
        written: The number of triples.
        left_out: The number of facts that are not RDF, or not in this format.
    """

    written: int
    left_out: int


def write_graph(sink: BinaryIO, triples: Iterable[pa.RecordBatch | pa.Table], syntax: str) -> Written:
    """Writes triples in the order in which they come; the syntax is `nt`, `nq`, `ttl`, `trig`, `jsonld` or `rdf`.

    They have columns of subjects, properties and objects, for formats with graphs perhaps of graphs, in N-Triples form.
    """
    writer = _Writer(syntax)
    texts = (text for batch in _batches(triples) if (text := writer.lines(batch)))
    if syntax in ("nt", "nq"):
        for text in texts:
            sink.write(text)
    else:
        _write_parsed(sink, texts, syntax)
    return Written(writer.written, writer.left_out)


def write_facts(sink: BinaryIO, io: Io, batches: Iterable[pa.RecordBatch], path: Path) -> int:
    """Writes the facts of a relation and returns how many are not RDF and left out."""
    return write_graph(sink, _triples_of(batches, io.relation), file_ref(path).syntax).left_out


def _triples_of(batches: Iterable[pa.RecordBatch], relation: Relation) -> Iterator[pa.RecordBatch]:
    """The facts of a relation as triples; it has columns for them."""
    names = ["s", "p", "o", "g"]
    for batch in batches:
        columns = list(batch.columns)
        if relation.arity <= 2:
            fixed = [relation.name] if relation.arity == 2 else [RDF_TYPE, relation.name]
            columns[1:1] = [pa.repeat(pa.scalar(term, pa.string()), batch.num_rows) for term in fixed]
        yield pa.RecordBatch.from_arrays(columns, names[: len(columns)])


def _batches(triples: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[pa.RecordBatch]:
    for part in triples:
        if isinstance(part, pa.Table):
            yield from part.to_batches(max_chunksize=_BATCH)
        else:
            yield part


class _Writer:
    """Makes lines of N-Triples or N-Quads of triples that a format can say, and counts them and the others."""

    def __init__(self, syntax: str) -> None:
        self._xml, self._graphs = syntax == "rdf", syntax in WITH_GRAPHS
        self.written = self.left_out = 0

    def lines(self, batch: pa.RecordBatch) -> bytes:
        columns = [_encoded(column) for column in batch.columns[: 4 if self._graphs else 3]]
        right = np.ones(batch.num_rows, np.bool_)
        for position, column in enumerate(columns):
            fits = self._fits(column.dictionary, position)
            if not fits.all():
                right &= fits[column.indices.to_numpy()]
        if not right.all():
            columns = [column.filter(pa.array(right)) for column in columns]
        count = int(right.sum())
        self.written += count
        self.left_out += batch.num_rows - count
        if not count:
            return b""
        if self._xml:
            columns = [with_terms(column, _with_names) for column in columns]
            columns[1] = with_terms(columns[1], _without_types)
        if len(columns) == 4:
            columns[3] = with_terms(columns[3], _ends_of_lines)
        texts = [pc.cast(column, pa.large_string()) for column in columns]
        end = pa.scalar(".\n" if len(texts) == 3 else "", pa.large_string())
        joined = pc.binary_join_element_wise(*texts[:3], end, pa.scalar(" ", pa.large_string()))
        if len(texts) == 4:  # the graph with the dot behind it
            joined = pc.binary_join_element_wise(joined, texts[3], pa.scalar("", pa.large_string()))
        return bytes_of(joined)

    def _fits(self, terms: Any, position: int) -> Mask:
        """Which terms can stand at a position of a triple in this format."""
        fits: Mask = is_plain(terms, (NODE, PROPERTY, OBJECT, GRAPH)[position]).to_numpy(zero_copy_only=False)
        odd = np.flatnonzero(~fits)
        if len(odd):
            fits = fits.copy()
            fits[odd] = _are_terms(terms.take(pa.array(odd)).to_pylist(), position)
        if self._xml and position == 1:
            fits &= np.fromiter(map(_is_element, terms.to_pylist()), np.bool_, len(terms))
        elif self._xml and position == 2:
            strange = pc.match_substring_regex(terms, r'^".*(?:\\[bfuU]|[\x00-\x1f\x{FFFE}\x{FFFF}])')
            for i in np.flatnonzero(strange.to_numpy(zero_copy_only=False)).tolist():
                fits[i] &= _is_xml(terms[i].as_py())
        return fits


def _encoded(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.string()))


def _ends_of_lines(graphs: Any) -> Any:
    """Graphs with a dot behind each, or only the dot for the default graph."""
    default = pc.is_in(graphs, pa.array(["", DEFAULT_GRAPH]))
    return pc.if_else(default, ".\n", pc.binary_join_element_wise(graphs, ".\n", " "))


# --- terms ---------------------------------------------------------------------------------------------------

_IRI_FORM = r'<[^<>"\s]*>'
_FORMS = (
    re.compile(rf"{_IRI_FORM}|_:[^\s<>\"#]+"),
    re.compile(_IRI_FORM),
    re.compile(
        rf"{_IRI_FORM}|_:[^\s<>\"#]+"
        rf'|"(?:[^"\\\r\n]|\\.)*"(?:@[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*|\^\^{_IRI_FORM})?'
    ),
    re.compile(rf'(?:{_IRI_FORM}|_:[^\s<>"#]+|"")?'),
)
_OTHERS = (("", " <a:b> <a:b> ."), ("<a:b> ", " <a:b> ."), ("<a:b> <a:b> ", " ."), ("<a:b> <a:b> <a:b> ", " ."))


def _are_terms(texts: Sequence[str], position: int) -> list[bool]:
    """Which texts are terms that can stand at a position of a triple.

    They have the outline of a term: nothing can hide behind its end. All else is for pyoxigraph to say.
    """
    before, after = _OTHERS[position]
    shaped = [_FORMS[position].fullmatch(text) is not None for text in texts]
    lines = [f"{before}{'' if text == DEFAULT_GRAPH and position == 3 else text}{after}" for text in texts]
    some = [line for line, right in zip(lines, shaped, strict=True) if right]
    if _are_lines("\n".join(some), len(some)):
        return shaped
    return [right and _are_lines(line, 1) for line, right in zip(lines, shaped, strict=True)]


def _are_lines(text: str, count: int) -> bool:
    """Whether a text is so many quads."""
    import pyoxigraph as rdf  # noqa: PLC0415

    try:
        return sum(1 for _ in rdf.parse(text.encode(), format=rdf.RdfFormat.N_QUADS)) == count
    except (SyntaxError, UnicodeEncodeError):
        return False


# --- what RDF/XML can say ------------------------------------------------------------------------------------

_NAME_START = (
    r"A-Z_a-z\xC0-\xD6\xD8-\xF6\xF8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D\u2070-\u218F\u2C00-\u2FEF"
    r"\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_LOCAL_NAME = re.compile(rf"[{_NAME_START}][{_NAME_START}\-.0-9\xB7\u0300-\u036F\u203F\u2040]*>$")
_RDF = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RESERVED = {
    f"{_RDF}{name}>"
    for name in (
        *("RDF", "ID", "about", "parseType", "resource", "nodeID", "datatype", "bagID", "aboutEach", "aboutEachPrefix"),
        *("li", "Description"),
    )
}
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def _is_element(iri: str) -> bool:
    """Whether a property can be the name of an XML element."""
    return iri not in _RESERVED and _LOCAL_NAME.search(iri) is not None


def _is_xml(literal: str) -> bool:
    """Whether an XML document can hold all characters of a literal."""
    try:
        return _NOT_XML.search(unescape(literal)) is None
    except BadEscapeError:
        return False


def _with_names(terms: Any) -> Any:
    """The terms with labels of blank nodes that are names in XML: those may begin with a digit here."""
    return pc.replace_substring_regex(terms, f"^{BLANK}", f"{BLANK}b")


# --- formats without lines -----------------------------------------------------------------------------------


def _write_parsed(sink: BinaryIO, texts: Iterator[bytes], syntax: str) -> None:
    import pyoxigraph as rdf  # noqa: PLC0415

    first = next(texts, b"")
    quads = (quad for text in chain([first], texts) for quad in rdf.parse(text, format=rdf.RdfFormat.N_QUADS))
    target: Any = _Mended(sink) if syntax == "rdf" else sink
    rdf.serialize(quads, target, format=rdf.RdfFormat.from_extension(syntax), prefixes=prefixes_of(first))
    if isinstance(target, _Mended):
        target.close()


# pyoxigraph makes an element of the class of a node, also where the class has no name in XML, so it does not get to see `rdf:type`.
_STAND_IN = "type-5c1e7a0f"


def _without_types(properties: Any) -> Any:
    """The properties with another in the place of `rdf:type`."""
    return pc.replace_substring_regex(properties, f"^{re.escape(RDF_TYPE)}$", f"{RDF_TYPE[:-5]}{_STAND_IN}>")


class _Mended:
    """A sink for XML: `rdf:type` is put back, and a carriage return that stands for itself would be read as a newline.

    What follows the last end of a tag waits for the rest, so that no tag is seen in parts.
    """

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._waiting = b""

    def write(self, data: bytes) -> int:
        text = self._waiting + data
        end = text.rfind(b">") + 1
        self._waiting = text[end:]
        self._put(text[:end])
        return len(data)

    def flush(self) -> None:
        """Nothing is complete before the last tag is."""

    def close(self) -> None:
        self._put(self._waiting)

    def _put(self, text: bytes) -> None:
        for begin in (b"<rdf:", b"</rdf:"):
            text = text.replace(begin + _STAND_IN.encode(), begin + b"type")
        self._sink.write(text.replace(b"\r", b"&#13;"))


_KNOWN = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://www.w3.org/2000/01/rdf-schema#": "rdfs",
    "http://www.w3.org/2002/07/owl#": "owl",
    "http://www.w3.org/2001/XMLSchema#": "xsd",
    "http://www.w3.org/2004/02/skos/core#": "skos",
    "http://xmlns.com/foaf/0.1/": "foaf",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/dc/terms/": "dcterms",
    "http://schema.org/": "schema",
    "https://schema.org/": "schema",
}
_PREFIXES = 20  # that are declared at most
_LOOKED_AT = 1 << 20  # bytes of lines in which namespaces are looked for
_NAMESPACE = re.compile(rb'<([^<>"\s]*[/#])[A-Za-z_][\w\-]*>(?=[ \n])')
_FREQUENT = 50  # a namespace is worth a prefix if one in so many IRIs is from it


def prefixes_of(lines: bytes) -> dict[str, str]:
    """Prefixes for the namespaces that many IRIs of some lines are from."""
    counted = Counter(_NAMESPACE.findall(lines[:_LOOKED_AT]))
    least = sum(counted.values()) / _FREQUENT
    common = [(-count, name.decode(errors="replace")) for name, count in counted.items() if count >= least]
    found: dict[str, str] = {}
    for _, namespace in sorted(common)[:_PREFIXES]:
        name = _KNOWN.get(namespace, "")
        if not name or name in found:
            name = f"ns{sum(prefix.startswith('ns') for prefix in found) + 1}"
        found[name] = namespace
    return found
