"""Equality by representatives on a cluster: the same facts in the same names as everywhere, whoever has computed, kept or opened them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import evermat
from evermat import Materialisation
from evermat.core import error_catalogue as errors
from evermat.core.errors import Problem
from evermat.language.terms import SAME_AS
from tests.reasoning.test_equality_rewriting import KINDS, answers
from tests.runtime.test_equality_states import Kept
from tests.spark.test_saved_state import any_bounds, open_in_process
from tests.support.engines import PLACES, Engine, randomly, using
from tests.support.environment import LASTING, LONG
from tests.support.equality import naive
from tests.support.equality.checks import ALGORITHMS, assert_changed, assert_right, assert_same
from tests.support.equality.programs import Sample, applied, random_query, random_sample, random_update
from tests.support.in_process import InProcessCluster, assert_files_right, materialise_in_process
from tests.support.released import is_emptied
from tests.support.states import QUICK
from tests.support.updates import facts_of

MANY = 30 if LONG else 1  # times as many examples
REWRITE = '.pragma "equality" "rewrite"\n'
A, B, C, D = (f"<http://e/{name}>" for name in "abcd")


def assert_all_right(m: Materialisation, expected: naive.Result, sample: Sample) -> None:
    """Facts, names and files are as they should be."""
    assert_right(m, expected, sample.terms)
    if m.on_cluster:
        assert_files_right(m)


def assert_answered(m: Materialisation, rng: Random, sample: Sample, expected: naive.Result) -> None:
    """A random query is answered in names, and over representatives if that is asked for."""
    text = random_query(rng, sample)
    answer = m.query(text)
    types = answer.relation.types
    rows = answers(sample, text, dict(zip(answer.columns, types, strict=True)), expected)
    assert_same({text: set(answer)}, {text: rows})
    normal = {expected.normal(row, types) for row in rows}
    assert_same({text: set(m.query(text, representatives=True))}, {text: normal})


@pytest.mark.slow
@randomly(memory=0, spark=MANY, engines=tuple(PLACES))
def test_representatives_stand_for_all_names(engine: Engine, rng: Random) -> None:
    sample = random_sample(rng, **KINDS[rng.choice(list(KINDS))])
    expected, explicit = naive.materialise(sample.program, sample.explicit), sample.explicit
    if expected.clashes:
        with pytest.raises(evermat.DataError):
            engine.materialise(REWRITE + sample.text, sample.facts)
        return
    m = engine.materialise(REWRITE + sample.text, sample.facts)
    assert_all_right(m, expected, sample)
    assert_answered(m, rng, sample, expected)
    for _ in range(rng.randint(1, 3)):
        delete, insert = random_update(rng, sample, explicit, expected.facts)
        changed = applied(explicit, delete, insert)
        after = naive.materialise(sample.program, changed)
        algorithm = rng.choice(ALGORITHMS)
        if after.clashes:
            with pytest.raises(evermat.DataError):
                m.update(insert=insert, delete=delete, algorithm=algorithm)
        else:
            assert_changed(m.update(insert=insert, delete=delete, algorithm=algorithm), expected.facts, after.facts)
            explicit, expected = changed, after
        assert_all_right(m, expected, sample)
        assert_answered(m, rng, sample, expected)
        assert_all_right(m, expected, sample)


@randomly(memory=0, spark=MANY, engines=("spark",))
def test_engines_share_states(engine: Engine, rng: Random) -> None:
    del engine
    kept = Kept(rng, triples=rng.random() < 0.5)
    program = evermat.Program.parse(kept.sample.text, equality="rewrite")
    with TemporaryDirectory(dir=QUICK) as home, any_bounds(rng) as buckets:
        path = Path(home) / "state"

        def opened(version: int | None = None, *, write: bool = False) -> Materialisation:
            if rng.random() < 0.3:
                return evermat.open(path, version, write=write)
            return open_in_process(path, version, rng=rng, buckets=buckets, write=write)

        if rng.random() < 0.5:
            m = program.materialise(kept.sample.facts)
        else:
            m = materialise_in_process(program, kept.sample.facts, buckets=buckets, rng=rng)
        with m:
            m.save(path)
            kept.step(m)
        with opened(write=True) as m:
            kept.check(m)
            kept.step(m)
        with opened(rng.choice(list(kept.versions))) as m:
            kept.check(m)
        for version in kept.versions:
            with evermat.open(path, version) as m:
                kept.check(m)


@pytest.mark.slow
@randomly(memory=0, spark=MANY, engines=("rounds",))
def test_rules_may_change(engine: Engine, rng: Random) -> None:
    sample = random_sample(rng, triples=rng.random() < 0.3)
    rules = list(dict.fromkeys(sample.rules))
    sample.rules = rng.sample(rules, rng.randint(0, len(rules)))
    m, explicit = engine.materialise(REWRITE + sample.text, sample.facts), sample.explicit
    for _ in range(2):
        before = naive.materialise(sample.program, explicit)
        come = [rule for rule in rules if rule not in sample.rules and rng.random() < 0.7]
        gone = [rule for rule in sample.rules if rng.random() < 0.3]
        delete, insert = random_update(rng, sample, explicit, before.facts)
        sample.rules = [rule for rule in [*sample.rules, *come] if rule not in gone]
        explicit = applied(explicit, delete, insert)
        after = naive.materialise(sample.program, explicit)
        change = m.update(insert, delete, add_rules="\n".join(come), remove_rules="\n".join(gone))
        assert_changed(change, before.facts, after.facts)
        del change  # with its files
        assert_all_right(m, after, sample)


# --- one example, closely --------------------------------------------------------------------------------------

TEXT = """\
.prefix e: <http://e/>
.decl e:knows(x:term, y:term)
.decl friends(x:term, n:number)
.decl special(n:number)
.decl none(x:term) forbidden
x = y :- e:mail(x, z), e:mail(y, z).
friends(x, n) :- e:knows(x, _), n = count : { e:knows(x, _) }.
special(n) :- friends(e:b, n).
none(x) :- e:knows(x, x).
"""
MAIL, KNOWS = "<http://e/mail>", "<http://e/knows>"
FACTS = {MAIL: [(A, '"m"'), (B, '"m"'), (D, '"d"')], KNOWS: [(B, C), (C, A)]}
EVERYTHING = {
    MAIL: {(A, '"m"'), (B, '"m"'), (D, '"d"')},
    KNOWS: {(A, C), (B, C), (C, A), (C, B)},
    SAME_AS: {(A, A), (A, B), (B, A), (B, B), (D, D)},
    "friends": {(A, 1), (B, 1), (C, 2)},
    "special": {(1,)},
    "none": set(),
}


@pytest.fixture(params=["memory", "rounds"])
def either(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The in-memory engine, and the Spark engine with all facts on the cluster."""
    with using(request.param, Random(request.node.name), few=50) as engine:
        yield engine


