"""What threads share: limits hold for their own jobs only, and signals end the process when no thread is within a section."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import evermat
from evermat.core import Guard, LimitError, awaited, check_stop, completing, pulled, watched
from evermat.core.deferred_signals import await_completion
from evermat.core.leftovers import forget_leftover, register_leftover, remove_leftovers
from evermat.core.memory import resident_bytes
from tests.support.many_threads import SECONDS, THREADS, at_once, same_in_threads

ENDLESS = ".decl a(x:number) a(0). a(x + 1) :- a(x), x < 1000000000."


# --- limits --------------------------------------------------------------------------------------------------


def endless() -> None:
    end = time.monotonic() + 50  # lest a thread that nothing stops works as long as all tests
    while time.monotonic() < end:
        check_stop()


def in_this_thread() -> None:
    endless()


def in_a_thread_that_is_pulled() -> None:
    for _ in pulled(lambda push: [check_stop() or push(number) for number in range(10**9)]):
        pass


def in_a_thread_that_is_awaited() -> None:
    awaited(endless)


def reached(limit: float | None, work: Callable[[], None]) -> str:
    """The error of a job with a limit."""
    try:
        with watched(Guard(limit)):
            work()
    except LimitError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("work", [in_this_thread, in_a_thread_that_is_pulled, in_a_thread_that_is_awaited])
def test_every_job_reaches_its_own_limit(work: Callable[[], None]) -> None:
    limits = [0.01 + number / 1000 for number in range(THREADS)]
    same_in_threads(lambda limit: reached(limit, work), limits, SECONDS / 4)


def test_a_job_without_limits_is_not_stopped_by_those_of_others() -> None:
    def limited() -> None:
        assert reached(0.001, endless)

    def free() -> None:
        for _ in range(1000):
            check_stop()

    at_once(*[limited, free] * (THREADS // 2), seconds=SECONDS / 2)


def test_runs_have_limits_of_their_own() -> None:
    program = evermat.Program.parse(ENDLESS)

    def run(limits: dict[str, int]) -> str:
        with pytest.raises(LimitError) as raised:
            program.materialise(**limits)
        return str(raised.value)

    kinds = ("limit_rounds", "limit_facts")
    same_in_threads(run, [{kinds[number % 2]: 10 + number} for number in range(THREADS)], SECONDS / 4)


# --- signals -------------------------------------------------------------------------------------------------

WORKER = """
import os, signal, sys, time
from pathlib import Path
from threading import Event, Thread
from evermat.core import uninterrupted

entered, leave, left = Event(), Event(), Event()

def work():
    with uninterrupted():
        entered.set()
        leave.wait(0.5)
        Path("worker").touch()
    left.set()

def begin():
    Thread(target=work, daemon=True).start()
    entered.wait()
"""
MAIN_LEAVES_FIRST = """
begin()
with uninterrupted():
    os.kill(os.getpid(), signal.SIGTERM)
    Path("main").touch()
"""
WORKER_LEAVES_FIRST = """
begin()
with uninterrupted():
    os.kill(os.getpid(), signal.SIGTERM)
    leave.set()
    left.wait()
    time.sleep(0.05)
    Path("main").touch()
"""
HANDLED = """
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(3))
begin()
try:
    os.kill(os.getpid(), signal.SIGTERM)
finally:
    Path("main").touch()
"""
FORKED = """
begin()
child = os.fork()
if not child:
    sys.exit(3)  # no thread of this process is within a section
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
Path("main").touch()
sys.exit(3)
"""
COMMAND = """
from evermat.cli import app
from evermat.cli.main import script

def run(args):
    begin()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(30)
    finally:
        Path("main").touch()

app.app = run
script()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("main", "code"),
    [
        (MAIN_LEAVES_FIRST, -signal.SIGTERM),
        (WORKER_LEAVES_FIRST, -signal.SIGTERM),
        (HANDLED, 3),
        (FORKED, 3),
        (COMMAND, 143),
    ],
    ids=["main leaves first", "worker leaves first", "handled", "forked", "command"],
)
def test_a_process_ends_when_all_threads_have_left_their_sections(main: str, code: int, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORKER + main + "\nPath('after').touch()\n"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, sorted(path.name for path in tmp_path.iterdir())) == (code, ["main", "worker"]), (
        done.stderr
    )


def test_sections_of_other_threads_are_waited_for() -> None:
    inside: list[int] = []

    def section() -> None:
        with completing(), completing():
            inside.append(1)
            inside.pop()

    at_once(*[section] * THREADS, seconds=SECONDS / 4)
    with completing():
        await_completion()  # not for the own one


# --- what belongs to the process -----------------------------------------------------------------------------


def test_leftovers_are_removed_while_threads_leave_others(tmp_path: Path) -> None:
    left = tmp_path / "left"

    def churn() -> None:
        for number in range(100):
            register_leftover(tmp_path / str(number))
            forget_leftover(tmp_path / str(number))

    def remove() -> None:
        left.touch()
        register_leftover(left)
        remove_leftovers()
        assert not left.exists()
        forget_leftover(left)

    at_once(*[churn] * (THREADS - 1), remove, seconds=SECONDS / 3)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system has no list of open files")
def test_the_memory_in_use_is_asked_for_by_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened() -> int:
        files = [path.resolve().name for path in Path("/proc/self/fd").iterdir()]
        return files.count("statm")

    for _ in range(20):
        monkeypatch.setattr("evermat.core.memory._statm", {})
        before = opened()
        at_once(*[resident_bytes] * THREADS)
        assert opened() == before + 1
