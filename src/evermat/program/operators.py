"""The precedence of operators, from loosest to tightest, as in Soufflé."""

from __future__ import annotations

from typing import Any

from evermat.program.syntax import Call, Expression, Literal
from evermat.source import Span

_LEVELS = ["lor", "lxor", "land", "bor", "bxor", "band", "bshl bshr bshru", "+ -", "* / %", "sign", "^"]
_PRECEDENCE = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators.split()}


def group_operators(parts: list[Any]) -> Expression:
    """The tree of a flat list of operands and operator tokens: `-x ^ 2 + y` is `(-(x ^ 2)) + y`."""
    parts.reverse()
    return _climb(parts, 0)


def _climb(parts: list[Any], loosest: int) -> Expression:
    """Takes operands and operators that bind at least as tightly as `loosest` from the end of the list."""
    first = parts.pop()
    if hasattr(first, "start_pos"):  # a sign
        left = _signed(first.value, _climb(parts, _PRECEDENCE["sign"]), first.start_pos)
    else:
        left = first
    while parts and (level := _PRECEDENCE[parts[-1].value]) >= loosest:
        operator = parts.pop().value
        # `^` groups to the right, everything else to the left
        right = _climb(parts, level if operator == "^" else level + 1)
        left = Call(operator, [left, right], Span(left.span.start, right.span.end))
    return left


def _signed(sign: str, operand: Expression, start: int) -> Expression:
    span = Span(start, operand.span.end)
    if sign != "-":
        return Call(sign, [operand], span)
    if isinstance(operand, Literal) and operand.kind in ("integer", "float"):
        return Literal(operand.kind, -operand.value, span)  # type: ignore[operator]
    return Call("neg", [operand], span)
