"""Readers do not wait for an update that is running, and see the version before it, wherever the update has got to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

import evermat
from evermat.reasoning import maintain
from evermat.runtime import update as runtime_update
from evermat.store import writer
from tests.threads.alone import ALONE
from tests.threads.graphs import Graph
from tests.threads.harness import PATIENCE, Background
from tests.threads.reads import RDF, READS, changing, checked_whole
from tests.threads.workload import START
from tests.threads.world import STEADY, World, started

pytestmark = pytest.mark.skipif(not STEADY, reason="needs snapshots")


class Gate:
    """A point that a thread reaches and where it waits until it may go on."""

    def __init__(self) -> None:
        self._reached, self._open = threading.Event(), threading.Event()

    def pass_through(self) -> None:
        self._reached.set()
        assert self._open.wait(PATIENCE)

    def wait_until_reached(self) -> None:
        assert self._reached.wait(PATIENCE)

    def open(self) -> None:
        self._open.set()


def _once(patch: pytest.MonkeyPatch, owner: Any, name: str, gate: Gate, *, after: bool = False) -> None:
    """The first call of a function waits at the gate, before it begins or when it is done."""
    original: Callable[..., Any] = getattr(owner, name)
    calls = iter([True])

    def waiting(*given: Any, **options: Any) -> Any:
        first = next(calls, False)
        if first and not after:
            gate.pass_through()
        found = original(*given, **options)
        if first and after:
            gate.pass_through()
        return found

    patch.setattr(owner, name, waiting)


def _facts_that_wait(rows: Any, gate: Gate) -> Iterator[Any]:
    rows = sorted(rows)
    yield from rows[:1]
    gate.pass_through()
    yield from rows[1:]


#: where an update can be held: before or after a call of a function
POINTS: dict[str, tuple[Any, str, bool] | None] = {
    "while its facts are read": None,
    "before it derives": (runtime_update, "_maintain", False),
    "when all is derived": (runtime_update, "_maintain", True),
    "when forbidden facts were looked for": (runtime_update, "refuse_forbidden", True),
    "between two strata": (maintain, "maintain_stratum", True),
    "before the disk has it": (writer.Writer, "_make_durable", False),
    "when the disk has it": (writer.Writer, "_make_durable", True),
}


@contextmanager
def stuck(world: World, where: str, patch: pytest.MonkeyPatch) -> Iterator[Background]:
    """Within the block, the first step of part 0 is under way and does not go on."""
    gate, step = Gate(), world.workload.step(0, 0)
    insert: dict[str, Any] = dict(step.insert)
    point = POINTS[where]
    if point is None:
        insert["edge"] = _facts_that_wait(insert["edge"], gate)
    else:
        owner, name, after = point
        _once(patch, owner, name, gate, after=after)
    with Background(lambda: world.m.update(insert, step.delete), "update") as update:
        try:
            gate.wait_until_reached()
            yield update
        finally:
            gate.open()
    world.ledger.begun[0] = world.ledger.done[0] = 1


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = started(Graph(11), tmp_path, state=True)
    yield made
    made.close()


def _read_everything(world: World) -> None:
    """Reads in every way; each answer must be of the first version."""
    for read in (*READS, *RDF):
        for number in range(2):
            for _ in changing(read)(world, Random(number)):
                pass
    assert checked_whole(world, world.m) == START


@pytest.mark.parametrize("where", POINTS)
def test_readers_neither_wait_nor_see_anything_of_it(world: World, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with stuck(world, where, monkeypatch) as update:
        reading = Background(lambda: _read_everything(world), "reader")
        reading.result()
        with world.m.snapshot() as s:
            pinned = world.m.snapshot()
            assert checked_whole(world, s) == START
        assert update.thread.is_alive()
    assert checked_whole(world, pinned) == START
    assert checked_whole(world, world.m) == (1, 0, 0)
    pinned.close()


def test_programs_are_compiled_and_materialised_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with stuck(world, "when all is derived", monkeypatch) as update:
        for operation in ALONE:
            Background(lambda operation=operation: list(operation(world, Random(1)))).result()  # type: ignore[misc]
        assert update.thread.is_alive()


def test_other_updates_wait_for_their_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second update waits; when both are done, both have happened."""
    step, done = world.workload.step(1, 0), threading.Event()

    def update() -> None:
        world.m.update(step.insert, step.delete)
        done.set()

    with stuck(world, "when all is derived", monkeypatch):
        second = Background(update, "second update")
        assert not done.wait(0.2)
        assert checked_whole(world, world.m) == START
    second.result()
    assert checked_whole(world, world.m) == (1, 1, 0)
    assert world.m.version == 3


