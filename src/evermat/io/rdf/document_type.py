"""Spells the document type of RDF/XML as pyoxigraph reads it: entities in double quotes, and none in comments."""

from __future__ import annotations

import re
from collections.abc import Callable

_BEFORE = rb"(?>\s+|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE(?>\"[^\"]*\"|'[^']*'|[^\[>\"'])*+\["
_OPEN = re.compile(_BEFORE, re.DOTALL)
_WHOLE = re.compile(_BEFORE + rb"(?>\"[^\"]*\"|'[^']*'|<!--.*?-->|<\?.*?\?>|[^\]\"'])*+\]", re.DOTALL)
_VALUE = re.compile(rb"<!--.*?-->|<\?.*?\?>|(<!ENTITY\s+(?:%\s+)?[^\s%'\"<>]+\s+)'([^']*)'", re.DOTALL)
_NO_NEWLINE = re.compile(rb"[^\r\n]")


def with_double_quotes(text: bytes, more: Callable[[int], bytes] = lambda _: b"") -> bytes:
    """The beginning of a document with the values of all its entities in double quotes; lines stay as they are.

    Comments among them become blanks.

    If its type goes on behind it, `more` reads on.
    """
    if _OPEN.match(text) is None:
        return text
    while (found := _WHOLE.match(text)) is None and (rest := more(len(text))):
        text += rest
    if found is None:
        return text
    return _VALUE.sub(_in_double_quotes, text[: found.end()]) + text[found.end() :]


def _in_double_quotes(found: re.Match[bytes]) -> bytes:
    if found[1] is None:  # a comment or an instruction
        return _NO_NEWLINE.sub(b" ", found[0])
    return b'%b"%b"' % (found[1], found[2].replace(b'"', b"&#34;"))
