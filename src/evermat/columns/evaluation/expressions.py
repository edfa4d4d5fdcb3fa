"""Built-in functions and tests over columns.

The vectorised forms agree with the scalar ones in `language.builtins`, which are the reference: what has no value there
is masked out here. Functions without a form of their own are computed once for each distinct combination of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from evermat.columns.storage.arrays import Batch, Mask, Numbers
from evermat.columns.storage.dictionary import Dictionary, Ids
from evermat.columns.storage.encoding import as_typed, decode_column, encode
from evermat.core import ask_for, awaited, check_stop
from evermat.language import (
    NEGATION,
    Apply,
    Constant,
    Expression,
    Test,
    Type,
    Variable,
    evaluate,
    fault_of_pattern,
    holds,
)

Result = tuple[Numbers, Mask | None]  # values, and where there is one (None: everywhere)
Evaluate = Callable[[Batch, int], Result]
_Operation = Callable[..., tuple[Any, Any]]

_COPIES = 6  # of a text that is made: the arguments, the text, its bytes, and where it is kept
_LONG = 1 << 18  # bytes of texts that are tested at a time, if no single one has more
_MIN, _MAX = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def compile_expression(expression: Expression, registers: Mapping[Variable, int], dictionary: Dictionary) -> Evaluate:
    """A function from a batch of bindings to the values of the expression."""
    match expression:
        case Constant(value, type_):
            constant = np.array(encode(value, type_, dictionary), np.int64)
            return lambda _batch, _n: (constant, None)
        case Variable():
            register = registers[expression]
            return lambda batch, n: (batch[register, :n], None)
        case Apply():
            return _compile_apply(expression, registers, dictionary)


def compile_test(
    test: Test, registers: Mapping[Variable, int], dictionary: Dictionary
) -> Callable[[Batch, int], tuple[Mask, Mask | None]]:
    """A function from a batch of bindings to where the test holds, and where both sides have a value."""
    left = compile_expression(test.left, registers, dictionary)
    right = compile_expression(test.right, registers, dictionary)
    compare = _compile_comparison(test.operator, test.left.type, dictionary)

    def run(batch: Batch, n: int) -> tuple[Mask, Mask | None]:
        a, valid_a = left(batch, n)
        b, valid_b = right(batch, n)
        truth = _of_length(n, compare(a, b))
        valid = both(valid_a, valid_b)
        return (truth if valid is None else truth & valid), valid

    return run


def _of_length(n: int, values: Any) -> Any:
    """The values of n bindings; one that all of them have in common is repeated. Others stay as they are: not read-only, so that kernels can take them."""
    return values if getattr(values, "shape", ()) == (n,) else np.broadcast_to(values, (n,))


def both(first: Mask | None, second: Mask | None) -> Mask | None:
    """Where both have a value."""
    if first is None:
        return second
    return first if second is None else first & second


# --- functions ---------------------------------------------------------------------------------------------


def _compile_apply(call: Apply, registers: Mapping[Variable, int], dictionary: Dictionary) -> Evaluate:
    arguments = [compile_expression(argument, registers, dictionary) for argument in call.arguments]
    operation = _operation(call, dictionary)
    if operation is None:
        operation = _memo(call, dictionary)
    elif len(arguments) > 2:
        # what has a form for two, such as the minimum, is for several that of two, again and again
        *most, last = call.arguments
        inner = replace(call, arguments=tuple(most))
        return _compile_apply(replace(call, arguments=(inner, last)), registers, dictionary)

    def run(batch: Batch, n: int) -> Result:
        values, valid = [], None
        for argument in arguments:
            value, has_value = argument(batch, n)
            values.append(value)
            valid = both(valid, has_value)
        with np.errstate(all="ignore"):
            result, has_value = operation(*values)
        return _of_length(n, result), both(valid, has_value)

    return run


def _add(a: Any, b: Any) -> tuple[Any, Any]:
    r = a + b
    return r, ((a ^ r) & (b ^ r)) >= 0


def _subtract(a: Any, b: Any) -> tuple[Any, Any]:
    r = a - b
    return r, ((a ^ b) & (a ^ r)) >= 0


def _multiply(a: Any, b: Any) -> tuple[Any, Any]:
    r = a * b
    small = np.int64(1) << 31
    if np.all((a < small) & (a > -small) & (b < small) & (b > -small)):
        return r, None
    safe = np.where(b == 0, 1, b)
    return r, ((b == 0) | ((r // safe == a) & (r % safe == 0))) & ~((b == -1) & (a == _MIN)) & ~(
        (a == -1) & (b == _MIN)
    )


def _divide(a: Any, b: Any) -> tuple[Any, Any]:
    valid = (b != 0) & ~((b == -1) & (a == _MIN))
    safe = np.where(valid, b, 1)
    quotient = a // safe
    return quotient + ((quotient * safe != a) & ((a < 0) != (safe < 0))), valid


def _remainder(a: Any, b: Any) -> tuple[Any, Any]:
    valid = b != 0
    return np.fmod(a, np.where(valid & (b != -1), b, 1)), valid


def _negate(a: Any) -> tuple[Any, Any]:
    return -a, a != _MIN


def _unsigned(operation: Callable[..., tuple[Any, Any]]) -> _Operation:
    def run(*arguments: Any) -> tuple[Any, Any]:
        result, valid = operation(*(a.view(np.uint64) for a in arguments))
        return np.asarray(result, np.uint64).view(np.int64), valid

    return run


def _float(operation: Callable[..., Any]) -> _Operation:
    """A float operation: NaN is not a value, and an infinity that comes from finite numbers is an overflow."""

    def run(*arguments: Any) -> tuple[Any, Any]:
        numbers = [a.view(np.float64) for a in arguments]
        result = np.asarray(operation(*numbers) + 0.0, np.float64)
        finite = np.isfinite(result)
        infinite = ~np.isnan(result) & np.logical_or.reduce([np.isinf(x) for x in np.broadcast_arrays(*numbers)])
        return result.view(np.int64), finite | infinite

    return run


def _float_divide(a: Any, b: Any) -> Any:
    return np.where(b == 0, np.nan, a / np.where(b == 0, 1.0, b))


def _unsigned_multiply(a: Any, b: Any) -> tuple[Any, Any]:
    r = a * b
    return r, (b == 0) | (r // np.where(b == 0, 1, b).astype(np.uint64) == a)


def _unless_zero(operation: Callable[..., Any]) -> _Operation:
    return lambda a, b: (operation(a, np.where(b == 0, 1, b).astype(np.uint64)), b != 0)


def _total(operation: Callable[..., Any]) -> _Operation:
    return lambda *arguments: (operation(*arguments), None)


_OPERATIONS: dict[tuple[str, Type], _Operation] = {
    ("+", Type.NUMBER): _add,
    ("-", Type.NUMBER): _subtract,
    ("*", Type.NUMBER): _multiply,
    ("/", Type.NUMBER): _divide,
    ("%", Type.NUMBER): _remainder,
    (NEGATION, Type.NUMBER): _negate,
    ("min", Type.NUMBER): _total(np.minimum),
    ("max", Type.NUMBER): _total(np.maximum),
    ("+", Type.UNSIGNED): _unsigned(lambda a, b: (a + b, a + b >= a)),
    ("-", Type.UNSIGNED): _unsigned(lambda a, b: (a - b, a >= b)),
    ("*", Type.UNSIGNED): _unsigned(_unsigned_multiply),
    ("/", Type.UNSIGNED): _unsigned(_unless_zero(np.floor_divide)),
    ("%", Type.UNSIGNED): _unsigned(_unless_zero(np.remainder)),
    ("min", Type.UNSIGNED): _unsigned(_total(np.minimum)),
    ("max", Type.UNSIGNED): _unsigned(_total(np.maximum)),
    ("+", Type.FLOAT): _float(lambda a, b: a + b),
    ("-", Type.FLOAT): _float(lambda a, b: a - b),
    ("*", Type.FLOAT): _float(lambda a, b: a * b),
    ("/", Type.FLOAT): _float(_float_divide),
    (NEGATION, Type.FLOAT): _float(lambda a: -a),
    ("min", Type.FLOAT): _float(np.minimum),
    ("max", Type.FLOAT): _float(np.maximum),
}


def _by_rank(dictionary: Dictionary, *, smallest: bool) -> _Operation:
    """The least or greatest of two symbols, by their UTF-8 bytes."""

    def run(a: Numbers, b: Numbers) -> tuple[Numbers, None]:
        rank = dictionary.rank()
        return np.where((rank[a] <= rank[b]) == smallest, a, b), None

    return run


def _operation(call: Apply, dictionary: Dictionary) -> _Operation | None:
    """The form of a function for whole columns, if it has one."""
    if call.operands is not Type.SYMBOL:
        return _OPERATIONS.get((call.function, call.operands))
    return _by_rank(dictionary, smallest=call.function == "min") if call.function in ("min", "max") else None


def _memo(call: Apply, dictionary: Dictionary) -> _Operation:
    """Any other function: computed by the scalar form, once for each combination of arguments."""
    known: dict[tuple[int, ...], int | None] = {}
    types = [argument.type for argument in call.arguments]
    makes_text = call.type in (Type.SYMBOL, Type.TERM)

    def compute(key: tuple[int, ...]) -> int | None:
        check_stop()
        values = [decode_column(np.array([k]), t, dictionary)[0] for k, t in zip(key, types, strict=True)]
        if makes_text:
            ask_for(_COPIES * sum(len(value) for value in values if isinstance(value, str)))
        value = evaluate(call.function, call.operands, values, call.type)
        return None if value is None else encode(value, call.type, dictionary)

    def run(*arguments: Numbers) -> tuple[Numbers, Mask]:
        columns = [np.atleast_1d(a) for a in np.broadcast_arrays(*arguments)]
        keys = list(zip(*(column.tolist() for column in columns), strict=True))
        for key in set(keys) - known.keys():
            known[key] = compute(key)
        found = [known[key] for key in keys]
        valid = np.array([value is not None for value in found], np.bool_)
        return np.array([0 if value is None else value for value in found], np.int64), valid

    return run


# --- tests -------------------------------------------------------------------------------------------------

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def _compile_comparison(operator: str, type_: Type, dictionary: Dictionary) -> Callable[[Numbers, Numbers], Any]:
    if operator not in _COMPARE:
        return _text_test(operator, dictionary)
    compare = _COMPARE[operator]
    if operator in ("=", "!="):
        return compare
    if type_ is Type.SYMBOL:
        return lambda a, b: compare(*_ranked(dictionary.rank(), a, b))
    return lambda a, b: compare(as_typed(a, type_), as_typed(b, type_))


def _ranked(rank: Ids, a: Numbers, b: Numbers) -> tuple[Ids, Ids]:
    return rank[a], rank[b]


def _text_test(operator: str, dictionary: Dictionary) -> Callable[[Numbers, Numbers], Any]:
    """`match`, `contains` and their negations: once for each pair of symbols."""
    negated, name = operator.startswith("!"), operator.lstrip("!")
    known: dict[tuple[int, int], bool | None] = {}  # None: the pattern is none, so neither it nor its negation holds

    def learn(pairs: set[tuple[int, int]]) -> None:
        by_left: dict[int, list[int]] = {}
        for left, text in pairs:
            by_left.setdefault(left, []).append(text)
        for left, texts in by_left.items():
            known_text = dictionary.symbol(left)
            for some, size in _pieces(texts, dictionary):
                check_stop()
                ask_for(_COPIES * size)
                tested = [dictionary.symbol(text) for text in some]
                found: Sequence[bool | None]
                if name != "match":
                    found = [holds(name, known_text, text) for text in tested]
                elif size > _LONG:
                    found = awaited(partial(match_all, known_text, tested))
                else:
                    found = match_all(known_text, tested)
                known.update({(left, text): truth for text, truth in zip(some, found, strict=True)})

    def run(a: Numbers, b: Numbers) -> Any:
        left, right = (np.atleast_1d(c).tolist() for c in np.broadcast_arrays(a, b))
        pairs = list(zip(left, right, strict=True))
        if missing := set(pairs) - known.keys():
            learn(missing)
        return np.array([known[pair] is not None and known[pair] != negated for pair in pairs], np.bool_)

    return run


def _pieces(texts: list[int], dictionary: Dictionary) -> Iterator[tuple[list[int], int]]:
    """Symbols, a limited number of bytes at a time if no single one has more, and how many bytes these have."""
    ends = np.cumsum(dictionary.lengths(texts))
    firsts = np.flatnonzero(np.diff(ends // _LONG, prepend=-1))
    for first, end in pairwise([*firsts.tolist(), len(texts)]):
        yield texts[first:end], int(ends[end - 1] - (ends[first - 1] if first else 0))


def match_all(pattern: str, texts: list[str]) -> Sequence[bool | None]:
    """Which texts match a pattern as a whole, in linear time; None for all if it is not a pattern."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if fault_of_pattern(pattern):
        return [None] * len(texts)
    found = pc.match_substring_regex(pa.array(texts, pa.string()), rf"\A(?:{pattern})\z")
    return found.to_pylist()  # type: ignore[no-any-return]
