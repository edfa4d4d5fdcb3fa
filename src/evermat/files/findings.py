"""Collects what is wrong with one file."""

from __future__ import annotations

from evermat.errors import MORE_DATA_ERRORS, DataError, Kind, Problem
from evermat.source import Source, Span

LIMIT = 10


class FullError(Exception):
    """Enough errors were found; reading on would only find more of them."""


class Findings:
    """The errors of one file: the first ten, and whether there are more.

    A place is given by one line of the file, never by the whole text: files may be larger than memory.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []

    def at(self, kind: Kind, line: str, number: int, span: Span, help: str = "", **details: object) -> None:  # noqa: A002
        """Notes an error in line `number`, whose text is `line`; `span` counts its characters."""
        self.add(Problem(kind, details, Source(self.path, line, number), span, help))

    def whole(self, kind: Kind, help: str = "", **details: object) -> None:  # noqa: A002
        """Notes an error of the file as a whole, or one whose place the details name."""
        self.add(Problem(kind, details, Source(self.path, ""), None, help))

    def add(self, problem: Problem) -> None:
        """Notes a problem, unless there are enough of them."""
        if len(self.problems) == LIMIT:
            self.problems.append(Problem(MORE_DATA_ERRORS, {"limit": LIMIT, "path": self.path}))
            raise FullError
        self.problems.append(problem)

    def raise_if_any(self) -> None:
        """Raises one `DataError` with everything found."""
        if self.problems:
            raise DataError(self.problems)


def fail(kind: Kind, help: str = "", **details: object) -> DataError:  # noqa: A002
    """The error for something that makes a file unusable as a whole; its sentence names the file."""
    return DataError(Problem(kind, details, help=help))
