"""On a cluster of real processes: the pipeline runs there, and what a machine takes with it is computed again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.spark.standalone import PATIENCE, Cluster, cluster, processes_of
from tests.support.environment import LASTING, LONG

pytestmark = pytest.mark.spark

PROGRAM = """
.decl edge(x:symbol, y:symbol) .input edge(filename="edges/")
.decl path(x:symbol, y:symbol) .output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

# Two stages. The tasks of the second say which session they are in, which is that of their worker, and wait.
JOB = """
import os, sys, time
from pathlib import Path
from pyspark.sql import SparkSession

place = Path(sys.argv[1])

def tell_and_wait(batches):
    (place / f"runs-{os.getsid(0)}").touch()
    until = time.monotonic() + 60
    while not (place / "go").exists() and time.monotonic() < until:
        time.sleep(0.05)
    yield from batches

spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "4").config("spark.sql.adaptive.enabled", "false").getOrCreate()
counted = spark.range(0, 40_000, 1, 4).selectExpr("id % 100 AS k", "id").groupBy("k").sum("id")
print(sorted(tuple(row) for row in counted.mapInArrow(tell_and_wait, "k long, s long").collect()))
spark.stop()
"""


def test_the_pipeline_on_a_cluster(running: Cluster) -> None:
    Path("program.dl").write_text(PROGRAM, encoding="utf-8")
    Path("edges").mkdir()
    for i in range(4):
        Path(f"edges/{i}.csv").write_text(f"n{i}\tn{i + 1}\n", encoding="utf-8")
    options = ["--engine", "spark", "--master", running.master, "--scratch", "scratch", "--stats", "stats.json"]
    state = running.state()
    before = {app["id"] for app in [*state["activeapps"], *state["completedapps"]]}
    done = subprocess.run(
        [sys.executable, "-m", "evermat", "run", "program.dl", *options],
        env=running.environment,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    said = done.stderr.splitlines()
    said = [
        line for line in said if not line.startswith(("read edge: ", "stratum "))
    ]  # how far it is, if it takes long
    assert (done.returncode, done.stdout, said) == (0, "", [])
    expected = sorted(f"n{i}\tn{j}" for i in range(5) for j in range(i + 1, 5))
    assert Path("path.csv").read_text(encoding="utf-8").splitlines() == expected
    assert json.loads(Path("stats.json").read_text(encoding="utf-8"))["engine"] == "spark"
    assert [app["name"] for app in running.state()["completedapps"] if app["id"] not in before] == ["program.dl"]
    assert list(Path("scratch").iterdir()) == []


def test_inputs_that_spark_reads(running: Cluster) -> None:
    """Executors read text at a URI in ranges of bytes, and formats of Spark's; errors name the file as the user does."""
    text = PROGRAM.replace(
        'edge(filename="edges/")', 'edge(filename="edges/") .input edge(IO=spark, format=csv, path="more")'
    )
    Path("program.dl").write_text(text, encoding="utf-8")
    for name in ("edges", "more"):
        Path("in", name).mkdir(parents=True)
    for i in range(4):
        Path(f"in/edges/{i}.csv").write_text(f"n{i}\tn{i + 1}\n", encoding="utf-8")
    Path("in/more/r.csv").write_text("n4,n5\n", encoding="utf-8")
    link = f"spark.hadoop.fs.viewfs.mounttable.far.link./in={Path('in').resolve().as_uri()}"
    options = ["--engine", "spark", "--master", running.master, "--scratch", "scratch", "-F", "viewfs://far/in"]
    for place in ("auto", "cluster"):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "evermat",
                "run",
                "program.dl",
                *options,
                "--conf",
                link,
                "--place",
                place,
                "-D",
                place,
            ],
            env=running.environment,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        if place == "auto":
            assert done.returncode == 0, done.stderr
            expected = sorted(f"n{i}\tn{j}" for i in range(6) for j in range(i + 1, 6))
            assert Path("auto/path.csv").read_text(encoding="utf-8").splitlines() == expected
            Path("in/edges/3.csv").write_text("n3\tn4\nn3\n", encoding="utf-8")
        else:
            assert done.returncode == 3 and " --> viewfs://far/in/edges/3.csv:2:3" in done.stderr, done.stderr
    assert list(Path("scratch").iterdir()) == []


