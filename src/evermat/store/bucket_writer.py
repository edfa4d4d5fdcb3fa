"""What a writer does in a bucket where on a disk it has the lock: see `intent`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Concatenate, ParamSpec, TypeVar

from evermat.core import Problem, StateError
from evermat.core import error_catalogue as errors
from evermat.store.attempt import attempt_of, born
from evermat.store.commits import Commits, Row
from evermat.store.delta_log import entry_numbers
from evermat.store.delta_table import Staged
from evermat.store.directory import COMMITS, MARK, MARK_TEXT
from evermat.store.disk import below, damaged, delete, exists
from evermat.store.formats.format_2 import Reader
from evermat.store.intent import EachAtOnce, Intent, complete, decide, pending
from evermat.store.location import Location, ObjectPath

_P = ParamSpec("_P")
_R = TypeVar("_R")
_W = TypeVar("_W", bound=Reader)


def read_completed(state: ObjectPath) -> Commits:
    """The commit table, after what other writers have left incomplete was completed."""
    commits = Commits.read(state / COMMITS)
    while (intent := pending(state / COMMITS, commits.entry + 1)) is not None:
        complete(state, state / MARK, commits.entry + 1, intent)
        commits = Commits.read(state / COMMITS, commits)
    return commits


def decided(
    state: ObjectPath, attempt: str, staged: Sequence[Staged], head: Staged, row: Row, each: EachAtOnce
) -> Intent:
    """Has the version of a row decided, and returns the intent that is to be completed.

    Raises:
        StateError: another writer was first, or another program wrote to a table; what was written is of no use.
        ResourceError: it is not known whether the version was decided.
        OSError: it was not written.
    """
    number, seen = head.log.delta, row.version - (row.kind == "version")
    if any(each(exists, [one.file for one in staged])):
        # An entry follows those of the newest version: of another writer, or of a program that knows nothing of intents.
        other = pending(state / COMMITS, number)
        if other is None and _newest(state) < number:
            raise damaged(staged[0].file.parent, "another program wrote to this table")
        raise _too_late(state, number, seen, other)
    files = [content for one in (*staged, head) for content in one.contents]
    named = tuple((file.within(state), raw) for file, raw in files if isinstance(file, ObjectPath))
    intent = Intent(row.version, attempt, named, "" if number else MARK_TEXT)
    found = decide(state, state / COMMITS, number, intent)
    if found is None or found.attempt != attempt:
        raise _too_late(state, number, seen, found)
    return intent


def in_time(method: Callable[Concatenate[_W, _P], _R]) -> Callable[Concatenate[_W, _P], _R]:
    """Has a writer in a bucket say that another one was first, instead of which files that one has deleted."""

    def checked(self: _W, /, *given: _P.args, **options: _P.kwargs) -> _R:
        number, seen = self._commits.entry + 1, self._seen
        try:
            return method(self, *given, **options)
        except StateError:
            state = self._path
            if isinstance(state, ObjectPath) and self._commits.entry < number <= _newest(state):
                raise _too_late(state, number, seen, None) from None
            raise

    update_wrapper(checked, method)
    return checked


def _newest(state: ObjectPath) -> int:
    """The number of the newest entry of the commit table."""
    return max(entry_numbers(state / COMMITS), default=-1)


def _too_late(state: ObjectPath, number: int, seen: int, decided: Intent | None) -> StateError:
    """The error of a writer that was not the first."""
    if number == 0:
        return StateError(Problem(errors.STATE_EXISTS, {"path": state}))
    found = Commits.read(state / COMMITS).last.version if decided is None else decided.version
    if found == seen:  # only files have been merged
        return StateError(Problem(errors.STATE_LOCKED, {"path": state}))
    return StateError(Problem(errors.STATE_MOVED, {"path": state, "found": found, "seen": seen}))


def remove_failed(folder: ObjectPath, unknown: Callable[[str], bool], commits: Commits) -> tuple[int, int]:
    """Removes what is in a folder but unknown, unless it may be of an attempt to commit that is going on; returns the number of files and bytes."""

    def has_failed(name: str) -> bool:
        attempt = attempt_of(name)
        return attempt <= commits.entry if attempt is not None else born(name) <= commits.last.version

    found: list[Location] = []
    size = 0
    wanted: dict[str, bool] = {}
    for path, bytes_ in below(folder):
        name = path.within(folder).partition("/")[0]
        if name not in wanted:
            wanted[name] = unknown(name) and has_failed(name)
        if wanted[name]:
            found.append(path)
            size += bytes_
    delete([path for path in found if isinstance(path, ObjectPath)])
    return len(found), size
