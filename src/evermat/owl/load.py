"""Reads ontologies and what they import: from the files that are given, and from beside them; never from the network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import unquote, urlsplit

from evermat.core import DataError, Problem, Source, Span
from evermat.core import error_catalogue as errors
from evermat.owl.ontology.graph import Triple
from evermat.owl.syntax.tree import NotAnOntologyError, failed
from evermat.owl.vocabulary import BUILT_IN, TYPE, is_blank, owl

CATALOG = "catalog-v001.xml"
_ENDINGS = (".owl", ".ttl", ".rdf", ".ofn", ".owx")
_START = 1 << 16  # characters in which prefixes are looked for
_TURTLE_PREFIX = re.compile(r"^\s*@?prefix\s+([\w.-]*):\s*<([^<>]*)>", re.IGNORECASE | re.MULTILINE)
_XML_PREFIX = re.compile(r"""\bxmlns(?::([\w.-]+))?\s*=\s*["']([^"']*)["']""")
_ENTITY = re.compile(r"""<!ENTITY\s+([\w.-]+)\s+["']([^"']*)["']\s*>""")
_OTHERS = (
    (re.compile(r"\s*(?:Prefix|Ontology):"), "it is in Manchester syntax"),
    (re.compile(r"\s*format-version:"), "it is in OBO format"),
)
_BUILT_IN = {namespace.rstrip("#") for namespace in BUILT_IN}
_FORMS = {"ofn": "OWL functional syntax", "owx": "OWL/XML"}


@dataclass
class Loaded:
    """The triples of ontologies, their prefixes in the order in which they were declared, their files, and missing imports."""

    triples: list[Triple] = field(default_factory=list)
    prefixes: list[tuple[str, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@dataclass
class _File:
    path: Path
    triples: list[Triple]
    prefixes: list[tuple[str, str]]

    @property
    def names(self) -> set[str]:
        """The IRIs of the ontology and of its version."""
        own = {s for s, p, o in self.triples if p == TYPE and o == owl("Ontology")}
        versions = {o for s, p, o in self.triples if p == owl("versionIRI") and s in own}
        return {_bare(name) for name in own | versions}

    @property
    def imports(self) -> list[str]:
        return list(dict.fromkeys(o[1:-1] for _, p, o in self.triples if p == owl("imports")))


def load(paths: Sequence[Path], *, base: str | None, imports: str, blank: str) -> Loaded:
    """All that ontologies say, each file once.

    Raises:
        DataError: a file cannot be read or is malformed, or something imported is missing.
    """
    given: dict[Path, _File] = {}
    for path in map(Path, paths):
        given.setdefault(_identity(path), _read(path, base))
    loaded = Loaded()
    numbers = count(1)
    problems: list[Problem] = []
    waiting = list(given.values())
    seen = set(given)
    for file in waiting:  # grows on the way
        loaded.files.append(file.path.name)
        loaded.prefixes += file.prefixes
        loaded.triples += _relabelled(file.triples, numbers, blank)
        for iri in file.imports:
            if iri.rstrip("#") in _BUILT_IN or any(_bare(f"<{iri}>") in other.names for other in waiting):
                continue
            found, tried = _beside(iri, file.path)
            if found is None and imports == "ignore":
                loaded.missing.append(iri)
            elif found is None:
                problems.append(_missing(iri, file.path, tried))
            elif _identity(found) not in seen:
                seen.add(_identity(found))
                waiting.append(_read(found, base))
    if problems:
        raise DataError(problems)
    return loaded


def _relabelled(triples: Sequence[Triple], numbers: Iterator[int], blank: str) -> Iterator[Triple]:
    """The triples of a file with its blank nodes numbered in the order of their appearance, on from those of other files."""
    labels: dict[str, str] = {}
    for triple in triples:
        for term in triple:
            if is_blank(term) and term not in labels:
                labels[term] = f"_:{blank}{next(numbers)}"
        subject, property_, value = triple
        yield labels.get(subject, subject), property_, labels.get(value, value)


def _read(path: Path, base: str | None) -> _File:
    from evermat.io import RdfOptions, failing, open_text, rdf_ref, read_triples, sniff  # noqa: PLC0415

    with failing(path, "an ontology is"), open_text(rdf_ref(path)) as stream:
        data = stream.read()
    start = data[:_START].decode(errors="replace").removeprefix("\ufeff")
    for other, why in _OTHERS:
        if other.match(start):
            raise DataError(Problem(errors.ONTOLOGY_FORMAT, {"path": path, "why": why}))
    syntax = sniff(data[:_START], path.name)
    if syntax in _FORMS:
        return _read_structure(path, data, syntax, base)
    table = read_triples(path, RdfOptions(base=base)).table
    columns = [table.column(name).to_pylist() for name in "spo"]
    declared = _TURTLE_PREFIX if syntax in ("ttl", "trig") else _XML_PREFIX
    entities = dict(_ENTITY.findall(start))
    prefixes = [
        (name, re.sub(r"&([\w.-]+);", lambda m: entities.get(m[1], m[0]), iri)) for name, iri in declared.findall(start)
    ]
    return _File(path, list(zip(*columns, strict=True)), prefixes)


def _read_structure(path: Path, data: bytes, syntax: str, base: str | None) -> _File:
    from evermat.owl.syntax.functional import read_functional  # noqa: PLC0415
    from evermat.owl.syntax.owlxml import read_owl_xml  # noqa: PLC0415
    from evermat.owl.syntax.to_triples import triples_of  # noqa: PLC0415

    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        if syntax == "ofn":  # XML may be in other encodings
            before = data[: error.start].decode()
            wrong = NotAnOntologyError("this is not valid UTF-8", len(before))
            raise failed(wrong, str(path), data.decode(errors="replace"), _FORMS[syntax]) from None
        text = data.decode(errors="replace")
    try:
        document = read_functional(text) if syntax == "ofn" else read_owl_xml(data, text, base)
        return _File(path, triples_of(document), document.prefixes)
    except NotAnOntologyError as error:
        raise failed(error, str(path), text, _FORMS[syntax]) from None


def _bare(term: str) -> str:
    """An IRI as ontologies are called: a `#` at its end says nothing."""
    return term[1:-1].rstrip("#")


def _identity(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _beside(iri: str, importing: Path) -> tuple[Path | None, list[str]]:
    """The file of an imported ontology beside the one that imports it, and the names that were looked for."""
    folder = importing.parent
    tried: list[str] = []
    catalog = folder / CATALOG
    if _is_file(catalog):
        for name, place in _catalog(catalog):
            if name.rstrip("#") == iri.rstrip("#"):
                found = _in_catalog(place, folder)
                if found is not None and _is_file(found):
                    return found, tried
                tried.append(str(found or place))
    last = unquote(urlsplit(iri.rstrip("#/")).path.rpartition("/")[2])
    if last and not set(last) & set("/\\\0") and last not in (".", ".."):
        stem, point, ending = last.rpartition(".")
        stem = stem if f"{point}{ending}" in _ENDINGS else last
        for name in dict.fromkeys([last, *(f"{stem}{ending}" for ending in _ENDINGS)]):
            path = folder / name
            if _is_file(path):
                return path, tried
            tried.append(str(path))
    return None, tried


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # the name is too long, or not one at all
        return False


def _in_catalog(place: str, folder: Path) -> Path | None:
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme else folder / unquote(parts.path)


def _catalog(path: Path) -> Iterator[tuple[str, str]]:
    """The names of ontologies and their places, as a catalogue beside them says."""
    from xml.parsers import expat  # noqa: PLC0415

    from evermat.io import failing  # noqa: PLC0415

    found: list[tuple[str, str]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(" ")[2] == "uri" and {"name", "uri"} <= attributes.keys():
            found.append((attributes["name"], attributes["uri"]))

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = start
    with failing(path, "the places of imports are"):
        data = path.read_bytes()
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        text = data.decode(errors="replace")
        at = sum(len(line) for line in text.splitlines(keepends=True)[: error.lineno - 1]) + error.offset
        details = {"why": expat.ErrorString(error.code)}
        raise DataError(Problem(errors.BAD_CATALOG, details, Source(str(path), text), Span(at, at + 1))) from None
    yield from found


def _missing(iri: str, importing: Path, tried: Sequence[str]) -> Problem:
    names = f", and as {', '.join(f'`{name}`' for name in tried)}" if tried else ""
    where = f"among the ontologies given, in `{CATALOG}` beside it{names}"
    help_ = "give its file with `--ontology FILE`, or go on without it: `--ignore-imports`"
    return Problem(errors.MISSING_IMPORT, {"path": importing, "iri": iri, "places": where}, help=help_)
