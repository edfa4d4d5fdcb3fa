"""Frozen schemes: whenever they are taken and read, they have the facts that were committed then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from random import Random
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat import Materialisation
from evermat.columns.evaluation.scheme_operators import SchemeFacts
from evermat.columns.graph.dynamic_graph import Edges
from evermat.columns.intervals import interval_index, interval_reader
from evermat.columns.intervals.interval_index import Intervals
from evermat.columns.schemes.interval_scheme import ClosedPairs, ClosedRelation
from evermat.columns.schemes.scheme import Scheme
from evermat.columns.schemes.union_scheme import UnionOfRelations
from evermat.columns.state.datasets import Dataset
from evermat.columns.state.reclaim import let_go, rebuilt
from evermat.columns.state.snapshot import evaluate
from evermat.columns.state.update import Update
from evermat.columns.state.views import truth_of
from evermat.columns.storage.selection import ANY, GAINED, KEPT, LOST, Selection
from evermat.columns.storage.table import MATERIALISED
from evermat.engine.run import Run
from evermat.language.query import Queries
from evermat.testing import state_of
from tests.columns.test_scheme_updates import FACTS, PROGRAM, REVISIONS, UPDATES, Stopped, both
from tests.support.environment import LONG
from tests.support.frozen_tables import FrozenTables
from tests.support.scheme_cases import CLOSURES
from tests.support.schemes import use_schemes
from tests.support.strategies import Facts, Features, random_program
from tests.support.updates import ALGORITHMS, facts_of, random_revision, random_update

#: closures that share their pairs, reversed or not, and unions of them and others
MORE = """
.decl b(x:number, y:number)
.decl in(x:number, y:number)    in(x, y) :- b(x, y).  in(x, z) :- in(x, y), in(y, z).  in(x, y) :- has(y, x).
.decl has(x:number, y:number)   has(x, y) :- in(y, x).
.decl w(x:number, y:number)     w(x, y) :- in(x, y).  w(x, y) :- has(x, y).  w(x, y) :- v(x, y).  w(x, y) :- h(x, y).
.decl o(x:number, y:number)     o(x, y) :- b(x, y).  o(x, z) :- o(x, y), o(y, z).  o(y, x) :- o(x, y), h(x, y).
"""
SOME: Facts = {"b": {(1, 2), (2, 3), (3, 1), (3, 4), (7, 8)}, "h": {(3, 4), (8, 7)}}
MORE_UPDATES: list[tuple[Facts, Facts]] = [
    ({}, {"b": {(4, 5), (8, 9)}}),
    ({"b": {(2, 3)}}, {"h": {(4, 5)}}),
    ({"b": {(4, 5)}, "h": {(3, 4)}}, {"b": {(2, 3)}, "in": {(9, 1)}, "w": {(0, 0)}}),
]
#: what is inserted and deleted by an update that fails
IN_VAIN: tuple[Facts, Facts] = (
    {"e": {(8, 1), (7, 77)}, "b": {(5, 1), (77, 2)}},
    {"e": {(4, 5)}, "b": {(3, 1)}, "f": {(9, 1)}},
)
VALUES = np.array([-1, *range(10), 20, 21, 30, 40, 50, 51, 52, 60, 70, 71, 77], np.int64)
VALUES_AS_SET = set(VALUES.tolist())
READING = truth_of(MATERIALISED)


@pytest.fixture(autouse=True)
def used(monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def pairs_in(batches: Any) -> list[tuple[int, int]]:
    return [(x, y) for batch in batches for x, y in batch.T.tolist()]


def scanned(scheme: Scheme, domain: int, _rng: Random) -> Iterator[tuple[Any, Any]]:
    for chunk in (1, 3, 1 << 16):
        yield sorted(pairs_in(scheme.scan(domain, chunk))), sorted
    yield pairs_in(scheme.scan(GAINED, 8)) + pairs_in(scheme.scan(LOST, 8)), lambda _: []


def counted(scheme: Scheme, domain: int, _rng: Random) -> Iterator[tuple[Any, Any]]:
    facts = SchemeFacts(scheme, (0,))
    every = Selection(0, 1, READING)
    yield scheme.count(domain), len
    yield scheme.count(ANY), len
    yield scheme.count(KEPT), len
    yield facts.count(every, counted=True), len
    yield facts.count(every, counted=False), bool
    yield scheme.about(domain) >= scheme.count(domain), lambda _: True
    yield [np.asarray(scheme.changed(kind)).shape for kind in (LOST, GAINED)], lambda _: [(2, 0)] * 2


def looked_up(scheme: Scheme, domain: int, rng: Random) -> Iterator[tuple[Any, Any]]:
    """One by one, in batches, by the first column, the second, and both; with few keys and with many."""
    grid = np.array([(x, y) for x in VALUES for y in VALUES], np.int64).T.copy()
    kinds = scheme.kinds(grid, grid.shape[1])
    yield sorted(pairs_in([grid[:, (kinds & domain) != 0]])), sorted
    fact = rng.choice(grid.T)
    yield scheme.holds(fact[:, np.newaxis].copy()), lambda facts: tuple(fact.tolist()) in facts
    inside = SchemeFacts(scheme, (0, 1)).contains(grid, grid.shape[1], Selection(0, 1, READING))
    yield sorted(pairs_in([grid[:, inside]])), sorted
    for columns, keys in [
        ((0,), VALUES[np.newaxis]),
        ((1,), VALUES[np.newaxis]),
        ((0,), np.array([[rng.choice(VALUES)]])),
        ((1,), np.array([[rng.choice(VALUES)]])),
        ((0, 1), grid),
    ]:
        n = keys.shape[1]
        found = []
        for positions, batch in scheme.join(columns, keys, n, domain, rng.choice((n, 1 << 16))):
            assert all((batch[c] == keys[i, positions]).all() for i, c in enumerate(columns))
            found += batch.T.tolist()
        wanted = set(map(tuple, keys.T.tolist()))
        yield (
            sorted(map(tuple, found)),
            lambda facts, columns=columns, wanted=wanted: sorted(
                f for f in facts if tuple(f[c] for c in columns) in wanted
            ),
        )
        yield (
            scheme.counts(columns, keys, n, domain).tolist(),
            lambda facts, columns=columns, keys=keys: [
                sum(tuple(f[c] for c in columns) == key for f in facts) for key in map(tuple, keys.T.tolist())
            ],
        )


READERS: list[Callable[..., Iterator[tuple[Any, Any]]]] = [scanned, counted, looked_up]


def check(scheme: Scheme, facts: set[tuple[int, int]], readers: Any, rng: Random) -> None:
    domain = scheme.domain(READING)
    assert domain & KEPT
    assert VALUES_AS_SET.issuperset(value for fact in facts for value in fact)
    for reader in readers:
        for found, expected in reader(scheme, domain, rng):
            assert found == expected(facts)


class Capture(NamedTuple):
    """Tables that were frozen, and what the committed facts were."""

    frozen: FrozenTables
    facts: Facts

    def check(self, rng: Random, readers: Any = READERS) -> None:
        for name, table in self.frozen.by_name.items():
            if table.scheme is None:
                continue
            if table.arity == 2:
                check(table.scheme, self.facts[name], readers, rng)
            assert table.scheme.count(table.scheme.domain(READING)) == len(self.facts[name])


# ── Capturing at all times ───────────────────────────────────────────────────────────────────────────────────────────

#: what is done to closures and their edges in the middle of an update
STEPS = [
    (Edges, "_link"),
    (Edges, "_note"),
    (Edges, "_change"),
    (Edges, "remove_all"),
    (ClosedPairs, "begin"),
    (ClosedPairs, "change"),
    (ClosedPairs, "next_round"),
    (ClosedPairs, "end_rounds"),
    (ClosedPairs, "end"),
    (Intervals, "merge"),
    (Intervals, "undo"),
    (Intervals, "resume"),
    (Update, "result"),
    (Update, "roll_back"),
]


class Recorder:
    """Captures the tables of a materialisation before and after any step of an update, but not while one is committed or rules change."""

    def __init__(self, m: Materialisation, rng: Random, share: float) -> None:
        self._m, self._rng, self._share = m, rng, share
        self.captures: list[Capture] = []
        self.facts = facts_of(m)
        self.paused = False
        self.capture()

    def capture(self) -> None:
        made = Capture(FrozenTables(state_of(self._m).tables), self.facts)
        self.captures.append(made)
        if self._rng.random() < 0.5:
            made.check(self._rng, [self._rng.choice(READERS)])

    def _step(self) -> None:
        if not self.paused and self._rng.random() < self._share:
            self.capture()

    @contextmanager
    def pause(self) -> Iterator[None]:
        held, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = held

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        for owner, name in STEPS:
            patch.setattr(owner, name, self._watched(getattr(owner, name)))
        commit = Update.commit

        def committing(update: Update, *result: Any) -> None:
            with self.pause():
                commit(update, *result)
            if update.state is state_of(self._m):
                self.facts = self._after

        patch.setattr(Update, "commit", committing)

    def _watched(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            self._step()
            try:
                return step(*arguments, **options)
            finally:
                self._step()

        return run

    def update(self, plain: Materialisation, *changes: Any, **how: Any) -> None:
        """Updates both materialisations."""
        self.capture()
        with self.pause():
            plain.update(*changes, **how)
        self._after = facts_of(plain)
        with self.pause() if "add_rules" in how else nullcontext():
            self._m.update(*changes, **how)
        self.facts = self._after
        self.capture()

    def update_in_vain(self, *changes: Any, event: int) -> None:
        """Interrupts an update after so many changes of closures, or at the end."""
        with pytest.MonkeyPatch.context() as patch:
            stop_at(patch, event)
            with pytest.raises(Stopped):
                self._m.update(*changes)
        self.capture()

    def check(self) -> None:
        for made in self.captures:
            made.check(self._rng, self._rng.sample(READERS, 2))


def run_all(
    patch: pytest.MonkeyPatch, rng: Random, share: float = 0.03, updates: Any = (*UPDATES, *MORE_UPDATES)
) -> Recorder:
    """Updates and failed updates of the large program, by any algorithm, with captures at any time."""
    patch.setattr(interval_index, "REBUILD_SHARE", rng.choice([0, 2, 1000]))
    patch.setattr(interval_reader, "FEW_NODES", rng.choice([0, 1 << 15]))
    m, plain = both(PROGRAM + MORE, FACTS | SOME)
    recorder = Recorder(m, rng, share)
    recorder.watch(patch)
    for delete, insert in updates:
        recorder.update(plain, insert, delete, algorithm=rng.choice(ALGORITHMS[1:]))
        recorder.update_in_vain(*IN_VAIN, event=rng.randrange(1, 6))
    return recorder


def stop_at(patch: pytest.MonkeyPatch, event: int) -> None:
    """Interrupts an update in the middle, or when all is derived."""
    left = event
    change = ClosedPairs.change

    def stopping(pairs: ClosedPairs, *arguments: Any) -> None:
        nonlocal left
        change(pairs, *arguments)
        left -= 1
        if left <= 0:
            raise Stopped

    def stop(*_: Any) -> None:
        raise Stopped

    patch.setattr(ClosedPairs, "change", stopping)
    patch.setattr(Update, "commit", stop)


@pytest.mark.parametrize("seed", range(20 if LONG else 1))
def test_they_have_what_was_committed_whenever_they_are_taken(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = run_all(monkeypatch, Random(seed))
    assert {name for name, table in recorder.captures[-1].frozen.by_name.items() if table.scheme is not None} == {
        *("c", "g", "t", "v", "in", "has", "w", "o")
    }
    recorder.check()


@pytest.mark.parametrize("kind", [ClosedRelation, UnionOfRelations])
def test_the_live_scheme_would_have_other_facts(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the tests here can fail."""
    monkeypatch.setattr(kind, "frozen", lambda scheme, *_: scheme)
    with pytest.raises(AssertionError):
        run_all(monkeypatch, Random(0), updates=UPDATES[2:4]).check()


