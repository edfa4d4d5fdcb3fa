"""The nodes of the syntax tree, made while lark's tables are reduced."""

from __future__ import annotations

from typing import Any

from lark import Transformer

from evermat.core import Kind, Span
from evermat.core import error_catalogue as errors
from evermat.language.builtins import NEGATION
from evermat.language.syntax import ast
from evermat.language.syntax.tokens import Token
from evermat.language.terms import SAME_AS, BadEscapeError, literal_term, unescape

# The precedence of operators, from loosest to tightest, as in Soufflé.
_LEVELS = ["lor", "lxor", "land", "bor", "bxor", "band", "bshl bshr bshru", "+ -", "* / %", "sign", "^"]
_PRECEDENCE = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators.split()}


class SyntaxProblem(Exception):  # noqa: N818
    """Something that the grammar allows but that has no meaning, found while a statement is built."""

    def __init__(self, kind: Kind, span: Span, **details: Any) -> None:
        super().__init__()
        self.kind, self.span, self.details = kind, span, details


def span_of(token: Token) -> Span:
    """The place of a token."""
    return Span(token.start_pos, token.end_pos)


def name_of(token: Token) -> ast.Name:
    """A token as a name."""
    return ast.Name(token.value, span_of(token))


def _spreading(builder: type[Any]) -> Any:
    """Calls methods with lists of children as their arguments, as lark's `v_args` does, but in one step instead of three."""
    for name, method in list(vars(builder).items()):
        if not name.startswith("_"):
            setattr(builder, name, lambda self, children, method=method: method(self, *children))
    return builder


@_spreading
class Builder(Transformer[Token, Any]):
    """Makes the nodes of the tree while lark reduces; keeps nothing between calls."""

    def declaration(
        self, keyword: Token, names: list[ast.Name], attributes: list[ast.Attribute] | None, *rest: Token
    ) -> Any:
        return ast.Declaration(names, attributes or [], [name_of(t) for t in rest], span_of(keyword))

    def subtype(self, keyword: Token, name: Token, parent: Token) -> Any:
        return ast.TypeDeclaration(name_of(name), True, [name_of(parent)], span_of(keyword))

    def union(self, keyword: Token, name: Token, *members: Token) -> Any:
        return ast.TypeDeclaration(name_of(name), False, [name_of(m) for m in members], span_of(keyword))

    def bare_type(self, keyword: Token, name: Token) -> Any:
        return ast.TypeDeclaration(name_of(name), True, [ast.Name("symbol", span_of(name))], span_of(keyword))

    def old_type(self, keyword: Token, name: Token) -> Any:
        primitive = keyword.value[1:].partition("_")[0]
        return ast.TypeDeclaration(name_of(name), True, [ast.Name(primitive, span_of(name))], span_of(keyword))

    def directive(self, keyword: Token, names: list[ast.Name], parameters: list[ast.Parameter] | None) -> Any:
        if keyword.value == ".limitsize":
            return ast.Ignored(keyword.value, span_of(keyword))
        return ast.Directive(keyword.value, names, parameters or [], span_of(keyword))

    def prefix(self, *_tokens: Token) -> None:
        """Nothing to build: the lexer has taken note of it."""

    plan_item = prefix  # plans of our own are made instead

    def pragma(self, keyword: Token, key: Token, value: Token | None) -> Any:
        span = Span(keyword.start_pos, (value or key).end_pos)
        return ast.Pragma(_string(key), _string(value) if value else "", span)

    def ignored(self, keyword: Token, *_rest: Any) -> Any:
        return ast.Ignored(keyword.value, span_of(keyword))

    def rule(self, heads: list[ast.Atom], body: ast.Formula | None = None) -> Any:
        return ast.Clause(heads, body, Span(heads[0].span.start, heads[-1].span.end))

    fact = rule

    def names(self, *tokens: Token) -> list[ast.Name]:
        return [name_of(t) for t in tokens]

    def attribute(self, name: Token, type_: Token) -> ast.Attribute:
        return ast.Attribute(name.value, name_of(type_), span_of(name))

    def parameter(self, key: Token, value: Token) -> ast.Parameter:
        text = _string(value) if value.type == "STRING" else value.value
        return ast.Parameter(key.value, text, Span(key.start_pos, value.end_pos))

    def heads(self, *items: Any) -> list[Any]:
        return list(items)

    attributes = parameters = arguments = heads

    def equation(self, left: ast.Expression, right: ast.Expression) -> ast.Equation:
        span = Span(left.span.start, right.span.end)
        return ast.Equation(ast.Name(SAME_AS, span), [left, right], span)

    def atom(self, name: Token, arguments: list[ast.Expression] | None, end: Token) -> ast.Atom:
        return ast.Atom(name_of(name), arguments or [], Span(name.start_pos, end.end_pos))

    def disjunction(self, *parts: ast.Formula) -> ast.Formula:
        return ast.Or(list(parts))

    def conjunction(self, *parts: ast.Formula) -> ast.Formula:
        return ast.And(list(parts))

    def truth(self, token: Token) -> ast.Truth:
        return ast.Truth(token.type == "TRUE", span_of(token))

    def negation(self, sign: Token, formula: ast.Formula) -> ast.Not:
        return ast.Not(formula, span_of(sign))

    def group(self, inner: Any) -> Any:
        return inner

    def comparison(self, left: ast.Expression, *rest: Any) -> ast.Compare:
        operator, right = ("=", rest[0]) if len(rest) == 1 else (rest[0].value, rest[1])
        return ast.Compare(operator, left, right, Span(left.span.start, right.span.end))

    def test(self, name: Token, left: ast.Expression, right: ast.Expression, end: Token) -> ast.Compare:
        return ast.Compare(name.value, left, right, Span(name.start_pos, end.end_pos))

    def operation(self, *parts: Any) -> ast.Expression:
        return _grouped(list(parts))

    def variable(self, name: Token) -> ast.Var:
        return ast.Var(name.value, span_of(name))

    def wildcard(self, token: Token) -> ast.Wildcard:
        return ast.Wildcard(span_of(token))

    def number(self, token: Token) -> ast.Literal:
        text = token.value
        if token.type == "FLOAT":
            return ast.Literal("float", float(text), span_of(token))
        digits = text.rstrip("u")
        base = {"0x": 16, "0b": 2}.get(digits[:2].lower(), 10)
        if len(digits) > 80:
            details = {"value": digits[:20] + "…", "type": "number", "range": "it has too many digits"}
            raise SyntaxProblem(errors.OUT_OF_RANGE, span_of(token), **details)
        return ast.Literal("unsigned" if text.endswith("u") else "integer", int(digits, base), span_of(token))

    def string(self, token: Token, suffix: Token | None = None) -> ast.Literal:
        text = _string(token)
        if suffix is None:
            return ast.Literal("string", text, span_of(token))
        span = Span(token.start_pos, suffix.end_pos)
        if suffix.type == "LANGUAGE":
            return ast.Literal("term", literal_term(text, language=suffix.value[1:]), span)
        return ast.Literal("term", literal_term(text, datatype=suffix.value[1:-1]), span)

    def iri(self, token: Token) -> ast.Literal:
        return ast.Literal("term", token.value, span_of(token))

    def call(self, name: Token, *rest: Any) -> ast.Call:
        *arguments, end = rest
        flat: list[ast.Expression] = []
        for argument in arguments:
            flat += argument if isinstance(argument, list) else [argument] if argument is not None else []
        return ast.Call(name.value, flat, Span(name.start_pos, end.end_pos))

    def cast(self, keyword: Token, argument: ast.Expression, type_: Token, end: Token) -> ast.Cast:
        return ast.Cast(argument, name_of(type_), Span(keyword.start_pos, end.end_pos))

    def count(self, keyword: Token, body: ast.Formula) -> ast.Aggregate:
        return ast.Aggregate(keyword.value, None, body, span_of(keyword))

    def aggregate(self, keyword: Token, value: ast.Expression, body: ast.Formula) -> ast.Aggregate:
        return ast.Aggregate(keyword.value, value, body, span_of(keyword))


