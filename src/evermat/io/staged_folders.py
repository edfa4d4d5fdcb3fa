"""Folders that others fill, such as Spark's executors, and that replace or extend what stands at their targets.

A folder is staged beside its target, in a hidden folder with a lock that its process holds. Folders of processes that were killed have a free lock:
`remove_abandoned` deletes them, after it has put back what they had moved aside.

    .evermat-….staged/
        lock     the name of the target, and the machine
        rows/    the new contents
        old      what stood at the target, while the outputs of a program are being committed
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from evermat.core import forget_leftover, register_leftover, uninterrupted

FolderMode: TypeAlias = Literal["create", "replace", "extend"]
_PATTERN = ".evermat-*.staged"
_UNLOCKED = (
    3600.0  # seconds after which a folder without a lock is abandoned: its process was killed before it made one
)


class StagedFolder:
    """The new contents of a folder, until they are published.

    Attributes:
        rows: Where the contents are written; it does not exist yet.
        target: Where they go. Links in it are followed.
        shown: The target as the user has named it.
    """

    def __init__(self, target: Path, shown: Path, mode: FolderMode, relation: str) -> None:
        self.target, self.shown, self.relation, self._mode = target, shown, relation, mode
        self._home = target.parent / f".evermat-{os.getpid()}-{os.urandom(6).hex()}.staged"
        self.rows = self._home / "rows"
        self._old = self._home / "old"
        self._undo: list[
            tuple[Path, Path]
        ] = []  # renames of which each undoes one, in the order in which they were done
        self._made: list[Path] = []
        register_leftover(self._home, whole=True)
        self._home.mkdir()
        try:
            self._lock = _locked(self._home / "lock", target)
        except BaseException:
            shutil.rmtree(self._home, ignore_errors=True)
            raise

    def publish(self) -> None:
        """Gives the contents their name, or moves them into the folder that has it; if that fails, all is as it was."""
        try:
            exists = os.path.lexists(self.target)
            if exists and self._mode == "create":
                raise FileExistsError(None, "it has appeared meanwhile")  # noqa: TRY301
            if self._mode != "extend" or not exists:
                if exists:
                    self._rename(self.target, self._old)
                self._rename(self.rows, self.target)
            else:
                self._extend()
        except BaseException:
            self.undo()
            raise

    def _extend(self) -> None:
        """Moves all files into the target. Spark's have new names, except for marks such as `_SUCCESS`."""
        for place, _, files in os.walk(self.rows):
            folder = self.target / Path(place).relative_to(self.rows)
            if not folder.is_dir():
                folder.mkdir()
                self._made.append(folder)
            for name in sorted(files):
                if (folder / name).exists():
                    self._rename(folder / name, self._home / f"replaced-{len(self._undo)}")
                self._rename(Path(place, name), folder / name)

    def _rename(self, source: Path, target: Path) -> None:
        source.rename(target)
        self._undo.append((target, source))

    def undo(self) -> None:
        """Puts everything back, as far as that is possible."""
        for now, before in reversed(self._undo):
            with suppress(OSError):
                now.rename(before)
        for folder in reversed(self._made):
            with suppress(OSError):
                folder.rmdir()
        self._undo.clear()
        self._made.clear()

    def close(self) -> None:
        """Removes what is not published, and what was replaced."""
        shutil.rmtree(self._home, ignore_errors=True)
        forget_leftover(self._home)
        self._lock.close()


@contextmanager
def published(folder: StagedFolder) -> Iterator[None]:
    """Publishes a folder for the block, and undoes that if the block raises an error."""
    folder.publish()
    try:
        yield
    except BaseException:
        folder.undo()
        raise


def remove_abandoned(parent: Path) -> None:
    """Deletes folders that were staged here by processes of this machine that have ended; the targets of these are as they were."""
    for home in parent.glob(_PATTERN):
        with suppress(OSError, ValueError, KeyError), uninterrupted():
            if not (home / "lock").exists():
                if time.time() - home.stat().st_mtime > _UNLOCKED:
                    shutil.rmtree(home, ignore_errors=True)
                continue
            with (home / "lock").open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                about = json.load(lock)
                if about["host"] != platform.node():
                    continue  # locks of other machines may not be visible here
                target = parent / about["target"]
                if os.path.lexists(home / "old") and not os.path.lexists(target):
                    (home / "old").rename(target)
                shutil.rmtree(home, ignore_errors=True)


def _locked(path: Path, target: Path) -> Any:
    """The open lock of a staged folder; it gets its name when it is locked, so that others never see it free while this process lives."""
    new = path.with_suffix(".new")
    lock = new.open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        json.dump({"host": platform.node(), "target": target.name}, lock)
        lock.flush()
        new.rename(path)
    except BaseException:
        lock.close()
        raise
    return lock
