"""Tokens to syntax tree, by lark's LALR(1) parser.

The parser is fed token by token. After an error it skips to the end of the clause or to the next directive and
starts afresh there, so that one mistake does not hide the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark, Transformer, v_args
from lark.exceptions import UnexpectedToken
from lark.lexer import Token

from evermat import errors
from evermat.caching import cached_file
from evermat.errors import Problems, did_you_mean
from evermat.program.automaton import Automaton, Rejected
from evermat.program.lexer import CALLABLE, QUALIFIERS, REFUSED_DIRECTIVES, Lexer
from evermat.program.operators import group_operators
from evermat.program.syntax import (
    Aggregate,
    And,
    Atom,
    Attribute,
    Call,
    Cast,
    Clause,
    Compare,
    Declaration,
    Directive,
    Expression,
    Formula,
    Ignored,
    Literal,
    Name,
    Not,
    Or,
    Parameter,
    Statement,
    Truth,
    TypeDeclaration,
    Unread,
    Var,
    Wildcard,
)
from evermat.program.terms import BadEscapeError, literal_term, unescape
from evermat.source import Source, Span

DEPTH_LIMIT = 200
_NESTING_LIMIT = 5 * DEPTH_LIMIT  # of parentheses, most of which leave nothing in the tree
_BRACKETS = {"LPAR": 1, "LBRACE": 1, "RPAR": -1, "RBRACE": -1}
_SIGNS = frozenset({"NOT", "MINUS", "UNARY"})
_SKIP_LIMIT = 20_000  # tokens after a mistake among which the next statement must begin
_INDENT = 200  # blanks before a line that are looked at
_SHOWN = 40  # characters of an unexpected token that are shown
_IDENTIFIER = re.compile(r"[A-Za-z0-9_?]+")

_REFUSED_PUNCTUATION = {
    "[": ("records", "use one column for each field"),
    "{": ("algebraic data types", "use one relation for each constructor"),
    "$": ("algebraic data types and `$`", "use one relation for each constructor, and columns as keys"),
    "@": ("user-defined functors", "compute the value before it is read, or in rules"),
    "#": ("preprocessor directives", "put everything into one file"),
    "nil": ("records", "use one column for each field"),
    "choice": ("choice domains", "state the choice as an aggregate such as `min`"),
    "autoinc": ("counters with side effects", "number the facts before they are read"),
    "range": ("generators", "list the numbers in a relation, or derive them by `n + 1` with a bound"),
    "<=": ("subsumption rules", "use an aggregate such as `min` or `max`"),
}
_REFUSED_DIRECTIVE = {
    ".comp": ("components", "write the rules out"),
    ".init": ("components", "write the rules out"),
    ".override": ("components", "write the rules out"),
    ".functor": ("user-defined functors", "compute the value before it is read, or in rules"),
    ".include": ("included files", "put everything into one file"),
    ".lattice": ("lattices", "use an aggregate such as `min` or `max`"),
    ".once": ("included files", "put everything into one file"),
}
_READABLE = {
    "WORD": "a name",
    "NUMBER": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "IRI": "an IRI",
    "PREFIXED": "a prefixed name",
    "PREFIX_NAME": "a prefix such as `ub:`",
    "COMPARISON": "a comparison",
    "FUNCTION": "a function",
    "QUALIFIER": "a qualifier",
    "$END": "the next statement",
}
_FUNCTIONS = [name for name, terminal in CALLABLE.items() if terminal == "FUNCTION"]
_FOREIGN = {  # how other languages write things: what is unexpected, and how it is written here
    "==": "equality is written `=`",
    "&&": "`,` stands for 'and'",
    "||": "`;` stands for 'or'",
    "<-": "a rule is written `head :- body.`",
    "not": "negation is written `!`",
    "'": "strings stand in double quotes",
}


def parse(source: Source, problems: Problems) -> list[Statement]:
    """All statements of a text that can be read; what cannot goes to `problems`."""
    lark = _parser()
    tokens = _Tokens(_lexer().tokens(source.text), source.text)
    statements: list[Statement] = []
    while not tokens.at_end:
        try:
            statement = _read_statement(lark, tokens)
        except _UnexpectedError as error:
            _report(error.token, error.accepted, tokens, source, problems)
            statements += tokens.skip_statement(ended="DOT" in error.accepted)
        except _SyntaxProblem as problem:
            problems.add(problem.kind, problem.span, **problem.details)
            statements += tokens.skip_statement()
        except _HopelessError as problem:
            problems.add(errors.TOO_DEEP, problem.span, limit=DEPTH_LIMIT)
            return []
        else:
            if tokens.read > DEPTH_LIMIT and (span := _too_deep(statement)):
                problems.add(errors.TOO_DEEP, span, limit=DEPTH_LIMIT)
            elif statement is not None:
                statements.append(statement)
        if len(problems) > problems.LIMIT or tokens.abandoned:
            return []  # this is no program: what else there is to say about it would help nobody
    return statements


def _read_statement(lark: Lark, tokens: _Tokens) -> Statement | None:
    """One statement. A clause ends with its dot, a directive where the next token cannot belong to it."""
    tokens.begin_statement()
    automaton = _automaton()
    automaton.start()
    brackets = signs = 0  # open ones, and those in a row
    while True:
        token = tokens.peek()
        kind = token.type
        brackets += _BRACKETS.get(kind, 0)
        signs = signs + 1 if kind in _SIGNS else 0
        if brackets > _NESTING_LIMIT or signs > _NESTING_LIMIT:
            raise _HopelessError(_span(token))
        try:
            if kind == "$END":
                return _finished(automaton)
            automaton.feed(token)
        except Rejected:
            if kind not in ("$END", "DOT", "LBRACE"):  # a directive may have ended before this token
                with suppress(Rejected):
                    return _finished(automaton)
            raise _unexpected(token, lark, tokens) from None
        tokens.advance()
        if kind == "DOT":
            return _finished(automaton)


def _finished(automaton: Automaton) -> Statement | None:
    statement: Statement | None = automaton.finish()
    return statement


class _UnexpectedError(Exception):
    """A token that cannot stand where it stands, and the terminals that could."""

    def __init__(self, token: Token, accepted: set[str]) -> None:
        super().__init__()
        self.token, self.accepted = token, accepted


def _unexpected(token: Token, lark: Lark, tokens: _Tokens) -> _UnexpectedError:
    """Asks lark's interactive parser what it would have taken instead."""
    parser: Any = lark.parse_interactive()
    for before in tokens.statement:
        parser.feed_token(before)
    with suppress(UnexpectedToken):
        parser.feed_token(token)
    return _UnexpectedError(token, parser.accepts())


