"""Cuts a text in functional syntax into statements, so that malformed ones can be left out.

A statement ends with its last parenthesis, or where a keyword begins another: names of axioms never stand inside of axioms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from evermat.owl.syntax.tree import NotAnOntologyError

_PIECE = re.compile(
    r'\#[^\n]*|"[^"\\]*(?:\\.[^"\\]*)*"|<[^<>\s]*>|(?P<open>\()|(?P<close>\))|(?P<word>[A-Za-z]+)(?=\s*\()|[^\s()"<#]+|.',
    re.DOTALL,
)
_BLANK = re.compile(r"(?:\s+|\#[^\n]*)*")


def ontology_start(text: str) -> tuple[int, int] | None:
    """Where `Ontology` stands, and where its parenthesis ends; None if there is none."""
    depth = 0
    for piece in _PIECE.finditer(text):
        depth += (piece.lastgroup == "open") - (piece.lastgroup == "close")
        if piece.lastgroup == "word" and piece["word"] == "Ontology" and depth <= 0:
            return piece.start(), text.index("(", piece.end()) + 1
    return None


class Statements:
    """The statements of a text, cut by the keywords that begin one."""

    def __init__(self, text: str, keywords: Collection[str]) -> None:
        self._text, self._keywords = text, frozenset(keywords)
        words = "|".join(sorted(self._keywords))
        self._line = re.compile(rf"^[ \t]*(?=(?:{words})\s*\()", re.MULTILINE)

    def parse(
        self, at: int, end: int, parse: Callable[[int, int], None], failed: Callable[[NotAnOntologyError], None]
    ) -> None:
        """Has each statement between two places parsed; one that fails ends at the latest where a line begins another statement."""
        while (at := blank_end(self._text, at)) < end:
            stop = self._end(at, end)
            try:
                parse(at, stop)
            except NotAnOntologyError as error:
                failed(error)
                again = self._line.search(self._text, at + 1, stop)
                stop = stop if again is None else again.end()
            at = stop

    def _end(self, at: int, end: int) -> int:
        """Where the statement ends that begins at a place."""
        depth = 0
        for piece in _PIECE.finditer(self._text, at, end):
            match piece.lastgroup:
                case "open":
                    depth += 1
                case "close":
                    depth -= 1
                    if depth <= 0:
                        return piece.end()
                case "word":
                    if piece.start() > at and (depth == 0 or piece["word"] in self._keywords):
                        return piece.start()
                case _:
                    if depth == 0 and not piece[0].isspace() and not piece[0].startswith("#"):
                        return piece.end()
        return end


def blank_end(text: str, at: int) -> int:
    """Where blanks and comments end that begin at a place."""
    found = _BLANK.match(text, at)
    return found.end() if found else at
