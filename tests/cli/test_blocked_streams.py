"""Nobody reads what a command prints: limits and signals end it all the same, and it says what it has written."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.environment import LASTING

EVERMAT = [sys.executable, "-m", "evermat"]
LIMITS = (3.0, 12.0, 60.0)  # seconds; on a busy machine the first ones may be reached before all is written
ENDS = 120.0
WAITS = ("pipe_write", "anon_pipe_write", "pipe_wait", "wait_for_partner")  # in the kernel
EXITS = {"limit": 4, "interrupt": 130, "terminate": 143}
SIGNALS = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM}

# What is blocked, the command, and what of it is written then.
COMMANDS = {
    "run": ("stdout", "run p.dl --engine memory -D out", "all output files are written"),
    "run and save": ("stdout", "run p.dl --engine memory -D out --state new", "the state is at version 1 and all output files are written"),
    "query": ("stdout", "query --state st a(x)", ""),
    "update": ("stdout", "update --state st c.tsv --changes-out -", "the state is at version 2"),
    "log": ("stdout", "log --state st", ""),
    "check": ("stdout", "check p.dl", ""),
    "translate": ("stdout", "translate o.ttl", ""),
    "named pipe": ("fifo", "run pipe.dl --engine memory -D .", ""),
    "warnings": ("stderr", "run undefined.dl --engine memory -D out", ""),
    "updates": ("stderr", "update --state st c.tsv", "the state is at version 2"),
    "errors": ("stderr", "run wrong.dl -D out", ""),
}  # fmt: skip
ALWAYS = {"run and save: limit", "run: terminate", "updates: limit", "errors: interrupt"}
CASES = {f"{name}: {how}": (name, how) for name in COMMANDS for how in EXITS}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with programs, a state, changes and an ontology."""
    folder = tmp_path_factory.mktemp("scene")
    (folder / "p.dl").write_text(".decl a(x:number)\na(1).\n.output a(IO=stdout)\n.output a\n")
    (folder / "pipe.dl").write_text('.decl a(x:number)\na(1).\n.output a(filename="fifo")\n')
    (folder / "undefined.dl").write_text(".decl a(x:number)\na(0).\n.decl b(x:number)\nb(1 / x) :- a(x).\n.output b\n")
    (folder / "wrong.dl").write_text("a(1).\n")
    (folder / "o.ttl").write_text("<http://x/A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://x/B> .\n")
    (folder / "c.tsv").write_text("+\ta\t2\n")
    subprocess.run(
        [*EVERMAT, "run", "p.dl", "--engine", "memory", "--state", "st", "-D", "first"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder


@contextmanager
def full_pipe() -> Iterator[int]:
    """A pipe that takes nothing any more."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, bytes(1 << 10))
    except BlockingIOError:
        os.set_blocking(writing, True)
    try:
        yield writing
    finally:
        os.close(reading)
        os.close(writing)


def wait_for_write(process: subprocess.Popen[str]) -> None:
    """Waits until the process waits for the reader of a pipe, as far as the system tells."""
    until = time.monotonic() + ENDS
    while time.monotonic() < until and process.poll() is None:
        if Path(f"/proc/{process.pid}/wchan").read_text() in WAITS:
            return
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process waits for")
@pytest.mark.parametrize("case", [case if case in ALWAYS else pytest.param(case, marks=LASTING) for case in CASES])
def test_nobody_reads(case: str, scene: Path, tmp_path: Path) -> None:
    name, how = CASES[case]
    stream, _, written = COMMANDS[name]
    if how != "limit":
        code, told = blocked(name, scene, tmp_path / how, SIGNALS[how])
        assert code == EXITS[how]
        if stream != "stderr":
            assert told.endswith(f"ed: {written or 'nothing was written'}\n")
        return
    for limit in LIMITS:
        code, told = blocked(name, scene, tmp_path / str(limit), limit)
        assert code == EXITS["limit"]
        number, note = ("E401", f"{written}; what comes after that is missing") if written else ("E400", "nothing was")
        if stream == "stderr" or f"error[{number}]: the limit of {limit} seconds is reached\n  = note: {note}" in told:
            break
        assert limit != LIMITS[-1], told
        assert f"]: the limit of {limit} seconds is reached\n  = note: " in told


def blocked(name: str, scene: Path, folder: Path, cut: float | signal.Signals) -> tuple[int, str]:
    """Runs a command whose output has no reader, in a copy of the scene; its exit code after a limit or signal, and what it told."""
    stream, command, _ = COMMANDS[name]
    shutil.copytree(scene, folder)
    if stream == "fifo":
        os.mkfifo(folder / "fifo")
    attend = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # shells have what runs in the background ignore it
    arguments = [
        *EVERMAT,
        *command.split(),
        *(() if isinstance(cut, signal.Signals) else ("--limit-seconds", str(cut))),
    ]
    with full_pipe() as full:
        out, err = (full if stream == name else subprocess.PIPE for name in ("stdout", "stderr"))
        process = subprocess.Popen(arguments, cwd=folder, stdout=out, stderr=err, text=True, preexec_fn=attend)
        try:
            if isinstance(cut, signal.Signals):
                wait_for_write(process)
                process.send_signal(cut)
            _, told = process.communicate(timeout=ENDS)
        finally:
            process.kill()
    assert list(folder.rglob("*.part")) == []
    return process.returncode, told or ""


def test_every_kind_is_always_tried() -> None:
    assert CASES.keys() >= ALWAYS


# A limit is passed as soon as the version is durable, and the disk takes long to say so.
SLOW_DISK = """
import sys, time
from evermat.core import Guard, limit_error
from evermat.store import writer
durable = writer.write_witness
def write_witness(*arguments):
    Guard.passed = lambda *_: limit_error("seconds", 1)
    time.sleep(1.5)
    durable(*arguments)
writer.write_witness = write_witness
from evermat.cli.main import script
script()
"""


@pytest.mark.slow
def test_a_limit_during_a_commit(scene: Path, tmp_path: Path) -> None:
    """The commit is completed. The limit is told only if it was noticed in the moment that follows, and then with the version."""
    shutil.copy(scene / "p.dl", tmp_path)
    command = [sys.executable, "-c", SLOW_DISK, "run", "p.dl", "--engine", "memory", "--state", "new", "-D", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = "error[E401]: the limit of 1 seconds is reached\n  = note: the state is at version 1; what comes after that is missing\n"
    if done.returncode == 0:
        assert done.stderr == ""
        assert (tmp_path / "out" / "a.csv").exists()
    else:
        assert (done.returncode, done.stderr) == (4, told)
    log = subprocess.run([*EVERMAT, "log", "--state", "new"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(log.stdout.splitlines()) == 2
