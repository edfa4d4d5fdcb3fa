"""Kernels over rows and counters, and the means to compile all kernels ahead of use."""

# The types of a kernel are the signatures given to `compiled`.
# mypy: allow-untyped-defs, no-check-untyped-defs

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from numba.core import sigutils

# The other files of kernels are imported so that `warm_up` knows theirs.
from evermat.columns.kernels import (  # noqa: F401
    dense_set,
    graphs,
    hash_join,
    hash_set,
    interval_build,
    interval_scan,
    jit,
    string_hash,
    tree_cover,
    union_find,
)
from evermat.columns.kernels.jit import compiled


@compiled("i4[:,::1], i8, i4[::1], i8, i8[:,::1], i8", "i8[:,::1], i8, i4[::1], i8, i8[:,::1], i8")
def gather_rows(rows, column, ids, base, out, j):
    """out[j, i] = rows[ids[i] + base, column]."""
    for i in range(ids.size):
        out[j, i] = rows[ids[i] + base, column]


@compiled("i8[:,::1], i8, i4[::1], i8[:,::1], i8")
def gather_batch(batch, column, ids, out, j):
    """out[j, i] = batch[column, ids[i]]."""
    for i in range(ids.size):
        out[j, i] = batch[column, ids[i]]


@compiled("i4[:,::1], i8, i8, i8, i8[:,::1], i8", "i8[:,::1], i8, i8, i8, i8[:,::1], i8")
def read_rows(rows, column, first, end, out, j):
    """out[j, i] = rows[first + i, column]."""
    for i in range(end - first):
        out[j, i] = rows[first + i, column]


@compiled("u2[::1], i4[::1], i8, i8")
def change_bits(state, ids, keep, add):
    """Set state = state & keep | add for the listed rows."""
    for i in range(ids.size):
        state[ids[i]] = (np.int64(state[ids[i]]) & keep) | add


@compiled("u2[::1], i4[::1], u1[::1], i8, i4[::1]")
def claim_rows(state, ids, blocked, bits, out):
    """Set `bits` in each listed row whose state is not blocked (then it is), and list it; returns how many."""
    m = 0
    for i in range(ids.size):
        row = ids[i]
        before = np.int64(state[row])
        out[m] = row
        free = np.int64(blocked[before] == 0)
        state[row] = before | (bits * free)
        m += free
    return m


@compiled("u2[::1], i4[::1], u1[::1], i4[::1]")
def filter_rows(state, ids, truth, out):
    """The listed rows whose state is true, in order; returns how many."""
    m = 0
    for i in range(ids.size):
        row = ids[i]
        out[m] = row
        m += np.int64(truth[state[row]])
    return m


@compiled("u2[::1], i8, i8, u1[::1], i4[::1]")
def scan_rows(state, first, end, truth, out):
    """The rows first … end whose state is true; returns (next row, how many); stops when `out` is full."""
    m = 0
    row = first
    while row < end and m < out.size:
        stop = min(end, row + out.size - m)
        for r in range(row, stop):
            out[m] = r
            m += np.int64(truth[state[r]])
        row = stop
    return row, m


@compiled("i8[:,::1], i8, u8[::1], u8[::1]")
def masks_of(batch, n, masks, out):
    """out[i] = the bits that the masks of all values of tuple i have in common, none for a value without a mask; returns all bits that any has."""
    found = np.uint64(0)
    for i in range(n):
        common = ~np.uint64(0)
        for c in range(batch.shape[0]):
            value = batch[c, i]
            common &= masks[value] if 0 <= value < masks.size else np.uint64(0)
        out[i] = common
        found |= common
    return found


_COUNTER = "{}[::1], i4[::1], i8[::1], i8, i8, i8"


@compiled(_COUNTER.format("i4"), _COUNTER.format("i8"))
def add_counts(counts, ids, weights, sign, start, most):
    """counts[ids[i]] += sign * weight from i = start on; an empty `weights` stands for ones.

    Returns ids.size, or the i at which a count would leave 0 … most; nothing is done from that i on.
    """
    weighted = weights.size > 0
    for i in range(start, ids.size):
        row = ids[i]
        before = np.int64(counts[row])
        weight = weights[i] if weighted else np.int64(1)
        # compared without adding, which might wrap
        if (sign > 0 and weight > most - before) or (sign < 0 and weight > before):
            return i
        counts[row] = before + sign * weight
    return ids.size


