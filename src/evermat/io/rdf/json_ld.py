"""JSON-LD: what pyoxigraph does not say or check of it.

Contexts in other documents are never fetched. Errors of meaning get the place of the node that they are in. Nodes in the array of a document, or
of its `@graph`, are statements that can be parsed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from evermat.io.rdf.error_recovery import Statement

MOST_LEVELS = 500  # levels of arrays and objects: pyoxigraph needs some kilobytes of the stack for each
NO_BASE = "evermat-no-base:///"  # the base of a text that has none, so that relative IRIs can be seen
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+', re.DOTALL)
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:(")|(\\?)\Z)', re.DOTALL)  # perhaps without its end
_GRAPH_KEYS = {b'"@context"', b'"@id"', b'"@graph"'}
_PREFIX = re.compile(
    r'"([A-Za-z][A-Za-z0-9_]*)"\s*:\s*(?:"([^"\\]*[/#:?=&])"|\{[^{}]*?"@id"\s*:\s*"([^"\\]*[/#:?=&])"[^{}]*\})'
)
_RELATIVE = re.compile(rf"^(?:\".*\"\^\^)?<{NO_BASE}([^>]*)>$", re.DOTALL)
_CONTEXT = re.compile(r'"@context"\s*:\s*')


class TooDeepError(Exception):
    """A text with more levels than can be parsed."""


class CheckedDepth:
    """A stream of JSON that raises a `TooDeepError` before a reader gets more levels than it can take."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._depth, self._open = stream, 0, b""

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._depth, self._open = _depth_after(self._open + data, self._depth)
        return data


def too_deep(text: bytes) -> bool:
    """Whether a text has more levels than can be parsed."""
    try:
        _depth_after(text, 0)
    except TooDeepError:
        return True
    return False


def _depth_after(text: bytes, depth: int) -> tuple[int, bytes]:
    """The depth behind a text that begins at some depth, and the beginning of a string that it breaks off in."""
    rest = b""

    def without(found: re.Match[bytes]) -> bytes:
        nonlocal rest
        if found[1] is None:
            rest = b'"' + found[2]
        return b""

    marks = np.frombuffer(_TEXT.sub(without, text), np.uint8)
    steps = ((marks == ord("{")) | (marks == ord("["))).astype(np.int32) - ((marks == ord("}")) | (marks == ord("]")))
    if not len(steps):
        return depth, rest
    depths = depth + np.cumsum(steps)
    if depths.max() > MOST_LEVELS:
        raise TooDeepError
    return int(depths[-1]), rest


# --- nodes ---------------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    start: int
    end: int
    text: bytes


def _tokens(text: bytes) -> Iterator[_Token]:
    return (_Token(found.start(), found.end(), found[0]) for found in _TOKEN.finditer(text))


def json_statements(text: bytes) -> list[Statement]:
    """The nodes of a text: those in its array, or in its `@graph` if it has nothing else but a context and a name.

    Any other text, also one that is not JSON, is one statement.
    """
    elements, lead, tail = _elements(text)
    if not elements:
        return [Statement(0, len(text))]
    return [Statement(start, end, text[:lead] + b"\n", text[tail:]) for start, end in elements]


def _elements(text: bytes) -> tuple[list[tuple[int, int]], int, int]:
    """The elements of the array whose nodes are statements, where it begins, and where it ends."""
    depth, keys = 0, list[bytes]()
    elements: list[tuple[int, int]] = []
    inside = 0  # the depth of elements, once the array has begun
    lead = tail = begin = end = 0
    key, expects_value = b"", False
    for token in _tokens(text):
        mark = token.text
        if mark in (b"{", b"["):
            depth += 1
            if not inside and mark == b"[" and (depth == 1 or (depth == 2 and key == b'"@graph"' and expects_value)):
                inside, lead, begin, end = depth, token.end, 0, 0
                continue
        elif mark in (b"}", b"]"):
            depth -= 1
        if inside and not tail:
            closing = mark == b"]" and depth == inside - 1
            if closing or (mark == b"," and depth == inside):
                if end:
                    elements.append((begin, end))
                begin = end = 0
                tail = token.start if closing else 0
            else:
                begin, end = begin if end else token.start, token.end
        elif depth == 1 and inside != 1:
            if mark == b":":
                expects_value = True
            elif mark == b",":
                expects_value = False
            elif not expects_value and mark.startswith(b'"'):
                key = mark
                keys.append(key)
    if not tail or (inside == 2 and not {*keys} <= _GRAPH_KEYS):
        return [], 0, 0
    return elements, lead, tail


# --- contexts ------------------------------------------------------------------------------------------------


def remote_contexts(text: bytes) -> Iterator[tuple[int, int]]:
    """The positions of the names of contexts that are in other documents."""
    stack: list[list[bytes]] = []  # of each open bracket: its kind, and the last key
    key, is_value = b"", False
    for token in _tokens(text):
        mark = token.text
        if mark in (b"{", b"["):
            stack.append([mark, key if is_value or (stack and stack[-1][0] == b"[") else b""])
            key = b"" if mark == b"{" else stack[-1][1]
            is_value = mark == b"["
        elif mark in (b"}", b"]"):
            if stack:
                stack.pop()
            is_list = bool(stack) and stack[-1][0] == b"["
            key, is_value = (stack[-1][1] if is_list else b""), is_list
        elif mark == b":":
            is_value = True
        elif mark == b",":
            is_list = bool(stack) and stack[-1][0] == b"["
            key, is_value = (stack[-1][1] if is_list else b""), is_list
        elif mark.startswith(b'"'):
            if not is_value:
                key = mark
            elif key in (b'"@context"', b'"@import"'):
                yield token.start, token.end


def json_pieces(text: bytes) -> Iterator[bytes]:
    """The text in pieces that end where a value may end, so that a parser has read no more than what it complains about."""
    at = 0
    for found in re.finditer(rb"[,\]}]", text):
        yield text[at : found.end()]
        at = found.end()
    if at < len(text):
        yield text[at:]


def relative_iri(term: str) -> str:
    """The relative IRI in a term that should have none; empty if there is none."""
    found = _RELATIVE.search(term)
    return "" if found is None else found[1]


def context_prefixes(text: str) -> list[tuple[str, str]]:
    """The prefixes that the contexts of a text declare, as far as their values are written out."""
    found: list[tuple[str, str]] = []
    for context in _CONTEXT.finditer(text):
        end = _object_end(text, context.end())
        found += [(name, plain or detailed) for name, plain, detailed in _PREFIX.findall(text, context.end(), end)]
    return found


def _object_end(text: str, at: int) -> int:
    """Where the object or array ends that begins at a place."""
    depth = 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', text[at:]):
        if found[0] in "{[":
            depth += 1
        elif found[0] in "}]":
            depth -= 1
        if depth == 0:
            return at + found.end()
    return len(text)
