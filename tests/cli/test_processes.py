"""What only a process of its own shows: signals, closed pipes, full disks, cached kernels."""

from __future__ import annotations

import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import evermat

EVERMAT = [sys.executable, "-m", "evermat"]
ENDLESS = ".decl n(x:number)\n.input n\nn(x + 1) :- n(x), x < 1000000000000.\n.output n\n.output n(IO=stdout)\n"


def cpu_seconds(process: int) -> float:
    """What a process that runs has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of_children() -> float:
    """What processes that have ended have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "code", "told"),
    [
        (signal.SIGINT, 130, "interrupted: nothing was written\n"),
        (signal.SIGTERM, 143, "terminated: nothing was written\n"),
    ],
)
def test_signals(sent: signal.Signals, code: int, told: str, tmp_path: Path) -> None:
    (tmp_path / "endless.dl").write_text(ENDLESS)
    os.mkfifo(tmp_path / "n.facts")  # who has read it is about to reason
    arguments = ["run", "endless.dl", "-D", "out", "--stats", "stats.json"]
    # Shells have what runs in the background ignore Ctrl-C; these tests may run there.
    attend = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [*EVERMAT, *arguments]
    others = cpu_of_children()
    with subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True, preexec_fn=attend) as process:
        (tmp_path / "n.facts").write_text("0\n")
        time.sleep(0.3)
        before = cpu_seconds(process.pid)
        process.send_signal(sent)
        out, err = process.communicate(timeout=60)
    # Not seconds of the clock: the machine may be busy.
    assert cpu_of_children() - others - before < 2
    assert (process.returncode, out) == (code, "")
    assert err.endswith(told)
    assert "Traceback" not in err
    assert {path.name for path in tmp_path.rglob("*")} == {"endless.dl", "n.facts"}


