"""The benchmark of storage: its data is the same each time, its shapes are what they say, and it tells when results differ."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evermat
from bench.modular.data import Data
from bench.modular.runs import tables
from bench.storage import asking, child, data, programs, running
from bench.storage.asking import ALL_KINDS, SMALL_KINDS, checksum, questions
from bench.storage.rendering import Found, render, wanted
from bench.storage.running import Ran, disagreements, status_of
from bench.storage.shapes import GRAPHS, LARGE, PROTOCOLS, RELATIONS, ROADS, RULES, SHAPES, SMALL, W1, shapes
from bench.storage.steps import AUTO, PLAIN, SCHEMES, Step, Task, kept
from evermat.columns.schemes import policy
from tests.support.environment import LASTING

SHA = {  # whatever changes the data changes what has been measured
    "fields": "931e931ea7efc4f0b2413ff8f1d4a24a27e1856eedc8fd5e088afb22eaab5706",
    "thesaurus": "61909d08e3b946c926fbe458d560defbb04bc62329c1d41870687413527697f1",
    "roads": "f6a91da7c73945cb362528abaebf590c2baf7c9e266668b88793a154b8d2f32b",
    "concepts": "17276f3db31b36331e9c82737e79a35c59dfe0fdcd3896219fd440c3a231e80f",
    "relations": "a357e07efc509d4121919e6a503f79623e7bc2566173fae23c871ec748515010",
}


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small relations are stored by schemes, too."""
    for name in ("PAIRS", "PAIRS_IF_READ_BACKWARDS", "GROWTH", "COPIES", "COPIES_IF_SLOW"):
        monkeypatch.setattr(policy, f"LEAST_{name}", 1)


def digest(facts: Data) -> str:
    return hashlib.sha256(repr([(name, rows.tolist()) for name, rows in sorted(facts.items())]).encode()).hexdigest()


def task(shape: str, protocol: str, schemes: str = AUTO, **more: Any) -> Task:
    return replace(
        Task(shape, "load", schemes, small=True, repeat=2, limit=60.0, memory=8.0), protocol=protocol, **more
    )


def done(one: Task, folder: Path) -> list[Step]:
    """The steps of a process, in this one."""
    report = folder / f"{one.shape}-{one.protocol}-{one.schemes}.jsonl"
    assert child.DO[one.protocol](child.Subject(Task.of(str(one)), report))
    return kept(report)


def uses_schemes(steps: list[Step]) -> bool:
    """Whether what is asked is stored otherwise than in tables."""
    return any(one["scheme"] != PLAIN for step in steps for one in step.more.get("schemes", {}).values())


def closure(edges: np.ndarray) -> set[tuple[int, int]]:
    """Walks from every node."""
    after: dict[int, list[int]] = {}
    for tail, head in edges.tolist():
        after.setdefault(tail, []).append(head)
    found = set()
    for start, heads in after.items():
        pending, seen = list(heads), set(heads)
        while pending:
            for head in after.get(pending.pop(), ()):
                if head not in seen:
                    seen.add(head)
                    pending.append(head)
        found |= {(start, end) for end in seen}
    return found


# --- data --------------------------------------------------------------------------------------------------


def test_the_data_is_the_same_each_time() -> None:
    made = {
        "fields": {"broader": data.fields([(2, 40, 5), (10, 4, 5)])},
        "thesaurus": {"broader": data.thesaurus(1_000, 2_000, 8)},
        "roads": {"e": data.roads(20)},
        "concepts": data.concepts(data.thesaurus(1_000, 2_000, 8)),
        "relations": data.relations(2, 200, (2, 1)),
    }
    assert {name: digest(facts) for name, facts in made.items()} == SHA
    for facts in made.values():
        assert all(len(np.unique(rows, axis=0)) == len(rows) for rows in facts.values())


@pytest.mark.parametrize(("concepts", "edges", "layers"), [(50, 80, 3), (2_000, 4_000, 8), (5_000, 10_000, 18)])
def test_a_thesaurus_has_one_top_layer_and_no_cycles(concepts: int, edges: int, layers: int) -> None:
    broader = data.thesaurus(concepts, edges, layers)
    assert len(broader) == edges
    assert (broader[:, 0] > broader[:, 1]).all()
    tops = set(range(concepts)) - set(broader[:, 0].tolist())
    assert tops == set(range(len(tops)))
    assert 0 < len(tops) < concepts / 4


def test_fields_have_cycles_and_depth() -> None:
    pairs = closure(data.fields([(3, 100, 5)], seed=1))
    assert any(x == y for x, y in pairs)
    assert len(pairs) > 20 * 1500


def test_roads_lead_right_and_down() -> None:
    edges = data.roads(12)
    assert set((edges[:, 1] - edges[:, 0]).tolist()) == {1, 12}
    assert len(closure(edges)) == SHAPES[ROADS].expected[True]


def test_the_edges_of_relations_are_those_that_the_rules_read() -> None:
    names = evermat.Program.parse(programs.relations(2, 3, 1)).relations
    made = data.relations(2, 200, (3, 1))
    assert set(made) == {name for name in names if name.startswith(("edge_", "fact_"))}


