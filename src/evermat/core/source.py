"""Texts and places in them: what an error message points at."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field
from typing import NamedTuple

# What stands behind this line of a program was not written by its author; places in it are counted from there.
GENERATED = "// Rules of ontologies and rule sets:"
_GENERATED_NAME = "<rules>"
_WINDOW = 96  # characters of an overlong line that are shown around the caret


class Span(NamedTuple):
    """A half-open range of characters of a source text."""

    start: int
    end: int


class Position(NamedTuple):
    """A place as people count: line and column start at 1."""

    line: int
    column: int


@dataclass(slots=True, eq=False)
class Source:
    r"""A text with a name; turns offsets into places and into caret lines.

    `first_line` is the number of the text's first line: one line of a large file can stand for the whole.

    >>> source = Source("reach.dl", "a(1).\nb(2).")
    >>> source.position(6)
    Position(line=2, column=1)
    """

    name: str
    text: str
    first_line: int = 1
    _starts: list[int] = field(default_factory=list, repr=False)

    def position(self, offset: int) -> Position:
        if not self._starts:
            self._starts = [0, *(newline.end() for newline in re.finditer("\n", self.text))]
        line = bisect.bisect_right(self._starts, offset)
        return Position(line + self.first_line - 1, offset - self._starts[line - 1] + 1)

    def shown_position(self, offset: int) -> tuple[str, Position]:
        """The name and the place that a message tells: what was put behind a text has a name of its own."""
        position, begin = self.position(offset), self.text.find(f"\n{GENERATED}\n")
        if not 0 <= begin < offset:
            return self.name, position
        return _GENERATED_NAME, Position(position.line - self.position(begin + 1).line, position.column)

    def where(self, offset: int) -> str:
        """A place as messages have it in a line: `reach.dl:2:1`."""
        name, (line, column) = self.shown_position(offset)
        return f"{name}:{line}:{column}"

    def excerpt(self, span: Span) -> tuple[str, str]:
        """The line in which the span begins, and a line of carets under it.

        A line too long to read is cut to a window around the span.
        """
        begin = self.text.rfind("\n", 0, span.start) + 1
        stop = self.text.find("\n", span.start)
        stop = len(self.text) if stop < 0 else stop
        left = max(begin, span.start - _WINDOW // 2) if stop - begin > _WINDOW else begin
        right = min(stop, left + _WINDOW)
        line = self.text[left:right]
        lead, tail = "…" if left > begin else "", "…" if right < stop else ""
        width = max(1, min(span.end, right) - span.start)
        shown = lead + "".join(_visible(c) for c in line).rstrip() + tail
        return shown, " " * (len(lead) + span.start - left) + "^" * width


def _visible(character: str) -> str:
    """A character of the width of one column: tabs and control characters would shift the caret."""
    if character == "\t":
        return " "
    return character if character.isprintable() else "�"
