"""Operations that share nothing with others but the process: programs are compiled and materialised apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random

import pytest

import evermat
from tests.threads.equalities import Equalities
from tests.threads.graphs import Graph, StoredGraph
from tests.threads.ledger import Mismatch
from tests.threads.workload import closure
from tests.threads.world import World

TEXTS = (Graph.text, StoredGraph.text, Equalities.text)
WRONG = Graph.text.replace("path(x, y) :- edge(x, y).", 'path(x, y) :- edge(x, z), !rim(y), 1 < "a".\npath(x :- ')
SMALL = """
.decl e(x:symbol, y:symbol)
.decl t(x:symbol, y:symbol)
.decl n(x:symbol, n:number)
t(x, y) :- e(x, y).
t(x, z) :- t(x, y), t(y, z).
n(x, n) :- e(x, _), n = count : { t(x, _) }.
"""


@cache
def described(text: str) -> str:
    """What a program is like; computed before there are threads."""
    return evermat.Program.parse(text).describe()


@cache
def refusal(text: str) -> str:
    """The errors of a program."""
    with pytest.raises(evermat.ProgramError) as raised:
        evermat.Program.parse(text)
    return str(raised.value)


def prepare() -> None:
    """Computes what programs are compared with."""
    for text in TEXTS:
        described(text)
    refusal(WRONG)


def parse(world: World, rng: Random) -> Iterator[None]:
    """Compiles a program, or one with errors."""
    del world
    if rng.random() < 0.3:
        if refusal.__wrapped__(WRONG) != refusal(WRONG):
            raise Mismatch("other errors")
    else:
        text = rng.choice(TEXTS)
        if described.__wrapped__(text) != described(text):
            raise Mismatch("another program")
    yield


def materialise_apart(world: World, rng: Random) -> Iterator[None]:
    """Materialises and updates something of its own."""
    del world
    edges = {
        (f"{rng.randrange(8)}", f"s{rng.random()}" if rng.random() < 0.2 else f"{rng.randrange(8)}") for _ in range(8)
    }
    m = evermat.Program.parse(SMALL).materialise({"e": edges})
    yield
    gone = set(rng.sample(sorted(edges), 3))
    m.update({"e": [("0", "7")]}, {"e": gone})
    edges = edges - gone | {("0", "7")}
    paths = closure(edges)
    counts = {(x, sum(x == y for y, _ in paths)) for x, _ in edges}
    if set(m["t"]) != paths or set(m["n"]) != counts:
        raise Mismatch("something else follows")


ALONE = {parse: 1, materialise_apart: 1}
