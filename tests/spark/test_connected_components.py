"""Components that large-star and small-star find are what networkx finds; nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import pytest

import evermat
from evermat import Materialisation
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.encoding import decode_rows
from evermat.engine.run import Limits, Run
from evermat.spark.engine import connected_components
from evermat.spark.engine.connected_components import components, components_relation
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.scan import facts_of
from evermat.spark.engine.tasks.serialization import buckets_of, read_file
from evermat.testing import state_of
from tests.support.environment import LASTING, LONG

pytestmark = pytest.mark.spark

Edges = list[tuple[Any, Any]]

# The two relations are the edges of one graph.
TEXT = ".decl same(x:{0}, y:{0}) .decl alike(x:{0}, y:{0})"
MEMBERS = ("same", "alike")


@contextmanager
def on_cluster(
    spark: Any, folder: Path, type_: str, same: Edges, alike: Edges | None = None
) -> Iterator[Materialisation]:
    program = evermat.Program.parse(TEXT.format(type_))
    with program.materialise({"same": same, "alike": alike or []}, engine=spark, place="cluster", scratch=folder) as m:
        assert m.on_cluster
        yield m


def found_in(m: Materialisation, view: View | None = None) -> dict[Any, Any]:
    """The root of every node. Facts are in their buckets, and no fact is there twice."""
    state = state_of(m)
    found = components(state.materialised if view is None else view, MEMBERS, state, Run())
    relation = components_relation([state.program.relations[name] for name in MEMBERS])
    shape, dictionary = state.context.shapes[relation.name], Dictionary()
    assert shape.home == (1,)
    added, gone = found.files(relation.name)
    assert not gone
    for file in added:
        for batch, _ in read_file(file, shape, dictionary):
            assert set(buckets_of(batch, shape, state.cluster.buckets, dictionary).tolist()) == {file.bucket}
    rows: Edges = [
        row
        for batch in facts_of(found, relation.name, dictionary)
        for row in decode_rows(batch, relation.types, dictionary)
    ]
    roots = dict(rows)
    assert len(roots) == len(rows) == found.count(relation.name)
    assert scratch_files(m) == used_files(m) | {file.path for file in added}
    return roots


def scratch_files(m: Materialisation) -> set[str]:
    return {str(file) for file in state_of(m).cluster.scratch.path.rglob("*") if not file.is_dir()}


def used_files(m: Materialisation) -> set[str]:
    """The files of all facts."""
    state = state_of(m)
    sets = [held.files(name) for held in (state.explicit, state.materialised) for name in m]
    return {file.path for files in sets for part in files for file in part}


def assert_right(roots: dict[Any, Any], edges: Edges) -> None:
    expected = list(nx.connected_components(nx.Graph(edges)))
    assert roots.keys() == set().union(*expected)
    for nodes in expected:
        assert len({roots[node] for node in nodes}) == 1
        assert roots[next(iter(nodes))] in nodes


def random_edges(rng: Random, nodes: list[Any], count: int) -> Edges:
    """With loops, with edges in both directions, and with edges that are there twice."""
    return [(rng.choice(nodes), rng.choice(nodes)) for _ in range(count)]


@LASTING
def test_random_graphs(spark: Any, tmp_path: Path) -> None:
    """Two relations of numbers; some nodes are in both."""
    rng = Random(1)
    nodes = [rng.randrange(-(2**63), 2**63) for _ in range(1000)]
    same, alike = random_edges(rng, nodes, 400), random_edges(rng, nodes[:500], 200)
    with on_cluster(spark, tmp_path, "number", same, alike) as m:
        assert_right(found_in(m), same + alike)
    assert not list(tmp_path.iterdir())


@LASTING
@pytest.mark.parametrize(
    ("type_", "nodes"),
    [
        ("symbol", ["", "é", "a", "aa", "A", "\U0001f600", "tab\there", *map(str, range(80))]),
        ("float", [0.0, -0.5, 5e-324, 1e300, float("inf"), float("-inf"), *(i / 7 for i in range(1, 80))]),
    ],
)
def test_types(type_: str, nodes: list[Any], spark: Any, tmp_path: Path) -> None:
    edges = random_edges(Random(2), nodes, 50)
    with on_cluster(spark, tmp_path, type_, edges) as m:
        assert_right(found_in(m), edges)


@LASTING
def test_loops_and_single_edges(spark: Any, tmp_path: Path) -> None:
    edges = [(1, 1), (2, 3), (3, 3), (5, 4), (4, 4), (7, 6), (6, 7)]
    with on_cluster(spark, tmp_path, "number", edges) as m:
        assert found_in(m) == {1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 6, 7: 6}


@LASTING
def test_a_chain_takes_few_iterations(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is about the logarithm of the length, whatever the order of the nodes."""
    iterations = 0
    iterate = connected_components._Stars._iterate

    def counted(self: Any, folder: Path) -> tuple[Path, int]:
        nonlocal iterations
        iterations += 1
        assert len(list(folder.parent.iterdir())) == 1  # those of before are gone
        return iterate(self, folder)

    monkeypatch.setattr(connected_components._Stars, "_iterate", counted)
    chain = list(pairwise(range(200)))
    with on_cluster(spark, tmp_path, "number", chain) as m:
        assert found_in(m) == dict.fromkeys(range(200), 0)
    assert 5 <= iterations <= 10


