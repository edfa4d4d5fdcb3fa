"""What an update has touched, and how it was before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from evermat.columns.table import Rows


class Restored(Protocol):
    """What has a value for each row, which can be given back: the counts of a counter, the states of edges."""

    def restore(self, rows: Rows, values: Any, /) -> None: ...


@dataclass(slots=True)
class Journal:
    """The values that rows had before they were touched."""

    entries: list[tuple[Restored, Rows, Any]] = field(default_factory=list)

    def note(self, restored: Restored, rows: Rows, values: Any) -> None:
        """Takes note of values that rows had."""
        self.entries.append((restored, rows, values))

    def undo(self, first: int = 0) -> None:
        """Gives all rows back what they had before the entries from `first` on."""
        for restored, rows, values in reversed(self.entries[first:]):
            restored.restore(rows, values)
        del self.entries[first:]
