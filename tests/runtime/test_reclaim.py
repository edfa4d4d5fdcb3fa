"""Rows, edges and symbols of deleted facts are reclaimed: facts, counters and all that somebody holds stay right, and what is kept is bounded."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat import Materialisation
from evermat.columns.state import reclaim
from evermat.core.error_catalogue import LIMIT_REACHED
from evermat.core.errors import LimitError, Problem
from evermat.engine.run import Run
from evermat.testing import state_of
from tests.columns.test_scheme_updates import FACTS, PROGRAM, SCHEMES, UPDATES, assert_clean
from tests.reasoning.test_equality_rewriting import KINDS, follow
from tests.support.engines import Engine, randomly
from tests.support.environment import LONG
from tests.support.equality.checks import assert_changed
from tests.support.equality.checks import assert_right as assert_equality_right
from tests.support.equality.programs import random_sample
from tests.support.scheme_cases import parsed, schemes_of, told
from tests.support.schemes import use_schemes
from tests.support.strategies import Features, random_program
from tests.support.streams import random_stream
from tests.support.updates import (
    ALGORITHMS,
    applied,
    assert_counters_right,
    assert_right,
    facts_of,
    random_revision,
    random_update,
)

JOIN = """
.decl e(x:symbol, y:symbol)
.decl p(x:symbol, z:symbol)
.decl far(x:symbol, n:number)
p(x, z) :- e(x, y), e(y, z).
far(x, n) :- e(x, _), n = count : { p(x, _) }.
"""
RECURSION = """
.decl e(x:symbol, y:symbol)
.decl t(x:symbol, y:symbol)
t(x, y) :- e(x, y).
t(x, z) :- e(x, y), t(y, z), x != z.
"""
CLOSURE = RECURSION.replace(", x != z", "")
EQUALITY = """
.pragma "equality" "rewrite"
.decl e(x:term, y:term)
.decl same(x:term, y:term) eqrel
.decl p(x:term, y:term)
p(x, z) :- e(x, y), e(y, z).
same(x, y) :- e(z, x), e(z, y).
"""


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an update leaves behind is reclaimed after it."""
    _always(monkeypatch)


def _always(patch: pytest.MonkeyPatch, chance: Callable[[], bool] = lambda: True) -> None:
    patch.setattr(reclaim.Waste, "is_due", lambda _self, _state: chance())


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@randomly(memory=16, spark=0, engines=["memory"])
def test_every_update_equals_recomputation(engine: Engine, algorithm: str, rng: Random) -> None:
    """Also updates of streams with a look ahead; sometimes after each of them all is reclaimed, sometimes after some."""
    random = random_program(rng, Features(recursion=algorithm != "counting"))
    updates = random_stream(rng, random.relations, random.facts, rng.randint(2, 6))
    m = engine.materialise(random.text, random.facts, counters=rng.choice(["none", "nonrecursive", "both"]))
    explicit, share = random.facts, rng.choice([0.5, 1.0])
    with pytest.MonkeyPatch.context() as patch:
        _always(patch, lambda: rng.random() < share)
        before, held = facts_of(m), []
        for change, (insert, delete) in zip(
            m.stream(updates, algorithm=algorithm, marking=rng.random() < 0.9), updates, strict=True
        ):
            assert "skipped" not in change.stats.get("reclaimed", {})
            explicit = applied(explicit, delete, insert)
            assert_right(m, random, explicit)
            after = facts_of(m)
            held.append((change, before, after))
            before = after
        for change, one, other in held:
            assert_changed(change, one, other)


