"""A closure held as intervals is the one that networkx finds, before and after every change, however it is asked."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evermat.columns.graph.dynamic_graph import Edges
from evermat.columns.intervals import interval_index as module
from evermat.columns.intervals import interval_reader, interval_walk
from evermat.columns.intervals.interval_index import Intervals
from evermat.columns.intervals.interval_reader import Reach
from evermat.columns.intervals.interval_walk import Version
from evermat.columns.storage.arrays import Rows
from evermat.columns.storage.selection import GAINED, KEPT, LOST
from evermat.language.patterns.closures import Closure, Member
from tests.support.environment import LONG

MANY = 30 if LONG else 1  # times as many examples

Pair = tuple[int, int]
NO_ROWS: Rows = np.empty(0, np.int32)
DOMAINS = range(1, 8)


class Graph:
    """Edges that come and go, their closure as intervals, and the closures that it should be."""

    def __init__(self) -> None:
        self.edges = Edges(Closure((), (Member("edge", flipped=False),)))
        self.edges.noted = lambda _edges, rows, states: self._held.append((rows, states.copy()))
        self.intervals = Intervals(self.edges)
        self._held: list[tuple[Rows, np.ndarray]] = []
        self.before: set[Pair] | None = None

    @property
    def now(self) -> set[Pair]:
        graph = nx.DiGraph(self.edges.table.rows[self.edges.everything()].tolist())
        return set(nx.transitive_closure(graph, reflexive=False).edges())

    def insert(self, pairs: list[Pair]) -> Rows:
        return self.edges.insert(0, np.array(pairs, np.int64).reshape(-1, 2).T.copy())

    def remove(self, pairs: list[Pair]) -> Rows:
        return self.edges.remove(0, np.array(pairs, np.int64).reshape(-1, 2).T.copy())

    def change(self, come: list[Pair], gone: list[Pair]) -> None:
        rows = self.remove(gone)
        self.intervals.change(self.insert(come), rows)

    def begin(self) -> None:
        self.intervals.begin()
        self.before, self._held = self.now, []

    def merge(self) -> None:
        self.intervals.merge()
        self.before = None

    def undo(self) -> None:
        for rows, states in reversed(self._held):
            self.edges.restore(rows, states)
        self.intervals.undo()
        assert self.now == self.before
        self.before = None

    def node(self, value: int) -> int:
        return int(self.edges.nodes.find(np.array([[value], [0]]))[0])


def graph_of(pairs: list[Pair]) -> Graph:
    graph = Graph()
    graph.change(pairs, [])
    return graph


# ── Versions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_version(version: Version, closure: set[Pair]) -> None:
    """All that the description of a version promises."""
    n = version.n
    reached = [set[int]() for _ in range(n)]
    for tail, head in closure:
        reached[tail].add(head)
    used = np.zeros(version.top, np.int64)
    for node in range(n):
        assert 0 <= version.own[node] <= version.home[node] < version.top
        used[version.own[node] : version.home[node] + 1] += 1
    assert used.max(initial=0) <= 1
    for node in range(n):
        start, count = version.starts[node], version.counts[node]
        low, high = version.low[start : start + count], version.high[start : start + count]
        assert (low <= high).all() and (low[1:] > high[:-1] + 1).all()
        inside = np.zeros(version.top, np.bool_)
        for begin, end in zip(low.tolist(), high.tolist(), strict=True):
            inside[begin : end + 1] = True
        for other in range(n):
            assert set(inside[version.own[other] : version.home[other] + 1].tolist()) == {other in reached[node]}
    assert version.home[version.order].tolist() == version.homes.tolist() == sorted(version.home.tolist())
    assert sorted(version.order.tolist()) == list(range(n))
    for b, place in enumerate(version.table.tolist()):
        assert place == np.count_nonzero(version.homes < b << version.shift)
    assert version.table[-1] == n
    graph = nx.DiGraph(list(closure))
    graph.add_nodes_from(range(n))
    for members in nx.strongly_connected_components(graph):
        assert {int(version.component[node]) for node in members} == {min(members)}
        slices = {(int(version.starts[node]), int(version.counts[node])) for node in members}
        assert len(slices) == 1
    firsts = [node for node in range(n) if version.component[node] == node]
    assert version.intervals == sum(int(version.counts[node]) for node in firsts)


def pairs_of(reach: Reach, domain: int, size: int, begins: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """All pairs, of nodes."""
    nodes = np.arange(reach.now.n, dtype=np.int64)
    return reach.facts(domain, size, nodes, flipped=False, apart=False, begins=begins)


def collect(chunks: Iterator[Any], size: int, type_: Any = np.int32) -> set[Pair]:
    """All pairs, none of which may come twice."""
    found = list[Pair]()
    for first, second in chunks:
        assert 0 < len(first) == len(second) <= size
        assert first.dtype == second.dtype == type_
        found += zip(first.tolist(), second.tolist(), strict=True)
    assert len(set(found)) == len(found), "a pair came twice"
    return set(found)


def check_reach(reach: Reach, before: set[Pair] | None, now: set[Pair], size: int, seed: int = 0) -> None:
    """Every question, for every domain."""
    n = reach.now.n
    rng = np.random.default_rng(seed)
    kept, lost, gained = (
        (now, set[Pair](), set[Pair]()) if before is None else (now & before, before - now, now - before)
    )
    class_of = {pair: code for code, pairs in ((KEPT, kept), (LOST, lost), (GAINED, gained)) for pair in pairs}
    tails, heads = (part.ravel().astype(np.int32) for part in np.meshgrid(np.arange(-1, n + 1), np.arange(-1, n + 1)))
    expected = [class_of.get(pair, 0) for pair in zip(tails.tolist(), heads.tolist(), strict=True)]
    classes = reach.classes(tails, heads)
    assert classes.dtype == np.uint8 and classes.tolist() == expected
    few = rng.integers(-1, n + 1, 3).astype(np.int32)
    many = np.concatenate([few, rng.permutation(n).astype(np.int32), [-1]]).astype(np.int32)
    begins = rng.random(n) < 0.5
    for domain in DOMAINS:
        wanted = {pair for pair, code in class_of.items() if code & domain}
        ahead, behind = (
            [list[int]() for _ in range(n + 2)],
            [list[int]() for _ in range(n + 2)],
        )  # the last is that of -1
        for tail, head in wanted:
            ahead[tail].append(head)
            behind[head].append(tail)
        assert collect(pairs_of(reach, domain, size), size, np.int64) == wanted
        assert reach.count(domain) == len(wanted)
        some = {(tail, head) for tail, head in wanted if begins[tail]}
        assert collect(pairs_of(reach, domain, size, begins), size, np.int64) == some
        assert reach.count(domain, begins) == len(some)
        for nodes in (few, many):
            expected = {(i, head) for i, node in enumerate(nodes) for head in ahead[node]}
            assert collect(reach.successors(nodes, domain, size), size) == expected
            assert reach.counts(nodes, domain).tolist() == [len(ahead[node]) for node in nodes]
            expected = {(i, tail) for i, node in enumerate(nodes) for tail in behind[node]}
            assert collect(reach.predecessors(nodes, domain, size), size) == expected
            assert reach.backward_counts(nodes, domain).tolist() == [len(behind[node]) for node in nodes]
            expected = {(i, tail) for i, tail in expected if begins[tail]}
            assert collect(reach.predecessors(nodes, domain, size, begins), size) == expected
            assert reach.backward_counts(nodes, domain, begins).sum() == len(expected)


def check(graph: Graph, size: int = 1000) -> None:
    intervals, now = graph.intervals, graph.now
    check_version(intervals.now, now)
    if intervals.before is not None:
        assert graph.before is not None
        check_version(intervals.before, graph.before)
    check_reach(intervals.reach(), graph.before, now, size)


@contextmanager
def set_to(stride: int, share: int, growth: tuple[int, int], ranges: int, few: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STRIDE", stride)
        patch.setattr(module, "REBUILD_SHARE", share)
        patch.setattr(module, "GROWTH", growth[0])
        patch.setattr(module, "GROWTH_AT_LEAST", growth[1])
        patch.setattr(interval_walk, "RANGES", ranges)
        patch.setattr(interval_reader, "FEW_KEYS", few)
        yield


#: numbers of a node; when to build again: never, or sooner or later; after how much growth; ranges at once; keys that are few
SETTINGS = st.tuples(
    st.sampled_from([1, 2, 4, 64]),
    st.sampled_from([0, 0, 0, 2, 1]),
    st.sampled_from([(2, 10_000), (2, 10_000), (0, 0), (1, 2)]),
    st.sampled_from([1, 2, 3, 1 << 14]),
    st.sampled_from([0, 3, 8]),
)


@st.composite
def batches(
    draw: st.DrawFn, most_nodes: int, most_edges: int
) -> list[tuple[list[tuple[list[Pair], list[Pair]]], bool]]:
    """Batches of changes, each with whether it is undone. The first edges are between few of the nodes, so that fresh ones come later."""
    found = []
    nodes = draw(st.integers(2, most_nodes))
    for i in range(draw(st.integers(1, 4))):
        ends = st.integers(0, max(1, nodes * (i + 1) // 4 - 1) if i < 3 else nodes - 1)
        pairs = st.lists(st.tuples(ends, ends), max_size=most_edges)
        changes = draw(st.lists(st.tuples(pairs, pairs), min_size=1, max_size=3))
        found.append((changes, draw(st.booleans()) and draw(st.booleans())))
    return found


def run(steps: list[tuple[list[tuple[list[Pair], list[Pair]]], bool]], size: int) -> None:
    graph = Graph()
    for changes, is_undone in steps:
        graph.begin()
        held = pickle.dumps(graph.intervals.before)
        for come, gone in changes:
            # half of what goes is there
            live = graph.edges.values_of(graph.edges.table.rows[graph.edges.everything()]).tolist()
            present = [tuple(live[(tail + 3 * head) % len(live)]) for tail, head in gone[::2]] if live else []
            graph.change(come, [*present, *gone[1::2]])
            check(graph, size)
        assert pickle.dumps(graph.intervals.before) == held, "a version has changed"
        if is_undone:
            graph.undo()
        else:
            graph.merge()
        check_version(graph.intervals.now, graph.now)
    check_reach(graph.intervals.reach(), None, graph.now, size)
    check_reach(Reach(None, None, pickle.loads(pickle.dumps(graph.intervals.now))), None, graph.now, size)


@pytest.mark.slow
@settings(max_examples=50 * MANY)
@given(batches(9, 6), SETTINGS, st.sampled_from([1, 3, 1000]))
def test_small_graphs(steps, chosen, size: int) -> None:
    with set_to(*chosen):
        run(steps, size)


@pytest.mark.slow
@settings(max_examples=10 * MANY)
@given(batches(40, 60), SETTINGS, st.sampled_from([7, 1000]))
def test_graphs_of_some_size(steps, chosen, size: int) -> None:
    with set_to(*chosen):
        run(steps, size)


# ── Particular graphs ────────────────────────────────────────────────────────────────────────────────────────────────


def values(graph: Graph, pairs: set[Pair]) -> set[Pair]:
    """Pairs of values instead of nodes."""
    return {(tail, head) for tail, head in graph.edges.values_of(np.array(sorted(pairs)).reshape(-1, 2)).tolist()}


@pytest.mark.parametrize("stride", [1, 2, 64])
def test_fresh_nodes_are_not_in_what_was_there_before(stride: int) -> None:
    """Their numbers may be: they are taken from nodes that others reach."""
    with set_to(stride, 0, (2, 10_000), 1 << 14, 8):
        graph = graph_of([(1, 2), (2, 3), (4, 4)])
        graph.begin()
        graph.change([(3, 5), (4, 6), (5, 7), (7, 8), (6, 9)], [])
        check(graph)
        reach = graph.intervals.reach()
        assert reach.count(KEPT) == 4 and reach.count(LOST) == 0
        gained = values(graph, collect(pairs_of(reach, GAINED, 100), 100, np.int64))
        assert {(1, 5), (4, 6), (4, 9), (1, 8)} <= gained and not {(1, 2), (4, 4)} & gained
        graph.change([], [(5, 7)])
        check(graph)
        graph.merge()
        assert graph.intervals.reach().count(KEPT) == len(graph.now)


def test_numbers_are_shared_until_there_are_none_left() -> None:
    with set_to(4, 0, (2, 10_000), 1 << 14, 8):
        graph = graph_of([(0, 1)])
        tops = []
        for leaf in range(2, 8):
            graph.begin()
            graph.change([(1, leaf)], [])
            check(graph)
            graph.merge()
            tops.append(graph.intervals.now.top)
        # two leaves find numbers with node 1, the others get four of their own
        assert tops == [8, 8, 12, 16, 20, 24]


def test_cycles_are_made_and_broken() -> None:
    with set_to(64, 0, (2, 10_000), 1 << 14, 8):
        graph = graph_of([(i, i + 1) for i in range(6)])
        for come, gone in (
            [[(3, 1)], []],  # a cycle
            [[(5, 4), (6, 0)], []],  # another, and one around both
            [[], [(6, 0)]],
            [[(2, 2)], [(3, 1)]],  # a loop is left of one
            [[], [(2, 2), (4, 5)]],
            [[(4, 5)], [(5, 4)]],  # turned around
        ):
            graph.begin()
            graph.change(come, gone)
            check(graph)
            graph.merge()


def test_what_is_undone_can_be_done_again() -> None:
    for share in (0, 1):  # with the same numbers, and with others
        with set_to(4, share, (2, 10_000), 1 << 14, 8):
            graph = graph_of([(i, i + 1) for i in range(8)])
            for _ in range(3):
                graph.begin()
                graph.change([(8, 20), (20, 21), (21, 3)], [(0, 1)])
                graph.change([(21, 22)], [(20, 21)])
                check(graph)
                graph.undo()
                check(graph)
            graph.begin()
            graph.change([(8, 20), (0, 22)], [])
            check(graph)


def test_what_is_not_concerned_is_not_computed_again() -> None:
    chain = [(i, i + 1) for i in range(1000)]
    other = [(i, i + 1) for i in range(2000, 4000)]
    graph = graph_of([*chain, *other])
    intervals = graph.intervals
    assert intervals.recomputed == len(chain) + len(other) + 2

    def computed(come: list[Pair], gone: list[Pair]) -> int:
        before = intervals.recomputed
        graph.change(come, gone)
        return intervals.recomputed - before

    starts = intervals.now.starts.copy()
    assert computed([(10, 5000)], []) == 2  # for node 9 nothing changes: the leaf has got numbers of node 10
    same = intervals.now.starts[: len(starts)] == starts
    assert np.flatnonzero(~same).tolist() == [graph.node(10)]
    assert computed([(5, 900)], []) == 0  # reached already
    assert computed([], [(5, 900)]) == 1  # and still: nothing changes behind it
    assert computed([(3, 2000)], []) == 4
    assert computed([], [(3, 2000)]) == 4
    assert computed([(4000, 4000)], []) == 2  # whoever reaches node 4000 reaches it still
    assert computed([], []) == 0


def test_a_long_chain() -> None:
    length = 3000
    graph = graph_of([(i, i + 1) for i in range(length)])
    reach = graph.intervals.reach()
    assert graph.intervals.now.intervals == length
    assert reach.count(KEPT) == length * (length + 1) // 2
    graph.intervals.begin()
    graph.change([(length, length // 2)], [(10, 11)])
    reach, half = graph.intervals.reach(), length // 2
    assert reach.count(LOST) == 11 * (length - 10)
    assert reach.count(GAINED) == (half + 1) * (half + 2) // 2
    assert sum(len(tails) for tails, _ in pairs_of(reach, GAINED, 5000)) == reach.count(GAINED)
    graph.change([(10, 11)], [(length, half)])
    reach = graph.intervals.reach()
    assert [reach.count(domain) for domain in (KEPT, LOST, GAINED)] == [length * (length + 1) // 2, 0, 0]


def test_a_clique() -> None:
    size = 300
    graph = graph_of([(i, (i + j) % size) for i in range(size) for j in (1, 7, 11)])
    assert graph.intervals.now.intervals == 1
    assert graph.intervals.reach().count(KEPT) == size * size
    graph.intervals.begin()
    graph.change([(0, size), (size + 1, 5)], [])
    assert graph.intervals.reach().count(GAINED) == 2 * size + 1
    assert graph.intervals.now.intervals <= 3


def random_pairs(rng: np.random.Generator, nodes: int, count: int) -> list[Pair]:
    return [(tail, head) for tail, head in rng.integers(0, nodes, (count, 2)).tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("degree", [0.9, 1.5, 4.0])
def test_changes_lead_to_what_is_built_at_once(degree: float) -> None:
    rng = np.random.default_rng(int(degree * 10))
    nodes = 400
    with set_to(64, 0, (2, 10_000), 1 << 14, 8):
        graph = graph_of(random_pairs(rng, nodes, int(nodes * degree)))
        for _ in range(4):
            graph.intervals.begin()
            was = graph.intervals.reach()
            live = graph.edges.values_of(graph.edges.table.rows[graph.edges.everything()])
            graph.change(random_pairs(rng, nodes + 50, 20), [tuple(pair) for pair in rng.choice(live, 20).tolist()])
            again = Intervals(graph.edges)
            again.change(graph.edges.everything(), NO_ROWS)
            other = again.now._replace(numbering=-1)
            every = np.arange(graph.edges.nodes.count, dtype=np.int32)
            tails, heads = np.repeat(every, len(every)), np.tile(every, len(every))
            before, now = was.classes(tails, heads) != 0, Reach(None, None, again.now).classes(tails, heads) != 0
            expected = np.select([before & now, before, now], [KEPT, LOST, GAINED])
            for reach in (graph.intervals.reach(), Reach(graph.edges, graph.intervals.before, other)):
                assert (reach.classes(tails, heads) == expected).all()
                for domain in DOMAINS:
                    wanted = (expected & domain) != 0
                    found = np.zeros((len(every), len(every)), np.uint8)
                    for sources, targets in pairs_of(reach, domain, 4096):
                        np.add.at(found, (sources, targets), 1)
                    assert (found.ravel() == wanted).all()
                    assert reach.count(domain) == np.count_nonzero(wanted)
                    by_target = wanted.reshape(len(every), -1).sum(axis=0)
                    assert (reach.backward_counts(every, domain) == by_target).all()
            graph.merge()


@pytest.mark.slow
def test_many_intervals_lead_to_new_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is not needed any more is given up."""
    monkeypatch.setattr(module, "GROWTH_AT_LEAST", 100)
    rng = np.random.default_rng(0)
    graph = graph_of([(i, int(rng.integers(i + 1, 400))) for i in range(399)])
    numberings = set()
    for _ in range(30):
        graph.intervals.begin()
        pairs = np.sort(rng.integers(0, 400, (30, 2)), axis=1)
        graph.change([(tail, head) for tail, head in pairs.tolist() if tail < head], [])
        graph.merge()
        now = graph.intervals.now
        numberings.add(now.numbering)
        assert len(now.low) <= 2 * now.intervals
        assert now.intervals <= max(2 * now.numbered, now.numbered + 100)
    assert len(numberings) > 1
    check_version(graph.intervals.now, graph.now)