def test_nothing(spark: Any, tmp_path: Path) -> None:
    """Where nothing can be there are no jobs; that a difference is empty only jobs can tell."""
    with on_cluster(spark, tmp_path, "number", [(1, 2)]) as m:
        state = state_of(m)
        before = state.cluster.jobs
        assert found_in(m, FactSet("nothing", state.context)) == {}
        assert state.cluster.jobs == before
        assert found_in(m, state.materialised - state.explicit) == {}
        assert state.cluster.jobs > before


@LASTING
def test_what_stops_it_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    """A limit at the beginning, an interrupt amid the iterations, a failure of Spark; all is well afterwards."""
    edges = list(pairwise(range(30)))
    with on_cluster(spark, tmp_path, "number", edges) as m:
        state = state_of(m)
        cluster, files = state.cluster, scratch_files(m)
        settings = {name: cluster.session.conf.get(name) for name in connected_components._SETTINGS}

        def assert_as_before() -> None:
            assert scratch_files(m) == files
            assert {name: cluster.session.conf.get(name) for name in connected_components._SETTINGS} == settings
            assert spark.sparkContext.statusTracker().getActiveJobsIds() == []

        with pytest.raises(evermat.LimitError, match=r"limit of 0[.]0 seconds is reached"):
            components(state.materialised, MEMBERS, state, Run(Limits(seconds=0.0)))
        assert_as_before()

        def interrupt() -> None:
            if len(list(cluster.scratch.path.glob("evermat-*/edges-*"))) > 1:
                raise KeyboardInterrupt

        cluster.check = interrupt
        with pytest.raises(KeyboardInterrupt):
            components(state.materialised, MEMBERS, state, Run())
        assert_as_before()

        def destroy() -> None:
            for file in cluster.scratch.path.glob("evermat-*/edges-*/part-*"):
                file.unlink()

        cluster.check = destroy
        with pytest.raises(evermat.ResourceError):
            components(state.materialised, MEMBERS, state, Run())
        assert_as_before()
        cluster.check = lambda: None
        assert set(found_in(m).values()) == {0}
    assert not list(tmp_path.iterdir())


def test_a_closure_whose_graph_is_too_large_for_the_driver(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evermat.runtime.engines.placement._EDGES", 2)
    program = evermat.Program.parse(
        ".decl e(x:symbol, y:symbol) .decl same(x:symbol, y:symbol) eqrel same(x, y) :- e(x, y)."
    )
    given = [("a", "b"), ("b", "c"), ("d", "e"), ("f", "f")]
    with program.materialise({"e": given}, engine=spark, place="cluster", scratch=tmp_path, counters="both") as m:
        assert set(m["same"]) == {(x, y) for part in ("abc", "de", "f") for x in part for y in part}
        (told,) = [stratum for stratum in m.stats["strata"] if "same" in stratum["relations"]]
        assert (told["place"], told["algorithm"], told["counters"]) == ("stars", "modular", "modular")
        if LONG:
            m.update({"e": [("c", "d")]}, {"e": [("a", "b")]})  # from now on by rounds
            assert set(m["same"]) == {(x, y) for part in ("bcde", "f") for x in part for y in part}


def test_tasks_expand_the_graph_of_a_closure(spark: Any, tmp_path: Path) -> None:
    """On a real Spark: by sources in their buckets, with texts, and through updates."""
    program = evermat.Program.parse(
        ".decl e(x:symbol, y:symbol) .decl up(x:symbol, y:symbol) .decl down(x:symbol, y:symbol)"
        " up(x, y) :- e(x, y). up(x, z) :- up(x, y), up(y, z). down(y, x) :- up(x, y). up(y, x) :- down(x, y)."
    )
    given = list(pairwise("abcdefgh"))
    with program.materialise({"e": given}, engine=spark, place="cluster", scratch=tmp_path) as m:
        graph = nx.DiGraph(given)
        m.update({"e": [("h", "a")]}, {"e": [("d", "e")]}, algorithm="bf-c-mod")
        graph.remove_edge("d", "e")
        graph.add_edge("h", "a")
        expected = set(nx.transitive_closure(graph).edges)
        assert set(m["up"]) == expected
        assert set(m["down"]) == {(y, x) for x, y in expected}
        assert {s["place"] for s in m.stats["strata"] if "up" in s["relations"]} == {"closure"}
