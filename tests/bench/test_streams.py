"""The benchmark of streams: the paper's algorithm is right and counts as the paper does, streams are what they say, and wrong figures are not told."""

from __future__ import annotations

import hashlib
import random
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evermat
from bench.storage.steps import Step, kept
from bench.streams import __main__ as command
from bench.streams import child, data, paper, programs, published, running
from bench.streams.drawing import HEIGHT, WIDTH, Panel, Scale, Series, drawn, panels, shown
from bench.streams.rendering import render, totals
from bench.streams.running import Ran, dearer, mistakes, tasks
from bench.streams.steps import (
    ALONE,
    MEMORY,
    OFF,
    ON,
    REFERENCE,
    SHARED_BY,
    SHARES,
    STATE,
    TOGETHER,
    Case,
    Task,
    summary,
)
from tests.support.environment import LASTING

SHA = {  # whatever changes the data changes what has been measured
    "edges": "26d6b2d72921d54cb681019bdd7018fe7a0879befe90981583ec6c9d9cac932c",
    "roads": "d73476f562d6a5d3a8bd2230ee7467d153ca9f18845696b6d0d127057795b033",
    "shares": "85b36148a5625fd30d2c7afb15ec394e6a89fd26b4b8d35260db64e220ef1b6e",
    "flat": "a6873549fa6625c851b6c11ae2d6bf6241e843b3ca5038b2104ec833cbda7337",
    "nested": "2ab5a62743ffbd9250e6b8eabf8da4f38add3c53599a4d267647f766e54f4136",
}
FEW = 5
NONLINEAR = """
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
far(x, y) :- path(x, y), back(y, x), x != y.
"""


def digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


def done(one: Task, folder: Path) -> Ran:
    """A process, in this one."""
    report = folder / f"{one.section}-{one.subject}-{one.algorithm}.jsonl"
    ended = child.DO[one.section](child.Telling(Task.of(str(one)), report))
    return Ran(one.section, one.subject, one.algorithm, "ok" if ended else "wrong", kept(report))


def small(section: str, subject: object, **more: Any) -> Task:
    return replace(Task(section, str(subject), small=True, repeat=1, limit=60.0), **more)


@pytest.fixture(scope="module")
def some() -> Iterator[dict[str, Ran]]:
    """Some processes, which several tests look at."""
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "FEW", FEW)
        patch.setattr(child, "FIRST", 1)
        yield {
            "seq": done(small("seq", 10, algorithm="dred"), Path(place)),
            "arrival": done(small("arrival", data.FLAT), Path(place)),
            "latency": done(small("latency", data.NESTED), Path(place)),
        }


# --- the paper's algorithm ---------------------------------------------------------------------------------


def afresh(rules: list[paper.Rule], explicit: set[paper.Fact]) -> set[paper.Fact]:
    """All consequences, by trying everything until nothing is new."""
    found = set(explicit)
    while True:
        new = set()
        for rule in rules:
            bindings: list[dict[object, object]] = [{}]
            for atom in rule.body:
                tried = (paper._match(atom, fact, values) for values in bindings for fact in found)
                bindings = [values for values in tried if values is not None]
            new |= {
                paper._with(rule.head, values)
                for values in bindings
                if all(values[x] != values[y] for x, y in rule.different)
            }
        if new <= found:
            return found
        found |= new


@pytest.mark.parametrize("text", [programs.TRANS_RULES, programs.MAP_RULES, NONLINEAR])
def test_the_papers_algorithm_keeps_all_true_and_its_other_order_never_costs_more(text: str) -> None:
    rules = paper.rules_of(text)
    heads = {rule.head[0] for rule in rules}
    arity = {atom[0]: len(atom) - 1 for rule in rules for atom in rule.body if atom[0] not in heads}
    saved = 0
    for seed in range(12):
        rng = random.Random(seed)
        every = [
            (name, *(rng.randrange(4) for _ in range(width)))
            for name, width in sorted(arity.items())
            for _ in range(14)
        ]
        explicit: set[paper.Fact] = set()
        updates = []
        for _ in range(6):
            minus = {fact for fact in explicit if rng.random() < 0.4}
            plus = {fact for fact in every if fact not in explicit and rng.random() < 0.3}
            explicit = explicit - minus | plus
            updates.append((sorted(minus), sorted(plus), explicit))
        streams = {way: paper.Stream(rules, way) for way in paper.WAYS}
        for (minus, plus, explicit), after in zip(updates, [*updates[1:], ([], [], set())], strict=True):
            counts = {way: stream.update(minus, plus, after[0]) for way, stream in streams.items()}
            expected = afresh(rules, explicit)
            for stream in streams.values():
                assert set(stream.i.facts) == expected
            off, ordered = counts[paper.OFF], counts[paper.ORDERED]
            assert (off.backward, off.forward, off.insertions) == (
                ordered.backward,
                ordered.forward,
                ordered.insertions,
            )
            assert ordered.deletions <= off.deletions
            saved += off.deletions - ordered.deletions
    assert saved > 0


