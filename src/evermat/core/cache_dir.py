"""The user's cache folder: what takes long to compute and depends only on this version of the code."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path


@cache
def cache_folder() -> Path | None:
    """Where results may be kept between runs, or None where nothing is writable."""
    try:
        home = Path.home()
    except RuntimeError:  # there is no home folder
        return None
    usual = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    folder = Path(os.environ.get("XDG_CACHE_HOME") or usual) / "evermat"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def cached_file(name: str) -> str | None:
    """A file of the cache folder for this version of Python, or None."""
    folder = cache_folder()
    return None if folder is None else str(folder / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}.cache")
