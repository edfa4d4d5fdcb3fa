"""Which texts are RDF terms: those that N-Triples takes for one, brought to the form in which the engine holds them.

Almost all terms are plain: regular expressions take them for sure, and they are in this form already, or nearly. About all others
pyoxigraph decides, which knows the whole grammar. Terms that RDF 1.2 adds are refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from evermat.language.terms import XSD_STRING, is_unicode, literal_term

# Part of RFC 3987: what every reader takes for a valid absolute IRI. There is only one way to match each text, which
# is what lets RE2 find groups in one pass. The same texts are patterns of Python's `re`.
_LETTER = r"A-Za-z0-9\-._~!$&'()*+,;=:@" + "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
_PERCENT = "%[0-9A-Fa-f][0-9A-Fa-f]"
_PATH = rf"(?:[{_LETTER}/]|{_PERCENT})*"
_QUERY = rf"(?:[{_LETTER}/?]|{_PERCENT})*"
_SERVER = rf"//[A-Za-z0-9.\-]+(?::[0-9]+)?(?:/{_PATH})?"
PLAIN_IRI = rf"<[A-Za-z][A-Za-z0-9+.\-]*:(?:{_SERVER}|[{_LETTER}]{_PATH})(?:\?{_QUERY})?(?:#{_QUERY})?>"
PLAIN_BLANK = r"_:[A-Za-z0-9_][A-Za-z0-9_\-]*"
# What the engine escapes is escaped, and nothing else.
PLAIN_STRING = r'"(?:[^"\\\x00-\x1f\x7f]|\\[tbnrf"\\])*"'
PLAIN_LANGUAGE = "@[A-Za-z][A-Za-z][A-Za-z]?(?:-[A-Za-z][A-Za-z])?"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TYPES_OF_TAGGED = [f"<{_RDF}{name}>" for name in ("langString", "dirLangString")]
"""Types that say that a text has a language: none that is spelled with its type has one."""

DIRECTION = ("texts with a direction (RDF 1.2) are not supported", "--")
TRIPLE_TERM = ("triples as terms (RDF 1.2) are not supported", "<<")
_RELATIVE = "No scheme found in an absolute IRI"

HELD_TERM = rf"{PLAIN_IRI}|{PLAIN_BLANK}|{PLAIN_STRING}(?:@[a-z][a-z][a-z]?(?:-[a-z][a-z])?|\^\^{PLAIN_IRI})?"
"""Plain terms in the form in which the engine holds them, if they do not end as `NOT_HELD` says."""
NOT_HELD = tuple(f'"^^{datatype}' for datatype in (*TYPES_OF_TAGGED, f"<{XSD_STRING}>"))
_HELD = re.compile(HELD_TERM)
# One term with nothing around it, whatever stands in it: what N-Triples decides about is so no more than one.
_SHAPE = re.compile(
    r'<(?!<)[^<>"\r\n]*>|_:[^\s<>"#]+|"(?:[^"\\\r\n]|\\[^\r\n])*"(?:[ \t]*(?:@[A-Za-z0-9-]*|\^\^[ \t]*<[^<>"\r\n]*>))?'
)
_IRI_WITHOUT_BRACKETS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|^`\\]*")
_POSITION = re.compile(r"^Parser error (?:at|between) [^:]*: ")
_SHOWN = 60  # characters of a term that help shows
_ASIDE = "<a:a> <a:a> "  # the other terms of a line


class UnsupportedTermError(Exception):
    """A term that pyoxigraph reads and Evermat does not; `args` are what it is, and the signs that begin it."""


class TermFault(NamedTuple):
    """Why a text is not an RDF term, and what would be: an `iri`, a `literal` with this text, or nothing that is known."""

    text: str
    why: str
    meant: str = ""

    @property
    def in_a_file(self) -> str:
        """What to write instead; empty if that is not known."""
        term = {"iri": f"<{self.text}>", "literal": literal_term(self.text)}.get(self.meant)
        if term is None:
            return ""
        if len(term) > _SHOWN:
            term = "<…>" if self.meant == "iri" else '"…"'
        return f"write `{term}`"

    @property
    def in_python(self) -> str:
        """What to call instead; empty if that is not known."""
        if not self.meant:
            return ""
        return (
            f"use `evermat.{self.meant}({self.text!r})`"
            if len(self.text) <= _SHOWN
            else f"use `evermat.{self.meant}(…)`"
        )


class MalformedTermError(ValueError):
    """A text is not an RDF term."""

    def __init__(self, fault: TermFault) -> None:
        super().__init__(fault)
        self.fault = fault


def is_held(text: str) -> bool:
    """Whether a text is a plain term in the form in which the engine holds it; no other form of a term, and no other text is."""
    return _HELD.fullmatch(text) is not None and not text.endswith(NOT_HELD) and is_unicode(text)


def checked_term(text: str) -> str:
    """The form in which the engine holds a term; raises a `MalformedTermError` for a text that is none."""
    if is_held(text):
        return text
    (found,) = checked_terms([text])
    if isinstance(found, TermFault):
        raise MalformedTermError(found)
    return found


def checked_terms(texts: Sequence[str]) -> list[str | TermFault]:
    """For each text the form in which the engine holds it, or why it is not a term."""
    found: list[str | TermFault] = [_held(text) for text in texts]
    asked = [i for i, one in enumerate(found) if not one]
    terms = _parsed_together([texts[i] for i in asked])
    for i, term in zip(asked, terms or map(_parsed, [texts[i] for i in asked]), strict=True):
        found[i] = term
    return found


def _held(text: str) -> str | TermFault:
    """A term in its form if that is plain to see, what is wrong with it if that is so, else nothing."""
    if is_held(text):
        return text
    if _SHAPE.fullmatch(text) is None:
        return _shapeless(text)
    return "" if is_unicode(text) else TermFault(text, "half of a surrogate pair is not a character")


def _parsed_together(texts: Sequence[str]) -> list[str] | None:
    """What pyoxigraph reads the texts as; None if there are none, or it refuses one."""
    if not texts:
        return None
    try:
        terms = _read("".join(f"{_ASIDE}{text} .\n" for text in texts))
    except (SyntaxError, UnsupportedTermError):
        return None
    return terms if len(terms) == len(texts) else None


def _parsed(text: str) -> str | TermFault:
    try:
        found = _read(f"{_ASIDE}{text} .\n")
    except UnsupportedTermError as error:
        return TermFault(text, error.args[0])
    except SyntaxError as error:
        return TermFault(text, _reason(_POSITION.sub("", error.msg), text))
    return found[0] if len(found) == 1 else TermFault(text, "it is not one term")


def _read(lines: str) -> list[str]:
    import pyoxigraph as rdf  # noqa: PLC0415  (plain terms do not need it)

    return [spelled(triple.object) for triple in rdf.parse(lines.encode(), format=rdf.RdfFormat.N_TRIPLES)]


def spelled(term: Any) -> str:
    """A term of pyoxigraph in the form in which the engine holds it.

    Raises:
        UnsupportedTermError: RDF 1.2 has added it.
    """
    import pyoxigraph as rdf  # noqa: PLC0415

    if isinstance(term, rdf.Literal):
        if term.direction is not None:
            raise UnsupportedTermError(*DIRECTION)
        return literal_term(term.value, language=term.language or "", datatype=term.datatype.value)
    if isinstance(term, rdf.Triple):
        raise UnsupportedTermError(*TRIPLE_TERM)
    return str(term)


def _reason(message: str, text: str) -> str:
    """Why a text with the shape of a term is none, from what pyoxigraph says."""
    if text.startswith("_:"):
        return "a label of a blank node has letters, digits, `_`, and inside also `-` and `.`"
    if message == _RELATIVE:
        what = "its datatype" if text.startswith('"') else "it"
        return f"{what} is a relative IRI, and terms have only absolute ones"
    return message[:1].lower() + message[1:]


def _shapeless(text: str) -> TermFault:
    """Why a text without the shape of a term is none."""
    if not text:
        return TermFault(text, "it is empty", "literal")
    if text != text.strip(" \t\r\n"):
        return TermFault(text, "there are blanks around it")
    if text.startswith("<<"):
        return TermFault(text, TRIPLE_TERM[0])
    if text.startswith("<"):
        return TermFault(text, "an IRI is closed by the only `>`, and has no quotes in it")
    if text.startswith("_:"):
        return TermFault(text, "a label of a blank node has letters, digits, `_`, and inside also `-` and `.`")
    if text.startswith('"'):
        why = "only a language, `@en`, or a datatype, `^^<…>`, follows the closing quote"
        if "\n" in text or "\r" in text:
            why = "newlines in a literal are written `\\n` and `\\r`"
        elif not text.endswith('"') and text.count('"') == 1:
            why = "the quote is not closed"
        return TermFault(text, why)
    if _IRI_WITHOUT_BRACKETS.fullmatch(text):
        return TermFault(text, "an IRI stands between `<` and `>`", "iri")
    return TermFault(text, "a text stands between quotes", "literal")
