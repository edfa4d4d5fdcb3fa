"""The facts of the shapes, drawn at random with fixed seeds: the same each time. Terms are in their N-Triples form."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np

from bench.universities import RDF_TYPE, UO, write
from bench.universities.drawing import Random, draw, seeded

Row = tuple[str, ...]
Facts = dict[str, list[Row]]

OWL, RDFS = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2000/01/rdf-schema#"
SAME = f"<{OWL}sameAs>"
EMAIL = f"<{UO}emailAddress>"
SECOND_NAMES = ("/Chair>", "/staff/", "/tutors/", "#Maths>")  # what is in those that `bench.universities` gives
MANY_NAMES = (0.3, 8)  # the share of the people who have further names, and how many at most
FEW_NAMES = (0.1, 3)
ELSEWHERE = 0.5  # of what is known of such a person stands under a further name

CLIQUE = "http://example.org/clique#"
CYC = "http://example.org/cyc#"


def together(found: Iterator[tuple[str, Row]]) -> Facts:
    """By relation, each fact once."""
    facts: dict[str, dict[Row, None]] = {}
    for relation, row in found:
        facts.setdefault(relation, {})[row] = None
    return {relation: list(rows) for relation, rows in facts.items()}


# --- universities ------------------------------------------------------------------------------------------


def universities(
    number: int, departments: int | None = None, *, names: tuple[float, int] | None = MANY_NAMES, seed: int = 0
) -> Facts:
    """Universities of `bench.universities`, with more second names than they have, or (`names` is None) without any."""
    text = io.BytesIO()
    write("uobm", number, text, seed=seed, departments=departments)
    lines = text.getvalue().decode().splitlines()
    if names is None:
        lines = [line for line in lines if not any(part in line for part in SECOND_NAMES)]
    triples = [line.removesuffix(" .").split(" ", 2) for line in lines]
    if names is not None:
        triples = [*with_names(triples, seeded(seed, number), names)]
    return together((o, (s,)) if p == RDF_TYPE else (p, (s, o)) for s, p, o in triples)


def with_names(triples: list[list[str]], random: Random, share: tuple[float, int]) -> Iterator[list[str]]:
    """The triples, in which some people go by several names; all of these have the person's e-mail address."""
    named, most = share
    people = [s for s, p, _ in triples if p == EMAIL]
    count = draw(random, (1, most), len(people)) * (random.random(len(people)) < named)
    names = {
        person: [f"{person[:-1]}/name{number}>" for number in range(how_many)]
        for person, how_many in zip(people, count.tolist(), strict=True)
        if how_many
    }
    chance = random.random((len(triples), 2)).tolist()
    which = random.integers(0, most, (len(triples), 2)).tolist()
    for (s, p, o), chances, numbers in zip(triples, chance, which, strict=True):
        if p == EMAIL:
            yield [s, p, o]
            yield from ([name, p, o] for name in names.get(s, ()))
            continue
        ends = [
            own[number % len(own)] if luck < ELSEWHERE and (own := names.get(end)) else end
            for end, luck, number in zip((s, o), chances, numbers, strict=True)
        ]
        yield [ends[0], p, ends[1]]


# --- cliques -----------------------------------------------------------------------------------------------


def cliques(things: int, most: int, seed: int = 0) -> Facts:
    """Things with ten to `most` names, evenly on a logarithmic scale; `bench.equality.programs.CLIQUES` makes the names equal.

    The names of a thing are a random tree whose edges are links, records with one main name, or passports with one owner; a tenth of the edges
    is there twice, in other ways, so that some deletions split a thing and some do not.
    """
    random = seeded(seed, things, most)
    sizes = np.exp(random.uniform(np.log(10), np.log(most), things)).astype(int).tolist()
    return together(_cliques(sizes, random))


