"""What is said to be connected is what networkx finds to be connected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.columns.graph import reachability
from evermat.columns.graph.reachability import Graph, Pairs, connected
from evermat.columns.kernels import graphs as kernels
from evermat.columns.storage.arrays import Nodes
from tests.columns.models import truth_of

Edge = tuple[int, int]

EVEN = truth_of(lambda word: word % 2 == 0)


#: how many sources a block has at most, and how many times more targets than sources there may be if the graph is to be turned around
BOUNDS = st.sampled_from([(4096, 4), (3, 4), (3, 0), (3, 1000)])


@contextmanager
def bounds_set(most_sources: int, turn_if_fewer: int) -> Iterator[None]:
    """Several blocks of a few sources instead of one, and graphs that are never or always turned around."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reachability, "MOST_SOURCES", most_sources)
        patch.setattr(reachability, "REVERSE_IF_FEWER", turn_if_fewer)
        yield


def nodes_of(values: list[int]) -> Nodes:
    return np.array(values, np.int32)


def graph_of(nodes: int, edges: list[Edge], *, symmetric: bool = False) -> Graph:
    tails, heads = nodes_of([tail for tail, _ in edges]), nodes_of([head for _, head in edges])
    return Graph(nodes, tails, heads, symmetric=symmetric)


def model_of(nodes: int, edges: list[Edge], *, symmetric: bool = False) -> nx.DiGraph:
    model = nx.DiGraph()
    model.add_nodes_from(range(nodes))
    model.add_edges_from(edges)
    if symmetric:
        model.add_edges_from((head, tail) for tail, head in edges)
    return model


def closure(model: nx.DiGraph) -> set[Edge]:
    return set(nx.transitive_closure(model, reflexive=False).edges())


def collect(pairs: Pairs, chunk: int) -> set[Edge]:
    """All pairs; they may be asked for repeatedly, and counted before and after."""
    count, found = pairs.count(), list[Edge]()
    for sources, targets in pairs.chunks(chunk):
        assert 0 < len(sources) == len(targets) <= chunk
        assert sources.dtype == targets.dtype == np.int32
        found += zip(sources.tolist(), targets.tolist(), strict=True)
    assert len(set(found)) == len(found), "a pair came twice"
    assert count == len(found) == pairs.count()
    return set(found)


@st.composite
def graphs(draw: st.DrawFn, least: int = 0) -> tuple[int, list[Edge]]:
    """Nodes and edges; edges may come several times, and lead from a node to itself."""
    nodes = draw(st.integers(least, 10))
    ends = st.integers(0, nodes - 1)
    return nodes, draw(st.lists(st.tuples(ends, ends), max_size=16)) if nodes else []


def subsets(nodes: int) -> st.SearchStrategy[list[int]]:
    return st.permutations(range(nodes)).flatmap(lambda order: st.integers(0, nodes).map(lambda n: order[:n]))


def check_invariants(graph: Graph, model: nx.DiGraph) -> None:
    """All that the description of a graph promises."""
    expected = {frozenset(component) for component in nx.strongly_connected_components(model)}
    members = [graph.members[a:b].tolist() for a, b in zip(graph.bounds[:-1], graph.bounds[1:], strict=True)]
    assert graph.components == len(members) == len(expected)
    assert {frozenset(component) for component in members} == expected
    assert sum(map(len, members)) == graph.nodes
    assert all(graph.component[v] == c for c, component in enumerate(members) for v in component)
    own = graph.component.tolist()
    inside = {own[v] for v, w in model.edges() if own[v] == own[w]}
    assert set(np.nonzero(graph.cyclic)[0].tolist()) == inside
    across = sorted({(own[v], own[w]) for v, w in model.edges() if own[v] != own[w]})
    assert all(c < d for c, d in across)
    tails = np.repeat(np.arange(graph.components), np.diff(graph.starts)).tolist()
    assert sorted(zip(tails, graph.successors.tolist(), strict=True)) == across


