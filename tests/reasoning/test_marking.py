"""Streams with a look ahead: right after every update, whenever the next one arrives, and what the look ahead promises to save."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import evermat
from tests.support.engines import Engine, on_engines, randomly
from tests.support.environment import DATA, NEEDS_DATA
from tests.support.strategies import Features, random_program
from tests.support.streams import follow, random_stream
from tests.support.updates import ALGORITHMS, applied, assert_right

PATHS = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
"""
SEQUENCE = """
.decl edge(x:number, y:number)
.decl edge1(x:number, y:number)
.decl edge2(x:number, y:number)
.decl edge3(x:number, y:number)
.decl edge4(x:number, y:number)
edge1(x, y) :- edge(x, y).
edge2(x, y) :- edge1(x, y).
edge3(x, y) :- edge2(x, y).
edge4(x, y) :- edge3(x, y).
"""


def _length(engine: Engine, rng: Random) -> int:
    """How many updates a stream has: each takes its time on Spark."""
    return rng.randint(2, 6 if engine.in_memory else 3)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@randomly(memory=24, spark=1)
def test_every_update_equals_recomputation(engine: Engine, algorithm: str, rng: Random) -> None:
    random = random_program(rng, Features(recursion=algorithm != "counting"))
    updates = random_stream(rng, random.relations, random.facts, _length(engine, rng))
    m = engine.materialise(random.text, random.facts, counters=rng.choice(["none", "nonrecursive", "both"]))
    for stats in follow(m, random, updates, algorithm, marking=rng.random() < 0.9):
        assert stats["updates"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("arrival", ["present", "absent", "mixed"])
@randomly(memory=6, spark=1)
def test_whenever_the_next_update_arrives(engine: Engine, arrival: str, rng: Random) -> None:
    random = random_program(rng)
    updates = random_stream(rng, random.relations, random.facts, _length(engine, rng))
    m = engine.materialise(random.text, random.facts)
    processed = threading.Semaphore(0)

    def source() -> Iterator[dict]:
        for number, (insert, delete) in enumerate(updates):
            if number and (arrival == "absent" or (arrival == "mixed" and rng.random() < 0.5)):
                processed.acquire()
            yield {"insert": insert, "delete": delete}

    explicit = random.facts
    stream = m.stream(source(), marking=True)
    for insert, delete in updates:
        marking = next(stream).stats["marking"]
        explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)
        if arrival == "absent":
            assert marking["explicit"] == 0
        processed.release()


@randomly(memory=20, spark=1)
def test_what_is_merged_comes_to_the_same(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    updates = random_stream(rng, random.relations, random.facts, _length(engine, rng))
    m = engine.materialise(random.text, random.facts)
    assert [change.stats["updates"] for change in m.stream(updates, coalesce=True)] == [len(updates)]
    explicit = random.facts
    for insert, delete in updates:
        explicit = applied(explicit, delete, insert)
    assert_right(m, random, explicit)


@pytest.mark.slow
@randomly(memory=20, spark=1)
def test_other_updates_may_come_between(engine: Engine, rng: Random) -> None:
    """The update that was looked at is not always the next one."""
    random = random_program(rng)
    updates = random_stream(rng, random.relations, random.facts, _length(engine, rng))
    m = engine.materialise(random.text, random.facts)
    explicit = random.facts
    stream = m.stream(updates, marking=True)
    for insert, delete in updates:
        next(stream)
        explicit = applied(explicit, delete, insert)
        if rng.random() < 0.5:
            insert, delete = random_stream(rng, random.relations, explicit, 1)[0]
            m.update(insert=insert, delete=delete)
            explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)


@pytest.mark.slow
@randomly(memory=20, spark=1)
def test_an_update_that_fails_changes_nothing(engine: Engine, rng: Random) -> None:
    random = random_program(rng)
    updates = random_stream(rng, random.relations, random.facts, _length(engine, rng))
    m = engine.materialise(random.text, random.facts, counters=rng.choice(["none", "both"]))
    explicit, done = random.facts, 0
    while done < len(updates):
        limit = rng.choice([None, 0, 1, 2])
        try:
            stream = m.stream(updates[done:], marking=True, limit_rounds=limit)
            for insert, delete in updates[done:]:
                next(stream)
                explicit = applied(explicit, delete, insert)
                done += 1
        except evermat.LimitError:
            pass
        assert_right(m, random, explicit)


@pytest.mark.parametrize("algorithm", ["bf", "bf-c", "dred", "dred-c", "auto"])
@on_engines
def test_what_goes_at_once_costs_nothing(engine: Engine, algorithm: str) -> None:
    """If an update deletes what the one before has inserted, no rule is evaluated for it."""
    m = engine.materialise(SEQUENCE, {"edge": [(1, 2)]})
    edges = [(n, n + 1) for n in range(10, 30)]
    inserted, deleted = m.stream([({"edge": edges}, {}), ({}, {"edge": edges})], algorithm=algorithm)
    if inserted.stats["marking"]["on"]:
        assert inserted.stats["marking"] == {"on": True, "explicit": 20, "implicit": 80, "taken_back": 0, "reason": ""}
        assert deleted.stats["marking"]["taken_back"] == 100
        assert deleted.stats["applications"] == dict.fromkeys(deleted.stats["applications"], 0)
    else:
        assert not engine.in_memory
        assert inserted.stats["marking"]["reason"] == "derivations are counted in files"
    assert deleted.deleted.total == 100
    assert len(m["edge4"]) == 1


