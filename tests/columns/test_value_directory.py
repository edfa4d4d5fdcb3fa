"""Which sources of a union are looked at: those that mention the values of a fact, and no others."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.columns.schemes import union_scheme, value_directory
from evermat.columns.schemes.interval_scheme import ClosedRelation
from evermat.columns.schemes.value_directory import Directory, Mentions, bit_of
from evermat.columns.storage.table import Table
from evermat.testing import state_of
from tests.support.scheme_cases import parsed, schemes_of, told
from tests.support.schemes import use_schemes

SOURCES = 70


def added(table: Table, rows: list[tuple[int, int]]) -> None:
    table.add_new(np.array(rows, np.int64).reshape(-1, 2).T.copy(), 1)


def expected(tables: list[Table], fact: tuple[int, ...]) -> set[int]:
    """The sources that mention all values of a fact; the last bit stands for several."""
    mentioned = [set(table.rows[: table.count].ravel().tolist()) for table in tables]
    masks = [sum(int(bit_of(i)) for i in {min(i, 63) for i, m in enumerate(mentioned) if v in m}) for v in fact]
    common = -1
    for mask in masks:
        common &= mask
    return {i for i in range(len(tables)) if common >> min(i, 63) & 1}


@settings(max_examples=30, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_what_is_mentioned(rng: Random) -> None:
    tables = [Table(2) for _ in range(rng.choice([1, 3, 64, SOURCES]))]
    made = Directory([Mentions(table, 2) for table in tables])
    for _ in range(4):
        for table in tables:
            added(table, [(rng.randrange(40), rng.randrange(40)) for _ in range(rng.randrange(3))])
        facts = [(rng.randrange(-3, 50), rng.randrange(-3, 50)) for _ in range(20)]
        batch = np.array(facts, np.int64).T.copy()
        found = made.of(batch, len(facts))
        assert found is not None
        masks, any_mask = found
        wanted = [expected(tables, fact) for fact in facts]
        for i, fact in enumerate(facts):
            one = made.of_one(batch[:, i : i + 1])
            assert one is not None
            assert {k for k in range(len(tables)) if one >> k & 1} == wanted[i], fact
            assert {k for k in range(len(tables)) if masks[i] & bit_of(k)} == wanted[i], fact
        assert {k for k in range(len(tables)) if any_mask >> k & 1} == set().union(*wanted)


def test_values_that_are_not_dense_are_not_listed() -> None:
    for far in (-1, value_directory.ALWAYS):
        table = Table(2)
        made = Directory([Mentions(table, 2)])
        added(table, [(1, 2)])
        assert made.of_one(np.array([[1], [2]], np.int64)) == 1
        assert made.nbytes == 8 * 3
        added(table, [(far, 3)])
        assert made.of_one(np.array([[1], [9]], np.int64)) is None
        assert made.of(np.array([[1], [9]], np.int64), 1) is None
        assert made.nbytes == 0


def test_only_nodes_count_of_a_closure() -> None:
    nodes = Table(2)
    added(nodes, [(5, 1), (7, 0)])  # a value, and whether it is a source
    made = Directory([Mentions(nodes, 1)])
    assert [made.of_one(np.array([[value], [value]], np.int64)) for value in (0, 1, 5, 7)] == [0, 0, 1, 1]


CLOSURES = 8
TEXT = ".decl u(x:number, y:number) .decl v(x:number, y:number) v(x, y) :- u(x, y). v(x, y) :- f(y, x). .decl f(x:number, y:number)\n"
TEXT += "\n".join(
    f".decl e{i}(x:number, y:number) .decl t{i}(x:number, y:number) t{i}(x, y) :- e{i}(x, y). "
    f"t{i}(x, z) :- t{i}(x, y), t{i}(y, z). u(x, y) :- t{i}(x, y)."
    for i in range(CLOSURES)
)


def test_a_fact_is_looked_for_only_where_its_values_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closures over different nodes; one over some of all."""
    use_schemes(monkeypatch)
    monkeypatch.setattr(union_scheme, "MANY_SOURCES", 6)
    facts = {f"e{i}": {(10 * i, 10 * i + 1), (10 * i + 1, 10 * i + 2)} for i in range(CLOSURES - 1)}
    facts[f"e{CLOSURES - 1}"] = {(0, 1), (1, 30), (30, 2)}
    m, plain = (parsed(TEXT).materialise(facts, schemes=schemes) for schemes in ("auto", "plain"))
    assert schemes_of(m)["v"] == "union"
    asked: list[int] = []
    original = ClosedRelation._held

    def counted(self: ClosedRelation, batch: np.ndarray, n: int) -> np.ndarray:
        asked.append(n)
        return original(self, batch, n)

    monkeypatch.setattr(ClosedRelation, "_held", counted)
    for pair, times in [((10, 12), 1), ((10, 20), 0), ((0, 2), 1), ((0, 30), 1), ((99, 1), 0), ((30, 0), 1)]:
        asked.clear()
        assert (pair in m["v"]) == (pair in plain["v"])
        assert len(asked) == times, pair
    asked.clear()
    assert sorted(m.query("v(10, x)")) == sorted(plain.query("v(10, x)")) == [(11,), (12,)]
    assert not asked  # nobody else has heard of 10 and 11
    assert sorted(m.query("v(0, x)")) == sorted(plain.query("v(0, x)")) == [(1,), (2,), (30,)]
    for update in ({"insert": {"e3": [(31, 11), (500, 501)]}}, {"delete": {"e3": [(30, 31)], "e1": [(10, 11)]}}):
        assert told(m.update(**update)) == told(plain.update(**update))
        assert sorted(m["v"]) == sorted(plain["v"])
        for x, y in [(500, 501), (31, 12), (30, 12), (10, 12), (31, 11)]:
            assert ((x, y) in m["v"]) == ((x, y) in plain["v"]), (x, y)
    assert state_of(m).tables["v"].scheme.nbytes == 8 * 502
