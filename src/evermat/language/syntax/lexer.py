"""Text to tokens.

The terminals stand in the grammar; this lexer adds what a regular expression cannot say: reserved words,
declared prefixes (`ub:Student` is one name only after `.prefix ub: <…>`), and qualifiers after a declaration.
Whatever is wrong becomes a token as well (`PROBLEM`), so that the parser can report it and go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark.lexer import Lexer as LarkLexer
from lark.lexer import LexerState

from evermat.language.builtins import AGGREGATES, FUNCTIONS, TESTS
from evermat.language.syntax.tokens import Token

QUALIFIERS = frozenset(
    [
        *("btree", "btree_delete", "brie", "eqrel", "forbidden", "input", "output", "printsize"),
        *("inline", "no_inline", "magic", "no_magic", "override", "overridable"),
    ]
)
RESERVED = {
    "true": "TRUE",
    "false": "FALSE",
    **{
        name: "COUNT" if aggregate.bare else "EXTREMUM" if name in FUNCTIONS else "SUM"
        for name, aggregate in AGGREGATES.items()
    },
    **{
        name: "OPERATOR" if len(function.parameters) == 2 else "UNARY"
        for name, function in FUNCTIONS.items()
        if function.operator and name.isidentifier()
    },
}
# Reserved only where an opening parenthesis follows.
CALLABLE = {
    "as": "AS",
    **{name: "TEST" for name in TESTS if name.isidentifier()},
    **{name: "FUNCTION" for name in FUNCTIONS if name.isidentifier() and name not in RESERVED},
}
REFUSED_CALLS = frozenset({"autoinc", "range"})
REFUSED_DIRECTIVES = frozenset({".comp", ".init", ".functor", ".override", ".include", ".lattice", ".once"})

_BLANK = re.compile(r"(?:[ \t\r\n\f\v\ufeff]+|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_DIRECTIVE = re.compile(r"\.[A-Za-z_][A-Za-z0-9_]*")
_PREFIX_NAME = re.compile(r"\s*(?P<name>[A-Za-z][A-Za-z0-9_-]*):")
_LOCAL_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|[.](?=[A-Za-z0-9_-])|%[0-9A-Fa-f]{2})*|(?=\()")
_OPENING = re.compile(rf"(?>{_BLANK.pattern})?\(", re.DOTALL)
_CLAUSE = re.compile(rf"(?>{_BLANK.pattern})?[(:=]|\.", re.DOTALL)  # what follows a word that begins a clause, or would
_FREE_FORM = ("IRI", "BLANK", "STRING", "FLOAT", "NUMBER", "WORD", "LANGUAGE")  # terminals that are not punctuation
_NEXT_CONTEXT = {
    ("names", "LPAR"): "columns",
    ("columns", "RPAR"): "qualifiers",
    ("qualifiers", "QUALIFIER"): "qualifiers",
    ("qualifiers", "PROBLEM"): "qualifiers",
}
_INDENT = 200  # blanks before a directive that are looked at
_GARBAGE = re.compile(r"[^\s\w\"'(),.;:]+|.")


class Lexer(LarkLexer):
    """Built once by lark from the terminals of the grammar."""

    def __init__(self, configuration: Any) -> None:
        terminals = {t.name: t.pattern for t in configuration.terminals}
        self.directives = {
            keyword: name
            for name, pattern in terminals.items()
            for keyword in _DIRECTIVE.findall(pattern.value.replace("\\", ""))
        }
        punctuation = sorted(
            terminals.keys() - set(_FREE_FORM) - set(self.directives.values()),
            key=lambda name: (-terminals[name].max_width, terminals[name].type == "re", name),
        )  # longer ones first: `<:` and `<=` before `<`
        order = [*_FREE_FORM, *punctuation]
        self._scan = re.compile("|".join(f"(?P<{name}>{terminals[name].to_regexp()})" for name in order)).match

    def lex(self, lexer_state: LexerState, parser_state: Any) -> Any:  # noqa: ARG002
        """The interface that lark asks for."""
        return self.tokens(str(lexer_state.text))

    def tokens(self, text: str) -> Iterator[Token]:
        """All tokens of the text; prefixes count from their declaration on."""
        scan, skip = self._scan, _BLANK.match
        prefixes: dict[str, str] = {}
        pending = ""  # the prefix whose declaration is being read
        context = ""  # "names", "columns", "qualifiers": where in a declaration we are
        at, end = 0, len(text)
        while True:
            if blank := skip(text, at):
                at = blank.end()
            if at >= end:
                return
            if text[at] == "." and (token := self._directive(text, at)):
                context = "names" if token.type == "DECL" else ""
                at = token.end_pos
                yield token
                if token.type == "PREFIX_KEYWORD" and (name := _PREFIX_NAME.match(text, at)):
                    pending, at = name["name"], name.end()
                    yield _token("PREFIX_NAME", pending, name.start("name"), at)
                continue
            match = None if text.startswith("/*", at) else scan(text, at)
            if match is None:
                token = _unreadable(text, at)
                at = token.end_pos
                yield token
                continue
            kind, value, start, at = match.lastgroup or "", match.group(), at, match.end()
            if kind == "WORD":
                if (
                    value in prefixes
                    and context != "columns"
                    and text.startswith(":", at)
                    and (local := _LOCAL_NAME.match(text, at + 1))
                ):
                    kind, value, at = "PREFIXED", f"<{prefixes[value]}{local.group()}>", local.end()
                else:
                    kind = _word(value, text, at, qualifier=context == "qualifiers")
            elif kind == "IRI" and pending:
                prefixes[pending], pending = value[1:-1], ""
            context = _NEXT_CONTEXT.get((context, kind), "" if context == "qualifiers" else context)
            yield Token(kind, value, start, at)

    def _directive(self, text: str, at: int) -> Token | None:
        """A directive begins a line or has a known name; any other dot ends a clause."""
        match = _DIRECTIVE.match(text, at)
        if match is None:
            return None
        value = match.group()
        if value in self.directives:
            return _token(self.directives[value], value, at)
        if value in REFUSED_DIRECTIVES or _begins_line(text, at):
            return _token("PROBLEM", value, at)
        return None


def _begins_line(text: str, at: int) -> bool:
    """Whether there are only blanks before a place in its line; looks at a few, for lines may be long."""
    before = text[max(0, at - _INDENT) : at].rstrip(" \t")
    return before.endswith("\n") if before else at <= _INDENT


def _word(value: str, text: str, at: int, *, qualifier: bool) -> str:
    if kind := RESERVED.get(value):
        return kind
    if (value in CALLABLE or value in REFUSED_CALLS) and _OPENING.match(text, at):
        return CALLABLE.get(value, "PROBLEM")
    if qualifier and not _CLAUSE.match(text, at):
        return "QUALIFIER" if value in QUALIFIERS else "PROBLEM"
    return "PROBLEM" if value == "nil" else "WORD"


def _token(kind: str, value: str, start: int, end: int | None = None) -> Token:
    return Token(kind, value, start, start + len(value) if end is None else end)


def _unreadable(text: str, at: int) -> Token:
    """A token for what no terminal matches: an open string or comment, or garbage."""
    if text.startswith("/*", at):
        return _token("PROBLEM", text[at:], at)
    if text[at] in '"#':
        stop = text.find("\n", at)
        return _token("PROBLEM", text[at : len(text) if stop < 0 else stop], at)
    match = _GARBAGE.match(text, at)
    return _token("PROBLEM", match.group() if match else text[at], at)