def test_the_papers_example() -> None:
    rules = paper.rules_of("""
        q(x) :- p1(x), p2(x).
        q(x) :- p3(x).
        r(x) :- q(x).
        s(x) :- q(x), p4(x).
    """)
    stream = paper.Stream(rules)
    stream.update([], [("p1", "c"), ("p2", "c"), ("p3", "c")])
    first = stream.update([("p1", "c")], [("p4", "c")], [("p4", "c")])
    assert first == paper.Count(deletions=1, backward=1, forward=2, insertions=1, explicit=1, implicit=1)
    second = stream.update([("p4", "c")], [])
    assert second == paper.Count()
    assert set(stream.i.facts) == {(name, "c") for name in ("p2", "p3", "q", "r")}


@pytest.mark.parametrize("size", [10, 20])
def test_where_each_update_deletes_what_the_one_before_inserted_table_2_comes_out(size: int) -> None:
    edges = iter(range(10_000))

    def new(count: int) -> list[paper.Fact]:
        return [("edge", next(edges), 0) for _ in range(count)]

    first = new(100)
    updates = [([], first)]
    for number in range(1, data.UPDATES):
        updates.append((first[:size] if number == 1 else updates[-1][1], new(size)))
    for way, known in ((paper.OFF, published.SEQ[size].old), (paper.PRINTED, published.SEQ[size].new)):
        stream = paper.Stream(paper.rules_of(programs.SEQ_RULES), way)
        counts = [
            stream.update(*update, updates[number + 1][0] if 0 < number < data.UPDATES - 1 else ())
            for number, update in enumerate(updates)
        ]
        found = {
            phase: sum(getattr(count, phase) for count in counts) for phase in ("deletions", "backward", "forward")
        }
        assert found == {phase: known[phase] for phase in found}
    assert sum(count.explicit for count in counts) == published.SEQ[size].explicit
    assert sum(count.implicit for count in counts) == published.SEQ[size].implicit


def test_what_the_paper_tells_is_copied_rightly() -> None:
    """The paper tells by how much the time became less, too."""
    reductions = {
        "TRANS": [7.8, 7.4, 7.9, 2.9, -3.4, -6.0, -9.1, -11.4],
        "SEQ": [15.4, 16.1, 18.4, 19.8, 18.5, 19.9, 20.9, 19.6],
        "MAP": [7.3, 1.4, 2.2],
    }
    for name, told in reductions.items():
        for one, less in zip(getattr(published, name).values(), told, strict=True):
            assert 100 * (1 - one.seconds_new / one.seconds_old) == pytest.approx(less, abs=0.11)
    for one in published.SEQ.values():
        assert one.deletions_old - one.deletions_new == pytest.approx(one.implicit, abs=1)  # averages of three seeds


# --- data --------------------------------------------------------------------------------------------------


def test_the_data_is_the_same_each_time() -> None:
    made = {
        "edges": [data.edges(kind, 20, None, 5).changes for kind in (data.TRANS, data.SEQ)],
        "roads": data.drive(5, 15.0).changes,
        "shares": [data.shared(kind, 10, 0.5, 5, 0.01) for kind in data.SHARED],
        "flat": [policy_facts(data.flat(0.01)), data.Churn(data.flat(0.01)).take(20)],
        "nested": [policy_facts(data.nested(0.01)), data.Churn(data.nested(0.01)).take(20)],
    }
    assert {name: digest(value) for name, value in made.items()} == SHA


