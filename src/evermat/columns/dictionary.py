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
_INT32_BYTES = 1 << 31
_LARGE = 1 << 12  # values of an Arrow dictionary that are worth remembering
_REMEMBERED = 8  # dictionaries, for a relation may have as many columns of symbols


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
        # The Arrow dictionaries that came last, and the ids of their values, -1 if they have none yet: columns and files
        # often share one.
        self._recent: list[tuple[pa.Array, Ids]] = []
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
            return self._encode_codes(array.indices.to_numpy(), array.dictionary)
        ids: Ids = self.encode(_strings(values))[codes]
        return ids

    def forget_arrow(self) -> None:
        """Lets go of the Arrow dictionaries that are remembered because more columns may come with them."""
        self._recent = []

    def _encode_codes(self, codes: npt.NDArray[np.integer], values: pa.Array) -> Ids:
        """Ids of values of an Arrow dictionary, which may hold more, in any order: only what is used may get an id."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        known = next((ids for other, ids in self._recent if other.equals(values)), None)
        if known is None:
            known = np.full(len(values), -1, np.int32)
            if len(values) >= _LARGE:
                self._recent = [*self._recent[1 - _REMEMBERED :], (values, known)]
        found: Ids = known[codes]
        if len(found) and int(found.min()) < 0:
            missing = _distinct(codes[found < 0], len(values))
            strings = values.take(pa.array(missing))
            if strings.null_count:
                raise ValueError("a symbol column must not hold nulls")
            known[missing] = self.encode(_strings(strings))
            found = known[codes]
        return found

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
        """Symbols of the ids as a dictionary-encoded Arrow array: of those that occur, or of all if most occur."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        used = _distinct(ids, len(self))
        if 2 * len(used) > len(self) >= _LARGE and self._whole().nbytes < _INT32_BYTES:
            # All symbols then, so that all columns like this one, in all their files, share one dictionary.
            return pa.DictionaryArray.from_arrays(pa.array(ids, pa.int32()), self._whole().cast(pa.string()))
        codes = np.searchsorted(used, ids) if 8 * len(used) < len(self) else _places(used, len(self))[ids]
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

    def _whole(self) -> pa.Array:
        """All symbols as one Arrow array."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        self._extend_chunks()
        if len(self._chunks) > 1:
            self._chunks = [pa.concat_arrays(self._chunks)]
        return self._chunks[0]

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


def _distinct(codes: npt.NDArray[np.integer], size: int) -> npt.NDArray[np.integer]:
    """The codes below `size` that occur, ascending."""
    if 8 * len(codes) < size:
        return np.unique(codes)
    occurs = np.zeros(size, np.bool_)
    occurs[codes] = True
    return np.flatnonzero(occurs)


def _places(used: npt.NDArray[np.integer], size: int) -> Ids:
    """For each code below `size` its place among those that are used."""
    places = np.zeros(size, np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    return places
