"""The grammar's tables: made by lark, kept between runs, and run by a tight loop.

lark's own driver looks up every rule by value and calls through several objects for each token, which is half of the time that a
large program takes to parse. This one runs the same tables with the same callbacks; a caller that needs more (what could have
come instead of a token) feeds the tokens to lark's interactive parser.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from lark import Lark
from lark.parsers.lalr_analysis import Shift

from evermat.core import cached_file
from evermat.language.syntax.lexer import Lexer
from evermat.language.syntax.tokens import Token
from evermat.language.syntax.tree_builder import Builder


class Rejected(Exception):  # noqa: N818
    """A token cannot stand where it stands."""


class Tables:
    """What the automaton does in each of its states; all parses, in any thread, read the same."""

    def __init__(self, lark: Lark) -> None:
        configuration = lark.parse_interactive().parser_state.parse_conf
        callbacks = configuration.callbacks
        self.first = configuration.start_state
        self.last = configuration.end_state
        # For each state and terminal: the state to shift to, or (rule's length, callback, rule's name) to reduce.
        self.actions: dict[Any, dict[str, tuple[Any, ...]]] = {
            state: {
                name: (target,) if action is Shift else (len(target.expansion), callbacks[target], target.origin.name)
                for name, (action, target) in actions.items()
            }
            for state, actions in configuration.states.items()
        }


class Automaton:
    """Reads one statement: `feed` for each token, then `finish`."""

    def __init__(self, tables: Tables) -> None:
        self._actions, self._last = tables.actions, tables.last
        self._states: list[Any] = [tables.first]
        self._values: list[Any] = []

    def feed(self, token: Token) -> None:
        """Takes the next token.

        Raises:
            Rejected: it cannot stand here; what was read so far is lost.
        """
        actions, states, values = self._actions, self._states, self._values
        kind = token.type
        while True:
            action = actions[states[-1]].get(kind)
            if action is None:
                raise Rejected
            if len(action) == 1:
                states.append(action[0])
                values.append(token)
                return
            size, callback, name = action
            if size:
                parts = values[-size:]
                del values[-size:]
                del states[-size:]
            else:
                parts = []
            states.append(actions[states[-1]][name][0])
            values.append(callback(parts))

    def finish(self) -> Any:
        """The statement that the tokens make.

        Raises:
            Rejected: something is missing.
        """
        actions, states, values = self._actions, self._states, self._values
        while states[-1] != self._last:
            action = actions[states[-1]].get("$END")
            if action is None:
                raise Rejected
            size, callback, name = action
            begin = len(values) - size
            parts = values[begin:]
            del values[begin:]
            del states[len(states) - size :]
            states.append(actions[states[-1]][name][0])
            values.append(callback(parts))
        return values[-1]


@cache
def lark_parser() -> Lark:
    """Lark with the grammar and the builder; its strict mode refuses conflicts."""
    grammar = resources.files("evermat.language.syntax").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        start="statement",
        parser="lalr",
        lexer=Lexer,
        strict=True,
        transformer=Builder(),
        cache=cached_file("grammar") or False,
    )


@cache
def parse_tables() -> Tables:
    """The tables of the grammar."""
    return Tables(lark_parser())


@cache
def lexer() -> Lexer:
    """The lexer that lark made from the terminals of the grammar."""
    lexer: Lexer = lark_parser().parser.lexer.lexer
    return lexer
