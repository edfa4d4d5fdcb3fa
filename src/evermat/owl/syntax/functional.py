"""OWL 2 functional syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from evermat.language import literal_term
from evermat.owl.syntax.functional_recovery import Statements, blank_end, ontology_start
from evermat.owl.syntax.to_triples import AXIOMS, Skip
from evermat.owl.syntax.tree import DEEPEST, Document, Leaf, NotAnOntologyError, Tree, expanded
from evermat.owl.vocabulary import RDF

_TOKEN = re.compile(
    r"""(?P<blank>(?:\s+|\#[^\n]*)+)
    |(?P<open>\()
    |(?P<close>\))
    |(?P<equals>=)
    |(?P<iri><[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\]*>)
    |"(?P<text>(?:[^"\\]|\\["\\])*)"(?:\^\^(?:(?P<type><[^\x00-\x20<>"{}|^`\\]*>)|(?P<type_name>[\w.-]*:[\w.:%-]*))
        |@(?P<language>[A-Za-z]+(?:-[A-Za-z0-9]+)*))?
    |(?P<node>_:[\w.-]*\w)
    |(?P<name>[\w.-]*:(?:[\w.:%-]*[\w:%-])?)
    |(?P<number>[0-9]+(?![\w:]))
    |(?P<word>[A-Za-z]+)""",
    re.VERBOSE,
)
_PLAIN_LITERAL = f"{RDF}PlainLiteral"


def read_functional(text: str, skip: Skip | None = None) -> Document:
    """The ontology of a text; with `skip`, malformed statements are left out."""
    try:
        return _read(text)
    except NotAnOntologyError:
        start = None if skip is None else ontology_start(text)
        if skip is None or start is None:
            raise
        return _read_careful(text, *start, skip)


def _read_careful(text: str, start: int, begin: int, skip: Skip) -> Document:
    """The same, statement by statement; the ontology begins at a place, and its content at another."""
    reading = _Reading(text)
    statements = Statements(text, (*AXIOMS, "Import"))
    found: list[Tree] = []
    closed = False

    def read(at: int, end: int) -> None:
        nonlocal closed
        if text[at:end] == ")" and blank_end(text, end) == len(text):
            closed = True
        else:
            found.extend(reading.trees(at, end))

    statements.parse(0, start, reading.declare_all, skip)
    iris, begin = reading.iris(begin)
    statements.parse(begin, len(text), read, skip)
    if not closed:
        skip(NotAnOntologyError("this parenthesis is not closed", text.rindex("(", 0, begin)))
    return Document(iris, list(reading.prefixes.items()), found)


def _read(text: str) -> Document:
    reading = _Reading(text)
    statements = reading.trees()
    while statements and statements[0].name == "Prefix":
        del statements[0]
    if len(statements) != 1 or statements[0].name != "Ontology":
        at = statements[1].at if len(statements) > 1 else statements[0].at if statements else 0
        raise NotAnOntologyError("a text is prefixes and one ontology: `Prefix(…)`, `Ontology(…)`", at)
    parts = statements[0].parts
    iris: list[str] = []
    while parts and isinstance(parts[0], Leaf) and len(iris) < 2:
        iris.append(parts.pop(0).text)  # type: ignore[union-attr]
    for part in parts:
        if isinstance(part, Leaf):
            raise NotAnOntologyError("there is a name where an axiom is expected", part.at)
    return Document(iris, list(reading.prefixes.items()), parts)  # type: ignore[arg-type]


class _Reading:
    """Reads a text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.prefixes: dict[str, str] = {}

    def declare_all(self, at: int, end: int) -> None:
        """Reads declarations of prefixes between two places."""
        for tree in self.trees(at, end):
            if tree.name != "Prefix":
                raise NotAnOntologyError("a text is prefixes and one ontology: `Prefix(…)`, `Ontology(…)`", tree.at)

    def iris(self, at: int) -> tuple[list[str], int]:
        """The names of the ontology, which stand at a place, and where they end."""
        found: list[str] = []
        with suppress(NotAnOntologyError):  # then a statement begins here
            for token in self._tokens(at, len(self._text)):
                kind = token.lastgroup or ""
                if kind not in ("iri", "name") or len(found) == 2:
                    break
                found.append(self._leaf(token, kind).text)
                at = token.end()
        return found, at

    def trees(self, begin: int = 0, end: int | None = None) -> list[Tree]:
        """All that stands in no parentheses, between two places."""
        top = Tree("", 0)
        opened = [top]
        word: re.Match[str] | None = None  # a word whose parentheses have not begun yet
        for token in self._tokens(begin, len(self._text) if end is None else end):
            kind = token.lastgroup or ""
            if word is not None and kind != "open":
                break
            if kind == "word":
                word = token
            elif kind == "open":
                if len(opened) > DEEPEST:
                    raise NotAnOntologyError(f"this is nested more than {DEEPEST} levels deep", token.start())
                tree = Tree(word.group() if word else "", word.start() if word else token.start())
                word = None
                opened[-1].parts.append(tree)
                opened.append(tree)
            elif kind == "close":
                tree = opened.pop()
                if not opened:
                    raise NotAnOntologyError("this parenthesis closes nothing", token.start())
                if tree.name == "Prefix" and len(opened) == 1:
                    self._declare(tree)
            elif kind == "name" and opened[-1].name == "Prefix" and len(opened) == 2 and not opened[-1].parts:
                opened[-1].parts.append(Leaf(token.group().removesuffix(":"), token.start()))
            elif kind != "equals" or opened[-1].name != "Prefix":
                opened[-1].parts.append(self._leaf(token, kind))
        if word is not None:
            raise NotAnOntologyError(f"`{word.group()}` has no parentheses", word.start())
        if len(opened) > 1:
            raise NotAnOntologyError("this parenthesis is not closed", opened[-1].at + len(opened[-1].name))
        for part in top.parts:
            if isinstance(part, Leaf):
                raise NotAnOntologyError("this stands outside of an ontology", part.at)
        return top.parts  # type: ignore[return-value]

    def _tokens(self, at: int, end: int) -> Iterator[re.Match[str]]:
        while at < end:
            token = _TOKEN.match(self._text, at, end)
            if token is None:
                what = "this text is not closed" if self._text[at] == '"' else "this is not allowed here"
                raise NotAnOntologyError("this IRI is not absolute" if self._text[at] == "<" else what, at)
            at = token.end()
            if token.lastgroup != "blank":
                yield token

    def _declare(self, tree: Tree) -> None:
        match tree.parts:
            case [Leaf(name), Leaf(iri)] if iri.startswith("<"):
                self.prefixes[name] = iri[1:-1]
            case _:
                raise NotAnOntologyError("a prefix is declared so: `Prefix(name:=<iri>)`", tree.at)

    def _leaf(self, token: re.Match[str], kind: str) -> Leaf:
        at = token.start()
        match kind:
            case "iri" | "number":
                return Leaf(token.group(), at)
            case "node":
                return Leaf(f"_:n{token.group()[2:]}", at)
            case "name":
                return Leaf(expanded(token.group(), self.prefixes, at), at)
            case "equals":
                raise NotAnOntologyError("this is not allowed here", at)
        text = re.sub(r"\\(.)", r"\1", token["text"])
        datatype = token["type"][1:-1] if token["type"] else ""
        if token["type_name"]:
            datatype = expanded(token["type_name"], self.prefixes, token.start("type_name"))[1:-1]
        return Leaf(literal(text, token["language"] or "", datatype), at)


def literal(text: str, language: str, datatype: str) -> str:
    """A literal as a term; one whose language is a part of its text is as any other with a language."""
    if datatype == _PLAIN_LITERAL:
        body, mark, language = text.rpartition("@")
        text, datatype = body if mark else text, ""
        language = language if mark else ""
    return literal_term(text, language=language, datatype=datatype)
