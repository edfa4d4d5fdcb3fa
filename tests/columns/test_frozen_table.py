"""What readers capture of tables: it stays as it is while the table grows, is represented otherwise, or becomes another one."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from evermat.columns.state.views import truth_of
from evermat.columns.storage.frozen_table import FrozenTable
from evermat.columns.storage.index import MERGE_AT_LEAST
from evermat.columns.storage.latch import Latch
from evermat.columns.storage.readable_table import ReadableTable
from evermat.columns.storage.table import MATERIALISED, Table


class _Version:
    """A version that a reader holds."""


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _latch() -> tuple[Latch, _Version]:
    latch, version = Latch(), _Version()
    with latch.lock:
        latch.pin(version)
    return latch, version


class _Frozen(NamedTuple):
    """What was captured of a table, and how it was then."""

    table: FrozenTable
    rows: list[tuple[int, int]]
    marked: set[int]


def _freeze(table: Table) -> _Frozen:
    with table.latch.lock:
        frozen = FrozenTable(table)
        marked = set(np.flatnonzero(frozen.state[: frozen.count] & np.uint16(MATERIALISED)).tolist())
    return _Frozen(frozen, _rows(frozen), marked)


def _rows(table: ReadableTable) -> list[tuple[int, int]]:
    return [(x, y) for x, y in table.rows[: table.count].tolist()]


def _batch(facts: list[tuple[int, int]]) -> np.ndarray:
    return np.array(facts, np.int64).reshape(-1, 2).T.copy()


class _Facts:
    """Facts that are appended step by step, more and more of them, with larger and larger values."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._kind = self._random.choice(["dense", "sparse", "mixed", "wide"])
        self.all: dict[tuple[int, int], None] = {}

    def some(self, number: int) -> list[tuple[int, int]]:
        r, bound = self._random, 4
        bound = {"dense": 30, "sparse": 10**6, "mixed": r.choice([20, 500, 10**5]), "wide": r.choice([100, 2**40])}[
            self._kind
        ]
        found = [(r.randrange(bound), r.randrange(bound)) for _ in range(number)]
        self.all.update(dict.fromkeys(found))
        return found

    def absent(self) -> list[tuple[int, int]]:
        r = self._random
        return [fact for _ in range(20) if (fact := (r.randrange(10**6), r.randrange(50))) not in self.all]


def _check(captured: _Frozen, later: list[tuple[int, int]], random_: random.Random) -> None:
    """All that readers ask of a table gives the rows that it had."""
    frozen, rows, marked = captured
    held = dict(zip(rows, range(len(rows)), strict=True))
    asked = random_.sample(rows, min(len(rows), 30)) + random_.sample(later, min(len(later), 30)) + [(10**7, 3)]
    assert len(frozen) == len(rows)
    if random_.random() < 0.7:
        assert frozen.contains(_batch(asked)).tolist() == [fact in held for fact in asked]
    if random_.random() < 0.7:
        assert frozen.find(_batch(asked)).tolist() == [held.get(fact, -1) for fact in asked]
    truth = truth_of(MATERIALISED)
    assert frozen.contains(_batch(asked), truth).tolist() == [held.get(fact) in marked for fact in asked]
    column = random_.randrange(2)
    keys = np.array([[fact[column] for fact in asked]], np.int64)
    for view in (None, truth):
        pairs = sorted(
            (int(i), int(row))
            for at, found in frozen.index((column,)).join(keys, view)
            for i, row in zip(at, found, strict=True)
        )
        expected = [
            (i, row)
            for i, key in enumerate(keys[0].tolist())
            for row, fact in enumerate(rows)
            if fact[column] == key and (view is None or row in marked)
        ]
        assert pairs == expected
        numbers = frozen.index((column,)).counts(keys, view).tolist()
        assert numbers == [sum(1 for at, _ in expected if at == i) for i in range(len(asked))]
    assert [
        tuple(fact) for fact in frozen.take(np.concatenate([*frozen.scan(None), np.empty(0, np.int32)])).T.tolist()
    ] == rows


@pytest.mark.parametrize("seed", range(40))
def test_frozen_tables_stay_as_they_are(seed: int) -> None:
    random_, facts = random.Random(seed), _Facts(seed)
    latch, _version = _latch()
    table = Table(2, dense=random_.random() < 0.8, latch=latch)
    frozen: list[_Frozen] = []
    for _step in range(25):
        act = random_.random()
        if act < 0.5:
            first, count = table.add_new(_batch(facts.some(random_.choice([1, 5, 200]))), 0)
            table.copy_states()
            table.set_bits(np.arange(first, first + count, 2, dtype=np.int32), MATERIALISED)
        elif act < 0.6:
            table.find(_batch(facts.some(1)))
            facts.all.clear()
        elif act < 0.65:
            table.index((random_.randrange(2),)).refresh()
        elif act < 0.7:
            table.clear()
        elif act < 0.75:
            with latch.written():
                for one in frozen[-2:]:
                    _check(one, [], random_)
        elif act < 0.9:
            frozen.append(_freeze(table))
        for one in random_.sample(frozen, min(len(frozen), 3)):
            _check(one, _rows(table), random_)


@pytest.mark.usefixtures("switching")
@pytest.mark.parametrize("seed", range(4))
def test_readers_beside_a_writer(seed: int) -> None:
    """Rows are looked up, and their indexes built, while the table grows: by several threads, in what each has captured."""
    facts, done, wrong = _Facts(seed), threading.Event(), list[BaseException]()
    latch, _version = _latch()
    table = Table(2, latch=latch)

    def read(number: int) -> None:
        random_ = random.Random(number)
        try:
            while not done.is_set():
                one = _freeze(table)
                for _ in range(3):
                    _check(one, _rows(table), random_)
        except BaseException as error:
            wrong.append(error)

    readers = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(4)]
    for reader in readers:
        reader.start()
    for step in range(60):
        with latch.written():
            first, count = table.add_new(_batch(facts.some(10 + step)), 0)
            if step % 7 == 0:
                table.locate(_batch(facts.some(3)))
            with latch.lock:
                table.copy_states()
                table.set_bits(np.arange(first, first + count, 2, dtype=np.int32), MATERIALISED)
            if step % 5 == 0:
                table.index((step % 2,)).refresh()
        if wrong:
            break
    done.set()
    for reader in readers:
        reader.join(60)
    if wrong:
        raise wrong[0]


@pytest.mark.usefixtures("switching")
def test_chains_that_grow_while_they_are_read() -> None:
    """Most rows are recent, in chains of few keys: links are replaced by longer ones all the time."""
    latch, _version = _latch()
    table = Table(2, dense=False, latch=latch)
    done, wrong = threading.Event(), list[object]()

    def read() -> None:
        while not done.is_set():
            one = _freeze(table).table
            keys = np.arange(3, dtype=np.int64)[np.newaxis]
            counts = one.index((0,)).counts(keys).tolist()
            found = sum(len(rows) for _, rows in one.index((0,)).join(keys, chunk=64))
            expected = np.bincount(one.rows[: one.count, 0], minlength=3).tolist()
            if counts != expected or found != one.count:
                wrong.append((counts, expected, found, one.count))

    readers = [threading.Thread(target=read, daemon=True) for _ in range(3)]
    for reader in readers:
        reader.start()
    for step in range(MERGE_AT_LEAST * 2):
        table.add_new(_batch([(step % 3, step)]), 0)
        table.index((0,)).refresh()
    done.set()
    for reader in readers:
        reader.join(60)
    assert not wrong