def policy_facts(policy: data.Policy) -> dict[str, Any]:
    return {name: rows.tolist() for name, rows in policy.facts.items()}


@pytest.mark.parametrize(
    "stream",
    [*(data.edges(kind, size, None) for kind in (data.TRANS, data.SEQ) for size in (10, 80)), data.drive(83, 13.5)],
)
def test_what_comes_was_not_there_and_what_goes_was(stream: data.Stream) -> None:
    there: set[Any] = set()
    for change in stream.changes:
        (plus,), (minus,) = change.insert.values(), change.delete.values()
        assert not there & set(plus) and set(minus) <= there
        assert len(plus) == len(set(plus)) and len(minus) == len(set(minus))
        there = there - set(minus) | set(plus)
    assert not stream.changes[0].delete["edge" if "edge" in stream.changes[0].delete else "nextInWay"]


@pytest.mark.slow
def test_tracks_have_as_many_changes_as_the_papers() -> None:
    averages = {55: (18, 17), 83: (14, 14), 114: (9, 8)}
    for updates, metres in data.TRACKS.items():
        changes = data.drive(updates, metres).changes
        assert len(changes) == updates
        plus, minus = (np.mean([len(change[i]["nextInWay"]) for change in changes]) for i in (0, 1))
        assert plus == pytest.approx(averages[updates][0], rel=0.15)
        assert minus == pytest.approx(averages[updates][1], rel=0.15)


@pytest.mark.slow
def test_ways_cross_at_nodes() -> None:
    rows, places = data.roads()
    assert len(rows) == len(places) == len(set(map(tuple, rows.tolist())))
    own = dict(zip(rows[:, 0].tolist(), places.tolist(), strict=True))
    assert all(own[node] == place for node, place in zip(rows[:, 0].tolist(), places.tolist(), strict=True))
    ends = [(own[a], own[b]) for a, b, _ in rows.tolist() if b in own]
    assert {abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in ends} == {data.POINTS}


def test_streams_are_read(tmp_path: Path) -> None:
    (tmp_path / "marking").mkdir()
    file = tmp_path / "marking" / "seq_seed7_u10.tsv"
    file.write_text("1\t+\t1\t2\n1\t+\t2\t3\n2\t-\t1\t2\n2\t+\t4\t5\n3\t-\t4\t5\n3\t-\t2\t3\n", encoding="ascii")
    counts = "file\tstep\tedges\tderived\n" + "".join(
        f"{file.name}\t{s}\t0\t{n}\n" for s, n in ((2, 8), (1, 8), (3, 0))
    )
    file.with_name(data.COUNTS).write_text(counts, encoding="ascii")
    stream = data.edges("seq", 10, str(tmp_path))
    assert stream.changes == [
        data.Change({"edge": [(1, 2), (2, 3)]}, {"edge": []}),
        data.Change({"edge": [(4, 5)]}, {"edge": [(1, 2)]}),
        data.Change({"edge": []}, {"edge": [(4, 5), (2, 3)]}),
    ]
    assert stream.expected == [8, 8, 0]
    assert data.share_inserted_before(stream.changes) == 0.5
    assert data.edges("seq", 20, str(tmp_path)).expected is None


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", data.SHARED)
def test_so_much_goes_soon(kind: str, share: float) -> None:
    stream = data.shared(kind, 30, share, 6, 0.01)
    relation = "edge" if kind == data.SEQ else "member"
    there = set(stream.facts[relation])
    assert not stream.changes[0].delete[relation]
    for before, change in pairwise(stream.changes):
        there = there - set(before.delete[relation]) | set(before.insert[relation])
        plus, minus = set(change.insert[relation]), set(change.delete[relation])
        assert len(plus) == len(minus) == 30 and minus <= there and not plus & there
        assert len(minus & set(before.insert[relation])) == share * 30
    after = there - minus | plus
    assert {name: set(rows) for name, rows in stream.after.items()} == {
        name: after if name == relation else set(rows) for name, rows in stream.facts.items()
    }


