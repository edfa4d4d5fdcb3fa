"""Views: sets of facts over tables, and expressions over them.

A view answers one question: which rows of a relation's table belong to it (`select`); or, which is the same unless the relation
has a storage scheme, which facts (`read`). The sets that expressions are made of are in `datasets`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from evermat.columns.kernels import rows as row_kernels
from evermat.columns.schemes.scheme import Scheme
from evermat.columns.storage.arrays import EVERY_STATE, NO_ROWS, Mask, Rows, Truth, as_rows, cleared, picked
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import ADDED, STATES, Table
from evermat.language import Stratum

_STATES = np.arange(STATES, dtype=np.uint32)
NOTHING = Selection(0, 0)
_NEVER: Truth = np.zeros(STATES, np.uint8)


class View(ABC):
    """Facts that can be read; see `algebra.View`."""

    tables: Mapping[str, Any]  # of tables, or of what a reader has captured of them

    @abstractmethod
    def select(self, name: str) -> Selection:
        """The rows of a relation's table that belong to it, as things are now."""

    def truth_for(self, name: str) -> Truth:
        """Membership of a relation's facts as a function of the state word, if it is one."""
        if self.tables[name].scheme is not None:
            return _NEVER  # these are inputs
        raise AssertionError(f"which facts of {name} belong to this view does not follow from the state word")

    def read(self, name: str) -> Selection:
        """The facts of a relation that belong to it, to look facts up: of one with a scheme not the rows, but what follows from them."""
        table = self.tables[name]
        return self.select(name) if table.scheme is None else _in_scheme(table.scheme, self.truth_for(name))

    def read_first(self, name: str) -> Selection:
        """The same, as the beginning of a plan."""
        table = self.tables[name]
        return self.start(name) if table.scheme is None else _in_scheme(table.scheme, self.truth_for(name))

    @property
    def names(self) -> Iterable[str]:
        """Relations of which it may hold facts."""
        return self.tables

    def rows(self, name: str) -> Rows:
        """Its rows, one after the other; cheap where they are listed."""
        lo, hi, truth, listed = self.select(name)
        if listed is not None:
            return listed
        found = list(self.tables[name].scan(truth, lo, hi))
        return found[0] if len(found) == 1 else np.concatenate([*found, NO_ROWS])

    def mask(self, name: str, rows: Rows) -> Mask:
        """Which of some rows belong to it."""
        lo, hi, truth, _ = self.select(name)
        inside = np.empty(len(rows), np.bool_)
        row_kernels.test_rows(
            self.tables[name].state, as_rows(rows), lo, hi, EVERY_STATE if truth is None else truth, inside
        )
        return inside

    def start(self, name: str) -> Selection:
        """Its rows as the beginning of a plan, which reads them from front to end."""
        return self.select(name)

    def below(self, stratum: Stratum) -> View:
        return Restricted(self, frozenset(self.tables) - frozenset(stratum.relations))

    def in_schemes(self) -> View:
        """Those facts in it that storage schemes hold, of which no rows are listed."""
        return InSchemes(self.tables, ())

    def __or__(self, other: View) -> View:
        return Union(self, other)

    def __and__(self, other: View) -> View:
        return Intersection(self, other)

    def __sub__(self, other: View) -> View:
        return Difference(self, other)

    def at(self, stratum: Stratum) -> View:
        return Restricted(self, frozenset(stratum.relations))

    def count(self, name: str) -> int:
        return len(self.rows(name))

    def about(self, name: str) -> int:
        """About how many facts of a relation belong to it; cheap also where a scheme would have to count."""
        scheme = self.tables[name].scheme
        return self.count(name) if scheme is None else scheme.about(scheme.domain(self.truth_for(name)))

    def listed(self) -> Listed:
        return Listed(self.tables, {name: [self.rows(name)] for name in self.names})

    @property
    def size(self) -> int:
        return sum(self.count(name) for name in self.names)

    def __bool__(self) -> bool:
        return any(self.count(name) for name in self.names)


def _in_scheme(scheme: Scheme, truth: Truth) -> Selection:
    """The facts of a scheme that satisfy a view: there may be some."""
    return Selection(0, 1, truth) if scheme.domain(truth) else NOTHING


def listed(rows: Rows) -> Selection:
    """A selection of listed rows."""
    return Selection(0, len(rows), None, rows)


class Listed(View):
    """Rows that were found or touched; a row may be listed repeatedly."""

    def __init__(self, tables: Mapping[str, Table], found: Mapping[str, list[Rows]]) -> None:
        self.tables = tables
        self._found = {name: lists for name, lists in found.items() if any(map(len, lists))}

    @property
    def names(self) -> Iterable[str]:
        return self._found

    def rows(self, name: str) -> Rows:
        found = self._found.get(name, [NO_ROWS])
        return found[0] if len(found) == 1 else np.concatenate(found)

    def select(self, name: str) -> Selection:
        return listed(self.rows(name))

    def mask(self, name: str, rows: Rows) -> Mask:
        if name not in self._found or not len(rows):
            return cleared(len(rows), np.bool_)
        inside, found = cleared(self.tables[name].count, np.bool_), np.empty(len(rows), np.bool_)
        for some in self._found[name]:
            row_kernels.mark_rows(inside, as_rows(some))
        row_kernels.test_marks(inside, as_rows(rows), found)
        return found

    def __bool__(self) -> bool:
        return bool(self._found)


