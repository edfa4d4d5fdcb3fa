"""The facts of the shapes, drawn at random with fixed seeds: the same each time."""

from __future__ import annotations

import numpy as np

from bench import maintenance
from bench.workloads import Rows, dag_edges, distinct

Data = dict[str, Rows]


def random_dag(nodes: int, edges: int) -> Data:
    """A random DAG, as w1."""
    return {"e": dag_edges(nodes, edges)}


def categories(quick: bool) -> Data:
    """Categories in the manner of DBpedia, in layers: half of them in few deep fields, half in many shallow ones.

    Each has one broader category or two in the layer above, near its own place. Now and then one is also under a category that
    lies layers below it, so that there are cycles.
    """
    deep = (2, 60, 5) if quick else (5, 400, 5)  # fields, layers of each, categories of each layer
    shallow = (30, 4, 5) if quick else (500, 4, 5)
    rng = np.random.default_rng(0)
    parts: list[Data] = []
    start = 0
    for fields, layers, width in (deep, shallow):
        number = np.arange(fields * layers * width)
        layer, place = number // width % layers, number % width
        again = rng.random(len(number)) < 0.3
        lower = np.r_[number, number[again]]
        lower = lower[layer[lower] > 0]
        upper = lower - place[lower] - width + (place[lower] + rng.integers(-1, 2, len(lower))) % width
        turned = number[rng.random(len(number)) < 0.005]
        down = rng.integers(1, 80, len(turned))
        turned, down = turned[fit := layer[turned] + down < layers], down[fit]
        scheme = number // (layers * width)
        parts.append(
            {
                "broader": np.r_[np.c_[lower, upper], np.c_[turned, turned + down * width]] + start,
                "inScheme": np.c_[number + start, scheme - start - 1],
                "topConceptOf": np.c_[number + start, scheme - start - 1][layer == 0],
            }
        )
        start += len(number)
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    joined["related"] = rng.integers(0, start, (start, 2))
    joined["exactMatch"] = rng.integers(0, start, (start // 20, 2))
    joined["broadMatch"] = joined["broader"][rng.random(len(joined["broader"])) < 0.02]
    return {name: distinct(rows) for name, rows in joined.items()}


def places(quick: bool) -> Data:
    """Places in the manner of Claros: few large components and many small ones; objects found there; regions.

    A component is a random tree with some further edges.
    """
    large, small = ((4, 30, 60), (12, 2, 8)) if quick else ((60, 300, 700), (240, 2, 40))  # how many, of which sizes
    rng = np.random.default_rng(0)
    near = []
    start = 0
    for components, smallest, largest in (large, small):
        for size in rng.integers(smallest, largest + 1, components):
            edges = np.r_[random_tree(int(size), rng), rng.integers(0, size, (size // 10, 2))]
            near.append(edges[edges[:, 0] != edges[:, 1]] + start)
            start += int(size)
    objects, regions = start // 10, start // 200 + 1
    return {
        "near": distinct(np.concatenate(near)),
        "foundAt": np.c_[np.arange(objects) + 10**6, rng.integers(0, start + objects, objects)],
        "within": np.c_[rng.choice(start, regions, replace=False), np.arange(regions) + 2 * 10**6],
    }


def random_tree(nodes: int, rng: np.random.Generator) -> Rows:
    """Edges to each node but the first, from any before it."""
    node = np.arange(1, nodes)
    edges: Rows = np.c_[(rng.random(len(node)) * node).astype(np.int64), node]
    return edges


def university(quick: bool) -> Data:
    """Several universities of `bench.maintenance`, in which groups have groups, people work together, and professors had advisors."""
    systems, levels, sizes, generation = (2, 3, (10, 30), 60) if quick else (4, 8, (60, 140), 300)
    parts = []
    for system in range(systems):
        rng = np.random.default_rng(system)
        own = maintenance.university(quick)
        professor = own["worksFor"][:, 0]
        group = own["subOrgOf0"][own["subOrgOf0"][:, 1] < 10**6, 0]  # those that are part of a department
        above, nested = group, []
        for level in range(1, levels):
            below = group + level * 10**5
            nested.append(np.c_[below, rng.choice(above, len(below))])
            above = below
        own["subOrgOf0"] = np.r_[own["subOrgOf0"], *nested]
        researcher = rng.choice(own["memberOf0"][:, 0], len(professor), replace=False)
        own["memberOf0"] = np.r_[own["memberOf0"], np.c_[researcher, rng.choice(above, len(researcher))]]
        own["worksWith0"] = teams(professor, sizes, rng)
        younger = np.arange(generation, len(professor))
        older = younger // generation * generation - 1 - rng.integers(0, generation, len(younger))
        own["doctoralAdvisor"] = np.c_[professor[younger], professor[older]]
        parts.append({name: rows + system * 10**7 for name, rows in own.items()})
    return {name: distinct(np.concatenate([part[name] for part in parts])) for name in parts[0]}


def teams(people: Rows, sizes: tuple[int, int], rng: np.random.Generator) -> Rows:
    """Pairs that hold teams of some sizes together."""
    pairs = []
    start = 0
    while start < len(people):
        size = min(int(rng.integers(*sizes)), len(people) - start)
        pairs.append(random_tree(size, rng) + start)
        start += size
    members: Rows = people[np.concatenate(pairs)]
    return members