@pytest.mark.slow
@given(graphs(), st.booleans())
def test_graphs_are_condensed(shape: tuple[int, list[Edge]], symmetric: bool) -> None:
    graph, model = graph_of(*shape, symmetric=symmetric), model_of(*shape, symmetric=symmetric)
    check_invariants(graph, model)
    check_invariants(graph.reversed, model.reverse())
    assert graph.reversed is graph.reversed
    check_invariants(graph.reversed.reversed, model)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data(), graphs(), st.booleans(), st.integers(1, 7) | st.just(1000), BOUNDS)
def test_pairs_are_the_difference_of_closures(
    data: st.DataObject, shape: tuple[int, list[Edge]], symmetric: bool, chunk: int, bounds: tuple[int, int]
) -> None:
    nodes, edges = shape
    sources = data.draw(subsets(nodes))
    targets = data.draw(st.none() | subsets(nodes))
    kept = data.draw(st.none() | st.lists(st.booleans(), min_size=len(edges), max_size=len(edges)))
    more = graph_of(nodes, edges, symmetric=symmetric)
    less, known = None, set()
    if kept is not None:
        fewer = [edge for edge, keep in zip(edges, kept, strict=True) if keep]
        less = graph_of(nodes, fewer, symmetric=symmetric)
        known = closure(model_of(nodes, fewer, symmetric=symmetric))
    expected = {
        (s, t)
        for s, t in closure(model_of(nodes, edges, symmetric=symmetric)) - known
        if s in sources and (targets is None or t in targets)
    }
    wanted = None if targets is None else nodes_of(targets)
    with bounds_set(*bounds):
        assert collect(Pairs(more, less, nodes_of(sources), wanted), chunk) == expected


@pytest.mark.slow
@settings(max_examples=100)
@given(st.data(), graphs(least=1), st.booleans(), BOUNDS)
def test_connected_is_the_closure(
    data: st.DataObject, shape: tuple[int, list[Edge]], symmetric: bool, bounds: tuple[int, int]
) -> None:
    nodes, _ = shape
    ends = st.integers(0, nodes - 1)
    asked = data.draw(st.lists(st.tuples(ends, ends), max_size=30))
    expected = closure(model_of(*shape, symmetric=symmetric))
    graph = graph_of(*shape, symmetric=symmetric)
    with bounds_set(*bounds):
        found = connected(graph, nodes_of([a for a, _ in asked]), nodes_of([b for _, b in asked]))
    assert found.dtype == np.bool_
    assert found.tolist() == [pair in expected for pair in asked]


def test_a_new_cycle_connects_its_nodes_to_themselves() -> None:
    more, less = graph_of(3, [(0, 1), (1, 0), (2, 2)]), graph_of(3, [(0, 1)])
    assert collect(Pairs(more, less, nodes_of([0, 1, 2]), None), 9) == {(0, 0), (1, 0), (1, 1), (2, 2)}


@pytest.mark.parametrize("nodes", [0, 1])
def test_graphs_without_edges_connect_nothing(nodes: int) -> None:
    graph = graph_of(nodes, [])
    every = np.arange(nodes, dtype=np.int32)
    for pairs in (Pairs(graph, None, every, None), Pairs(graph, graph, every, every)):
        assert list(pairs.chunks(5)) == []
        assert pairs.count() == 0
    assert connected(graph, every, every).tolist() == [False] * nodes


def test_pairs_come_source_by_source_unless_sources_are_few() -> None:
    """Whoever stores pairs finds those of a source close together."""
    nodes = 40
    graph = graph_of(nodes, [(v, v + 1) for v in range(nodes - 1)])
    every = np.arange(nodes, dtype=np.int32)
    for sources, is_grouped in ((every, True), (every[:2], False)):
        found = [
            pair
            for tails, heads in Pairs(graph, None, sources, None).chunks(7)
            for pair in zip(tails, heads, strict=True)
        ]
        changes = sum(before[0] != after[0] for before, after in pairwise(found))
        assert (changes == len({tail for tail, _ in found}) - 1) == is_grouped


