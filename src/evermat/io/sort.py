"""Sorts the rows of a relation: numbers by value, symbols by their UTF-8 bytes, the first column first.

Each column becomes a key: an unsigned integer in the same order from which the value can be told again. Keys that
fit into 64 bits together are packed into one word, and sorting the rows is sorting these words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evermat.core import awaited, check_stop
from evermat.io.schema import TEXTS, arrow_schema
from evermat.language import Relation, Type

BATCH = 1 << 17
_MANY = 1 << 20  # texts whose sorting takes long
_WORD = 64
_SIGN = np.uint64(1 << 63)
Words = npt.NDArray[np.uint64]


class Key(Protocol):
    """A column in a form that sorts fast."""

    words: Words

    def decode(self, words: Words) -> Any:
        """The values, as an Arrow array, that some keys stand for."""


class _Integers:
    """The distance from the smallest value."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self.type = values.dtype
        self.low = values.min().view(np.uint64)
        self.words: Words = values.view(np.uint64) - self.low

    def decode(self, words: Words) -> Any:
        return pa.array((words + self.low).view(self.type))


class _Floats:
    """The bits of the float, with the sign turned so that they count upwards."""

    def __init__(self, values: npt.NDArray[np.float64]) -> None:
        bits = values.view(np.uint64)
        self.words: Words = np.where(bits & _SIGN, ~bits, bits | _SIGN)

    def decode(self, words: Words) -> Any:
        return pa.array(np.where(words & _SIGN, words ^ _SIGN, ~words).view(np.float64))


class _Ranks:
    """The rank among the distinct values."""

    def __init__(self, column: Any, inner: Key | None = None) -> None:
        encoded = pc.dictionary_encode(column)
        order = (
            awaited(lambda: pc.array_sort_indices(encoded.dictionary))
            if len(encoded.dictionary) > _MANY
            else pc.array_sort_indices(encoded.dictionary)
        )
        self.values = encoded.dictionary.take(order)
        self.inner = inner
        rank = np.empty(len(order), np.uint64)
        rank[order.to_numpy(zero_copy_only=False)] = np.arange(len(order), dtype=np.uint64)
        self.words: Words = rank[encoded.indices.to_numpy(zero_copy_only=False)]

    def decode(self, words: Words) -> Any:
        values = self.values.take(pa.array(words))
        return values if self.inner is None else self.inner.decode(values.to_numpy())


class _Packed(NamedTuple):
    """Where the key of a column stands: in which word, how far from its right end, and how wide."""

    word: int
    shift: int
    width: int


def sorted_batches(table: pa.Table, relation: Relation) -> Iterator[pa.RecordBatch]:
    """The rows of a relation in their order, in batches."""
    if not relation.columns:
        yield from [pa.RecordBatch.from_pydict({"present": [True] * table.num_rows})] if table.num_rows else []
        return
    if not table.num_rows:
        return
    schema = arrow_schema(relation)
    keys = [_key(column, type_) for column, type_ in zip(table.columns, relation.types, strict=True)]
    if sum(_width(key) for key in keys) > _WORD:
        keys = [_Ranks(pa.array(key.words), key) if _width(key) > _WORD // 2 else key for key in keys]
    words, packed = _pack(keys)
    check_stop()
    if len(words) == 1:
        words[0].sort()
    else:
        order = np.lexsort(words[::-1])
        words = [word[order] for word in words]
    for begin in range(0, table.num_rows, BATCH):
        parts = [word[begin : begin + BATCH] for word in words]
        arrays = [key.decode(_unpack(parts, packing)) for key, packing in zip(keys, packed, strict=True)]
        yield pa.RecordBatch.from_arrays(
            [pc.cast(a, f.type) for a, f in zip(arrays, schema, strict=True)], schema=schema
        )


def _key(column: Any, type_: Type) -> Key:
    if type_ in TEXTS:
        return _Ranks(pc.cast(column, pa.large_string()).combine_chunks())
    values = column.to_numpy()
    return _Floats(values) if type_ is Type.FLOAT else _Integers(np.ascontiguousarray(values))


def _width(key: Key) -> int:
    return int(key.words.max()).bit_length()


def _pack(keys: Sequence[Key]) -> tuple[list[Words], list[_Packed]]:
    """The keys in as few words as their order allows; every word is a new array."""
    words: list[Words] = []
    members: list[list[int]] = []
    widths = [_width(key) for key in keys]
    left = 0
    for i, width in enumerate(widths):
        if not members or width > left:
            members.append([])
            left = _WORD
        members[-1].append(i)
        left -= width
    packed: list[_Packed] = []
    for number, columns in enumerate(members):
        shift = sum(widths[i] for i in columns)
        word = np.zeros(len(keys[0].words), np.uint64)
        for i in columns:
            shift -= widths[i]
            if shift < _WORD:
                word |= keys[i].words << np.uint64(shift)
            packed.append(_Packed(number, shift, widths[i]))
        words.append(word)
    return words, packed


def _unpack(words: Sequence[Words], packed: _Packed) -> Words:
    word = words[packed.word]
    if packed.shift >= _WORD or packed.width == 0:
        return np.zeros(len(word), np.uint64)
    mask = np.uint64((1 << packed.width) - 1)
    return (word >> np.uint64(packed.shift)) & mask
