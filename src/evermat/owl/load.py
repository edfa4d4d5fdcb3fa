"""Reads ontologies and what they import: from the files that are given, and from beside them; never from the network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from evermat.core import DataError, Problem, Source, Span, check_input, named_at, open_input
from evermat.core import error_catalogue as errors
from evermat.owl.ontology.graph import Triple
from evermat.owl.syntax.tree import NotAnOntologyError, failed
from evermat.owl.vocabulary import BUILT_IN, TYPE, is_blank, owl

CATALOG = "catalog-v001.xml"
_ENDINGS = (".owl", ".ttl", ".rdf", ".ofn", ".owx", ".jsonld")
_START = 1 << 16  # bytes that tell the format
_SHOWN = 10  # malformed statements of one file whose places are kept
_OTHERS = (
    (re.compile(r"\s*(?:Prefix|Ontology):"), "it is in Manchester syntax"),
    (re.compile(r"\s*format-version:"), "it is in OBO format"),
)
_BUILT_IN = {namespace.rstrip("#") for namespace in BUILT_IN}
_ONTOLOGY, _VERSION, _IMPORTS = owl("Ontology"), owl("versionIRI"), owl("imports")
_FORMS = {"ofn": "OWL functional syntax", "owx": "OWL/XML"}


@dataclass
class Loaded:
    """The triples of ontologies, their prefixes in the order in which they were declared, their files, and missing imports.

    Malformed statements that were left out are counted by file; the first of each file are among the problems.
    """

    triples: list[Triple] = field(default_factory=list)
    prefixes: list[tuple[str, str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


@dataclass
class _File:
    path: Path
    triples: list[Triple]
    prefixes: list[tuple[str, str]]
    skipped: int = 0
    problems: Sequence[Problem] = ()

    @property
    def names(self) -> set[str]:
        """The IRIs of the ontology and of its version."""
        own = {s for s, p, o in self.triples if p == TYPE and o == _ONTOLOGY}
        versions = {o for s, p, o in self.triples if p == _VERSION and s in own}
        return {_bare(name) for name in own | versions}

    @property
    def imports(self) -> list[str]:
        return list(dict.fromkeys(o[1:-1] for _, p, o in self.triples if p == _IMPORTS))


class _Missing(NamedTuple):
    """An import that was not found, the first file that has it, and the names that were looked for."""

    iri: str
    path: Path
    tried: Sequence[str]


def load(paths: Sequence[Path], *, base: str | None, imports: str, blank: str, skip: bool = False) -> Loaded:
    """All that ontologies say, each file once; with `skip` without malformed statements.

    Raises:
        DataError: a file cannot be read or is malformed, or something imported is missing.
    """
    given: dict[Path, _File] = {}
    for path in map(Path, paths):
        given.setdefault(_identity(path), _read(path, base, skip=skip))
    loaded = Loaded()
    numbers = count(1)
    missing: dict[str, _Missing] = {}
    waiting = list(given.values())
    seen = set(given)
    names = _BUILT_IN.union(*(file.names for file in waiting))
    places = _Places()
    for file in waiting:  # grows on the way
        loaded.files.append(file.path.name)
        loaded.prefixes += file.prefixes
        loaded.triples += _relabelled(file.triples, numbers, blank)
        loaded.problems += map(_left_out, file.problems)
        if file.skipped:
            loaded.skipped[str(file.path)] = file.skipped
        for iri in file.imports:
            if iri.rstrip("#") in names:
                continue
            with named_at(Source(str(file.path), ""), None):
                found, tried = places.beside(iri, file.path.parent)
            if found is None:
                missing.setdefault(iri.rstrip("#"), _Missing(iri, file.path, tried))
            elif (identity := _identity(found)) not in seen:
                seen.add(identity)
                waiting.append(_read(found, base, skip=skip))
                names |= waiting[-1].names
    absent = [import_ for name, import_ in missing.items() if name not in names]  # another file may have brought it
    if absent and imports != "ignore":
        raise DataError(map(_problem, absent))
    loaded.missing += [import_.iri for import_ in absent]
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


def _left_out(problem: Problem) -> Problem:
    """What is wrong with a statement, as a warning that it is left out."""
    return Problem(errors.LEFT_OUT, {"why": problem.message}, problem.source, problem.span, problem.note)


def _read(path: Path, base: str | None, *, skip: bool) -> _File:
    from evermat.io import RdfOptions, failing, open_text, prefixes_in, rdf_ref, read_triples, sniff  # noqa: PLC0415

    with failing(path, "an ontology is"), open_text(rdf_ref(path)) as stream:
        data = stream.read()
    start = data[:_START].decode(errors="replace").removeprefix("\ufeff")
    for other, why in _OTHERS:
        if other.match(start):
            raise DataError(Problem(errors.ONTOLOGY_FORMAT, {"path": path, "why": why}))
    syntax = sniff(data[:_START], path.name)
    if syntax in _FORMS:
        return _read_structure(path, data, syntax, base, skip=skip)
    read = read_triples(path, RdfOptions(base=base, skip=skip))
    table = read.table
    columns = [table.column(name).to_pylist() for name in "spo"]
    return _File(path, list(zip(*columns, strict=True)), prefixes_in(data, syntax), read.skipped, read.problems)


def _read_structure(path: Path, data: bytes, syntax: str, base: str | None, *, skip: bool) -> _File:
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
    malformed: list[NotAnOntologyError] = []
    noted = malformed.append if skip else None
    try:
        document = read_functional(text, noted) if syntax == "ofn" else read_owl_xml(data, text, base, noted)
        triples = triples_of(document, noted)
        malformed.sort(key=lambda error: error.args[1])
        problems = [failed(error, str(path), text, _FORMS[syntax]).problems[0] for error in malformed[:_SHOWN]]
        return _File(path, triples, document.prefixes, len(malformed), problems)
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


class _Places:
    """Where imported ontologies are; each catalogue is read once, and each ontology looked for once in each folder."""

    def __init__(self) -> None:
        self._catalogs: dict[Path, dict[str, list[str]]] = {}
        self._found: dict[tuple[str, Path], tuple[Path | None, list[str]]] = {}

    def beside(self, iri: str, folder: Path) -> tuple[Path | None, list[str]]:
        """The file of an ontology that a file of a folder imports, and the names that were looked for."""
        if (iri, folder) not in self._found:
            self._found[iri, folder] = _beside(iri, folder, self._catalog(folder).get(iri.rstrip("#"), []))
        return self._found[iri, folder]

    def _catalog(self, folder: Path) -> dict[str, list[str]]:
        if folder not in self._catalogs:
            places: dict[str, list[str]] = {}
            self._catalogs[folder] = places
            if _is_file(folder / CATALOG):
                for name, place in _catalog(folder / CATALOG):
                    places.setdefault(name.rstrip("#"), []).append(place)
        return self._catalogs[folder]


def _beside(iri: str, folder: Path, places: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The file of an imported ontology in a folder, whose catalogue names some places, and the names that were looked for."""
    tried: list[str] = []
    for place in places:
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
    check_input(path)
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

    from evermat.io import XML_ERRORS, failing, xml_error  # noqa: PLC0415

    found: list[tuple[str, str]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(" ")[2] == "uri" and {"name", "uri"} <= attributes.keys():
            found.append((attributes["name"], attributes["uri"]))

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = start
    with failing(path, "the places of imports are"), open_input(path) as file:
        data = file.read()
    try:
        parser.Parse(data, True)
    except XML_ERRORS as error:
        why, line, column = xml_error(error)
        text = data.decode(errors="replace")
        at = sum(len(line) for line in text.splitlines(keepends=True)[: line - 1]) + column - 1
        raise DataError(Problem(errors.BAD_CATALOG, {"why": why}, Source(str(path), text), Span(at, at + 1))) from None
    yield from found


def _problem(missing: _Missing) -> Problem:
    iri, importing, tried = missing
    names = f", and as {', '.join(f'`{name}`' for name in tried)}" if tried else ""
    where = f"among the ontologies given, in `{CATALOG}` beside it{names}"
    help_ = "give its file with `--ontology FILE`, or go on without it: `--ignore-imports`"
    return Problem(errors.MISSING_IMPORT, {"path": importing, "iri": iri, "places": where}, help=help_)
