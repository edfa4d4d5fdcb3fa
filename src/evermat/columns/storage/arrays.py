"""The arrays of the engine: what they are called, and how kernels take them.

A *batch* of tuples has the shape [arity, capacity] and is C-contiguous, so that each column is contiguous.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evermat.columns.kernels import rows as row_kernels
from evermat.core import ask_for

Batch: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.int64]
Rows: TypeAlias = npt.NDArray[np.int32]
Nodes: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]
#: truth value (0 or 1) of a view for each of the 65,536 states
Truth: TypeAlias = npt.NDArray[np.uint8]

_SMALL = 1 << 20  # bytes; of larger arrays numpy has the system use large pages

NO_ROWS: Rows = np.empty(0, np.int32)
NO_NODES: Nodes = NO_ROWS
#: of a view to which all belong, for kernels
EVERY_STATE: Truth = np.empty(0, np.uint8)


def as_batch(batch: Batch) -> Batch:
    """The batch itself if kernels can take it, else a copy that they can."""
    if batch.dtype == np.int64 and batch.flags.carray:
        return batch
    return np.array(batch, dtype=np.int64, order="C", ndmin=2)


def as_rows(rows: Rows) -> Rows:
    """The row ids as kernels take them."""
    if rows.dtype == np.int32 and rows.flags.carray:
        return rows
    return np.array(rows, dtype=np.int32)


def picked(rows: Rows, mask: Mask, *, wanted: bool = True) -> Rows:
    """The rows whose mask is as wanted, in order. As all small kernels, it does not let other threads run; numpy would, three times."""
    rows = as_rows(rows)
    out = np.empty(len(rows), np.int32)
    return out[: row_kernels.pick_rows(rows, _as_mask(mask), wanted, out)]


def positions_in(mask: npt.NDArray[Any], *, wanted: bool = True) -> Rows:
    """Where a mask is as wanted."""
    mask = _as_mask(mask)
    out = np.empty(len(mask), np.int32)
    return out[: row_kernels.list_positions(mask, wanted, out)]


def _as_mask(mask: npt.NDArray[Any]) -> Mask:
    """A mask of the one type for which kernels are compiled; what comes from Arrow is read-only, which is another."""
    return np.require(mask, np.bool_, ["C", "W"])


def zeros_in_large_pages(size: int, kind: type[np.generic]) -> npt.NDArray[Any]:
    """Zeros. Not np.zeros: filled at once, a large array lies in large pages, which searches at random need."""
    if size * np.dtype(kind).itemsize <= _SMALL:
        return cleared(size, kind)
    array = np.empty(size, kind)
    array.fill(0)
    return array


def cleared(size: int, kind: Any) -> npt.NDArray[Any]:
    """Zeros, of which pages that are not written to cost nothing. Not np.zeros, which lets other threads run however small the array is."""
    nbytes = size * np.dtype(kind).itemsize
    return np.frombuffer(bytearray(nbytes), kind) if 0 < nbytes <= _SMALL else np.zeros(size, kind)


def ones(size: int) -> Numbers:
    """Ones; other threads run meanwhile only if these are many."""
    made = np.empty((1, size), np.int64)
    row_kernels.fill_row(made, 0, 0, size, 1)
    return made.reshape(size)


def rows_without(rows: Rows, others: Rows, count: int) -> Rows:
    """Those of the rows that are not among others, in order; all are less than `count`."""
    marks, found = cleared(count, np.bool_), np.empty(len(rows), np.bool_)
    row_kernels.mark_rows(marks, as_rows(others))
    row_kernels.test_marks(marks, as_rows(rows), found)
    return picked(rows, found, wanted=False)


def existing_rows(rows: Rows) -> Rows:
    """The rows that are not -1, in order."""
    out = np.empty(len(rows), np.int32)
    return out[: row_kernels.pick_existing(as_rows(rows), out)]


def starts_of(counts: npt.NDArray[Any]) -> Numbers:
    """Where lists of some lengths begin that lie one after the other, and where the last one ends."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def lengthened(array: Any, size: int, filler: int = 0) -> Any:
    """A copy with more elements, the new ones `filler`. Pages of zeros cost no memory until they are written."""
    ask_for(array.nbytes if filler == 0 else size * array.itemsize)
    longer = cleared(size, array.dtype) if filler == 0 else np.full(size, filler, array.dtype)
    longer[: len(array)] = array
    return longer


def grown(array: Any, size: int) -> Any:
    """The array itself if it has so many elements, else a copy that has, twice as long at least: growing step by step costs little then."""
    return array if len(array) >= size else lengthened(array, max(size, 2 * len(array)))
