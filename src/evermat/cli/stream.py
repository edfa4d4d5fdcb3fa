"""`evermat stream`: follows a directory into which change files are put."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import evermat
from evermat.cli.ontology import report_skipped
from evermat.cli.options import LimitOptions
from evermat.cli.run import reached_version, say
from evermat.cli.signals import Interrupted, Terminated, check_signals, say_when_stopped
from evermat.cli.state import opened_state, report_version, with_help
from evermat.cli.watchdog import limited
from evermat.core import (
    ChangesFormat,
    EvermatError,
    PhaseTimer,
    UpdateAlgorithm,
    open_output,
    reported,
    uninterrupted,
    wrong_argument,
)
from evermat.runtime import (
    ChangeFolder,
    FileUpdate,
    FolderStream,
    SparkOptions,
    announced_compilation,
    list_folder,
    stream_name,
)


@dataclass(frozen=True)
class Following:
    """How a directory is followed, and what is reported about it."""

    source: Path
    algorithm: UpdateAlgorithm
    limits: LimitOptions
    marking: bool | None
    coalesce: bool
    once: bool
    poll: float
    base: str | None
    skip_malformed: bool
    changes_out: Path | None
    form: ChangesFormat
    stats: Path | None
    keep: str | None = None


def stream_state(state: Path, following: Following, timer: PhaseTimer, spark: SparkOptions | None = None) -> None:
    """Makes every file, or all that wait, a version of a state, until everything is taken or a signal arrives."""
    _refuse_own_files(following)
    list_folder(following.source)
    with announced_compilation(say), ExitStack() as stack:
        stack.enter_context(limited(None, following.limits.memory, longest_wait=following.limits.limit_seconds))
        log = None if following.stats is None else stack.enter_context(_appended(following.stats))
        m = stack.enter_context(opened_state(state, timer, spark, following.keep))
        say_when_stopped(lambda: reached_version(state))
        feed = None if following.changes_out is None else ChangeFolder(following.changes_out, following.form, state)
        with _folder_stream(state, m, following, feed) as source, _stopping(state, source, feed):
            for change, updates in _changes(m, source, following):
                _report(m, change, updates, feed, log)


def _folder_stream(
    state: Path, m: evermat.Materialisation, following: Following, feed: ChangeFolder | None
) -> FolderStream:
    """The directory, from where it was left; what the newest version changed is written if that was missed."""
    name = stream_name(following.source)
    newest = _newest(state, name) if name in m.positions else None
    if feed is not None:
        feed.begin(newest)
    return FolderStream(
        following.source,
        m,
        once=following.once,
        poll=following.poll,
        together=following.coalesce,
        base=following.base,
        skip_malformed=following.skip_malformed,
        warn=lambda text: say(f"warning: {text}"),
        since=None if newest is None else newest.time.timestamp(),
    )


def _newest(state: Path, stream: str) -> evermat.Version | None:
    """The newest version that comes from a stream, if it is still kept."""
    for version in reversed(evermat.versions(state)):
        if version.batch is not None and version.batch == f"{stream} {version.counters['positions'].get(stream)}":
            return version
    return None


def _changes(
    m: evermat.Materialisation, source: FolderStream, following: Following
) -> Iterator[tuple[evermat.Change, list[FileUpdate]]]:
    """What the files change, and which files these are."""
    read: deque[FileUpdate] = deque()

    def noted() -> Iterator[FileUpdate]:
        for update in source:
            read.append(update)
            yield update

    changes = m.stream(
        noted(),
        algorithm=following.algorithm,
        marking=following.marking,
        coalesce=following.coalesce,
        **asdict(following.limits),
    )
    while True:
        check_signals()
        try:
            change = next(changes, None)
        except EvermatError as error:
            # A file that cannot be read is named by the error, and comes after all that could be.
            about = f"this happened with `{source.path / read[0].files[0]}`; " if read else ""
            raise with_help(error, about + _reached(m)) from None
        if change is None:
            return
        yield change, [read.popleft() for _ in range(change.stats["updates"])]


def _report(
    m: evermat.Materialisation,
    change: evermat.Change,
    updates: list[FileUpdate],
    feed: ChangeFolder | None,
    log: BinaryIO | None,
) -> None:
    """Writes what a version changed, and prints a line about it."""
    files = [name for update in updates for name in update.files]
    try:
        if feed is not None:
            feed.write(change, m.version or 0)
        if log is not None:
            line = {"version": m.version, "files": files, **change.stats}
            with reported(Path(log.name), _reached(m)):
                log.write(json.dumps(line).encode() + b"\n")
    except EvermatError as error:
        raise with_help(error, _reached(m)) from None
    for update in updates:
        report_skipped(update.skipped)
    name = " ".join(updates[0].files)
    if len(updates) > 1:
        name += f" … {' '.join(updates[-1].files)} ({len(files):,} files)"
    report_version(m, name, change)


def _reached(m: evermat.Materialisation) -> str:
    return f"the state is at version {m.version}"


@contextmanager
def _stopping(state: Path, source: FolderStream, feed: ChangeFolder | None) -> Iterator[None]:
    """Writes, when a signal stops the block, what is true then: a version may have been committed just before."""
    try:
        yield
    except (Interrupted, Terminated):
        if feed is not None:
            with suppress(EvermatError), uninterrupted():  # the next start tries again
                feed.complete(_newest(state, source.name))
        raise


def _refuse_own_files(following: Following) -> None:
    """Refuses to write to the source: what is written there would be taken for changes."""
    source = os.path.realpath(following.source)
    written = {"--changes-out": following.changes_out, "--stats": following.stats and following.stats.parent}
    for option, folder in written.items():
        if folder is not None and os.path.realpath(folder) == source:
            raise wrong_argument(
                f"`{option}` must not write to the source `{following.source}`: that would be taken for changes"
            )


@contextmanager
def _appended(path: Path) -> Iterator[BinaryIO]:
    """A file to which lines are added, each at once."""
    with reported(path, "no version was made"):
        file = open_output(path, "ab")
    with file:
        yield file
