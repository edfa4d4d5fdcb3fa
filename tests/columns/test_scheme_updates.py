"""Updates of relations that have no row for each fact: they change what tables would change, tell the same, and can be undone."""

from __future__ import annotations

from itertools import count
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat import Materialisation
from evermat.columns.intervals import interval_index
from evermat.columns.schemes.interval_scheme import ClosedRelation
from evermat.engine.run import Run
from evermat.testing import state_of
from tests.support import oracle
from tests.support.scheme_cases import NODES, READERS, parsed, schemes_of, told
from tests.support.schemes import use_schemes
from tests.support.strategies import Facts, Features, random_program
from tests.support.updates import (
    ALGORITHMS,
    applied,
    assert_counters_right,
    facts_of,
    random_revision,
    random_update,
)

PROGRAM = """
.decl e(x:number, y:number)
.decl f(x:number, y:number)
.decl h(x:number, y:number)
.decl c(x:number, y:number)     c(x, y) :- e(x, y).  c(x, z) :- c(x, y), c(y, z).
.decl g(x:number, y:number)     g(x, y) :- f(x, y), !c(y, x).  g(x, z) :- g(x, y), c(y, z).
.decl t(x:number, y:number)     t(x, y) :- c(x, y).  t(x, y) :- f(x, y).  t(x, y) :- f(y, x), !c(x, y).
.decl v(x:number, y:number)     v(x, y) :- t(x, y).  v(x, y) :- g(x, y).
.decl only(x:number, y:number)  only(x, y) :- v(x, y), !t(x, y).
"""
SCHEMES = {"c": "intervals", "g": "intervals", "t": "union", "v": "union"}
FACTS: Facts = {
    "e": {(i, i + 1) for i in range(1, 8)} | {(4, 2), (20, 21)},
    "f": {(9, 1), (3, 1), (20, 9)},
    "h": {(1, 2), (30, 31)},
    "c": {(8, 9)},
    "t": {(1, 2), (0, 0)},
    "v": {(5, 0)},
}
#: what is deleted and what is inserted
UPDATES: list[tuple[Facts, Facts]] = [
    ({}, {"e": {(9, 30)}}),  # a new node at the end
    ({"e": {(9, 30)}}, {}),  # and away again
    ({"e": {(4, 5)}}, {"f": {(6, 6)}}),
    ({"e": {(20, 21)}}, {"e": {(21, 20), (4, 5)}}),
    ({"e": {(4, 2)}, "c": {(8, 9)}}, {"c": {(8, 1)}, "t": {(8, 8)}}),  # a cycle goes and a larger one comes
    ({"t": {(1, 2), (0, 0)}, "v": {(5, 0)}}, {}),  # one is still true
    ({"c": {(8, 1)}}, {"c": {(8, 1)}}),  # nothing
    ({"e": {(1, 2)}}, {"c": {(1, 2)}, "v": {(1, 2)}}),  # the same for another reason
    ({"e": {(i, i + 1) for i in range(1, 9)}}, {"e": {(i + 1, i) for i in range(1, 9)}}),
    ({"f": {(9, 1), (3, 1), (20, 9), (6, 6)}}, {}),
    ({}, {"e": {(50, 51), (51, 52)}, "f": {(60, 50)}, "v": {(50, 52)}}),  # nodes that are all new
]


@pytest.fixture(autouse=True)
def used(monkeypatch: pytest.MonkeyPatch) -> None:
    use_schemes(monkeypatch)


def both(text: str, facts: Facts, counters: str = "both") -> tuple[Materialisation, Materialisation]:
    """A materialisation with storage schemes and one without."""
    program = parsed(text)
    return program.materialise(facts, counters=counters), program.materialise(facts, counters=counters, schemes="plain")


