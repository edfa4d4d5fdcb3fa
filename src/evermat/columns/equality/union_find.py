"""The renaming of terms that reasoning changes: π and γ of *Combining rewriting and incremental materialisation maintenance*."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple
from weakref import ref

import numpy as np

from evermat.columns.equality.renaming import (
    NO_IDS,
    FrozenRenaming,
    Ids,
    Note,
    Renaming,
    Rings,
    before_changes,
    by_representative,
)
from evermat.columns.kernels import union_find as kernels
from evermat.columns.storage.arrays import Rows
from evermat.columns.storage.dictionary import Dictionary
from evermat.language import SAME_AS


class Merged(NamedTuple):
    """What a step changed: terms that were representatives and are not any more, and their representatives then."""

    losers: Ids
    winners: Ids


class Assigned(NamedTuple):
    """Terms that were given representatives, and what was known of them before."""

    terms: Ids
    shift: Rows
    link: Rows
    more: Rows


class Changed(NamedTuple):
    """Terms, ascending, that have another representative than before."""

    terms: Ids
    old: Ids
    new: Ids

    def old_of(self, terms: Ids, now: Renaming) -> Ids:
        """The representatives that terms had before."""
        found = now.of(terms)
        if len(self.terms):
            places = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
            known = self.terms[places] == terms
            found[known] = self.old[places[known]]
        return found


class UnionFind(Renaming):
    """A renaming that is changed in place, for one writer. Readers in other threads get a frozen one."""

    def __init__(self, dictionary: Dictionary) -> None:
        super().__init__(dictionary)
        self._live = Rings.none()
        self.count = 0  # terms that do not stand for themselves
        self._touched: list[Note] | None = None  # what may have changed since the last version
        self._lock = Lock()  # a reader either is known before the first change of an update, or knows of it
        self._frozen: Callable[[], FrozenRenaming | None] = lambda: None  # the last version, while it is read
        self._lent: Callable[[], Rings | None] = lambda: None  # the arrays, while frozen renamings have them too

    def like(self) -> UnionFind:
        """Another for the same terms, in which everything stands for itself."""
        return UnionFind(self._dictionary)

    def __bool__(self) -> bool:
        return self.count > 0

    @property
    def _rings(self) -> Rings:
        return self._live

    def frozen(self) -> FrozenRenaming:
        """The renaming as of before the running update, for any thread; in constant time."""
        with self._lock:
            known = self._frozen()
            if known is None:
                known = FrozenRenaming(self._dictionary, self._lend(), self.count, self._touched or None)
                self._frozen = ref(known)
            return known

    def _lend(self) -> Rings:
        """The arrays as frozen renamings have them; whether any has is seen by whether this is alive."""
        rings, lent = self._live, self._lent()
        if lent is None or lent.shift is not rings.shift:
            lent = Rings(*rings.arrays)
            self._lent = ref(lent)
        return lent

    # --- changing ------------------------------------------------------------------------------------------------
    def remember(self) -> None:
        """What there is now is a version; from now on takes note of what changes."""
        with self._lock:
            if self._touched:
                self._frozen = lambda: None
            self._touched = []

    @property
    def touched(self) -> bool:
        """Whether anything may have changed since it began to take note, and perhaps changed back."""
        return bool(self._touched)

    def changed(self) -> Changed:
        """What has changed since it began to take note."""
        if not self._touched:
            return Changed(NO_IDS, NO_IDS, NO_IDS)
        terms, old = before_changes(self._touched)
        new = self.of(terms)
        moved = old != new
        return Changed(terms[moved], old[moved], new[moved])

    def _touch(self, terms: Ids) -> Rings:
        """Takes note of all names of some terms, and returns the arrays to change them in."""
        if len(self._live) < self.terms:
            self._live = self._live.lengthened(max(self.terms, 2 * len(self._live)))
        note = None if self._touched is None else self._classes(terms)
        with self._lock:
            # Who borrows the arrays after the first note knows that they change.
            lent = None if self._touched else self._lent()
            if self._touched is not None and note is not None:
                self._touched.append(note)
        if lent is not None and lent.shift is self._live.shift:
            self._live = self._live.copy()
        return self._live

    def _classes(self, terms: Ids) -> Note:
        """All names of some terms, with their representatives."""
        representatives = np.unique(self.of(terms))
        members, starts = self.names(representatives)
        return members, np.repeat(representatives, np.diff(starts))

    def merge(self, left: Ids, right: Ids) -> Merged:
        """Makes pairs of terms equal, and all that are equal to them."""
        rings = self._touch(np.concatenate([left, right]))
        losers, winners = np.empty(len(left), np.int32), np.empty(len(left), np.int32)
        pool, ends = self._dictionary.texts
        count = kernels.merge_pairs(
            np.ascontiguousarray(left), np.ascontiguousarray(right), *rings.arrays,
            pool, ends, self._dictionary.lookup(SAME_AS), losers, winners,
        )  # fmt: skip
        kernels.settle_rings(losers, count, rings.shift, rings.link)
        self.count += count
        return Merged(losers[:count].astype(np.int64), winners[:count].astype(np.int64))

    def part(self, merged: Merged) -> None:
        """Undoes the last step that was not undone."""
        kernels.part_pairs(merged.losers, merged.winners, len(merged.losers), *self._live.arrays)
        self.count -= len(merged.losers)

    def assign(self, terms: Ids, representatives: Ids) -> Assigned:
        """Gives all names of some things new representatives, which are among them."""
        rings = self._touch(terms)
        terms, representatives = by_representative(terms, representatives)
        before = Assigned(terms, *(array[terms] for array in rings.arrays))
        self.count -= int(np.count_nonzero(before.shift))
        rings.make(terms, representatives)
        self.count += int(np.count_nonzero(rings.shift[terms]))
        return before

    def take_back(self, before: Assigned) -> None:
        """Undoes an assignment."""
        terms, rings = before.terms, self._live
        self.count += int(np.count_nonzero(before.shift)) - int(np.count_nonzero(rings.shift[terms]))
        rings.shift[terms], rings.link[terms], rings.more[terms] = before.shift, before.link, before.more
