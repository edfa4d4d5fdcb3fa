"""Tokens to syntax tree, by lark's LALR(1) tables.

The parser is fed token by token. After an error it skips to the end of the clause or to the next directive and
starts afresh there, so that one mistake does not hide the next.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken

from evermat.core import Problems, Source, Span
from evermat.core import error_catalogue as errors
from evermat.language.syntax.ast import Clause, Node, Statement
from evermat.language.syntax.parse_tables import Automaton, Rejected, lark_parser, lexer, parse_tables
from evermat.language.syntax.syntax_errors import report
from evermat.language.syntax.tokens import Token, Tokens
from evermat.language.syntax.tree_builder import SyntaxProblem, span_of
from evermat.language.terms import is_unicode

DEPTH_LIMIT = 200
_NESTING_LIMIT = 5 * DEPTH_LIMIT  # of parentheses, most of which leave nothing in the tree
_BRACKETS = {"LPAR": 1, "LBRACE": 1, "RPAR": -1, "RBRACE": -1}
_SIGNS = frozenset({"NOT", "MINUS", "UNARY"})


def parse(source: Source, problems: Problems) -> list[Statement]:
    """All statements of a text that can be read; what cannot goes to `problems`."""
    if not is_unicode(source.text):
        _report_surrogate(source.text, problems)
        return []
    lark = lark_parser()
    tokens = Tokens(lexer().tokens(source.text), source.text)
    statements: list[Statement] = []
    while not tokens.at_end:
        try:
            statement = _read_statement(lark, tokens)
        except _UnexpectedError as error:
            token, accepted = error.args
            report(token, accepted, tokens, source, problems)
            statements += tokens.skip_statement(ended="DOT" in accepted)
        except SyntaxProblem as problem:
            problems.add(problem.kind, problem.span, **problem.details)
            statements += tokens.skip_statement()
        except _HopelessError as problem:
            problems.add(errors.TOO_DEEP, Span(*problem.args), limit=DEPTH_LIMIT)
            return []
        else:
            if tokens.read > DEPTH_LIMIT and (span := _too_deep(statement)):
                problems.add(errors.TOO_DEEP, span, limit=DEPTH_LIMIT)
            elif statement is not None:
                statements.append(statement)
        if len(problems) > problems.LIMIT or tokens.abandoned:
            return []  # this is not a program: more errors would not help
    return statements


def _report_surrogate(text: str, problems: Problems) -> None:
    """Reports the first half of a surrogate pair, which only a string of Python can have: no file and no engine can hold it."""
    at = next(i for i, character in enumerate(text) if "\ud800" <= character <= "\udfff")
    hint = "half of a surrogate pair is not a character"
    problems.add(errors.BAD_CHARACTER, Span(at, at + 1), hint, character=f"\\u{ord(text[at]):04x}")


def _read_statement(lark: Lark, tokens: Tokens) -> Any:
    """One statement. A clause ends with its dot, a directive where the next token cannot belong to it."""
    tokens.begin_statement()
    automaton = Automaton(parse_tables())
    brackets = signs = 0  # open ones, and those in a row
    while True:
        token = tokens.peek()
        kind = token.type
        brackets += _BRACKETS.get(kind, 0)
        signs = signs + 1 if kind in _SIGNS else 0
        if brackets > _NESTING_LIMIT or signs > _NESTING_LIMIT:
            raise _HopelessError(*span_of(token))
        try:
            if kind == "$END":
                return automaton.finish()
            automaton.feed(token)
        except Rejected:
            if kind not in ("$END", "DOT", "LBRACE"):  # a directive may have ended before this token
                with suppress(Rejected):
                    return automaton.finish()
            raise _unexpected(token, lark, tokens) from None
        tokens.advance()
        if kind == "DOT":
            return automaton.finish()


class _UnexpectedError(Exception):
    """A token cannot stand where it stands; `args` are the token and the terminals that could."""


def _unexpected(token: Token, lark: Lark, tokens: Tokens) -> _UnexpectedError:
    """Asks lark's interactive parser what it would have taken instead."""
    parser: Any = lark.parse_interactive()
    for before in tokens.statement:
        parser.feed_token(before)
    with suppress(UnexpectedToken):
        parser.feed_token(token)
    return _UnexpectedError(token, parser.accepts())


class _HopelessError(Exception):
    """The statement is nested so deeply that reading on would only take time; `args` are its span."""


def _too_deep(statement: Statement | None) -> Span | None:
    """The place of an expression or formula nested deeper than the limit; walks without recursion."""
    if not isinstance(statement, Clause):
        return None
    level: list[Node] = [*statement.heads, *([statement.body] if statement.body is not None else [])]
    for _ in range(DEPTH_LIMIT):
        level = [part for node in level for part in node.parts]
        if not level:
            return None
    return statement.span
