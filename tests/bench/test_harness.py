"""The harness with made-up engines: what counts as a time and what does not."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench import __main__ as command_line
from bench.checksum import answer_of_rows
from bench.engines import PEERS
from bench.harness import measure, measure_once, write_facts
from bench.model import Answer, Job, Measurement, Peer, Phases, Workload
from bench.peers import peer_evermat
from bench.report import best, render, save
from bench.scaling import closure
from bench.workloads import FULL, QUICK, dag_edges

EDGES = np.array([[0, 1], [1, 2]])
TINY = Workload(
    "tiny",
    "a copy",
    "T",
    2,
    {"dl": "T(x,y) :- E(x,y)."},
    lambda: iter([("E", EDGES)]),
    answer_of_rows(EDGES),
)
COPY = "import shutil, sys; shutil.copy(sys.argv[1] + '/E.facts', sys.argv[2])"


def fake(name: str, script: str = COPY, reason: float | None = 0.5) -> Peer:
    """An engine that is a line of Python; by default it copies its input, which is right here."""

    def command(job: Job) -> list[str]:
        return [sys.executable, "-S", "-c", script, str(job.facts), str(job.result_file)]

    told = {} if reason is None else {"reason": reason}
    return Peer(name, "dl", lambda: "1.0", command, lambda job: Phases(told, told))


def once(peer: Peer, folder: Path, timeout: float = 20.0) -> Measurement:
    write_facts(TINY, folder / "facts")
    return measure_once(peer, TINY, folder, 0, timeout, 1)


def test_a_right_result_has_times(tmp_path: Path) -> None:
    one = once(fake("right"), tmp_path)
    assert (one.status, one.answer, one.detail) == ("ok", TINY.expected, "")
    assert one.wall and one.cpu and one.peak_mb and one.phases.cpu == {"reason": 0.5}
    assert one.peak_mb < 60, "the memory of the harness must not count for the engine"


@pytest.mark.parametrize(
    "script",
    [
        "import sys; open(sys.argv[2], 'w').write('0\\t1\\n')",
        "import sys; open(sys.argv[2], 'w').write('0\\t1\\n1\\t3\\n')",
        "import sys; open(sys.argv[2], 'w').write('0\\t1\\n1\\t2\\n1\\t2\\n')",
        "import sys; open(sys.argv[2], 'w').write('nonsense\\n')",
    ],
    ids=["too few", "another", "one twice", "no table"],
)
def test_a_wrong_result_has_no_times(tmp_path: Path, script: str) -> None:
    one = once(fake("wrong", script), tmp_path)
    assert one.status == "wrong" and one.detail
    assert one.wall is one.cpu is one.peak_mb is None and one.phases.cpu == {}


def test_a_failure_tells_why(tmp_path: Path) -> None:
    one = once(fake("failing", "import sys; sys.exit('out of ideas')"), tmp_path)
    assert one.status == "failed" and "exit code 1" in one.detail and "out of ideas" in one.detail
    assert once(fake("silent", "pass"), tmp_path).status == "failed"


@pytest.mark.slow
def test_a_time_out_ends_the_engine_and_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    late = f"import time; time.sleep(0.9); open({str(mark)!r}, 'w')"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {late!r}])"
    begin = time.monotonic()
    one = once(fake("slow", script), tmp_path, timeout=0.2)
    assert one.status == "timeout" and one.cpu is None and "0.2 s" in one.detail
    time.sleep(max(0.0, begin + 1.3 - time.monotonic()))
    assert not mark.exists()


def test_absent_is_no_error(tmp_path: Path) -> None:
    absent = Peer("absent", "dl", lambda: None, lambda job: ["/nonexistent"], lambda job: Phases())
    assert once(absent, tmp_path).status == "absent"


def test_engines_take_turns_and_losers_are_not_repeated(tmp_path: Path) -> None:
    peers = [fake("a"), fake("b"), fake("c", "raise SystemExit(3)")]
    told: list[Measurement] = []
    done = measure(peers, [TINY], work=tmp_path, repeat=2, timeout=20, tell=told.append)
    assert told == done
    order = [(m.repetition, m.engine) for m in done]
    assert order == [(0, "a"), (0, "b"), (0, "c"), (1, "b"), (1, "a")]


def run(engine: str, repetition: int, cpu: float, reason: float) -> Measurement:
    phases = Phases({"reason": reason}, {"reason": reason})
    return Measurement(engine, "w", repetition, "ok", cpu, cpu, 10.0, phases)


def around(*engines: str) -> dict[str, object]:
    keys = ("date", "command", "python", "numpy", "numba", "system", "cpu", "cores", "memory_gib")
    return {**dict.fromkeys(keys, "?"), "engines": dict.fromkeys(engines, "1"), "notes": {}}


def test_best_is_by_cpu_and_one_wrong_repetition_spoils_all() -> None:
    runs = [run("a", 0, 3.0, 1.0), run("a", 1, 2.0, 1.5)]
    assert best(runs, "a", "w") is runs[1]
    assert best(runs, "b", "w") is None
    spoiled = Measurement("a", "w", 2, "wrong")
    assert best([*runs, spoiled], "a", "w") is spoiled


def test_tables_and_ratios(tmp_path: Path) -> None:
    runs = [
        run("duckdb", 0, 4.0, 2.0),
        run("evermat", 0, 2.0, 1.0),
        run("evermat", 1, 1.0, 0.5),
        run("duckdb", 1, 5.0, 4.0),
        Measurement("nemo", "w", 0, "wrong", detail="a | b\nc"),
    ]
    text = render("Title", around("evermat", "duckdb", "nemo"), runs)
    assert "| evermat | 0.500 |" in text and "| nemo | WRONG |" in text
    assert "| w | 0.25 | 0.12 | 0.50 |" in text
    assert "| nemo | w | wrong | a / b c |" in text
    for path in save(tmp_path, "name", around("evermat"), runs, text):
        assert path.exists()
    data = json.loads((tmp_path / "name.json").read_text())
    assert len(data["measurements"]) == 5 and data["measurements"][0]["phases"]["cpu"]


def test_evermat_is_run_and_read_as_its_contract_says(tmp_path: Path) -> None:
    job = Job(tmp_path / "p.dl", tmp_path / "f", tmp_path / "o", tmp_path / "s.json", "T")
    command = peer_evermat.peer(options=("--schemes", "plain")).command(job)
    start = command.index("run")
    paths = [str(tmp_path / name) for name in ("p.dl", "f", "o", "s.json")]
    assert command[start:] == [
        *["run", paths[0], "-F", paths[1], "-D", paths[2]],
        *["--engine", "memory", "--stats", paths[3], "--schemes", "plain"],
    ]
    seconds = {"start": 1.0, "read": 2.0, "encode": 3.0, "reason": 4.0, "write": 5.0}
    stats = {"seconds": seconds, "cpu_seconds": seconds, "rounds": 3, "derivations": 7}
    job.report.write_text(json.dumps(stats))
    phases = peer_evermat.peer().phases(job)
    assert phases.cpu == {"start": 1.0, "load": 5.0, "reason": 4.0, "write": 5.0}
    assert phases.extra == {"rounds": 3, "derivations": 7}


def test_every_workload_has_a_program_for_every_engine() -> None:
    assert QUICK.keys() == FULL.keys()
    for workload in (*QUICK.values(), *FULL.values()):
        assert {peer.dialect for peer in PEERS.values()} <= workload.programs.keys()
        assert f".output {workload.result}\n" in workload.programs["dl"]


def test_facts_are_always_the_same() -> None:
    for workload in QUICK.values():
        first, second = ({name: rows for name, rows in workload.facts()} for _ in range(2))
        for name, rows in first.items():
            assert np.array_equal(rows, second[name])
            assert len(np.unique(rows, axis=0)) == len(rows)


def test_closure_by_bit_sets() -> None:
    assert closure(EDGES, 3) == (answer_of_rows(np.array([[0, 1], [0, 2], [1, 2]])), 3)
    assert closure(dag_edges(500, 3_000), 500)[0] == QUICK["w1"].expected


@pytest.mark.parametrize("name", ["w5", "w6"])
def test_duckdb_gives_the_recorded_answers(tmp_path: Path, name: str) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    folder = tmp_path / name
    write_facts(QUICK[name], folder / "facts")
    one = measure_once(PEERS["duckdb"], QUICK[name], folder, 0, 60, 1)
    assert (one.status, one.answer) == ("ok", QUICK[name].expected), one.detail
    assert one.phases.cpu.keys() == {"start", "load", "reason", "write"}


def quick(monkeypatch: pytest.MonkeyPatch, script: str) -> Callable[..., int]:
    monkeypatch.setitem(command_line.QUICK, "w1", TINY)
    monkeypatch.setitem(PEERS, "evermat", fake("evermat", script))
    base = ["run", "--quick", "--engines", "evermat", "--workloads", "w1", "--repeat", "1"]
    return lambda out: command_line.main([*base, "--out", str(out)])


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert quick(monkeypatch, COPY)(tmp_path) == 0
    assert "| evermat | 0.500 |" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"quick.json", "quick.md"}
    assert quick(monkeypatch, "pass")(tmp_path) == 1
    with pytest.raises(SystemExit):
        command_line.main(["run", "--engines", "nobody"])
    assert "unknown: 'nobody'" in capsys.readouterr().err


def test_an_answer_is_rows_and_checksum() -> None:
    assert Answer(1, 2) != Answer(1, 3)