@randomly(memory=30, spark=0, engines=["memory"])
def test_rules_may_change(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    m, explicit = engine.materialise(random.text, random.facts, counters="both"), random.facts
    with pytest.MonkeyPatch.context() as patch:
        _always(patch, lambda: rng.random() < 0.7)
        for _ in range(rng.randint(1, 4)):
            delete, insert = random_update(rng, random.relations, explicit)
            random, gone, come = random_revision(rng, random) if rng.random() < 0.6 else (random, [], [])
            m.update(insert, delete, add_rules="\n".join(come), remove_rules="\n".join(gone))
            explicit = applied(explicit, delete, insert)
            assert_right(m, random, explicit)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60 if LONG else 6, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_equal_terms_stay_equal(kind: str, rng: Random) -> None:
    sample = random_sample(rng, **KINDS[kind])

    def check(m: Materialisation, expected: Any) -> None:
        assert_equality_right(m, expected, sample.terms)

    with pytest.MonkeyPatch.context() as patch:
        _always(patch, lambda: rng.random() < 0.7)
        follow(rng, sample, "rewrite", check)


@pytest.mark.parametrize("algorithm", ["auto", "dred-c", "bf-c-mod", "remat"])
def test_relations_keep_their_schemes(algorithm: str, always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)
    program = parsed(PROGRAM)
    m, plain = (program.materialise(FACTS, counters="both", schemes=schemes) for schemes in ("auto", "plain"))
    reasons = {name: one["reason"] for name, one in m.stats["schemes"].items()}
    explicit, changes = FACTS, []
    for delete, insert in UPDATES:
        change, expected = (one.update(insert, delete, algorithm=algorithm) for one in (m, plain))
        assert "rows" in change.stats["reclaimed"]
        explicit = applied(explicit, delete, insert)
        assert facts_of(m) == facts_of(plain)
        assert_clean(m)
        changes.append((change, expected))
    assert_counters_right(m, explicit)
    assert schemes_of(m).items() >= SCHEMES.items()
    assert {name: one["reason"] for name, one in m.stats["schemes"].items()} == reasons
    for change, expected in changes:
        assert told(change) == told(expected)


def test_states_on_disk_hold_the_same(always: None, tmp_path: Path) -> None:
    rng = Random(0)
    m = evermat.Program.parse(RECURSION).materialise({"e": [("a", "b")]}, counters="both")
    m.save(tmp_path / "state")
    explicit = {("a", "b")}
    for number in range(40):
        gone = set(rng.sample(sorted(explicit), rng.randint(0, min(2, len(explicit)))))
        come = {(f"n{number}", "a"), (rng.choice("ab"), f"n{number - 1}")}
        m.update({"e": come}, {"e": gone})
        explicit = (explicit - gone) | come
        assert set(m["e"]) == explicit
        if number % 10 == 9:
            expected = facts_of(m)
            m.close()
            m = evermat.open(tmp_path / "state")
            assert facts_of(m) == expected
            assert_counters_right(m, {"e": explicit})
    m.close()


def test_whoever_reads_keeps_what_was_opened(always: None) -> None:
    facts = [(f"a{i}", f"a{i + 1}") for i in range(40)]
    m = evermat.Program.parse(JOIN).materialise({"e": facts})
    expected, pairs = facts_of(m), [(f"a{i}", f"a{i + 2}") for i in range(39)]
    answer = m.query('p("a3", x)')
    rows, batches, relation = iter(m["p"]), m["p"].batches(), m["p"]
    first, table = next(rows), m["p"].to_arrow()
    streamed = m.query_batches("p(x, y)")
    opened = next(streamed)
    change = m.update({"e": [("new", "a0")]}, {"e": facts[20:]})
    second = m.update({"e": [("newer", "new")]}, {"e": facts[:20]})
    assert len(m["e"]) == 2
    assert "rows" in change.stats["reclaimed"]
    assert {first, *rows} == expected["p"] == set(pairs)
    assert sorted(zip(*table.to_pydict().values(), strict=True)) == sorted(pairs)
    assert list(answer) == [("a5",)] and ("a5",) in answer and ("a6",) not in answer
    assert opened.num_rows + sum(batch.num_rows for batch in streamed) == len(pairs)
    assert sum(batch.num_rows for batch in batches) == len(relation) == 1
    assert set(relation) == {("newer", "a0")}
    assert ("newer", "a0") in relation
    assert ("a3", "a5") not in relation
    assert set(change.deleted["e"]) == set(facts[20:])
    assert set(change.inserted["p"]) == {("new", "a1")}
    assert set(second.deleted["far"]) >= {("a0", 1)}


def test_facts_that_were_looked_at_ahead_are_read_again(always: None) -> None:
    """What the next update deletes was encoded before; its symbols have other ids then."""
    m = evermat.Program.parse(JOIN).materialise({"e": [("z", "y"), ("y", "x")]})
    updates = [({"e": [(f"{i}", "z")]}, {"e": [(f"{i - 1}", "z")]}) for i in range(20)]
    changes = list(m.stream(updates, marking=True))
    assert set(m["e"]) == {("z", "y"), ("y", "x"), ("19", "z")}
    for number, change in enumerate(changes):
        assert set(change.inserted["e"]) == {(f"{number}", "z")}
        assert set(change.deleted["e"]) == ({(f"{number - 1}", "z")} if number else set())


@pytest.mark.parametrize("text", [JOIN, RECURSION, CLOSURE, EQUALITY], ids=["join", "recursion", "closure", "equality"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_long_stream_keeps_what_it_needs(text: str, streamed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaim, "LEAST_ROWS", 200)
    monkeypatch.setattr(reclaim, "LEAST_BYTES", 10_000)
    m = evermat.Program.parse(text).materialise({"e": [("_:x", "_:y")]}, counters="nonrecursive")
    term = "<http://x.org/{}>".format if text is EQUALITY else str

    def edge(i: int) -> tuple[str, str]:
        return term(f"n{i}"), term(f"n{i + 1 if i % 5 else -i}")

    updates = [({"e": [edge(i)]}, {"e": [edge(i - 20)]} if i >= 20 else {}) for i in range(400)]
    changes = m.stream(updates) if streamed else (m.update(*update) for update in updates)
    most = symbols = reclaimed = 0
    for change in changes:
        state = state_of(m)
        most, symbols = max(most, state.stored_rows), max(symbols, len(state.dictionary))
        edges = [module.edges.table.count for rules in state.strata for module in rules.modules]
        pairs = [] if state.representatives is None else [table.count for table in state.representatives.pairs]
        assert max([*edges, *pairs], default=0) <= 600
        reclaimed += "rows" in change.stats.get("reclaimed", {})
    assert reclaimed > 1
    assert most < 1000
    assert symbols < 400
    assert set(m["e"]) == {("_:x", "_:y"), *(edge(i) for i in range(380, 400))}


def test_symbols_of_few_rows_are_reclaimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before their rows would be."""
    monkeypatch.setattr(reclaim, "LEAST_BYTES", 50_000)
    m = evermat.Program.parse(JOIN).materialise()
    for number in range(300):
        m.update({"e": [(f"{number} {'long' * 100}", "b")]}, {"e": [(f"{number - 1} {'long' * 100}", "b")]})
        assert state_of(m).dictionary.nbytes < 150_000


def test_limits_do_not_count_deleted_facts() -> None:
    m = evermat.Program.parse(JOIN).materialise()
    for number in range(200):
        m.update({"e": [(f"{number}", "b")]}, {"e": [(f"{number - 1}", "b")]}, limit_facts=8)
    assert state_of(m).stored_rows > 200


@pytest.mark.parametrize("text", [JOIN, RECURSION, CLOSURE, EQUALITY, PROGRAM])
def test_the_old_state_goes_at_once(text: str, always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not left to the collector of cycles, which may come late."""
    use_schemes(monkeypatch)
    value: Callable[[int], Any] = int if text is PROGRAM else "<http://x.org/{}>".format
    m = evermat.Program.parse(text).materialise({"e": [(value(0), value(1))]}, counters="nonrecursive")
    m.update({"e": [(value(1), value(2))]})
    gc.collect()
    gc.disable()
    try:
        for number in range(3, 6):
            tables = [weakref.ref(table) for table in state_of(m).tables.values()]
            change = m.update({"e": [(value(number), value(0))]}, {"e": [(value(number - 1), value(0))]})
            assert change.inserted.total
            del change
            assert not [table for table in tables if table() is not None]
    finally:
        gc.enable()


@pytest.mark.parametrize("error", [KeyboardInterrupt, LimitError, MemoryError])
@pytest.mark.parametrize("text", [JOIN, CLOSURE, EQUALITY])
def test_a_cut_leaves_the_old_state(text: str, error: type[BaseException], always: None) -> None:
    term = "<http://x.org/{}>".format
    m = evermat.Program.parse(text).materialise({"e": [(term(0), term(1))]}, counters="nonrecursive")
    rebuilt = reclaim.rebuilt
    explicit = {(term(0), term(1))}
    for number in range(12):
        left = number

        def look() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise error(Problem(LIMIT_REACHED, {"what": "seconds", "limit": "1"})) if error is LimitError else error

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("evermat.runtime.engines.memory_engine.rebuilt", lambda state, _look: rebuilt(state, look))
            before, new = state_of(m), (term(number), term(number + 2))
            change = None
            try:
                change = m.update({"e": [new]}, {"e": [(term(number - 1), term(number + 1))]})
            except KeyboardInterrupt:
                assert error is KeyboardInterrupt
        explicit = (explicit - {(term(number - 1), term(number + 1))}) | {new}
        if left < 0:
            assert state_of(m) is before
            if change is not None:
                assert change.stats["reclaimed"] == {"skipped": "memory" if error is MemoryError else "limit"}
        else:
            assert state_of(m) is not before
        assert set(m["e"]) == explicit
        plain = evermat.Program.parse(text).materialise({"e": explicit})
        assert facts_of(m) == facts_of(plain)


def test_the_limits_of_the_update_hold(always: None, monkeypatch: pytest.MonkeyPatch) -> None:
    m = evermat.Program.parse(JOIN).materialise({"e": [("a", "b")]})
    monkeypatch.setattr("evermat.runtime.engines.memory_engine.bytes_needed", lambda _state: 1 << 40)
    change = m.update({"e": [("b", "c")]}, memory=1 << 39)
    assert change.stats["reclaimed"] == {"skipped": "memory"}
    monkeypatch.undo()
    monkeypatch.setattr(Run, "look", _raise_limit)
    with pytest.raises(LimitError):
        m.update({"e": [("c", "d")]})
    assert set(m["e"]) == {("a", "b"), ("b", "c")}


def test_what_never_fits_is_tried_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaim, "LEAST_ROWS", 10)
    monkeypatch.setattr(reclaim, "LONGEST_PAUSE", 32)
    m = evermat.Program.parse(JOIN).materialise()

    def tried(updates: range) -> list[int]:
        changes = [m.update({"e": [(f"{i}", "b")]}, {"e": [(f"{i - 1}", "b")]}) for i in updates]
        return [i for i, change in zip(updates, changes, strict=True) if "reclaimed" in change.stats]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evermat.runtime.engines.memory_engine.bytes_needed", lambda _state: 1 << 60)
        first, *others = tried(range(150))
    assert [number - first for number in others] == [3, 8, 17, 34, 67, 100, 133]
    assert tried(range(150, 180))[0] == first + 166


@pytest.mark.parametrize("text", [JOIN, EQUALITY], ids=["join", "equality"])
@pytest.mark.parametrize(
    "query",
    [
        "e(<u:{i}>, x)",
        "e(x, y), !e(<u:{i}>, x)",
        "e(x, y), x = <u:{i}>",
        "e(x, y), x != <u:{i}>, y != <v:{i}>",
        "x = <u:{i}>",
        "n = count : {{ e(<u:{i}>, _) }}",
        "n = count : {{ e(x, _), x != <u:{i}> }}",
    ],
)
def test_queries_leave_no_symbols(text: str, query: str) -> None:
    if text is JOIN:
        query = query.replace("<", '"').replace(">", '"')
    term = "<x:{}>".format
    m = evermat.Program.parse(text).materialise({"e": [(term("a"), term("b")), (term("b"), term("c"))]})
    symbols = len(state_of(m).dictionary)
    for number in range(20):
        text = query.format(i=number)
        answer = m.query(text)
        batches = list(m.query_batches(text))
        assert sum(batch.num_rows for batch in batches) == len(answer) == sum(row in answer for row in answer)
        assert (f"<w:{number}>", term("b")) not in m["e"]
    assert len(state_of(m).dictionary) == symbols


def test_computed_symbols_belong_to_the_answer() -> None:
    m = evermat.Program.parse(JOIN).materialise({"e": [("a", "b"), ("b", "c")]})
    answers = [m.query(f'e(x, _), z = cat(x, "-{i}"), z > "a-"') for i in range(30)]
    assert len(state_of(m).dictionary) == 3
    m.update({"e": [(f"new {i}", "a-7") for i in range(100)]})
    for number, answer in enumerate(answers):
        expected = {("a", f"a-{number}"), ("b", f"b-{number}")}
        assert set(answer) == expected
        assert set(zip(*answer.to_arrow().to_pydict().values(), strict=True)) == expected
        assert ("a", f"a-{number}") in answer
        assert ("a", f"a-{number + 1}") not in answer
        assert ("new 1", "a-7") not in answer
    assert set(m.query('e("new 7", x), x = cat("a", "-7")')) == {("a-7",)}
    assert set(m.query('z = min cat(x, "!") : { e(x, _) }')) == {("a!",)}


def _raise_limit(_self: Run) -> None:
    raise LimitError(Problem(LIMIT_REACHED, {"what": "seconds", "limit": "1"}))


def test_undefined_values_stay_counted(always: None) -> None:
    m = evermat.Program.parse(".decl a(x:number) .decl b(x:number) b(1 / x) :- a(x).").materialise({"a": [(0,), (1,)]})
    assert m.stats["undefined"] == 1
    m.update({"a": [(2,)]})
    m.update({"a": [(3,)]})
    assert m.stats["undefined"] == 1
    assert [count for _, count in m.undefined()] == [1]
