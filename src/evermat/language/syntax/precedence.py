"""The precedence of operators, from loosest to tightest, as in Soufflé."""

from __future__ import annotations

from evermat.core import Span
from evermat.language.syntax.ast import Call, Expression, Literal
from evermat.language.syntax.tokens import Token

_LEVELS = ["lor", "lxor", "land", "bor", "bxor", "band", "bshl bshr bshru", "+ -", "* / %", "sign", "^"]
_PRECEDENCE = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators.split()}


def group_operators(parts: list[Expression | Token]) -> Expression:
    """The tree of a flat list of operands and operator tokens: `-x ^ 2 + y` is `(-(x ^ 2)) + y`."""
    operands: list[Expression] = []
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


def _apply(level: int, operator: Token, operands: list[Expression]) -> None:
    """Replaces the last operands by the operator applied to them."""
    right = operands.pop()
    if level == _PRECEDENCE["sign"]:
        operands.append(_signed(operator.value, right, operator.start_pos))
    else:
        left = operands.pop()
        operands.append(Call(operator.value, [left, right], Span(left.span.start, right.span.end)))


def _signed(sign: str, operand: Expression, start: int) -> Expression:
    span = Span(start, operand.span.end)
    if sign != "-":
        return Call(sign, [operand], span)
    if isinstance(operand, Literal) and operand.kind in ("integer", "float"):
        return Literal(operand.kind, -operand.value, span)  # type: ignore[operator]
    return Call("neg", [operand], span)
