"""Files and folders that must not outlive a process that gives up: what is only being written."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_paths: dict[Path, None] = {}
os.register_at_fork(after_in_child=_paths.clear)  # they are the parent's


def register_leftover(path: Path) -> None:
    """Has a file, or a folder unless something is in it, removed by `remove_leftovers`."""
    _paths[path] = None


def forget_leftover(path: Path) -> None:
    """Undoes that: it is removed, or complete."""
    _paths.pop(path, None)


def remove_leftovers() -> None:
    """Removes what is registered, as far as that is possible; the latest first, so that folders are empty."""
    for path in [*_paths][::-1]:
        with suppress(OSError):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
