"""The facts of the shapes, drawn at random with fixed seeds: the same each time."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from bench.modular.data import Data
from bench.workloads import Rows, distinct

FURTHER = 0.3  # of the categories of a field have a second broader one
TURNED = 0.001  # of them are also under one that lies below
ELSEWHERE = 0.02  # of the further broader concepts of a thesaurus are anywhere above

Field = tuple[int, int, int]
"""How many fields there are, the layers of each, the categories of each layer."""


def fields(kinds: Sequence[Field], seed: int = 0) -> Rows:
    """`broader` in the manner of DBpedia's categories: deep fields, in which most is broader than most, and shallow ones.

    Each category has one broader category or two in the layer above, near its own place. Now and then one is also under a category
    that lies layers below it, so that there are cycles.
    """
    random = np.random.default_rng(seed)
    parts: list[Rows] = []
    start = 0
    for count, layers, width in kinds:
        number = np.arange(count * layers * width)
        layer, place = number // width % layers, number % width
        lower = np.r_[number, number[random.random(len(number)) < FURTHER]]
        lower = lower[layer[lower] > 0]
        upper = lower - place[lower] - width + (place[lower] + random.integers(-1, 2, len(lower))) % width
        turned = number[random.random(len(number)) < TURNED]
        down = random.integers(1, max(layers // 5, 2), len(turned))
        turned, down = turned[fit := layer[turned] + down < layers], down[fit]
        parts.append(np.r_[np.c_[lower, upper], np.c_[turned, turned + down * width]] + start)
        start += len(number)
    return distinct(np.concatenate(parts))


def thesaurus(concepts: int, edges: int, layers: int, seed: int = 0) -> Rows:
    """`broader` in the manner of a large thesaurus: layers that widen downwards, one broader concept for each or several.

    The first lies in the layer above, at the same place in proportion; further ones lie near it, and a few anywhere above. No cycles.
    """
    random = np.random.default_rng(seed)
    growth = concepts ** (1 / layers)
    ends = np.unique(np.ceil(growth ** np.arange(1, layers + 1) / growth**layers * concepts).astype(np.int64))
    starts = np.r_[0, ends[:-1]]
    layer = np.repeat(np.arange(len(ends)), ends - starts)

    def above(lower: Rows, spread: int) -> Rows:
        """A concept in the layer above each, at most so many places from its own in proportion."""
        own, up = layer[lower], layer[lower] - 1
        share = (lower - starts[own]) / (ends[own] - starts[own])
        width = ends[up] - starts[up]
        place = (share * width).astype(np.int64) + random.integers(-spread, spread + 1, len(lower))
        found: Rows = starts[up] + np.clip(place, 0, width - 1)
        return found

    every = np.arange(ends[0], concepts)
    made: Rows = np.c_[every, above(every, 0)]
    while len(made) < edges:
        lower = random.integers(ends[0], concepts, edges - len(made))
        far = random.random(len(lower)) < ELSEWHERE
        upper = np.where(far, (random.random(len(lower)) * starts[layer[lower]]).astype(np.int64), above(lower, 3))
        made = distinct(np.r_[made, np.c_[lower, upper]])
    return made


def roads(side: int, missing: float = 0.05, seed: int = 0) -> Rows:
    """One-way streets: a square grid in which each crossing leads to the right and down, but for some streets that are missing."""
    number = np.arange(side * side).reshape(side, side)
    right = np.c_[number[:, :-1].ravel(), number[:, 1:].ravel()]
    down = np.c_[number[:-1].ravel(), number[1:].ravel()]
    edges: Rows = np.r_[right, down]
    kept: Rows = edges[np.random.default_rng(seed).random(len(edges)) >= missing]
    return kept


def concepts(broader: Rows, seed: int = 0) -> Data:
    """What else the SKOS rules read about the concepts of `broader`: related ones, matches, the schemes that they are in."""
    random = np.random.default_rng(seed)
    count = int(broader.max()) + 1
    scheme = -1 - np.arange(count) // 1000
    return {
        "broader": broader,
        "related": distinct(random.integers(0, count, (count // 10, 2))),
        "exactMatch": distinct(random.integers(0, count, (count // 100, 2))),
        "broadMatch": broader[random.random(len(broader)) < 0.02],
        "inScheme": np.c_[np.arange(count), scheme],
        "topConceptOf": np.c_[np.arange(count), scheme][random.random(count) < 0.01],
    }


def relations(groups: int, size: int, names: tuple[int, int], seed: int = 0) -> Data:
    """Edges for the closures of `programs.relations`. Those of a group lie in the same thesaurus, so that they have much in common.

    `names`: how many closures there are in a group, and how many further relations.
    """
    random = np.random.default_rng(seed)
    closures, others = names
    made: Data = {}
    for group in range(groups):
        edges = thesaurus(size, size * 3 // 2, 12, seed + group) + group * size
        for i in range(closures):
            made[f"edge_{group}_{i}"] = edges[random.random(len(edges)) < 0.8]
        for i in range(others):
            made[f"fact_{group}_{i}"] = distinct(random.integers(0, size, (size // 4, 2)) + group * size)
    return made


def known_graphs(data: Path) -> Iterator[tuple[str, Path, int]]:
    """Real graphs with closures that are known: name, file, number of pairs."""
    with (data / "graphs" / "EXPECTED-TC.tsv").open(encoding="utf-8") as file:
        for one in csv.DictReader(file, delimiter="\t"):
            yield one["graph"], data / "graphs" / f"{one['file']}.gz", int(one["computed_TC"])


def read_graph(file: Path) -> Rows:
    """The edges in a file, a pair in each line."""
    return np.array(gzip.decompress(file.read_bytes()).split(), np.int64).reshape(-1, 2)
