"""Changes of expanded facts are listed when they are read: by one thread, at the latest before the next update."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from threading import Barrier, Lock, Thread

import pytest

import evermat
from evermat.columns.equality.expansion import ExpandedChange
from evermat.columns.storage.arrays import Batch
from evermat.runtime.change import Change
from tests.support.environment import LONG
from tests.support.equality import naive
from tests.support.equality.checks import assert_changed, assert_right
from tests.support.equality.programs import applied, random_sample, random_update
from tests.support.many_threads import switching_often
from tests.support.oracle import Facts
from tests.support.randomness import seeds

ROUNDS = 200 if LONG else 10
THREADS = 3


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The relations of which changes were listed; threads take turns often, and meanwhile in any case."""
    found: list[str] = []
    adding, of = Lock(), ExpandedChange.of

    def slowly(self: ExpandedChange, name: str) -> tuple[Batch, Batch]:
        with adding:
            found.append(name)
        time.sleep(0.0002)
        return of(self, name)

    monkeypatch.setattr(ExpandedChange, "of", slowly)
    with switching_often():
        yield found


def start_reading(change: Change, before: Facts, after: Facts, ready: Barrier, errors: list[BaseException]) -> Thread:
    """A thread that reads all of a change, as soon as others are ready."""

    def read() -> None:
        ready.wait()
        try:
            assert_changed(change, before, after)
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=read)
    thread.start()
    return thread


@pytest.mark.parametrize("seed", list(seeds("pending changes", ROUNDS)))
def test_threads_read_a_change_while_the_next_update_begins(seed: int, asked: list[str]) -> None:
    rng = Random(seed)
    sample = random_sample(rng)
    program, explicit = sample.program, sample.explicit
    m = evermat.Program.parse(sample.text, equality="rewrite").materialise(sample.facts)
    known = [naive.materialise(program, explicit)]
    ready, errors = Barrier(THREADS + 1), list[BaseException]()
    threads: list[Thread] = []
    for _ in range(4):
        delete, insert = random_update(rng, sample, explicit, known[-1].facts)
        explicit = applied(explicit, delete, insert)
        known.append(naive.materialise(program, explicit))
        if threads:
            ready.wait()
        change = m.update(insert=insert, delete=delete)
        for thread in threads:
            thread.join()
        assert not errors, errors[0]
        assert len(asked) == len(set(asked)), "several threads have listed them"
        asked.clear()
        before, after = (result.facts for result in known[-2:])
        threads = [start_reading(change, before, after, ready, errors) for _ in range(THREADS)]
    ready.wait()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]
    assert_right(m, known[-1], sample.terms)
