"""Links between real data sets, and data with functional properties: what representatives stand for equals what the axioms say.

The links are read from the folder that the environment variable EVERMAT_DATA names; without it these tests are skipped.
"""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import evermat
from evermat.language.terms import RDF_TYPE, SAME_AS
from tests.support.environment import DATA, LONG, NEEDS_DATA
from tests.support.equality.checks import assert_changed
from tests.support.oracle import Facts
from tests.support.states import rows_of
from tests.support.updates import facts_of

SETS = ("geospecies", "linkedmdb", "uscensus", "wikicompany")
MANY = 4 if LONG else 1
LINKS = 1500 * MANY
E = "<http://e/{}>".format

RULES = """
.prefix e: <http://e/>
.decl e:label(x:term, y:term)
.decl e:code(x:term, y:term)
.decl e:near(x:term, y:term)
.decl e:Known(x:term)
.decl described(x:term, y:term, z:term)
.decl labels(x:term, n:number)
described(x, y, z) :- e:label(x, y), e:code(x, z).
e:Known(x) :- described(x, _, _).
e:Known(y) :- e:Known(x), e:near(x, y).
labels(x, n) :- e:Known(x), n = count : { e:label(x, _) }, !e:near(x, x).
"""


class Pair:
    """One program with representatives and with axioms; all that is done to them is done to both."""

    def __init__(self, text: str, facts: Facts, **more: Any) -> None:
        self.rewriting, self.axioms = (
            evermat.Program.parse(text, equality=equality).materialise(facts, **more)
            for equality in ("rewrite", "axiomatise")
        )
        self.check()

    def check(self) -> None:
        """Both say the same, and only representatives are held."""
        found, expected = facts_of(self.rewriting), facts_of(self.axioms)
        assert found == expected
        classes: dict[str, set[str]] = {}
        for x, y in expected[SAME_AS]:
            classes.setdefault(x, {x}).add(y)
        normal = {x: min(names, key=str.encode) for x, names in classes.items()}
        for name, rows in expected.items():
            represented = {tuple(normal.get(value, value) for value in row) for row in rows}
            assert set(self.rewriting[name].representatives) == represented
        for term in list(classes)[:20]:
            assert self.rewriting.names(term) == sorted(classes[term])
            assert self.rewriting.representative(term) == normal[term]

    def update(self, delete: Facts, insert: Facts, algorithm: str) -> None:
        before = facts_of(self.axioms)
        self.axioms.update(insert=insert, delete=delete)
        change = self.rewriting.update(insert=insert, delete=delete, algorithm=algorithm)
        assert_changed(change, before, facts_of(self.axioms))
        self.check()


def links(name: str) -> list[tuple[str, str]]:
    """Some links of a set: neighbours, so that things with several links keep them."""
    with gzip.open(DATA / "sameas" / f"{name}_links.nt.gz", "rt", encoding="utf-8") as file:
        triples = [line.split() for line in file if line.startswith("<")]
    assert {triple[1] for triple in triples} == {SAME_AS}
    found = sorted((triple[0], triple[2]) for triple in triples)
    first = Random(name).randrange(len(found) - LINKS)
    return found[first : first + LINKS]


