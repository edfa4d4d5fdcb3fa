"""Symbols and their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Ids = npt.NDArray[np.int32]

_MAX_SYMBOLS = int(np.iinfo(np.int32).max)


class _IdsBySymbol(dict[str, int]):
    """Looking up an unknown symbol gives it the next id: known ones never leave C."""

    def __missing__(self, symbol: str) -> int:
        number = len(self)
        if number >= _MAX_SYMBOLS:
            raise MemoryError(f"more than {_MAX_SYMBOLS} symbols")
        self[symbol] = number
        return number


class Dictionary:
    """Symbols ↔ ids 0, 1, 2 … in the order in which they were first seen; neither changes nor goes away."""

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        self._ids = _IdsBySymbol()
        self._symbols: list[str] = []
        # Arrow chunks of the first symbols, each at least twice as long as the next, so that a symbol is copied
        # only O(log n) times however the dictionary grows.
        self._chunks: list[pa.Array] = []
        self._rank: Ids | None = None
        self.encode(symbols)

    def __len__(self) -> int:
        return len(self._ids)

    def lookup(self, symbol: str) -> int:
        """Id of a symbol, -1 if it has none."""
        return self._ids.get(symbol, -1)

    def symbol(self, number: int) -> str:
        """The symbol with this id."""
        if number < 0:
            raise IndexError(number)
        return self._list()[number]

    def encode(self, symbols: Iterable[str]) -> Ids:
        """Ids of the symbols; new ones get the next ids in order of appearance."""
        values = symbols if isinstance(symbols, Sequence) else list(symbols)
        return np.fromiter(map(self._ids.__getitem__, values), np.int32, len(values))

    def encode_arrow(self, array: pa.Array | pa.ChunkedArray) -> Ids:
        """Ids of a string, large_string or dictionary-encoded Arrow array, chunked or not; it must not hold nulls."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        if array.null_count:
            raise ValueError("a symbol column must not hold nulls")
        if isinstance(array, pa.ChunkedArray):
            parts = [self.encode_arrow(chunk) for chunk in array.chunks]
            return np.concatenate(parts) if parts else np.empty(0, np.int32)
        if not pa.types.is_dictionary(array.type):
            if _mostly_distinct(array):
                return self.encode(_strings(array))
            array = array.dictionary_encode()
            codes, values = array.indices.to_numpy(), array.dictionary
        else:
            # Its dictionary may hold more than it uses, in any order: only what is used may get an id.
            used, codes = _used_codes(array.indices.to_numpy(), len(array.dictionary))
            values = array.dictionary.take(pa.array(used))
            if values.null_count:
                raise ValueError("a symbol column must not hold nulls")
        ids: Ids = self.encode(_strings(values))[codes]
        return ids

    def decode(self, ids: Ids) -> list[str]:
        """Symbols of the ids."""
        return list(map(self._list().__getitem__, ids.tolist()))

    def decode_arrow(self, ids: Ids) -> pa.ChunkedArray:
        """Symbols of the ids as an Arrow large_string array."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        self._extend_chunks()
        symbols = pa.chunked_array(self._chunks, pa.large_string())
        return symbols.take(pa.array(ids, pa.int32()))

    def decode_compactly(self, ids: Ids) -> pa.DictionaryArray:
        """Symbols of the ids as a dictionary-encoded Arrow array, with those that occur and no others."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        used, codes = _used_codes(ids, len(self)) if 8 * len(ids) > len(self) else np.unique(ids, return_inverse=True)
        values = pa.array(self.decode(used.astype(np.int32)), pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), values)

    def rank(self) -> Ids:
        """The position of each id's symbol in the order of UTF-8 bytes. Not to be changed by the caller."""
        if self._rank is None or len(self._rank) != len(self):
            # Python compares strings by code point, which is the order of their UTF-8 bytes.
            order = sorted(range(len(self)), key=self._list().__getitem__)
            rank = np.empty(len(order), np.int32)
            rank[np.array(order, np.int64)] = np.arange(len(order), dtype=np.int32)
            rank.flags.writeable = False
            self._rank = rank
        return self._rank

    def _list(self) -> list[str]:
        """All symbols by id; extended when asked for, as a dictionary that only encodes needs no list."""
        known = len(self._symbols)
        if known < len(self._ids):
            if known * 2 < len(self._ids):
                self._symbols = list(self._ids)
            else:
                # Dicts keep the order of insertion and can be read from the end.
                newest = reversed(self._ids)
                self._symbols.extend([next(newest) for _ in range(len(self._ids) - known)][::-1])
        return self._symbols

    def _extend_chunks(self) -> None:
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        have = sum(map(len, self._chunks))
        if have == len(self):
            return
        self._chunks.append(pa.array(self._list()[have:], pa.large_string()))
        while len(self._chunks) > 1 and len(self._chunks[-2]) < 2 * len(self._chunks[-1]):
            last = self._chunks.pop()
            self._chunks[-1] = pa.concat_arrays([self._chunks[-1], last])


def _strings(array: pa.Array) -> list[str]:
    # to_pylist would make each string through a scalar object, which is three times slower.
    strings: list[str] = array.to_numpy(zero_copy_only=False).tolist()
    return strings


def _mostly_distinct(array: pa.Array) -> bool:
    """Guessed from the first strings. Where few repeat, encoding them with Arrow first costs more than it saves."""
    sample = array[:4096]
    return 2 * len(sample.dictionary_encode().dictionary) > len(sample)


def _used_codes(codes: npt.NDArray[np.integer], size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The codes below `size` that occur, ascending, and each code's place among them."""
    occurs = np.zeros(size, np.bool_)
    occurs[codes] = True
    used = np.flatnonzero(occurs)
    place = np.cumsum(occurs) - 1
    return used, place[codes]
