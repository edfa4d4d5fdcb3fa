"""Runs one command to its end or to a time limit and writes what it used as JSON.

    python launch.py USAGE.json TIMEOUT_SECONDS COMMAND [ARGUMENT…]

A process of its own, and a small one, for two reasons: wait4 gives the usage of exactly the
command and what it waited for, and the peak memory that a system tells for a process includes
that of the process it was forked from. So this file imports nothing of the harness.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time


def run(command: list[str], timeout: float) -> dict[str, float | int | bool]:
    """Start the command in a process group of its own and wait for it, at most ``timeout``."""
    parent = os.getppid()
    timed_out = False
    begin = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, setpgroup=0)

    def watch(_signal: int, _frame: object) -> None:
        nonlocal timed_out
        timed_out = time.perf_counter() - begin >= timeout
        if timed_out or os.getppid() != parent:
            kill(child)

    def stop(_signal: int, _frame: object) -> None:
        kill(child)

    signal.signal(signal.SIGALRM, watch)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    signal.setitimer(signal.ITIMER_REAL, min(timeout, 1.0), 0.2)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - begin
    signal.setitimer(signal.ITIMER_REAL, 0)
    kill(child)  # whatever the command left behind
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "wall": wall,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss * unit / 1e6,
        "exit": os.waitstatus_to_exitcode(status),
        "timeout": timed_out,
    }


def kill(child: int) -> None:
    """End the command's process group; it may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


if __name__ == "__main__":
    used = run(sys.argv[3:], float(sys.argv[2]))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(used, file)