@pytest.mark.parametrize("name", data.POLICIES)
def test_policies_change_and_keep_their_size(name: str) -> None:
    policy = data.POLICIES[name](0.01)
    relations = evermat.Program.parse(policy.program).relations
    assert set(policy.names) == set(policy.facts) <= set(relations)
    churn = data.Churn(policy)
    there = {relation: set(policy.named(relation, rows)) for relation, rows in policy.facts.items()}
    sizes = {relation: len(rows) for relation, rows in there.items()}
    for _ in range(30):
        change = churn.take(20)
        assert child.given([{"insert": change.insert}]) == child.given([{"delete": change.delete}]) == 10
        for relation, rows in change.delete.items():
            assert set(rows) <= there[relation] and not set(change.insert[relation]) & there[relation]
            there[relation] = there[relation] - set(rows) | set(change.insert[relation])
    assert {relation: len(rows) for relation, rows in there.items()} == sizes
    assert there == {relation: set(policy.named(relation, rows)) for relation, rows in churn.there.items()}


# --- processes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("section", "subject"), [("trans", 10), ("seq", 20), ("map", 55)])
def test_rule_applications_are_counted(section: str, subject: int, tmp_path: Path) -> None:
    ran = done(small(section, subject, algorithm="bf"), tmp_path)
    names = [*(REFERENCE + way for way in paper.WAYS), OFF, ON, OFF, ON]
    assert [(step.name, step.status) for step in ran.steps] == [(name, "ok") for name in names]
    assert not mistakes([ran])
    first = ran.first
    assert len({step.facts for step in ran.steps}) == 1
    assert sum(totals(first[ON]).values()) <= sum(totals(first[OFF]).values())
    if section == "seq":
        assert totals(first[OFF]) == totals(first[REFERENCE + paper.OFF])
        assert totals(first[ON])["deletions"] < totals(first[REFERENCE + paper.PRINTED])["deletions"]
    text = "\n\n".join(render([ran]))
    assert f"| {subject} | evermat, bf |" in text and f"| {subject} | Algorithm 1, ordered |" in text
    assert f"| {subject} | paper |" not in text  # the stream is shorter than the paper's
    assert f"| {subject} | bf | – | – | – | 0." in text


def test_a_stream_as_long_as_the_papers_stands_beside_it(some: dict[str, Ran]) -> None:
    ran = deepcopy(some["seq"])
    for step in ran.steps:
        step.more["applications"] *= 7
        del step.more["applications"][data.UPDATES :]
    text = "\n\n".join(render([ran]))
    assert "| 10 | paper | 1,960 → 1,480 | 0 | 0 | 2,360 | 480 | 480 | 4,320 → 3,840 | 11.1 |" in text
    assert "| 10 | dred | 10.32 | 8.73 | 15.4 | 0." in text


def test_wrong_facts_are_told_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = child.facts_after

    def off_by_one(stream: data.Stream) -> list[int]:
        found = right(stream)
        found[3] += 1
        return found

    monkeypatch.setattr(child, "facts_after", off_by_one)
    ran = done(small("seq", 10), tmp_path)
    assert {step.status for step in ran.steps} == {"wrong"}
    text = "\n\n".join(render([ran]))
    assert text.startswith("## WRONG\n\n- seq 10, reference, off: update 4: ")
    assert "|" not in text


def test_updates_that_cost_more_with_marking_are_told() -> None:
    def step(name: str, *counts: int) -> Step:
        applications = [dict.fromkeys(published.PHASES, count) for count in counts]
        return Step("stream", name, 0, "ok", more={"applications": applications})  # type: ignore[arg-type]

    ran = Ran("seq", "10", "bf", "ok", [step(OFF, 5, 5, 5), step(ON, 5, 4, 6)])
    assert dearer(ran) == [3]
    assert mistakes([ran]) == ["seq 10, bf: more rules are applied with marking in the updates 3"]
    assert dearer(Ran("seq", "10", "bf", "ok", [step(OFF, 5), step(ON, 5)])) == []
    assert dearer(Ran("seq", "10", "bf", "failed", [step(OFF, 5)])) == []


