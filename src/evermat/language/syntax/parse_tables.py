"""The grammar's tables: made by lark, kept between runs, and run by an automaton of our own."""

from __future__ import annotations

from functools import cache
from importlib import resources

from lark import Lark

from evermat.core import cached_file
from evermat.language.syntax.lalr import Automaton
from evermat.language.syntax.lexer import Lexer
from evermat.language.syntax.tree_builder import Builder


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
def automaton() -> Automaton:
    """The automaton; it keeps nothing between statements."""
    return Automaton(lark_parser())


@cache
def lexer() -> Lexer:
    """The lexer that lark made from the terminals of the grammar."""
    lexer: Lexer = lark_parser().parser.lexer.lexer
    return lexer
