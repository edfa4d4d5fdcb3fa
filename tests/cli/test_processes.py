"""What only a process of its own shows: signals, closed pipes, full disks, cached kernels."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

EVERMAT = [sys.executable, "-m", "evermat"]
ENDLESS = ".decl n(x:number)\n.input n\nn(x + 1) :- n(x), x < 1000000000000.\n.output n\n.output n(IO=stdout)\n"


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
    with subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True, preexec_fn=attend) as process:
        (tmp_path / "n.facts").write_text("0\n")
        time.sleep(0.3)
        process.send_signal(sent)
        started = time.monotonic()
        out, err = process.communicate(timeout=20)
    assert time.monotonic() - started < 2
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
        assert process.wait(timeout=20) == 0


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
from evermat.columns.kernels import jit
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
