"""OWL/XML: the same ontologies as in functional syntax, with elements for parentheses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

from evermat.owl.syntax.functional import literal
from evermat.owl.syntax.to_triples import Skip
from evermat.owl.syntax.tree import DEEPEST, Document, Leaf, NotAnOntologyError, Tree, checked, expanded
from evermat.owl.vocabulary import OWL

_XML = "http://www.w3.org/XML/1998/namespace "
_ENTITIES = frozenset({"Class", "Datatype", "ObjectProperty", "DataProperty", "AnnotationProperty", "NamedIndividual"})
_TEXTS = frozenset({"Literal", "IRI", "AbbreviatedIRI", "Import"})
_NAMESPACES = {"xml": _XML.strip()}


def read_owl_xml(data: bytes, text: str, base: str | None, skip: Skip | None = None) -> Document:
    """The ontology of a text; `text` is the same as `data`, for places in it. With `skip`, malformed elements below the root are left out."""
    from xml.parsers import expat  # noqa: PLC0415

    from evermat.io import XML_ERRORS, xml_error  # noqa: PLC0415

    reading = _Reading(base) if skip is None else _Skipping(base, skip)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.characters
    starts = [0]
    while (at := text.find("\n", starts[-1])) >= 0:
        starts.append(at + 1)
    reading.place = lambda: starts[min(parser.CurrentLineNumber, len(starts)) - 1] + parser.CurrentColumnNumber
    try:
        parser.Parse(data, True)
    except XML_ERRORS as error:
        why, line, column = xml_error(error)
        raise NotAnOntologyError(why, starts[min(line, len(starts)) - 1] + column - 1) from None
    return reading.document()


class _Reading:
    """Takes the elements of a text."""

    def __init__(self, base: str | None) -> None:
        self._base = base or ""
        self._prefixes: dict[str, str] = {}
        self._iris: list[str] = []
        self._opened: list[tuple[Tree, dict[str, str], str]] = []  # elements, their attributes, and their base
        self._text: list[str] = []
        self._statements: list[Tree] = []
        self.place: Any = None

    def document(self) -> Document:
        return Document(self._iris, list(self._prefixes.items()), self._statements)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, local = name.rpartition(" ")
        at = self.place()
        if namespace not in (OWL, OWL.rstrip("#")):
            raise NotAnOntologyError(f"`{local}` is not an element of OWL", at)
        if not self._opened:
            self._root(local, attributes, at)
        elif len(self._opened) > DEEPEST:
            raise NotAnOntologyError(f"this is nested more than {DEEPEST} levels deep", at)
        base = urljoin(self._opened[-1][2] if self._opened else self._base, attributes.get(f"{_XML}base", ""))
        tree = Tree(local, at)
        if number := attributes.get("cardinality"):
            if not number.strip().isdigit() or not number.isascii():
                raise NotAnOntologyError(f"the cardinality `{number}` is not a number", at)
            tree.parts.append(Leaf(number.strip(), at))
        if local == "Prefix":
            self._prefixes[attributes.get("name", "")] = attributes.get("IRI", "")
        self._opened.append((tree, attributes, base))
        self._text.clear()

    def _root(self, name: str, attributes: dict[str, str], at: int) -> None:
        if name != "Ontology":
            raise NotAnOntologyError(f"the document is an element `{name}`, not `Ontology`", at)
        own = attributes.get("ontologyIRI", "")
        self._base = self._base or own
        base = urljoin(self._base, attributes.get(f"{_XML}base", ""))
        self._iris = [
            f"<{urljoin(base, attributes[key])}>" for key in ("ontologyIRI", "versionIRI") if key in attributes
        ]

    def characters(self, text: str) -> None:
        self._text.append(text)

    def end(self, _name: str) -> None:
        tree, attributes, base = self._opened.pop()
        if not self._opened or tree.name == "Prefix":
            return
        parent = self._opened[-1][0]
        if tree.name == "Variable" or (tree.name in _ENTITIES and not tree.parts):
            leaf = Leaf(self._entity(attributes, base, tree.at), tree.at)
            if tree.name != "Variable" and parent.name != "Declaration":
                parent.parts.append(leaf)
                return
            tree.parts.append(leaf)
        elif tree.name == "AnonymousIndividual":
            parent.parts.append(Leaf(f"_:n{attributes.get('nodeID', '').removeprefix('_:')}", tree.at))
            return
        elif tree.name in _TEXTS:
            leaf = self._leaf(tree, attributes, base, "".join(self._text))
            if tree.name != "Import":
                parent.parts.append(leaf)
                return
            tree.parts.append(leaf)
        elif tree.name == "FacetRestriction":
            facet = self._absolute(attributes.get("facet", ""), base, tree.at)
            parent.parts += [Leaf(facet, tree.at), *tree.parts]
            return
        if len(self._opened) == 1:
            self._statements.append(tree)
        else:
            parent.parts.append(tree)

    def _leaf(self, tree: Tree, attributes: dict[str, str], base: str, text: str) -> Leaf:
        match tree.name:
            case "Literal":
                datatype = attributes.get("datatypeIRI", "")
                type_ = self._absolute(datatype, base, tree.at)[1:-1] if datatype else ""
                return Leaf(literal(text, attributes.get(f"{_XML}lang", ""), type_), tree.at)
            case "AbbreviatedIRI":
                return Leaf(expanded(text.strip(), _NAMESPACES | self._prefixes, tree.at), tree.at)
        return Leaf(self._absolute(text.strip(), base, tree.at), tree.at)

    def _entity(self, attributes: dict[str, str], base: str, at: int) -> str:
        if "IRI" in attributes:
            return self._absolute(attributes["IRI"], base, at)
        if "abbreviatedIRI" in attributes:
            return expanded(attributes["abbreviatedIRI"], _NAMESPACES | self._prefixes, at)
        raise NotAnOntologyError("this has no name: it needs `IRI` or `abbreviatedIRI`", at)

    def _absolute(self, iri: str, base: str, at: int) -> str:
        return checked(f"<{urljoin(base, iri)}>", at)


class _Skipping(_Reading):
    """Leaves out the elements below the root that are malformed."""

    def __init__(self, base: str | None, skip: Skip) -> None:
        super().__init__(base)
        self._skip, self._depth = skip, 0
        self._wrong = False  # whether something in the present element below the root is
        self._before = 0  # statements before it

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 2:
            self._wrong, self._before = False, len(self._statements)
        if self._depth == 1:
            super().start(name, attributes)
        elif not self._wrong:
            self._tried(lambda: super(_Skipping, self).start(name, attributes))

    def end(self, name: str) -> None:
        self._depth -= 1
        if not self._wrong:
            self._tried(lambda: super(_Skipping, self).end(name))
        self._wrong = self._wrong and self._depth > 1

    def _tried(self, read: Callable[[], None]) -> None:
        try:
            read()
        except NotAnOntologyError as error:
            self._wrong = True
            del self._opened[1:], self._statements[self._before :]
            self._skip(error)
