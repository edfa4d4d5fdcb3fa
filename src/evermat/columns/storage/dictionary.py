"""Symbols and their ids."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import hash_set as tuples
from evermat.columns.kernels import string_hash as texts
from evermat.columns.storage.arrays import Mask, Numbers, Words, cleared, lengthened, starts_of
from evermat.core import ask_for, awaited, check_stop, watched_each
from evermat.kernels import FEW_TERMS, held_terms, mark_terms
from evermat.language import TermFault, checked_terms

if TYPE_CHECKING:
    import pyarrow as pa

Ids = npt.NDArray[np.int32]

_MAX_SYMBOLS = int(np.iinfo(np.int32).max)
_INT32_BYTES = 1 << 31
_LARGE = 1 << 12  # values of an Arrow dictionary that are worth remembering
_BYTES_OF_AN_ID = 32  # where its text ends, and two places by which it is found
_TAKEN = 1 << 18  # symbols that are taken over at a time
_PIECE = 1 << 20  # symbols that are encoded between two looks at limits
_MANY = 1 << 17  # symbols that Arrow sorts
_NEAR = 4  # symbols for each that is asked for
_COPIES = 3  # of symbols that are encoded: each by itself, all together, and where they are kept
_REMEMBERED = 8  # dictionaries, for a relation may have as many columns of symbols


class Dictionary:
    """Symbols ↔ ids 0, 1, 2 … in the order in which they were first seen; neither ever changes.

    Any number of threads may use it: ids are given to a piece of texts at a time, under a lock, and whatever else only grows is extended likewise.
    Symbols are looked up and decoded meanwhile: of arrays that are replaced, the number of symbols is read first.
    """

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        self._growing, self._listing = Lock(), Lock()
        self._count = 0
        # As `kernels.string_hash` has it. What lies before `_ends[_count]` never changes.
        self._pool = np.empty(1 << 10, np.uint8)
        self._ends = cleared(1 << 6, np.int64)
        self._slots = cleared(1 << 7, np.uint64)
        self._symbols: list[str] = []  # the first ones, as far as they were asked for
        self._rank: Ids | None = None
        self._hashes = np.empty(0, np.uint64)  # of the first ones
        self._terms = np.zeros(0, np.bool_)  # see `_known_terms`
        # The last Arrow dictionaries, and the ids of their values, -1 if they have none yet: columns and files
        # often share one.
        self._recent: list[tuple[pa.Array, Ids]] = []
        self.encode(symbols)

    def __len__(self) -> int:
        return self._count

    def __reduce__(self) -> Any:
        """A copy for another process is made of its symbols."""
        return Dictionary, (self._list(),)

    @property
    def texts(self) -> tuple[npt.NDArray[np.uint8], Numbers]:
        """The bytes of all symbols one after the other, and where each begins. Not to be changed by the caller."""
        return self._pool, self._ends

    @property
    def nbytes(self) -> int:
        """Bytes of all symbols, and of what finds them."""
        return int(self._ends[self._count]) + _BYTES_OF_AN_ID * self._count

    def bytes_of(self, chosen: Mask) -> int:
        """The same for some symbols."""
        lengths = np.diff(self._ends[: self._count + 1])
        return int(lengths[chosen].sum()) + _BYTES_OF_AN_ID * int(np.count_nonzero(chosen))

    def lengths(self, ids: list[int]) -> Numbers:
        """How many bytes each of some symbols has."""
        first = np.array(ids)
        lengths: Numbers = self._ends[first + 1] - self._ends[first]
        return lengths

    def take_over(self, other: Dictionary, chosen: Mask) -> None:
        """Encodes some symbols of another dictionary, in their order."""
        for first in range(0, len(chosen), _TAKEN):
            some = chosen[first : first + _TAKEN]
            ends = other._ends[first : first + len(some) + 1]
            lengths = np.diff(ends)
            offsets = np.zeros(int(np.count_nonzero(some)) + 1, np.int64)
            np.cumsum(lengths[some], out=offsets[1:])
            self._encode(other._pool[ends[0] : ends[-1]][np.repeat(some, lengths)], offsets)

    def lookup(self, symbol: str) -> int:
        """Id of a symbol, -1 if it has none."""
        text = np.frombuffer(symbol.encode(), np.uint8)
        count = self._count
        return int(texts.find_text(text, self._pool, self._ends, count, self._slots))

    def symbol(self, number: int) -> str:
        """The symbol with this id."""
        if not 0 <= number < self._count:
            raise IndexError(number)
        return self._pool[self._ends[number] : self._ends[number + 1]].tobytes().decode()

    def encode(self, symbols: Iterable[str]) -> Ids:
        """Ids of the symbols; new ones get the next ids in order of appearance."""
        listed = symbols if isinstance(symbols, list | tuple) else list(symbols)
        ask_for(_COPIES * sum(map(len, listed)))
        encoded = [symbol.encode() for symbol in listed]
        offsets = starts_of(np.fromiter(map(len, encoded), np.int64, len(encoded)))
        return self._encode(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def _encode(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[Any]) -> Ids:
        """Ids of texts that lie one after the other."""
        n = len(offsets) - 1
        data.flags.writeable = offsets.flags.writeable = False  # as the kernel is compiled for
        out, scratch = np.empty(n, np.int32), tuples.scratch()
        done = 0
        while done < n:
            end = min(done + _PIECE, n)
            with self._growing:
                done, self._count = texts.encode_texts(
                    data, offsets, done, end, self._pool, self._ends, self._count, self._slots, out, scratch
                )
                if done < end:
                    self._make_room(int(offsets[done + 1] - offsets[done]))
            if done == end:
                check_stop()
        return out

    def _make_room(self, length: int) -> None:
        if self._count >= _MAX_SYMBOLS:
            raise MemoryError(f"more than {_MAX_SYMBOLS} symbols")
        used = int(self._ends[self._count])
        if len(self._pool) - used < length:
            self._pool = lengthened(self._pool, max(used + length, 2 * len(self._pool)))
        if self._count + 1 >= len(self._ends):
            self._ends = lengthened(self._ends, 2 * len(self._ends))
        if 2 * self._count >= len(self._slots):
            ask_for(2 * self._slots.nbytes)
            slots = np.zeros(2 * len(self._slots), np.uint64)
            texts.move_slots(self._slots, slots)
            self._slots = slots

    def encode_arrow(self, array: pa.Array | pa.ChunkedArray) -> Ids:
        """Ids of a string, large_string or dictionary-encoded Arrow array, chunked or not; it must not hold nulls."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        if array.null_count:
            raise ValueError("a symbol column must not hold nulls")
        if isinstance(array, pa.ChunkedArray):
            parts = [self.encode_arrow(chunk) for chunk in array.chunks]
            return np.concatenate(parts) if parts else np.empty(0, np.int32)
        if pa.types.is_dictionary(array.type):
            return self._encode_codes(array.indices.to_numpy(), array.dictionary)
        if not len(array):
            return np.empty(0, np.int32)
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            array = array.cast(pa.large_string())
        _, offsets, data = array.buffers()
        positions = np.frombuffer(offsets, "i4" if pa.types.is_string(array.type) else "i8")[
            array.offset : array.offset + len(array) + 1
        ]
        return self._encode(np.frombuffer(data or b"", np.uint8), positions)

    def as_terms(self, ids: Ids) -> tuple[Ids, dict[int, TermFault]]:
        """The ids of the one form of symbols that are RDF terms, and what is wrong with those that are none, by id.

        A symbol is looked at when it is first asked for.
        """
        known = self._known_terms()
        if self._mark_terms(ids, known):
            return ids, {}
        asked = _distinct(ids, len(known)).astype(np.int32)
        asked = asked[~known[asked]]
        if not len(asked):
            return ids, {}
        odd = asked[~self._are_held(asked)]
        if not len(odd):
            known[asked] = True
            return ids, {}
        found = checked_terms([self.symbol(number) for number in odd.tolist()])
        faults = {int(i): one for i, one in zip(odd, found, strict=True) if isinstance(one, TermFault)}
        held = self.encode([one.text if isinstance(one, TermFault) else one for one in found])
        renamed = np.arange(len(self), dtype=np.int32)
        renamed[odd] = held
        known = self._known_terms()
        known[renamed[asked]] = True
        known[list(faults)] = False
        return renamed[ids], faults

    def _mark_terms(self, ids: Ids, known: Mask) -> bool:
        """Whether all these symbols are terms in their one form, which is easily seen if they are near each other, as new ones are."""
        if len(ids) < FEW_TERMS:
            return False
        begin, end = int(ids.min()), int(ids.max()) + 1
        if end - begin > _NEAR * len(ids):
            return False
        mark_terms(self._whole().slice(begin, end - begin), known[begin:end])
        return bool(known[ids].all())

    def _known_terms(self) -> Mask:
        """Which of the first symbols are known to be terms in their one form; what is true stays so."""
        if len(self._terms) < self._count:
            with self._listing:
                self._terms = lengthened(self._terms, max(self._count, 2 * len(self._terms)))
        return self._terms

    def _are_held(self, ids: Ids) -> Mask:
        """Which of some symbols, ascending, are plain terms in their one form."""
        begin, end = int(ids[0]), int(ids[-1]) + 1
        known = np.ones(end - begin, np.bool_)
        known[ids - begin] = False
        return held_terms(self._whole().slice(begin, end - begin), known)[ids - begin]

    def forget_arrow(self) -> None:
        """Forgets the Arrow dictionaries that are remembered because more columns may share them."""
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
            known[missing] = self.encode_arrow(values.take(pa.array(missing)))
            found = known[codes]
        return found

    def decode(self, ids: Ids) -> list[str]:
        return list(map(self._list().__getitem__, ids.tolist()))

    def decode_arrow(self, ids: Ids) -> pa.ChunkedArray:
        """Symbols of the ids as an Arrow large_string array."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        return pa.chunked_array([self._whole().take(pa.array(ids, pa.int32()))])

    def decode_compactly(self, ids: Ids) -> pa.DictionaryArray:
        """Symbols of the ids as a dictionary-encoded Arrow array: of those that occur, or of all if most occur."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        used = _distinct(ids, len(self))
        if 2 * len(used) > len(self) >= _LARGE and int(self._ends[self._count]) < _INT32_BYTES:
            # All symbols then, so that all columns like this one, in all their files, share one dictionary.
            return pa.DictionaryArray.from_arrays(pa.array(ids, pa.int32()), self._whole().cast(pa.string()))
        if 8 * len(used) < len(self):
            codes = np.searchsorted(used, ids)
        else:
            codes = np.zeros(len(self), np.int32)
            codes[used] = np.arange(len(used), dtype=np.int32)
            codes = codes[ids]
        values = pa.array(self.decode(used.astype(np.int32)), pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), values)

    def rank(self) -> Ids:
        """The position of each id's symbol in the order of UTF-8 bytes. Not to be changed by the caller."""
        rank, count = self._rank, len(self)
        if rank is None or len(rank) < count:
            order = self._order(count)
            rank = np.empty(count, np.int32)
            rank[order] = np.arange(count, dtype=np.int32)
            rank.flags.writeable = False
            self._rank = rank
        return rank

    def _order(self, count: int) -> npt.NDArray[Any]:
        """The ids of the first symbols in the order of these."""
        if count < _MANY:
            # Python compares strings by code point, which is the order of their UTF-8 bytes.
            return np.array(sorted(range(count), key=self._list().__getitem__), np.int64)
        import pyarrow.compute as pc  # noqa: PLC0415  (loaded only where it is used)

        ask_for(16 * count)
        symbols = self._whole().slice(0, count)
        return awaited(lambda: pc.sort_indices(symbols).to_numpy())

    def hashes(self) -> Words:
        """For each id a hash of its symbol, the same in every process. Not to be changed by the caller."""
        if len(self._hashes) < self._count:
            with self._listing:
                known, count = len(self._hashes), self._count
                hashes = lengthened(self._hashes, count)
                texts.hash_texts(self._pool, self._ends, known, count, hashes)
                self._hashes = hashes
        return self._hashes

    def _list(self) -> list[str]:
        """All symbols by id; extended when asked for, as a dictionary that only encodes needs no list."""
        if len(self._symbols) < self._count:
            with self._listing:
                ends = self._ends[len(self._symbols) : self._count + 1]
                raw = self._pool[ends[0] : ends[-1]].tobytes()
                positions = (ends - ends[0]).tolist()
                self._symbols += [raw[start:end].decode() for start, end in watched_each(pairwise(positions))]
        return self._symbols

    def _whole(self) -> pa.Array:
        """All symbols as one Arrow array, which shares our memory."""
        import pyarrow as pa  # noqa: PLC0415  (loaded only where it is used)

        count = self._count
        ends = pa.py_buffer(self._ends[: count + 1])
        return pa.LargeStringArray.from_buffers(count, ends, pa.py_buffer(self._pool))


def _distinct(codes: npt.NDArray[np.integer], size: int) -> npt.NDArray[np.integer]:
    """The codes below `size` that occur, ascending."""
    if 8 * len(codes) < size:
        return np.unique(codes)
    occurs = np.zeros(size, np.bool_)
    occurs[codes] = True
    return np.flatnonzero(occurs)