def closed_pipe() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "run"])
def test_a_closed_pipe_ends_quietly(command: str, tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl a(x:number)\na(1).\n.output a(IO=stdout)\n.printsize a\n")
    pipe = closed_pipe()
    done = subprocess.run([*EVERMAT, command, "p.dl"], cwd=tmp_path, stdout=pipe, stderr=-1, check=False)
    os.close(pipe)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_a_reader_that_has_had_enough(tmp_path: Path) -> None:
    rules = "".join(f"b(x) :- a(x), x != {i}.\n" for i in range(2000))
    (tmp_path / "long.dl").write_text(".decl a(x:number)\n.decl b(x:number)\n" + rules)
    with subprocess.Popen([*EVERMAT, "check", "long.dl"], cwd=tmp_path, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "long.dl: 2 relations, 2000 rules, no facts, 2 strata\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("command", ["check", "run"])
def test_a_full_disk_behind_stdout(command: str, tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl a(x:number)\na(1).\n.output a(IO=stdout)\n")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*EVERMAT, command, "p.dl"], cwd=tmp_path, stdout=full, stderr=-1, text=True, check=False)
    expected = "error[E600]: cannot write `<stdout>`: No space left on device\n"
    assert (done.returncode, done.stderr) == (6, expected)


ONE_KERNEL = """
import numpy as np
from evermat.kernels import jit
from evermat.columns.kernels.rows import change_bits
from evermat.columns.kernels.warm_up import is_warm, warm_up
jit.KERNELS[:] = [(change_bits, signatures) for kernel, signatures in jit.KERNELS if kernel is change_bits]
"""


@pytest.mark.slow
def test_compiled_kernels_are_found_again(tmp_path: Path) -> None:
    def python(code: str) -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", ONE_KERNEL + code]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert python("print(is_warm()); warm_up(); print(is_warm())") == "False\nTrue\n"
    use = "change_bits(np.zeros(1, np.uint16), np.zeros(1, np.int32), 1, 2)\n"
    count = "stats = change_bits.stats; print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))"
    assert python(f"print(is_warm())\n{use}{count}") == "True\n1 0\n"


# --- standard streams that are closed or full ----------------------------------------------------------------

ONTOLOGY = "<http://x/A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://x/B> .\n"
PRINTING = [
    "query --state st a(x)",
    "query --state st a(x) --format parquet",
    "log --state st",
    "check p.dl",
    "translate o.ttl",
    "run p.dl -D out",
    "run sizes.dl -D out",
    "update --state st c.tsv --changes-out -",
    "run --help",
    "--version",
]
READING = {"update --state st -": "changes are", "run in.dl -D out": "relation `a` is"}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs that print and read, a state, changes and an ontology."""
    folder = tmp_path_factory.mktemp("scene")
    (folder / "p.dl").write_text(".decl a(x:number)\na(1).\n.output a(IO=stdout)\n")
    (folder / "sizes.dl").write_text(".decl a(x:number)\na(1).\n.printsize a\n")
    (folder / "in.dl").write_text(".decl a(x:number)\n.input a(IO=stdin)\n.output a\n")
    (folder / "quiet.dl").write_text(".decl a(x:number)\na(1).\n.output a\n")
    (folder / "o.ttl").write_text(ONTOLOGY)
    (folder / "c.tsv").write_text("+\ta\t2\n")
    subprocess.run([*EVERMAT, "run", "quiet.dl", "--state", "st", "-D", "out"], cwd=folder, check=True)
    return folder


def in_shell(scene: Path, arguments: str, redirected: str) -> subprocess.CompletedProcess[str]:
    """A command with redirected streams; what it prints is read as far as it is not redirected."""
    command = shlex.join([*EVERMAT, *arguments.split()])
    return subprocess.run(
        ["sh", "-c", f"{command} {redirected}"], cwd=scene, capture_output=True, text=True, check=False
    )


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")


@pytest.mark.slow
@pytest.mark.parametrize("command", PRINTING)
def test_stdout_that_cannot_be_written(command: str, scene: Path, tmp_path: Path) -> None:
    """Whatever prints: an error, and never a traceback."""
    copy = tmp_path / "copy"
    for redirected, why in ((">&-", "it is closed"), (">/dev/full", "No space left on device")):
        if "/dev" in redirected and not Path("/dev/full").exists():
            continue
        shutil.copytree(scene, copy)
        done = in_shell(copy, command, redirected)
        shutil.rmtree(copy)
        assert (done.returncode, done.stdout) == (6, "")
        first, *rest = [line for line in done.stderr.splitlines() if not line.startswith("version ")]
        assert first == f"error[E600]: cannot write `<stdout>`: {why}"
        assert [line for line in rest if not line.startswith(("  = help: ", "  = note: "))] == []


@pytest.mark.slow
@pytest.mark.parametrize("command", READING)
def test_stdin_that_is_closed(command: str, scene: Path) -> None:
    told = f"error[E301]: cannot read `<stdin>`: it is closed\n  = note: {READING[command]} read from it\n"
    done = in_shell(scene, command, "<&-")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", told)


@pytest.mark.slow
@needs_full
@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize(("command", "code", "printed"), [
    ("run none.dl", 2, ""),
    ("nothing", 2, ""),
    ("run quiet.dl -D out -F none", 0, ""),
    ("query --state none a(x)", 5, ""),
    ("query --state st a(x)", 0, "x\n-\n1\n"),
])  # fmt: skip
def test_stderr_does_not_matter(command: str, code: int, printed: str, redirected: str, scene: Path) -> None:
    done = in_shell(scene, command, redirected)
    assert (done.returncode, done.stdout, done.stderr) == (code, printed, "")


@pytest.mark.slow
def test_no_file_takes_the_number_of_a_closed_stream(scene: Path, tmp_path: Path) -> None:
    """Else what is printed would be a part of an output."""
    done = in_shell(scene, f"run quiet.dl -D {tmp_path} --stats {tmp_path}/stats.json", "<&- >&- 2>&-")
    assert done.returncode == 0
    assert (tmp_path / "a.csv").read_text() == "1\n"
    assert json.loads((tmp_path / "stats.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["run --help", "--version"])
def test_a_closed_pipe_is_not_an_error(arguments: str, scene: Path) -> None:
    pipe = closed_pipe()
    command = [*EVERMAT, *arguments.split()]
    done = subprocess.run(command, cwd=scene, stdout=pipe, stderr=-1, text=True, check=False)
    os.close(pipe)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_library_whose_process_has_no_streams(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The API says the same as the command line."""
    m = evermat.Program.parse(".decl a(x:number)\na(1).\n.printsize a\n").materialise()
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, None)
    with pytest.raises(evermat.DataError, match="cannot read `<stdin>`: it is closed"):
        m.update_files(["-"])
    with pytest.raises(evermat.ResourceError, match="cannot write `<stdout>`: it is closed"):
        m.write_outputs(tmp_path)


# --- signals while the process starts --------------------------------------------------------------------------

# Sends a signal when the first module is imported that this process needs after signals are handled.
INTERRUPTED_IMPORT = """
import importlib.abc, os, signal, sys
sent, wanted = int(sys.argv[1]), sys.argv[2]
class Sender(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), sent)
sys.meta_path.insert(0, Sender())
signal.signal(signal.SIGINT, signal.default_int_handler if sys.argv[3] == "attended" else signal.SIG_IGN)
sys.argv[1:] = ["--version"]
from evermat.cli.main import script
script()
"""


def interrupted_import(sent: signal.Signals, module: str, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT, str(int(sent)), module, how]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["evermat.core", "evermat.cli.app", "typer", "evermat.core.choices"])
def test_signals_while_modules_are_loaded(module: str) -> None:
    done = interrupted_import(signal.SIGINT, module, "attended")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted: nothing was written\n")
    done = interrupted_import(signal.SIGTERM, module, "attended")
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "terminated: nothing was written\n")


@pytest.mark.slow
def test_an_ignored_interrupt_stays_ignored_while_modules_are_loaded() -> None:
    done = interrupted_import(signal.SIGINT, "typer", "ignored")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"evermat {evermat.__version__}\n", "")


@pytest.mark.slow
def test_signals_are_handled_before_anything_is_loaded() -> None:
    """Of what Python has not loaded itself."""
    code = "import sys; import signal; before = set(sys.modules); import evermat.cli.main; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = ["evermat", "evermat.cli", "evermat.cli.main", "evermat.cli.signals"]
    assert [name for name in done.stdout.split() if name not in {"__future__", "gc", *own}] == []