def test_arrays_of_any_kind_are_taken() -> None:
    edges = np.array([[0, 1], [1, 2]], np.int64)
    edges.flags.writeable = False
    graph = Graph(3, edges[:, 0], edges[:, 1])
    assert collect(Pairs(graph, None, np.arange(3), np.array([2])), 2) == {(0, 2), (1, 2)}
    assert connected(graph, edges[:, 0], edges[::-1, 1]).tolist() == [True, False]


def test_nodes_that_are_none_are_refused() -> None:
    for edge in [(0, 2), (2, 0), (-1, 0), (0, -1)]:
        with pytest.raises(AssertionError):
            graph_of(2, [edge])


def dense_closure(nodes: int, edges: Nodes) -> np.ndarray:
    reached = np.zeros((nodes, nodes), np.bool_)
    reached[edges[:, 0], edges[:, 1]] = True
    for middle in range(nodes):  # Warshall
        reached |= reached[:, middle, None] & reached[middle]
    return reached


@pytest.mark.parametrize("most_sources", [64, 100, 4096])
@pytest.mark.parametrize("turn_if_fewer", [0, 4])
@pytest.mark.parametrize("degree", [0.8, 1.3, 3.0])
def test_rows_of_several_words(
    degree: float, turn_if_fewer: int, most_sources: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reachability, "MOST_SOURCES", most_sources)
    monkeypatch.setattr(reachability, "REVERSE_IF_FEWER", turn_if_fewer)
    nodes, random = 300, np.random.default_rng(int(degree * 10))
    edges = random.integers(0, nodes, (int(nodes * degree), 2)).astype(np.int32)
    fewer = edges[random.random(len(edges)) < 0.9]
    more, less = (Graph(nodes, some[:, 0], some[:, 1]) for some in (edges, fewer))
    every = random.permutation(nodes).astype(np.int32)
    reached, known = dense_closure(nodes, edges), dense_closure(nodes, fewer)
    for before, expected in ((None, reached), (less, reached & ~known)):
        for chunk in (97, 1 << 20):
            pairs = Pairs(more, before, every, every if chunk == 97 else None)
            assert pairs.count() == np.count_nonzero(expected)
            found = np.zeros_like(reached)
            for sources, targets in pairs.chunks(chunk):
                assert not found[sources, targets].any()
                found[sources, targets] = True
            assert (found == expected).all()
    starts, ends = (random.integers(0, nodes, 5000).astype(np.int32) for _ in range(2))
    assert (connected(more, starts, ends) == reached[starts, ends]).all()
    assert (connected(more, starts, ends % 7) == reached[starts, ends % 7]).all()


def test_memory_bounds_the_width_of_rows() -> None:
    assert reachability._block_size(10, 10) == 10
    assert reachability._block_size(10_000, 10_000) == 4096
    assert reachability._block_size(10_000, 1 << 22) == 4 * 64
    assert reachability._block_size(10_000, 1 << 25) == 64


# ── Graphs that change ───────────────────────────────────────────────────────────────────────────────────────────────


