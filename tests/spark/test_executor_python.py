"""The Python of tasks: what is wrong with it is said in one error that names it; and what a look at a cluster shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evermat.spark import python_probe
from evermat.spark.cluster_view import cluster_report
from evermat.spark.executor_python import python_failure
from tests.support.environment import LASTING

REST = (
    "\n  = note: `PYSPARK_PYTHON` or `--conf spark.pyspark.python=…` names the Python of executors"
    "\n  = help: docs/deployment.md has a recipe for executors"
)
STARTING = "\tat org.apache.spark.api.python.PythonWorkerFactory.create(PythonWorkerFactory.scala:100)\n"
TRACEBACK = "Traceback (most recent call last):\n  File x\n"
PROGRAM = """
.decl edge(x:symbol, y:symbol) .input edge
.decl path(x:symbol, y:symbol) .output path
path(x, y) :- edge(x, y).
"""


@pytest.mark.parametrize(
    ("text", "python", "why"),
    [
        (f'java.io.IOException: Cannot run program "/no/py": error=2, No such file or directory\n{STARTING}', "/no/py", "No such file or directory"),
        (f'IOException: Cannot run program "py" (in directory "/w"): Exec failed, error: 13 (Permission denied)\n{STARTING}', "py", "13 (Permission denied)"),
        (f"{TRACEBACK}ModuleNotFoundError: No module named 'evermat'\n", "python3", "No module named 'evermat'"),
        (f"{TRACEBACK}ImportError: cannot import name 'x' from 'numba'\n", "python3", "cannot import name 'x' from 'numba'"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run",
            "python3",
            "it is Python 3.12, but the driver runs Python 3.11",
        ),
        (
            f"SparkException: \nError from python worker:\n  /usr/bin/python3: No module named pyspark\nPYTHONPATH was:\n  /x\n{STARTING}",
            "python3",
            "/usr/bin/python3: No module named pyspark",
        ),
    ],
)  # fmt: skip
def test_reasons(text: str, python: str, why: str) -> None:
    error = python_failure(text, "python3")
    assert str(error) == f"error[E626]: tasks cannot run with the Python `{python}`: {why}{REST}"
    assert error is not None and error.exit_code == 6


@pytest.mark.parametrize(
    "text",
    [
        'Cannot run program "/bin/tool": error=2, No such file or directory',  # of something else
        f"{TRACEBACK}ValueError: No module named 'x'",
        "ModuleNotFoundError: No module named 'x'",  # of the driver
        "Python worker exited unexpectedly",
    ],
)
def test_other_reasons(text: str) -> None:
    assert python_failure(text, "python3") is None


@pytest.mark.spark
@pytest.mark.parametrize("setting", [False, pytest.param(True, marks=LASTING)])
def test_a_python_that_is_missing(tmp_path: Path, setting: bool) -> None:
    Path("p.dl").write_text(PROGRAM)
    Path("edge.facts").write_text("a\tb\n")
    command = [sys.executable, "-m", "evermat", "run", "p.dl", "--engine", "spark", "--master", "local[1]"]
    options = ["--conf", "spark.pyspark.python=/no/python"] if setting else []
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable if setting else "/no/python"}
    done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=False)
    said = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("read edge: "))
    told = f"error[E626]: tasks cannot run with the Python `/no/python`: No such file or directory{REST}"
    assert (done.returncode, done.stdout, said) == (6, "", told)
    assert not Path("path.csv").exists()


def test_a_look_at_a_cluster(spark: Any, tmp_path: Path) -> None:
    lines = cluster_report(spark, tmp_path / "scratch", 7, 1000).splitlines()
    version = ".".join(map(str, sys.version_info[:3]))
    assert lines[0] == f"cluster:       local[2], Spark {spark.version}"
    assert lines[1].startswith(f"driver:        Python {version}, Java ")
    assert lines[2].startswith(f"executors:     Python {version}, Evermat 0.1.0: `") and lines[2].endswith("`")
    assert lines[3:] == [
        "buckets:       7, by `--buckets`",
        "task memory:   not bounded: tasks run on this machine",
        "broadcast:     1,000 facts of one relation, by `--broadcast`",
        f"scratch:       {tmp_path}/scratch, an executor sees it",
    ]
    assert list((tmp_path / "scratch").iterdir()) == []
    assert "buckets:       4, twice the cores that there are or will be" in cluster_report(spark)


def test_sessions_are_asked_once(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session = spark.newSession()
    python_probe.check_python(session)
    monkeypatch.setattr(python_probe, "run_named", None)  # it would be called
    python_probe.check_python(session)