def test_changes_of_edges_are_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backward searches find what they would have found then; without that, the test above would say so."""
    monkeypatch.setattr("evermat.columns.graph.dynamic_graph.EdgeChange.happen", lambda change, *_: change)
    with pytest.raises(AssertionError):
        run_all(monkeypatch, Random(0), updates=UPDATES[2:4]).check()


@pytest.mark.parametrize("name", sorted(CLOSURES))
@pytest.mark.parametrize("turned", [False, True])
def test_every_form_of_closure(name: str, turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch, turned=turned)
    rng = Random(name)
    case = CLOSURES[name]
    m, plain = both(case.text, case.facts)
    recorder = Recorder(m, rng, 0.3)
    recorder.watch(monkeypatch)
    given = sorted(set(facts_of(m)) & {"e", "f", "t"})
    for _ in range(3):
        pairs = {relation: {(rng.randrange(10), rng.randrange(10)) for _ in range(2)} for relation in given}
        gone = {
            relation: set(rng.sample(sorted(recorder.facts[relation]), 1))
            for relation in given
            if recorder.facts[relation]
        }
        recorder.update(plain, pairs, gone, algorithm=rng.choice(ALGORITHMS[1:]))
    recorder.check()


@pytest.mark.slow
def test_they_stay_when_rules_change(monkeypatch: pytest.MonkeyPatch) -> None:
    m, plain = both(PROGRAM + MORE, FACTS | SOME)
    recorder = Recorder(m, Random(0), 0.05)
    recorder.watch(monkeypatch)
    for come, gone, insert in REVISIONS:
        recorder.update(plain, insert, add_rules=come, remove_rules=gone)
        delete, more = UPDATES[2]
        recorder.update(plain, more, delete)
    recorder.check()


def test_they_stay_when_the_state_is_rebuilt() -> None:
    m, _ = both(PROGRAM + MORE, FACTS | SOME)
    made = Capture(FrozenTables(state_of(m).tables), facts_of(m))
    state = rebuilt(state_of(m), lambda: None)
    let_go(state_of(m))
    made.check(Random(0))
    Capture(FrozenTables(state.tables), made.facts).check(Random(0))


@pytest.mark.parametrize("updates", [1000 if LONG else 60])
def test_they_stay_after_many_updates(updates: int) -> None:
    rng = Random(0)
    m, _ = both(PROGRAM + MORE, FACTS | SOME)
    made = []
    for number in range(updates):
        if number % (updates // 4) == 0:
            made.append(Capture(FrozenTables(state_of(m).tables), facts_of(m)))
        edge = {(rng.randrange(10), rng.randrange(10))}
        m.update({rng.choice("ebf"): edge}, {rng.choice("ebf"): edge})
    for one in made:
        one.check(rng)


def test_what_no_reader_keeps_is_freed() -> None:
    """Changes of edges are kept for frozen schemes only; not for ever by the last one, which is kept until the next commit."""
    m, _ = both(PROGRAM, FACTS)
    scheme = state_of(m).tables["c"].scheme
    kept = FrozenTables(state_of(m).tables)
    edges = scheme.pairs.edges
    for delete, insert in UPDATES[:4]:
        m.update(insert, delete)
        FrozenTables(state_of(m).tables)

    def changes(frozen: FrozenTables) -> int:
        change, length = frozen.by_name["c"].scheme.pairs.edges._moment.change, 0
        while change.next is not None:
            change, length = change.next, length + 1
        return length

    assert changes(kept) >= 4
    assert changes(FrozenTables(state_of(m).tables)) == 0
    assert edges._next_change.next is None
    assert not hasattr(edges._next_change, "edges")


# ── Changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_an_update_changed_is_listed_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after later updates, one of them rolled back, and after the relation has become a table."""
    m, plain = both(PROGRAM + MORE, FACTS | SOME)
    found: list[tuple[Any, set[tuple[int, int]]]] = []
    deferred: list[tuple[str, int, Any]] = []
    result = Update.result

    def listing(update: Update) -> Any:
        deferred.extend(
            (name, kind, table.scheme.changed(kind))
            for name, table in update.state.tables.items()
            if table.scheme is not None
            for kind in (GAINED, LOST)
        )
        return result(update)

    monkeypatch.setattr(Update, "result", listing)
    for delete, insert in [*UPDATES, *MORE_UPDATES]:
        before = facts_of(plain)
        deferred.clear()
        m.update(insert, delete)
        plain.update(insert, delete)
        after = facts_of(plain)
        for name, kind, changed in deferred:
            lost, gained = before[name] - after[name], after[name] - before[name]
            found.append((changed, gained if kind == GAINED else lost))
    with monkeypatch.context() as patch:
        stop_at(patch, 1)
        with pytest.raises(Stopped):
            m.update(*IN_VAIN)
    m.update(add_rules="c(y, x) :- c(x, y).")
    for changed, expected in found:
        batch = changed if isinstance(changed, np.ndarray) else changed.batch()
        assert sorted(pairs_in([batch])) == sorted(expected)
        assert isinstance(changed, np.ndarray) or changed.count == len(expected)


# ── Rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────

ASKED = [
    "c(x, y), in(y, z)",
    "w(x, 3), !c(x, _)",
    "v(x, x)",
    "e(x, y), has(z, y), t(z, x)",
    "o(_, y), n = count : {c(y, _)}",
]


def answers(state: Any, tables: FrozenTables | None, queries: Queries) -> list[set[tuple[int, ...]]]:
    """The answers to queries over frozen tables, or over those of now."""
    if tables is not None:
        state = copy(state)
        state.tables = tables.by_name
        state.materialised = Dataset("I", MATERIALISED, state.tables)
        for name in state.tables:
            state.materialised.recount(name)
    found = []
    for text in ASKED:
        answer = evaluate(queries.compile(text), state, state.materialised, Run()).gather()
        found.append({tuple(row) for row in answer.take(np.arange(answer.count, dtype=np.int32)).T.tolist()})
    return found


def test_queries_over_frozen_tables() -> None:
    m, _ = both(PROGRAM + MORE, FACTS | SOME)
    queries = Queries(m.program)
    known = []
    for delete, insert in [*UPDATES, *MORE_UPDATES]:
        known.append((FrozenTables(state_of(m).tables), answers(state_of(m), None, queries)))
        m.update(insert, delete)
    for frozen, expected in known:
        assert answers(state_of(m), frozen, queries) == expected
    assert len({str(expected) for _, expected in known}) > 5


