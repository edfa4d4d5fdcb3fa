"""Sets of facts for the time of an update: bits of the state word and lists of rows, so that an update costs what it touches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from evermat.columns.evaluation.operators import Sink
from evermat.columns.evaluation.rules import Bag
from evermat.columns.state.datasets import Dataset
from evermat.columns.state.journaled_counter import Counting, Touch
from evermat.columns.state.views import NO_ROWS, Listed, Restricted, View, listed
from evermat.columns.storage.counter import Weights
from evermat.columns.storage.selection import Selection
from evermat.columns.storage.table import Batch, Rows, Table
from evermat.engine import Run


class WorkingSet(Dataset):
    """A set of facts for the time of an update: a bit of the state word, and a list of its rows."""

    def __init__(self, name: str, bit: int, tables: Mapping[str, Table], run: Run) -> None:
        super().__init__(name, bit, tables)
        self._lists: dict[str, list[Rows]] = {}
        self._run = run

    @property
    def names(self) -> Iterable[str]:
        return self._lists

    def rows(self, name: str) -> Rows:
        lists = self._lists.get(name)
        if lists is None:
            return NO_ROWS
        if len(lists) > 1:
            lists[:] = [np.concatenate(lists)]
        return lists[0]

    def mask(self, name: str, rows: Rows) -> npt.NDArray[np.bool_]:
        inside: npt.NDArray[np.bool_] = (self.tables[name].state[rows] & np.uint16(self.bit)) != 0
        return inside

    def start(self, name: str) -> Selection:
        return listed(self.rows(name))

    def __bool__(self) -> bool:
        return bool(self._lists)

    def add(self, facts: View | Bag | Counting) -> Listed:
        """Adds facts and returns the new ones."""
        new: dict[str, list[Rows]] = {}
        touch = facts.start(self) if isinstance(facts, Counting) else None
        source = facts.facts if isinstance(facts, Counting) else facts
        if isinstance(source, Bag):
            source.read({name: self._sink(name, new, touch) for name in source.heads}, counted=touch is not None)
        else:
            for name in list(source.names):
                rows = source.rows(name)
                self._claim(name, rows if touch is None else touch.rows(name, rows), new)
        return Listed(self.tables, new)

    def replace(self, facts: View) -> bool:
        """Holds exactly these facts from now on; whether there are any."""
        found = {name: facts.rows(name) for name in list(facts.names)}
        self.clear()
        for name, rows in found.items():
            self._claim(name, rows, {})
        return bool(self)

    def clear(self) -> None:
        """Holds nothing from now on."""
        self.drop(list(self._lists))

    def discard(self, facts: View) -> None:
        """Takes some facts out."""
        for name in list(facts.names):
            held = self.rows(name)
            gone = facts.mask(name, held)
            if gone.any():
                self.put(name, held[~gone])

    def put(self, name: str, rows: Rows) -> None:
        """Holds exactly these facts of a relation from now on, of which each is listed once."""
        self.drop([name])
        self._claim(name, rows, {})

    def drop(self, names: Iterable[str]) -> None:
        """Holds no facts of some relations from now on."""
        for name in names:
            for rows in self._lists.pop(name, ()):
                self.tables[name].clear_bits(rows, self.bit)
            self.sizes[name] = 0

    def _claim(self, name: str, rows: Rows, new: dict[str, list[Rows]]) -> None:
        claimed = self.tables[name].claim(rows, self.truth, self.bit)
        if len(claimed):
            self._lists.setdefault(name, []).append(claimed)
            self.sizes[name] += len(claimed)
            new.setdefault(name, []).append(claimed)

    def _sink(self, name: str, new: dict[str, list[Rows]], touch: Touch | None) -> Sink:
        table, run = self.tables[name], self._run

        def sink(batch: Batch, n: int, weights: Weights | None) -> None:
            rows = table.locate(batch, n) if touch is None else touch.tuples(name, batch, n, weights)
            self._claim(name, rows, new)
            run.derived(n if weights is None else int(weights.sum()))

        return sink


class ChangeSet(WorkingSet):
    """D or A. Of relations with a storage scheme its rows are inputs; its facts are what follows from the change of inputs and sources."""

    @property
    def names(self) -> Iterable[str]:
        changed = dict.fromkeys(self._lists)
        for name, table in self.tables.items():
            if table.scheme is not None and name not in changed and table.scheme.is_changed(self._lists):
                changed[name] = None
        return changed


class EmptySet(Restricted):
    """A set that stays empty."""

    def __init__(self, view: View) -> None:
        super().__init__(view, frozenset())

    def add(self, facts: View | Bag | Counting) -> Listed:
        """There is nothing to add."""
        source = facts.facts if isinstance(facts, Counting) else facts
        assert not source
        return Listed(self.tables, {})

    def replace(self, facts: View) -> bool:
        """It stays empty."""
        assert not facts
        return False

    def clear(self) -> None:
        """It is empty."""


class ChangedRows(Listed):
    """Facts that come or go: few, and only ever listed or compared with others."""

    @classmethod
    def of(cls, facts: View) -> ChangedRows:
        """The facts of a view, each once."""
        return cls(facts.tables, {name: [np.unique(facts.rows(name))] for name in list(facts.names)})

    def put(self, name: str, rows: Rows) -> None:
        """Holds exactly these facts of a relation from now on."""
        self._found.pop(name, None)
        if len(rows):
            self._found[name] = [rows]
