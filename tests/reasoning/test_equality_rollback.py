"""An update that fails leaves everything as it was: who represents whom, facts, explicit facts, and what later updates do."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat.engine.run import Run
from evermat.language.terms import SAME_AS
from tests.support import oracle
from tests.support.environment import LONG
from tests.support.equality import naive
from tests.support.equality.checks import ALGORITHMS, assert_changed, assert_right
from tests.support.equality.programs import applied, random_sample, random_update
from tests.support.oracle import Facts

EXAMPLES = 60 if LONG else 2
NEXT = "<http://e/next>"
# Equality goes from link to link, one in a round.
CHAINS = """
.prefix e: <http://e/>
.decl e:next(x:term, y:term)
.decl e:mark(x:term, n:number)
.decl many(x:term, n:number)
y = z :- e:next(x, y), e:next(x, z).
e:mark(y, n) :- e:next(x, y), e:mark(x, n).
many(x, n) :- e:mark(x, _), n = count : { e:next(x, _) }.
"""
LENGTH = 8


class Stopped(BaseException):
    """Stands for Ctrl-C."""


def chain(name: str) -> set[tuple[str, str]]:
    return {(f"<http://e/{name}{i}>", f"<http://e/{name}{i + 1}>") for i in range(LENGTH)}


def ends(left: str, right: str) -> set[tuple[str, str]]:
    return {(f"<http://e/{left}0>", f"<http://e/{right}0>")}


EXPLICIT: Facts = {
    NEXT: chain("a") | chain("b") | chain("c"),
    SAME_AS: ends("a", "b"),
    "<http://e/mark>": {("<http://e/a0>", 1), ("<http://e/c0>", 2)},
}
TERMS = [f"<http://e/{name}{i}>" for name in "abc" for i in range(LENGTH + 1)]


def consequences(explicit: Facts) -> naive.Result:
    return naive.materialise(oracle.read(CHAINS), explicit)


@pytest.mark.parametrize(
    "limit", [{"limit_rounds": 2}, {"limit_facts": 5}, {"memory": 1}, {"limit_seconds": 0.0}], ids=str
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_limit_rolls_back(algorithm: str, limit: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.core.watch.LOOK_EVERY", -1.0)  # look at memory every time
    m = evermat.Program.parse(CHAINS, equality="rewrite").materialise(EXPLICIT)
    before = consequences(EXPLICIT)
    assert_right(m, before, TERMS)
    delete = {SAME_AS: ends("a", "b"), NEXT: {min(chain("c"))}}
    insert = {SAME_AS: ends("a", "c"), "<http://e/mark>": {("<http://e/b0>", 3)}}
    for change in ({"insert": insert}, {"delete": delete}, {"insert": insert, "delete": delete}):
        with pytest.raises(evermat.LimitError):
            m.update(**change, algorithm=algorithm, **limit)
        assert_right(m, before, TERMS)
    after = consequences(applied(EXPLICIT, delete, insert))
    assert_changed(m.update(insert=insert, delete=delete, algorithm=algorithm), before.facts, after.facts)
    assert_right(m, after, TERMS)
    m.update(insert=delete, delete=insert, algorithm=algorithm)
    assert_right(m, before, TERMS)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_forbidden_facts_roll_back(algorithm: str) -> None:
    text = CHAINS + ".decl wrong(x:term) forbidden\nwrong(x) :- e:mark(x, 1), e:mark(x, 2)."
    m = evermat.Program.parse(text, equality="rewrite").materialise(EXPLICIT)
    before = naive.materialise(oracle.read(text), EXPLICIT)
    with pytest.raises(evermat.DataError):
        m.update(insert={SAME_AS: ends("b", "c")}, delete={NEXT: {min(chain("b"))}}, algorithm=algorithm)
    assert_right(m, before, TERMS)
    explicit = applied(EXPLICIT, {NEXT: {min(chain("b"))}}, {})
    m.update(delete={NEXT: {min(chain("b"))}}, algorithm=algorithm)
    assert_right(m, naive.materialise(oracle.read(text), explicit), TERMS)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_bad_input_changes_nothing(algorithm: str) -> None:
    m = evermat.Program.parse(CHAINS, equality="rewrite").materialise(EXPLICIT)
    for bad in (
        {NEXT: [("<http://e/a1>",)]},
        {"nothing": [("<http://e/a1>",)]},
        {"<http://e/mark>": [("<http://e/a1>", "x")]},
    ):
        with pytest.raises(evermat.DataError):
            m.update(insert={SAME_AS: ends("a", "c"), **bad}, delete={SAME_AS: ends("a", "b")}, algorithm=algorithm)
        assert_right(m, consequences(EXPLICIT), TERMS)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("triples", [False, True])
@settings(max_examples=EXAMPLES, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_an_interrupted_update_changes_nothing(triples: bool, algorithm: str, rng: Random) -> None:
    sample = random_sample(rng, triples=triples)
    program, explicit = sample.program, sample.explicit
    m = evermat.Program.parse(sample.text, equality="rewrite").materialise(sample.facts)
    before = naive.materialise(program, explicit)
    delete, insert = random_update(rng, sample, explicit, before.facts)
    left = rng.randint(0, 12)  # events until the interrupt

    def stop(self: Run, *_arguments: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "derived", stop)
        patch.setattr(Run, "next_round", stop)
        try:
            m.update(insert=insert, delete=delete, algorithm=algorithm)
        except Stopped:
            pass
        else:
            explicit = applied(explicit, delete, insert)
            before = naive.materialise(program, explicit)
    assert_right(m, before, sample.terms)
    delete, insert = random_update(rng, sample, explicit, before.facts)
    after = naive.materialise(program, applied(explicit, delete, insert))
    assert_changed(m.update(insert=insert, delete=delete, algorithm=algorithm), before.facts, after.facts)
    assert_right(m, after, sample.terms)