class _Tokens:
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
        self.last, self._ahead = self.peek(), None
        self.statement.append(self.last)
        self.read += 1
        return self.last

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
        return self._text[token.end_pos or 0 :][:1].isalpha()

    def skip_statement(self, *, ended: bool = False) -> list[Statement]:
        """Goes on at the next statement; hands back the names that the broken one declares.

        That is behind the next clause's end, at the next directive, or, where a clause could have `ended`, at the
        next line. A component is skipped as a whole, and a directive up to a line that is not indented.
        """
        first = self.statement[0] if self.statement else self.peek()
        found: list[Statement] = [Unread(first.value, names)] if (names := _declared(self.statement)) else []
        if self.read and self._is_behind(ended):
            return found
        component, depth = self.peek().value in (".comp", ".lattice"), 0
        directive = _begins_directive(first) or first.type == "PROBLEM"
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
            elif self._ends_statement(token) or (directive and self.begins_line(indented=False)):
                break
        return found

    def _ends_statement(self, token: Token) -> bool:
        return token.type == "DOT" or _begins_directive(self.peek()) or _is_rest_of_line(token)

    def _is_behind(self, ended: bool) -> bool:
        """Whether the broken statement is already behind us."""
        read_whole = self.last is not None and self.last.type == "DOT"
        return read_whole or _begins_directive(self.peek()) or (ended and self.begins_line(indented=True))


