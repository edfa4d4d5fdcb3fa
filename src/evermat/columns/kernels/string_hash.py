"""Kernels that give texts their ids: a hash of ids over a pool of all bytes.

The texts of a dictionary lie one after the other in `pool`; text i is `pool[ends[i]:ends[i + 1]]`. A *slot* has 64 bits: 0 is empty, else the low
half is the id plus one and the high half a tag, the half of the text's hash whose low bits are its home slot. So slots can be moved to a larger
table without looking at a text.
"""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import numpy as np

from evermat.columns.kernels.hash_set import BLOCK
from evermat.kernels import MANY, compiled, load_word, prefetch

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@compiled()
def _tag(data, start, end):
    """The half of a hash that a slot keeps."""
    h = np.uint64(end - start) * _FACTOR
    at = start
    while at + 8 <= end:
        h = (h ^ load_word(data, at)) * _FACTOR
        h ^= h >> _HALF
        at += 8
    rest = np.uint64(0)
    while at < end:
        rest = (rest << np.uint64(8)) | np.uint64(data[at])
        at += 1
    h = (h ^ rest) * _FACTOR
    h ^= h >> _HALF
    return (h * _FACTOR) >> _HALF


@compiled()
def _same(data, start, pool, other, length):
    at = np.int64(0)
    while at + 8 <= length:
        if load_word(data, start + at) != load_word(pool, other + at):
            return False
        at += 8
    while at < length:
        if data[start + at] != pool[other + at]:
            return False
        at += 1
    return True


@compiled()
def _find(data, start, end, tag, pool, ends, count, slots):
    """The slot of one of the first `count` texts, or the empty one where it would be."""
    mask = np.uint64(slots.size - 1)
    slot = tag & mask
    while True:
        word = slots[slot]
        if word == _ZERO:
            return slot
        if word >> _HALF == tag:
            other = np.int64(word & _LOW) - 1
            known = other < count and ends[other + 1] - ends[other] == end - start
            if known and _same(data, start, pool, ends[other], end - start):
                return slot
        slot = (slot + _ONE) & mask


_GIVEN = "Array({}, 1, 'C', readonly=True)"  # what comes from others is not written to
_ENCODE = f"{_GIVEN.format('u1')}, {_GIVEN}, i8, i8, u1[::1], i8[::1], i8, u8[::1], i4[::1], u8[:,::1]"


@compiled(_ENCODE.format("i4"), _ENCODE.format("i8"), steps="start:n")
def encode_texts(data, offsets, start, n, pool, ends, count, slots, out, scratch):
    """Ids of the texts start … n into `out`; new ones are appended: (where it stopped for want of room, number of texts).

    Text i is `data[offsets[i]:offsets[i + 1]]`. There is room for a text if `ends` and `pool` hold it and at most half of the slots are taken.
    """
    tags = scratch[0]
    mask = np.uint64(slots.size - 1)
    most = min(ends.size - 1, slots.size // 2)
    for first in range(start, n, BLOCK):
        m = min(BLOCK, n - first)
        for b in range(m):
            tags[b] = _tag(data, np.int64(offsets[first + b]), np.int64(offsets[first + b + 1]))
            prefetch(slots, tags[b] & mask)
        for b in range(m):
            word = slots[tags[b] & mask]
            if word >> _HALF == tags[b]:
                prefetch(pool, np.uint64(ends[np.int64(word & _LOW) - 1]))
        for b in range(m):
            begin, end = np.int64(offsets[first + b]), np.int64(offsets[first + b + 1])
            slot = _find(data, begin, end, tags[b], pool, ends, count, slots)
            word = slots[slot]
            if word == _ZERO:
                at = ends[count]
                if count >= most or pool.size - at < end - begin:
                    return first + b, count
                for i in range(end - begin):
                    pool[at + i] = data[begin + i]
                count += 1
                ends[count] = at + end - begin
                word = (tags[b] << _HALF) | np.uint64(count)
                slots[slot] = word
            out[first + b] = np.int32(np.int64(word & _LOW) - 1)
    return n, count


@compiled(f"{_GIVEN.format('u1')}, u1[::1], i8[::1], i8, u8[::1]", steps="data", least=MANY)
def find_text(data, pool, ends, count, slots):
    """The id of one text among the first `count`, -1 if it has none. Others may be appended meanwhile."""
    tag = _tag(data, np.int64(0), np.int64(data.size))
    slot = _find(data, np.int64(0), np.int64(data.size), tag, pool, ends, count, slots)
    return np.int64(slots[slot] & _LOW) - 1


@compiled("u8[::1], u8[::1]")
def move_slots(slots, larger):
    """Enters all slots into a larger table that is empty."""
    mask = np.uint64(larger.size - 1)
    for i in range(slots.size):
        word = slots[i]
        if word != _ZERO:
            slot = (word >> _HALF) & mask
            while larger[slot] != _ZERO:
                slot = (slot + _ONE) & mask
            larger[slot] = word


@compiled("u1[::1], i8[::1], i8, i8, u8[::1]", steps="start:n")
def hash_texts(pool, ends, start, n, out):
    """A hash of each of the texts start … n, which depends on nothing but its bytes."""
    for i in range(start, n):
        out[i] = _tag(pool, ends[i], ends[i + 1])
