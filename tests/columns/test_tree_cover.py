"""Estimates are close to what is counted, and a cover is a post-order of a tree, with few intervals."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.columns.graph.reachability import Graph, Pairs
from evermat.columns.intervals import tree_cover
from evermat.columns.storage.arrays import Nodes

Edge = tuple[int, int]


def graph_of(nodes: int, edges: list[Edge] | np.ndarray, *, symmetric: bool = False) -> Graph:
    rows = np.array(edges, np.int32).reshape(-1, 2)
    return Graph(nodes, rows[:, 0], rows[:, 1], symmetric=symmetric)


def random_dag(nodes: int, edges: int, seed: int = 0) -> Graph:
    rows = np.sort(np.random.default_rng(seed).integers(0, nodes, (edges, 2)), axis=1)
    return graph_of(nodes, rows[rows[:, 0] < rows[:, 1]])


def random_graph(nodes: int, edges: int, seed: int = 0) -> Graph:
    """With cycles: there may be a large component, and edges from nodes to themselves."""
    return graph_of(nodes, np.random.default_rng(seed).integers(0, nodes, (edges, 2)))


def grid(side: int) -> Graph:
    """Each node leads to the right and down; some edges are missing."""
    number = np.arange(side * side).reshape(side, side)
    right = np.c_[number[:, :-1].ravel(), number[:, 1:].ravel()]
    down = np.c_[number[:-1].ravel(), number[1:].ravel()]
    rows = np.r_[right, down]
    return graph_of(side * side, rows[np.random.default_rng(0).random(len(rows)) < 0.95])


def every_path_through_one(nodes: int) -> Graph:
    """All estimates deviate alike, as all that is reached goes through the same node."""
    middle = nodes // 2
    before, after = np.arange(middle), np.arange(middle + 1, nodes)
    return graph_of(nodes, np.r_[np.c_[before, 0 * before + middle], np.c_[0 * after + middle, after]])


def tree(nodes: int, branches: int) -> Graph:
    """Few nodes reach many, and most reach none."""
    child = np.arange(1, nodes)
    return graph_of(nodes, np.c_[(child - 1) // branches, child])


def count_pairs(graph: Graph, sources: Nodes) -> int:
    return Pairs(graph, None, sources, None).count()


def all_nodes(graph: Graph) -> Nodes:
    return np.arange(graph.nodes, dtype=np.int32)


def reached(graph: Graph) -> np.ndarray:
    """Of each component, which nodes it is connected to."""
    table = np.zeros((graph.components, graph.nodes), np.bool_)
    for sources, targets in Pairs(graph, None, all_nodes(graph), None).chunks(1 << 16):
        table[graph.component[sources], targets] = True
    return table


def count_intervals(graph: Graph, order: Nodes) -> int:
    """How many runs of places there are in what components are connected to."""
    table = reached(graph)[:, order]
    return int(table[:, 0].sum() + (table[:, 1:] & ~table[:, :-1]).sum())


def post_order(graph: Graph, parents: Nodes) -> Nodes:
    """Of any tree, with the children in the order of their numbers."""
    model = nx.DiGraph()
    model.add_nodes_from(range(-1, graph.components))
    model.add_edges_from((int(parent), child) for child, parent in enumerate(parents))
    listed = [c for c in nx.dfs_postorder_nodes(model, -1) if c >= 0]
    return np.concatenate([graph.members[graph.bounds[c] : graph.bounds[c + 1]] for c in listed])


LARGE = {
    "dag": lambda: random_dag(3000, 12_000),
    "sparse dag": lambda: random_dag(4000, 6000),
    "cycles": lambda: random_graph(4000, 5000),
    "one large component": lambda: random_graph(3000, 12_000),
    "grid": lambda: grid(60),
    "through one": lambda: every_path_through_one(3000),
    "tree": lambda: tree(4000, 3),
    "turned tree": lambda: tree(4000, 3).reversed,
}
large = pytest.mark.parametrize("make", LARGE.values(), ids=LARGE.keys())


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Small ones; edges may come several times, and lead from a node to itself."""
    nodes = draw(st.integers(1, 14))
    ends = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(ends, ends), max_size=30))
    return graph_of(nodes, edges, symmetric=draw(st.booleans()))