def test_what_users_see(either: Engine, tmp_path: Path) -> None:
    m = either.materialise(TEXT, FACTS)
    assert facts_of(m) == EVERYTHING
    assert sorted(m[KNOWS].representatives) == [(A, C), (C, A)]
    assert ((B, C) in m[KNOWS], (B, C) in m[KNOWS].representatives, (D, C) in m[KNOWS]) == (True, False, False)
    assert (len(m[KNOWS]), m[KNOWS].to_arrow().num_rows, len(m[KNOWS].representatives)) == (4, 4, 2)
    assert m.stats["facts"] == {name: len(rows) for name, rows in EVERYTHING.items()}
    assert (m.stats["explicit"], m.stats["derived"]) == (5, sum(map(len, EVERYTHING.values())) - 5)
    expected = [f"{s} {p} {o} ." for p in (MAIL, KNOWS, SAME_AS) for s, o in EVERYTHING[p]]
    given = [f"{s} {p} {o} ." for p, rows in FACTS.items() for s, o in rows]
    for facts, lines in (("all", expected), ("asserted", given), ("inferred", set(expected) - set(given))):
        m.export(tmp_path / "out.nt", facts)
        assert (tmp_path / "out.nt").read_text(encoding="utf-8").splitlines() == sorted(lines)
    few = {tuple(row.values()) for table in m.triples(representatives=True) for row in table.to_pylist()}
    assert few == {(A, MAIL, '"m"'), (D, MAIL, '"d"'), (A, KNOWS, C), (C, KNOWS, A), (A, SAME_AS, A), (D, SAME_AS, D)}


@pytest.mark.slow
def test_rules_come_and_go(either: Engine) -> None:
    rules = "friends(x, 9) :- e:knows(e:b, x), x != e:a."
    m = either.materialise(TEXT, FACTS)
    change = m.update(add_rules=rules)
    assert set(change.inserted["friends"]) == {(C, 9)}
    m.update(insert={KNOWS: [(A, D)]})
    assert set(m["friends"]) == {(A, 2), (B, 2), (C, 2), (C, 9), (D, 9)}
    change = m.update(remove_rules="x = y :- e:mail(x, z), e:mail(y, z).")
    assert (m.names(A), m.representative(B)) == ([A], B)
    assert set(change.deleted[SAME_AS]) == EVERYTHING[SAME_AS]
    assert set(change.deleted[KNOWS]) == {(A, C), (B, D), (C, B)}
    assert facts_of(m) == EVERYTHING | {
        KNOWS: {(B, C), (C, A), (A, D)},
        SAME_AS: set(),
        "friends": {(A, 1), (B, 1), (C, 1), (C, 9)},
    }
    with pytest.raises(evermat.DataError, match="E380"):
        m.update(insert={KNOWS: [(B, B)]})


