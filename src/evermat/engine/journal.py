"""The undo log of an update: the rows that it has touched, with the values that they had before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from evermat.algebra import Counters
from evermat.language import Stratum

if TYPE_CHECKING:  # limits and runs are loaded without numpy
    import numpy as np
    import numpy.typing as npt

Rows: TypeAlias = "npt.NDArray[np.int32]"
"""Row ids of a table."""


class Restored(Protocol):
    """Values by row that can be restored: the counts of a counter, the states of edges."""

    def restore(self, rows: Rows, values: Any, /) -> None: ...


class Doubtful:
    """The counters of a stratum that an update has counted: they become invalid if the update is undone."""

    def __init__(self, state: Any, stratum: Stratum) -> None:
        self._state, self._stratum = state, stratum

    def get(self, rows: Rows) -> None:
        """None: there is no value to restore."""
        del rows

    def restore(self, rows: Rows, values: None) -> None:
        del rows, values
        self._state.record_counters(self._stratum, Counters.NONE)


Entry: TypeAlias = "tuple[Restored, Rows, Any]"


@dataclass(slots=True)
class Journal:
    """The values that rows had before they were touched."""

    entries: list[Entry] = field(default_factory=list)

    def note(self, restored: Restored, rows: Rows, values: Any) -> None:
        self.entries.append((restored, rows, values))

    def undo(self, first: int = 0) -> None:
        """Restores the values that all rows had before the entries from `first` on."""
        for restored, rows, values in reversed(self.entries[first:]):
            restored.restore(rows, values)
        del self.entries[first:]

    def take_back(self, entries: Sequence[tuple[Any, Rows, Any]]) -> None:
        """Restores the values that all rows had before some entries of an earlier journal; that, too, can be undone."""
        for restored, rows, values in reversed(entries):
            self.note(restored, rows, restored.get(rows))
            restored.restore(rows, values)
