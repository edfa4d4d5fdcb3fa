"""Attempts to commit to a state in a bucket: who writes the next version, where no lock can say it.

Every writer may try. It writes its data files under names that have the number of the entry of `commits` that it aims at, and
some random digits; so files of several writers never have the same name. Then it writes its *intent*: one object, named by that
number, that has all that is to be written to logs. The object is written only if there is none of that name, and that decides:
the version is the one of the intent, and all other writers that aim at the number have failed. They delete their files.

Only then are the logs written, those of relations first and the entry of `commits` last, so that other programs never see
one without the other. A writer that finds an intent without its entry writes what is missing of it: always the same bytes under the
same names, so it does not matter how many do this, or how far each of them comes. At last the intent is deleted.

* An intent decides only while the entry of its number is missing. A writer that was late may write one after that was
  deleted; it notices because the entry is there.
* Files of attempts up to the number of the newest entry that no log names are garbage: their writers have failed, or will.
  Files of later attempts are left alone.
* Names of tables, like those of data files, are never used again, so that a writer that was late deletes nothing else.
"""

from __future__ import annotations

import errno
import json
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evermat.core import Problem, ResourceError, StateError
from evermat.core import error_catalogue as errors
from evermat.store.commits import write_witness
from evermat.store.delta_log import entry_file, entry_numbers
from evermat.store.disk import contents_of, damaged, names, put, put_new, read, unlink
from evermat.store.location import Location, ObjectPath

INTENTS = "_intents"  # in the folder of the commit table

EachAtOnce = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Calls a function for each of many things, perhaps several at once, as `map` does."""


@dataclass(frozen=True, slots=True)
class Intent:
    """All that is to be written to logs for an entry of the commit table: files by their names in the state, the entry last.

    With the first entry the `mark` of the state is written.
    """

    version: int
    attempt: str
    files: tuple[tuple[str, bytes], ...]
    mark: str = ""

    def encoded(self) -> bytes:
        """One line about the files, and their contents."""
        sizes = [[name, len(contents)] for name, contents in self.files]
        body = b"".join(contents for _, contents in self.files)
        about = {"version": self.version, "attempt": self.attempt, "files": sizes, "mark": self.mark}
        return json.dumps({**about, "check": zlib.crc32(json.dumps(about).encode() + body)}).encode() + b"\n" + body

    @staticmethod
    def decoded(file: Location, raw: bytes) -> Intent:
        """Reads what `encoded` returns, every byte of which is checked."""
        line, _, body = raw.partition(b"\n")
        try:
            about: Any = json.loads(line)
            check = about.pop("check")
            if zlib.crc32(json.dumps(about).encode() + body) != check:
                raise ValueError("the contents are others")  # noqa: TRY301 - all that is wrong is the same error
            files, start = [], 0
            for name, size in about["files"]:
                files.append((str(name), body[start : start + size]))
                start += size
            return Intent(about["version"], about["attempt"], tuple(files), about["mark"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(file, "its checksum is wrong") from error


def intent_file(commits: ObjectPath, number: int) -> ObjectPath:
    """The intent for an entry of the commit table."""
    return commits / INTENTS / f"{number:020}"


def decide(state: ObjectPath, commits: ObjectPath, number: int, intent: Intent) -> Intent | None:
    """Writes an intent for an entry, and returns the one that decides; None if that was completed, and is not this one.

    Raises:
        ResourceError: it is not known whether it was written.
        OSError: it was not written.
    """
    file, failure = intent_file(commits, number), "it cannot be read"
    if max(entry_numbers(commits), default=-1) >= number:
        return None
    try:
        put_new(file, intent.encoded())
    except OSError as error:
        if error.errno == errno.EACCES:
            raise  # refused, and so not written
        failure = error.strerror or str(error)
    try:
        found = _intent(file)
        if max(entry_numbers(commits), default=-1) < number:
            if found is None:
                raise incomplete(state, intent.version, failure)
            return found
        # It was completed, perhaps by others for this writer; what this writer has written since is of no use.
        if contents_of(entry_file(commits, number)) == intent.files[-1][1]:
            return intent
        if found is not None and found.attempt == intent.attempt:
            with suppress(OSError):
                unlink(file)
    except OSError as error:
        raise incomplete(state, intent.version, error.strerror or str(error)) from error
    except StateError as error:
        raise incomplete(state, intent.version, str(error.problems[0].details["why"])) from error
    return None


def _intent(file: ObjectPath) -> Intent | None:
    try:
        return Intent.decoded(file, contents_of(file))
    except FileNotFoundError:
        return None


def incomplete(state: Location, version: int, why: str) -> ResourceError:
    """The error for a version that others cannot see, although it is or may be decided."""
    rest = "it may have been committed: open the state again before you repeat the update"
    details = {"version": version, "path": state, "why": why, "rest": rest}
    return ResourceError(Problem(errors.INCOMPLETE_COMMIT, details))


def complete(state: ObjectPath, mark: ObjectPath, number: int, intent: Intent, each: EachAtOnce = map) -> None:
    """Writes what is missing of an intent that has decided, and deletes it.

    Raises:
        ResourceError: something could not be written; the next writer does it.
        StateError: another program wrote to one of the logs.
    """
    files = [(ObjectPath(state.bucket, f"{state.key}/{name}"), contents) for name, contents in intent.files]
    commits = files[-1][0].parent.parent
    try:
        for _ in each(_write_once, files[:-1]):
            pass
        _write_once(files[-1])
        if intent.mark:
            put(mark, intent.mark.encode())
    except OSError as error:
        raise incomplete(state, intent.version, error.strerror or str(error)) from error
    write_witness(commits, number)
    with suppress(OSError):
        unlink(intent_file(commits, number))


def _write_once(one: tuple[ObjectPath, bytes]) -> None:
    file, contents = one
    if not put_new(file, contents) and contents_of(file) != contents:
        raise damaged(file, "another program wrote to this table")


def pending(commits: ObjectPath, number: int) -> Intent | None:
    """The intent that has decided about an entry that is not there yet, if there is one.

    Raises:
        StateError: it is damaged, or cannot be read.
    """
    file = intent_file(commits, number)
    if file.name not in names(file.parent):
        return None
    try:
        found = _intent(file)
    except OSError:
        read(file)  # raises it as an error about the state
        raise
    return None if max(entry_numbers(commits), default=-1) >= number else found
