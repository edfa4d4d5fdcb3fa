"""The error that literals of different values would be equal, with what says so."""

from __future__ import annotations

from evermat.core import DataError, Problem
from evermat.core import error_catalogue as errors
from evermat.language import Value


class DifferentValuesError(DataError):
    """Literals of different values would be equal.

    Attributes:
        facts: The facts, over representatives, that lead from the one literal to the other.
    """

    facts: tuple[tuple[Value, ...], ...] = ()

    @classmethod
    def between(cls, first: str, second: str, facts: tuple[tuple[Value, ...], ...]) -> DifferentValuesError:
        """The error about two literals, whichever comes first."""
        first, second = sorted((first, second))
        error = cls(
            Problem(
                errors.DIFFERENT_VALUES,
                {"first": first, "second": second, "why": "the facts and rules are inconsistent"},
            )
        )
        error.facts = facts
        return error
