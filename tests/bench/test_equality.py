"""The benchmark of equality: its data is the same each time, its shapes are what they say, and it tells when results differ."""

from __future__ import annotations

import hashlib
from collections import Counter
from functools import cache, partial
from pathlib import Path

import pytest

import evermat
from bench.equality import child, running, stored
from bench.equality.data import CLIQUE, EMAIL, SAME, Facts, cliques, cyc, universities
from bench.equality.programs import CLIQUES, CYCLOPAEDIA
from bench.equality.rendering import figures, render
from bench.equality.running import COMPARED, Ran, disagreements, equilibrium
from bench.equality.shapes import SHAPES, Shape, parsed, translated
from bench.equality.steps import ALGORITHMS, AXIOMATISE, REWRITE, Step, Task, kept

TINY = {
    "cliques": Shape("cliques", partial(parsed, CLIQUES), lambda _small: cliques(6, 15)),
    "cyc-5": Shape(
        "cyc-5", partial(parsed, CYCLOPAEDIA.partition("triple(x, rdf:type, y)")[0]), lambda _small: cyc(6, 5, 40)
    ),
}
UNIVERSITY = Shape("uobm", cache(translated), lambda _small: universities(1, 1))
SHA = {  # whatever changes the data changes what has been measured
    "universities": "ad638e384c1b244678092e152e570436a978c6a3fc547abf9071d8ff1cc02644",
    "plain": "833aa9d79d4db9f38435ad554bada10b3a7c5a352b37637f657984959c7dedb4",
    "cliques": "fd5c9f7dc7cc231a00bb955da6d80b3998085b1316a3ad88267655e4b5dbd7c2",
    "cyc": "3ba6829f800458758f96cdd5c8e43f271d744732df8d7ed89bcfcfd3054abb0c",
}


def digest(facts: Facts) -> str:
    return hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()


@pytest.mark.slow
def test_the_data_is_the_same_each_time() -> None:
    made = {
        "universities": universities(1, 1),
        "plain": universities(1, 1, names=None),
        "cliques": cliques(20, 100),
        "cyc": cyc(10, 50, 100),
    }
    assert {name: digest(facts) for name, facts in made.items()} == SHA
    for facts in made.values():
        assert all(len(set(rows)) == len(rows) for rows in facts.values())


def test_things_of_cliques_have_ten_names_or_more() -> None:
    names = Counter(name.rpartition("/")[0] for (name,) in cliques(50, 200)[f"<{CLIQUE}Person>"])
    assert len(names) == 50
    assert 10 <= min(names.values()) < 20
    assert 100 < max(names.values()) <= 200


@pytest.mark.parametrize("names", [1, 7, 50])
def test_more_names_are_no_more_facts(names: int) -> None:
    facts = cyc(10, names, 100)["triple"]
    about = Counter(s.rpartition("/")[0] for s, _, _ in facts if "#thing" in s)
    assert set(about.values()) == {100}
    assert len(facts) == len(cyc(10, 3, 100)["triple"])
    assert sum(p == SAME for _, p, _ in facts) == 10 * (names - 1)


def test_too_few_facts_for_the_names() -> None:
    with pytest.raises(ValueError, match="30 facts are too few for 20 names"):
        cyc(10, 20, 30)


@pytest.mark.slow
def test_people_with_further_names_share_an_address() -> None:
    addresses = Counter(address for _, address in universities(1, 1)[EMAIL])
    assert set(addresses.values()) == set(range(1, 10))
    assert set(Counter(address for _, address in universities(1, 1, names=None)[EMAIL]).values()) == {1}


@pytest.mark.slow
def test_nothing_is_equal_in_plain_data_and_many_names_are_in_the_other() -> None:
    program = UNIVERSITY.program(REWRITE)
    assert len(program.materialise(universities(1, 1, names=None))[SAME]) == 0
    assert len(program.materialise(universities(1, 1))[SAME]) > 400


@pytest.mark.slow
def test_representatives_and_axioms_give_the_same_facts() -> None:
    for shape in (*TINY.values(), UNIVERSITY):
        tables = stored.tables(shape.facts(True))
        chosen = child.drawn(tables, 20, 0)
        found = []
        for equality, algorithm in ((REWRITE, "bf-eq"), (AXIOMATISE, "bf")):
            m = shape.program(equality).materialise(tables)
            states = [everything(m)]
            for change in ({"delete": chosen}, {"insert": chosen}):
                m.update(**change, algorithm=algorithm)
                states.append(everything(m))
            assert states[0] == states[2] != states[1]
            found.append(states)
        assert found[0] == found[1], shape.name


def everything(m: evermat.Materialisation) -> dict[str, set[tuple[object, ...]]]:
    return {name: set(facts) for name, facts in m.items()}


def test_facts_that_are_drawn_are_different_ones_of_all_relations() -> None:
    tables = stored.tables(cliques(10, 30))
    for count in (1, 100):
        drawn = child.drawn(tables, count, 0)
        rows = [(name, *row.values()) for name, table in drawn.items() for row in table.to_pylist()]
        assert len(rows) == len(set(rows)) == count
        assert all(tuple(row[1:]) in set(cliques(10, 30)[row[0]]) for row in rows)
    assert len(drawn) > 4


