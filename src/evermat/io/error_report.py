"""What is wrong with one file: how it is collected, and how messages name columns, values and the ranges of types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evermat.core import DataError, Kind, Problem, Source, Span, count_of
from evermat.core import error_catalogue as errors
from evermat.language import MAX_NUMBER, MAX_UNSIGNED, MIN_NUMBER, Relation, TermFault, Type

LIMIT = 10
COUNTED = 1000
_SHOWN = 40  # characters of a value that a message shows
RANGE_TEXTS = {  # the values of numeric types
    Type.NUMBER: f"a `number` lies between {MIN_NUMBER} and {MAX_NUMBER}",
    Type.UNSIGNED: f"an `unsigned` lies between 0 and {MAX_UNSIGNED}",
    Type.FLOAT: "a `float` lies between -1.7976931348623157e308 and 1.7976931348623157e308; infinity is spelled `inf`",
}
SPELLING_TEXTS = {  # how they are spelled
    Type.NUMBER: "a `number` is spelled like `-15`, `0x1f` or `0b101`, without blanks",
    Type.UNSIGNED: "an `unsigned` is spelled like `15`, `0x1f` or `0b101`, without blanks",
    Type.FLOAT: "a `float` is spelled like `-1.5`, `2e-9` or `inf`, without blanks",
}


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
    """Counts mistakes, of which it keeps the first ten: the reader leaves out what has one."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.first: list[Problem] = []

    def add(self, problem: Problem) -> None:
        self.count += 1
        if len(self.first) < LIMIT:
            self.first.append(problem)


def fail(kind: Kind, help: str = "", **details: object) -> DataError:  # noqa: A002
    """The error for something that makes a file unusable as a whole; its sentence names the file."""
    return DataError(Problem(kind, details, help=help))


def column_text(relation: Relation, position: int) -> str:
    """The column at a position, counted from 0, as messages name it."""
    return f"column {position + 1} (`{relation.columns[position].name}`)"


def term_details(relation: Relation, position: int, fault: TermFault) -> dict[str, Any]:
    """What the message about a text that is not a term says."""
    value = shown(fault.text) if fault.text else "the empty text"
    return {"where": column_text(relation, position), "value": value, "why": fault.why}


def name_list(items: Sequence[str]) -> str:
    """Names in backticks, separated by commas."""
    return ", ".join(f"`{item}`" for item in items) or "none"


def wrong_count(
    relation: Relation, count: int, what: str, found: str, surplus: str = "its fact has no values"
) -> tuple[Kind, dict[str, Any]]:
    """The error of a record with too few or too many values; `surplus` is what is said of a relation without columns."""
    expected = count_of(relation.arity, "column")
    details: dict[str, Any] = {"what": what, "found": found, "relation": relation.name, "expected": expected}
    if count < relation.arity:
        return errors.TOO_FEW_COLUMNS, details | {"missing": missing_columns(relation, count)}
    why = f"the last column is `{relation.columns[-1].name}`" if relation.arity else surplus
    return errors.TOO_MANY_COLUMNS, details | {"why": why}


def missing_columns(relation: Relation, count: int) -> str:
    """The columns of a relation that a record with so many values lacks, with the verb of a sentence."""
    absent = [column.name for column in relation.columns[count:]]
    return f"{name_list(absent)} {'is' if len(absent) == 1 else 'are'}"


def shown(text: str, longest: int = _SHOWN) -> str:
    """A value in backticks; what cannot be printed is escaped, and a long text is cut."""
    cut = text if len(text) <= longest else text[:longest] + "…"
    return "`" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + "`"