@pytest.mark.slow
def test_shares_are_measured_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "SOME", FEW)
    one = Task("shares", "", small=True, repeat=1, limit=60.0)
    chosen = [task for task in tasks(one, [], []) if Case.of(task.subject).share == 0.5]
    all_ran = [done(task, tmp_path) for task in chosen]
    assert {ran.status for ran in all_ran} == {"ok"}
    for ran in all_ran:
        assert [(step.name, step.status) for step in ran.steps] == [(name, "ok") for name in (OFF, ON, OFF, ON)]
        assert len({step.facts for step in ran.steps}) == 1
        assert {len(step.more["applications"]) for step in ran.steps} == {FEW}
    assert not mistakes(all_ran)
    seq, grants = (table.splitlines() for table in render(all_ran)[3::2])
    for lines in (seq, grants):
        assert lines[0] == "| size | share, % | algorithm | off, ms | on, ms | on/off | rule instances |"
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
        assert [row[:3] for row in cells] == [[size, "50", how] for size in ("10", "100") for how in SHARED_BY]
        assert all(float(row[5]) == pytest.approx(float(row[4]) / float(row[3]), rel=0.1) for row in cells)
    # Four rules for what comes and for what goes; those of the half that goes soon need not be applied again. The first update deletes nothing.
    off = 4 * 10 * (FEW + FEW - 1)
    assert seq[2].endswith(f"| {off} → {off - 4 * 5 * (FEW - 1)} |")


def test_a_stream_that_went_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data.Shared, "after", property(lambda stream: stream.facts))
    ran = done(small("shares", Case(data.SEQ, 10, 1.0)), tmp_path)
    assert [(step.name, step.status) for step in ran.steps] == [(OFF, "wrong")]
    assert render([ran])[1].startswith("- shares seq 10 100%, off: edge: 10 facts differ; edge1: ")


def test_latency_in_memory_and_with_a_state(some: dict[str, Ran]) -> None:
    ran = some["latency"]
    assert [(step.name, step.status, step.more["updates"]) for step in ran.steps] == [
        (MEMORY, "ok", FEW),
        (STATE, "ok", FEW),
    ]
    for step in ran.steps:
        assert 0 < step.more["p50"] <= step.more["p99"] <= step.more["most"] <= step.wall
        assert step.more["facts_per_second"] == pytest.approx(child.SIZE * step.more["updates_per_second"])
    text = "\n\n".join(render([ran]))
    assert f"| {data.NESTED} | {STATE} |" in text


def test_a_policy_that_went_wrong_is_told() -> None:
    subject = child.Subject(data.FLAT, small("latency", data.FLAT))
    subject.m.update(delete={"member": [next(iter(subject.m["member"]))]})
    step = Step("stream")  # type: ignore[arg-type]
    subject.check(step)
    assert step.status == "wrong" and "'member'" in step.more["wrong"]


def test_arrival_is_measured_and_drawn(some: dict[str, Ran]) -> None:
    ran = some["arrival"]
    assert [step.status for step in ran.steps] == ["ok"] * len(ran.steps)
    names = [step.name for step in ran.steps]
    assert names == ["size 10", "size 100", *(f"{how}, load {x:g}" for x in (0.5, 2) for how in (ALONE, TOGETHER))]
    for step in ran.steps[2:]:
        assert step.more["updates"] == FEW
        assert (step.more["changes"] == FEW) or step.name.startswith(TOGETHER)
    assert "| 2 | coalesced |" in "\n\n".join(render([ran]))
    tree = ET.fromstring(drawn(panels(ran)))
    circles = [node for node in tree.iter() if node.tag.endswith("circle")]
    assert len(circles) == 2 * 2 + 2 + 4 * 2
    assert all(0 < float(c.get("cx", 0)) < 3 * WIDTH and 0 < float(c.get("cy", 0)) < HEIGHT for c in circles)
    said = [node.text for node in tree.iter() if node.tag.endswith("text")]
    assert {f"{p}, {how}" for p in ("p50", "p99") for how in (ALONE, TOGETHER)} <= set(said)


def test_updates_arrive_when_they_are_due() -> None:
    due: list[float] = []
    begun = child.time.perf_counter()
    assert list(child.paced("abcd", 200.0, due)) == list("abcd")
    assert child.time.perf_counter() - begun >= 3 / 200
    assert [round(when - due[0], 6) for when in due] == [0, 0.005, 0.01, 0.015]