class Linked:
    """Edges in chains, put there in two steps; those with an odd state are not live."""

    def __init__(self, nodes: int, edges: list[Edge], states: list[int]) -> None:
        count = len(edges)
        self.rows = np.array(edges, np.int32).reshape(-1, 2)
        self.state = np.array(states, np.uint16)
        self.head_out, self.head_in = np.full(nodes, -1, np.int32), np.full(nodes, -1, np.int32)
        self.next_out, self.next_in = np.full(count, -7, np.int32), np.full(count, -7, np.int32)
        for first, end in ((0, count // 2), (count // 2, count)):
            kernels.link(self.rows, first, end, self.head_out, self.next_out, self.head_in, self.next_in)
        self.live = [(i, edge) for i, (edge, state) in enumerate(zip(edges, states, strict=True)) if state % 2 == 0]

    def reach(self, seeds: list[int], marks: np.ndarray, mark: int, within: int, *, backwards: bool) -> list[int]:
        head, chain = (self.head_in, self.next_in) if backwards else (self.head_out, self.next_out)
        out = np.empty(len(marks), np.int32)
        column = 0 if backwards else 1
        count = kernels.reach(
            nodes_of(seeds), self.rows, self.state, EVEN, head, chain, column, len(self.rows), marks, mark, within, out
        )
        return out[:count].tolist()


@st.composite
def linked(draw: st.DrawFn) -> tuple[int, Linked]:
    nodes, edges = draw(graphs(least=1))
    states = draw(st.lists(st.integers(0, 3) | st.just(65_534), min_size=len(edges), max_size=len(edges)))
    return nodes, Linked(nodes, edges, states)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data(), linked(), st.sampled_from([0, 2, 6]), st.booleans())
def test_reach_visits_what_live_edges_lead_to(
    data: st.DataObject, shape: tuple[int, Linked], within: int, backwards: bool
) -> None:
    nodes, graph = shape
    seeds = data.draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=3))
    before = data.draw(st.lists(st.sampled_from([6, 14, 2, 0, 7]), min_size=nodes, max_size=nodes))
    allowed = [v for v in range(nodes) if not before[v] & 1 and before[v] & within == within]
    model = model_of(nodes, [edge for _, edge in graph.live]).subgraph(allowed)
    model = model.reverse() if backwards else model
    # distances from a node that leads to all seeds: breadth first, none is followed by one that is nearer
    model = nx.DiGraph(model)
    model.add_edges_from((-1, seed) for seed in seeds if seed in allowed)
    model.add_node(-1)
    distance = nx.single_source_shortest_path_length(model, -1)
    marks = np.array(before, np.uint8)
    visited = graph.reach(seeds, marks, 1, within, backwards=backwards)
    assert set(visited) == set(distance) - {-1} and len(visited) == len(set(visited))
    assert [distance[v] for v in visited] == sorted(distance[v] for v in visited)
    assert marks.tolist() == [mark | (v in visited) for v, mark in enumerate(before)]


@pytest.mark.slow
@given(st.data(), linked())
def test_edges_between_marked_nodes(data: st.DataObject, shape: tuple[int, Linked]) -> None:
    nodes, graph = shape
    tails = data.draw(subsets(nodes))
    marks = np.array(data.draw(st.lists(st.integers(0, 7), min_size=nodes, max_size=nodes)), np.uint8)
    expected = [i for i, (tail, head) in graph.live if tail in tails and marks[head] & 4]

    def edges_between(out: Nodes) -> int:
        return kernels.edges_between(
            nodes_of(tails), marks, 4, graph.rows, graph.state, EVEN, graph.head_out, graph.next_out, out
        )

    count = edges_between(nodes_of([]))
    assert count == len(expected)
    out = np.full(count, -1, np.int32)
    assert edges_between(out) == count
    assert sorted(out.tolist()) == expected
    assert edges_between(out[: count // 2]) == count


def test_edges_that_are_not_live_lead_nowhere() -> None:
    graph = Linked(4, [(0, 1), (1, 2), (2, 3), (0, 2)], [0, 1, 2, 3])
    marks = np.zeros(4, np.uint8)
    assert graph.reach([0], marks, 1, 0, backwards=False) == [0, 1]
    assert graph.reach([3], marks, 1, 0, backwards=True) == [3, 2]
    assert graph.reach([], marks, 2, 0, backwards=True) == []
    assert marks.tolist() == [1] * 4
    out = np.empty(4, np.int32)
    every = nodes_of([0, 1, 2, 3])
    arguments = (graph.rows, graph.state, EVEN, graph.head_out, graph.next_out, out)
    assert kernels.edges_between(every, marks, 1, *arguments) == 2
    assert out[:2].tolist() == [0, 2]


def test_marks_of_the_highest_bit() -> None:
    graph = Linked(3, [(0, 1), (1, 2)], [0, 0])
    marks = np.full(3, 127, np.uint8)
    assert graph.reach([0], marks, 128, 0, backwards=False) == [0, 1, 2]
    assert marks.tolist() == [255] * 3
