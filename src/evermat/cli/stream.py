"""`evermat stream`: follows a folder into which files of changes are put."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import evermat
from evermat.api.materialisation import Materialisation
from evermat.cli.ontology import tell_skipped
from evermat.cli.run import SparkOptions, announcing_compilation
from evermat.cli.signals import Interrupted, Terminated, check_signals, say_when_stopped
from evermat.cli.state import opened_state
from evermat.core import EvermatError, PhaseTimer, Problem, ProgramError, ResourceError
from evermat.core import error_catalogue as errors
from evermat.engine.run import Limits
from evermat.io import Changed, RdfOptions, write_changes
from evermat.runtime.change import Change
from evermat.runtime.folder_stream import Directory, FileUpdate, list_folder, stream_name
from evermat.store import Version, sync

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Following:
    """How a folder is followed, and what is told about it."""

    source: Path
    algorithm: str
    limits: Limits
    marking: bool | None
    coalesce: bool
    once: bool
    poll: float
    rdf: RdfOptions
    changes_out: Path | None
    form: str
    stats: Path | None


def stream_state(state: Path, following: Following, phases: PhaseTimer, spark: SparkOptions | None = None) -> None:
    """Makes every file, or all that wait, a version of a state, until everything is taken or a signal arrives."""
    _refuse_own_files(following)
    list_folder(following.source)
    with announcing_compilation(), ExitStack() as stack:
        log = None if following.stats is None else stack.enter_context(_appended(following.stats))
        m = stack.enter_context(opened_state(state, phases, spark))
        say_when_stopped(_reached(m))
        feed = None if following.changes_out is None else Feed(following.changes_out, following.form, state)
        with _directory(state, m, following, feed) as directory, _stopping(m, directory, feed):
            for change, updates in _changes(m, directory, following):
                say_when_stopped(_reached(m))
                _tell(m, change, updates, feed, log)


def _directory(state: Path, m: Materialisation, following: Following, feed: Feed | None) -> Directory:
    """The folder, from where it was left; what the newest version changed is written if that was missed."""
    name = stream_name(following.source)
    newest = _newest(state, name) if name in m.positions else None
    if feed is not None:
        feed.begin(newest)
    return Directory(
        following.source,
        m,
        once=following.once,
        poll=following.poll,
        together=following.coalesce,
        options=following.rdf,
        warn=lambda text: print(f"warning: {text}", file=sys.stderr),
        since=None if newest is None else newest.time.timestamp(),
    )


def _newest(state: Path, stream: str) -> Version | None:
    """The newest version that comes from a stream, if it is still kept."""
    for version in reversed(evermat.versions(state)):
        if version.batch is not None and version.batch == f"{stream} {version.counters['positions'].get(stream)}":
            return version
    return None


def _changes(
    m: Materialisation, directory: Directory, following: Following
) -> Iterator[tuple[Change, list[FileUpdate]]]:
    """What comes of the files, and which they are."""
    read: deque[FileUpdate] = deque()

    def noted() -> Iterator[FileUpdate]:
        for update in directory:
            read.append(update)
            yield update

    limits = following.limits
    changes = m.stream(
        noted(),
        algorithm=following.algorithm,
        marking=following.marking,
        coalesce=following.coalesce,
        limit_rounds=limits.rounds,
        limit_facts=limits.facts,
        limit_seconds=limits.seconds,
        memory=limits.memory,
    )
    while True:
        check_signals()
        try:
            change = next(changes, None)
        except EvermatError as error:
            # A file that cannot be read is named by the error, and comes after all that could be.
            about = f"this happened with `{directory.path / read[0].files[0]}`; " if read else ""
            raise _with_help(error, about + _reached(m)) from None
        if change is None:
            return
        yield change, [read.popleft() for _ in range(change.stats["updates"])]


def _tell(
    m: Materialisation, change: Change, updates: list[FileUpdate], feed: Feed | None, log: BinaryIO | None
) -> None:
    """Writes what a version changed, and says so."""
    files = [name for update in updates for name in update.files]
    try:
        if feed is not None:
            feed.write(change, m.version or 0)
        if log is not None:
            line = {"version": m.version, "files": files, **change.stats}
            with _failing(Path(log.name), _reached(m)):
                log.write(json.dumps(line).encode() + b"\n")
    except EvermatError as error:
        raise _with_help(error, _reached(m)) from None
    for update in updates:
        tell_skipped(update.skipped)
    name = " ".join(updates[0].files)
    if len(updates) > 1:
        name += f" … {' '.join(updates[-1].files)} ({len(files):,} files)"
    print(
        f"version {m.version}: {name}: {change.inserted.total:,} facts inserted, {change.deleted.total:,} deleted",
        file=sys.stderr,
    )


def _reached(m: Materialisation) -> str:
    return f"the state is at version {m.version}"


@contextmanager
def _stopping(m: Materialisation, directory: Directory, feed: Feed | None) -> Iterator[None]:
    """A signal may arrive when a version was just committed: what is said and written then is about that version."""
    try:
        yield
    except (Interrupted, Terminated):
        say_when_stopped(_reached(m))
        if feed is not None:
            with suppress(EvermatError):  # the next start tries again
                feed.complete(_newest(feed.state, directory.name))
        raise


class Feed:
    """A folder with a file for each version: what it changed in every relation.

    Invariant: when an update begins, all versions of the stream that were committed since the folder is used have their file. So after a crash
    only the newest can be without; it is written at the next start.
    """

    def __init__(self, folder: Path, form: str, state: Path) -> None:
        self.state = state
        self._folder, self._form = folder, form

    def begin(self, newest: Version | None) -> None:
        """Makes the folder; if it was there, the file of the newest version of the stream as well."""
        if self._folder.is_dir():
            self.complete(newest)
        with _failing(self._folder, "no version was made"):
            self._folder.mkdir(parents=True, exist_ok=True)

    def complete(self, newest: Version | None) -> None:
        """Writes the file of a version if it is missing."""
        if newest is not None and not self._place(newest.number).exists():
            told = evermat.changes(self.state, newest.number, newest.number)
            self.write(_Told.of(told), newest.number)

    def write(self, change: Changed, version: int) -> None:
        """Writes the file of a version: when it has its name it is whole, and survives a power loss."""
        place = self._place(version)
        hidden = place.with_name(f".{place.name}")
        write_changes(change, hidden)
        with _failing(place, f"version {version} is committed"):
            sync(hidden)
            hidden.replace(place)
            sync(self._folder)

    def _place(self, version: int) -> Path:
        return self._folder / f"{version:06}.{self._form}"


@dataclass(frozen=True)
class _Rows:
    """Facts of a relation as a table."""

    table: pa.Table

    def to_arrow(self) -> pa.Table:
        return self.table


@dataclass(frozen=True)
class _Told:
    """What a version changed, as the state tells it."""

    inserted: Mapping[str, _Rows]
    deleted: Mapping[str, _Rows]

    @classmethod
    def of(cls, told: Mapping[str, pa.Table]) -> _Told:
        """From tables with the columns `_op` and `_version`."""
        import pyarrow.compute as pc

        def those(op: str) -> dict[str, _Rows]:
            return {
                name: _Rows(table.filter(pc.equal(table["_op"], op)).drop_columns(["_op", "_version"]))
                for name, table in told.items()
            }

        return cls(those("+"), those("-"))


def _refuse_own_files(following: Following) -> None:
    """What is written to the source would be taken for changes."""
    source = os.path.realpath(following.source)
    written = {"--changes-out": following.changes_out, "--stats": following.stats and following.stats.parent}
    for option, folder in written.items():
        if folder is not None and os.path.realpath(folder) == source:
            what = f"`{option}` must not write to the source `{following.source}`: that would be taken for changes"
            raise ProgramError(Problem(errors.COMMAND_LINE, {"what": what}))


@contextmanager
def _appended(path: Path) -> Iterator[BinaryIO]:
    """A file to which lines are added, each at once."""
    with _failing(path, "no version was made"):
        file = path.open("ab", buffering=0)
    with file:
        yield file


@contextmanager
def _failing(path: Path, rest: str) -> Iterator[None]:
    """Turns what the system says about a file that is written into an error of ours."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        details: dict[str, Any] = {"path": path, "why": error.strerror or str(error), "rest": rest}
        raise ResourceError(Problem(errors.CANNOT_WRITE, details)) from None


def _with_help(error: EvermatError, help_: str) -> EvermatError:
    """The error, whose problems say what is true of the state."""
    problems: Iterable[Problem] = (replace(problem, help=problem.help or help_) for problem in error.problems)
    return type(error)(problems)