def test_numbers_are_never_too_great(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NUMBERS", 200)
    with set_to(64, 0, (2, 10_000), 1 << 14, 8):
        graph = graph_of([(0, 1)])
        for node in range(2, 40):
            graph.begin()
            graph.change([(node, node - 2)], [])
            assert graph.intervals.now.top <= 200
            check(graph) if node % 7 == 0 else None
            graph.merge()


@pytest.mark.parametrize("share", [0, 1])
def test_an_earlier_version_is_resumed(share: int) -> None:
    """Also when what nobody needed had been given up meanwhile."""
    rng = np.random.default_rng(share)
    with set_to(4, share, (2, 10_000), 1 << 14, 3):
        graph = graph_of(random_pairs(rng, 20, 25))
        graph.begin()
        origin, edges = graph.intervals.now, graph.edges.everything()
        for _ in range(20):
            live = graph.edges.values_of(graph.edges.table.rows[graph.edges.everything()])
            graph.change(random_pairs(rng, 25, 2), [tuple(pair) for pair in rng.choice(live, 2).tolist()])
            graph.intervals.merge()
            graph.intervals.begin()
        graph.intervals.merge()
        assert graph.intervals.now.numbering != origin.numbering
        graph.intervals.resume(origin, np.setxor1d(edges, graph.edges.everything()).astype(np.int32))
        check(graph)
        graph.change(random_pairs(rng, 25, 2), [])
        check(graph)
        graph.undo()
        check(graph)


def test_a_closure_without_edges() -> None:
    graph = Graph()
    graph.begin()
    graph.change([], [])
    check(graph)
    graph.merge()
    check(graph)
    assert graph.intervals.nbytes < 100


def test_a_saved_version_goes_on() -> None:
    graph = graph_of([(0, 1), (1, 2), (2, 0), (2, 3)])
    graph.intervals = Intervals(graph.edges, pickle.loads(pickle.dumps(graph.intervals.now)))
    graph.begin()
    graph.change([(3, 4)], [(1, 2)])
    check(graph)


# ── Searches backwards ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("degree", [0.7, 1.2, 3.0])
def test_who_reaches_a_node_is_the_same_by_links_and_by_lists(degree: float) -> None:
    """Lists are made when searches have found many nodes. Both kinds of nodes are among the keys, on cycles and not."""
    rng = np.random.default_rng(int(degree * 10))
    nodes = 60
    graph = graph_of(random_pairs(rng, nodes, int(nodes * degree)))
    expected = graph.now
    reach = graph.intervals.reach()
    every = np.arange(-1, graph.edges.nodes.count + 1, dtype=np.int32)
    assert {(node, node) in expected for node in every.tolist()} == {True, False}
    for _ in range(3):
        for node in every:
            key = np.array([node], np.int32)
            found = sorted(tail for _, part in reach.predecessors(key, KEPT, 7) for tail in part.tolist())
            assert found == sorted(tail for tail, head in expected if head == node)
            assert not list(reach.predecessors(key, GAINED | LOST, 7))
        is_listed = reach.nbytes > 0
    assert is_listed
    assert graph.intervals.reach().nbytes == 0


def test_searches_backwards_do_not_see_edges_that_have_gone() -> None:
    graph = graph_of([(1, 2), (2, 3), (3, 1), (4, 3), (5, 4), (6, 6)])
    graph.begin()
    graph.change([], [(3, 1), (5, 4)])
    graph.merge()
    reach = graph.intervals.reach()
    key = np.array([graph.node(3)], np.int32)
    for _ in range(5):  # by links, then by lists
        found = {tail for _, part in reach.predecessors(key, KEPT, 100) for tail in part.tolist()}
        assert found == {graph.node(value) for value in (1, 2, 4)}
    assert reach.nbytes > 0


# ── Facts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("edges", [[(1, 2), (2, 3), (5, 3)], [(1, 2), (2, 1), (2, 3), (3, 3), (4, 1), (5, 6), (6, 5)]])
def test_facts_are_pairs_of_values(edges: list[Pair], flipped: bool, size: int) -> None:
    """With components of several nodes, of one that is on a cycle, and without; what is left out if they are read apart."""
    graph = graph_of([(10 * tail, 10 * head) for tail, head in edges])
    reach, closed = graph.intervals.reach(), values(graph, graph.now)
    named = graph.edges.values_of(np.arange(graph.edges.nodes.count, dtype=np.int32))
    turned = {(head, tail) for tail, head in closed}
    for apart, wanted in ((False, closed), (True, closed - turned)):
        expected = {(head, tail) for tail, head in wanted} if flipped else wanted
        batches = list(reach.facts(KEPT, size, named, flipped=flipped, apart=apart))
        assert all(batch.flags.carray and 0 < batch.shape[1] <= size for batch in batches)
        found = [tuple(fact) for batch in batches for fact in batch.T.tolist()]
        assert sorted(found) == sorted(expected)
    assert reach.cyclic.tolist() == [(value, value) in closed for value in named.tolist()]


def test_batches_of_facts_stay_as_they_are() -> None:
    """Whoever reads them may keep them."""
    graph = graph_of([(i, i + 1) for i in range(50)])
    held = list(pairs_of(graph.intervals.reach(), KEPT, 100))
    assert len(held) > 2
    assert {tuple(pair) for batch in held for pair in batch.T.tolist()} == graph.now
