"""The SparkSession of the command line, and jobs that can be watched and stopped."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evermat.core.errors import ProgramError, ResourceError
from evermat.spark.jobs import essential, is_full_disk, named, run_watched
from evermat.spark.launch import session as sessions
from evermat.spark.launch.jvm_log import essential_of_log
from evermat.spark.launch.settings import check_master, reach, settings
from tests.support.environment import LASTING

pytestmark = pytest.mark.spark

# --- without a JVM ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "master",
    [
        None, "local", "local[4]", "local[*]", "local[2,3]", "local-cluster[2,1,1024]", "spark://a:7077", "spark://a:1,b-c.d:2",
        "spark://[::1]:7077", "yarn", "k8s://https://host:6443", "k8s://host", "sc://host", "sc://host:15002/;token=x",
    ],
)  # fmt: skip
def test_masters(master: str | None) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master",
    ["", "sparc://x", "local[x]", "local[0]", "local [2]", "spark://", "spark://host", "yarn://x", "k8s://", "sc:host"],
)
def test_misspelled_masters(master: str) -> None:
    with pytest.raises(ProgramError) as caught:
        sessions.open_session(master=master, memory=1 << 30, conf={})
    assert str(caught.value) == (
        f"error[E200]: `{master}` is not the address of a Spark cluster\n"
        "  = help: known are local[*], local[N], spark://HOST:PORT, yarn, k8s://HOST:PORT and sc://HOST:PORT"
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("shuffle", "1", "`shuffle` is not a setting of Spark"),
        ("spark.", "1", "`spark.` is not a setting of Spark"),
        ("spark.a b", "1", "`spark.a b` is not a setting of Spark"),
        ("spark.driver.memory", "much", "`spark.driver.memory=much` is not possible"),
        ("spark.master", "yarn", "`spark.master` is not set in this way"),
        ("spark.x", "\0", "the value of `spark.x` has a NUL character in it"),
    ],
)
def test_wrong_settings(name: str, value: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        sessions.open_session(master=None, memory=1 << 30, conf={name: value})
    assert caught.value.problems[0].message == message


@pytest.fixture
def closed() -> Iterator[int]:
    """A port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize(
    "master",
    ["spark://127.0.0.1:{}", "spark://127.0.0.1:{0},127.0.0.1:{0}", "sc://127.0.0.1:{}", "k8s://http://127.0.0.1:{}"],
)
def test_a_cluster_that_is_not_there(closed: int, master: str) -> None:
    master = master.format(closed)
    with pytest.raises(ResourceError) as caught:
        reach(master)
    assert str(caught.value) == (
        f"error[E631]: the Spark cluster `{master}` cannot be reached: Connection refused (127.0.0.1, port {closed})"
    )


