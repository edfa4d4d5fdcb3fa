"""The tokens of a text as the parser takes them: one ahead, and with a way to go on after a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evermat.language.syntax.ast import Statement, Unread


@dataclass(slots=True, eq=False)
class Token:
    """A terminal of the grammar at a place of the text."""

    type: str
    value: str
    start_pos: int = 0
    end_pos: int = 0


_SKIP_LIMIT = 20_000  # tokens after a mistake among which the next statement must begin
_INDENT = 200  # blanks before a line that are looked at


class Tokens:
    """The tokens of a text, one ahead; the last one is `$END`."""

    def __init__(self, tokens: Iterator[Token], text: str) -> None:
        self._tokens, self._text = tokens, text
        self._ahead: Token | None = None
        self.last: Token | None = None
        self.read = 0  # since the statement began
        self.statement: list[Token] = []  # what was read of it
        self.abandoned = False  # nowhere to go on

    def begin_statement(self) -> None:
        self.read, self.statement = 0, []

    def peek(self) -> Token:
        if self._ahead is None:
            self._ahead = next(self._tokens, None) or Token("$END", "")
        return self._ahead

    def advance(self) -> Token:
        token = self._ahead or self.peek()
        self.last, self._ahead = token, None
        self.statement.append(token)
        self.read += 1
        return token

    @property
    def at_end(self) -> bool:
        return self.peek().type == "$END"

    def begins_line(self, *, indented: bool) -> bool:
        """Whether the next token is the first of its line, after blanks or not."""
        start = self.peek().start_pos or 0
        before = self._text[max(0, start - _INDENT) : start]
        return (before.rstrip(" \t") if indented else before).endswith("\n")

    @property
    def is_qualified(self) -> bool:
        """Whether the next token is the dot of `component.relation`."""
        token, last = self.peek(), self.last
        if token.type != "DOT" or last is None or last.type != "WORD" or last.end_pos != token.start_pos:
            return False
        return self._text[token.end_pos :][:1].isalpha()

    def skip_statement(self, *, ended: bool = False) -> list[Statement]:
        """Goes on at the next statement; returns the names that the broken one declares.

        That is behind the next clause's end, at the next directive, or, where a clause could have `ended`, at the
        next line. A component is skipped as a whole, and a directive up to a line that is not indented.
        """
        first = self.statement[0] if self.statement else self.peek()
        found: list[Statement] = [Unread(first.value, names)] if (names := _declared(self.statement)) else []
        if self.read and self._is_behind(ended):
            return found
        component, depth = self.peek().value in (".comp", ".lattice"), 0
        directive = begins_directive(first) or first.type == "PROBLEM"
        if self.is_qualified:
            self.advance()
        last = self.read + _SKIP_LIMIT
        while not self.at_end:
            if self.read > last:
                self.abandoned = True
                break
            token = self.advance()
            depth += (token.type == "LBRACE") - (token.type == "RBRACE")
            if component:
                if token.type == "RBRACE" and depth <= 0:
                    break
            elif (
                token.type == "DOT"
                or begins_directive(self.peek())
                or is_rest_of_line(token)
                or (directive and self.begins_line(indented=False))
            ):
                break
        return found

    def _is_behind(self, ended: bool) -> bool:
        """Whether the broken statement is already behind us."""
        read_whole = self.last is not None and self.last.type == "DOT"
        return read_whole or begins_directive(self.peek()) or (ended and self.begins_line(indented=True))


def begins_directive(token: Token) -> bool:
    """Whether a token is a directive such as `.decl`."""
    return token.value.startswith(".") and len(token.value) > 1


def is_rest_of_line(token: Token) -> bool:
    """An open string or a preprocessor directive: the lexer has read up to the end of the line."""
    return token.type == "PROBLEM" and token.value.startswith(('"', "#"))


def _declared(opening: list[Token]) -> list[str]:
    """The names that a declaration with these first tokens declares."""
    if not opening or opening[0].type not in ("DECL", "TYPE", "OLD_TYPE"):
        return []
    names = []
    for token in opening[1:]:
        if token.type in ("WORD", "IRI", "PREFIXED"):
            names.append(token.value)
        elif token.type != "COMMA":
            break
    return names