def assert_clean(m: Materialisation) -> None:
    """No set has left a bit behind, and closures have one version."""
    for table in state_of(m).tables.values():
        assert set(np.unique(table.state[: table.count]).tolist()) <= {0, 2, 3}
        if isinstance(table.scheme, ClosedRelation):
            assert not table.scheme.pairs.changes


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS[1:])
def test_every_algorithm_changes_what_it_would_change_in_tables(algorithm: str) -> None:
    explicit, changes = FACTS | {"node": {(x,) for x in NODES}}, []
    m, plain = both(PROGRAM + READERS, explicit)
    assert schemes_of(m).items() >= SCHEMES.items()
    for delete, insert in UPDATES:
        change, expected = (one.update(insert, delete, algorithm=algorithm) for one in (m, plain))
        assert told(change) == told(expected)
        explicit = applied(explicit, delete, insert)
        assert facts_of(m) == facts_of(plain)
        assert_clean(m)
        changes.append((change, expected))
    assert_counters_right(m, explicit)
    assert schemes_of(m).items() >= SCHEMES.items()
    for change, expected in changes:
        assert told(change) == told(expected)


@pytest.mark.parametrize("share", [0, 2, 1000])
def test_a_change_is_told_rightly_after_later_ones(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether nodes are numbered again by each update, by some or by none; nobody looks at a change before the last."""
    monkeypatch.setattr(interval_index, "REBUILD_SHARE", share)
    m, plain = both(PROGRAM, FACTS)
    changes = [[one.update(insert, delete) for one in (m, plain)] for delete, insert in UPDATES]
    for change, expected in changes:
        assert told(change) == told(expected)


def test_counting_maintains_a_program_whose_only_recursion_is_stored() -> None:
    text = ".decl a(x:number) .decl b(x:number) .decl u(x:number) .decl w(x:number) "
    text += "u(x) :- a(x). u(x) :- b(x). w(y) :- u(x), y = x / 2."
    m, plain = both(text, {"a": {(1,), (2,), (3,)}, "b": {(2,)}})
    assert schemes_of(m) == {"u": "union"}
    for delete, insert in [
        ({"a": {(2,)}}, {}),
        ({"b": {(2,)}}, {"u": {(3,)}}),
        ({"a": {(3,)}}, {}),
        ({"u": {(3,)}}, {}),
    ]:
        change, expected = (one.update(insert, delete, algorithm="counting") for one in (m, plain))
        assert told(change) == told(expected)
        assert facts_of(m) == facts_of(plain)


@pytest.mark.parametrize("algorithm", ["auto", "dred-c", "bf"])
def test_parts_of_an_update_one_after_the_other(algorithm: str) -> None:
    rng = Random(algorithm)
    delete, insert = {"e": {(4, 5), (4, 2), (1, 2)}, "t": {(1, 2)}}, {"e": {(8, 1), (2, 6), (7, 40)}, "f": {(5, 5)}}
    whole, _ = both(PROGRAM, FACTS)
    whole.update(insert, delete, algorithm=algorithm)
    for _ in range(2):
        m, plain = both(PROGRAM, FACTS)
        steps = [({}, {name: [row]}) for name in delete for row in delete[name]]
        steps += [({name: [row]}, {}) for name in insert for row in insert[name]]
        for part in rng.sample(steps, len(steps)):
            change, expected = (one.update(*part, algorithm=algorithm) for one in (m, plain))
            assert told(change) == told(expected)
        assert facts_of(m) == facts_of(whole)


@pytest.mark.parametrize("algorithm", ALGORITHMS[1:])
def test_closures_that_derive_each_other(algorithm: str) -> None:
    """Neither has rows for what it tells the other rules of the stratum."""
    text = """
    .decl a(x:number, y:number) .decl b(x:number, y:number) .decl e(x:number, y:number) .decl f(x:number, y:number)
    a(x, y) :- e(x, y).  a(x, z) :- a(x, y), a(y, z).  b(x, y) :- f(x, y).  b(x, z) :- b(x, y), b(y, z).
    a(x, y) :- b(y, x), e(x, _), x < y.  b(x, z) :- a(x, y), b(y, z), x > z.
    """
    m, plain = both(text, {})
    assert schemes_of(m) == {"a": "intervals", "b": "intervals"}
    explicit: Facts = {"e": set(), "f": set()}
    for delete, insert in [
        ({}, {"e": {(0, 2)}, "f": {(2, 2)}}),
        ({}, {"e": {(2, 3), (4, 5)}, "f": {(3, 1), (5, 4), (1, 0)}}),
        ({"e": {(2, 3)}}, {"f": {(0, 4)}}),
        ({"f": {(2, 2), (3, 1)}}, {"e": {(3, 4)}}),
        ({"e": {(0, 2), (3, 4), (4, 5)}, "f": {(5, 4), (1, 0), (0, 4)}}, {}),
    ]:
        change, expected = (one.update(insert, delete, algorithm=algorithm) for one in (m, plain))
        assert told(change) == told(expected)
        explicit = applied(explicit, delete, insert)
        assert facts_of(m) == facts_of(plain) == oracle.materialise(oracle.read(text), explicit)
        assert_clean(m)


class Stopped(BaseException):
    """Stands for Ctrl-C."""


@pytest.mark.parametrize("algorithm", ALGORITHMS[1:])
def test_an_update_can_be_interrupted_anywhere(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    m, plain = both(PROGRAM, FACTS)
    before = facts_of(m)
    delete, insert = {"e": {(4, 5), (4, 2)}, "t": {(1, 2)}}, {"e": {(8, 1), (7, 40)}, "f": {(5, 5)}}
    for events in count():
        left = events

        def stop(_run: Run, *_arguments: int) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Stopped

        with monkeypatch.context() as patch:
            patch.setattr(Run, "derived", stop)
            patch.setattr(Run, "next_round", stop)
            try:
                change = m.update(insert, delete, algorithm=algorithm)
                break
            except Stopped:
                pass
        assert facts_of(m) == before
        assert_clean(m)
    assert events > 3
    assert told(change) == told(plain.update(insert, delete, algorithm=algorithm))
    assert facts_of(m) == facts_of(plain)
    assert_counters_right(m, applied(FACTS, delete, insert))


@pytest.mark.parametrize("place", ["change", "merge"])
def test_an_error_while_intervals_change(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the update is committed, that is; what is done then is not interrupted."""
    m, plain = both(PROGRAM, FACTS)
    before = facts_of(m)
    calls = count()
    done = interval_index.Intervals.change

    def change(self: interval_index.Intervals, come, gone) -> None:
        done(self, come, gone)
        if next(calls) == (0 if place == "change" else 1):
            raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(interval_index.Intervals, "change", change)
        with pytest.raises(Stopped):
            m.update({"e": {(8, 1), (7, 40)}}, {"e": {(4, 5)}})
    assert facts_of(m) == before
    assert_clean(m)
    for delete, insert in UPDATES:
        assert told(m.update(insert, delete)) == told(plain.update(insert, delete))


@pytest.mark.parametrize("limit", [{"limit_rounds": 1}, {"limit_facts": 12}, {"limit_seconds": 0.0}, {"memory": 1}])
@pytest.mark.parametrize("algorithm", ["auto", "dred-c-mod"])
def test_a_limit_rolls_back(algorithm: str, limit: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    m, plain = both(PROGRAM, FACTS)
    before = facts_of(m)
    with monkeypatch.context() as patch:
        patch.setattr("evermat.core.watch.LOOK_EVERY", -1.0)
        with pytest.raises(evermat.LimitError):
            m.update({"e": {(8, 1), (7, 40)}}, {"e": {(4, 5)}}, algorithm=algorithm, **limit)
    assert facts_of(m) == before
    assert_clean(m)
    delete, insert = UPDATES[2]
    assert told(m.update(insert, delete, algorithm=algorithm)) == told(plain.update(insert, delete))


#: rules to add, rules to remove, facts to insert
REVISIONS = [
    (".decl loop(x:number) loop(x) :- c(x, x).", "", {}),
    ("", "t(x, y) :- f(x, y).", {"e": {(8, 1)}}),  # a union of fewer
    ("v(x, y) :- h(x, y).", "", {}),  # and one of more
    ("c(y, x) :- c(x, y).", "", {}),  # symmetric from now on
    ("", "c(y, x) :- c(x, y).", {"f": {(2, 40)}}),
    ("", "c(x, z) :- c(x, y), c(y, z).", {}),  # no closure
    ("c(x, z) :- c(x, y), e(y, z).", "", {}),  # another one
    ("g(x, y) :- e(x, y), x > 4.", "g(x, z) :- g(x, y), c(y, z).", {}),
    ("e(70, 71). c(71, 70). c(x, y) :- f(y, x).", "c(x, y) :- e(x, y).", {}),
    ("t(x, y) :- f(x, y).", "t(x, y) :- c(x, y). v(x, y) :- t(x, y).", {}),
]


@pytest.mark.slow
def test_rules_that_come_and_go_change_what_they_would_change_in_tables() -> None:
    m, plain = both(PROGRAM, FACTS)
    changes = []
    for come, gone, insert in REVISIONS:
        change, expected = (one.update(insert, add_rules=come, remove_rules=gone) for one in (m, plain))
        assert told(change) == told(expected), (come, gone)
        assert facts_of(m) == facts_of(plain)
        assert_clean(m)
        changes.append((change, expected))
        for delete, more in UPDATES[:3]:
            assert told(m.update(more, delete)) == told(plain.update(more, delete))
        assert facts_of(m) == facts_of(plain)
    for change, expected in changes:
        assert told(change) == told(expected)


@pytest.mark.parametrize(("come", "gone", "insert"), [REVISIONS[i] for i in (0, 1, 2, 3, 5, 7, 8, 9)])
def test_rules_that_cannot_change_leave_all_as_it_was(come: str, gone: str, insert: Facts) -> None:
    """However relations are stored afterwards: if the limit is reached, that may be in tables."""
    m, plain = both(PROGRAM, FACTS)
    before = facts_of(m)
    with pytest.raises(evermat.LimitError):
        m.update(insert, add_rules=come, remove_rules=gone, limit_rounds=0)
    assert facts_of(m) == before
    assert_clean(m)
    for delete, more in UPDATES[:3]:
        assert told(m.update(more, delete)) == told(plain.update(more, delete))
    assert facts_of(m) == facts_of(plain)


def test_relations_stay_as_they_are_stored_if_other_rules_change() -> None:
    m, _ = both(PROGRAM, FACTS)
    m.update(add_rules=".decl loop(x:number) loop(x) :- c(x, x).", remove_rules="only(x, y) :- v(x, y), !t(x, y).")
    assert schemes_of(m) == SCHEMES
    m.update(remove_rules="v(x, y) :- t(x, y).")
    assert schemes_of(m) == {name: scheme for name, scheme in SCHEMES.items() if name != "v"}
    assert m.stats["schemes"]["v"]["reason"] == "its rules have changed"


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_random_updates_tell_the_same(rng: Random) -> None:
    random = random_program(rng, Features(closures=1.0, unions=0.6))
    with pytest.MonkeyPatch.context() as patch:
        use_schemes(patch)
        patch.setattr(interval_index, "REBUILD_SHARE", rng.choice([0, 2]))
        m, plain = both(random.text, random.facts, rng.choice(["none", "both"]))
        explicit, changes = random.facts, []
        for _ in range(4):
            delete, insert = random_update(rng, random.relations, explicit)
            how = {"algorithm": rng.choice(ALGORITHMS[1:])}
            if rng.random() < 0.3:
                random, gone, come = random_revision(rng, random)
                how = {"add_rules": "\n".join(come), "remove_rules": "\n".join(gone)}
            changes.append([one.update(insert, delete, **how) for one in (m, plain)])
            explicit = applied(explicit, delete, insert)
            assert facts_of(m) == facts_of(plain)
        for change, expected in changes:
            assert told(change) == told(expected)
