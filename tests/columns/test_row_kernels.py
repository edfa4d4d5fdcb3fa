"""Kernels over rows do what numpy would do, however few or many rows there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evermat.columns.evaluation.operators import multiply
from evermat.columns.kernels import rows as kernels
from evermat.columns.storage.arrays import cleared, existing_rows, ones, rows_without, zeros_in_large_pages
from evermat.kernels import MANY

SIZES = [0, 1, 7, 3000, MANY + 1]


def numbers(size: int, high: int, kind: Any = np.int32) -> Any:
    return np.random.default_rng(size).integers(0, high, size).astype(kind)


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_columns_of_a_join(size: int, kind: Any) -> None:
    table, outer = numbers(300, 1000, kind).reshape(100, 3), numbers(200, 1000, np.int64).reshape(2, 100)
    rows, positions, out = numbers(size, 100), numbers(size, 100), np.full((4, size + 3), -1, np.int64)
    binds, carry = np.array([[2, 0], [0, 3]]), np.array([[1, 2]])
    kernels.gather_joined(table, rows, binds, outer, positions, carry, out)
    assert (out[[0, 3], :size] == table[rows][:, [2, 0]].T).all()
    assert (out[2, :size] == outer[1, positions]).all()
    assert (out[1] == -1).all()
    assert (out[:, size:] == -1).all()


def test_no_columns_of_a_join() -> None:
    none, out = np.empty((0, 2), np.int64), np.full((1, 3), 5, np.int64)
    kernels.gather_joined(np.zeros((9, 1), np.int32), numbers(3, 9), none, out, numbers(3, 3), none, out)
    assert out.tolist() == [[5, 5, 5]]


def test_bindings_that_stay(size: int) -> None:
    batch = numbers(3 * (size + 1), 1000, np.int64).reshape(3, size + 1)
    before, chosen = batch.copy(), np.flatnonzero(numbers(size, 2)).astype(np.int32)
    kernels.compress_rows(batch, np.array([2, 0]), chosen)
    assert (batch[[0, 2], : len(chosen)] == before[[0, 2]][:, chosen]).all()
    assert (batch[1] == before[1]).all()


def test_rows_that_are_true(size: int) -> None:
    state, truth = numbers(size + 2, 8, np.uint16), np.array([0, 1, 0, 1, 1, 0, 0, 1], np.uint8)
    assert kernels.count_rows(state, 1, size + 1, truth) == truth[state[1 : size + 1]].sum()


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_columns_of_rows(size: int, kind: Any) -> None:
    table = numbers(3 * (size + 2), 1000, kind).reshape(size + 2, 3)
    batch, listed = np.full((2, size + 2), -1, np.int64), np.full(size, -1, np.int32)
    kernels.copy_column(table, 1, 1, size + 1, batch, 1)
    kernels.list_column(table, 2, 1, size + 1, listed)
    assert (batch[1, :size] == table[1 : size + 1, 1]).all()
    assert (batch[:, size:] == -1).all()
    assert (listed == table[1 : size + 1, 2]).all()
    kernels.fill_row(batch, 0, 0, size, 7)
    assert (batch[0, :size] == 7).all()
    assert (batch[0, size:] == -1).all()


def test_rows_of_tuples_that_exist(size: int) -> None:
    rows = numbers(size, 5) - 1
    assert existing_rows(rows).tolist() == [row for row in rows.tolist() if row >= 0]
    assert existing_rows(rows[::-1]).tolist() == [row for row in rows[::-1].tolist() if row >= 0]


def test_rows_without_others(size: int) -> None:
    rows, others = numbers(size, 50), numbers(size // 3, 40)
    gone = set(others.tolist())
    assert rows_without(rows, others, 50).tolist() == [row for row in rows.tolist() if row not in gone]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [([], 0), ([4], 1), ([4, 5, 9], 3), ([4, 4], 1), ([1, 2, 0, 3], 2), ([3, 2, 1], 1), ([1, 2, 3, 3], 3)],
)
def test_where_rows_do_not_ascend(rows: list[int], expected: int) -> None:
    assert kernels.first_descent(np.array(rows, np.int32)) == expected


def test_truth_tables(size: int) -> None:
    left, right, out = numbers(size, 2, np.uint8), numbers(size, 2, np.uint8)[::-1].copy(), np.empty(size, np.uint8)
    kernels.subtract_truth(left, right, out)
    assert out.tolist() == [int(a and not b) for a, b in zip(left.tolist(), right.tolist(), strict=True)]


@pytest.mark.parametrize("make", [cleared, zeros_in_large_pages])
@pytest.mark.parametrize("kind", [np.bool_, np.int32, np.uint64])
def test_zeros(make: Any, kind: Any, size: int) -> None:
    for many in (size, 50 * size):
        made = make(many, kind)
        assert made.dtype == kind
        assert made.shape == (many,)
        assert made.flags.carray
        assert not made.any()
        made[:] = 1
        assert made.all()


def test_ones(size: int) -> None:
    assert (ones(size) == np.ones(size, np.int64)).all()
    assert ones(size).shape == (size,)


def test_weights_are_multiplied_or_refused() -> None:
    weights = np.array([1, 2, 2**40], np.int64)
    multiply(weights, np.array([3, 0, 2**20], np.int64))
    assert weights.tolist() == [3, 0, 2**60]
    multiply(weights, np.array([True, False, True]))
    assert weights.tolist() == [3, 0, 2**60]
    with pytest.raises(OverflowError, match="2\\^63"):
        multiply(weights, np.array([1, 1, 8], np.int64))
    assert weights.tolist() == [3, 0, 2**60]  # nothing is done by halves
