"""What an update has touched, and how it was before."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from evermat.algebra import Counters
from evermat.engine.run import Run
from evermat.language import Stratum

Rows: TypeAlias = npt.NDArray[np.int32]
"""Row ids of a table."""


class Restored(Protocol):
    """What has a value for each row, which can be given back: the counts of a counter, the states of edges."""

    def restore(self, rows: Rows, values: Any, /) -> None: ...


class Doubtful:
    """The counters of a stratum, counted in the midst of an update: if that is undone, they are not valid."""

    def __init__(self, state: Any, stratum: Stratum) -> None:
        self._state, self._stratum = state, stratum

    def get(self, rows: Rows) -> None:
        """There is no value to go back to."""
        del rows

    def restore(self, rows: Rows, values: None) -> None:
        """They are not valid any more."""
        del rows, values
        self._state.record_counters(self._stratum, Counters.NONE)


Entry: TypeAlias = tuple[Restored, Rows, Any]


@dataclass(slots=True)
class Journal:
    """The values that rows had before they were touched."""

    entries: list[Entry] = field(default_factory=list)

    def note(self, restored: Restored, rows: Rows, values: Any) -> None:
        """Takes note of values that rows had."""
        self.entries.append((restored, rows, values))

    def undo(self, first: int = 0) -> None:
        """Gives all rows back what they had before the entries from `first` on."""
        for restored, rows, values in reversed(self.entries[first:]):
            restored.restore(rows, values)
        del self.entries[first:]

    def take_back(self, entries: Sequence[tuple[Any, Rows, Any]]) -> None:
        """Gives all rows back what they had before some entries, of an earlier journal; that, too, can be undone."""
        for restored, rows, values in reversed(entries):
            self.note(restored, rows, restored.get(rows))
            restored.restore(rows, values)


class Journaled:
    """An update with a journal, of either engine: what of it can be kept, and taken back by a later one."""

    state: Any
    run: Run
    journal: Journal

    def note_place(self) -> int:
        """A place in the journal."""
        return len(self.journal.entries)

    def notes_since(self, place: int) -> Sequence[Entry]:
        """The entries of the journal from a place on."""
        return self.journal.entries[place:]

    def take_back(self, notes: Sequence[Entry]) -> None:
        """Undoes what an earlier update has noted last."""
        self.journal.take_back(notes)

    def doubt_counters(self, stratum: Stratum) -> None:
        """The counters of a stratum are not valid if the update is undone."""
        self.journal.note(Doubtful(self.state, stratum), np.empty(0, np.int32), None)

    def meet(self, heads: Any) -> None:
        """Nobody asks what an update derives that holds already."""

    def applying(self, phase: str) -> AbstractContextManager[None]:
        """What is found meanwhile counts as applications of a phase."""
        return self.run.applying(phase)
