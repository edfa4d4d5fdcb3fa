"""What the numbers depend on besides the engines: machine, Python, libraries, date."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.model import Peer
from bench.peers.child import installed


def environment(peers: Iterable[Peer], command: str) -> dict[str, Any]:
    """Plain data for the results file."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        "date": now.isoformat(timespec="seconds"),
        "command": command,
        "engines": {peer.name: peer.version() for peer in peers},
        "notes": {peer.name: peer.note for peer in peers if peer.note},
        "python": platform.python_version(),
        "numpy": installed("numpy"),
        "numba": installed("numba"),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": memory_gib(),
    }


def cpu_model() -> str:
    """The processor's name where the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown"


def memory_gib() -> float | None:
    """The machine's memory where the system tells it."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
    return round(size / 2**30, 1)
