"""Commands over a state directory: what they do, what they say, and how they end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import evermat
from tests.support.commands import Evermat
from tests.support.states import tree

CLOSURE = """\
.decl edge(x:symbol, y:symbol)
.input edge
.decl path(x:symbol, y:symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.output path
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evermat_command: Evermat) -> Path:
    """A working folder with a program and a state of one version: a → b → c."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "closure.dl").write_text(CLOSURE)
    (tmp_path / "edge.facts").write_text("a\tb\nb\tc\n")
    assert evermat_command("run", "closure.dl", "--state", "state") == (0, "", "")
    return tmp_path


def facts(version: int | None = None) -> dict[str, list[tuple[str, ...]]]:
    with evermat.open("state", version) as m:
        return {name: sorted(m[name]) for name in m}


def test_run_keeps_a_state_beside_its_outputs(folder: Path) -> None:
    assert (folder / "path.csv").read_text() == "a\tb\na\tc\nb\tc\n"
    assert facts() == {"edge": [("a", "b"), ("b", "c")], "path": [("a", "b"), ("a", "c"), ("b", "c")]}


def test_run_over_a_state_is_its_next_version(folder: Path, evermat_command: Evermat) -> None:
    (folder / "edge.facts").write_text("a\tb\nc\td\n")
    assert evermat_command("run", "closure.dl", "--state", "state").code == 0
    assert facts() == {"edge": [("a", "b"), ("c", "d")], "path": [("a", "b"), ("c", "d")]}
    assert facts(1)["path"] == [("a", "b"), ("a", "c"), ("b", "c")]
    last = evermat.versions("state")[-1]
    assert (last.number, last.inserted, last.deleted, last.facts) == (2, 2, 3, 4)


def test_run_that_cannot_keep_its_state_writes_nothing(folder: Path, evermat_command: Evermat) -> None:
    (folder / "path.csv").unlink()
    (folder / "other").mkdir()
    (folder / "other" / "file").write_text("mine")
    code, out, err = evermat_command("run", "closure.dl", "--state", "other")
    assert (code, out) == (5, "")
    assert err.startswith(f"error[E500]: `{folder}/other` is not a state of evermat\n")
    assert not (folder / "path.csv").exists()
    assert [path.name for path in (folder / "other").iterdir()] == ["file"]


def test_every_file_is_an_update(folder: Path, evermat_command: Evermat) -> None:
    (folder / "one.txt").write_text("+\tedge\tc\td\n-\tedge\ta\tb\n")
    (folder / "two.jsonl").write_text('{"op": "+", "relation": "edge", "values": ["a", "b"]}\n')
    done = evermat_command("update", "--state", "state", "one.txt", "two.jsonl", "--changes-out", "out.txt")
    assert done == (
        0,
        "",
        "version 2: one.txt: 3 facts inserted, 3 deleted\nversion 3: two.jsonl: 4 facts inserted, 0 deleted\n",
    )
    assert facts(2) == {"edge": [("b", "c"), ("c", "d")], "path": [("b", "c"), ("b", "d"), ("c", "d")]}
    assert len(facts()["path"]) == 6
    # What both did together: a → b went and came back.
    assert (folder / "out.txt").read_text() == "+\tedge\tc\td\n+\tpath\ta\td\n+\tpath\tb\td\n+\tpath\tc\td\n"


def test_one_fact_is_not_called_facts(folder: Path, evermat_command: Evermat) -> None:
    (folder / "c.txt").write_text("+\tedge\ta\tc\n")
    assert (
        evermat_command("update", "--state", "state", "c.txt").err == "version 2: c.txt: 1 fact inserted, 0 deleted\n"
    )


@pytest.mark.parametrize("algorithm", ["dred", "dred-c", "bf", "bf-c", "remat", "auto"])
def test_algorithms_and_stats(folder: Path, evermat_command: Evermat, algorithm: str) -> None:
    (folder / "c.txt").write_text("-\tedge\tb\tc\n")
    command = ("update", "--state", "state", "c.txt", "--algorithm", algorithm, "--stats", "stats.json")
    assert evermat_command(*command).code == 0
    assert facts()["path"] == [("a", "b")]
    stats = json.loads((folder / "stats.json").read_text())
    assert stats["algorithm"] == algorithm
    assert (stats["version"], stats["inserted"], stats["deleted"]) == (2, 0, 3)
    assert set(stats["seconds"]) == {"encode", "reason", "write"}


def test_changes_on_standard_input(folder: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"+\tedge\tc\ta\n")))
    assert evermat_command("update", "--state", "state", "-").code == 0
    assert ("c", "a") in evermat.open(folder / "state")["edge"]


def test_changes_on_standard_output_can_be_applied_elsewhere(folder: Path, evermat_command: Evermat) -> None:
    (folder / "c.txt").write_text("+\tedge\tc\ta\n")
    code, out, _ = evermat_command("update", "--state", "state", "c.txt", "--changes-out", "-")
    assert (code, out.splitlines()[0]) == (0, "+\tedge\tc\ta")
    assert len(out.splitlines()) == 7


def test_an_error_in_any_file_changes_nothing(folder: Path, evermat_command: Evermat) -> None:
    (folder / "good.txt").write_text("+\tedge\tc\td\n")
    (folder / "bad.txt").write_text("+\tedge\tx\n+\tedgy\tx\ty\n")
    code, out, err = evermat_command("update", "--state", "state", "good.txt", "bad.txt")
    assert (code, out) == (3, "")
    assert "bad.txt:1" in err
    assert "did you mean `edge`?" in err
    assert len(evermat.versions("state")) == 1


def test_unknown_algorithm(folder: Path, evermat_command: Evermat) -> None:
    (folder / "c.txt").write_text("")
    code, _, err = evermat_command("update", "--state", "state", "c.txt", "--algorithm", "dred_c")
    assert code == 2
    assert err == (
        "error[E270]: there is no algorithm `dred_c`\n"
        "  = note: the known ones are auto, counting, dred, dred-c, bf, bf-c, dred-c-mod, bf-c-mod, remat, bf-eq, remat-eq\n"
        "  = help: did you mean `dred-c`?\n"
    )


def test_a_limit_leaves_the_last_version(folder: Path, evermat_command: Evermat) -> None:
    (folder / "c.txt").write_text("".join(f"+\tedge\t{i}\t{i + 1}\n" for i in range(50)))
    code, _, err = evermat_command("update", "--state", "state", "c.txt", "--limit-rounds", 1)
    assert code == 4
    assert err.startswith("error[E400]")
    assert len(evermat.versions("state")) == 1
    assert len(facts()["edge"]) == 2


@pytest.mark.slow
def test_queries(folder: Path, evermat_command: Evermat) -> None:
    (folder / "c.txt").write_text("+\tedge\tc\td\n")
    assert evermat_command("update", "--state", "state", "c.txt").code == 0
    ask = ("query", "--state", "state")
    assert evermat_command(*ask, 'path("a", x)') == (0, "x\n-\nb\nc\nd\n", "")
    assert evermat_command(*ask, 'path("a", x)', "--version", 1, "--format", "csv") == (0, "x\nb\nc\n", "")
    assert evermat_command(*ask, 'path("a", x), edge(x, y), y != "c"', "--format", "jsonl").out == (
        '{"x": "c", "y": "d"}\n'
    )
    assert evermat_command(*ask, 'path("a", "d")').out == "true\n"
    assert evermat_command(*ask, 'path(_, "a")').out == "false\n"
    (folder / "x.parquet").write_bytes(
        subprocess.run(
            [sys.executable, "-m", "evermat", *ask, "edge(x, y)", "--format", "parquet"],
            check=True,
            capture_output=True,
        ).stdout
    )
    assert pq.read_table(folder / "x.parquet").to_pylist()[0] == {"x": "a", "y": "b"}


def test_questions_that_make_no_sense(folder: Path, evermat_command: Evermat) -> None:
    code, out, err = evermat_command("query", "--state", "state", "pth(x, y), x <")
    assert (code, out) == (2, "")
    assert "<query>:1" in err
    assert evermat_command("query", "--state", "state", "edge(x, y)", "--version", 7) == (
        5,
        "",
        "error[E505]: there is no version 7: the state has only version 1\n",
    )
    assert evermat_command("query", "--state", "nowhere", "edge(x, y)") == (
        5,
        "",
        f"error[E500]: `{folder}/nowhere` is not a state of evermat\n  = note: there is no such folder\n",
    )


def test_log_and_vacuum(folder: Path, evermat_command: Evermat) -> None:
    (folder / "c.txt").write_text("+\tedge\tc\td\n")
    assert evermat_command("update", "--state", "state", "c.txt", "--algorithm", "bf").code == 0
    code, out, _ = evermat_command("log", "--state", "state")
    assert code == 0
    head, one, two = (line.split() for line in out.splitlines())
    assert head == ["version", "time", "algorithm", "inserted", "deleted", "facts", "seconds"]
    assert (one[0], *one[3:7]) == ("1", "modular", "5", "0", "5")
    assert (two[0], *two[3:7]) == ("2", "bf", "4", "0", "9")
    code, _, err = evermat_command("vacuum", "--state", "state", "--keep", 1)
    assert code == 0
    assert re.fullmatch(r"[\d,]+ files with [\d,]+ bytes removed\n", err)
    assert evermat_command("query", "--state", "state", "edge(x, y)", "--version", 1) == (
        5,
        "",
        "error[E506]: version 1 is no longer kept: the state has only version 2\n",
    )
    assert len(facts()["path"]) == 6


def test_no_version_at_all_cannot_be_kept(folder: Path, evermat_command: Evermat) -> None:
    """Nothing is computed or written."""
    (folder / "c.txt").write_text("+\tedge\tc\td\n")
    (folder / "src").mkdir()
    (folder / "src" / "c.txt").write_text("+\tedge\tc\td\n")
    (folder / "path.csv").unlink()
    before = tree(folder / "state")
    commands = (
        ("run", "closure.dl", "--state", "state", "--engine", "memory"),
        ("run", "closure.dl", "--state", "new", "--engine", "memory"),
        ("update", "--state", "state", "c.txt"),
        ("stream", "--state", "state", "--source", "src", "--once"),
        ("vacuum", "--state", "state"),
    )
    for command, keep in product(commands, ["0", "0d", "-1", "soon"]):
        assert evermat_command(*command, f"--keep={keep}") == (
            2,
            "",
            f"error[E274]: `{keep}` does not say how many versions to keep\n"
            "  = note: write a number from 1 on, or an age: `12h`, `30d`, `4w`\n",
        )
        assert tree(folder / "state") == before
        assert not (folder / "new").exists()
        assert not (folder / "path.csv").exists()


def test_one_writer_at_a_time(folder: Path, evermat_command: Evermat) -> None:
    (folder / "c.txt").write_text("+\tedge\tc\td\n")
    with evermat.open("state", write=True):
        code, out, err = evermat_command("update", "--state", "state", "c.txt")
        assert evermat_command("query", "--state", "state", 'edge("a", x)').out == "x\n-\nb\n"
    assert (code, out) == (5, "")
    assert err == (
        f"error[E502]: the state `{folder}/state` is locked by another writer\n"
        "  = note: a state has one writer at a time\n"
    )
    assert evermat_command("update", "--state", "state", "c.txt").code == 0


def test_damage_is_named(folder: Path, evermat_command: Evermat) -> None:
    (part,) = (folder / "state" / "relations" / "path").rglob("*.parquet")
    raw = bytearray(part.read_bytes())
    raw[len(raw) // 2] ^= 1
    part.write_bytes(raw)
    code, out, err = evermat_command("query", "--state", "state", "path(x, y)")
    assert (code, out) == (5, "")
    assert err == f"error[E503]: `{part}` is damaged: its checksum is wrong\n  = note: nothing was read from it\n"


@pytest.mark.slow
def test_terminated_while_it_reads(folder: Path) -> None:
    """The first file was read, but nothing is applied before all are."""
    (folder / "c.txt").write_text("+\tedge\tc\td\n")
    os.mkfifo(folder / "pipe.txt")
    command = [sys.executable, "-m", "evermat", "update", "--state", "state", "c.txt", "pipe.txt"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        with (folder / "pipe.txt").open("wb"):  # opens when the other side does
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 143
        assert process.stderr.read() == b"terminated: nothing was written\n"
    assert len(evermat.versions("state")) == 1