def test_a_step_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    ran = done(small("seq", 10, limit=1e-9), tmp_path)
    assert {step.name: step.status for step in ran.steps if step.name in (OFF, ON)} == {OFF: "time", ON: "time"}
    assert not mistakes([ran])
    ran.status = "timeout"
    assert "- seq 10, auto: timeout, off, on" in "\n\n".join(render([ran]))


def test_the_processes_of_sections() -> None:
    def subjects(section: str) -> list[tuple[str, str]]:
        return [(one.subject, one.algorithm) for one in tasks(Task(section, ""), ["bf", "dred"], [10, 20])]

    assert subjects("seq") == [("10", "bf"), ("10", "dred"), ("20", "bf"), ("20", "dred")]
    assert subjects("map") == [(str(n), how) for n in data.TRACKS for how in ("bf", "dred")]
    shares = subjects("shares")
    assert shares[:3] == [("seq 10 10%", "bf"), ("seq 10 10%", "auto"), ("seq 10 50%", "bf")]
    assert shares[-1] == ("grants 10000 100%", "auto") and len(shares) == 2 * 4 * 3 * 2
    assert all(str(Case.of(subject)) == subject for subject, _ in shares)
    assert subjects("latency") == [(data.FLAT, "auto"), (data.NESTED, "auto")]
    assert subjects("structured") == subjects("arrival") == [(data.NESTED, "auto")]


def test_the_command_keeps_sections_that_are_left_out(
    some: dict[str, Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "run", lambda task: some[task.section])
    for section in ("seq", "arrival"):
        with pytest.raises(SystemExit) as ended:
            command.main(["--quick", "--only", section, "--sizes", "10", "--data", "", "--out", str(tmp_path)])
        assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "## seq" in text and "## Size and rate of updates" in text
    assert "- seq: `python -m bench.streams --quick --only seq --sizes 10`." in text
    assert (tmp_path / "streams-quick.md").read_text(encoding="utf-8") in text
    assert (tmp_path / "streams-quick.svg").exists()


@LASTING
def test_a_process_of_its_own() -> None:
    ran = running.run(small("seq", 10, algorithm="bf"))
    assert ran.status == "ok", ran.detail
    assert ran.peak_mb is not None and ran.peak_mb > 50
    assert Ran.of(ran.as_json()) == ran


@LASTING
def test_structured_streaming() -> None:
    ran = running.run(small("structured", data.NESTED))
    assert ran.status == "ok", ran.detail
    assert [step.more["updates"] for step in ran.steps] == [child.FEW_BATCHES] * 4
    assert f"| {data.NESTED} | files | {STATE} |" in "\n\n".join(render([ran]))


# --- pictures ----------------------------------------------------------------------------------------------


def test_logarithmic_scales() -> None:
    scale = Scale([3, 700], 0, 300)
    assert scale.marks == [1, 10, 100, 1000]
    assert [scale(mark) for mark in scale.marks] == [0, 100, 200, 300]
    assert Scale([10], 0, 50).marks == [10, 100]
    assert [shown(value) for value in (0.1, 1, 1000, 1e7)] == ["0.1", "1", "1k", "10M"]


def test_panels_stand_side_by_side() -> None:
    line = Series("a < b", [(1, 1), (100, 10)], "a")
    tree = ET.fromstring(drawn([Panel("one", "x", "y", [line]), Panel("two", "x", "y", [line])]))
    lines = [node.get("points", "") for node in tree.iter() if node.tag.endswith("polyline")]
    ends = [[tuple(map(float, point.split(","))) for point in points.split()] for points in lines]
    assert [(x + WIDTH, y) for x, y in ends[0]] == ends[1]
    assert "a < b" in [node.text for node in tree.iter() if node.tag.endswith("text")]


def test_a_summary_of_latencies() -> None:
    told = summary([0.001 * n for n in range(1, 101)], 1_000, 2.0)
    assert (told["updates"], told["updates_per_second"], told["facts_per_second"]) == (100, 50, 500)
    assert told["p50"] == pytest.approx(0.0505) and told["p99"] == pytest.approx(0.09901)
