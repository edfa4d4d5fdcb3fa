"""The collector of everything that is wrong with one source; and what the system says about a file, as a problem."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from evermat.core.error_catalogue import CANNOT_WRITE, MORE_ERRORS
from evermat.core.errors import Kind, Problem, ProgramError, ResourceError, did_you_mean
from evermat.core.source import Source, Span

_LONG_NAME = 100  # longer ones are not mistyped
_SHORTENED = 1000  # characters of a detail that are shown


def _shortened(value: Any) -> Any:
    """A detail as it is shown: names and numbers can be as long as the whole text."""
    return value[:_SHORTENED] + "…" if isinstance(value, str) and len(value) > _SHORTENED else value


class Problems:
    """Collects what is wrong with one source, so that all of it can be reported at once.

    The same problem is kept once: a rule with alternatives is looked at several times. Of a great many errors only
    the first are shown.
    """

    LIMIT: ClassVar[int] = 100

    def __init__(self, source: Source) -> None:
        self.source = source
        self._comparisons = 50_000  # of names, to find the one that was meant
        self._found: dict[tuple[int, Span | None, str], Problem] = {}

    def add(self, kind: Kind, span: Span | None, help: str = "", **details: object) -> None:  # noqa: A002
        problem = Problem(
            kind, {key: _shortened(value) for key, value in details.items()}, self.source, span, _shortened(help)
        )
        self._found.setdefault((kind.code, span, problem.message), problem)

    def hint(self, name: str, known: Collection[str]) -> str:
        """Which known name may have been meant; nothing more once a great many have been compared."""
        self._comparisons -= len(known)
        return did_you_mean(name, known) if self._comparisons >= 0 and len(name) <= _LONG_NAME else ""

    def __len__(self) -> int:
        return len(self._found)

    @property
    def errors(self) -> list[Problem]:
        """What makes the program unusable, in the order of the text."""
        return sorted((p for p in self._found.values() if not p.kind.warning), key=lambda p: p.sort_key)

    @property
    def warnings(self) -> list[Problem]:
        """What is worth saying but harmless, in the order of the text."""
        return sorted((p for p in self._found.values() if p.kind.warning), key=lambda p: p.sort_key)

    def raise_if_any(self) -> None:
        """Raises one `ProgramError` with all errors so far."""
        errors = self.errors
        if len(errors) > self.LIMIT:
            errors[self.LIMIT :] = [Problem(MORE_ERRORS, {"limit": self.LIMIT}, self.source)]
        if errors:
            raise ProgramError(errors)


@contextmanager
def reported(path: Path, rest: str) -> Iterator[None]:
    """Turns what the system says about a file that is written into an error that also says what is true of the rest."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        details = {"path": path, "why": error.strerror or str(error), "rest": rest}
        raise ResourceError(Problem(CANNOT_WRITE, details)) from None