def test_literals_of_different_value(either: Engine) -> None:
    text = ".prefix e: <http://e/> y = z :- e:age(x, y), e:age(x, z)."
    age, one, other = "<http://e/age>", *(f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in ("1", "01"))
    message = r'E382.*"1" and "2" would be equal, but are literals of different values'
    with pytest.raises(evermat.DataError, match=message) as error:
        either.materialise(text, {age: [(A, '"1"'), (A, '"2"')]})
    assert "follows from `" in str(error.value)
    m = either.materialise(text, {age: [(A, one), (A, other), (B, '"1"'), (C, '"2"')]})
    before = facts_of(m)
    assert m.names(one) == [other, one]
    with pytest.raises(evermat.DataError, match=message) as error:
        m.update(insert={SAME_AS: [(A, D), (B, C)]})
    assert "follows from `" in str(error.value)
    assert facts_of(m) == before
    assert (m.names(A), m.names(one)) == ([A], [other, one])
    m.update(insert={SAME_AS: [(A, D)]}, delete={age: [(A, other)]})
    assert (m.names(A), m.names(one)) == ([A, D], [one])
    assert set(m[age]) == {(A, one), (D, one), (B, '"1"'), (C, '"2"')}


@pytest.mark.slow
def test_what_it_took_is_told() -> None:
    program = evermat.Program.parse(TEXT)
    with materialise_in_process(program, FACTS, place="cluster") as m:
        (found,) = (stratum for stratum in m.stats["strata"] if SAME_AS in stratum["relations"])
        assert (found["place"], found["reason"]) == ("rounds", "equal terms have a representative")
        change = m.update(delete={MAIL: [(B, '"m"')]}, algorithm="bf-eq")
        (found,) = (stratum for stratum in change.stats["strata"] if SAME_AS in stratum["relations"])
        assert (found["algorithm"], found["reason"]) == ("remat-eq", "on a cluster")
        assert change.stats["explicit"] == {"inserted": 0, "deleted": 1}
    with materialise_in_process(program, FACTS, place="driver") as m:
        assert not m.on_cluster
        assert facts_of(m) == EVERYTHING


@LASTING
def test_an_update_whose_jobs_fail_has_not_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither facts nor names change, wherever it fails."""
    execute, left = InProcessCluster.execute, [1_000_000]

    def instead(self: Any, *arguments: Any) -> list[Any]:
        left[0] -= 1
        if left[0] < 0:
            raise evermat.ResourceError(Problem(errors.SPARK_FAILED, {"what": "do it", "why": "it was told to fail"}))
        return execute(self, *arguments)

    monkeypatch.setattr(InProcessCluster, "execute", instead)
    with materialise_in_process(evermat.Program.parse(TEXT), FACTS, place="cluster") as m:
        m.save(tmp_path / "state")
        jobs = 0
        while True:
            left[0] = jobs
            try:
                m.update(insert={MAIL: [(D, '"m"')], KNOWS: [(D, C)]}, delete={MAIL: [(A, '"m"')], KNOWS: [(C, A)]})
                break
            except evermat.ResourceError:
                left[0] = 1_000_000
            jobs += 9
            assert (m.names(A), m.names(D), m.version) == ([A, B], [D], 1)
            assert facts_of(m) == EVERYTHING
            assert set(m.query("special(n)")) == {(1,)}
        left[0] = 1_000_000
        assert jobs > 10
        assert (m.names(A), m.names(D), m.version) == ([A], [B, D], 2)
        after = facts_of(m)
        assert after[KNOWS] == {(B, C), (D, C)}
    with evermat.open(tmp_path / "state") as m:
        assert facts_of(m) == after


@LASTING
@pytest.mark.spark
def test_with_spark(spark: Any, tmp_path: Path) -> None:
    """What tasks compute is tested above, more thoroughly."""
    program = evermat.Program.parse(
        ".prefix e: <http://e/> x = y :- e:mail(x, z), e:mail(y, z). e:known(y) :- e:knows(_, y)."
    )
    with program.materialise(FACTS, engine=spark, place="cluster", scratch=tmp_path) as m:
        known = "<http://e/known>"
        expected = {name: EVERYTHING[name] for name in (MAIL, KNOWS, SAME_AS)} | {known: {(A,), (B,), (C,)}}
        assert facts_of(m) == expected
        assert {tuple(row) for row in m[KNOWS].to_spark(spark).collect()} == EVERYTHING[KNOWS]
        assert {tuple(row) for row in m[KNOWS].representatives.to_spark(spark).collect()} == {(A, C), (C, A)}
        change = m.update(insert={KNOWS: [(D, B)]})
        assert set(change.inserted[KNOWS]) == {(D, A), (D, B)}
        assert set(m.query("e:known(x), x != e:c")) == {(A,), (B,)}
    assert is_emptied(tmp_path)
