"""Errors: what a kind of error and one problem are, and the exceptions that carry problems. The kinds are in `error_catalogue`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from evermat.core.source import Source, Span


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing that can be wrong.

    Attributes:
        code: The number.
        sentence: The message, a template over the details of a problem.
        note: The rule behind it, likewise; may be empty.
        warning: Whether the result is usable all the same.
    """

    code: int
    sentence: str
    note: str = ""
    warning: bool = False

    @property
    def label(self) -> str:
        """`E221` or, for a warning, `W281`."""
        return f"{'W' if self.warning else 'E'}{self.code}"


@dataclass(frozen=True, slots=True)
class Problem:
    """A kind of error at a place, with the details that its sentence needs.

    Attributes:
        kind: What is wrong, with its number.
        details: The values in the sentence, by name.
        source: The text that the problem is in; None if it is in none.
        span: The range of characters in this text.
        help: What to do about it; may be empty.
    """

    kind: Kind
    details: dict[str, Any]
    source: Source | None = None
    span: Span | None = None
    help: str = ""

    def at(self, source: Source) -> Problem:
        """The same problem, in this source."""
        return replace(self, source=source)

    @property
    def message(self) -> str:
        """The sentence, without the place."""
        return self.kind.sentence.format_map(self.details)

    @property
    def note(self) -> str:
        """The rule behind it, or nothing."""
        return self.kind.note.format_map(self.details)

    @property
    def sort_key(self) -> tuple[int, int, str]:
        """Problems are reported in the order of their places."""
        start = self.span.start if self.span else -1
        return (start, self.kind.code, self.message)

    def render(self) -> str:
        """The whole text: sentence, place, caret line, note, help."""
        lines = [f"{'warning' if self.kind.warning else 'error'}[{self.kind.label}]: {self.message}"]
        margin = " "
        if self.source is not None and self.span is not None:
            name, position = self.source.shown_position(self.span.start)
            text, carets = self.source.excerpt(self.span)
            margin = " " * len(str(position.line))
            lines += [
                f"{margin}--> {name}:{position.line}:{position.column}",
                f"{margin} |",
                f"{position.line} | {text}".rstrip(),
                f"{margin} | {carets}",
            ]
        elif self.source is not None:
            lines.append(f" --> {self.source.name}")
        if self.note:
            lines.append(f"{margin} = note: {self.note}")
        if self.help:
            lines.append(f"{margin} = help: {self.help}")
        return "\n".join(lines)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint naming the known name closest to `name`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else ""


def count_of(number: int, noun: str) -> str:
    """`no columns`, `1 column`, `2 columns`."""
    return f"{number} {noun}" if number == 1 else f"{number or 'no'} {noun}s"


class EvermatError(Exception):
    """The base of all errors that Evermat raises on purpose; carries every problem found."""

    exit_code: ClassVar[int] = 1

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        found = [problems] if isinstance(problems, Problem) else list(problems)
        self.problems: tuple[Problem, ...] = tuple(found)
        super().__init__("\n\n".join(problem.render() for problem in self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        """An error travels between processes with its problems: of its text, no other could be made."""
        return type(self), (self.problems,), self.__dict__


class ProgramError(EvermatError):
    """The program, or the call, is wrong."""

    exit_code = 2


class ArgumentError(ProgramError, ValueError):
    """An argument of a call, or of the command line, has a value that it cannot have, or needs another argument."""


class SandboxError(ProgramError):
    """A program, data or a state names a file that the sandbox does not allow."""

    def at(self, source: Source, span: Span | None) -> SandboxError:
        """The same error, at a place if it has none yet."""
        return SandboxError(p if p.source else replace(p, source=source, span=span) for p in self.problems)


class DataError(EvermatError):
    """The data is wrong; nothing was changed."""

    exit_code = 3


class UnknownRelationError(DataError, KeyError):
    """A name that is not that of a relation."""

    __str__ = Exception.__str__  # a `KeyError` would show the text in quotes


class LimitError(EvermatError):
    """A limit was reached; nothing partial is passed off as a result."""

    exit_code = 4


class StateError(EvermatError):
    """The state directory is locked or damaged."""

    exit_code = 5


class ResourceError(EvermatError):
    """Disk, memory or cluster failed."""

    exit_code = 6


@contextmanager
def collected_errors() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Raises one `DataError` at the end of the block, with the problems of all that were raised inside `with collecting():`.

    with collected_errors() as collecting:
        for file in files:
            with collecting():
                read(file)
    """
    problems: list[Problem] = []

    @contextmanager
    def collecting() -> Iterator[None]:
        try:
            yield
        except DataError as error:
            problems.extend(error.problems)

    yield collecting
    if problems:
        raise DataError(problems)