@pytest.mark.slow
@pytest.mark.parametrize("algorithms", [("bf-eq",), ("bf",), COMPARED])
def test_a_process_tells_its_steps(
    algorithms: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(child, "SHAPES", TINY)
    monkeypatch.setattr(child, "SEARCHED", 1)
    monkeypatch.setattr(child, "REFINED", 1)
    report = tmp_path / "report.jsonl"
    sizes = (10, 10**9) if len(algorithms) == 1 else ()  # more than there are is left out
    task = Task.of(str(Task("cliques", True, algorithms, sizes, 1, 2, 60.0, 8.0)))
    subjects = [child.Subject(task, algorithm, report) for algorithm in algorithms]
    assert all(subject.materialise() for subject in subjects)
    if sizes:
        child.update_all(subjects[0])
    else:
        child.equilibrium(subjects)
    steps = kept(report)
    assert all(step.ok and step.cpu > 0 and step.facts > 0 for step in steps)
    whole = {step.facts for step in steps if step.what != "delete"}
    assert len(whole) == 1
    assert all(step.facts < min(whole) for step in steps if step.what == "delete")
    assert not disagreements("cliques", [Ran(algorithms, "ok", steps)])
    if sizes:
        assert [(s.what, s.size, s.sample) for s in steps] == [
            *(("materialise", 0, 0), ("materialise", 0, 1)),
            *((what, 10, sample) for sample in (0, 1) for what in ("delete", "insert")),
        ]
    else:
        assert {s.size for s in steps} >= {0, subjects[0].most // 32}
        assert equilibrium(steps) is not None
    assert f"{algorithms[0]} " in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_that_is_out_of_time_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "report.jsonl"
    larger = Shape("cliques", partial(parsed, CLIQUES), lambda _small: cliques(30, 100))
    monkeypatch.setattr(child, "SHAPES", {"cliques": larger})
    task = Task("cliques", True, ("bf",), (10,), 1, 1, 1e-9, 8.0)
    assert not child.Subject(task, "bf", report).materialise()
    (step,) = kept(report)
    assert (step.what, step.status) == ("materialise", "time")


def step(what: str, algorithm: str, cpu: float, size: int = 0, sample: int = 0, facts: int = 90) -> Step:
    more = {"explicit": 10, "rules": 3, "peak_mb": 1.0}
    return Step(what, algorithm, size, sample, "ok", cpu, cpu, cpu, cpu, 5, facts, 40, more)  # type: ignore[arg-type]


def test_where_both_take_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SEARCHED", 2)

    def tried(times: dict[int, tuple[float, float]]) -> list[Step]:
        return [step("delete", a, t, n) for n, ts in times.items() for a, t in zip(COMPARED, ts, strict=True)]

    assert equilibrium([]) is None
    assert equilibrium(tried({100: (1, 4), 200: (2, 4), 400: (6, 4), 300: (3, 4)})) == (333, True)
    assert equilibrium(tried({100: (5, 4)})) == (100, True)
    more = [step("delete", name, cpu, 100, 1) for name, cpu in zip(COMPARED, (0.1, 4.0), strict=True)]
    assert equilibrium([*tried({100: (5, 4)}), *more]) == (100, False), "samples are added up"
    first = [step("delete", name, cpu, 100, 2) for name, cpu in zip(COMPARED, (9.0, 0.1), strict=True)]
    assert equilibrium([*tried({100: (1, 4)}), *first]) == (100, False), "what made indexes is left out"
    assert equilibrium(tried({100: (1, 4), 200: (2, 4)})) == (200, False)


def test_averages_leave_out_the_first_sample_if_there_is_another() -> None:
    first, second, third = (step("delete", "bf", cpu, 10, sample) for sample, cpu in enumerate((9.0, 1.0, 3.0)))
    found = figures([Ran(("bf",), "ok", [first, second, third])], "bf", "delete", 10)
    assert found is not None and (found.cpu, found.samples) == (2.0, 2)
    found = figures([Ran(("bf",), "ok", [first])], "bf", "delete", 10)
    assert found is not None and (found.cpu, found.samples) == (9.0, 1)
    assert figures([], "bf", "delete", 10) is None


def test_tables_tell_ratios_and_what_is_wrong_or_was_given_up() -> None:
    all_ran = [
        Ran((name,), "ok", [step("materialise", name, cpu), step("delete", name, cpu, 100, facts=70)])
        for name, cpu in (("bf-eq", 1.0), ("remat-eq", 2.0), ("bf", 8.0))
    ]
    stopped = Step("materialise", "remat", status="begun")
    all_ran.append(Ran(("remat",), "timeout", [stopped]))
    text = "\n\n".join(render({"cliques": all_ran, "cyc-10": all_ran}))
    assert "| 100 | delete | 2.00 (2.00) | 8.00 (8.00) | – |" in text
    assert "| cliques | 8.00 (8.00) | 1.00 | 0.12 (0.12) |" in text
    assert "- cliques, remat: timeout, materialise" in text
    assert "WRONG" not in text
    all_ran[2].steps[1].facts = 71
    text = "\n\n".join(render({"cliques": all_ran}))
    assert (
        "## WRONG\n\n- cliques: after deleting 100 facts (sample 0): 70 facts by bf-eq and remat-eq, 71 facts by bf"
        in text
    )


def test_all_shapes_have_a_name_and_every_algorithm_is_known() -> None:
    assert list(SHAPES) == [shape.name for shape in SHAPES.values()]
    assert ALGORITHMS[:2] == COMPARED
