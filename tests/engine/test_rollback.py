"""An update that fails leaves everything as it was: facts, counters, and what later updates do."""

from __future__ import annotations

import os
import signal
import threading
import time
from random import Random

import pytest

import evermat
from evermat.engine.run import Limits, Run
from evermat.testing import engine_of
from tests.support.engines import Engine, on_engines, randomly
from tests.support.strategies import random_program
from tests.support.updates import ALGORITHMS, applied, assert_counters_right, assert_right, facts_of, random_update

CHAIN = """
.decl e(x:number, y:number)
.decl t(x:number, y:number)
t(x, y) :- e(x, y).
t(x, z) :- t(x, y), e(y, z).
"""
PATHS = CHAIN.replace("e(y, z).", "e(y, z), x != z.")  # the test keeps it from being a closure, which takes no rounds


class Stopped(BaseException):
    """Stands for Ctrl-C."""


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS[1:])
@randomly(memory=25, spark=2)
def test_an_interrupted_update_changes_nothing(engine: Engine, algorithm: str, rng: Random) -> None:
    random = random_program(rng)
    m = engine.materialise(random.text, random.facts, counters="both")
    explicit = random.facts
    before = facts_of(m)
    delete, insert = random_update(rng, random.relations, explicit)
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
    if left < 0:  # only now: an exception that is looked at keeps whatever it has come by
        assert facts_of(m) == before
        assert_right(m, random, explicit)
    delete, insert = random_update(rng, random.relations, explicit)
    m.update(insert=insert, delete=delete, algorithm=algorithm)
    assert_right(m, random, applied(explicit, delete, insert))


@pytest.mark.slow
def test_ctrl_c_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.core.watch.LOOK_EVERY", 0.0)
    rng = Random(0)
    m = evermat.Program.parse(CHAIN).materialise({"e": [(i, i + 1) for i in range(60)]}, counters="both")
    expected, interrupted = facts_of(m), 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background may ignore it
    for round_ in range(60):
        timer = threading.Timer(rng.uniform(0, 0.01), os.kill, (os.getpid(), signal.SIGINT))
        changed = evermat.Program.parse(CHAIN).materialise({"e": [(i, i + 1) for i in range(60) if i != 30]})
        try:
            timer.start()
            m.update(delete={"e": [(30, 31)]}, algorithm=ALGORITHMS[1 + round_ % 8])
            timer.join()
            time.sleep(0.001)
        except KeyboardInterrupt:
            interrupted += 1
        assert facts_of(m) in (expected, facts_of(changed))
        m.update(insert={"e": [(30, 31)]})
        assert facts_of(m) == expected
        assert_counters_right(m, {"e": expected["e"]})
    assert interrupted > 30


@pytest.mark.parametrize("limit", [{"limit_rounds": 2}, {"limit_facts": 60}, {"memory": 1}])
@pytest.mark.parametrize("algorithm", ALGORITHMS[1:])
@on_engines
def test_a_limit_rolls_back(
    engine: Engine, algorithm: str, limit: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    m = engine.materialise(PATHS, {"e": [(i, i + 1) for i in range(10)]}, counters="both")
    before = facts_of(m)
    monkeypatch.setattr("evermat.core.watch.LOOK_EVERY", -1.0)  # look at memory every time
    with pytest.raises(evermat.LimitError):
        m.update(
            insert={"e": [(i, i + 1) for i in range(10, 20)]}, delete={"e": [(0, 1)]}, algorithm=algorithm, **limit
        )
    assert facts_of(m) == before
    m.update(insert={"e": [(10, 11)]}, algorithm=algorithm)
    assert len(m["t"]) == 11 * 12 // 2


@on_engines
def test_a_limit_holds_for_one_run(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.core.watch.LOOK_EVERY", -1.0)
    m = engine.materialise(CHAIN, {"e": [(0, 1)]})
    engine_of(m).run.limits = Limits(seconds=0.0)  # as if time had been short, and just enough
    m.update(insert={"e": [(1, 2)]})
    with pytest.raises(evermat.LimitError):
        m.update(insert={"e": [(2, 3)]}, limit_seconds=0.0)
    assert facts_of(m) == {"e": {(0, 1), (1, 2)}, "t": {(0, 1), (1, 2), (0, 2)}}


@on_engines
def test_bad_input_changes_nothing(engine: Engine) -> None:
    m = engine.materialise(CHAIN, {"e": [(0, 1)]})
    cases = [
        ({"insert": {"edge": [(1, 2)]}}, "error[E330]: the program has no relation `edge`"),
        ({"delete": {"e": [(1,)]}}, "error[E331]: row 1 of the facts for `e` has 1 column, not 2"),
        (
            {"insert": {"e": [(1, 2), ("a", 2)]}},
            "error[E332]: 'a' in row 2, column `x` of the facts for `e` is not a number",
        ),
    ]
    for arguments, message in cases:
        with pytest.raises(evermat.DataError) as error:
            m.update(**arguments)
        assert str(error.value) == message
        assert facts_of(m) == {"e": {(0, 1)}, "t": {(0, 1)}}
    with pytest.raises(evermat.ProgramError) as refused:
        m.update(algorithm="counting")
    assert str(refused.value) == (
        "error[E271]: Counting maintains only nonrecursive programs, but `t` is derived recursively: "
        "t(x, z) :- t(x, y), e(y, z).\n"
        "  = note: use dred-c, which counts wherever there is no recursion"
    )
    with pytest.raises(evermat.ProgramError) as unknown:
        m.update(algorithm="bf_c")
    assert str(unknown.value) == (
        "error[E270]: there is no algorithm `bf_c`\n"
        "  = note: the known ones are auto, counting, dred, dred-c, bf, bf-c, dred-c-mod, bf-c-mod, remat, bf-eq, remat-eq\n"
        "  = help: did you mean `bf-c`?"
    )