def test_all_shapes_have_what_is_asked(tmp_path: Path) -> None:
    assert list(shapes(None)) == [shape.name for shape in SHAPES.values()]
    for shape in SHAPES.values():
        facts = shape.facts(True)
        relations = evermat.Program.parse(shape.program).relations
        assert facts.keys() | shape.asked.keys() | set(shape.asked.values()) <= set(relations)
        assert all(len(facts[base]) > 3 * child.INSERTED_SMALL for base in shape.asked.values())
        assert set(shape.protocols) <= set(PROTOCOLS)
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "EXPECTED-TC.tsv").write_text("file\tgraph\tcomputed_TC\nx.txt\tX\t3\n", encoding="ascii")
    assert shapes(str(tmp_path))[f"{GRAPHS}X"].expected == {True: 3, False: 3}


# --- processes ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("schemes", SCHEMES)
@pytest.mark.parametrize("shape", [W1, ROADS, RELATIONS])
def test_loading_tells_times_and_memory(shape: str, schemes: str, tmp_path: Path) -> None:
    steps = done(task(shape, "load", schemes), tmp_path)
    assert [(step.what, step.number, step.status) for step in steps] == [
        ("materialise", 0, "ok"),
        ("materialise", 1, "ok"),
    ]
    for step in steps:
        assert step.cpu > 0 and step.stored > 0 and step.peak >= 0
        assert step.facts > step.more["explicit"] > 0
        assert isinstance(step.more["schemes"], dict)


@pytest.mark.slow
def test_a_wrong_number_of_facts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "shapes", lambda _data: {W1: replace(SHAPES[W1], expected={True: 7})})
    assert [step.status for step in done(task(W1, "load"), tmp_path)] == ["wrong", "wrong"]


@LASTING
@pytest.mark.usefixtures("few_are_many")
def test_insertions_are_undone_by_deletions(tmp_path: Path) -> None:
    found = {schemes: done(task(SMALL, "updates", schemes), tmp_path) for schemes in SCHEMES}
    for schemes, steps in found.items():
        assert uses_schemes(steps) == (schemes == AUTO)
        assert [(step.what, step.number) for step in steps] == [
            ("materialise", 0),
            *(("insert", i) for i in range(3)),
            *(("delete", i) for i in (2, 1, 0)),
        ]
        facts = [step.facts for step in steps]
        assert facts[:4] == sorted(set(facts[:4]))
        assert facts[4:] == facts[2::-1]
    all_ran = [Ran(SMALL, "updates", schemes, "ok", steps) for schemes, steps in found.items()]
    assert not disagreements(all_ran)
    text = "\n\n".join(render(all_ran))
    assert f"| {SMALL} | delete 3 |" in text
    assert "WRONG" not in text


@LASTING
@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("shape", [W1, RULES, RELATIONS])
def test_queries_have_the_same_answers(shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "ASKED", 4)
    monkeypatch.setattr(asking, "FIRST", 1)
    monkeypatch.setattr(asking, "TESTED", 200)
    all_ran = [
        Ran(shape, "queries", schemes, "ok", done(task(shape, "queries", schemes, repeat=1), tmp_path))
        for schemes in SCHEMES
    ]
    assert not disagreements(all_ran)
    for ran in all_ran:
        assert uses_schemes(ran.steps) == (ran.schemes == AUTO)
        asked = [step for step in ran.steps if step.what == "query"]
        assert {step.name for step in asked} == {
            f"{relation}, {kind}" for relation in SHAPES[shape].asked for kind in (*SMALL_KINDS, *ALL_KINDS)
        }
        assert all(step.ok and step.facts > 0 for step in asked)
    text = "\n\n".join(render(all_ran))
    assert all(f"| {shape} | {relation}, in |" in text for relation in SHAPES[shape].asked)


@pytest.mark.slow
def test_what_is_asked_is_answered_rightly() -> None:
    edges = data.fields([(2, 20, 3)])
    m = evermat.Program.parse(SHAPES[SMALL].program).materialise(tables({"broader": edges}))
    pairs = closure(edges)
    asked = {q.kind: q for q in questions("broaderTransitive", "broader", edges)}
    counts = {kind: checksum(q, m)[0] for kind, q in asked.items()}
    assert counts["all facts"] == counts["all answers"] == len(pairs)
    for kind, question in asked.items():
        assert sum(question.ask(m, i) for i in range(question.first, question.first + question.count)) == counts[kind]
    assert 0.4 * 2_000 < counts["in"] < 2_000
    assert 40 <= counts["point"] < 100


@pytest.mark.slow
def test_a_process_that_is_out_of_time_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "report.jsonl"
    monkeypatch.setattr("evermat.core.watch.LOOK_EVERY", -1.0)  # it looks at the clock at once
    subject = child.Subject(task(RULES, "load", PLAIN, limit=1e-9), report)
    assert not child.load(subject)
    (step,) = kept(report)
    assert (step.what, step.status) == ("materialise", "time")