@pytest.mark.parametrize("reads", ["iteration", "snapshot", "batches", "export"])
def test_updates_do_not_wait_for_readers(world: World, reads: str) -> None:
    """Readers that have begun, and do not go on, hold nobody up."""
    opened: dict[str, Callable[[], Any]] = {
        "iteration": lambda: iter(world.m["path"]),
        "snapshot": lambda: iter(world.m.snapshot()["path"]),
        "batches": lambda: world.m.query_batches("now(p, n), path(x, y)"),
        "export": lambda: world.m["path"].batches(),
    }
    open_ones = [opened[reads]() for _ in range(3)]
    for rows in open_ones:
        next(rows)
    for part in (0, 2, 1):
        step = world.workload.step(part, 0)
        update = {"add_rules": step.add_rules, "remove_rules": step.remove_rules}
        Background(lambda step=step, update=update: world.m.update(step.insert, step.delete, **update)).result()  # type: ignore[misc]
    assert checked_whole(world, world.m) == (1, 1, 1)
    del open_ones


def test_facts_may_come_from_the_materialisation_itself(tmp_path: Path) -> None:
    """A writer reads what it changes: facts are computed while the update is begun."""
    world = started(Graph(3), tmp_path)
    before = set(world.m["path"])
    world.m.update({"extra": ((y, f"{x}'") for x, y in world.m["path"])}, {"edge": iter(world.m["edge"])})
    assert set(world.m["extra"]) == {(y, f"{x}'") for x, y in before}
    assert not set(world.m["edge"])
    assert not set(world.m["path"])


def test_an_update_inside_an_update_is_an_error_or_happens_but_never_hangs(tmp_path: Path) -> None:
    """Facts from a generator that updates: its thread would wait for itself."""
    world = started(Graph(3), tmp_path)

    def rows() -> Iterator[tuple[str, str]]:
        world.m.update({"extra": [("inner", "x")]})
        yield ("outer", "x")

    def update() -> str:
        try:
            world.m.update({"extra": rows()})
        except evermat.EvermatError as error:
            return str(error)
        return ""

    text = Background(update).result()
    extra = set(world.m["extra"])
    assert extra == ({("inner", "x"), ("outer", "x")} if not text else set()), text


def test_a_limit_ends_one_thread_only(world: World) -> None:
    """Limits belong to calls: those of a reader do not end the update beside it, nor the other way round."""
    slow = "n = count : { path(a, b), path(c, d), path(e, f), path(g, h), path(i, j), path(k, l) }"
    stop, cut_once = threading.Event(), threading.Event()

    def cut() -> int:
        number = 0
        while not stop.is_set():
            try:
                world.m.query(slow, limit_seconds=0.01)
            except evermat.LimitError:
                number += 1
                cut_once.set()
        return number

    with Background(cut, "reader with a limit") as reader:
        try:
            for step in range(6):
                change = world.workload.step(0, step)
                world.m.update(change.insert, change.delete)
            assert cut_once.wait(PATIENCE)
        finally:
            stop.set()
    assert reader.result() > 0
    assert checked_whole(world, world.m) == (6, 0, 0)


def test_two_materialisations_share_nothing(tmp_path: Path) -> None:
    """Each is updated by a thread of its own; nothing that is kept by the process mixes them up."""
    worlds = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        worlds.append(started(Graph(seed), folder))

    def follow(world: World) -> None:
        rng = Random(world.workload.seed)
        for _ in range(12):
            part = rng.choice([0, 1, 2])
            step = world.workload.step(part, world.ledger.done[part])
            world.m.update(step.insert, step.delete, add_rules=step.add_rules, remove_rules=step.remove_rules)
            world.ledger.done[part] += 1
            assert checked_whole(world, world.m) == world.ledger.all_done()

    calls = [Background(lambda world=world: follow(world)) for world in worlds]  # type: ignore[misc]
    for call in calls:
        call.result()
