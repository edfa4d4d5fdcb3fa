"""A table does what a list of distinct tuples does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.columns.storage import membership
from evermat.columns.storage.membership import Bitmap
from evermat.columns.storage.table import Table
from tests.columns.models import Fact, batch_of, fact_lists, truth_of

ODD = truth_of(lambda word: word & 1 == 1)
HAS_FOUR = truth_of(lambda word: word & 4 != 0)


class Model:
    """Facts in order of first appearance, with states."""

    def __init__(self) -> None:
        self.rows: dict[Fact, int] = {}
        self.state: list[int] = []

    def locate(self, fact: Fact, bits: int) -> int:
        if fact not in self.rows:
            self.rows[fact] = len(self.rows)
            self.state.append(bits)
        return self.rows[fact]


def check(table: Table, model: Model) -> None:
    assert table.count == len(model.rows)
    assert [tuple(row) for row in table.rows[: table.count].tolist()] == list(model.rows)
    assert table.state[: table.count].tolist() == model.state
    assert list(zip(*table.take(np.arange(table.count)).tolist(), strict=True)) == [f for f in model.rows if f]


@pytest.mark.slow
@given(st.data(), st.integers(0, 5), st.booleans())
def test_operations_match_the_model(data: st.DataObject, arity: int, dense: bool) -> None:
    table, model = Table(arity, dense=dense), Model()
    for facts in data.draw(fact_lists(arity, lists=6)):
        operation = data.draw(st.sampled_from(["add", "add", "locate", "find", "contains", "dense", "widen"]))
        batch, n = batch_of(facts, arity, spare=3), len(facts)
        if operation == "add":
            before = len(model.rows)
            for fact in facts:
                model.locate(fact, 5)
            assert table.add_new(batch, 5, n) == (before, len(model.rows) - before)
        elif operation == "locate":
            assert table.locate(batch, n).tolist() == [model.locate(fact, 0) for fact in facts]
        elif operation == "find":
            assert table.find(batch, n).tolist() == [model.rows.get(fact, -1) for fact in facts]
        elif operation == "contains":
            assert table.contains(batch, None, n).tolist() == [fact in model.rows for fact in facts]
            in_view = [f in model.rows and model.state[model.rows[f]] & 1 == 1 for f in facts]
            assert table.contains(batch, ODD, n).tolist() == in_view
        elif operation == "dense":
            table._try_dense()  # sooner than it would by itself
        else:
            table.widen()
        check(table, model)


@given(st.data(), st.integers(1, 3))
def test_representations_switch_on_the_way(data: st.DataObject, arity: int) -> None:
    """Bitmaps of at most 20 bits per fact, so that a few facts take a table to and fro."""
    always, per_fact = membership.BITS_ALWAYS, membership.BITS_PER_FACT
    membership.BITS_ALWAYS, membership.BITS_PER_FACT = 0, 20
    try:
        table, model = Table(arity), Model()
        for facts in data.draw(fact_lists(arity, lists=8, size=80)):
            for fact in facts:
                model.locate(fact, 1)
            table.add_new(batch_of(facts, arity), 1)
            check(table, model)
            assert table.contains(batch_of(facts, arity)).all()
    finally:
        membership.BITS_ALWAYS, membership.BITS_PER_FACT = always, per_fact


def test_dense_facts_go_to_a_bitmap_and_leave_it() -> None:
    table = Table(2)
    facts = [(x, y) for x in range(40) for y in range(40)]
    table.add_new(batch_of(facts, 2), 1)
    assert isinstance(table.members, Bitmap)
    table.add_new(batch_of([(60, 3)], 2), 1)
    assert isinstance(table.members, Bitmap) and table.count == 1601
    table.add_new(batch_of([(1_000_000, 1_000_000)], 2), 1)
    assert not isinstance(table.members, Bitmap) and table.count == 1602
    probe = batch_of([(39, 39), (60, 3), (1_000_000, 1_000_000), (60, 4)], 2)
    assert table.find(probe).tolist() == [1599, 1600, 1601, -1]


def test_negative_value_leaves_the_bitmap() -> None:
    table = Table(1)
    table.add_new(np.arange(1000)[None, :], 1)
    assert isinstance(table.members, Bitmap)
    table.add_new(np.array([[-1, 5, -1]]), 1)
    assert not isinstance(table.members, Bitmap) and table.count == 1001


def test_value_beyond_32_bits_widens_once() -> None:
    table = Table(2)
    table.add_new(np.array([[1, 2], [3, 4]]), 1)
    assert not table.wide
    assert table.find(np.array([[2**32 + 1], [3]])).tolist() == [-1]  # equal in its low 32 bits only
    assert not table.wide
    table.add_new(np.array([[2**31], [0]]), 1)
    assert table.wide and table.count == 3
    assert table.find(np.array([[1, 2**31], [3, 0]])).tolist() == [0, 2]


@pytest.mark.slow
def test_growth_through_many_sizes() -> None:
    rng = np.random.default_rng(1)
    for dense, span in ((True, 300), (False, 300), (True, 2**40)):
        table, seen = Table(2, dense=dense), set[Fact]()
        for _ in range(20):
            batch = rng.integers(0, span, (2, 700))
            first, new = table.add_new(batch, 1)
            assert first == len(seen)
            seen |= set(zip(*batch.tolist(), strict=True))
            assert new == len(seen) - first
        assert set(map(tuple, table.rows[: table.count].tolist())) == seen
        everything = np.ascontiguousarray(table.rows[: table.count].T.astype(np.int64))
        assert table.find(everything).tolist() == list(range(table.count))


def test_arity_zero_has_one_fact() -> None:
    table = Table(0)
    assert table.find(np.empty((0, 2), np.int64)).tolist() == [-1, -1]
    assert table.add_new(np.empty((0, 0), np.int64), 1) == (0, 0)
    assert table.add_new(np.empty((0, 3), np.int64), 1) == (0, 1)
    assert table.add_new(np.empty((0, 3), np.int64), 1) == (1, 0)
    assert table.find(np.empty((0, 2), np.int64)).tolist() == [0, 0]


def test_other_layouts_are_copied() -> None:
    table = Table(2)
    facts = np.array([[1, 2], [3, 4], [5, 6]], np.int32)  # row-major, 32 bits
    table.add_new(facts.T, 1)
    frozen = np.array([[3, 9], [4, 9]], np.int64)
    frozen.flags.writeable = False
    assert table.find(frozen).tolist() == [1, -1]


@given(st.lists(st.integers(0, 9), max_size=30))
def test_claim_emits_each_free_row_once(ids: list[int]) -> None:
    table = Table(1)
    table.add_new(np.arange(10)[None, :], 1)
    table.set_bits(np.array([2, 3], np.int32), 4)
    expected = list(dict.fromkeys(row for row in ids if row not in (2, 3)))
    rows = np.array(ids, np.int32)
    assert table.claim(rows, HAS_FOUR, 4).tolist() == expected
    assert table.claim(rows, HAS_FOUR, 4).tolist() == []
    assert all(word & 1 for word in table.state[:10].tolist())


def test_bits_views_and_scans() -> None:
    table = Table(1)
    table.add_new(np.arange(10)[None, :], 2)
    table.set_bits(np.array([1, 4, 7]), 1 | 1 << 15)
    table.clear_bits(np.array([4]), 1)
    assert table.state[:10].tolist() == [2, 0x8003, 2, 2, 0x8002, 2, 2, 0x8003, 2, 2]
    rows = np.array([7, 4, 1, 7], np.int32)
    assert table.filter(rows, None) is rows
    assert table.filter(rows, ODD).tolist() == [7, 1, 7]
    table.set_bits_between(8, 99, 1)
    for chunk in range(1, 8):
        assert np.concatenate(list(table.scan(ODD, chunk=chunk))).tolist() == [1, 7, 8, 9]
        assert np.concatenate(list(table.scan(None, 3, 8, chunk=chunk))).tolist() == [3, 4, 5, 6, 7]
    table.clear_bits(np.arange(10, dtype=np.int32), 0xFFFF)
    assert list(table.scan(ODD)) == [] and not table.state[:10].any()


@pytest.mark.parametrize("wide", [False, True])
def test_gather_and_take(wide: bool) -> None:
    table = Table(2)
    if wide:
        table.widen()
    table.add_new(np.array([[1, 2, 3, 4], [10, 20, 30, 40]]), 1)
    out = np.zeros((2, 5), np.int64)
    table.gather(1, np.array([1, 3], np.int32), out, 0)
    table.gather(0, np.array([1, 2, 3], np.int32), out, 1)
    assert out.tolist() == [[20, 40, 0, 0, 0], [2, 3, 4, 0, 0]]
    assert table.take(np.array([1, 3], np.int32)).tolist() == [[2, 4], [20, 40]]


def test_nbytes_counts_rows_states_and_slots() -> None:
    table = Table(2, dense=False)
    table.add_new(np.arange(2000).reshape(2, 1000), 1)
    assert table.nbytes == 1000 * (8 + 2) + table.members.nbytes
    before = table.nbytes
    table.index((0,)).refresh()
    assert table.nbytes > before


def test_facts_that_became_dense_get_places() -> None:
    """They come in an order in which the first are far apart, with room for all."""
    facts = [(value, 0) for value in np.random.default_rng(0).permutation(5000).tolist()]
    table = Table(2)
    rows = table.locate(batch_of(facts, 2))
    assert table.direct_rows() is None
    table.look_for_dense_facts()
    places = table.direct_rows()
    assert places is not None
    assert [int(part) for part in places[1]] == [4999, 0]
    asked = batch_of([*facts, (5000, 0), (3, 1), (-1, 0)], 2)
    assert table.find(asked).tolist() == [*rows.tolist(), -1, -1, -1]


def test_facts_that_are_far_apart_have_no_places() -> None:
    table = Table(2)
    facts = [(10**6 * i, 0) for i in range(100)]
    table.locate(batch_of(facts, 2))
    for _ in range(2):
        table.look_for_dense_facts()
        assert table.direct_rows() is None
    assert table.find(batch_of(facts, 2)).tolist() == list(range(100))