@LASTING
def test_a_process_of_its_own() -> None:
    ran = running.run(task(W1, "load", PLAIN))
    assert ran.status == "ok", ran.detail
    assert [step.facts for step in ran.steps] == [SHAPES[W1].expected[True] + 3_000] * 2
    assert ran.peak_mb is not None and ran.peak_mb > 50
    assert Ran.of(ran.as_json()) == ran


def test_how_a_process_ended() -> None:
    def ended(*statuses: str, code: int = 0, timeout: bool = False, detail: str = "") -> str:
        steps = [Step("materialise", number=i, status=status) for i, status in enumerate(statuses)]
        return status_of(Ran(W1, "load", AUTO, "failed", steps, detail), {"exit": code, "timeout": timeout})

    assert ended("ok") == "ok"
    assert ended("ok", "wrong", "time") == "wrong"
    assert ended("time", code=3) == "timeout"
    assert ended("ok", "memory", code=3) == "memory"
    assert ended("begun", code=-9) == ended("begun", code=1, detail="MemoryError") == "memory"
    assert ended("begun", code=1) == "failed"
    assert ended("ok", "begun", code=-9, timeout=True) == "timeout"


# --- tables ------------------------------------------------------------------------------------------------


def updated(schemes: str, cpu: float, stored: int, peak: int, facts: int = 50) -> Ran:
    steps = [Step("materialise", status="ok", cpu=cpu, facts=40, stored=stored, grown=stored, peak=peak)]
    for number in range(3):
        steps.append(Step("insert", "", number, "ok", cpu / 10, facts=facts + number, stored=stored, peak=peak))
    return Ran(LARGE, "updates", schemes, "ok", steps)


def test_what_is_wanted_is_compared_with_what_was_reached() -> None:
    def lines(all_ran: list[Ran]) -> dict[str, tuple[str, bool | None]]:
        return {line.what: (line.reached, line.is_reached) for line in wanted(Found(all_ran))}

    nothing = lines([])
    assert nothing and all(reached == ("–", None) for reached in nothing.values())
    found = lines([updated(AUTO, 1.0, 10, 100), updated(PLAIN, 8.0, 100, 700)])
    assert found[f"{LARGE}, load and three insertions: times faster than plain tables"] == ("8.00", True)
    assert found[f"{LARGE}, the same: times less memory, stored"] == ("10.0", True)
    assert found[f"{LARGE}, the same: times less memory, peak"] == ("7.00", False)

    schemes = {"t": {"scheme": "intervals", "bytes": 12_000_000, "scheme_bytes": 9_000_000}}
    loaded = [
        Step("materialise", "", i, "ok", cpu, facts=10**9, more={"explicit": 100, "schemes": schemes})
        for i, cpu in enumerate((0.7, 0.4))
    ]
    found = lines([Ran(W1, "load", AUTO, "ok", loaded), Ran(ROADS, "load", AUTO, "ok", loaded, peak_mb=1_200.0)])
    assert found[f"{W1}: MB of the closure, with the rows of its inputs"] == ("12.0", True)
    assert found[f"{W1}: CPU s of the whole call"] == ("0.40", True)
    assert found[f"{ROADS}: pairs"] == ("999,999,900", True)
    assert found[f"{ROADS}: MB of the process"] == ("1200", False)

    graphs = [Ran(f"{GRAPHS}{name}", "load", AUTO, "ok", loaded) for name in "AB"]
    assert lines(graphs)["real graphs: exact"] == ("2 of 2", True)
    graphs[1].steps = [replace(step, status="wrong") for step in loaded]
    assert lines(graphs)["real graphs: exact"] == ("1 of 2", False)

    asked = [
        Ran(W1, "queries", how, "ok", [Step("query", f"t, {kind}", 0, "ok", cpu, facts=5)])
        for kind in ("by first", "all facts")
        for how, cpu in ((AUTO, 0.002), (PLAIN, 0.001))
    ]
    merged = [Ran(W1, "queries", how, "ok", [s for r in asked if r.schemes == how for s in r.steps]) for how in SCHEMES]
    found = lines(merged)
    assert found[f"{W1}: t, by first: times what it takes on plain tables"] == ("2.00", False)
    assert found[f"{W1}: t, all facts: times what it takes on plain tables"] == ("2.00", True)


def test_a_protocol_that_was_given_up_is_not_compared() -> None:
    plain = updated(PLAIN, 8.0, 100, 700)
    plain.steps[-1].status, plain.status = "time", "timeout"
    text = "\n\n".join(render([updated(AUTO, 1.0, 10, 100), plain]))
    assert f"| {LARGE}, load and three insertions: times faster than plain tables | ≥ 7 | – | – |" in text
    assert f"- {LARGE}, updates, {PLAIN}: timeout, insert" in text


def test_results_that_differ_are_told() -> None:
    all_ran = [updated(AUTO, 1.0, 10, 100), updated(PLAIN, 8.0, 100, 700, facts=51)]
    assert disagreements(all_ran)[0] == f"{LARGE}, updates, insert, 0: 50 (0) by auto; 51 (0) by plain"
    assert "## WRONG" in "\n\n".join(render(all_ran))