def _string(token: Token) -> str:
    try:
        return unescape(token.value[1:-1])
    except BadEscapeError as error:
        sequence, offset = error.args
        start = token.start_pos + 1 + offset
        raise SyntaxProblem(errors.BAD_ESCAPE, Span(start, start + len(sequence)), escape=sequence) from None


def _grouped(parts: list[ast.Expression | Token]) -> ast.Expression:
    """The tree of a flat list of operands and operator tokens: `-x ^ 2 + y` is `(-(x ^ 2)) + y`."""
    operands: list[ast.Expression] = []
    waiting: list[tuple[int, Token]] = []  # operators whose right side is still being read, with their levels
    is_sign = True
    for part in parts:
        if not isinstance(part, Token):
            operands.append(part)
            is_sign = False
            continue
        level = _PRECEDENCE["sign" if is_sign else part.value]
        # `^` groups to the right, everything else to the left
        while not is_sign and waiting and (waiting[-1][0] > level or (waiting[-1][0] == level and part.value != "^")):
            _apply(*waiting.pop(), operands)
        waiting.append((level, part))
        is_sign = True
    while waiting:
        _apply(*waiting.pop(), operands)
    return operands[0]


def _apply(level: int, operator: Token, operands: list[ast.Expression]) -> None:
    """Replaces the last operands by the operator applied to them."""
    right = operands.pop()
    if level == _PRECEDENCE["sign"]:
        operands.append(_signed(operator.value, right, operator.start_pos))
    else:
        left = operands.pop()
        operands.append(ast.Call(operator.value, [left, right], Span(left.span.start, right.span.end)))


def _signed(sign: str, operand: ast.Expression, start: int) -> ast.Expression:
    span = Span(start, operand.span.end)
    if sign != "-":
        return ast.Call(sign, [operand], span)
    if isinstance(operand, ast.Literal) and operand.kind in ("integer", "float"):
        return ast.Literal(operand.kind, -operand.value, span)  # type: ignore[operator]
    return ast.Call(NEGATION, [operand], span)
