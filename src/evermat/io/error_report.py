"""Collects what is wrong with one file."""

from __future__ import annotations

from evermat.core import DataError, Kind, Problem, Source, Span
from evermat.core import error_catalogue as errors

LIMIT = 10
COUNTED = 1000


class FullError(Exception):
    """Enough errors were found; reading on would only find more of them."""


class Findings:
    """The errors of one file: the first ten, and how many more there are, up to a thousand.

    A position is given by one line of the file, never by the whole text: files may be larger than memory.
    """

    count = 0  # mistakes that are only counted, see `Skipped`

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self._more = 0

    def __enter__(self) -> None:
        """What is found in the block is raised at its end."""

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        if kind in (None, FullError):
            self.raise_if_any()

    def at(self, kind: Kind, line: str, number: int, span: Span, help: str = "", **details: object) -> None:  # noqa: A002
        """Notes an error in line `number`, whose text is `line`; `span` counts its characters."""
        self.add(Problem(kind, details, Source(self.path, line, number), span, help))

    def whole(self, kind: Kind, help: str = "", **details: object) -> None:  # noqa: A002
        """Notes an error of the file as a whole, or one whose position the details name."""
        self.add(Problem(kind, details, Source(self.path, ""), None, help))

    def add(self, problem: Problem) -> None:
        """Notes a problem, or counts it if there are many; what another has counted is counted as well."""
        if problem.kind == errors.MORE_DATA_ERRORS:  # not the same object if it comes from another process
            self._more += problem.details["count"]
        elif len(self.problems) < LIMIT:
            self.problems.append(problem)
        else:
            self._more += 1
        if LIMIT + self._more >= COUNTED:
            raise FullError

    def all(self) -> list[Problem]:
        """What was found, at last how much more there is."""
        if not self._more:
            return self.problems
        count = min(self._more, COUNTED - LIMIT)
        told = f"{'at least ' * (LIMIT + count == COUNTED)}{count} more error{'s' * (count > 1)}"
        details = {"more": told, "limit": LIMIT, "path": self.path, "count": count}
        return [*self.problems, Problem(errors.MORE_DATA_ERRORS, details)]

    def raise_if_any(self) -> None:
        if self.problems:
            raise DataError(self.all()) from None


class Skipped(Findings):
    """Only counts mistakes: the reader leaves out what has one."""

    def add(self, _problem: Problem) -> None:
        self.count += 1


def fail(kind: Kind, help: str = "", **details: object) -> DataError:  # noqa: A002
    """The error for something that makes a file unusable as a whole; its sentence names the file."""
    return DataError(Problem(kind, details, help=help))
