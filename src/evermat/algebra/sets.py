"""Sets of facts: views to read, sets that grow, and bags of the heads of rule instances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

from evermat.language import Stratum

OwnView: TypeAlias = Any
"""A view of the same engine. Views of different engines do not mix, which types cannot say in a readable way."""

OwnFacts: TypeAlias = Any
"""A view or a bag of the same engine."""


class View(Protocol):
    """Facts that can be read: a lazy expression over sets. Making one costs nothing; reading costs what is in it."""

    def __or__(self, other: OwnView, /) -> View: ...
    def __and__(self, other: OwnView, /) -> View: ...
    def __sub__(self, other: OwnView, /) -> View: ...

    def count(self, name: str) -> int:
        """Number of facts of a relation in it."""

    def about(self, name: str) -> int:
        """Estimated number of facts of a relation in it; cheap."""

    def at(self, stratum: Stratum) -> View:
        """Only facts of relations of this stratum."""

    def below(self, stratum: Stratum) -> View:
        """Only facts of relations of other strata; a stratum's rules read only lower ones."""

    def listed(self) -> View:
        """The facts in it now, whatever becomes of the sets that it is made of."""

    def in_schemes(self) -> View:
        """Those facts in it that storage schemes have derived last: they are in no set."""

    @property
    def size(self) -> int:
        """Number of facts in it."""

    def __bool__(self) -> bool:
        """Whether there is any fact in it; cheap for sets."""


class Set(View, Protocol):
    """A dataset that grows: I, E, a delta."""

    def add(self, facts: OwnFacts) -> View:
        """Adds facts and returns those that were new. Evaluates what is lazy."""


class WorkingSet(Set, Protocol):
    """A set for the time of an update, such as D, A, a delta, C, P or Y."""

    @property
    def names(self) -> Iterable[str]:
        """Relations of which it holds facts."""

    def replace(self, facts: OwnView) -> bool:
        """Holds exactly these facts from now on; returns whether there are any."""

    def clear(self) -> None:
        """Holds nothing from now on."""


class Bag(Protocol):
    """The heads of rule instances, one occurrence for each instance. Read once, by `Set.add` or a counter."""