class TestEstimates:
    @large
    def test_pairs_deviate_little(self, make):
        graph = make()
        estimated, counted = tree_cover.estimate_pairs(graph), count_pairs(graph, all_nodes(graph))
        assert abs(estimated / counted - 1) < 0.1
        assert tree_cover.estimate_pairs(graph) == estimated

    @pytest.mark.parametrize("seed", range(8))
    def test_pairs_of_other_random_graphs_deviate_little(self, seed):
        for graph in (random_dag(2000, 7000, seed), random_graph(2000, 3000, seed)):
            assert abs(tree_cover.estimate_pairs(graph) / count_pairs(graph, all_nodes(graph)) - 1) < 0.15

    @large
    def test_pairs_of_some_sources(self, make):
        graph = make()
        sources = np.random.default_rng(0).random(graph.nodes) < 0.2
        counted = count_pairs(graph, np.nonzero(sources)[0].astype(np.int32))
        assert abs(tree_cover.estimate_pairs(graph, sources) / counted - 1) < 0.15

    @given(graphs(), st.data())
    def test_pairs_of_small_graphs_are_exact(self, graph, data):
        sources = np.array(data.draw(st.lists(st.booleans(), min_size=graph.nodes, max_size=graph.nodes)))
        assert tree_cover.estimate_pairs(graph) == count_pairs(graph, all_nodes(graph))
        assert tree_cover.estimate_pairs(graph, sources) == count_pairs(graph, np.nonzero(sources)[0].astype(np.int32))

    @large
    def test_reach_of_components_deviates_as_the_samples_allow(self, make):
        graph = make()
        for turn in (graph, graph.reversed):
            counted = reached(turn).sum(axis=1)
            found = tree_cover.estimate_reach(turn, 102)
            assert ((found > 0) == (counted > 0)).all()
            error = found[counted > 0] / counted[counted > 0] - 1
            assert np.sqrt((error**2).mean()) < 0.2  # 1 / sqrt(100) if they were independent
            assert np.abs(error).max() < 0.6

    def test_reach_is_exact_where_no_edge_leads_on(self):
        graph = graph_of(6, [(0, 1), (1, 0), (2, 2), (4, 5)])
        assert tree_cover.estimate_reach(graph)[graph.component].tolist()[:4] == [2, 2, 1, 0]
        assert tree_cover.estimate_reach(graph)[graph.component[5]] == 0

    @given(graphs())
    def test_reach_is_within_the_graph(self, graph):
        found = tree_cover.estimate_reach(graph)
        assert (found >= 0).all()
        assert (found <= graph.nodes).all()
        assert ((found > 0) == (reached(graph).sum(axis=1) > 0)).all()

    @large
    def test_intervals_deviate_little(self, make):
        graph = make()
        order = tree_cover.cover(graph)
        assert abs(tree_cover.estimate_intervals(graph, order) / count_intervals(graph, order) - 1) < 0.2

    @given(graphs())
    def test_intervals_of_small_graphs_are_exact(self, graph):
        for order in (tree_cover.cover(graph), all_nodes(graph)):
            listed = np.concatenate([order[graph.component[order] == c] for c in range(graph.components)])
            assert tree_cover.estimate_intervals(graph, listed) == count_intervals(graph, listed)

    @large
    def test_ancestors_are_exact_or_close(self, make):
        graph = make()
        first = graph.members[graph.bounds[:-1]]
        table = reached(graph)[:, first]
        np.fill_diagonal(table, False)
        counted = table.sum(axis=0)
        assert (tree_cover.estimate_ancestors(graph) == counted).all()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tree_cover, "MOST_OPERATIONS", 0)
            found = tree_cover.estimate_ancestors(graph)
        assert ((found > 0) == (counted > 0)).all()
        error = found[counted > 0] / counted[counted > 0] - 1
        assert np.sqrt((error**2).mean()) < 0.4  # 1 / sqrt(14) where the sample has nothing to count


def check_cover(graph: Graph, parents: Nodes, order: Nodes) -> None:
    """It is a post-order of the tree: what hangs under a component is just before it, and its members are together."""
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(graph.nodes))
    place = np.empty(graph.nodes, np.int64)
    place[order] = np.arange(graph.nodes)
    first = np.minimum.reduceat(place[graph.members], graph.bounds[:-1])
    last = np.maximum.reduceat(place[graph.members], graph.bounds[:-1])
    own = np.diff(graph.bounds)
    assert (last - first + 1 == own).all()
    sizes = own.copy()
    low = first.copy()  # the first place of all below
    for c in range(graph.components - 1, -1, -1):
        parent = parents[c]
        assert last[c] - low[c] + 1 == sizes[c]
        if parent >= 0:
            assert last[c] < first[parent]
            assert c in graph.successors[graph.starts[parent] : graph.starts[parent + 1]]
            sizes[parent] += sizes[c]
            low[parent] = min(low[parent], low[c])