@on_engines
def test_a_fact_with_another_proof_stays(engine: Engine) -> None:
    m = engine.materialise(PATHS, {"edge": [(1, 2), (2, 3)]})
    updates = [({"edge": [(1, 3), (3, 4)]}, {}), ({}, {"edge": [(1, 3), (3, 4)]})]
    first, second = m.stream(updates, algorithm="bf", marking=True)
    assert set(first.inserted["path"]) == {(3, 4), (2, 4), (1, 4)}
    assert set(second.deleted["path"]) == {(3, 4), (2, 4), (1, 4)}
    assert set(second.deleted["edge"]) == {(1, 3), (3, 4)}
    assert set(m["path"]) == {(1, 2), (2, 3), (1, 3)}


@pytest.mark.parametrize(
    ("rule", "algorithm", "reason"),
    [
        ("b(x) :- c(x), !a(x).", "auto", "`a` is negated"),
        ("b(x) :- x = count : { a(_) }.", "auto", "`a` is aggregated"),
        ("b(x) :- a(x).", "remat", "everything is computed again"),
        ("b(x) :- a(x).", "auto", ""),
        ("d(x) :- c(x), !b(x).", "auto", ""),  # what is not reached does not matter
    ],
)
def test_why_marks_are_off(rule: str, algorithm: str, reason: str) -> None:
    text = ".decl a(x:number) .decl b(x:number) .decl c(x:number) .decl d(x:number)\n" + rule
    m = evermat.Program.parse(text).materialise({"c": [(1,), (2,)]})
    first, _ = m.stream([({"a": [(1,)]}, {}), ({}, {"a": [(1,)]})], algorithm=algorithm)
    assert first.stats["marking"]["reason"] == reason
    assert first.stats["marking"]["on"] == (not reason)


def test_few_are_not_worth_it() -> None:
    old = [(n, n + 1) for n in range(11)]
    for marking, deleted, reason in (
        (True, old[:9], ""),
        (True, old, "less than 10% of what the next update deletes comes by this one"),
        (None, old[:1], "less than 90% of what the next update deletes comes by this one"),
        (None, [], ""),
    ):
        m = evermat.Program.parse(PATHS).materialise({"edge": old})
        updates = [({"edge": [(50, 51)]}, {}), ({}, {"edge": [(50, 51), *deleted]})]
        first, _ = m.stream(updates, marking=marking)
        assert first.stats["marking"]["reason"] == reason


def test_equal_terms_have_no_marks() -> None:
    text = ".decl a(x:term, y:term)\nx = y :- a(x, y)."
    m = evermat.Program.parse(text, equality="rewrite").materialise()
    equal = {"a": [("<http://e/u>", "<http://e/v>")]}
    first, _ = m.stream([(equal, {}), ({}, equal)])
    assert first.stats["marking"]["reason"] == "equal terms are represented by one"


def test_without_marking_nothing_is_said_of_it() -> None:
    m = evermat.Program.parse(PATHS).materialise()
    (change,) = m.stream([({"edge": [(1, 2)]}, {})], marking=False)
    assert "marking" not in change.stats
    assert change.stats["applications"] == {"deletions": 0, "backward": 0, "forward": 0, "insertions": 1}


@pytest.mark.slow
@NEEDS_DATA
@pytest.mark.parametrize("kind", ["trans", "seq"])
@pytest.mark.parametrize("size", [10, 80])
def test_the_streams_of_the_paper(kind: str, size: int) -> None:
    """The number of facts after every step; and no update takes more rule applications with marks than without."""
    (file,) = Path(DATA, "marking").glob(f"{kind}_*_u{size}.tsv")
    steps: dict[int, tuple[dict, dict]] = {}
    for line in file.read_text().splitlines():
        step, op, x, y = line.split("\t")
        side = steps.setdefault(int(step), ({"edge": []}, {"edge": []}))["+-".index(op)]
        side["edge"].append((int(x), int(y)))
    expected = [
        int(row.split("\t")[-1])
        for row in Path(DATA, "marking", "EXPECTED-COUNTS.tsv").read_text().splitlines()
        if row.startswith(file.name)
    ]
    counted = ["path"] if kind == "trans" else ["edge1", "edge2", "edge3", "edge4"]
    totals = []
    for marking in (False, True):
        m = evermat.Program.parse(PATHS if kind == "trans" else SEQUENCE).materialise()
        found, applications = [], []
        for change in m.stream(list(steps.values()), algorithm="bf", marking=marking):
            found.append(sum(len(m[name]) for name in counted))
            applications.append(sum(change.stats["applications"].values()))
        assert found == expected
        totals.append(applications)
    assert all(on <= off for off, on in zip(*totals, strict=True))
    assert sum(totals[1]) < sum(totals[0])
