"""What a writer does in a bucket where on a disk it has the lock: see `intent`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evermat.core import Problem, StateError
from evermat.core import error_catalogue as errors
from evermat.store.attempt import attempt_of, born
from evermat.store.commits import Commits, Row
from evermat.store.delta_table import Staged
from evermat.store.directory import COMMITS, MARK, MARK_TEXT
from evermat.store.disk import below, delete
from evermat.store.intent import EachAtOnce, Intent, check_unwritten, complete, decide, pending
from evermat.store.location import Location, ObjectPath


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
    number = head.log.delta
    for _ in each(check_unwritten, [one.file for one in staged]):
        pass
    files = [content for one in (*staged, head) for content in one.contents]
    named = tuple((file.within(state), raw) for file, raw in files if isinstance(file, ObjectPath))
    intent = Intent(row.version, attempt, named, "" if number else MARK_TEXT)
    found = decide(state, state / COMMITS, number, intent)
    if found is None or found.attempt != attempt:
        raise _too_late(state, number, row, found)
    return intent


def _too_late(state: ObjectPath, number: int, row: Row, decided: Intent | None) -> StateError:
    """The error of a writer that was not the first."""
    if number == 0:
        return StateError(Problem(errors.STATE_EXISTS, {"path": state}))
    seen = row.version - (row.kind == "version")
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
