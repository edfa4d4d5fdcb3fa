"""Operations on a state directory: opening any version of it, changes between versions, other readers, closing and opening again."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import evermat
from tests.threads.ledger import Mismatch, as_set
from tests.threads.reads import checked, checked_whole, rows_of
from tests.threads.workload import START, version_of
from tests.threads.world import World

Changes = dict[str, set[tuple[Any, ...]]]


def _path(world: World) -> Any:
    assert world.path is not None
    return world.path


def open_newest(world: World, rng: Random) -> Iterator[None]:
    """Opens the newest version, whose number is that of its markers."""
    window = world.window_on_disk()
    with evermat.open(_path(world)) as opened:
        window.end()
        version = world.marked(opened, window)
        if opened.version != world.number_of(version):
            raise Mismatch(f"version {opened.version} of the state is {version}")
        yield
        checked(world, opened, version, rng.sample(world.workload.always(), 4))


def open_any(world: World, rng: Random) -> Iterator[None]:
    """Opens an older version."""
    newest = world.number_of(world.ledger.all_done())
    assert newest is not None
    number = rng.randint(1, newest)
    with evermat.open(_path(world), version=number) as opened:
        version = checked_whole(world, opened)
        world.ledger.saw(version)
        if number != world.number_of(version):
            raise Mismatch(f"version {number} of the state is {version}")
    yield


def query_version(world: World, rng: Random) -> Iterator[None]:
    """Asks a version without opening all of it."""
    question = rng.choice(world.workload.questions)
    window = world.window_on_disk()
    answer = evermat.query(_path(world), question.text)
    window.end()
    yield
    window.claim(f"on the disk: {question.text}", as_set(answer), lambda facts: set(question.answer(facts)))


def list_versions(world: World, rng: Random) -> Iterator[None]:
    """Lists the versions: their numbers have no gap, and the last one is new enough."""
    del rng
    window = world.window_on_disk()
    numbers = [version.number for version in evermat.versions(_path(world))]
    window.end()
    if numbers != list(range(1, len(numbers) + 1)):
        raise Mismatch(f"the versions of the state are {numbers}")
    window.claim_version("the newest version", numbers[-1], world.number_of)
    yield


def follow_changes(world: World, rng: Random) -> Iterator[None]:
    """Reads changes of some versions: with the facts before them, they make those after them."""
    newest = world.number_of(world.ledger.all_done())
    assert newest is not None
    first = rng.randint(1, newest)
    last = min(newest, first + rng.randint(0, 5))
    changes = evermat.changes(_path(world), first, last)
    facts: Changes = {name: set() for name in world.workload.facts((0, 0, 1))}
    if first > 1:
        with evermat.open(_path(world), version=first - 1) as before:
            facts |= {name: set(before[name]) for name in before}
    for name, table in changes.items():
        for *row, sign, _ in sorted(rows_of(table), key=lambda one: (one[-1], one[-2] == "+")):
            (set.add if sign == "+" else set.remove)(facts[name], tuple(row))
    version = version_of(facts["now"])  # type: ignore[arg-type]
    if world.number_of(version) != last:
        raise Mismatch(f"changes lead to {version}, not to number {last}")
    checked(world, facts, version, world.workload.names(version))
    yield


def save_again(world: World, rng: Random) -> Iterator[None]:
    """Saves to the state that the materialisation has: nothing is written."""
    del rng
    with world.writers.together():
        world.m.save(_path(world))
    yield


def reopen(world: World, rng: Random) -> Iterator[None]:
    """Closes the state and opens it again; who still has what was closed reads on."""
    del rng
    with world.writers.alone(wait=world.threaded) as held:
        if not held:
            return
        window, old = world.window(), world.m
        old.close()
        opened = evermat.open(_path(world), write=True)
        world.m = opened
        window.end()
    left = checked_whole(world, old)
    window.claim_version("what was closed", left, lambda one: one)
    yield


def refresh(world: World, rng: Random) -> Iterator[None]:
    """Looks for new versions with a materialisation that only reads."""
    if world.follower is None:
        world.follower = evermat.open(_path(world))
        world.ledger.raise_floor(world.followed, START)
    follower: Any = world.follower
    done = world.ledger.all_done()
    follower.refresh()
    with follower.snapshot() as s:
        version = checked_whole(world, s)
        if any(map(int.__lt__, version, done)) or sum(version) > sum(world.ledger.all_begun()):
            raise Mismatch(f"refreshed to {version}, though {done} was done")
        if s.version != world.number_of(version):
            raise Mismatch(f"snapshot {s.version} is of version {version}")
        yield
        checked(world, s, version, rng.sample(world.workload.always(), 3))
    world.ledger.saw(version)


def read_live(world: World, rng: Random) -> Iterator[None]:
    """Asks a materialisation that looks for new versions by itself."""
    if world.live is None:
        live: Any = {"live": True}
        world.live = evermat.open(_path(world), **live)
    question = rng.choice(world.workload.questions)
    window = world.window_on_disk()
    found = as_set(world.live.query(question.text))
    window.claim(f"live: {question.text}", found, lambda facts: set(question.answer(facts)))
    yield


STATES = {open_newest: 2, open_any: 1, query_version: 2, list_versions: 1, follow_changes: 1}
FOLLOWING = {refresh: 3, read_live: 3}
