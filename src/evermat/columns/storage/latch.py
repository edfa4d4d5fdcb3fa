"""What the readers of some tables and their one writer agree on: a short lock, and which readers the writer has to mind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

if TYPE_CHECKING:
    from evermat.columns.storage.table import Table


_MANY = 64  # versions, of which most are not held any more


class Pinned(Protocol):
    """A version that a reader may hold."""


class Latch:
    """The latch of the tables of a state.

    Readers capture tables, and the writer makes an update visible, while they hold `lock`: neither takes longer than it takes to
    change what the update changes. Nothing is derived meanwhile. Tables that no other thread knows need no latch, and share one.

    Attributes:
        lock: The lock. Its holder must not wait for anything else.
        shared: Whether lookup structures must stay usable until others replace them: readers have captured tables, or updates have begun, which
            leave all as it was if memory is short.
        writing: Whether a writer is at work, which alone may change how its tables find rows.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self.lock = Lock()
        self.shared = shared
        self._writers = 0  # an update may be part of a change of rules
        self._pinned: list[ref[Any]] = []
        self._wanted: dict[int, Table] = {}

    @property
    def writing(self) -> bool:
        return self._writers > 0

    def begin(self) -> None:
        """A writer begins."""
        with self.lock:
            self.shared = True
            self._writers += 1

    def end(self) -> None:
        """A writer is done; tables whose rows readers have asked for meanwhile list them."""
        for table in list(self._wanted.values()):
            table.find_rows()
        with self.lock:
            self._writers -= 1
            self._wanted.clear()

    @contextmanager
    def written(self) -> Iterator[None]:
        """A writer is at work within the block."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    def want_rows(self, table: Table) -> None:
        """A reader asks for rows of a table, which does not know them and has a writer now; the caller holds the lock."""
        self._wanted[id(table)] = table

    def pin(self, version: Pinned) -> None:
        """Has the writer mind a version as long as a reader refers to it; the caller holds the lock."""
        self.shared = True
        self._pinned.append(ref(version))
        if len(self._pinned) > _MANY:
            self.pinned()

    def pinned(self) -> list[Any]:
        """The versions to which readers refer; the caller holds the lock."""
        versions = [version for one in self._pinned if (version := one()) is not None]
        self._pinned = list(map(ref, versions))
        return versions
