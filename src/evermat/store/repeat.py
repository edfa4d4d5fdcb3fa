"""Reads that are repeated while a writer replaces the files that they need.

Readers take no lock. A file is deleted only after a row of `commits` that does not need it, so a read that fails although
the state has not changed has found damage; if the state has changed, the read begins again from the newest row.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from evermat.core import Problem, StateError
from evermat.core import error_catalogue as errors
from evermat.store.delta_log import entry_numbers
from evermat.store.directory import COMMITS, place, read_format
from evermat.store.location import Location, resolved

T = TypeVar("T")

ATTEMPTS = 20


def read_again(path: str | os.PathLike[str] | Location, attempt: Callable[[], T]) -> T:
    """What an attempt to read a state returns, all of which is repeated if it fails while another process writes.

    Raises:
        StateError: the attempt fails although nothing has changed, or twice for the same reason, or too often.
    """
    directory = resolved(path)
    return repeated(directory, attempt, partial(_newest, directory))


def repeated(
    path: Location, attempt: Callable[[], T], known: Callable[[], object], look: Callable[[], Any] = bool
) -> T:
    """What an attempt returns; after a failure `look` sees the current state, and if `known` has changed there is another attempt."""
    cause: object = None
    for _ in range(ATTEMPTS):
        before = known()
        try:
            return attempt()
        except StateError as error:
            look()
            cause, last = _cause(error), cause
            if known() == before or cause == last:
                raise
    why = f"other processes replaced its files each of the {ATTEMPTS} times that it was read: read it again, or keep more versions"
    raise StateError(Problem(errors.STATE_UNREADABLE, {"file": path, "why": why}))


def _cause(error: StateError) -> object:
    """What is wrong, whichever versions are kept: one that is not is never kept again."""
    return [(problem.kind, {**problem.details, "kept": None}) for problem in error.problems]


def _newest(path: Location) -> object:
    """What changes with each row of `commits`, and with a migration."""
    try:
        return read_format(path), entry_numbers(place(path, COMMITS))[-1:]
    except StateError as error:
        return _cause(error)
