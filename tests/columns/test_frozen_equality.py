"""Frozen representatives: what is read of a version stays as it was, whenever it was frozen and whatever updates do meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Lock
from time import monotonic

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.columns.equality import frozen_representatives
from evermat.columns.equality.expansion import expand_names
from evermat.columns.equality.frozen_representatives import FrozenRepresentatives
from evermat.columns.state.datasets import Dataset
from evermat.columns.state.state import State
from evermat.columns.state.update import Update
from evermat.columns.state.views import View
from evermat.columns.storage.arrays import Batch
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.encoding import decode_rows
from evermat.columns.storage.table import MATERIALISED, Table
from evermat.engine.run import Run
from evermat.language.builtins import Type
from evermat.language.terms import SAME_AS
from evermat.testing import state_of
from tests.support import oracle
from tests.support.environment import LONG
from tests.support.equality import naive
from tests.support.equality.checks import ALGORITHMS, assert_right
from tests.support.equality.programs import applied, random_sample, random_update
from tests.support.many_threads import readers
from tests.support.oracle import Facts
from tests.support.randomness import seeds

EXAMPLES = 200 if LONG else 12
SECONDS = 20.0 if LONG else 1.5  # of the test with threads


class HeldFacts(Dataset):
    """The facts of I of a state as they are now, copied."""

    def __init__(self, state: State) -> None:
        tables = {name: Table(table.arity) for name, table in state.tables.items()}
        super().__init__("I", MATERIALISED, tables)
        for name, table in tables.items():
            table.add_new(state.tables[name].take(state.materialised.rows(name)), MATERIALISED)
            self.recount(name)


@dataclass
class Version:
    """What is right in one version, and what was frozen of it."""

    facts: View
    expected: naive.Result
    frozen: FrozenRepresentatives | None = None

    def check(self, dictionary: Dictionary, terms: list[str]) -> None:
        read, expected = self.frozen, self.expected
        assert read is not None
        renaming, program = read.union_find, expected.program
        for term in terms:
            assert renaming.normal(term) == expected.representative(term)
            assert renaming.names_of(term) == expected.names(term)
        for name, rows in expected.facts.items():
            types, columns = program.relations[name].types, read.schema.columns.get(name, np.empty(0, np.int64))
            held = self.facts.tables[name].take(self.facts.rows(name))
            batches = list(expand_names(held, columns, renaming))
            found = [row for batch in batches for row in decoded(batch, types, dictionary)]
            assert sorted(found) == sorted(rows)
            assert read.count(self.facts, name) == len(rows)
            if batches:
                batch = np.concatenate(batches, axis=1)
                renaming.rename(batch, columns)
                assert set(decoded(batch, types, dictionary)) == expected.rewritten(name)


def decoded(batch: Batch, types: tuple[Type, ...], dictionary: Dictionary) -> list[tuple]:
    return list(decode_rows(batch, types, dictionary))


class Stopped(BaseException):
    """Stands for Ctrl-C."""


class Watcher:
    """Freezes what is read before an update or at some moment in the middle of it, and may stop it then."""

    def __init__(self, rng: Random, state: State, version: Version, terms: list[str]) -> None:
        self._rng, self._state, self._version, self._terms = rng, state, version, terms
        self._left, self._stops = rng.randint(-3, 12), rng.random() < 0.3
        if self._left < 0:
            self._freeze()

    def _freeze(self) -> None:
        self._version.frozen = frozen(self._state)
        if self._rng.random() < 0.5:
            self._version.check(self._state.dictionary, self._terms)

    def __call__(self, *_arguments: object) -> None:
        self._left -= 1
        if self._left < 0 and self._version.frozen is None:
            self._freeze()
        if self._left < -3 and self._stops:
            raise Stopped


@pytest.mark.parametrize("triples", [False, True])
@settings(max_examples=EXAMPLES, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_frozen_representatives_stay(triples: bool, rng: Random) -> None:
    """Frozen before updates, in the middle of them, and after those that fail."""
    sample = random_sample(rng, triples=triples)
    program, explicit = sample.program, sample.explicit
    m = evermat.Program.parse(sample.text, equality="rewrite").materialise(sample.facts)
    state = state_of(m)
    versions = [Version(HeldFacts(state), naive.materialise(program, explicit))]
    for _ in range(4):
        delete, insert = random_update(rng, sample, explicit, versions[-1].expected.facts)
        watcher = Watcher(rng, state, versions[-1], sample.terms)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Run, "derived", lambda *_, watcher=watcher: watcher())
            patch.setattr(Run, "next_round", lambda *_, watcher=watcher: watcher())
            try:
                m.update(insert=insert, delete=delete, algorithm=rng.choice(ALGORITHMS))
            except Stopped:
                continue
        explicit = applied(explicit, delete, insert)
        versions.append(Version(HeldFacts(state), naive.materialise(program, explicit)))
    for version in versions:
        if version.frozen is not None:
            version.check(state.dictionary, sample.terms)


def frozen(state: State) -> FrozenRepresentatives:
    assert state.representatives is not None
    return state.representatives.frozen()


CHAINS = """
.prefix e: <http://e/>
.prefix owl: <http://www.w3.org/2002/07/owl#>
.decl owl:sameAs(x:term, y:term)
.decl e:next(x:term, y:term)
.decl e:mark(x:term, n:number)
y = z :- e:next(x, y), e:next(x, z).
e:mark(y, n) :- e:next(x, y), e:mark(x, n).
"""
NEXT, MARK = "<http://e/next>", "<http://e/mark>"
TERMS = [f"<http://e/{name}{i}>" for name in "abc" for i in range(5)]
STEPS = {(f"<http://e/{name}{i}>", f"<http://e/{name}{i + 1}>") for name in "abc" for i in range(4)}


def random_chains(rng: Random) -> Facts:
    """Chains of terms, some of which begin with the same term: then all of their links are the same."""
    same = {
        (f"<http://e/{rng.choice('abc')}{rng.randrange(3)}>", "<http://e/a0>") for _ in range(rng.choice([0, 1, 1]))
    }
    marks = {(rng.choice(TERMS), rng.randrange(3)) for _ in range(2)}
    return {NEXT: set(rng.sample(sorted(STEPS), 10)), SAME_AS: same, MARK: marks}


def test_threads_read_frozen_representatives_while_updates_run(monkeypatch: pytest.MonkeyPatch) -> None:
    (seed,) = seeds("updates", 1)
    rng = Random(seed)
    program = oracle.read(CHAINS)
    known = [{NEXT: {(t, t) for t in TERMS}, SAME_AS: set(), MARK: set()}, *(random_chains(rng) for _ in range(8))]
    results = [naive.materialise(program, explicit) for explicit in known]
    m = evermat.Program.parse(CHAINS, equality="rewrite").materialise(known[0])  # all terms are known from the start
    state, latch, upcoming, at = state_of(m), Lock(), 0, 0
    current = Version(HeldFacts(state), results[0])
    commit = Update.commit

    def commit_and_record(self: Update, *arguments: object) -> None:
        nonlocal current
        with latch:
            commit(self, *arguments)  # type: ignore[arg-type]
            current = Version(HeldFacts(state), results[upcoming])

    monkeypatch.setattr(Update, "commit", commit_and_record)

    def read(rng: Random) -> None:
        with latch:
            version = Version(current.facts, current.expected, frozen(state))
        for _ in range(rng.choice([1, 2])):
            version.check(state.dictionary, TERMS)

    with readers(read) as failed:
        end = monotonic() + SECONDS
        while monotonic() < end and not failed.is_set():
            upcoming = rng.randrange(len(known))
            delete = {name: rows - known[upcoming][name] for name, rows in known[at].items()}
            m.update(insert=known[upcoming], delete=delete, algorithm=rng.choice(ALGORITHMS))
            at = upcoming
    assert_right(m, results[at], TERMS)


# --- counts --------------------------------------------------------------------------------------------------------------
def test_facts_are_counted_once_for_all_readers_of_a_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    counted = 0
    count_names = frozen_representatives.count_names

    def count(*arguments: object) -> object:
        nonlocal counted
        counted += 1
        return count_names(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(frozen_representatives, "count_names", count)
    marks = {(term, 1) for term in TERMS[:4]}
    explicit = {SAME_AS: {(TERMS[0], TERMS[1])}, MARK: marks, NEXT: set[tuple[str, str]]()}
    m = evermat.Program.parse(CHAINS, equality="rewrite").materialise(explicit)
    state = state_of(m)
    first, facts = frozen(state), HeldFacts(state)
    assert first.count(facts, MARK) == len(m[MARK]) == frozen(state).count(facts, MARK) == 4
    assert counted == 1
    m.update(insert={SAME_AS: {(TERMS[1], TERMS[5])}})
    assert len(m[MARK]) == len(m[MARK]) == 5
    assert counted == 2
    assert first.count(facts, MARK) == 4
    assert counted == 2

    m.save(str(tmp_path))
    m.update(
        insert={SAME_AS: {(TERMS[0], TERMS[6])}}
    )  # before it everything is counted, for what it changes is counted
    counted = 0
    second, facts = frozen(state), HeldFacts(state)
    assert len(m[MARK]) == 6
    m.update(delete={SAME_AS: {(TERMS[0], TERMS[6])}})
    assert len(m[MARK]) == 5
    assert second.count(facts, MARK) == 6
    assert first.count(facts, NEXT) == 0
    assert counted == 0


class LateReader(dict[str, int]):
    """How much more there is of some relations; while it is asked, a reader of the old version counts the facts of others."""

    def __init__(self, read: Callable[[], None]) -> None:
        super().__init__({MARK: 2})
        self._read = read

    def get(self, name: str, default: int = 0) -> int:  # type: ignore[override]
        self._read()
        return super().get(name, default)


def test_readers_count_while_an_update_is_committed() -> None:
    explicit = {SAME_AS: {(TERMS[0], TERMS[1])}, MARK: {(TERMS[0], 1)}, NEXT: {(TERMS[0], TERMS[5])}}
    m = evermat.Program.parse(CHAINS, equality="rewrite").materialise(explicit)
    state, facts = state_of(m), HeldFacts(state_of(m))
    representatives, old = state.representatives, frozen(state)
    assert representatives is not None
    assert old.count(facts, MARK) == 3
    representatives.commit(LateReader(lambda: [old.count(facts, name) for name in (NEXT, SAME_AS)] and None))
    assert frozen(state).count(facts, MARK) == 5
    assert old.count(facts, MARK) == 3
    assert old.count(facts, NEXT) == 2
    assert old.count(facts, SAME_AS) == 5


def test_a_change_of_rules_changes_nothing_that_is_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    explicit = {NEXT: STEPS, SAME_AS: {("<http://e/b0>", "<http://e/a0>")}, MARK: {("<http://e/a0>", 1)}}
    rule = "y = z :- e:next(x, y), e:next(x, z)."
    program = evermat.Program.parse(CHAINS, equality="rewrite")
    m = program.materialise(explicit)
    right = {True: naive.materialise(oracle.read(CHAINS), explicit)}
    right[False] = naive.materialise(oracle.read(CHAINS.replace(rule, "")), explicit)
    assert right[True].classes != right[False].classes
    versions: list[Version] = []
    for has_rule in (True, False, True):
        state = state_of(m)
        early = Version(HeldFacts(state), right[has_rule], frozen(state) if has_rule else None)
        late = Version(early.facts, right[has_rule])

        def look(*_arguments: object, state: State = state, late: Version = late) -> None:
            late.frozen = late.frozen or frozen(state)

        monkeypatch.setattr(Run, "next_round", look)
        text = ".prefix e: <http://e/>\n" + rule
        m.update(remove_rules=text) if has_rule else m.update(add_rules=text)
        assert late.frozen is not None
        versions += [early, late] if has_rule else [late]
    for version in versions:
        version.check(state_of(m).dictionary, TERMS)
