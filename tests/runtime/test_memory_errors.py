"""An update that finds no memory, at whichever allocation, leaves all as it was, or is done; and the next one is right."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import evermat
from tests.support.environment import LONG
from tests.support.updates import facts_of

PROGRAM = """
.decl e(x:number, y:number)
.decl t(x:number, y:number)
.decl n(x:number)
.decl k(x:number, c:number)
.decl of(x:number, s:symbol)
.decl o(s:symbol)
t(x, y) :- e(x, y).
t(x, z) :- t(x, y), t(y, z).
n(x) :- e(x, _), !t(x, x).
k(x, c) :- e(x, _), c = count : { t(x, _) }.
o(s) :- of(x, s), n(x).
"""
FACTS = {"e": {(i, i + 1) for i in range(12)}, "of": {(i, f"s{i}") for i in range(12)}}
CHANGES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"e": {(50, 51)}}, {}),
    ({"e": {(5, 2), *((200 + i, 400 + i) for i in range(40))}, "of": {(3, "new")}}, {"e": {(7, 8)}, "of": {(1, "s1")}}),
    ({"e": {(7, 8), (12, 0)}}, {"e": {(5, 2)}}),
]
ALLOCATING = ("empty", "zeros", "full", "arange", "concatenate", "repeat", "unique", "flatnonzero", "where", "lexsort")


class Memory:
    """The memory of arrays, which ends at the k-th allocation of the package."""

    def __init__(self) -> None:
        self.left: int | None = None

    def watched(self, allocate: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            if self.left is not None and "/evermat/" in sys._getframe(1).f_code.co_filename:
                self.left -= 1
                if not self.left:
                    raise MemoryError("no memory")
            return allocate(*arguments, **options)

        return run

    @contextmanager
    def of(self, allocations: int) -> Iterator[None]:
        self.left = allocations
        try:
            yield
        finally:
            self.left, self.over = None, self.left <= 0


def applied(facts: dict[str, Any], change: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    insert, delete = change
    return {name: (rows - delete.get(name, set())) | insert.get(name, set()) for name, rows in facts.items()}


@pytest.mark.slow
@pytest.mark.parametrize("counters", ["none", "both"])
@pytest.mark.parametrize("held", [False, True], ids=["alone", "beside a snapshot"])
def test_an_update_without_memory_changes_nothing(counters: Any, held: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    program, memory = evermat.Program.parse(PROGRAM), Memory()
    for name in ALLOCATING:
        monkeypatch.setattr(np, name, memory.watched(getattr(np, name)))
    before = applied(FACTS, CHANGES[0])
    wanted = {
        name: facts_of(program.materialise(facts)) for name, facts in enumerate([before, applied(before, CHANGES[1])])
    }
    last = [
        facts_of(program.materialise(applied(facts, CHANGES[2]))) for facts in (before, applied(before, CHANGES[1]))
    ]
    failed, k = 0, 1
    while True:
        m = program.materialise(FACTS, counters=counters)
        m.update(*CHANGES[0])
        snapshot = m.snapshot() if held else None
        with memory.of(k):
            try:
                m.update(*CHANGES[1])
            except MemoryError:
                failed += 1
        done = facts_of(m) == wanted[1]
        assert done or facts_of(m) == wanted[0], k
        assert snapshot is None or {name: set(snapshot[name]) for name in snapshot} == wanted[0], k
        m.update(*CHANGES[2])
        assert facts_of(m) == last[done], k
        if not memory.over:
            break
        k += 1 if LONG else 7
    assert failed > 20