def _begins_directive(token: Token) -> bool:
    return token.value.startswith(".") and len(token.value) > 1


def _is_rest_of_line(token: Token) -> bool:
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


class _HopelessError(Exception):
    """Nested so deeply that reading on would only take time."""

    def __init__(self, span: Span) -> None:
        super().__init__()
        self.span = span


class _SyntaxProblem(Exception):  # noqa: N818
    """Something that the grammar allows but that has no meaning, found while a statement is built."""

    def __init__(self, kind: errors.Kind, span: Span, **details: Any) -> None:
        super().__init__()
        self.kind, self.span, self.details = kind, span, details


# --- reporting ---------------------------------------------------------------------------------------------


def _report(token: Token, accepted: set[str], tokens: _Tokens, source: Source, problems: Problems) -> None:
    """Says what is wrong at a token that cannot stand where it stands."""
    text, last = token.value, tokens.last
    if tokens.read and last is not None and (token.type == "$END" or _begins_directive(token)):
        end = last.end_pos or 0
        problems.add(errors.UNEXPECTED_END, Span(end - 1, end), expected=_expected(accepted, tokens))
        return
    span = _span(token)
    if token.type == "PROBLEM" and text.startswith("/*"):
        problems.add(errors.OPEN_COMMENT, Span(span.start, span.start + 2))
    elif token.type == "PROBLEM" and text.startswith('"'):
        problems.add(errors.OPEN_STRING, Span(span.start, span.start + len(text.rstrip())))
    elif text in REFUSED_DIRECTIVES:
        what, instead = _REFUSED_DIRECTIVE[text]
        problems.add(errors.REFUSED, span, what=what, name=text, instead=instead)
    elif token.type == "PROBLEM" and _begins_directive(token):
        problems.add(errors.BAD_DIRECTIVE, span, did_you_mean(text, _lexer().directives), name=text)
    elif refused := _refusal(token, tokens, source):
        (what, instead), name, place = refused
        problems.add(errors.REFUSED, place, what=what, name=name, instead=instead)
    elif token.type == "PROBLEM" and _is_word(text):
        known = ", ".join(f"`{name}`" for name in sorted(QUALIFIERS))
        problems.add(errors.BAD_QUALIFIER, span, did_you_mean(text, QUALIFIERS), name=text, known=known)
    elif token.type == "PROBLEM":
        hint = _FOREIGN.get(text, "")
        problems.add(errors.BAD_CHARACTER, Span(span.start, span.start + 1), hint, character=text[0])
    elif (prefix := _unknown_prefix(token, last, source)) is not None:
        problems.add(errors.UNKNOWN_PREFIX, Span(prefix.start_pos or 0, (prefix.end_pos or 0) + 1), name=prefix.value)
    elif token.type == "LPAR" and last is not None and last.type == "WORD" and "OPERATOR" in accepted:
        problems.add(errors.UNKNOWN_FUNCTION, _span(last), did_you_mean(last.value, _FUNCTIONS), name=last.value)
    elif what := _reserved_for(token, accepted, tokens):
        problems.add(errors.RESERVED, span, name=text, what=what)
    else:
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
        hint = _hint(token, accepted, tokens, source)
        problems.add(errors.UNEXPECTED, span, hint, found=f"`{shown}`", expected=_expected(accepted, tokens))


