"""Answers and relations batch by batch: whoever reads decides how far the evaluation goes."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat import Materialisation
from evermat.engine import Run
from evermat.runtime.query import query_version
from tests.support.scheme_cases import EDGES, parsed, schemes_of
from tests.support.schemes import use_schemes
from tests.support.strategies import Features, random_program, random_query

PROGRAM = """
.decl e(x:number, y:number)
.decl t(x:number, y:number)  t(x, y) :- e(x, y).  t(x, z) :- t(x, y), t(y, z).
.decl u(x:number, y:number)  u(x, y) :- t(x, y).  u(x, y) :- e(x, y).  u(x, y) :- e(y, x), x != y.
.decl yes()  yes().
.decl no()
"""
QUERIES = [
    "t(x, y)",
    "t(1, y)",
    "t(x, 3)",
    "t(x, x)",
    "u(x, y)",
    "u(x, y), !t(x, y)",
    "t(x, y), t(y, z)",
    "t(x, y), z = x + y, z > 5",
    "t(x, y), x < y",
    "x = 7",
    # rows that several bindings have
    "t(x, _)",
    "t(_, y)",
    "u(x, _), t(_, x)",
    "t(x, _y), t(_y, z)",
    "t(x, y) ; u(x, y)",
    "e(x, y) ; e(y, x)",
    "e(x, _), n = count : { t(x, _) }",
    "n = count : { t(_, _) }",
    "t(77, x)",
]
LENGTH = 20_000


def rows_in(batches: Iterator[pa.RecordBatch]) -> list[tuple]:
    """The rows of batches, none of which is empty."""
    found = []
    for batch in batches:
        assert batch.num_rows
        found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return found


def answering() -> list[threading.Thread]:
    """The threads that evaluate queries."""
    return [thread for thread in threading.enumerate() if thread.name == "evermat-answer"]


@pytest.fixture(scope="module", params=["auto", "plain"])
def small(request: pytest.FixtureRequest) -> Materialisation:
    with pytest.MonkeyPatch.context() as patch:
        use_schemes(patch)
        m = parsed(PROGRAM).materialise({"e": EDGES}, schemes=request.param)
    assert schemes_of(m) == ({"t": "intervals", "u": "union"} if request.param == "auto" else {})
    return m


@pytest.fixture(scope="module")
def huge() -> Materialisation:
    m = parsed(PROGRAM).materialise({"e": [(i, i + 1) for i in range(LENGTH)]})
    assert schemes_of(m) == {"t": "intervals", "u": "union"}
    assert len(m["t"]) == LENGTH * (LENGTH + 1) // 2
    return m


@pytest.mark.parametrize("text", QUERIES)
def test_batches_hold_the_rows_of_the_answer(text: str, small: Materialisation) -> None:
    answer = small.query(text)
    batches = list(small.query_batches(text))
    assert all(batch.schema == answer.to_arrow().schema for batch in batches)
    rows = rows_in(iter(batches))
    assert sorted(rows) == sorted(answer)
    assert len(rows) == len(set(rows))


@pytest.mark.parametrize("name", ["e", "t", "u"])
def test_relations_in_batches(name: str, small: Materialisation) -> None:
    rows = rows_in(small[name].batches())
    assert sorted(rows) == sorted(small[name])
    assert len(rows) == len(small[name])


@pytest.mark.parametrize(("text", "truth"), [("yes()", 1), ("no()", 0), ("t(1, 4)", 1), ("t(4, 1)", 0), ("t(1, _)", 1)])
def test_questions_without_variables(text: str, truth: int, small: Materialisation) -> None:
    batches = list(small.query_batches(text))
    assert sum(batch.num_rows for batch in batches) == truth
    assert all(batch.num_columns == 0 for batch in batches)


def test_a_relation_without_columns(small: Materialisation) -> None:
    assert sum(batch.num_rows for batch in small["yes"].batches()) == 1
    assert sum(batch.num_rows for batch in small["no"].batches()) == 0


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_random_queries(rng: Random) -> None:
    random = random_program(rng, Features(closures=1.0, unions=0.6))
    with pytest.MonkeyPatch.context() as patch:
        use_schemes(patch)
        m = evermat.Program.parse(random.text).materialise(random.facts)
    for _ in range(8):
        text, _variables = random_query(rng, random.relations)
        answer = m.query(text)
        if answer.columns:
            rows = rows_in(m.query_batches(text))
            assert len(rows) == len(set(rows)), text
            assert set(rows) == set(answer), text
        else:
            assert sum(batch.num_rows for batch in m.query_batches(text)) == len(answer)


@pytest.mark.parametrize("text", ["t(x, y)", "u(x, y)", "t(x, y), x < y", "t(x, y), !e(x, y)", "e(x, y), t(y, z)"])
def test_the_evaluation_waits_for_the_reader(text: str, huge: Materialisation) -> None:
    next(huge.query_batches(text))  # compiled by now
    tracemalloc.start()
    began = time.monotonic()
    batches = huge.query_batches(text)
    found = [next(batches) for _ in range(3)]
    assert time.monotonic() - began < 10.0  # all of them would take a minute
    assert tracemalloc.get_traced_memory()[1] < 100_000_000  # and gigabytes
    tracemalloc.stop()
    assert all(0 < batch.num_rows <= 1 << 20 for batch in found)
    assert len(answering()) == 1
    batches.close()
    assert answering() == []


def test_a_huge_relation_in_batches(huge: Materialisation) -> None:
    for name in ("t", "u"):
        batches = huge[name].batches()
        tracemalloc.start()
        rows = sum(next(batches).num_rows for _ in range(3))
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
        tracemalloc.stop()
        assert 0 < rows <= 3 << 20


@pytest.mark.slow
def test_a_reader_who_goes_away_leaves_no_thread(huge: Materialisation) -> None:
    batches = huge.query_batches("t(x, y)")
    assert answering() == []  # nobody has asked for anything yet
    del batches
    batches = huge.query_batches("t(x, y)")
    next(batches)
    assert len(answering()) == 1
    del batches
    gc.collect()
    assert answering() == []
    for _ in huge.query_batches("t(x, y)"):
        break
    gc.collect()
    assert answering() == []
    assert bool(huge.query("t(0, 20000)"))


def test_two_readers_at_a_time(small: Materialisation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.columns.evaluation.buffers.CHUNK", 3)
    one, two = small.query_batches("t(x, y)"), small.query_batches("u(x, y)")
    rows: tuple[list, list] = ([], [])
    for ours, theirs in zip(one, two, strict=False):
        rows[0].extend(rows_in(iter([ours])))
        rows[1].extend(rows_in(iter([theirs])))
    rows[0].extend(rows_in(one))
    rows[1].extend(rows_in(two))
    assert set(rows[1]) <= set(small["u"])
    assert set(rows[0]) <= set(small["t"])
    assert answering() == []


def test_an_error_in_the_middle_reaches_the_reader(huge: Materialisation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.core.watch.LOOK_EVERY", -1.0)
    with pytest.raises(evermat.LimitError, match="E400"):
        list(huge.query_batches("t(x, y)", limit_seconds=0.0))
    with pytest.raises(evermat.LimitError, match="E400"):
        list(huge.query_batches("t(x, y)", memory=1))
    assert answering() == []


@pytest.mark.slow
def test_a_limit_is_reached_after_some_batches(huge: Materialisation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.core.watch.LOOK_EVERY", -1.0)
    batches = huge.query_batches("t(x, y)", limit_seconds=1000)
    next(batches)
    clock = time.perf_counter
    monkeypatch.setattr(
        "evermat.core.watch.time", SimpleNamespace(perf_counter=lambda: clock() + 1000, monotonic=time.monotonic)
    )
    with pytest.raises(evermat.LimitError, match="E400"):
        next(batches)
    assert answering() == []
    with pytest.raises(StopIteration):
        next(batches)


def test_queries_that_make_no_sense_are_refused_at_once(small: Materialisation) -> None:
    for text, message in [("tt(x, y)", "did you mean `t`?"), ("t(x", "<query>:1"), ("t(x, y), !u(y, z)", "`z`")]:
        with pytest.raises(evermat.ProgramError) as error:
            small.query_batches(text)
        assert message in str(error.value)


def test_what_had_no_value_is_counted(tmp_path: Path, small: Materialisation) -> None:
    small.save(tmp_path / "state")
    small.close()
    answer = query_version(tmp_path / "state", None, "e(x, y), z = 6 / (x - 2)", Run())
    assert sorted(answer) == sorted(small.query("e(x, y), z = 6 / (x - 2)"))
    assert answer.undefined == small.query("e(x, y), z = 6 / (x - 2)").undefined == 1


FORMS = {
    "len": len,
    "repr": lambda answer: repr(answer),
    "html": lambda answer: "</table>" in answer._repr_html_(),
    "arrow": lambda answer: sorted(map(tuple, map(dict.values, answer.to_arrow().to_pylist()))),
    "pandas": lambda answer: sorted(answer.to_pandas().itertuples(index=False, name=None)),
    "polars": lambda answer: sorted(answer.to_polars().rows()),
    "capsule": lambda answer: sorted(map(tuple, map(dict.values, pa.table(answer).to_pylist()))),
    "batches": lambda answer: sum(batch.num_rows for batch in answer.batches()),
    "rows": sorted,
    "in": lambda answer: (1, 2) in answer,
    "bool": bool,
    "undefined": lambda answer: answer.undefined,
}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    "text", ["e(x, y)", "t(x, y)", "e(x, y), z = 6 / (x - 2)", "e(x, _)", "e(x, y), x = 99", "e(1, 2)"]
)
def test_an_answer_about_a_state_has_every_form(text: str, order: int, tmp_path: Path, small: Materialisation) -> None:
    """Each form alone, and all of them one after the other, as of an answer that is in memory."""
    small.save(tmp_path / "state")
    small.close()
    right, every = small.query(text), query_version(tmp_path / "state", None, text, Run())
    for form in [*FORMS.values()][::order]:
        wanted = form(right)
        assert form(query_version(tmp_path / "state", None, text, Run())) == wanted
        assert form(every) == wanted
