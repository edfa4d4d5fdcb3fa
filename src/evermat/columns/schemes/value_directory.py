"""Where values occur: which sources of a union may have a fact, without asking each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evermat.columns.kernels import rows as row_kernels
from evermat.columns.storage.arrays import Batch, Words, as_batch
from evermat.columns.storage.readable_table import ReadableTable

#: a list of all values may be so many times as long as there are rows that mention them, and this long in any case
VALUES_PER_ROW = 4
ALWAYS = 1 << 16

_LAST = 63


class Mentions(NamedTuple):
    """The rows in which a source mentions values, some columns of which are values. Rows are only ever added."""

    table: ReadableTable
    columns: int


class Directory:
    """For each value the sources that mention it, as bits; the last bit stands for all sources from there on.

    Invariant: a source that has a fact mentions its values, whatever else happened to it since. So what is not mentioned needs not be looked for,
    and what is mentioned may be there. Values are listed as far as they are dense; where they are not, any source may have any.
    """

    def __init__(self, sources: Sequence[Mentions]) -> None:
        self.sources = sources
        #: masks by value, and how many rows of each source they know; replaced at once, as several may be asking
        self._known: tuple[Words | None, list[int]] = np.zeros(1, np.uint64), [0] * len(sources)

    @property
    def nbytes(self) -> int:
        masks, _ = self._known
        return 0 if masks is None else masks.nbytes

    def of(self, facts: Batch, n: int) -> tuple[Words, int] | None:
        """The sources that mention all values of each of n facts, or of keys, and those that do so for one of them; None: any may."""
        masks = self._masks()
        if masks is None:
            return None
        found = np.empty(n, np.uint64)
        return found, _whole(int(row_kernels.masks_of(as_batch(facts), n, masks, found)))

    def of_one(self, fact: Batch) -> int | None:
        """The same for one fact."""
        masks = self._masks()
        if masks is None:
            return None
        found, size = -1, len(masks)
        for value in fact[:, 0].tolist():
            found &= int(masks[value]) if 0 <= value < size else 0
        return _whole(found)

    def _masks(self) -> Words | None:
        """The masks, with all rows since the last call."""
        masks, seen = self._known
        if masks is None:
            return None
        for known, (table, _) in zip(seen, self.sources, strict=True):
            if table.count != known:
                return self._extended(masks, seen)
        return masks

    def _extended(self, masks: Words, seen: list[int]) -> Words | None:
        counts = [table.count for table, _ in self.sources]
        most = max(ALWAYS, VALUES_PER_ROW * sum(counts))
        new = [t.rows[first:end, :columns] for (t, columns), first, end in zip(self.sources, seen, counts, strict=True)]
        filled = [values for values in new if values.size]
        low, top = min(int(v.min()) for v in filled), max(int(v.max()) for v in filled)
        if low < 0 or top >= most:
            self._known = None, counts
            return None
        masks = np.concatenate([masks, np.zeros(max(top + 1 - len(masks), 0), np.uint64)])
        for number, values in enumerate(new):
            masks[values] |= bit_of(number)
        self._known = masks, counts
        return masks


class Directories:
    """The directory of a union, and of all its frozen ones: it is right for these, too, as long as they have the same sources in the same order."""

    def __init__(self) -> None:
        self._last: Directory | None = None

    def of(self, sources: Sequence[Mentions]) -> Directory:
        known = self._last
        if known is None or known.sources != sources:
            known = self._last = Directory(sources)
        return known


def bit_of(number: int) -> np.uint64:
    """The bit of a source."""
    return np.uint64(1 << min(number, _LAST))


def _whole(mask: int) -> int:
    """A mask with a bit for every source, however many there are."""
    return mask | (-1 << _LAST) if mask >> _LAST else mask