def _is_word(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None


def _unknown_prefix(token: Token, last: Token | None, source: Source) -> Token | None:
    """The word before a colon that would be a prefix if it were declared."""
    if token.type == "COLON":
        return last if last is not None and last.type == "WORD" and last.end_pos == token.start_pos else None
    after_datatype = token.type == "WORD" and last is not None and last.type == "DATATYPE"
    return token if after_datatype and source.text.startswith(":", token.end_pos or 0) else None


def _reserved_for(token: Token, accepted: set[str], tokens: _Tokens) -> str:
    """What a reserved word was meant to name, if it was."""
    if not _is_word(token.value):
        return ""
    last = tokens.last.type if tokens.last is not None and tokens.read else ""
    if token.type in ("FUNCTION", "TEST", "AS") and last in ("", "DECL", "COMMA"):
        return "a relation"
    if token.type in _WORDS and last in ("", "DECL", "IO"):
        return "a relation"
    if token.type in _WORDS and last in ("TYPE", "OLD_TYPE"):
        return "a type"
    if token.type in _WORDS and last in ("LPAR", "COMMA") and "WORD" in accepted:
        return "a column or variable"
    return ""


_WORDS = frozenset(["TRUE", "FALSE", "COUNT", "SUM", "EXTREMUM", "OPERATOR", "UNARY"])


def _hint(token: Token, accepted: set[str], tokens: _Tokens, source: Source) -> str:
    """How to write what other languages write otherwise, or where a dot is missing."""
    last, start = tokens.last, token.start_pos or 0
    if last is not None and last.value in _FOREIGN:
        return _FOREIGN[last.value]
    for begin in (start, start - 1):
        if hint := _FOREIGN.get(source.text[begin : begin + 2]):
            return hint
    if last is not None and "DOT" in accepted and tokens.begins_line(indented=True):
        return f"is a `.` missing at the end of line {source.place(last.start_pos or 0).line}?"
    return ""


def _refusal(token: Token, tokens: _Tokens, source: Source) -> tuple[tuple[str, str], str, Span] | None:
    """What a token stands for in Soufflé, if that is something that is not supported; its name and place."""
    text, last, span = token.value, tokens.last, _span(token)
    if token.type == "PROBLEM":
        name = text if text in _REFUSED_PUNCTUATION else text[0]
        if name in _REFUSED_PUNCTUATION:
            shown = name
            if name == "#":
                shown = text.split(None, 1)[0]
            elif name == "choice" and source.text.startswith("-domain", span.end):
                shown = "choice-domain"
            elif name in "@$" and (word := _IDENTIFIER.match(source.text, span.start + 1)):
                shown = name + word.group()
            return _REFUSED_PUNCTUATION[name], shown, Span(span.start, span.start + len(shown))
    if token.type == "LANGUAGE":
        return _REFUSED_PUNCTUATION["@"], text, span
    if text == "{" and last is not None and last.type == "WORD":
        return _REFUSED_PUNCTUATION["{"], last.value, _span(last)
    if text == "<=" and last is not None and last.type == "RPAR":
        return _REFUSED_PUNCTUATION["<="], "<=", span
    if tokens.is_qualified and last is not None and (word := _IDENTIFIER.match(source.text, span.end)):
        return _REFUSED_DIRECTIVE[".comp"], f"{last.value}.{word.group()}", Span(last.start_pos or 0, word.end())
    return None


def _expected(accepted: set[str], tokens: _Tokens) -> str:
    """What could have come instead, in words."""
    accepted = set(accepted)
    names = []
    in_clause = not tokens.statement or not _begins_directive(tokens.statement[0])
    if "DECL" in accepted:
        return "a fact, a rule or a directive"
    if accepted == {"COLON"}:
        return "`:` and the body of an aggregate, as in `n = count : { a(x) }`" if in_clause else "`:` and a type"
    if not in_clause and tokens.peek().type == "DOT" and "$END" in accepted:
        return "the next statement: a directive ends without a dot"
    if "MINUS" in accepted and "WORD" in accepted:  # an expression may begin here: do not list all ways
        accepted -= {"MINUS", "UNARY", "NUMBER", "FLOAT", "STRING", "IRI", "PREFIXED", "LPAR", "UNDERSCORE"}
        accepted -= {"FUNCTION", "EXTREMUM", "SUM", "COUNT", "AS", "WORD"}
        formula = {"NOT", "TRUE", "FALSE", "TEST"}
        names = ["an atom or a comparison" if formula <= accepted else "an expression"]
        accepted -= formula
    if accepted >= {"WORD", "IRI"}:
        accepted -= {"IRI", "PREFIXED"}
    if "COMPARISON" in accepted:
        accepted -= {"EQUAL"}
    if "OPERATOR" in accepted:
        accepted -= {"OPERATOR", "MINUS", "LANGUAGE", "DATATYPE"}
        names.append("an operator")
    names += sorted({_READABLE.get(name) or _quoted(name) for name in accepted})
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}" if names else "nothing more"