def _cliques(sizes: list[int], random: Random) -> Iterator[tuple[str, Row]]:
    def name(thing: int, number: int) -> str:
        return f"<{CLIQUE}thing{thing}/{number}>"

    def word(what: str) -> str:
        return f"<{CLIQUE}{what}>"

    cities = len(sizes) // 2 + 5
    for city in range(4, cities):
        yield word("part"), (word(f"city{city}"), word(f"city{city // 4}"))
    for thing, size in enumerate(sizes):
        links = random_tree(size, random)
        links += [links[i] for i in random.integers(0, len(links), size // 10).tolist()]
        for number, ((one, other), way) in enumerate(
            zip(links, draw(random, (0, 2), len(links)).tolist(), strict=True)
        ):
            pair = name(thing, one), name(thing, other)
            if way == 0:
                yield SAME, pair
            elif way == 1:
                yield from ((word("main"), (word(f"record{thing}/{number}"), end)) for end in pair)
            else:
                yield from ((word("passport"), (end, f'"{thing}-{number}"')) for end in pair)
        home = random.integers(1, cities, 2).tolist()
        for number, (which, luck) in enumerate(
            zip(draw(random, (0, 1), size).tolist(), random.random(size), strict=True)
        ):
            yield word("Person"), (name(thing, number),)
            yield word("lives"), (name(thing, number), word(f"city{home[which]}"))
            if luck < 0.25:
                yield word("owns"), (name(thing, number), word(f"book{thing}/{number}"))
        for other in random.integers(0, len(sizes), 2).tolist():
            ends = (name(t, int(random.integers(0, sizes[t]))) for t in (thing, other))
            yield word("knows"), tuple(ends)


def random_tree(size: int, random: Random) -> list[tuple[int, int]]:
    """Each but the first with one before it."""
    above = (random.random(size - 1) * np.arange(1, size)).astype(int).tolist()
    return [(number, before) for number, before in enumerate(above, start=1)]


# --- few things, many names --------------------------------------------------------------------------------


def cyc(things: int, names: int, facts: int, seed: int = 0) -> Facts:
    """Things with so many names and so many explicit facts each, of which one less than the names says that names are equal.

    Whatever else is known of a thing stands under any of its names: a few types, and properties with values of their own; one of ten things is
    related to another. The classes are a tree.
    """
    return together(("triple", row) for row in _cyc(things, names, facts, seeded(seed, things, names)))


TYPES, CLASSES, PROPERTIES = 20, 400, 40
RELATED = 10  # one of so many things; each such fact is as many facts in all names as there are pairs of names


def _cyc(things: int, names: int, facts: int, random: Random) -> Iterator[Row]:
    def word(what: str) -> str:
        return f"<{CYC}{what}>"

    def name(thing: int, number: int) -> str:
        return f"<{CYC}thing{thing}/{number}>"

    valued = facts - (names - 1) - TYPES
    if valued < 1:
        raise ValueError(f"{facts} facts are too few for {names} names")
    for class_ in range(1, CLASSES):
        yield word(f"Class{class_}"), f"<{RDFS}subClassOf>", word(f"Class{(class_ - 1) // 4}")
    for number in range(PROPERTIES):
        yield word(f"property{number}"), f"<{RDFS}subPropertyOf>", word(f"wider{number % 5}")
        yield word(f"property{number}"), f"<{RDFS}domain>", word(f"Class{number * CLASSES // PROPERTIES}")
    for thing in range(things):
        for one, other in random_tree(names, random):
            yield name(thing, one), SAME, name(thing, other)
        under = iter(random.integers(0, names, facts).tolist())
        for class_ in random.choice(CLASSES, TYPES, replace=False).tolist():
            yield name(thing, next(under)), RDF_TYPE, word(f"Class{class_}")
        is_related = thing % RELATED == 0
        if is_related:
            other = (thing + int(random.integers(1, things))) % things
            yield name(thing, next(under)), word("related"), name(other, int(random.integers(0, names)))
        for value, property_ in enumerate(random.integers(0, PROPERTIES, valued - is_related).tolist()):
            yield name(thing, next(under)), word(f"property{property_}"), word(f"value{thing}/{value}")
