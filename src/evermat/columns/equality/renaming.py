"""Renamings of terms for readers: π of *Combining rewriting and incremental materialisation maintenance*, live or of one version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from threading import RLock
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import union_find as kernels
from evermat.columns.storage.arrays import Batch, Mask, Numbers, Rows, lengthened, starts_of
from evermat.columns.storage.dictionary import Dictionary
from evermat.core import ask_for

Ids = Numbers
NO_IDS: Ids = np.empty(0, np.int64)
Note = tuple[Ids, Ids]
"""All terms of some equivalence classes, and the representatives that they had before a change."""


class Rings:
    """The arrays of a renaming, all of one length, relative as `kernels.union_find` has them; for a term beyond them zeros."""

    __slots__ = ("__weakref__", "link", "more", "shift")

    def __init__(self, shift: Rows, link: Rows, more: Rows) -> None:
        self.shift, self.link, self.more = shift, link, more

    @classmethod
    def none(cls) -> Self:
        return cls(*(np.zeros(0, np.int32) for _ in range(3)))

    def __len__(self) -> int:
        return len(self.shift)

    @property
    def arrays(self) -> tuple[Rows, Rows, Rows]:
        return self.shift, self.link, self.more

    def lengthened(self, terms: int) -> Rings:
        return Rings(*(lengthened(array, terms) for array in self.arrays))

    def copy(self) -> Rings:
        ask_for(3 * self.shift.nbytes)
        return Rings(*(array.copy() for array in self.arrays))

    def make(self, terms: Ids, representatives: Ids) -> None:
        """Gives terms, ordered as `by_representative`, new rings."""
        kernels.make_rings(terms, representatives, *self.arrays)


def by_representative(terms: Ids, representatives: Ids) -> tuple[Ids, Ids]:
    """Terms and their representatives, ordered by these."""
    order = np.lexsort((terms, representatives))
    return terms[order], representatives[order]


def before_changes(notes: Iterable[Note]) -> tuple[Ids, Ids]:
    """The terms in some notes, ascending, and the representatives that they had before all of them."""
    notes = list(notes)
    # A term that was touched repeatedly had, before, what it had at first.
    terms, first = np.unique(np.concatenate([NO_IDS, *(terms for terms, _ in notes)]), return_index=True)
    return terms, np.concatenate([NO_IDS, *(representatives for _, representatives in notes)])[first]


class Renaming(ABC):
    """For every term the one that stands for it, its *representative*: the smallest of all names of a thing.

    Terms are compared by their texts; owl:sameAs is smaller than all others. Invariant: representatives stand for themselves. Terms that
    came into the dictionary later than anything was said of terms stand for themselves as well.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary

    @property
    @abstractmethod
    def _rings(self) -> Rings:
        """The arrays to read."""

    @property
    def terms(self) -> int:
        """How many terms there are."""
        return len(self._dictionary)

    @abstractmethod
    def __bool__(self) -> bool:
        """Whether anything stands for anything else."""

    def of(self, terms: npt.NDArray[np.integer[Any]]) -> Ids:
        """The representatives of terms."""
        found: Ids = terms.astype(np.int64)
        if self:
            shift = self._rings.shift
            inside = found < len(shift)
            found[inside] += shift[found[inside]]
        return found

    def rename(self, batch: Batch, columns: Numbers) -> Mask:
        """Replaces terms of a batch by representatives; returns which of its tuples have changed."""
        changed = np.zeros(batch.shape[1], np.bool_)
        if len(columns) and self:
            kernels.rename_batch(batch, columns, batch.shape[1], self._rings.shift, changed)
        return changed

    def sizes(self, representatives: npt.NDArray[np.integer[Any]]) -> Ids:
        """How many names each representative has; 1 for a term that is none."""
        found = np.ones(len(representatives), np.int64)
        if self:
            more = self._rings.more
            inside = representatives < len(more)
            found[inside] += more[representatives[inside]]
        return found

    def names(self, representatives: Ids) -> tuple[Ids, Ids]:
        """For each representative its names, one after the other, itself first, and where those of each begin.

        For a term that is none, only itself.
        """
        starts = starts_of(self.sizes(representatives))
        out = np.empty(int(starts[-1]), np.int64)
        kernels.list_names(np.ascontiguousarray(representatives), starts, self._rings.link, out)
        return out, starts

    def others(self) -> tuple[Ids, Ids]:
        """All terms that do not stand for themselves, and their representatives."""
        terms = np.flatnonzero(self._rings.shift).astype(np.int64)
        return terms, self.of(terms)

    def normal(self, text: str) -> str:
        """The representative of a term, as texts."""
        number = self._dictionary.lookup(text) if self else -1
        return text if number < 0 else self._dictionary.symbol(int(self.of(np.array([number]))[0]))

    def names_of(self, text: str) -> list[str]:
        """All names of a term, sorted, as texts."""
        number = self._dictionary.lookup(text) if self else -1
        if number < 0:
            return [text]
        members, _ = self.names(self.of(np.array([number])))
        return sorted(map(self._dictionary.symbol, members.tolist()))


class FrozenRenaming(Renaming):
    """A renaming as it was in one version, whatever becomes of the terms since; several threads may read it.

    It is made in constant time. Between updates its arrays are those of the live renaming, which replaces its own by copies before it changes
    anything. In the middle of an update, whose changes are already in them, they are copied when they are first read, and the notes of the update
    turned back.
    """

    def __init__(self, dictionary: Dictionary, rings: Rings, count: int, notes: list[Note] | None) -> None:
        """The renaming in some rings, of `count` terms that do not stand for themselves; if there are `notes`, as it was before them."""
        super().__init__(dictionary)
        self._shared, self._count, self._notes = rings, count, notes
        self._lock = RLock()

    def __bool__(self) -> bool:
        if self._notes is not None:
            self._settle()
        return self._count > 0

    @property
    def _rings(self) -> Rings:
        if self._notes is not None:
            self._settle()
        return self._shared

    def _settle(self) -> None:
        """Gets arrays of its own, while an update may go on changing those that it has."""
        with self._lock:
            if self._notes is None:
                return
            rings = self._shared.copy()
            # Every change is noted before it is made: what the copy has of any is among the notes by now.
            terms, representatives = before_changes(self._notes)
            known = terms < len(rings)  # others came later, and no class of then has any
            rings.make(*by_representative(terms[known], representatives[known]))
            self._shared, self._count = rings, int(np.count_nonzero(rings.shift))
            self._notes = None