@cache
def _quoted(terminal: str) -> str:
    """A terminal as it is written."""
    for definition in _parser().terminals:
        if definition.name == terminal and definition.pattern.type == "str":
            return f"`{definition.pattern.value}`"
    return f"`{terminal.lower()}`"


def _too_deep(statement: Statement | None) -> Span | None:
    """The place of an expression or formula nested deeper than the limit; walks without recursion."""
    if not isinstance(statement, Clause):
        return None
    level: list[Any] = [*statement.heads, *([statement.body] if statement.body is not None else [])]
    for _ in range(DEPTH_LIMIT):
        below: list[Any] = []
        for node in level:
            match node:
                case Atom() | Call():
                    below += node.arguments
                case And() | Or():
                    below += node.parts
                case Not():
                    below.append(node.formula)
                case Compare():
                    below += (node.left, node.right)
                case Cast():
                    below.append(node.argument)
                case Aggregate():
                    below.append(node.body)
                    if node.value is not None:
                        below.append(node.value)
        if not below:
            return None
        level = below
    return statement.span


# --- building the tree -------------------------------------------------------------------------------------


@cache
def _parser() -> Lark:
    grammar = resources.files("evermat.program").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        start="statement",
        parser="lalr",
        lexer=Lexer,
        strict=True,
        transformer=_Builder(),
        cache=cached_file("grammar") or False,
    )


@cache
def _automaton() -> Automaton:
    return Automaton(_parser())


@cache
def _lexer() -> Lexer:
    lexer: Lexer = _parser().parser.lexer.lexer
    return lexer


def _span(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0)


