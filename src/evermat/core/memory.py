"""How much memory this process has and may have."""

from __future__ import annotations

import gc
import os
import resource
import sys
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


_statm: dict[
    int, int
] = {}  # the open file, by the process that it is about: one that was opened before a fork is about the other process


def resident_bytes() -> int:
    """Memory in use by this process now (the peak, where the system tells only that)."""
    process = os.getpid()
    try:
        if (file := _statm.get(process)) is None:
            opened = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
            file = _statm.setdefault(process, opened)
            if file != opened:  # another thread was faster
                os.close(opened)
        return int(os.pread(file, 64, 0).split()[1]) * _PAGE
    except OSError:
        return peak_bytes()


def peak_bytes() -> int:
    """The most memory that this process has used."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def available_bytes() -> int:
    """What the machine or the container allows in all."""
    total = os.sysconf("SC_PHYS_PAGES") * _PAGE
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(limit).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return total


def free_memory() -> None:
    """Gives back to the system what is not used any more."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
