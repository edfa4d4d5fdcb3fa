"""Short calls of kernels keep the lock of the interpreter, long ones let other threads run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import numpy as np
import pytest

import evermat
from evermat.columns.kernels.rows import gather_rows
from evermat.columns.storage.arrays import picked, positions_in
from evermat.kernels import jit
from evermat.kernels.interpreter_lock import FEW, MANY

pytestmark = pytest.mark.skipif(jit.JIT_DISABLED, reason="nothing is compiled")
PATIENCE = 120.0
SIGNATURE = "int64[::1], int64[::1], int64, int64, int64"
ENOUGH = 10_000  # rounds of some nanoseconds: too long for the lock not to be taken now and then, were it free


@contextmanager
def other_thread() -> Iterator[list[int]]:
    """How often another thread has run, which gets the lock only where it is released: nothing else takes it away."""
    runs, stop = [0], []
    interval = sys.getswitchinterval()

    def run() -> None:
        while not stop:
            runs[0] += 1
            time.sleep(0)

    thread = Thread(target=run)
    sys.setswitchinterval(10 * PATIENCE)
    try:
        thread.start()
        while not runs[0]:
            time.sleep(0)
        yield runs
    finally:
        stop.append(True)
        sys.setswitchinterval(interval)
        thread.join()


def others_run(call: Callable[[], object], times: int) -> bool:
    """Whether another thread runs during some calls."""
    with other_thread() as runs:
        before = runs[0]
        for _ in range(times):
            call()
            if runs[0] != before:
                return True
    return False


def others_run_at_last(call: Callable[[], object]) -> bool:
    """The same, however long the other thread needs to notice that it may."""
    with other_thread() as runs:
        before, deadline = runs[0], time.monotonic() + PATIENCE
        while runs[0] == before and time.monotonic() < deadline:
            call()
        return runs[0] != before


def work(values, others, first, end, divisor):  # type: ignore[no-untyped-def]
    """Takes equally long whatever there is to do."""
    found = values.size + others.size + end
    for i in range(ENOUGH):
        found ^= (found << 3) + i
    return found // divisor + first * 0


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr(jit, "CACHE_FOLDER", None)

    def make(**options: Any) -> Any:
        kernel = jit.compiled(SIGNATURE, **options)(work)
        jit.KERNELS.pop()
        kernel(np.empty(1, np.int64), np.empty(1, np.int64), 0, 1, 1)
        return kernel

    return make


def array(size: int) -> Any:
    return np.zeros(size, np.int64)


@pytest.mark.parametrize(
    ("options", "short", "long"),
    [
        ({"steps": "end"}, (MANY, MANY, 0, FEW - 1), (1, 1, 0, FEW)),
        ({"steps": "first:end"}, (MANY, MANY, 5, FEW + 4), (1, 1, 5, FEW + 5)),
        ({"steps": "others", "least": 77}, (MANY, 76, 0, MANY), (1, 77, 0, 1)),
        ({}, (FEW // 2, FEW // 2 - 1, 0, MANY), (FEW - 10, 10, 0, 1)),
    ],
    ids=["a number", "what lies between", "an array", "all arrays"],
)
def test_it_depends_on_what_there_is_to_do(made: Any, options: Any, short: Any, long: Any) -> None:
    kernel = made(**options)
    few, much = ((array(a), array(b), first, end, 1) for a, b, first, end in (short, long))
    assert not others_run(lambda: kernel(*few), 2000)
    assert others_run_at_last(lambda: kernel(*much))


def test_an_error_gives_the_lock_back(made: Any) -> None:
    kernel = made(steps="end")

    def fail() -> None:
        for end in (1, MANY):
            with pytest.raises(ZeroDivisionError):
                kernel(array(1), array(1), 0, end, 0)

    assert others_run_at_last(fail)


def test_kernels_decide_by_their_own_work() -> None:
    """Not by how large the tables are that they read."""
    rows, out = np.zeros((MANY, 2), np.int32), np.empty((1, MANY), np.int64)
    few, much = np.zeros(50, np.int32), np.zeros(MANY, np.int32)
    gather_rows(rows, 0, few, out, 0)
    assert not others_run(lambda: gather_rows(rows, 0, few, out, 0), 20_000)
    assert others_run_at_last(lambda: gather_rows(rows, 0, much, out, 0))


def test_masks_of_any_kind_need_no_other_kernel() -> None:
    """Masks from Arrow are read-only, slices of others have gaps: nothing else is compiled for them, which `conftest` checks."""
    mask = np.array([True, False, True, True, False, True])
    frozen = mask.copy()
    frozen.flags.writeable = False
    for one in (mask, frozen, np.repeat(mask, 2)[::2], mask.astype(np.uint8)):
        assert positions_in(one).tolist() == [0, 2, 3, 5]
        assert positions_in(one, wanted=False).tolist() == [1, 4]
        assert picked(np.arange(10, 16), one).tolist() == [10, 12, 13, 15]


@pytest.mark.parametrize("text", ["x = 15, r(x, y)", "r(7, y), y < 100", "k = count : { r(3, _) }", "r(1, 1)"])
def test_a_small_query_that_was_asked_before_keeps_the_lock(text: str) -> None:
    """Beside threads that always have something to do, it would wait for them each time that it lets it go."""
    program = evermat.Program.parse(".decl r(x:number, y:number)")
    m = program.materialise({"r": [(i, i % 10) for i in range(1000)]})
    for _ in range(20):  # at first it scans, then there is an index
        m.query(text)
    assert not others_run(lambda: m.query(text), 200)
