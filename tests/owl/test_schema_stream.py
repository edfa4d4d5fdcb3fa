"""Releases of schema.org as a base and 20 updates: the schema itself changes, and what follows from it changes with it.

They are read from the folder that the environment variable EVERMAT_DATA names; without it these tests are skipped.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pytest

import evermat
from evermat.language.terms import RDF_TYPE
from evermat.owl.rulesets.regimes import REGIMES, Regime, entailment
from evermat.owl.vocabulary import DOMAIN, RANGE, SUB_CLASS, SUB_PROPERTY
from tests.owl.graphs import Triple, read
from tests.support.environment import DATA, LASTING, NEEDS_DATA
from tests.support.updates import ALGORITHMS

pytestmark = NEEDS_DATA


@cache
def stream() -> tuple[list[Triple], list[tuple[list[Triple], list[Triple]]]]:
    """The first release, and what each later one adds and deletes."""
    folder = DATA / "streams"
    (base,) = folder.glob("*.base.nt.gz")
    added, deleted = (sorted(folder.glob(f"*.{kind}.nt.gz")) for kind in ("add", "del"))
    assert len(added) == len(deleted) == 20
    return read(base), [(read(a), read(d)) for a, d in zip(added, deleted, strict=True)]


@cache
def program(regime: Regime) -> evermat.Program:
    return evermat.Program.parse(entailment(regime, forbid=False))


@cache
def release(number: int) -> frozenset[Triple]:
    """All triples of a release."""
    base, updates = stream()
    if number == 0:
        return frozenset(base)
    added, deleted = updates[number - 1]
    return (release(number - 1) - set(deleted)) | set(added)


@cache
def recomputed(regime: Regime, number: int) -> frozenset[Triple]:
    """What follows from a release by itself."""
    columns = dict(zip("spo", zip(*release(number), strict=True), strict=True))
    return frozenset(program(regime).materialise({"triple": pa.table(columns)})["triple"])


def follow(regime: Regime, algorithm: str, every: int = 1) -> None:
    """Compares the materialisation with recomputation after each update of the stream, or only after every n-th."""
    base, updates = stream()
    m = program(regime).materialise({"triple": base})
    releases = [({"triple": added}, {"triple": deleted}) for added, deleted in updates]
    for number, _ in enumerate(m.stream(releases, algorithm=algorithm, marking=True), 1):
        if number % every == 0:
            assert set(m["triple"]) == recomputed(regime, number)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["auto", "dred-c", "bf-c", "bf-c-mod"])
def test_rdfs_follows_every_release(algorithm: str) -> None:
    follow("rdfs", algorithm)


@pytest.mark.slow
def test_owl2rl_follows_releases() -> None:
    follow("owl2rl", "auto", every=10)


@LASTING
@pytest.mark.parametrize("algorithm", ALGORITHMS[1:])
@pytest.mark.parametrize("regime", REGIMES)
def test_rules_follow_every_release_by_every_algorithm(regime: Regime, algorithm: str) -> None:
    follow(regime, algorithm)


def test_rdfs_is_what_plain_python_derives() -> None:
    last = len(stream()[1])
    assert recomputed("rdfs", last) == rdfs(release(last))


def rdfs(graph: frozenset[Triple]) -> set[Triple]:
    """RDFS by its patterns, one after the other, until nothing is new; rdf:_1 and the like do not occur."""
    facts = set(graph)
    while True:
        by: dict[str, list[tuple[str, str]]] = {}
        for s, p, o in facts:
            by.setdefault(p, []).append((s, o))
        above: dict[tuple[str, str], list[str]] = {}
        for name in (SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE):
            for s, o in by.get(name, ()):
                above.setdefault((name, s), []).append(o)
        new: set[Triple] = set()
        for s, p, o in facts:
            new.update((s, RDF_TYPE, c) for c in above.get((DOMAIN, p), ()))
            new.update((o, RDF_TYPE, c) for c in above.get((RANGE, p), ()))
            new.update((s, q, o) for q in above.get((SUB_PROPERTY, p), ()))
            if p == RDF_TYPE:
                new.update((s, RDF_TYPE, c) for c in above.get((SUB_CLASS, o), ()))
                if o == "<http://www.w3.org/2000/01/rdf-schema#Datatype>":
                    new.add((s, SUB_CLASS, "<http://www.w3.org/2000/01/rdf-schema#Literal>"))
            if p in (SUB_CLASS, SUB_PROPERTY):
                new.update((s, p, c) for c in above.get((p, o), ()))
        if new <= facts:
            return facts
        facts |= new
