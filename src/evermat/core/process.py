"""Which process an object belongs to.

A forked child has a copy of its parent's objects, but only the thread that forked: locks that other threads held are never released there, and
files are still the parent's. So objects with locks or files record their process when they are made, and refuse to work in a child.
"""

from __future__ import annotations

import os
from typing import final

from evermat.core import error_catalogue as errors
from evermat.core.errors import Problem, ProgramError


@final
class Process:
    """The process in which an object was made.

    Attributes:
        is_parent: Whether this process is a child of it, and has a copy of the object.
    """

    __slots__ = ("is_parent",)

    def __init__(self) -> None:
        self.is_parent = False

    def check(self) -> None:
        """Raises a `ProgramError` in a child of this process; takes less than 0.1 µs."""
        if self.is_parent:
            raise ProgramError(Problem(errors.FORKED, {}))


_current = Process()


def this_process() -> Process:
    """The process that runs this."""
    return _current


def _begin() -> None:
    global _current  # noqa: PLW0603
    _current.is_parent = True
    _current = Process()


os.register_at_fork(after_in_child=_begin)
