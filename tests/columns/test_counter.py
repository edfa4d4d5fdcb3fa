"""Counters count, never wrap, and never fall below zero."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.columns.kernels import dense_set as dense
from evermat.columns.storage.counter import INT64_MAX, Counter, CountError
from evermat.columns.storage.table import Table

ROWS = st.lists(st.integers(0, 9), max_size=20)


def ten_rows() -> Table:
    table = Table(1)
    table.add_new(np.arange(10)[None, :], 1)
    return table


@given(st.lists(st.tuples(ROWS, st.booleans(), st.integers(0, 40)), max_size=6), st.sampled_from([3, 20, 2**31 - 1]))
def test_counts_match_the_model(changes: list[tuple[list[int], bool, int]], bound: int) -> None:
    table = ten_rows()
    counter, model = Counter(table, bound=bound), collections.Counter[int]()
    for ids, weighted, weight in changes:
        rows = np.array(ids, np.int32)
        weights = np.arange(len(ids)) + weight if weighted else None
        counter.add(rows, weights)
        for i, row in enumerate(ids):
            model[row] += 1 if weights is None else int(weights[i])
        assert counter.get(np.arange(10)).tolist() == [model[row] for row in range(10)]
        half = rows[: len(rows) // 2]
        counter.subtract(half, None if weights is None else weights[: len(half)])
        for i, row in enumerate(half.tolist()):
            model[row] -= 1 if weights is None else int(weights[i])
        assert counter.get(np.arange(10)).tolist() == [model[row] for row in range(10)]
    assert counter.wide or max(model.values(), default=0) <= bound


def test_more_than_32_bits() -> None:
    counter = Counter(ten_rows())
    rows = np.array([3, 3], np.int32)
    counter.add(rows, np.array([2**31 - 1, 0]))
    assert not counter.wide
    counter.add(rows, np.array([10**10, 1]))
    assert counter.wide and counter.get(rows).tolist() == [2**31 + 10**10] * 2
    counter.add(np.array([4], np.int32), np.array([INT64_MAX]))
    with pytest.raises(CountError, match="row 4 exceeds 64 bits"):
        counter.add(np.array([4], np.int32))
    counter.clear()
    assert not counter.wide and counter.get(np.arange(10)).tolist() == [0] * 10


def test_negative_counts_are_refused() -> None:
    counter = Counter(ten_rows())
    counter.add(np.array([1, 2, 2], np.int32))
    with pytest.raises(CountError, match="row 1 would become negative"):
        counter.subtract(np.array([2, 1, 1], np.int32))
    with pytest.raises(CountError):
        counter.subtract(np.array([5], np.int32), np.array([1]))
    with pytest.raises(ValueError, match="negative"):
        counter.add(np.array([5], np.int32), np.array([-1]))
    with pytest.raises(ValueError, match="as many"):
        counter.add(np.array([5, 6], np.int32), np.array([1]))
    assert counter.get(np.array([1, 2, 5], np.int32)).tolist() == [0, 1, 0]


def test_grows_with_the_table() -> None:
    table = Table(1)
    counter = Counter(table)
    for step in range(6):
        table.add_new(np.arange(step * 500, step * 500 + 500)[None, :], 1)
        assert counter.get(np.array([table.count - 1], np.int32)).tolist() == [0]
        counter.add(np.arange(table.count, dtype=np.int32))
    assert counter.get(np.array([0, 2999], np.int32)).tolist() == [6, 1]
    assert counter.nbytes == 3000 * 4


TUPLES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=30)
STEPS = st.sampled_from(["count", "count", "count", "up", "down", "settle", "add", "locate", "contains", "clear"])


@pytest.mark.slow
@pytest.mark.parametrize("near", [0, dense.FAR])
@given(data=st.data(), scale=st.sampled_from([1, 300, -5, 2**33]), bound=st.sampled_from([300, 2**31 - 1]))
def test_counted_tuples_match_the_model(near: int, data: st.DataObject, scale: int, bound: int) -> None:
    """However the table represents them: hash, bitmap, tally, list of rows; and whatever else happens to it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dense, "FAR", near)  # with 0 a tally is begun for small tables too
        table = Table(2)
        counter, other = Counter(table, bound=bound), Counter(table)
        model, marked, known = collections.Counter[tuple[int, int]](), set[tuple[int, int]](), set[tuple[int, int]]()
        table.locate(np.array([[i % 16, i // 16] for i in range(64)]).T.copy(), tallying=True)
        known |= {(i % 16, i // 16) for i in range(64)}
        for step in data.draw(st.lists(STEPS, max_size=12)):
            facts = [(a * scale, b) for a, b in data.draw(TUPLES)] * data.draw(st.sampled_from([1, 1, 60]))
            batch = np.array(facts).T.copy()
            if step == "count" and not marked:
                counter.add_tuples(batch, len(facts), None)
                model.update(facts)
            elif step in ("up", "down"):
                sign = 1 if step == "up" else -1
                if sign < 0 and any(n > model[fact] for fact, n in collections.Counter(facts).items()):
                    continue
                rows, before = counter.touch_tuples(batch, len(facts), None, sign)
                touched = list(zip(*table.take(rows).tolist(), strict=True)) if len(rows) else []
                assert touched == [fact for fact in dict.fromkeys(facts) if fact not in marked]
                assert before.tolist() == [model[fact] for fact in touched]
                for fact in facts:
                    model[fact] += sign
                marked |= set(facts)
            elif step == "settle":
                if marked:
                    counter.settle(table.find(np.array(sorted(marked)).T.copy()))
                marked.clear()
                continue
            elif step == "add":
                table.add_new(batch, 1)
            elif step == "locate":
                other.add_tuples(batch, len(facts), None)
            elif step == "contains":
                assert table.contains(batch).tolist() == [fact in known for fact in facts]
                continue
            elif step == "clear":
                counter.clear()
                model.clear()
                marked.clear()
                continue
            else:
                continue
            known |= set(facts)
            assert table.count == len(known)
        everything = list(zip(*table.take(np.arange(table.count, dtype=np.int32)).tolist(), strict=True))
        assert set(everything) == known and len(everything) == len(known)
        counts = counter.get(np.arange(table.count, dtype=np.int32)).tolist()
        assert dict(zip(everything, counts, strict=True)) == {fact: model[fact] for fact in everything}
        assert table.find(np.array(everything).T.copy()).tolist() == list(range(table.count))
