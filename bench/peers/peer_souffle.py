"""Soufflé, where it is on the PATH: interpreted, and compiled before the measured run.

It is measured as a whole process; its phases are not told apart.
"""

from __future__ import annotations

import re
import shutil
import subprocess

from bench.model import Job, Peer, Phases


def _version() -> str | None:
    if shutil.which("souffle") is None:
        return None
    shown = subprocess.run(["souffle", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", shown.stdout)
    return found.group() if found else "unknown"


def _options(job: Job) -> list[str]:
    return ["-F", str(job.facts), "-D", str(job.out), "-j", str(job.threads)]


def _binary(job: Job) -> str:
    return str(job.out / "program")


def _compile(job: Job) -> None:
    command = ["souffle", "-o", _binary(job), "-j", str(job.threads), str(job.program)]
    subprocess.run(command, capture_output=True, check=True)


INTERPRETED = Peer(
    "souffle",
    "dl",
    _version,
    lambda job: ["souffle", *_options(job), str(job.program)],
    lambda job: Phases(),
    "interpreted",
)
COMPILED = Peer(
    "souffle-compiled",
    "dl",
    _version,
    lambda job: [_binary(job), *_options(job)],
    lambda job: Phases(),
    "compiled; compiling is not timed",
    _compile,
)