class TestCover:
    @pytest.mark.slow
    @given(graphs())
    @settings(max_examples=300)
    def test_it_is_a_post_order(self, graph):
        check_cover(
            graph, tree_cover.choose_parents(graph, tree_cover.estimate_ancestors(graph)), tree_cover.cover(graph)
        )

    @large
    @pytest.mark.parametrize("operations", [0, tree_cover.MOST_OPERATIONS])
    def test_it_is_a_post_order_of_a_large_graph(self, make, operations, monkeypatch):
        monkeypatch.setattr(tree_cover, "MOST_OPERATIONS", operations)
        graph = make()
        parents = tree_cover.choose_parents(graph, tree_cover.estimate_ancestors(graph))
        check_cover(graph, parents, tree_cover.cover(graph))
        has_parent = np.zeros(graph.components, np.bool_)
        has_parent[graph.successors] = True
        assert ((parents >= 0) == has_parent).all()

    @pytest.mark.slow
    @pytest.mark.parametrize("operations", [0, tree_cover.MOST_OPERATIONS])
    def test_a_dag_has_few_intervals(self, operations, monkeypatch):
        monkeypatch.setattr(tree_cover, "MOST_OPERATIONS", operations)
        graph = random_dag(2000, 20_000)
        first = tree_cover.choose_parents(graph, -np.arange(graph.components, dtype=np.float64))
        least = count_intervals(graph, tree_cover.cover(graph))
        assert least * 4 < count_intervals(graph, post_order(graph, first))
        others = [
            count_intervals(graph, post_order(graph, tree_cover.choose_parents(graph, worth)))
            for worth in np.random.default_rng(0).random((5, graph.components))
        ]
        assert least * 2 < min(others)

    @pytest.mark.slow
    @given(st.integers(1, 200), st.data())
    def test_a_forest_has_one_interval_for_each_node_with_children(self, nodes, data):
        parents = [data.draw(st.integers(-1, child - 1)) for child in range(nodes)]
        graph = graph_of(nodes, [(parent, child) for child, parent in enumerate(parents) if parent >= 0])
        assert count_intervals(graph, tree_cover.cover(graph)) == len(set(parents) - {-1})


class TestShapes:
    def test_an_empty_graph(self):
        graph = graph_of(0, [])
        assert len(tree_cover.cover(graph)) == len(tree_cover.estimate_reach(graph)) == 0
        assert tree_cover.estimate_pairs(graph) == tree_cover.estimate_intervals(graph, tree_cover.cover(graph)) == 0

    @pytest.mark.parametrize("edges", [[], [(0, 0)]])
    def test_one_node(self, edges):
        graph = graph_of(1, edges)
        assert tree_cover.cover(graph).tolist() == [0]
        assert (
            tree_cover.estimate_pairs(graph)
            == tree_cover.estimate_intervals(graph, tree_cover.cover(graph))
            == len(edges)
        )

    def test_a_clique(self):
        nodes = 100
        graph = graph_of(nodes, [(u, v) for u in range(nodes) for v in range(nodes) if u != v])
        assert sorted(tree_cover.cover(graph).tolist()) == list(range(nodes))
        assert tree_cover.estimate_pairs(graph) == nodes * nodes
        assert tree_cover.estimate_intervals(graph, tree_cover.cover(graph)) == 1

    def test_a_symmetric_graph(self):
        graph = graph_of(2000, np.random.default_rng(0).integers(0, 2000, (1000, 2)), symmetric=True)
        order = tree_cover.cover(graph)
        check_cover(graph, np.full(graph.components, -1, np.int32), order)
        assert tree_cover.estimate_pairs(graph) == count_pairs(graph, all_nodes(graph))
        assert tree_cover.estimate_intervals(graph, order) == np.count_nonzero(graph.cyclic)

    def test_a_long_chain(self):
        nodes = 100_000
        chain = np.c_[np.arange(nodes - 1), np.arange(1, nodes)]
        graph = graph_of(nodes, chain)
        order = tree_cover.cover(graph)
        assert order.tolist() == list(range(nodes - 1, -1, -1))
        assert tree_cover.estimate_intervals(graph, order) == nodes - 1
        assert abs(tree_cover.estimate_pairs(graph) / (nodes * (nodes - 1) / 2) - 1) < 0.1
        # Not a forest any more, and no less deep.
        shortcut = graph_of(nodes, np.r_[chain, [(0, nodes - 1)]])
        assert tree_cover.cover(shortcut).tolist() == order.tolist()