class InSchemes(View):
    """What storage schemes have derived last: Δ of some relations."""

    def __init__(self, tables: Mapping[str, Table], relations: Iterable[str]) -> None:
        self.tables, self._relations = tables, relations

    @property
    def names(self) -> Iterable[str]:
        return self._relations

    def truth_for(self, name: str) -> Truth:
        return truth_of(ADDED) if name in self._relations else _NEVER

    def select(self, name: str) -> Selection:
        del name
        return NOTHING

    def count(self, name: str) -> int:
        scheme = self.tables[name].scheme
        return 0 if scheme is None or name not in self._relations else scheme.count(scheme.domain(self.truth_for(name)))

    def in_schemes(self) -> View:
        return self

    def listed(self) -> Any:
        """Itself, until the next round."""
        return self


@cache
def truth_of(bit: int) -> Truth:
    """Which states have a bit."""
    truth: Truth = ((_STATES & bit) != 0).astype(np.uint8)
    return truth


class _Combination(View):
    """An expression over two views."""

    _combine: Callable[[Any, Any], Any]  # of truth tables, which are 0 or 1, and of masks

    def __init__(self, left: View, right: View) -> None:
        self.left, self.right = left, right
        self.tables = left.tables
        self._truths: list[tuple[Truth, Truth, Truth]] = []

    @property
    def names(self) -> Iterable[str]:
        return self.left.names

    def truth_for(self, name: str) -> Truth:
        left, right = self.left.truth_for(name), self.right.truth_for(name)
        # Relations have the same truth table unless the view is restricted: there are one or two of them.
        for known_left, known_right, combined in self._truths:
            if left is known_left and right is known_right:
                return combined
        self._truths.append((left, right, self._combine(left, right)))
        return self._truths[-1][2]

    def select(self, name: str) -> Selection:
        simple = self._simple(self.left.select(name), self.right.select(name))
        return simple if simple is not None else Selection(0, self.tables[name].count, self.truth_for(name))

    def mask(self, name: str, rows: Rows) -> Mask:
        combined: Mask = self._combine(self.left.mask(name, rows), self.right.mask(name, rows))
        return combined

    def start(self, name: str) -> Selection:
        return listed(self.rows(name))

    @abstractmethod
    def _simple(self, left: Selection, right: Selection) -> Selection | None:
        """The selection where it is one of the two or a range; None if states must be read."""


class Union(_Combination):
    """Facts of either."""

    _combine = staticmethod(np.bitwise_or)

    @property
    def names(self) -> Iterable[str]:
        return dict.fromkeys([*self.left.names, *self.right.names])

    def __bool__(self) -> bool:
        return bool(self.left) or bool(self.right)

    def in_schemes(self) -> View:
        names = {*self.left.in_schemes().names, *self.right.in_schemes().names}
        return InSchemes(self.tables, names)

    def rows(self, name: str) -> Rows:
        left, right = self.left.rows(name), self.right.rows(name)
        return np.concatenate([left, picked(right, self.left.mask(name, right), wanted=False)])

    def _simple(self, left: Selection, right: Selection) -> Selection | None:
        if left.empty:
            return right
        if right.empty:
            return left
        if left.is_range and right.is_range and left.hi >= right.lo and right.hi >= left.lo:
            return Selection(min(left.lo, right.lo), max(left.hi, right.hi))
        return None


class Intersection(_Combination):
    """Facts of both."""

    _combine = staticmethod(np.bitwise_and)

    def rows(self, name: str) -> Rows:
        rows = self.left.rows(name)
        return picked(rows, self.right.mask(name, rows))

    def _simple(self, left: Selection, right: Selection) -> Selection | None:
        if left.empty or right.empty:
            return NOTHING
        if left.is_range and right.is_range:
            return Selection(max(left.lo, right.lo), min(left.hi, right.hi))
        return None


class Difference(_Combination):
    """Facts of the first that are not of the second."""

    @staticmethod
    def _combine(left: Any, right: Any) -> Any:
        if left.dtype == np.bool_:
            return left & ~right
        out = np.empty(len(left), np.uint8)
        row_kernels.subtract_truth(left, right, out)
        return out

    def rows(self, name: str) -> Rows:
        rows = self.left.rows(name)
        return picked(rows, self.right.mask(name, rows), wanted=False)

    def _simple(self, left: Selection, right: Selection) -> Selection | None:
        if left.empty or right.empty:
            return left
        if left.is_range and right.is_range:
            if right.lo <= left.lo:
                return Selection(max(left.lo, right.hi), left.hi)
            if right.hi >= left.hi:
                return Selection(left.lo, min(left.hi, right.lo))
        return None


class Restricted(View):
    """Only facts of some relations."""

    def __init__(self, view: View, relations: frozenset[str]) -> None:
        self.view, self.relations = view, relations
        self.tables = view.tables

    @property
    def names(self) -> Iterable[str]:
        return [name for name in self.view.names if name in self.relations]

    def truth_for(self, name: str) -> Truth:
        return self.view.truth_for(name) if name in self.relations else _NEVER

    def select(self, name: str) -> Selection:
        return self.view.select(name) if name in self.relations else NOTHING

    def start(self, name: str) -> Selection:
        return self.view.start(name) if name in self.relations else NOTHING

    def rows(self, name: str) -> Rows:
        return self.view.rows(name) if name in self.relations else NO_ROWS

    def mask(self, name: str, rows: Rows) -> Mask:
        return self.view.mask(name, rows) if name in self.relations else np.zeros(len(rows), np.bool_)
