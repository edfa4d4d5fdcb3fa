"""A directory as a stream: the change files in it are updates, in the order of their names, each exactly once.

A writer creates a file under a name that is ignored, and renames it when it is complete. Two RDF files `x.add.nt` and `x.del.nt` are one update,
sorted by `x`. As long as one of them still has a name that is ignored, the other waits for it.
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

from evermat.core import DataError, check_function, sandboxed, seconds_argument
from evermat.core import error_catalogue as errors
from evermat.io import RdfOptions, fail, rdf_change, read_update, updates_of
from evermat.language import is_unicode
from evermat.runtime.streams.stream import ROOM, Follower, StreamedUpdate

#: bytes of facts that are read ahead; beyond them one update is
AHEAD = 64 << 20
_HIDDEN = (".", "_")
_UNFINISHED = (".tmp", ".part", ".crdownload")
_REPORTED = 20  # files that are too late, at the start
_A_MOMENT = 0.01  # seconds

Order: TypeAlias = tuple[str, str]
"""The key by which updates are sorted: the name, for a pair without the part that distinguishes its halves; then the whole name."""


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
    """The updates in a directory that a materialisation has not processed yet: `m.stream(FolderStream("changes", m))`.

    The stream looks for new files until it is closed. Its position is the name of the last file that was taken. A file that appears later with an
    earlier name is reported, and not taken.

    Each look lists the directory twice, because names that appear and disappear during a listing may be missing in it. A name in the first listing
    existed before the second began, and so did every file that was written before it: a file that was written in order is never too late.
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
        sandbox: bool = False,
    ) -> None:
        """A stream of the change files in a directory.

        Args:
            path: the directory.
            m: the materialisation: its program says what files hold, its positions what was taken.
            once: whether to end when all files that exist at the beginning are taken.
            poll: seconds to wait before looking again if there is no new file.
            together: whether to yield all updates that wait at once, for a caller that coalesces them.
            base: what relative IRIs in RDF are relative to.
            skip_malformed: whether to leave out malformed statements of RDF.
            warn: called with a message for each file that is not taken, or that waits for another.
            since: when the position was reached, in seconds since 1970; files before the position that appeared or changed later are reported.
            sandbox: whether others made the files: symbolic links that lead out of the directory are refused.

        Raises:
            DataError: the directory does not exist.
            ProgramError: `poll` is negative or not finite.
            TypeError: `poll` is not a number, or `warn` not a function.
        """
        seconds_argument("poll", poll)
        check_function("warn", warn)
        self.path = Path(path)
        #: the name of the stream
        self.name = stream_name(path)
        self._m = m
        self._once, self._poll, self._together = once, poll, together
        self._options, self._sandbox = RdfOptions(base=base, skip=skip_malformed), sandbox
        self._warn = warn
        self._closed, self._reading = threading.Event(), threading.Lock()
        position = m.positions.get(self.name)
        self._reached: Order | None = None if position is None else order_of(position)
        self._ahead: deque[tuple[Order, int]] = deque()  # what is read and perhaps not yet processed, and its bytes
        self._waits = ("", "")  # a half of a pair, and the name under which the other half is made
        self._reported: set[tuple[str, str]] = set()  # files that wait
        self._known = self._taken_before(since)  # existing names that are not new

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
        """Stops reading and waiting."""
        self._closed.set()
        if self._reading.acquire(timeout=1):  # a library must not be cut short by the end of the process
            self._reading.release()

    # --- listings -------------------------------------------------------------------------------------
    def _taken_before(self, since: float | None) -> set[str]:
        """The files up to the position."""
        reached = self._reached
        known = {
            name for name in list_folder(self.path) if reached and not is_ignored(name) and order_of(name) <= reached
        }
        if since is not None:
            late = [name for name in sorted(known) if _changed(self.path / name) > since]
            for name in late[:_REPORTED]:
                self._report_late(name, "appeared or changed")
            if len(late) > _REPORTED:
                self._warn(f"{len(late) - _REPORTED:,} more files of `{self.path}` appeared or changed likewise")
        return known

    def _look(self) -> list[list[str]]:
        """The updates that wait, in their order; of those after a pair that is not complete none."""
        first = list_folder(self.path)
        new = self._new(first)
        if not new:
            return []
        last, _ = max(new)
        second = list_folder(self.path)
        names = [name for order in sorted(self._new(second)) for name in order[1:] if order[0] <= last]
        updates = [[path.name for path in paths] for paths in updates_of(map(Path, names))]
        unfinished = _halves(first | second)
        for number, files in enumerate(updates):
            half = rdf_change(Path(files[0])) if unfinished and len(files) == 1 else None
            if half is not None and (other := unfinished.get((half.stem, not half.insert))):
                self._wait(files[0], other)
                return updates[:number]
        return updates

    def _wait(self, half: str, other: str) -> None:
        """Reports, once, that a file waits for the other half of its pair, if that takes longer than to rename it."""
        waits = (half, other)
        if waits not in self._reported and (self._once or waits == self._waits):
            self._reported.add(waits)
            self._warn(f"`{self.path / half}` waits for `{other}`, and so do all files after it")
        self._waits = waits

    def _new(self, names: set[str]) -> list[Order]:
        """The files after the position. Reports new files before it."""
        self._known &= names  # a file that is removed may be written again
        found = []
        for name in names - self._known:
            if is_ignored(name) or not self._is_file(name):
                continue
            order = order_of(name)
            if self._reached is None or order > self._reached:
                found.append(order)
            else:
                self._known.add(name)
                self._report_late(name, "appeared")
        return found

    def _is_file(self, name: str) -> bool:
        try:
            return (self.path / name).is_file()
        except OSError as error:
            raise _unreadable(self.path / name, error.strerror or str(error)) from error

    def _report_late(self, name: str, what: str) -> None:
        self._warn(
            f"`{self.path / name}` {what} after its turn, and is not taken: files are taken in the order of their names"
        )

    # --- contents -------------------------------------------------------------------------------------
    def _read_all(self, updates: Sequence[Sequence[str]]) -> Iterator[FileUpdate]:
        """Reads updates, each when there is room for it. If one cannot be read, those before it are yielded."""
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
            if not is_unicode(path.name):
                raise _unreadable(path, "its name is not UTF-8")
        with sandboxed([self.path], on=self._sandbox):
            changes = read_update(paths, self._m.program, self._options, skipped)
        size = sum(table.nbytes for facts in (changes.insert, changes.delete) for table in facts.values())
        self._reached = order_of(files[-1])
        self._known.update(files)
        self._ahead.append((self._reached, size))
        return FileUpdate(changes.insert, changes.delete, (self.name, files[-1]), tuple(files), skipped)

    def _is_full(self) -> bool:
        """Whether so much has been read ahead that more has to wait: beside what is processed, one update may always be there."""
        position = self._m.positions.get(self.name)
        done = None if position is None else order_of(position)
        while self._ahead and done is not None and self._ahead[0][0] <= done:
            self._ahead.popleft()
        return len(self._ahead) > 1 and sum(size for _, size in self._ahead) > AHEAD


def stream_name(path: str | PathLike[str]) -> str:
    """The name of the stream of the change files in a directory."""
    return f"directory:{os.path.realpath(path)}"


def list_folder(path: Path) -> set[str]:
    """All names in a directory of change files; raises a `DataError` if it is not a directory, or cannot be read."""
    try:
        return set(os.listdir(path))  # noqa: PTH208 - names are all that is wanted
    except (FileNotFoundError, NotADirectoryError) as error:
        why = "it is a file" if path.exists() else "there is no such folder"
        raise fail(errors.NO_SOURCE, path=path, why=why) from error
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def is_ignored(name: str) -> bool:
    """Whether a name is not that of a change file, or not yet."""
    return name.startswith(_HIDDEN) or name.endswith(_UNFINISHED)


def _unreadable(path: Path, why: str) -> DataError:
    return fail(errors.CANNOT_READ, path=path, what="changes are", why=why)


def order_of(name: str) -> Order:
    """The key of a file by name; the two files of a pair are neighbours."""
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
    """The time at which a file appeared or was last written; 0 if it does not exist."""
    try:
        return path.lstat().st_ctime
    except OSError:
        return 0