_TOUCH = "{0}[::1], i4[::1], i8[::1], i8, i8, i8, i4[::1], {0}[::1]"


@compiled(_TOUCH.format("i4"), _TOUCH.format("i8"))
def touch_counts(counts, ids, weights, sign, start, most, touched, before):
    """As `add_counts`, and marks what it counts: a marked count c is held as ~c, which is negative.

    Returns (where it stopped, m); the first m of `touched` and `before` are the rows that were not marked, and their counts.
    """
    weighted = weights.size > 0
    m = 0
    for i in range(start, ids.size):
        row = np.uint64(ids[i])
        held = counts[row]
        count = ~held if held < 0 else held
        weight = weights[i] if weighted else np.int64(1)
        if weight > (most - count if sign > 0 else count):
            return i, m
        touched[np.uint64(m)] = ids[i]
        before[np.uint64(m)] = count
        counts[row] = ~(count + sign * weight)
        m += np.int64(held >= 0)
    return ids.size, m


@compiled("i4[::1], i4[::1]", "i8[::1], i4[::1]")
def settle_counts(counts, ids):
    """The listed rows are marked no more."""
    for i in range(ids.size):
        held = counts[ids[i]]
        counts[ids[i]] = ~held if held < 0 else held


@compiled("i4[::1], i4[::1], i8[::1]", "i8[::1], i4[::1], i8[::1]")
def get_counts(counts, ids, out):
    """Counts of the listed rows; a row beyond the end counts 0."""
    for i in range(ids.size):
        row = ids[i]
        held = counts[row] if row < counts.size else 0
        out[i] = ~held if held < 0 else held


def _stamp_exists() -> bool:
    return jit.CACHE_FOLDER is not None and (jit.CACHE_FOLDER / "warm").exists()


def is_warm() -> bool:
    """Whether first use needs no compilation: all kernels are in the cache on disk, or compiled in this process."""
    if jit.JIT_DISABLED or _stamp_exists():
        return True
    return all(len(kernel.signatures) >= len(signatures) for kernel, signatures in jit.KERNELS)


# What nearly every program with joins needs, over rows of 32 bits.
_COMMON = (
    *("chain_rows", "fill_bitmap", "gather_batch", "gather_rows", "groups_direct", "insert_bitmap", "insert_hashed"),
    *("join_all", "keys_of_rows", "merge_rows", "range_of_rows", "read_rows", "span_of_column"),
)
# What closures need besides.
_CLOSURES = (
    *(
        "clear",
        "condense",
        "count_pairs",
        "edges_between",
        "fill_direct",
        "fill_slots",
        "find_components",
        "insert_direct",
    ),
    *("find_strong_components", "link", "list_by_key", "range_of_batch", "reach", "spread", "write_pairs"),
)


def prepare(*, closures: bool) -> None:
    """Load the kernels that nearly every program needs, or every one with closures, so that reasoning does not wait for them.

    Those that were never compiled on this machine are left alone: it may be that they are not needed.
    """
    if jit.CACHE_FOLDER is None:
        return
    files = [path.name for path in jit.CACHE_FOLDER.rglob("*.nbi")]
    wanted = {*_COMMON, *(_CLOSURES if closures else ())}
    for kernel, signatures in jit.KERNELS:
        name = kernel.__name__
        if name in wanted and any(f".{name}-" in file for file in files):
            _compile(kernel, signatures[0])


def warm_up() -> None:
    """Compile every kernel for every signature in use, or load it from the cache."""
    for kernel, signatures in jit.KERNELS:
        for signature in signatures:
            _compile(kernel, signature)
    if jit.CACHE_FOLDER is not None:
        with contextlib.suppress(OSError):  # the folder has become read-only: compiled, if not cached
            (jit.CACHE_FOLDER / "warm").touch()


def _compile(kernel: Any, signature: str) -> None:
    # as types, for numba looks a kernel up in its cache by what it was asked to compile
    kernel.compile(sigutils.normalize_signature(f"({signature})")[0])
