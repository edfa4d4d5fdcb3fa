"""An index gives the rows that a scan of the table would give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.columns.storage import index as index_module
from evermat.columns.storage.arrays import Batch, Truth
from evermat.columns.storage.index import Index
from evermat.columns.storage.table import Table
from tests.columns.models import Fact, batch_of, fact_lists, truth_of

EVEN = truth_of(lambda word: word % 2 == 0)


@pytest.fixture(autouse=True, params=["chains", "merges", "hashes"])
def _small_bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merging and switching after a few rows instead of thousands."""
    if request.param == "merges":
        monkeypatch.setattr(index_module, "MERGE_AT_LEAST", 3)
    if request.param == "hashes":
        monkeypatch.setattr(index_module, "MERGE_AT_LEAST", 3)
        monkeypatch.setattr(index_module, "DIRECT_ALWAYS", 4)
        monkeypatch.setattr(index_module, "DIRECT_PER_ROW", 0)


def collect(join: Iterator[tuple[np.ndarray, np.ndarray]], chunk: int | None = None) -> list[tuple[int, int]]:
    pairs = []
    for i, row in join:
        assert 0 < len(i) == len(row) and (chunk is None or len(i) <= chunk)
        pairs += list(zip(i.tolist(), row.tolist(), strict=True))
    assert [i for i, _ in pairs] == sorted(i for i, _ in pairs)
    return sorted(pairs)


def expect(
    table: Table, columns: tuple[int, ...], keys: Batch, n: int, view: Truth | None, lo: int, hi: int
) -> list[tuple[int, int]]:
    rows = [tuple(row) for row in table.rows[: table.count].tolist()]
    return [
        (i, row)
        for i in range(n)
        for row in range(lo, min(hi, table.count))
        if all(rows[row][c] == keys[j, i] for j, c in enumerate(columns)) and (view is None or view[table.state[row]])
    ]


@pytest.mark.slow
@given(st.data(), st.integers(1, 5))
def test_join_exists_and_counts_match_a_scan(data: st.DataObject, arity: int) -> None:
    table = Table(arity)
    columns = tuple(data.draw(st.permutations(range(arity)))[: data.draw(st.integers(1, arity))])
    index = Index(table, columns)
    for facts in data.draw(fact_lists(arity, lists=5)):
        table.add_new(batch_of(facts, arity), data.draw(st.integers(0, 3)))
        probe = facts[::2] + [tuple(v + 1 if v < 2**40 else v for v in fact) for fact in facts[:2]]
        keys, n = batch_of([tuple(f[c] for c in columns) for f in probe], len(columns), spare=2), len(probe)
        view = data.draw(st.sampled_from([None, EVEN]))
        lo = data.draw(st.integers(0, table.count))
        hi = data.draw(st.none() | st.integers(0, table.count + 2))
        chunk = data.draw(st.integers(1, 7))
        expected = expect(table, columns, keys, n, view, lo, table.count if hi is None else hi)
        assert collect(index.join(keys, view, lo=lo, hi=hi, n=n, chunk=chunk), chunk) == expected
        amounts = [sum(i == j for j, _ in expected) for i in range(n)]
        assert index.counts(keys, view, lo=lo, hi=hi, n=n).tolist() == amounts
        assert index.exists(keys, view, lo=lo, hi=hi, n=n).tolist() == [a > 0 for a in amounts]


@pytest.mark.slow
@given(st.data(), st.integers(1, 7))
def test_table_grows_and_index_is_used_during_a_join(data: st.DataObject, chunk: int) -> None:
    """Between two chunks facts are appended, some of which widen the table, and the same index is joined again."""
    table = Table(2)
    index = table.index((0,))
    first, *later = data.draw(fact_lists(2, lists=8))
    table.add_new(batch_of(first, 2), 0)
    if data.draw(st.booleans()):
        index.refresh()
    more = [(1, y) for y in range(data.draw(st.integers(0, 20)))]
    table.add_new(batch_of(more, 2), 0)
    keys = batch_of([(f[0],) for f in first] + [(1,), (1,)], 1)
    view = data.draw(st.sampled_from([None, EVEN]))
    expected = expect(table, (0,), keys, keys.shape[1], view, 0, table.count)
    join = index.join(keys, view, chunk=chunk)
    keys = keys.copy()
    got: list[tuple[int, int]] = []
    for i, row in join:
        got += list(zip(i.tolist(), row.tolist(), strict=True))
        if later:
            table.add_new(batch_of(later.pop(), 2), 0)
            inner = collect(index.join(keys, view, chunk=chunk), chunk)
            assert inner == expect(table, (0,), keys, keys.shape[1], view, 0, table.count)
            table.add_new(batch_of([(1, 1000 + table.count), (table.count, 1)], 2), 0)
    assert sorted(got) == expected


def test_buffers_are_not_shared_by_nested_joins() -> None:
    table = Table(2)
    table.add_new(batch_of([(x, y) for x in range(3) for y in range(5)], 2), 0)
    index = table.index((0,))
    keys = np.array([[0, 1, 2]])
    for i, row in index.join(keys, chunk=4):
        before = i.tolist(), row.tolist()
        assert len(collect(index.join(keys, chunk=4))) == 15
        assert (i.tolist(), row.tolist()) == before


def test_join_left_early_gives_its_buffers_back() -> None:
    table = Table(1)
    table.add_new(np.zeros((1, 1), np.int64), 0)
    for _ in range(3):
        for _pair in table.index((0,)).join(np.zeros((1, 9), np.int64), chunk=5):
            break
    assert 1 <= len(index_module._buffers._free[5]) <= 16


def test_many_rounds_and_sparse_keys() -> None:
    table, index_of = Table(2), {}
    for columns in ((0,), (1,), (1, 0)):
        index_of[columns] = table.index(columns)
    for round_ in range(60):
        facts: list[Fact] = [(round_ % 7, round_ * 1000 + j) for j in range(3)]
        table.add_new(batch_of(facts, 2), round_ % 2)
        for columns, index in index_of.items():
            keys = batch_of([tuple(facts[0][c] for c in columns)], len(columns))
            assert collect(index.join(keys, EVEN)) == expect(table, columns, keys, 1, EVEN, 0, table.count)


def test_hashed_index_becomes_direct_when_keys_become_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "DIRECT_ALWAYS", 0)
    monkeypatch.setattr(index_module, "DIRECT_PER_ROW", 4)
    table = Table(1)
    index = table.index((0,))
    table.add_new(np.array([[500]]), 0)
    assert index.counts(np.array([[500, 499]])).tolist() == [1, 0] and not index._keys.groups.direct
    table.add_new(np.arange(10_000)[None, :], 0)
    assert index.counts(np.array([[500, 499, 10_000]])).tolist() == [1, 1, 0] and index._keys.groups.direct
    table.add_new(np.array([[-3]]), 0)
    assert index.counts(np.array([[-3, 499]])).tolist() == [1, 1] and not index._keys.groups.direct


def test_empty_inputs() -> None:
    table = Table(2)
    index = table.index((1, 0))
    none, one = np.empty((2, 0), np.int64), np.zeros((2, 1), np.int64)
    assert list(index.join(one)) == [] and list(index.join(none)) == []
    assert index.counts(one).tolist() == [0] and index.exists(none).tolist() == []
    with pytest.raises(ValueError, match="at least one column"):
        Index(table, ())
