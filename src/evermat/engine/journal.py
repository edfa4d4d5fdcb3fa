"""The undo log of an update: what it has touched, and how it was before."""

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
    """What has a value for each row, which can be given back: the counts of a counter, the states of edges."""

    def restore(self, rows: Rows, values: Any, /) -> None: ...


class Doubtful:
    """The counters of a stratum, counted in the midst of an update: if that is undone, they are not valid."""

    def __init__(self, state: Any, stratum: Stratum) -> None:
        self._state, self._stratum = state, stratum

    def get(self, rows: Rows) -> None:
        """None: there is no value to go back to."""
        del rows

    def restore(self, rows: Rows, values: None) -> None:
        """Marks them as not valid."""
        del rows, values
        self._state.record_counters(self._stratum, Counters.NONE)


Entry: TypeAlias = "tuple[Restored, Rows, Any]"


@dataclass(slots=True)
class Journal:
    """The values that rows had before they were touched."""

    entries: list[Entry] = field(default_factory=list)

    def note(self, restored: Restored, rows: Rows, values: Any) -> None:
        """Records values that rows had."""
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