# ── Random programs ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@settings(max_examples=40 if LONG else 3, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_random_programs(rng: Random) -> None:
    random = random_program(rng, Features(closures=1.0, unions=0.6))
    with pytest.MonkeyPatch.context() as patch:
        use_schemes(patch, turned=rng.random() < 0.3)
        patch.setattr(interval_index, "REBUILD_SHARE", rng.choice([0, 2, 1000]))
        m, plain = both(random.text, random.facts, rng.choice(["none", "both"]))
        recorder = Recorder(m, rng, 0.1)
        recorder.watch(patch)
        explicit = random.facts
        for _ in range(4):
            delete, insert = random_update(rng, random.relations, explicit)
            how = {"algorithm": rng.choice(ALGORITHMS[1:])}
            if rng.random() < 0.3:
                random, gone, come = random_revision(rng, random)
                how = {"add_rules": "\n".join(come), "remove_rules": "\n".join(gone)}
            recorder.update(plain, insert, delete, **how)
            explicit = {n: (rows - delete.get(n, set())) | insert.get(n, set()) for n, rows in explicit.items()}
        recorder.check()


# ── Threads ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Latch:
    """Captures wait for commits, and commits for captures; see `scheme.Scheme.frozen`."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.lock, self.commits = Lock(), 0
        commit = Update.commit

        def committing(update: Update, *result: Any) -> None:
            with self.lock:
                commit(update, *result)
                self.commits += 1

        patch.setattr(Update, "commit", committing)


@pytest.mark.slow
def test_threads_read_while_updates_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several read what others read, too, and what they have kept, while one updates, also in vain."""
    rng = Random(0)
    m, plain = both(PROGRAM + MORE, FACTS | SOME)
    history, updates = [facts_of(plain)], []
    for _ in range(200 if LONG else 12):
        insert = {name: {(rng.randrange(10), rng.randrange(10)) for _ in range(3)} for name in "ebfh"}
        delete = {name: set(rng.sample(sorted(history[-1][name]), min(2, len(history[-1][name])))) for name in "ebfh"}
        updates.append((insert, delete, rng.choice(ALGORITHMS[1:])))
        plain.update(insert, delete)
        history.append(facts_of(plain))
    latch, over, errors = Latch(monkeypatch), Event(), []
    kept: list[Capture] = []
    checks = [0] * 3

    def read(number: int) -> None:
        own = Random(number)
        try:
            while not over.is_set():
                with latch.lock:
                    made = Capture(FrozenTables(state_of(m).tables), history[latch.commits])
                kept.append(made)
                for one in (made, own.choice(kept)):
                    name = own.choice(("c", "g", "t", "v", "in", "has", "w", "o"))
                    check(one.frozen.by_name[name].scheme, one.facts[name], [own.choice(READERS)], own)
                    checks[number] += 1
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=read, args=(number,)) for number in range(len(checks))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for insert, delete, algorithm in updates:
            m.update(insert, delete, algorithm=algorithm)
            with pytest.MonkeyPatch.context() as patch:
                stop_at(patch, rng.randrange(1, 4))
                with pytest.raises(Stopped):
                    m.update(*IN_VAIN)
    finally:
        over.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not errors, errors[0]
    assert latch.commits == len(updates)
    assert min(checks) > 3
    for made in kept:
        made.check(rng, [rng.choice(READERS)])
