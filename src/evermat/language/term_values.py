"""RDF terms as Python values: of Evermat, of rdflib and of pyoxigraph."""

from __future__ import annotations

import sys
from typing import Any, Self

from evermat.core import ArgumentError, Problem, wrong_type
from evermat.core import error_catalogue as errors
from evermat.language.term_syntax import (
    MalformedTermError,
    TermFault,
    UnsupportedTermError,
    checked_term,
    spelled,
)
from evermat.language.terms import XSD_STRING, literal_term, unescape


class Term(str):
    """An RDF term: a text in N-Triples form, which never changes.

    `evermat.iri`, `evermat.literal` and `evermat.blank_node` make terms; `Term` takes a term in N-Triples form. A term equals the text
    that relations contain: `str(term)` is this text.

    >>> import evermat
    >>> evermat.Term('"Tim"@EN')
    evermat.literal('Tim', language='en')
    >>> str(evermat.iri("http://example.org/tim"))
    '<http://example.org/tim>'

    Raises:
        ArgumentError: the text is not an RDF term.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if not isinstance(text, str):
            raise wrong_type("text", text, "a term in N-Triples form")
        if isinstance(text, cls):
            return text
        try:
            return super().__new__(cls, term_of(text))
        except MalformedTermError as error:
            raise malformed_argument(error.fault) from None

    def __repr__(self) -> str:
        text = str(self)
        if text.startswith("<"):
            return f"evermat.iri({text[1:-1]!r})"
        if text.startswith("_:"):
            return f"evermat.blank_node({text[2:]!r})"
        end = text.rindex('"')
        value, suffix = unescape(text[1:end]), text[end + 1 :]
        if suffix.startswith("@"):
            return f"evermat.literal({value!r}, language={suffix[1:]!r})"
        return f"evermat.literal({value!r}, datatype={suffix[3:-1]!r})" if suffix else f"evermat.literal({value!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return type(self), (str(self),)


def malformed_argument(fault: TermFault, what: str = "text") -> ArgumentError:
    """The error of an argument that is not a term, or not a part of one."""
    return ArgumentError(
        Problem(errors.COMMAND_LINE, {"what": f"`{what}` is {fault.text!r}: {fault.why}"}, help=fault.in_python)
    )


def is_term(value: object) -> bool:
    """Whether a value is an RDF term, or part of a pattern for such, of Evermat, rdflib or pyoxigraph, and not only a text of one."""
    return type(value) is not str and (isinstance(value, (Term, *_classes("rdflib.term", "Node"), *_oxigraph())))


def term_of(value: Any) -> str:
    """A Python value as a term in the form in which the engine holds it: a text in N-Triples form, or a term of a library.

    Neither library is imported: who has a term of it has done so.

    Raises:
        MalformedTermError: the value is not a term.
    """
    if isinstance(value, Term):
        return str(value)
    if type(value) is str:
        return checked_term(value)
    if isinstance(value, _classes("rdflib.term", "Node")):
        return _term_of_rdflib(value)
    if isinstance(value, _oxigraph()):
        if isinstance(value, _classes("pyoxigraph", "Variable", "DefaultGraph")):
            raise MalformedTermError(TermFault(str(value), f"a {type(value).__name__} of pyoxigraph is not a term"))
        try:
            return spelled(value)
        except UnsupportedTermError as error:
            raise MalformedTermError(TermFault(str(value), error.args[0])) from None
    if isinstance(value, str):
        return checked_term(str(value))
    raise MalformedTermError(TermFault(str(value), f"it is of the type `{type(value).__name__}`"))


def iri_term(iri: str) -> str:
    """The term of an IRI, which is without `<` and `>`; raises a `MalformedTermError` if it is none."""
    if "\\" in iri:
        raise MalformedTermError(TermFault(iri, "an IRI has no backslash"))
    if iri.startswith("<") and iri.endswith(">"):
        raise MalformedTermError(TermFault(iri, "an IRI is given without `<` and `>`"))
    try:
        return checked_term(f"<{iri}>")
    except MalformedTermError as error:
        raise MalformedTermError(TermFault(iri, error.fault.why)) from None


def typed_literal(text: str, datatype: str) -> str:
    """The term of a literal with a datatype, an IRI; raises a `MalformedTermError` if there is none."""
    iri = iri_term(datatype)
    return literal_term(text) if iri[1:-1] == XSD_STRING else checked_term(literal_term(text, datatype=iri[1:-1]))


def _term_of_rdflib(value: Any) -> str:
    rdflib = sys.modules["rdflib.term"]
    text = str(value)
    if isinstance(value, rdflib.URIRef):
        return iri_term(text)
    if isinstance(value, rdflib.BNode):
        return checked_term(f"_:{text}")
    if not isinstance(value, rdflib.Literal):
        raise MalformedTermError(TermFault(text, f"a {type(value).__name__} of rdflib is not a term"))
    if value.language:
        return checked_term(literal_term(text, language=value.language))
    return checked_term(literal_term(text)) if value.datatype is None else typed_literal(text, str(value.datatype))


def _classes(module: str, *names: str) -> tuple[type, ...]:
    """Classes of a module that is imported already; none if it is not."""
    found = sys.modules.get(module)  # another thread may be importing it right now: then there is no value of it yet
    return tuple(filter(None, (getattr(found, name, None) for name in names)))


def _oxigraph() -> tuple[type, ...]:
    return _classes("pyoxigraph", "NamedNode", "BlankNode", "Literal", "Triple", "Variable", "DefaultGraph")
