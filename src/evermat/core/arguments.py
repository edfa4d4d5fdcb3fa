"""Checks of what callers pass: limits, sizes of memory, paths, functions. Names of choices are checked by `choices`.

A value that cannot be is an `ArgumentError`, something of another type a `TypeError`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from numbers import Real
from os import PathLike
from typing import Any, cast

from evermat.core.error_catalogue import COMMAND_LINE
from evermat.core.errors import ArgumentError, Problem

_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def wrong_argument(what: str) -> ArgumentError:
    """The error of a call, or of a command line, that cannot be carried out."""
    return ArgumentError(Problem(COMMAND_LINE, {"what": what}))


def wrong_type(name: str, value: object, use: str) -> TypeError:
    """The error of an argument of a type that it cannot have."""
    return TypeError(f"`{name}` is of type {type(value).__name__}: use {use}")


def check_type(name: str, value: object, type_: type | tuple[type, ...], use: str) -> None:
    """Raises a `TypeError` if an argument is not of a type."""
    if not isinstance(value, type_):
        raise wrong_type(name, value, use)


def check_function(name: str, value: object) -> None:
    """Raises a `TypeError` if an argument cannot be called."""
    if not callable(value):
        raise wrong_type(name, value, "a function")


def is_session(value: object) -> bool:
    """Whether something is a SparkSession, of Spark Connect or not; Spark is not imported for it."""
    return type(value).__module__.startswith("pyspark.sql") and hasattr(value, "createDataFrame")


def check_session(name: str, value: object) -> None:
    """Raises a `TypeError` if an argument is not a SparkSession."""
    if not is_session(value):
        raise wrong_type(name, value, "a SparkSession")


def check_facts(name: str, value: object) -> None:
    """Raises a `TypeError` if an argument does not map relations to facts."""
    check_type(name, value, Mapping, "a mapping from relations to facts")


def integer_argument(name: str, value: Any, use: str = "an integer") -> int:
    """An integer, also one of numpy, as an int; anything else is a `TypeError`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong_type(name, value, use)
    return operator.index(value)


def check_position(name: str, value: Any) -> None:
    """Raises a `TypeError` if an argument is neither None nor the name of a stream and a position in it."""
    is_pair = isinstance(value, tuple) and len(value) == 2 and all(isinstance(text, str) for text in value)
    if value is not None and not is_pair:
        raise TypeError(f"`{name}` is {value!r}: use a tuple of two texts, the name of a stream and its position")


def count_argument(name: str, value: Any, least: int = 0) -> int | None:
    """A number of things as an int; None is no number.

    Raises:
        ArgumentError: it is less than `least`.
        TypeError: it is not an integer.
    """
    if value is None:
        return None
    use = f"an integer that is at least {least}"
    count = integer_argument(name, value, use)
    if count < least:
        raise wrong_argument(f"`{name}` is {count}: use {use}")
    return count


def seconds_argument(name: str, value: Any) -> float | None:
    """A number of seconds; None is no number.

    Raises:
        ArgumentError: it is negative or not finite.
        TypeError: it is not a number.
    """
    if value is None:
        return None
    use = "a finite number of seconds that is at least 0"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise wrong_type(name, value, use)
    seconds: Any = value
    if not (math.isfinite(seconds) and seconds >= 0):
        raise wrong_argument(f"`{name}` is {seconds}: use {use}")
    return cast(float, seconds)


def memory_argument(name: str, value: Any) -> int | None:
    """A number of bytes, also as a text such as `4g`; None is no number.

    Raises:
        ArgumentError: it is not a size of memory.
        TypeError: it is neither an integer nor a text.
    """
    if isinstance(value, str):
        return memory_size(value)
    if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__")):
        raise wrong_type(name, value, "a number of bytes, or a text such as '4g'")
    return count_argument(name, value, 1)


def memory_size(text: str) -> int:
    """`4g`, `512M`, `1000000` in bytes, else an `ArgumentError`."""
    digits, unit = text.lower().removesuffix("b"), 1
    if digits and digits[-1] in _UNITS:
        digits, unit = digits[:-1], _UNITS[digits[-1]]
    try:
        size = int(float(digits) * unit)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise wrong_argument(f"`{text}` is not a size of memory: write a number with k, m, g or t behind it")
    return size


def path_arguments(name: str, given: Any) -> list[str | PathLike[str]]:
    """One path or several, as a list.

    Raises:
        TypeError: it is neither a path nor an iterable of paths.
    """
    if isinstance(given, str | PathLike):
        return [given]
    use = "a path, or several"
    if isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        raise wrong_type(name, given, use)
    paths = list(given)
    for path in paths:
        check_type(name, path, (str, PathLike), use)
    return paths
