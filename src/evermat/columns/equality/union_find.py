"""Renamings of terms: π and γ of *Combining rewriting and incremental materialisation maintenance*."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import union_find as kernels
from evermat.columns.storage.arrays import Batch, Mask, Numbers, Rows, grown, starts_of
from evermat.columns.storage.dictionary import Dictionary
from evermat.language import SAME_AS

Ids = Numbers
_NO_IDS: Ids = np.empty(0, np.int64)


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

    def old_of(self, terms: Ids, now: UnionFind) -> Ids:
        """The representatives that terms had before."""
        found = now.of(terms)
        if len(self.terms):
            places = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
            known = self.terms[places] == terms
            found[known] = self.old[places[known]]
        return found


class UnionFind:
    """For every term the one that stands for it, its *representative*: the smallest of all names of a thing.

    Terms are compared by their texts; owl:sameAs is smaller than all others. Invariant: representatives stand for themselves. Terms that
    came into the dictionary later than anything was said of terms stand for themselves as well.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._shift: Rows = np.zeros(0, np.int32)
        self._link: Rows = np.zeros(0, np.int32)
        self._more: Rows = np.zeros(0, np.int32)
        self.count = 0  # terms that do not stand for themselves
        self._touched: list[tuple[Ids, Ids]] | None = None  # terms whose representatives may change, with those before

    def like(self) -> UnionFind:
        """Another for the same terms, in which everything stands for itself."""
        return UnionFind(self._dictionary)

    @property
    def terms(self) -> int:
        """How many terms there are."""
        return len(self._dictionary)

    def __bool__(self) -> bool:
        """Whether anything stands for anything else."""
        return self.count > 0

    def _make_room(self) -> None:
        self._shift, self._link, self._more = (grown(a, self.terms) for a in (self._shift, self._link, self._more))

    # --- reading -------------------------------------------------------------------------------------------------
    def of(self, terms: npt.NDArray[np.integer[Any]]) -> Ids:
        """The representatives of terms."""
        found: Ids = terms.astype(np.int64)
        if self.count:
            inside = found < len(self._shift)
            found[inside] += self._shift[found[inside]]
        return found

    def rename(self, batch: Batch, columns: Numbers) -> Mask:
        """Replaces terms of a batch by representatives; returns which of its tuples have changed."""
        changed = np.zeros(batch.shape[1], np.bool_)
        if self.count and len(columns):
            kernels.rename_batch(batch, columns, batch.shape[1], self._shift, changed)
        return changed

    def sizes(self, representatives: npt.NDArray[np.integer[Any]]) -> Ids:
        """How many names each representative has; 1 for a term that is none."""
        found = np.ones(len(representatives), np.int64)
        if self.count:
            inside = representatives < len(self._more)
            found[inside] += self._more[representatives[inside]]
        return found

    def names(self, representatives: Ids) -> tuple[Ids, Ids]:
        """For each representative its names, one after the other, itself first, and where those of each begin.

        For a term that is none, only itself.
        """
        starts = starts_of(self.sizes(representatives))
        out = np.empty(int(starts[-1]), np.int64)
        kernels.list_names(np.ascontiguousarray(representatives), starts, self._link, out)
        return out, starts

    def others(self) -> tuple[Ids, Ids]:
        """All terms that do not stand for themselves, and their representatives."""
        terms = np.flatnonzero(self._shift).astype(np.int64)
        return terms, self.of(terms)

    def normal(self, text: str) -> str:
        """The representative of a term, as texts."""
        number = self._dictionary.lookup(text) if self.count else -1
        return text if number < 0 else self._dictionary.symbol(int(self.of(np.array([number]))[0]))

    def names_of(self, text: str) -> list[str]:
        """All names of a term, sorted, as texts."""
        number = self._dictionary.lookup(text) if self.count else -1
        if number < 0:
            return [text]
        members, _ = self.names(self.of(np.array([number])))
        return sorted(map(self._dictionary.symbol, members.tolist()))

    # --- changing ------------------------------------------------------------------------------------------------
    def remember(self) -> None:
        """From now on takes note of what changes."""
        self._touched = []

    @property
    def touched(self) -> bool:
        """Whether anything may have changed since it began to take note, and perhaps changed back."""
        return bool(self._touched)

    def changed(self) -> Changed:
        """What has changed since it began to take note."""
        if not self._touched:
            return Changed(_NO_IDS, _NO_IDS, _NO_IDS)
        # A term that was touched repeatedly had, before, what it had at first.
        terms, first = np.unique(np.concatenate([terms for terms, _ in self._touched]), return_index=True)
        old = np.concatenate([representatives for _, representatives in self._touched])[first]
        new = self.of(terms)
        moved = old != new
        return Changed(terms[moved], old[moved], new[moved])

    def _touch(self, terms: Ids) -> None:
        """Takes note of all names of some terms."""
        if self._touched is not None:
            representatives = np.unique(self.of(terms))
            members, starts = self.names(representatives)
            self._touched.append((members, np.repeat(representatives, np.diff(starts))))

    def merge(self, left: Ids, right: Ids) -> Merged:
        """Makes pairs of terms equal, and all that are equal to them."""
        self._make_room()
        self._touch(np.concatenate([left, right]))
        losers, winners = np.empty(len(left), np.int32), np.empty(len(left), np.int32)
        pool, ends = self._dictionary.texts
        count = kernels.merge_pairs(
            np.ascontiguousarray(left), np.ascontiguousarray(right), self._shift, self._link, self._more,
            pool, ends, self._dictionary.lookup(SAME_AS), losers, winners,
        )  # fmt: skip
        kernels.settle_rings(losers, count, self._shift, self._link)
        self.count += count
        return Merged(losers[:count].astype(np.int64), winners[:count].astype(np.int64))

    def part(self, merged: Merged) -> None:
        """Undoes the last step that was not undone."""
        kernels.part_pairs(merged.losers, merged.winners, len(merged.losers), self._shift, self._link, self._more)
        self.count -= len(merged.losers)

    def assign(self, terms: Ids, representatives: Ids) -> Assigned:
        """Gives all names of some things new representatives, which are among them."""
        self._make_room()
        self._touch(terms)
        order = np.lexsort((terms, representatives))
        terms, representatives = terms[order], representatives[order]
        before = Assigned(terms, self._shift[terms], self._link[terms], self._more[terms])
        self.count -= int(np.count_nonzero(before.shift))
        kernels.make_rings(terms, representatives, self._shift, self._link, self._more)
        self.count += int(np.count_nonzero(self._shift[terms]))
        return before

    def take_back(self, before: Assigned) -> None:
        """Undoes an assignment."""
        terms = before.terms
        self.count += int(np.count_nonzero(before.shift)) - int(np.count_nonzero(self._shift[terms]))
        self._shift[terms], self._link[terms], self._more[terms] = before.shift, before.link, before.more
