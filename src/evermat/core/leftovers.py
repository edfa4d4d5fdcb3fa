"""Files and folders that must not outlive a process that gives up: what is only being written."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

_paths: dict[Path, bool] = {}  # and whether a folder goes with what is in it
os.register_at_fork(after_in_child=_paths.clear)  # they are the parent's


def register_leftover(path: Path, *, whole: bool = False) -> None:
    """Has a file, or a folder unless something is in it, removed by `remove_leftovers`; a `whole` folder with what is in it."""
    _paths[path] = whole


def forget_leftover(path: Path) -> None:
    """Undoes that: it is removed, or complete."""
    _paths.pop(path, None)


def remove_leftovers() -> None:
    """Removes what is registered, as far as that is possible; the latest first, so that folders are empty."""
    for path, whole in [*_paths.items()][::-1]:
        with suppress(OSError):
            if whole:
                shutil.rmtree(path, ignore_errors=True)
            elif path.is_dir():
                path.rmdir()
            else:
                path.unlink()
