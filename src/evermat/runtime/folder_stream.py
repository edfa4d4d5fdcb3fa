"""A folder as a stream: the files of changes in it are updates, in the order of their names, each exactly once.

Who writes a file makes it under a name that is ignored and renames it: from then on it is whole. Two RDF files `x.add.nt` and `x.del.nt` are
one update, called `x` in the order. As long as one of them still has a name that is ignored, the other waits for it.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Self, TypeAlias

from evermat.core import DataError
from evermat.core import error_catalogue as errors
from evermat.io import RdfOptions, fail, rdf_change, read_update, updates_of
from evermat.runtime.stream import ROOM, Follower, StreamedUpdate

#: bytes of facts that are read ahead; beyond them one update is
AHEAD = 64 << 20
_HIDDEN = (".", "_")
_UNFINISHED = (".tmp", ".part", ".crdownload")
_TOLD = 20  # files that have come too late, at the start
_A_MOMENT = 0.01  # seconds

Order: TypeAlias = tuple[str, str]
"""What updates are sorted by: the name, of a pair without what tells its halves apart; then the whole name."""


@dataclass(frozen=True, slots=True)
class FileUpdate(StreamedUpdate):
    """An update that was read from files.

    Attributes:
        files: Their names: one, or the two of a pair.
        skipped: How many malformed statements of which RDF file were left out.
    """

    files: tuple[str, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict)


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


class FolderStream(Iterable[FileUpdate]):
    """The updates in a folder that a materialisation has not taken yet: `m.stream(FolderStream("changes", m))`. It is looked at until it is closed.

    The position of the stream is the name of the last file that was taken. What comes later with a name before it is told, and not taken.

    Two listings of the folder are needed to see what is there: names that come and go during one may be missing in it. Whoever is in the
    first was there before the second began, and so was everything that came before it: nothing that came in order is ever too late.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        m: Follower,
        *,
        once: bool = False,
        poll: float = 0.5,
        together: bool = False,
        base: str | None = None,
        skip_malformed: bool = False,
        warn: Callable[[str], None] = _warn,
        since: float | None = None,
    ) -> None:
        """A folder that is about to be followed.

        Args:
            path: the folder.
            m: the materialisation: its program says what files hold, its positions what was taken.
            once: whether to end when everything is taken that is there at the beginning.
            poll: seconds to wait before looking again if nothing has come.
            together: whether to hand out updates that wait in one go, for those who make one of them.
            base: what relative IRIs in RDF are relative to.
            skip_malformed: whether to leave out malformed statements of RDF.
            warn: is told of files that are not taken, and of those that wait for another.
            since: when the position was reached, in seconds since 1970: files before it that have come or changed later are told.

        Raises:
            DataError: there is no such folder.
        """
        self.path = Path(path)
        #: the name of the stream
        self.name = stream_name(path)
        self._m = m
        self._once, self._poll, self._together = once, poll, together
        self._options = RdfOptions(base=base, skip=skip_malformed)
        self._warn = warn
        self._closed, self._reading = threading.Event(), threading.Lock()
        position = m.positions.get(self.name)
        self._reached: Order | None = None if position is None else _order(position)
        self._ahead: deque[tuple[Order, int]] = deque()  # what is read and perhaps not yet processed, and its bytes
        self._waits = ("", "")  # a half of a pair, and the name under which the other half is made
        self._told: set[tuple[str, str]] = set()  # what is known to wait
        self._known = self._taken_before(since)  # names that are there and not new

    def __iter__(self) -> Iterator[FileUpdate]:
        while not self._closed.is_set():
            updates = self._look()
            yield from self._read_all(updates)
            if self._once:
                return
            if not updates:
                self._closed.wait(self._poll)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing more is read, and nobody is waited for."""
        self._closed.set()
        if self._reading.acquire(timeout=1):  # a library must not be cut short by the end of the process
            self._reading.release()

    # --- what is there -------------------------------------------------------------------------------------
    def _taken_before(self, since: float | None) -> set[str]:
        """The files up to the position."""
        reached = self._reached
        known = {
            name for name in list_folder(self.path) if reached and not is_ignored(name) and _order(name) <= reached
        }
        if since is not None:
            late = [name for name in sorted(known) if _changed(self.path / name) > since]
            for name in late[:_TOLD]:
                self._tell_late(name, "has come or changed")
            if len(late) > _TOLD:
                self._warn(f"{len(late) - _TOLD:,} more files of `{self.path}` have come or changed likewise")
        return known

    def _look(self) -> list[list[str]]:
        """The updates that wait, in their order; of those after a pair that is not complete none."""
        first = list_folder(self.path)
        there = self._new(first)
        if not there:
            return []
        last, _ = max(there)
        second = list_folder(self.path)
        names = [name for order in sorted(self._new(second)) for name in order[1:] if order[0] <= last]
        updates = [[path.name for path in paths] for paths in updates_of(map(Path, names))]
        coming = _halves(first | second)
        for number, files in enumerate(updates):
            half = rdf_change(Path(files[0])) if coming and len(files) == 1 else None
            if half is not None and (other := coming.get((half.stem, not half.insert))):
                self._wait(files[0], other)
                return updates[:number]
        return updates

    def _wait(self, half: str, other: str) -> None:
        """Tells, once, that a file waits for the other half of its pair, if that takes longer than to rename it."""
        waits = (half, other)
        if waits not in self._told and (self._once or waits == self._waits):
            self._told.add(waits)
            self._warn(f"`{self.path / half}` waits for `{other}`, and so does what comes after it")
        self._waits = waits

    def _new(self, names: set[str]) -> list[Order]:
        """The files that come after the position. Tells of others that have come."""
        self._known &= names  # a name that goes may come again
        found = []
        for name in names - self._known:
            if is_ignored(name) or not self._is_file(name):
                continue
            order = _order(name)
            if self._reached is None or order > self._reached:
                found.append(order)
            else:
                self._known.add(name)
                self._tell_late(name, "has come")
        return found

    def _is_file(self, name: str) -> bool:
        try:
            return (self.path / name).is_file()
        except OSError as error:
            raise _unreadable(self.path / name, error.strerror or str(error)) from error

    def _tell_late(self, name: str, what: str) -> None:
        self._warn(f"`{self.path / name}` {what} after its turn, and is not taken: changes are taken in order of names")

    # --- what is in it -------------------------------------------------------------------------------------
    def _read_all(self, updates: Sequence[Sequence[str]]) -> Iterator[FileUpdate]:
        """Reads updates, each when there is room for it. If one cannot be read, those before it are handed out."""
        ready: list[FileUpdate] = []
        failed: DataError | None = None
        for files in updates:
            if not self._together or len(ready) == ROOM or self._is_full():
                yield from ready
                ready.clear()
            while self._is_full() and not self._closed.wait(_A_MOMENT):
                pass
            if self._closed.is_set():
                return
            try:
                with self._reading:
                    ready.append(self._read(files))
            except DataError as error:
                failed = error
                break
        yield from ready
        if failed is not None:
            raise failed

    def _read(self, files: Sequence[str]) -> FileUpdate:
        """One update; from now on its files are not new."""
        skipped: dict[str, int] = {}
        paths = [self.path / name for name in files]
        for path in paths:
            if not _is_text(path.name):
                raise _unreadable(path, "its name is not UTF-8")
        changes = read_update(paths, self._m.program, self._options, skipped)
        size = sum(table.nbytes for facts in (changes.insert, changes.delete) for table in facts.values())
        self._reached = _order(files[-1])
        self._known.update(files)
        self._ahead.append((self._reached, size))
        return FileUpdate(changes.insert, changes.delete, (self.name, files[-1]), tuple(files), skipped)

    def _is_full(self) -> bool:
        """Whether so much has been read ahead that more has to wait: beside what is processed, one update may always be there."""
        position = self._m.positions.get(self.name)
        done = None if position is None else _order(position)
        while self._ahead and done is not None and self._ahead[0][0] <= done:
            self._ahead.popleft()
        return len(self._ahead) > 1 and sum(size for _, size in self._ahead) > AHEAD


def stream_name(path: str | PathLike[str]) -> str:
    """The name of the stream of the changes in a folder."""
    return f"directory:{os.path.realpath(path)}"


def list_folder(path: Path) -> set[str]:
    """All names in a folder of changes.

    Raises:
        DataError: it is no folder, or cannot be read.
    """
    try:
        return set(os.listdir(path))  # noqa: PTH208 - names are all that is wanted
    except (FileNotFoundError, NotADirectoryError) as error:
        why = "it is a file" if path.exists() else "there is no such folder"
        raise fail(errors.NO_SOURCE, path=path, why=why) from error
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def is_ignored(name: str) -> bool:
    """Whether a name is not that of a file of changes, or not yet."""
    return name.startswith(_HIDDEN) or name.endswith(_UNFINISHED)


def _unreadable(path: Path, why: str) -> DataError:
    return fail(errors.CANNOT_READ, path=path, what="changes are", why=why)


def _order(name: str) -> Order:
    change = rdf_change(Path(name))
    return (name if change is None else change.stem.name, name)


def _halves(names: Iterable[str]) -> dict[tuple[Path, bool], str]:
    """The files that are made under these names, as far as they will be halves of pairs: by their stem and whether they insert."""
    found = {}
    for name in filter(is_ignored, names):
        plain = name.lstrip("".join(_HIDDEN))
        while plain.endswith(_UNFINISHED):
            plain = plain[: plain.rindex(".")]
        change = rdf_change(Path(plain))
        if change is not None:
            found[change.stem, change.insert] = name
    return found


def _changed(path: Path) -> float:
    """When a file came, or was written to; never if it is gone."""
    try:
        return path.lstat().st_ctime
    except OSError:
        return 0


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
