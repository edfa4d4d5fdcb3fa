"""Operations that change: facts, rules, streams, change files, and updates that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

import pytest

import evermat
from evermat import Change
from tests.threads.ledger import Window
from tests.threads.reads import checked_whole
from tests.threads.workload import RULES, Step, Version, marker
from tests.threads.world import STEADY, World

Operation = Callable[[World, Random], Iterator[None]]


@contextmanager
def _owning(world: World, part: int) -> Iterator[bool]:
    """Yields whether nobody else changes the part."""
    free = part not in world.busy
    world.busy.add(part)
    try:
        yield free
    finally:
        if free:
            world.busy.discard(part)


def _before(version: Version, part: int) -> Version:
    first, second, third = (step - (number == part) for number, step in enumerate(version))
    return first, second, third


def _check_change(world: World, window: Window, change: Change, part: int, step: int, rng: Random) -> None:
    """A change has what one step of its part changes, whatever the others have done before it."""
    for name in rng.sample(world.workload.always(), 2):

        def expected(version: Version, name: str = name) -> object:
            if version[part] != step + 1:
                return None
            old, new = (world.workload.facts(one)[name] for one in (_before(version, part), version))
            return (new - old, old - new)

        found = (frozenset(change.inserted[name]), frozenset(change.deleted[name]))
        window.claim_version(f"change of {name}", found, expected)


def _redundant(world: World, change: Step, part: int, step: int, rng: Random) -> Step:
    """The same update with facts that it inserts or deletes in vain."""
    new = world.workload.explicit(part, step + 1)
    insert, delete = ({name: set(rows) for name, rows in side.items()} for side in (change.insert, change.delete))
    for name, rows in new.items():
        insert.setdefault(name, set()).update(row for row in sorted(rows) if rng.random() < 0.2)
        delete.setdefault(name, set()).update(row for row in sorted(insert[name]) if rng.random() < 0.2)
    return Step(insert, delete, change.add_rules, change.remove_rules)


def update(part: int, algorithms: tuple[str, ...] = ("auto",)) -> Operation:
    """The operation that makes the next step of a part."""

    def update_part(world: World, rng: Random) -> Iterator[None]:
        with world.writers.together(), _owning(world, part) as free:
            if not free:
                return
            step = world.ledger.begun[part]
            change = world.workload.step(part, step)
            if part != RULES and rng.random() < 0.3:
                change = _redundant(world, change, part, step, rng)
            window = world.window()
            world.ledger.begun[part] += 1
            algorithm: Any = rng.choice(algorithms)
            made = world.m.update(
                change.insert,
                change.delete,
                algorithm,
                add_rules=change.add_rules,
                remove_rules=change.remove_rules,
            )
            world.ledger.done[part] += 1
            window.end()
        if STEADY:
            yield
        _check_change(world, window, made, part, step, rng)
        window = world.window()
        window.claim(
            "own marker",
            (part, marker(step + 1)) in world.m["now"],
            lambda facts: (part, marker(step + 1)) in facts["now"],
        )

    return update_part


def stream(part: int) -> Operation:
    """The operation that makes the next steps of a part as a stream."""

    def stream_part(world: World, rng: Random) -> Iterator[None]:
        with world.writers.together(), _owning(world, part) as free:
            if not free:
                return
            first, length = world.ledger.begun[part], rng.randint(2, 4)
            steps = [world.workload.step(part, first + i) for i in range(length)]
            updates: Any = [(one.insert, one.delete) for one in steps]
            if rng.random() < 0.5:
                updates = iter(updates)  # a thread reads it
            window = world.window()
            world.ledger.begun[part] += length
            for step, made in enumerate(world.m.stream(updates, marking=rng.choice([None, True, False])), first):
                world.ledger.done[part] += 1
                window.end()
                if rng.random() < 0.5:
                    yield
                _check_change(world, window, made, part, step, rng)
                window = world.window()
            assert world.ledger.done[part] == first + length

    return stream_part


def update_by_files(part: int) -> Operation:
    """The operation that makes the next two steps of a part by change files."""

    def update_files(world: World, rng: Random) -> Iterator[None]:
        with world.writers.together(), _owning(world, part) as free:
            if not free:
                return
            first, files = world.ledger.begun[part], []
            for step in (first, first + 1):
                change, path = world.workload.step(part, step), world.file(".tsv")
                path.write_text(
                    "".join(
                        "\t".join([sign, name, *map(str, row)]) + "\n"
                        for sign, side in (("-", change.delete), ("+", change.insert))
                        for name, rows in side.items()
                        for row in sorted(rows)
                    )
                )
                files.append(path)
            window = world.window()
            world.ledger.begun[part] += 2
            for step, made in enumerate(world.m.update_files(files), first):
                world.ledger.done[part] += 1
                window.end()
                if rng.random() < 0.5:
                    yield
                _check_change(world, window, made, part, step, rng)
                number = made.stats["version"]
                if STEADY and world.path is not None:
                    after = partial(_number_after, world, part, step)
                    window.claim_version("the number of a version", True, lambda one: after(one) == number)  # noqa: B023
                window = world.window()
            for path in files:
                path.unlink()

    return update_files


def _number_after(world: World, part: int, step: int, version: Version) -> int | None:
    return world.number_of(version) if version[part] == step + 1 else None


def fail(world: World, rng: Random) -> Iterator[None]:
    """Tries an update that is refused, or cut by a limit: nothing of it is ever seen."""
    step = world.workload.step(0, world.ledger.begun[0] + 3)
    wrong: list[dict[str, Any]] = [
        {"insert": {**step.insert, "extra": [("0.1", 7)]}},
        {"insert": {**step.insert, "no relation": [(1,)]}},
        {"insert": {"now": [(9, 9)]}, "limit_facts": 1},
        {"insert": {"now": [(9, 9)]}, "add_rules": "now(p, n) :- nothing(p, n)."},
        {"insert": {"now": [(9, 9)]}, "add_rules": "now(9, n) :- now(_, n).", "limit_facts": 1},
        {"insert": {"now": [(9, 9)]}, "add_rules": ".decl bad(n:number) forbidden bad(n) :- now(9, n)."},
    ]
    with world.writers.together(), pytest.raises(evermat.EvermatError):
        world.m.update(**rng.choice(wrong))
    yield


def save_and_close(world: World, rng: Random) -> Iterator[None]:
    """Saves to a new state directory, which has one whole version; then it is left again, and all goes on in memory."""
    del rng
    path, window = world.file("-state"), world.window()
    world.m.save(path)
    window.end()
    yield
    with evermat.open(path, version=1) as saved:
        version = checked_whole(world, saved)
        window.claim_version("saved markers", version, lambda one: one)
    world.m.close()
    newest = evermat.open(path)
    checked_whole(world, newest)
    newest.close()
