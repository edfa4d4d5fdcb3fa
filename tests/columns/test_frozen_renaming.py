"""Frozen renamings: who represents whom in a version stays, whatever steps of updates and rollbacks do meanwhile."""

from __future__ import annotations

import gc
import weakref
from itertools import groupby
from random import Random
from threading import Lock
from time import monotonic

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.columns.equality.renaming import FrozenRenaming, Renaming
from evermat.columns.equality.union_find import Assigned, Merged, UnionFind
from evermat.columns.storage.dictionary import Dictionary
from tests.support.environment import LONG
from tests.support.many_threads import readers
from tests.support.randomness import seeds

EXAMPLES = 400 if LONG else 24
SECONDS = 20.0 if LONG else 1.5  # of the test with threads
Partition = dict[int, int]
"""The representatives of terms that do not represent themselves."""


class Writer:
    """Changes a renaming step by step as updates do, and knows in plain Python what it is, and was before the running update."""

    def __init__(self, rng: Random, terms: int) -> None:
        self._rng = rng
        self.dictionary = Dictionary()
        self.union_find = UnionFind(self.dictionary)
        self.latch = Lock()  # held by commits and by readers who freeze
        self.more_terms(terms)
        self.before: Partition = {}
        self._now: Partition = {}
        self._done: list[tuple[Merged | Assigned, Partition]] = []
        self.union_find.remember()

    def more_terms(self, count: int) -> None:
        self.dictionary.encode([f"<{len(self.dictionary) + i:09}>" for i in range(count)])

    def step(self) -> None:
        """The next step of an update, or its end."""
        steps = [self._merge, self._merge, self._split, self._undo, self._undo, self._merge]
        self._rng.choice(steps)()
        if self._rng.random() < 0.2:
            self._end()

    def _merge(self) -> None:
        before, rng = dict(self._now), self._rng
        size = len(self.dictionary)
        pairs = [(rng.randrange(size), rng.randrange(size)) for _ in range(rng.choice([1, 1, 3, 20]))]
        merged = self.union_find.merge(*(np.array(side, np.int64) for side in zip(*pairs, strict=True)))
        for left, right in pairs:
            low, high = sorted((self._now.get(left, left), self._now.get(right, right)))
            if low != high:
                self._now |= dict.fromkeys([high, *(t for t, r in self._now.items() if r == high)], low)
        self._done.append((merged, before))

    def _split(self) -> None:
        """Parts some classes, each into two."""
        before, rng = dict(self._now), self._rng
        found = sorted(set(self._now.values()))
        terms, new = list[int](), list[int]()
        for one in rng.sample(found, min(len(found), rng.choice([1, 1, 4]))):
            members = sorted([one, *(t for t, r in self._now.items() if r == one)])
            left = {t for t in members if rng.random() < 0.5}
            for part in (sorted(left), [t for t in members if t not in left]):
                for term in part:
                    self._now.pop(term, None)
                    if term != part[0]:
                        self._now[term] = part[0]
                terms += part
                new += part[:1] * len(part)
        if terms:
            self._done.append((self.union_find.assign(np.array(terms), np.array(new)), before))

    def _undo(self) -> None:
        if self._done:
            done, self._now = self._done.pop()
            if isinstance(done, Merged):
                self.union_find.part(done)
            else:
                self.union_find.take_back(done)

    def _end(self) -> None:
        """Commits or rolls back."""
        while self._done and self._rng.random() < 0.5:
            self._undo()
        with self.latch:
            self.union_find.remember()
            self.before = dict(self._now)
            self._done.clear()


def assert_renames(frozen: Renaming, expected: Partition, terms: int) -> None:
    """All that can be asked about a renaming of so many terms."""
    every = np.arange(terms)
    wanted = np.array([expected.get(t, t) for t in range(terms)])
    assert bool(frozen) == bool(expected)
    assert (frozen.of(every) == wanted).all()
    assert (frozen.sizes(wanted) == np.bincount(wanted, minlength=terms)[wanted]).all()
    others, theirs = frozen.others()
    assert dict(zip(others.tolist(), theirs.tolist(), strict=True)) == expected
    batch = np.array([every, every[::-1], every])
    assert (frozen.rename(batch, np.array([0, 2])) == (wanted != every)).all()
    assert (batch == [wanted, every[::-1], wanted]).all()
    owners = np.unique(wanted)
    names, starts = frozen.names(owners)
    classes = {r: set(found) for r, found in groupby(sorted(range(terms), key=wanted.__getitem__), wanted.__getitem__)}
    for number, owner in enumerate(owners.tolist()):
        found = names[starts[number] : starts[number + 1]].tolist()
        assert found[0] == owner
        assert len(found) == len(set(found))
        assert set(found) == classes[owner]


@settings(max_examples=EXAMPLES, deadline=None)
@given(rng=st.randoms(use_true_random=True))
def test_a_frozen_renaming_stays(rng: Random) -> None:
    writer = Writer(rng, rng.choice([3, 10, 30]))
    held: list[tuple[FrozenRenaming, Partition, int]] = []
    for _ in range(60):
        writer.step()
        if rng.random() < 0.1:
            writer.more_terms(rng.choice([1, 50]))
        if rng.random() < 0.3:
            held.append((writer.union_find.frozen(), writer.before, len(writer.dictionary)))
        if held and rng.random() < 0.3:
            assert_renames(*rng.choice(held))
        while held and rng.random() < 0.3:
            held.pop(rng.randrange(len(held)))
    for one in held:
        assert_renames(*one)


def test_threads_read_frozen_renamings_while_terms_become_equal() -> None:
    (seed,) = seeds("renamings", 1)
    writer = Writer(Random(seed), 400)

    def read(rng: Random) -> None:
        with writer.latch:
            frozen, expected = writer.union_find.frozen(), writer.before
        for _ in range(rng.choice([1, 2, 5])):
            assert_renames(frozen, expected, 400)

    with readers(read) as failed:
        end = monotonic() + SECONDS
        while monotonic() < end and not failed.is_set():
            writer.step()


def test_what_nobody_reads_is_not_copied() -> None:
    union_find = UnionFind(Dictionary(f"<{i:03}>" for i in range(100)))

    def change(left: int, right: int) -> bool:
        """Whether an update that makes two terms equal copies the arrays."""
        before = union_find._live.shift
        union_find.remember()
        union_find.merge(np.array([left]), np.array([right]))
        union_find.merge(np.array([left]), np.array([right + 40]))
        copied = union_find._live.shift is not before
        union_find.remember()
        return copied

    change(0, 1)
    assert not change(1, 2)
    union_find.frozen()
    assert not change(2, 3)
    frozen = union_find.frozen()
    assert union_find.frozen() is frozen
    assert change(3, 4)
    assert not change(4, 5), "those who read an older version have its arrays"
    assert frozen.of(np.array([3, 4, 5])).tolist() == [0, 4, 5]
    union_find.remember()
    union_find.merge(np.array([5]), np.array([6]))
    late = union_find.frozen()
    union_find.merge(np.array([6]), np.array([7]))
    assert late.of(np.array([5, 6, 7])).tolist() == [0, 6, 7]
    union_find.remember()
    assert not change(8, 9), "one that was read in the middle of an update has arrays of its own"
    gone = weakref.ref(late)
    gc.disable()
    try:
        del late
        assert gone() is None
    finally:
        gc.enable()
