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
        self._delta_positive, self._delta_negative = delta_positive, delta_negative
        self._fixed = {
            Role.PRESENT: positive,
            Role.CHANGED: delta_positive,
            Role.ABSENT: negative,
            Role.CHANGED_ABSENT: delta_negative,
            Role.ASKED: asked,
        }

    def view(self, role: Role) -> ViewT:
        """The facts that literals of a role read; for negated ones, those that theirs must not be among."""
        if role is Role.PRESENT_BEFORE:
            return self._positive if self._delta_positive is None else self._positive - self._delta_positive
        if role is Role.ABSENT_BEFORE:
            return self._negative if self._delta_negative is None else self._negative | self._delta_negative
        view = self._fixed[role]
        assert view is not None
        return view
