"""Errors without the frames of Evermat, for people who type: the message says what is wrong, and the frames above it say where the call stands.

In a notebook or the REPL, a public function removes the frames of Evermat, and of libraries that it calls, from the traceback of an `EvermatError` that
leaves it. Frames of the caller stay, those of functions that Evermat calls back, too, and so do causes. Everything stays in a script, in a
debugger, in Python's development mode, and with `EVERMAT_TRACEBACK=full` in the environment.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Generator
from functools import cache, update_wrapper
from pathlib import Path
from types import FunctionType, GeneratorType, TracebackType
from typing import Any, TypeVar

from evermat.core.errors import EvermatError

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)
_OWN = str(Path(__file__).parent.parent) + os.sep


def without_internals(function: _F) -> _F:
    """A public function whose errors are trimmed in an interactive session; a generator that it returns, too."""
    trim, trims, generator_of, error_class, generator_class = _trim, _trims, _trimmed, EvermatError, GeneratorType

    def call(*arguments: Any, **options: Any) -> Any:
        try:
            result = function(*arguments, **options)
        except error_class as error:
            if trims():
                trim(error)
            raise  # adds no frame again
        return generator_of(result) if result.__class__ is generator_class and trims() else result

    # With the globals of the function, it belongs to the same module for tools such as doctest.
    made = FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    return update_wrapper(made, function)  # type: ignore[return-value]


def public_class(class_: _C) -> _C:
    """A class all of whose public methods are `without_internals`."""
    for name, member in list(vars(class_).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, FunctionType):
            setattr(class_, name, without_internals(member))
        elif isinstance(member, classmethod | staticmethod):
            setattr(class_, name, type(member)(without_internals(member.__func__)))
    return class_


def _trims() -> bool:
    """Whether the session is interactive, and not one that looks for a flaw in Evermat."""
    if not hasattr(sys, "ps1") or sys.flags.dev_mode or sys.gettrace() is not None:
        return False
    monitoring = getattr(sys, "monitoring", None)
    is_debugged = monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None
    return not is_debugged and os.environ.get("EVERMAT_TRACEBACK") != "full"


def _trimmed(results: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    try:
        return (yield from results)
    except EvermatError as error:
        if _trims():
            _trim(error)
        raise


def _trim(error: BaseException) -> None:
    """Trims the traceback of an error, of its causes and of what was handled when it was raised."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = _without_own(one.__traceback__)
            waiting += (one.__cause__, one.__context__)


def _without_own(traceback: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    is_inside = False  # of a call of Evermat's, where libraries are called on its behalf
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        is_own = name.startswith(_OWN)
        is_inside = is_own or (is_inside and name.startswith(_libraries()))
        if not is_inside:
            kept.append(traceback)
        traceback = traceback.tb_next
    made: TracebackType | None = None
    for one in reversed(kept):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made


@cache
def _libraries() -> tuple[str, ...]:
    """What the names of files begin with that are neither Evermat's nor the caller's."""
    paths = sysconfig.get_paths()
    return ("<frozen ", *(paths[key] + os.sep for key in ("stdlib", "platstdlib", "purelib", "platlib")))