def _name(token: Token) -> Name:
    return Name(token.value, _span(token))


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Makes the nodes of the tree while lark reduces; keeps nothing between calls."""

    def declaration(self, keyword: Token, names: list[Name], attributes: list[Attribute] | None, *rest: Token) -> Any:
        return Declaration(names, attributes or [], [_name(t) for t in rest], _span(keyword))

    def subtype(self, keyword: Token, name: Token, parent: Token) -> Any:
        return TypeDeclaration(_name(name), True, [_name(parent)], _span(keyword))

    def union(self, keyword: Token, name: Token, *members: Token) -> Any:
        return TypeDeclaration(_name(name), False, [_name(m) for m in members], _span(keyword))

    def bare_type(self, keyword: Token, name: Token) -> Any:
        return TypeDeclaration(_name(name), True, [Name("symbol", _span(name))], _span(keyword))

    def old_type(self, keyword: Token, name: Token) -> Any:
        primitive = keyword.value[1:].partition("_")[0]
        return TypeDeclaration(_name(name), True, [Name(primitive, _span(name))], _span(keyword))

    def directive(self, keyword: Token, names: list[Name], parameters: list[Parameter] | None) -> Any:
        if keyword.value == ".limitsize":
            return Ignored(keyword.value, _span(keyword))
        return Directive(keyword.value, names, parameters or [], _span(keyword))

    def prefix(self, *_tokens: Token) -> None:
        """Nothing to build: the lexer has taken note of it."""

    def ignored(self, keyword: Token, *_rest: Any) -> Any:
        return Ignored(keyword.value, _span(keyword))

    def fact(self, heads: list[Atom]) -> Any:
        return Clause(heads, None, Span(heads[0].span.start, heads[-1].span.end))

    def rule(self, heads: list[Atom], body: Formula) -> Any:
        return Clause(heads, body, Span(heads[0].span.start, heads[-1].span.end))

    def names(self, *tokens: Token) -> list[Name]:
        return [_name(t) for t in tokens]

    def attributes(self, *attributes: Attribute) -> list[Attribute]:
        return list(attributes)

    def attribute(self, name: Token, type_: Token) -> Attribute:
        return Attribute(name.value, _name(type_), _span(name))

    def parameters(self, *parameters: Parameter) -> list[Parameter]:
        return list(parameters)

    def parameter(self, key: Token, value: Token) -> Parameter:
        text = _string(value) if value.type == "STRING" else value.value
        return Parameter(key.value, text, Span(key.start_pos or 0, value.end_pos or 0))

    def plan_item(self, *_tokens: Token) -> None:
        """Plans of our own are made instead."""

    def heads(self, *atoms: Atom) -> list[Atom]:
        return list(atoms)

    def atom(self, name: Token, arguments: list[Expression] | None, end: Token) -> Atom:
        return Atom(_name(name), arguments or [], Span(name.start_pos or 0, end.end_pos or 0))

    def arguments(self, *arguments: Expression) -> list[Expression]:
        return list(arguments)

    def disjunction(self, *parts: Formula) -> Formula:
        return Or(list(parts))

    def conjunction(self, *parts: Formula) -> Formula:
        return And(list(parts))

    def truth(self, token: Token) -> Truth:
        return Truth(token.type == "TRUE", _span(token))

    def negation(self, sign: Token, formula: Formula) -> Not:
        return Not(formula, _span(sign))

    def group(self, inner: Any) -> Any:
        return inner

    def comparison(self, left: Expression, *rest: Any) -> Compare:
        operator, right = ("=", rest[0]) if len(rest) == 1 else (rest[0].value, rest[1])
        return Compare(operator, left, right, Span(left.span.start, right.span.end))

    def test(self, name: Token, left: Expression, right: Expression, end: Token) -> Compare:
        return Compare(name.value, left, right, Span(name.start_pos or 0, end.end_pos or 0))

    def operation(self, *parts: Any) -> Expression:
        return group_operators(list(parts))

    def variable(self, name: Token) -> Var:
        return Var(name.value, _span(name))

    def wildcard(self, token: Token) -> Wildcard:
        return Wildcard(_span(token))

    def number(self, token: Token) -> Literal:
        text = token.value
        if token.type == "FLOAT":
            return Literal("float", float(text), _span(token))
        digits = text.rstrip("u")
        base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 10)
        if len(digits) > 80:
            raise _SyntaxProblem(
                errors.OUT_OF_RANGE,
                _span(token),
                value=digits[:20] + "…",
                type="number",
                range="it has too many digits",
            )
        return Literal("unsigned" if text.endswith("u") else "integer", int(digits, base), _span(token))

    def string(self, token: Token, suffix: Token | None = None) -> Literal:
        text = _string(token)
        if suffix is None:
            return Literal("string", text, _span(token))
        span = Span(token.start_pos or 0, suffix.end_pos or 0)
        if suffix.type == "LANGUAGE":
            return Literal("term", literal_term(text, language=suffix.value[1:]), span)
        return Literal("term", literal_term(text, datatype=suffix.value[1:-1]), span)

    def iri(self, token: Token) -> Literal:
        return Literal("term", token.value, _span(token))

    def call(self, name: Token, *rest: Any) -> Call:
        *arguments, end = rest
        flat: list[Expression] = []
        for argument in arguments:
            flat += argument if isinstance(argument, list) else [argument] if argument is not None else []
        return Call(name.value, flat, Span(name.start_pos or 0, end.end_pos or 0))

    def cast(self, keyword: Token, argument: Expression, type_: Token, end: Token) -> Cast:
        return Cast(argument, _name(type_), Span(keyword.start_pos or 0, end.end_pos or 0))

    def count(self, keyword: Token, body: Formula) -> Aggregate:
        return Aggregate("count", None, body, _span(keyword))

    def aggregate(self, keyword: Token, value: Expression, body: Formula) -> Aggregate:
        return Aggregate(keyword.value, value, body, _span(keyword))


def _string(token: Token) -> str:
    """The text of a string token, with its escapes resolved."""
    try:
        return unescape(token.value[1:-1])
    except BadEscapeError as error:
        sequence, offset = error.args
        start = (token.start_pos or 0) + 1 + offset
        raise _SyntaxProblem(errors.BAD_ESCAPE, Span(start, start + len(sequence)), escape=sequence) from None
