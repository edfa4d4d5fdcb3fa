"""Evermat, through its command line, as its users start it."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

from bench.model import Job, Peer, Phases
from bench.peers.child import installed

KEPT = ("engine", "algorithm", "rounds", "facts", "derivations", "peak_rss_mb")


def executable() -> list[str]:
    """The command beside this Python if there is one, otherwise the package run as a module."""
    beside = Path(sys.executable).with_name("evermat")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "evermat"]


def _version() -> str | None:
    if find_spec("evermat") is None:
        return None
    return installed("evermat") or "not installed, run from the source tree"


def _phases(job: Job) -> Phases:
    stats = json.loads(job.report.read_text(encoding="utf-8"))
    extra = {key: stats[key] for key in KEPT if key in stats}
    return Phases(_merged(stats["seconds"]), _merged(stats["cpu_seconds"]), extra)


def _merged(seconds: dict[str, float]) -> dict[str, float]:
    """Evermat tells reading and encoding apart; together they are what others call loading."""
    return {
        "start": seconds["start"],
        "load": seconds["read"] + seconds["encode"],
        "reason": seconds["reason"],
        "write": seconds["write"],
    }


def peer(name: str = "evermat", options: tuple[str, ...] = ()) -> Peer:
    """Evermat's memory engine, with further options for a variant of it."""

    def command(job: Job) -> list[str]:
        run = ["run", str(job.program), "-F", str(job.facts), "-D", str(job.out)]
        return [*executable(), *run, "--engine", "memory", "--stats", str(job.report), *options]

    return Peer(name, "dl", _version, command, _phases, " ".join(options))
