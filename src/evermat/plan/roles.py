"""What each role of a plan reads, for any engine's views."""

from __future__ import annotations

from typing import Generic, Protocol, Self, TypeVar

from evermat.plan.steps import Role


class _View(Protocol):
    def __or__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...


ViewT = TypeVar("ViewT", bound=_View)


class Roles(Generic[ViewT]):
    """The sets that were given for an evaluation: for positive and negated literals, their changes, and facts in question."""

    def __init__(
        self,
        positive: ViewT,
        negative: ViewT,
        delta_positive: ViewT | None = None,
        delta_negative: ViewT | None = None,
        asked: ViewT | None = None,
    ) -> None:
        self._positive, self._negative = positive, negative
        self._delta_positive, self._delta_negative, self._asked = delta_positive, delta_negative, asked

    def view(self, role: Role) -> ViewT:
        """What literals of a role read; for negated ones, what their fact must not be in."""
        view: ViewT | None
        match role:
            case Role.PRESENT:
                view = self._positive
            case Role.PRESENT_BEFORE:
                view = self._positive if self._delta_positive is None else self._positive - self._delta_positive
            case Role.CHANGED:
                view = self._delta_positive
            case Role.ABSENT:
                view = self._negative
            case Role.ABSENT_BEFORE:
                view = self._negative if self._delta_negative is None else self._negative | self._delta_negative
            case Role.CHANGED_ABSENT:
                view = self._delta_negative
            case Role.ASKED:
                view = self._asked
        assert view is not None
        return view
