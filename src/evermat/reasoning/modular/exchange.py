"""How modules work together: each is given what the others have derived, until nothing is new."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TypeVar

from evermat.algebra import View

_Module = TypeVar("_Module")


def exchange(
    modules: Sequence[_Module],
    given: Mapping[_Module, View],
    work: Callable[[_Module, View], View | None],
) -> None:
    """Has every module work on what it is given, and on what others make of theirs; never on what it has made itself.

    `work` returns what a module has derived that is new to all, or None if nothing. Modules take turns, so each sees at once what
    those before it have made, and no two facts meet in one module twice.
    """
    waiting: dict[_Module, list[View]] = {module: [given[module]] for module in modules}
    while any(waiting.values()):
        for module in modules:
            views, waiting[module] = [view for view in waiting[module] if view], []
            if not views or not (made := work(module, reduce(or_, views))):
                continue
            for other in modules:
                if other is not module:
                    waiting[other].append(made)
