"""The symbols of a dictionary, and more that it never gets: those that a query mentions or computes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evermat.columns.storage.arrays import Numbers, Words
from evermat.columns.storage.dictionary import Dictionary, Ids
from evermat.core import watched_each

if TYPE_CHECKING:
    import pyarrow as pa


class Extension(Dictionary):
    """A dictionary as it is now, whose new symbols are its own: they are forgotten with it.

    Their ids come after those that the dictionary has now. Later symbols of the dictionary, which get the same ids, are not seen here.
    """

    def __init__(self, base: Dictionary) -> None:
        self._base, self._first, self._own = base, len(base), Dictionary()
        super().__init__()

    def __len__(self) -> int:
        return self._first + len(self._own)

    @property
    def nbytes(self) -> int:
        return self._base.nbytes + self._own.nbytes

    def lengths(self, ids: list[int]) -> Numbers:
        return np.fromiter((len(self.symbol(number).encode()) for number in ids), np.int64, len(ids))

    def lookup(self, symbol: str) -> int:
        found = self._base.lookup(symbol)
        if 0 <= found < self._first:
            return found
        own = self._own.lookup(symbol)
        return own if own < 0 else self._first + own

    def symbol(self, number: int) -> str:
        return self._base.symbol(number) if number < self._first else self._own.symbol(number - self._first)

    def _encode(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.integer]) -> Ids:
        raw = data.tobytes()
        symbols = [raw[start:end].decode() for start, end in watched_each(pairwise(offsets.tolist()))]
        found = np.fromiter(map(self._base.lookup, watched_each(symbols)), np.int32, len(symbols))
        found[found >= self._first] = -1
        missing = np.flatnonzero(found < 0)
        if len(missing):
            found[missing] = self._first + self._own.encode([symbols[i] for i in missing.tolist()])
        return found

    def decode(self, ids: Ids) -> list[str]:
        if not len(self._own):
            return self._base.decode(ids)
        own = ids >= self._first
        texts = {True: iter(self._own.decode(ids[own] - self._first)), False: iter(self._base.decode(ids[~own]))}
        return [next(texts[is_own]) for is_own in own.tolist()]

    def decode_arrow(self, ids: Ids) -> pa.ChunkedArray:
        return super().decode_arrow(ids) if len(self._own) else self._base.decode_arrow(ids)

    def rank(self) -> Ids:
        return super().rank() if len(self._own) else self._base.rank()

    def hashes(self) -> Words:
        return np.concatenate([self._base.hashes()[: self._first], self._own.hashes()[: len(self._own)]])

    def _list(self) -> list[str]:
        return [*self._base._list()[: self._first], *self._own._list()]  # noqa: SLF001

    def _whole(self) -> pa.Array:
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        return pa.concat_arrays([self._base._whole()[: self._first], self._own._whole()])  # noqa: SLF001
