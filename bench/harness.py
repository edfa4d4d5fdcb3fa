"""Runs engines on workloads, checks what they answer, and keeps what it cost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.checksum import answer_of_file
from bench.model import Job, Measurement, Peer, Workload

ROOT = Path(__file__).resolve().parent.parent
LAUNCHER = Path(__file__).with_name("launch.py")
THREAD_VARIABLES = (
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
)
DETAIL_CHARACTERS = 400


def write_facts(workload: Workload, folder: Path) -> None:
    """The input relations as tab-separated ``.facts`` files."""
    folder.mkdir(parents=True, exist_ok=True)
    for relation, rows in workload.facts():
        with (folder / f"{relation}.facts").open("w", encoding="ascii") as file:
            file.writelines("\t".join(map(str, row)) + "\n" for row in rows.tolist())


def measure(
    peers: Sequence[Peer],
    workloads: Iterable[Workload],
    *,
    work: Path,
    repeat: int = 3,
    timeout: float = 600.0,
    threads: int = 1,
    tell: Callable[[Measurement], None] = lambda measurement: None,
) -> list[Measurement]:
    """Every engine on every workload, ``repeat`` times.

    Within a repetition the engines follow one another, and each repetition begins with another of
    them, so that a change of the machine's mood meets all. An engine that is absent, fails, times
    out or answers wrongly is not repeated.
    """
    done: list[Measurement] = []
    for workload in workloads:
        folder = work / workload.name
        write_facts(workload, folder / "facts")
        out_of_race: set[str] = set()
        for repetition in range(repeat):
            shift = repetition % len(peers)
            for peer in (*peers[shift:], *peers[:shift]):
                if peer.name in out_of_race:
                    continue
                one = measure_once(peer, workload, folder, repetition, timeout, threads)
                if one.status != "ok":
                    out_of_race.add(peer.name)
                done.append(one)
                tell(one)
        shutil.rmtree(folder)
    return done


def measure_once(
    peer: Peer, workload: Workload, folder: Path, repetition: int, timeout: float, threads: int
) -> Measurement:
    """One engine on one workload, once. The facts are in ``folder/facts``."""
    one = Measurement(peer.name, workload.name, repetition, "failed")
    if peer.version() is None:
        one.status = "absent"
        return one
    own = folder / peer.name
    job = Job(
        program=own / f"program.{peer.dialect}",
        facts=folder / "facts",
        out=own / "out",
        report=own / "report.json",
        result=workload.result,
        threads=threads,
    )
    job.out.mkdir(parents=True, exist_ok=True)
    job.report.unlink(missing_ok=True)
    job.program.write_text(workload.programs[peer.dialect], encoding="utf-8")
    try:
        if peer.prepare is not None and repetition == 0:
            peer.prepare(job)
        _run(peer, job, one, timeout)
        if one.status == "ok":
            _check(job, workload, one)
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as problem:
        one.status, one.detail = "failed", f"{type(problem).__name__}: {problem}"
    job.result_file.unlink(missing_ok=True)
    if one.status != "ok":
        one.wall = one.cpu = one.peak_mb = None
        one.phases.wall, one.phases.cpu = {}, {}
    one.detail = one.detail.replace(str(folder), workload.name)[-DETAIL_CHARACTERS:]
    return one


def launched(
    command: Sequence[str], usage_file: Path, timeout: float, threads: int = 1, folder: Path | None = None
) -> str:
    """Run a command through the launcher, which writes what it used to a file; what it said on standard error."""
    usage_file.unlink(missing_ok=True)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    ended = subprocess.run(
        [sys.executable, "-S", "-E", str(LAUNCHER), str(usage_file), str(timeout), *command],
        env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads)), "PYTHONPATH": path},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    return ended.stderr.strip()


def _run(peer: Peer, job: Job, one: Measurement, timeout: float) -> None:
    """Start the engine through the launcher and take over what it tells."""
    usage_file = job.report.with_name("usage.json")
    one.detail = launched(peer.command(job), usage_file, timeout, job.threads)
    if not usage_file.exists():
        return
    usage = json.loads(usage_file.read_text(encoding="utf-8"))
    if usage["timeout"]:
        one.status, one.detail = "timeout", f"stopped after {timeout:g} s"
    elif usage["exit"] != 0:
        one.detail = f"exit code {usage['exit']}: {one.detail}"
    else:
        one.status, one.detail = "ok", ""
        one.wall, one.cpu, one.peak_mb = usage["wall"], usage["cpu"], usage["peak_mb"]
        one.phases = peer.phases(job)


def _check(job: Job, workload: Workload, one: Measurement) -> None:
    """Compare the result with the recorded answer."""
    try:
        one.answer = answer_of_file(job.result_file, workload.columns)
    except ValueError as problem:
        one.status, one.detail = "wrong", str(problem)
        return
    if one.answer != workload.expected:
        one.status = "wrong"
        one.detail = f"{one.answer}, expected {workload.expected}"