@pytest.mark.slow
@NEEDS_DATA
@pytest.mark.parametrize("name", SETS)
def test_links_between_data_sets(name: str) -> None:
    rng, same = Random(name), links(name)
    left, right = sorted({x for x, _ in same}), sorted({y for _, y in same})
    both = left + right
    facts = {
        SAME_AS: set(same),
        E("label"): {(x, f'"{rng.randrange(500)}"') for x in rng.sample(left, len(left) // 2)},
        E("code"): {(y, f'"{rng.randrange(500)}"') for y in rng.sample(right, len(right) // 2)},
        E("near"): {(rng.choice(both), rng.choice(both)) for _ in range(LINKS // 4)},
    }
    pair = Pair(RULES, facts)
    assert len(pair.rewriting[E("Known")]) > len(pair.rewriting[E("Known")].representatives) > LINKS // 10
    for algorithm, count in (("bf-eq", 1), ("bf-eq", 100), ("auto", 10), ("remat-eq", 300)):
        gone = set(rng.sample(sorted(facts[SAME_AS]), count))
        joined = {(rng.choice(both), rng.choice(both)) for _ in range(3)}
        pair.update({SAME_AS: gone, E("near"): set(rng.sample(sorted(facts[E("near")]), count))}, {}, algorithm)
        pair.update({}, {SAME_AS: joined}, algorithm)
        facts[SAME_AS] = (facts[SAME_AS] - gone) | joined
    pair.update({SAME_AS: facts[SAME_AS]}, {}, "bf-eq")
    assert not len(pair.rewriting[SAME_AS])


# --- universities ------------------------------------------------------------------------------------------

UNIVERSITIES = """
.prefix e: <http://e/>
.decl e:email(x:term, y:term)
.decl e:headOf(x:term, y:term)
.decl e:worksFor(x:term, y:term)
.decl e:friend(x:term, y:term)
.decl e:Person(x:term)
.decl e:Chair(x:term)
.decl staff(x:term, n:number)
.decl lonely(x:term)
x = y :- e:email(x, z), e:email(y, z).          // inverse functional
x = y :- e:headOf(x, z), e:headOf(y, z).
y = z :- e:headOf(x, y), e:headOf(x, z).        // functional
y = z :- e:worksFor(x, y), e:worksFor(x, z).
e:worksFor(x, y) :- e:headOf(x, y).
e:Person(x) :- e:worksFor(x, _).
e:Chair(x) :- e:headOf(x, y), e:worksFor(_, y).
e:friend(y, x) :- e:friend(x, y).
e:friend(x, z) :- e:friend(x, y), e:friend(y, z), e:Chair(y).
staff(y, n) :- e:worksFor(_, y), n = count : { e:worksFor(_, y) }.
lonely(x) :- e:Person(x), !e:friend(x, _).
"""


def university(rng: Random, people: int) -> Facts:
    """Departments with heads and staff; some people and departments have several names."""
    names, departments = [E(f"p{i}") for i in range(people)], [E(f"d{i}") for i in range(people // 8)]
    facts: Facts = {E(name): set() for name in ("email", "headOf", "worksFor", "friend")} | {SAME_AS: set()}
    for i, name in enumerate(names):
        address = rng.randrange(i + 1) if rng.random() < 0.08 else i
        facts[E("email")].add((name, f"<mailto:{address}>"))
        facts[E("worksFor")].add((name, rng.choice(departments)))
    for department in departments:
        facts[E("headOf")].add((rng.choice(names), department))
        if rng.random() < 0.1:
            facts[E("headOf")].add((rng.choice(names), department))
    facts[E("friend")] = {(rng.choice(names), rng.choice(names)) for _ in range(people // 4)}
    facts[SAME_AS] = {(rng.choice(names), rng.choice(names)) for _ in range(people // 40)}
    return facts


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3 * MANY))
def test_universities(seed: int) -> None:
    rng = Random(seed)
    facts = university(rng, 120)
    pair = Pair(UNIVERSITIES, facts)
    assert len(pair.rewriting[SAME_AS]) > len(pair.rewriting[SAME_AS].representatives) + 30
    for algorithm in ("bf-eq", "auto", "bf-eq", "remat-eq"):
        size = rng.choice([1, 3, 10])
        delete = {name: set(rng.sample(sorted(rows), min(size, len(rows)))) for name, rows in facts.items()}
        other = university(rng, 120)
        insert = {name: set(rng.sample(sorted(rows), min(size, len(rows)))) for name, rows in other.items()}
        pair.update(delete, insert, algorithm)
        facts = {name: (rows - delete[name]) | insert[name] for name, rows in facts.items()}
    pair.update(facts, {}, "bf-eq")
    assert not any(len(pair.rewriting[name]) for name in pair.rewriting)


# --- RDF ---------------------------------------------------------------------------------------------------

PROPERTIES = [E(name) for name in ("f", "g", "unmentioned", "other")]
CLASSES = [E(name) for name in ("C", "D", "Nobody")]
GRAPH_RULES = """
.prefix e: <http://e/>
y = z :- e:f(x, y), e:f(x, z).
e:C(y) :- e:g(x, y), e:C(x).
e:D(x) :- e:C(x), e:f(_, x).
"""


def graph(rng: Random, size: int) -> set[tuple[str, str, str]]:
    """Random triples; few of them say what is the same."""
    things = [*(E(f"x{i}") for i in range(size // 2)), "_:x", *rng.sample(PROPERTIES, 1)]
    found = set()
    for _ in range(size):
        subject, property_ = rng.choice(things), rng.choice([*PROPERTIES, RDF_TYPE])
        found.add((subject, property_, rng.choice(CLASSES if property_ == RDF_TYPE else things)))
    found |= {(rng.choice(things), E("unmentioned"), f'"{i}"@en') for i in range(3)}
    return found | {(rng.choice(things), SAME_AS, rng.choice([*things, *PROPERTIES])) for _ in range(size // 8)}


@pytest.mark.parametrize("seed", range(4 * MANY))
def test_graphs(seed: int, tmp_path: Path) -> None:
    """Triples without a relation of their own are facts about terms as well, properties included."""
    rng = Random(seed)
    said = graph(rng, 24)
    (tmp_path / "g.nt").write_text("".join(f"{s} {p} {o} .\n" for s, p, o in sorted(said)))
    pair = Pair(GRAPH_RULES, {}, rdf=tmp_path / "g.nt")
    for algorithm in ("bf-eq", "remat-eq", "auto", "bf-eq"):
        for which in ("all", "asserted", "inferred"):
            found, expected = (
                [row for table in m.triples(which) for row in rows_of(table)] for m in (pair.rewriting, pair.axioms)
            )
            assert found == expected
            assert which != "asserted" or found == sorted(said)
        gone, come = set(rng.sample(sorted(said), 3)), graph(rng, 4)
        pair.update(routed(pair, gone), routed(pair, come - gone), algorithm)
        said = (said - gone) | (come - gone)
    pair.rewriting.export(tmp_path / "names.nt")
    pair.axioms.export(tmp_path / "axioms.nt")
    assert (tmp_path / "names.nt").read_text() == (tmp_path / "axioms.nt").read_text()


def routed(pair: Pair, triples: set[tuple[str, str, str]]) -> Facts:
    """Triples as facts of the relations that they belong to."""
    facts: Facts = {}
    for s, p, o in triples:
        if p == RDF_TYPE and o in pair.axioms:
            facts.setdefault(o, set()).add((s,))
        elif p in pair.axioms and p not in CLASSES:
            facts.setdefault(p, set()).add((s, o))
        else:
            facts.setdefault("other_triple", set()).add((s, p, o))
    return facts


def test_things_with_many_names() -> None:
    """Nothing is done for each fact in names that is not asked for: here are millions of them."""
    names = [E(f"x{i:03}") for i in range(100)]
    text = ".prefix e: <http://e/>\n.decl r(x:term, y:term, z:term)\n.decl n(k:number)\nn(k) :- k = count : { r(x, x, _) }."
    same = set(pairwise(names))
    m = evermat.Program.parse(text, equality="rewrite").materialise({"r": [(names[7],) * 3], SAME_AS: same})
    assert len(m["r"]) == 100**3
    assert len(m[SAME_AS]) == 100**2
    assert set(m["n"]) == {(100**2,)}
    assert (names[3], names[5], names[99]) in m["r"]
    assert list(m["r"].representatives) == [(names[0],) * 3]
    assert m.names(names[70]) == names
    assert set(m.query(f"r({names[1]}, {names[2]}, x), x != {names[3]}")) == {(x,) for x in names if x != names[3]}
    change = m.update(delete={SAME_AS: [(names[49], names[50])]})
    assert len(m["r"]) == 50**3
    assert set(m["n"]) == {(50**2,)}
    assert len(change.deleted["r"]) == 100**3 - 50**3
    assert change.inserted.total == 1
    assert m.representative(names[70]) == names[50]
    assert m.names(names[70]) == names[50:]
