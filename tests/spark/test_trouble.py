"""The Spark engine when things go wrong: full disks, limits, signals; and facts that are spread unevenly."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import evermat
from evermat.spark.engine.tasks import pivot_fixpoint
from tests.runtime.test_disk_full import small_disk
from tests.spark.test_session import nothing_is_left, ours, place
from tests.spark.test_standalone import HOLDING
from tests.support.commands import Evermat
from tests.support.environment import LASTING, LONG
from tests.support.in_process import assert_files_right
from tests.support.updates import facts_of

__all__ = ["place"]

pytestmark = pytest.mark.spark

PLACES = ("pivot", "cluster")

CLOSURE = """
.decl edge(x:number, y:number) .input edge
.decl path(x:number, y:number) .output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

RNG = Random(0)
LAYERS = [[RNG.randrange(1 << 60) for _ in range(100)] for _ in range(6)]  # numbers that no compression makes small
EDGES = [(x, y) for here, there in pairwise(LAYERS) for x in here for y in RNG.sample(there, 6)]

# --- a full disk -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", PLACES if LONG else PLACES[1:])
def test_a_scratch_folder_that_becomes_full(
    where: str, spark: Any, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is read fits, and so do the first rounds; all paths do not."""
    monkeypatch.setattr("evermat.spark.session", lambda **_: nullcontext(spark))
    monkeypatch.setattr("evermat.cli.progress._LINE_SECONDS", 1e9)
    Path("program.dl").write_text(CLOSURE, encoding="utf-8")
    Path("edge.facts").write_text("".join(f"{x}\t{y}\n" for x, y in EDGES), encoding="utf-8")
    options = ["--engine", "spark", "--place", where, "-D", "out", "--stats", "stats.json", "--state", "state"]
    options += ["--algorithm", "seminaive"]
    with small_disk(tmp_path / "disk", "600k") as disk:
        done = evermat_command("run", "program.dl", *options, "--scratch", disk)
        assert (done.code, done.out) == (6, "")
        assert re.fullmatch(f"error.E600.: cannot write `{disk}/.*`: No space left on device\n  = note: .*\n", done.err)
        assert list(disk.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"program.dl", "edge.facts", "disk"}


@pytest.mark.parametrize(
    "more",
    [
        pytest.param([(y, x) for y, x in enumerate(2 * LAYERS[0])], marks=LASTING, id="by what is derived"),
        pytest.param([(x, y) for x in LAYERS[-1] for y in range(200)], id="by what is given"),
    ],
)
def test_an_update_when_the_scratch_folder_is_full(more: list[tuple[int, int]], spark: Any, tmp_path: Path) -> None:
    """It did not happen, and happens once there is room again."""
    program = evermat.Program.parse(CLOSURE)
    with small_disk(tmp_path / "disk", "4m") as disk:
        with program.materialise({"edge": EDGES}, engine=spark, place="cluster", scratch=disk) as m:
            before = facts_of(m)
            with (disk / "full").open("wb") as file:
                left = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
                file.write(bytes(left - (200 << 10)))
            with pytest.raises(evermat.ResourceError) as caught:
                m.update(insert={"edge": more})
            assert "No space left on device" in str(caught.value) and str(disk) in str(caught.value)
            del caught  # its traceback refers to sets of facts, and these to files
            assert facts_of(m) == before
            (disk / "full").unlink()
            m.update(insert={"edge": more})
            assert facts_of(m) == facts_of(program.materialise({"edge": EDGES + more}))
            assert_files_right(m)
        assert list(disk.iterdir()) == []


# --- limits ----------------------------------------------------------------------------------------------------

# Nothing ends by itself, by rounds or by the column that is handed on.
ENDLESS = """
.decl seed(k:number, x:number)
.decl n(k:number, x:number)
n(k, x) :- seed(k, x).
n(k, x + 1) :- n(k, x), x < 1000000000000.
"""


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"limit_seconds": 1.5}, "the limit of 1.5 seconds is reached"),
        ({"limit_rounds": 5}, "the limit of 5 rounds is reached"),
        ({"limit_facts": 50}, "the limit of 50 facts is reached"),
    ],
    ids=["seconds", "rounds", "facts"],
)
def test_limits(where: str, limits: dict[str, Any], message: str, spark: Any, tmp_path: Path) -> None:
    program = evermat.Program.parse(ENDLESS)
    seeds = [(k, 0) for k in range(20)]
    begun = time.monotonic()
    with pytest.raises(evermat.LimitError) as caught:
        program.materialise({"seed": seeds}, engine=spark, place=where, scratch=tmp_path / "scratch", **limits)
    assert caught.value.problems[0].message == message
    # The others end by what they count: how long that takes says how busy the machine is.
    assert "limit_seconds" not in limits or time.monotonic() - begun < 30
    assert list((tmp_path / "scratch").iterdir()) == []
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []


# One task looks at ten thousand million pairs, and finds nothing.
HEAVY = """
.decl a(x:number)
.decl b(x:number)
.decl r(x:number)
r(x) :- a(x), b(y), x + y < 0 - 1.
"""


@pytest.mark.parametrize("where", PLACES if LONG else PLACES[:1])
def test_a_limit_ends_a_task_that_is_busy(where: str, spark: Any) -> None:
    numbers = pa.table({"x": range(100_000)})
    begun = time.monotonic()
    with pytest.raises(evermat.LimitError, match=r"the limit of 4\.0 seconds is reached"):
        evermat.Program.parse(HEAVY).materialise(
            {"a": numbers, "b": numbers}, engine=spark, place=where, limit_seconds=4.0
        )
    assert time.monotonic() - begun < 30
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []


@pytest.mark.parametrize("where", PLACES if LONG else PLACES[1:])
def test_limits_of_updates(where: str, spark: Any) -> None:
    """Whichever is reached, the state is as before, and as good."""
    program = evermat.Program.parse(ENDLESS)
    with program.materialise({"seed": []}, engine=spark, place=where) as m:
        insert = {"seed": [(1, 10**12 - 5), (2, 0)]}
        for limits in ({"limit_seconds": 2.0}, {"limit_rounds": 3}, {"limit_facts": 5}):
            with pytest.raises(evermat.LimitError):
                m.update(insert=insert, **limits)
            assert facts_of(m) == {"seed": set(), "n": set()}
        m.update(insert={"seed": insert["seed"][:1]})
        assert len(m["n"]) == 6
        assert_files_right(m)


# --- uneven facts ----------------------------------------------------------------------------------------------

UNEVEN = """
.decl edge(x:number, y:number)
.decl path(x:number, y:number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl degree(x:number, n:number)
degree(x, n) :- path(x, _), n = count : { path(x, _) }.
.decl leaf(y:number)
leaf(y) :- edge(_, y), !edge(y, _).
"""


@pytest.mark.parametrize(
    ("where", "room"),
    [
        pytest.param("pivot", None, id="pivot"),
        pytest.param("pivot", 10_000, id="outgrown"),
        pytest.param("cluster", None, marks=LASTING, id="cluster"),
    ],
)
def test_a_hub(where: str, room: int | None, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of all edges begin at one node, and half of all paths; many others lead there."""
    hub, leaves = 0, range(1, 20_001)
    edges = [(hub, y) for y in leaves] + [(x, x + 100_000) for x in leaves] + [(-x, hub) for x in range(1, 4)]
    if room is not None:
        monkeypatch.setattr(pivot_fixpoint, "_ROOM", room)
    program = evermat.Program.parse(UNEVEN)
    with program.materialise({"edge": edges}, engine=spark, place=where) as m:
        memory = program.materialise({"edge": edges})
        assert facts_of(m) == facts_of(memory)
        (found,) = (s["place"] for s in m.stats["strata"] if "path" in s["relations"])
        assert found == {"cluster": "rounds"}.get(where, where if room is None else "pivot, then rounds")
        if where == "pivot":
            return
        change: dict[str, Any] = {"insert": {"edge": [(200_000, hub)]}, "delete": {"edge": [(-1, hub), (hub, 7)]}}
        m.update(**change)
        memory.update(**change)
        assert facts_of(m) == facts_of(memory)


# --- signals ---------------------------------------------------------------------------------------------------

COMMAND = (
    HOLDING
    + """
from evermat.cli.main import main
folder = Path(sys.argv.pop(1))
hold("derive path for I|close path", 1, -1, "before", folder)
main()
"""
)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@LASTING
@pytest.mark.parametrize("where", PLACES)
def test_ctrl_c(where: str, place: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "program.dl").write_text(CLOSURE, encoding="utf-8")
    (tmp_path / "home" / "edge.facts").write_text("1\t2\n2\t3\n", encoding="utf-8")
    options = ["-F", "../home", "--engine", "spark", "--master", "local[2]", "--place", where, "--scratch", "../tmp"]
    # Shells have what runs in the background ignore Ctrl-C; these tests may run there.
    attend = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(tmp_path / "home"), "run", "../home/program.dl", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path / "work",
        env={**place, "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},  # pandas is there
        preexec_fn=attend,
    )
    until = time.monotonic() + 120
    while not list((tmp_path / "home").glob("runs-*")):
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.05)
    assert ours(tmp_path) and list((tmp_path / "tmp").iterdir())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith("interrupted: nothing was written\n") and "Traceback" not in err
    nothing_is_left(tmp_path)