def test_one_of_several_masters_is_enough(closed: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        reach(f"spark://127.0.0.1:{closed},127.0.0.1:{listening.getsockname()[1]}")


def test_the_settings_of_users_count_more(tmp_path: Path) -> None:
    ours = settings(None, 8 << 30, {}, "name", tmp_path)
    assert ours["spark.master"] == "local[*]"
    assert ours["spark.driver.memory"] == "2048m"
    assert ours["spark.ui.enabled"] == "false"
    theirs = settings("local[2]", 8 << 30, {"spark.ui.enabled": "true", "spark.driver.memory": "1g"}, "n", tmp_path)
    assert (theirs["spark.master"], theirs["spark.ui.enabled"], theirs["spark.driver.memory"]) == (
        "local[2]",
        "true",
        "1g",
    )
    far = settings("spark://a:1", 8 << 30, {}, "name", tmp_path)
    assert not {"spark.ui.enabled", "spark.driver.host", "spark.sql.shuffle.partitions", "spark.local.dir"} & far.keys()


@pytest.mark.parametrize(
    ("said", "essence"),
    [
        ("Error occurred during initialization of VM\nToo small maximum heap\n", "Too small maximum heap"),
        ("WARNING: Using incubator modules\nInvalid maximum heap size: -Xmx1x\nError: Could not create the Java Virtual Machine.\n", "Invalid maximum heap size: -Xmx1x"),
        ('Exception in thread "main" org.apache.spark.SparkException: When running\n\tat a.b.C(D.scala:1)\n', "When running"),
        ("12:00:00 ERROR SparkContext: Error initializing\njava.lang.A: b\n\tat x\nCaused by: java.io.IOException: disk\n\t... 3 more\n", "disk"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_jvm_says(said: str, essence: str) -> None:
    assert essential_of_log(said) == essence


def test_the_essence_of_errors() -> None:
    java = (
        "An error occurred while calling o42.parquet.\n: org.apache.spark.SparkException: Job aborted.\n\tat x.y(Z.scala:1)\n"
        "Caused by: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to f. SQLSTATE: 58030\n"
        "\tat x.y(Z.scala:1)\nCaused by: java.io.IOException: No space left on device\n\t... 14 more\n"
    )
    assert essential(RuntimeError(java)) == "No space left on device"
    assert is_full_disk(RuntimeError(java))
    outer = RuntimeError("outer")
    outer.__cause__ = OSError(28, "No space left on device")
    assert is_full_disk(outer) and not is_full_disk(RuntimeError("disk"))
    assert (
        essential(RuntimeError("[PATH_NOT_FOUND] Path does not exist: x. SQLSTATE: 42K03")) == "Path does not exist: x."
    )
    rpc = '<_InactiveRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = "No token"\n\tdebug = "x"\n>'
    assert essential(RuntimeError(rpc)) == "No token"
    assert essential(MemoryError()) == "MemoryError"
    assert len(essential(ValueError("x" * 10_000))) < 1000


# --- with one JVM for all --------------------------------------------------------------------------------------


def description(spark: Any) -> str | None:
    return spark.sparkContext.getLocalProperty("spark.job.description")


def test_jobs_are_named(spark: Any) -> None:
    before = description(spark)
    with named(spark, "reads, and writes"):
        assert description(spark) == "evermat: reads, and writes"
        assert run_watched(spark, lambda: description(spark)) == "evermat: reads, and writes"
        with pytest.raises(KeyError), named(spark, "inner"):
            raise KeyError
        assert description(spark) == "evermat: reads, and writes"
    assert description(spark) == before


def test_watching_returns_and_raises_what_the_action_does(spark: Any) -> None:
    assert run_watched(spark, spark.range(7).count) == 7
    with pytest.raises(Exception, match="nowhere") as caught:
        run_watched(spark, lambda: spark.read.parquet("/nowhere"))
    assert essential(caught.value) == "Path does not exist: file:/nowhere."

    def fail(_batches: Any) -> Any:
        raise ValueError("no good")
        yield

    with pytest.raises(Exception, match="no good") as caught:
        run_watched(spark, spark.range(3).mapInArrow(fail, "x long").collect)
    assert essential(caught.value) == "ValueError: no good"


def slow(spark: Any) -> Any:
    def wait(batches: Any) -> Any:
        time.sleep(60)
        yield from batches

    return spark.range(0, 8, 1, 4).mapInArrow(wait, "id long")


def test_a_job_is_cancelled_when_the_check_raises(spark: Any) -> None:
    seen: list[str] = []
    begun = time.monotonic()

    def check() -> None:
        if seen:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_watched(spark, slow(spark).collect, progress=seen.append, check=check)
    assert seen[0] == "0 of 4 tasks"
    assert time.monotonic() - begun < 30
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
    assert not [thread for thread in threading.enumerate() if thread.name == "evermat-spark"]
    assert spark.range(5).count() == 5  # the session is as good as before


def test_a_second_session_is_one_of_the_same_spark(spark: Any) -> None:
    given: dict[str, Any] = {"master": None, "memory": 1 << 30}
    with sessions.session(**given, conf={"spark.sql.shuffle.partitions": "3"}) as second:
        assert second is not spark
        assert second.sparkContext is spark.sparkContext
        assert second.conf.get("spark.sql.shuffle.partitions") == "3"
    with pytest.raises(ProgramError) as caught, sessions.session(**given, conf={"spark.sql.shuffle.partitions": "x"}):
        pass
    assert caught.value.problems[0].message == "`spark.sql.shuffle.partitions=x` is not possible"
    with pytest.raises(ResourceError) as failed, sessions.session(**given, conf={}) as second:
        second.read.parquet("/nowhere")
    assert str(failed.value) == "error[E620]: Spark could not do its work: Path does not exist: file:/nowhere."
    assert spark.range(2).count() == 2


# --- whole processes -------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has neither Java nor pandas; `tmp` and `work` in the folder are empty."""
    for name in ("programs", "tmp", "work", "modules"):
        (tmp_path / name).mkdir()
    # `chmod` is what Hadoop sets permissions with.
    for program in ("sh", "bash", "dirname", "basename", "readlink", "uname", "ps", "head", "cat", "chmod"):
        found = shutil.which(program)
        if found:
            (tmp_path / "programs" / program).symlink_to(found)
    (tmp_path / "modules" / "pandas.py").write_text('raise ModuleNotFoundError("no pandas here", name="pandas")\n')
    return {
        "PATH": str(tmp_path / "programs"),
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "modules"), *sys.path]),
    }


def start(place: dict[str, str], tmp_path: Path, script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path / "work",
        env=place,
    )


def nothing_is_left(tmp_path: Path) -> None:
    assert list((tmp_path / "work").iterdir()) == []
    until = time.monotonic() + 5  # Python's workers notice that the JVM is gone, and go
    while ours(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert ours(tmp_path) == []
    assert list((tmp_path / "tmp").iterdir()) == []


def ours(tmp_path: Path) -> list[str]:
    """The processes that have this test's environment."""
    mark = f"TMPDIR={tmp_path / 'tmp'}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


WITHOUT_JAVA = """
import sys
import pyarrow as pa
from evermat.spark.launch.session import session

from pyspark.sql.functions import udf

with session(master=None, memory=1 << 30, conf={}) as spark:
    spark.createDataFrame(pa.table({"x": [1, 2, 3]})).write.parquet("../home/x.parquet")
    read = spark.read.parquet("../home/x.parquet")
    double = udf(lambda x: 2 * x, "long", useArrow=False)
    assert sorted(read.select(double("x")).toArrow().column(0).to_pylist()) == [2, 4, 6]
    assert read.groupBy("x").count().collect()
assert "pandas" not in sys.modules
"""


@LASTING
def test_a_machine_without_java_and_pandas(place: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    process = start(place, tmp_path, WITHOUT_JAVA)
    assert process.communicate(timeout=300) == ("", "")
    assert process.returncode == 0
    nothing_is_left(tmp_path)


INTERRUPTED = """
import signal, time
from evermat.spark.jobs import run_watched
from evermat.spark.launch.session import session

from pyspark.sql.functions import udf

handler = signal.getsignal(signal.SIGINT)
try:
    with session(master="local[2]", memory=1 << 30, conf={}) as spark:
        assert signal.getsignal(signal.SIGINT) is handler
        told = []
        def progress(text):
            told or print("runs", flush=True)
            told.append(text)
        wait = udf(lambda number: time.sleep(600), "long", useArrow=False)
        run_watched(spark, spark.range(4).select(wait("id")).collect, progress=progress)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_ctrl_c_leaves_nothing_behind(place: dict[str, str], tmp_path: Path) -> None:
    process = start(place | {"PATH": os.environ["PATH"]}, tmp_path, INTERRUPTED)
    assert process.stdout is not None
    assert process.stdout.readline() == "runs\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=200) == ("interrupted\n", "")
    assert process.returncode == 0
    nothing_is_left(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_start_that_is_interrupted_leaves_nothing_behind(place: dict[str, str], tmp_path: Path) -> None:
    process = start(place, tmp_path, INTERRUPTED)
    while not any("org.apache.spark" in command for command in ours(tmp_path)):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=200) == ("interrupted\n", "")
    nothing_is_left(tmp_path)


FAILING = """
import os, signal
from evermat.core.errors import EvermatError
from evermat.spark.launch import session as sessions

def attempt(conf, action):
    try:
        with sessions.session(master=None, memory=1 << 30, conf=conf) as spark:
            action(spark)
    except EvermatError as error:
        print(error, flush=True)

def kill(spark):
    os.kill(sessions._running.process.pid, signal.SIGKILL)
    spark.range(3).collect()

attempt({"spark.driver.memory": "1m"}, None)
attempt({"spark.driver.port": "x"}, None)
attempt({}, kill)
"""


def test_what_goes_wrong_is_said_in_a_line(place: dict[str, str], tmp_path: Path) -> None:
    process = start(place, tmp_path, FAILING)
    out, err = process.communicate(timeout=300)
    assert err == ""
    assert out.splitlines() == [
        "error[E620]: Spark could not start: Too small maximum heap",
        "error[E200]: `spark.driver.port=x` is not possible",
        "  = help: The value 'x' in the config \"spark.driver.port\" is invalid. It should be a/an 'int' value.",
        "error[E632]: Spark has ended unexpectedly: killed by SIGKILL",
    ]
    nothing_is_left(tmp_path)