@pytest.mark.skipif(not LONG, reason="of Spark alone, and long")
def test_a_worker_is_killed_in_the_middle_of_a_job(running: Cluster, tmp_path: Path) -> None:
    job = subprocess.Popen(
        [sys.executable, "-c", JOB, str(tmp_path)],
        env=running.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        # The one that goes takes a running task with it and, unless it came late, what it has stored of the first stage.
        running.wait_until(lambda: len(list(tmp_path.glob("runs-*"))) == 2, "both workers run the second stage")
        assert len(running.executors(0)) == 1
        running.kill_worker(0)
        assert running.executors(0) == [] and len(running.executors(1)) == len(running.alive()) == 1
        (tmp_path / "go").touch()
        out, err = job.communicate(timeout=2 * PATIENCE)
    finally:
        job.kill()
        job.wait()
        added = running.start_worker()
    assert job.returncode == 0, err
    sums = [(k, sum(range(k, 40_000, 100))) for k in range(100)]
    assert out == f"{sums}\n"
    assert added == len(running.workers) - 1 and len(running.alive()) == 2


# --- workers that go in the middle of reasoning ----------------------------------------------------------------


REASONING = """
.decl edge(x:symbol, y:symbol)
.decl start(x:symbol)
.decl path(x:symbol, y:symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl apart(x:symbol, y:symbol)
apart(x, y) :- start(x), edge(_, y), !path(x, y).
"""

Edges = list[tuple[str, str]]

# Tasks of the chosen stage of the chosen job say which session they are in, which is that of their worker, and wait: before
# they do anything, or when they have done everything but are not done. Every job tells its name and when it ran.
HOLDING = """
import json, os, re, sys, time
from pathlib import Path
import numpy as np
import pyarrow as pa
from evermat.spark.engine.job_runner import Cluster
from evermat.spark.engine.tasks.serialization import pack, unpack

class Held:
    def __init__(self, stage, when, folder):
        self.stage, self.when, self.folder = stage, when, folder

    def __call__(self, batches):
        if self.when == "before":
            self.wait()
        yield from self.stage(batches)
        if self.when == "after":
            self.wait()

    def wait(self):
        (self.folder / f"runs-{os.getsid(0)}-{os.getpid()}").touch()
        until = time.monotonic() + 60
        while not (self.folder / "go").exists() and time.monotonic() < until:
            time.sleep(0.05)

class Reordered:
    # Sends the same facts in an order that no other attempt has, as happens where another process has other ids for symbols.
    def __init__(self, stage, folder):
        self.stage, self.folder = stage, folder

    def __call__(self, batches):
        (self.folder / f"sends-{os.getsid(0)}").touch()
        rng = np.random.default_rng()
        for batch in self.stage(batches):
            payloads = [
                bytes(payload) if channel < 0 else pack((table := unpack(payload)).take(rng.permutation(table.num_rows)))
                for channel, payload in zip(batch.column(1).to_pylist(), batch.column(2).to_pylist())
            ]
            yield pa.RecordBatch.from_arrays([*batch.columns[:2], pa.array(payloads, pa.binary())], names=batch.schema.names)

def hold(pattern, number, stage, when, folder):
    # Holds the tasks of a stage of the job which is the so many-th of those whose name fits.
    seen = []

    def run(self, what, tasks, stages, *more):
        stages = list(stages)
        begun = time.monotonic()
        if re.match(pattern, what):
            seen.append(what)
            if len(seen) == number:
                stages[stage] = Held(stages[stage], when, folder)
                stages[:-1] = [Reordered(one, folder) for one in stages[:-1]]
        try:
            return execute(self, what, tasks, stages, *more)
        finally:
            print(json.dumps({"job": what, "begun": begun, "ended": time.monotonic()}), flush=True)

    Cluster.execute = run

execute = Cluster.execute
"""

SCRIPT = (
    HOLDING
    + """
from pyspark.sql import SparkSession
import evermat
from tests.spark.test_standalone import REASONING, checksums, graph, update_of

folder, place, algorithm, moments = Path(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
for name in moments:
    (folder / name).mkdir()

def tell(m):
    print(json.dumps({"facts": checksums(m), "strata": [s["place"] for s in m.stats["strata"]]}), flush=True)

spark = SparkSession.builder.getOrCreate()
edges, starts = graph()
given = {"edge": edges, "start": starts}
if place == "driver":  # which asks Spark for nothing but what it is given
    frame = spark.createDataFrame(edges, "x string, y string").repartition(4)
    given["edge"] = frame.mapInArrow(Held(iter, moments["input"], folder / "input").__call__, frame.schema)
if "fixpoint" in moments:
    hold(*moments["fixpoint"], folder / "fixpoint")
program, scratch = evermat.Program.parse(REASONING), folder / "scratch"
with program.materialise(given, engine=spark, place=place, scratch=scratch, algorithm="seminaive") as m:
    tell(m)
    if "update" in moments:
        hold(*moments["update"], folder / "update")
        delete, insert = update_of(edges)
        m.update(insert={"edge": insert}, delete={"edge": delete}, algorithm=algorithm)
        tell(m)
spark.stop()
"""
)


def graph() -> tuple[Edges, list[tuple[str]]]:
    """Layers of nodes, with edges from each to the next: many paths, and few rounds to find them; and some of the nodes."""
    layers, width, degree = (6, 220, 12) if LONG else (4, 200, 12)
    rng = Random(0)
    edges = [
        (f"n{layer}-{x}", f"n{layer + 1}-{y}")
        for layer in range(layers - 1)
        for x in range(width)
        for y in sorted(rng.sample(range(width), degree))
    ]
    return edges, [(f"n{layer}-{x}",) for layer in range(layers) for x in range(0, width, 10)]


def update_of(edges: Edges) -> tuple[Edges, Edges]:
    """Some of the edges, and some others between the same nodes."""
    rng = Random(1)
    last = max(y.split("-")[0] for _, y in edges)
    gone = rng.sample([edge for edge in edges if edge[1].startswith(last)], 40)
    come = {(x, rng.choice(gone)[1]) for x, _ in gone} - set(edges)
    return gone, sorted(come)


def expected(edges: Edges, starts: list[tuple[str]]) -> dict[str, list[int]]:
    """The checksums of what follows, found without the engine."""
    following: dict[str, set[str]] = {}
    for x, y in sorted(edges, reverse=True):  # from the last layer to the first
        following.setdefault(x, set()).update({y}, following.get(y, ()))
    ends = {y for _, y in edges}
    apart = {(x, y) for (x,) in starts for y in ends - following.get(x, set())}
    return checksums({"path": {(x, y) for x, ys in following.items() for y in ys}, "apart": apart})


def checksums(facts: Any) -> dict[str, list[int]]:
    """How many facts there are of the two relations that are derived, and a sum over them that no order changes."""
    return {
        name: [len(facts[name]), sum(zlib.crc32("\t".join(fact).encode()) for fact in facts[name])]
        for name in ("path", "apart")
    }


# A job by its name, which of those, which of its stages, and when its tasks wait. `close` and `derive` are reasoning.
CLOSING = ["close path", 1, 0, "after"]
ROUND = ["derive path for I", 3, -1, "after"]
CHANGE = ["derive path for", 2, -1, "after"]
MOMENTS: list[tuple[str, str, dict[str, Any]]] = [
    ("pivot", "none", {"fixpoint": CLOSING}),
]
MORE_MOMENTS: list[tuple[str, str, dict[str, Any]]] = [
    ("cluster", "dred-c", {"fixpoint": ROUND, "update": CHANGE}),
    ("driver", "none", {"input": "after"}),
    ("pivot", "dred-c", {"fixpoint": ["close path", 1, 0, "before"], "update": CHANGE}),
    ("pivot", "bf", {"update": CHANGE}),
    ("cluster", "none", {"fixpoint": ["derive path for I", 3, 0, "before"]}),
    ("cluster", "none", {"fixpoint": ["derive path for I", 3, 0, "after"]}),
    ("cluster", "bf", {"fixpoint": ["derive path for I", 3, -1, "before"], "update": [*CHANGE[:3], "before"]}),
]


@LASTING
@pytest.mark.parametrize(("place", "algorithm", "moments"), [*MOMENTS, *(MORE_MOMENTS if LONG else [])])
def test_a_worker_is_killed_in_the_middle_of_reasoning(
    running: Cluster, tmp_path: Path, place: str, algorithm: str, moments: dict[str, Any]
) -> None:
    """At each of the moments one of two workers goes, with tasks and all that it has stored; a new one comes."""
    killed = []
    with starting(running, SCRIPT, str(tmp_path), place, algorithm, json.dumps(moments)) as driver:
        for moment in moments:
            folder = tmp_path / moment
            found = running.wait_until(lambda: ended(driver) or waiting(running, folder), "tasks wait")  # noqa: B023
            running.kill_worker(found[0])
            killed.append(time.monotonic())
            (folder / "go").touch()
            running.start_worker()
        driver.wait(5 * PATIENCE)
    assert driver.returncode == 0, Path("err.txt").read_text(encoding="utf-8")
    told = [json.loads(line) for line in Path("out.txt").read_text(encoding="utf-8").splitlines()]
    jobs = [line for line in told if "job" in line]
    for when in killed if place != "driver" else ():
        assert any(job["begun"] < when < job["ended"] for job in jobs), "no job was in its middle"
    edges, starts = graph()
    results = [expected(edges, starts)]
    if "update" in moments:
        gone, come = update_of(edges)
        results.append(expected([*(set(edges) - set(gone)), *come], starts))
    assert [line["facts"] for line in told if "facts" in line] == results
    assert told[-1]["strata"][1] == {"cluster": "rounds"}.get(place, place)
    assert list(tmp_path.glob("scratch/*")) == []


COMMAND = (
    HOLDING
    + """
from evermat.cli.main import main
folder, pattern = Path(sys.argv.pop(1)), sys.argv.pop(1)
hold(pattern, 1, 0, "before", folder)
main()
"""
)


@LASTING
def test_executors_that_are_lost_again_and_again(running: Cluster, tmp_path: Path) -> None:
    Path("program.dl").write_text(PROGRAM, encoding="utf-8")
    Path("edges").mkdir()
    Path("edges/0.csv").write_text("a\tb\nb\tc\n", encoding="utf-8")
    options = [
        "--engine",
        "spark",
        "--master",
        running.master,
        "--place",
        "cluster",
        "--scratch",
        "scratch",
        "-D",
        "out",
        "--algorithm",
        "seminaive",
    ]
    settings = ["--conf", "spark.task.maxFailures=2", "--stats", "stats.json"]
    with starting(running, COMMAND, str(tmp_path), "derive path", "run", "program.dl", *options, *settings) as driver:
        seen: set[Path] = set()
        until = time.monotonic() + 2 * PATIENCE
        while driver.poll() is None and time.monotonic() < until:
            for told in set(tmp_path.glob("runs-*")) - seen:
                seen.add(told)
                number = next(n for n, w in enumerate(running.workers) if w.session == int(told.name.split("-")[1]))
                for executor in running.executors(number):
                    os.kill(executor, signal.SIGKILL)
            time.sleep(0.05)
        assert driver.poll() == 6
    said = Path("err.txt").read_text(encoding="utf-8").splitlines()
    said = [line for line in said if not line.startswith(("read edge: ", "stratum "))]  # how far it is
    assert len(said) == 1
    # Either a task was lost too often, or what it had sent.
    assert said[0].startswith("error[E620]: Spark could not derive path for I: ")
    assert not Path("out").exists() and not Path("stats.json").exists()
    assert list(Path("scratch").iterdir()) == []


@contextmanager
def starting(running: Cluster, script: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that uses the cluster, for the block; what it says is in `out.txt` and `err.txt`."""
    with Path("out.txt").open("wb") as out, Path("err.txt").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments], env=running.environment, stdout=out, stderr=err
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen[bytes]) -> bool:
    """False, as long as the process runs: else it is told why not."""
    assert process.poll() is None, Path("err.txt").read_text(encoding="utf-8")
    return False


def waiting(running: Cluster, folder: Path) -> list[int]:
    """The workers whose tasks wait, if there are as many as can be; first those on which others depend for what they have sent."""
    waits, sends = ({int(path.name.split("-")[1]) for path in folder.glob(f"{what}-*")} for what in ("runs", "sends"))
    found = [number for number, worker in enumerate(running.workers) if worker.session in waits]
    return sorted(found, key=lambda n: running.workers[n].session not in sends) if len(found) == 2 else []


ELSEWHERE = "import os, subprocess; os.setpgid(0, 0); subprocess.run(['sleep', '600'])"  # as Python's workers do


@pytest.mark.parametrize(
    ("second", "end"),
    [((sys.executable, "-c", ELSEWHERE), "daemon.kill()"), (("sleep", "600"), "os.kill(os.getpid(), signal.SIGKILL)")],
)
def test_nothing_is_left(second: tuple[str, ...], end: str) -> None:
    """Neither of what a daemon has started, nor after a process that had no time to tidy up."""
    script = f"""
import os, signal, sys, time
from pathlib import Path
from tests.spark.standalone import Daemon, processes_of
daemon = Daemon("sleeper", ["sh", "-c", 'sleep 600 & "$@"', "sh", *{second!r}], dict(os.environ), Path())
while sum(command == "sleep 600" for command in processes_of(daemon.session).values()) < 2:
    time.sleep(0.05)
print(daemon.session, flush=True)
{end}
"""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, timeout=PATIENCE, check=False
    )
    until = time.monotonic() + PATIENCE
    while (left := processes_of(int(done.stdout))) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == {}


def test_a_block_that_fails(tmp_path: Path) -> None:
    sessions = []
    with pytest.raises(ZeroDivisionError), cluster(tmp_path, workers=0) as made:  # noqa: PT012
        sessions += [daemon.session for daemon in made.daemons]
        _ = 1 / 0
    assert [processes_of(session) for session in sessions] == [{}]
