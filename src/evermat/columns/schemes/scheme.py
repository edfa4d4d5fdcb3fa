"""What a storage scheme offers: its facts, by the domain that they are in.

The paper has the domains I, Δ and I ∪ Δ. With deletion there are three kinds of facts while an update is under way: those that
hold before and after it, those that hold only before, those that hold only after; and likewise in a round of a stratum that is computed from
scratch, where what came last is Δ. A *domain* is any of them together; each kind has one state word, so that a view over states is
a domain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from evermat.columns.storage.table import ADDED, DELETED, MATERIALISED, STATES, Batch, Rows, Truth

KEPT, LOST, GAINED = 1, 2, 4
BEFORE, AFTER, ANY = KEPT | LOST, KEPT | GAINED, KEPT | LOST | GAINED
#: the state word of each kind, in an update
IN_UPDATE: Mapping[int, int] = {KEPT: MATERIALISED, LOST: MATERIALISED | DELETED, GAINED: ADDED}

Mask = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.int64]


def domain_of(truth: Truth, states: Mapping[int, int] = IN_UPDATE) -> int:
    """The kinds of facts that satisfy a view over states."""
    return sum(kind for kind, state in states.items() if truth[state])


@lru_cache
def rows_in(domain: int) -> Truth:
    """Which states of rows of a plain table are in a domain."""
    states = np.arange(STATES, dtype=np.uint32)
    before = (states & MATERIALISED) != 0
    after = (before & ((states & DELETED) == 0)) | ((states & ADDED) != 0)
    inside = np.zeros(STATES, np.bool_)
    for kind, holds in ((KEPT, before & after), (LOST, before & ~after), (GAINED, after & ~before)):
        if domain & kind:
            inside |= holds
    return inside.astype(np.uint8)


class Facts(Protocol):
    """Facts of one relation that can be read by domain. Batches are new, or valid until the next step."""

    def kinds(self, facts: Batch, n: int) -> Kinds:
        """The kind of each of n facts; 0 for those that hold neither before nor after."""

    def holds(self, fact: Batch) -> bool:
        """Whether a single fact holds, while no update is under way."""

    def scan(self, domain: int, chunk: int) -> Iterator[Batch]:
        """All facts of a domain, each once."""

    def join(
        self, columns: tuple[int, ...], keys: Batch, n: int, domain: int, chunk: int
    ) -> Iterator[tuple[Rows, Batch]]:
        """For each of n keys the facts that have it in some columns, with the positions of the keys; the facts are new.

        There are at most `chunk` of them at a time, and never none.
        """

    def counts(self, columns: tuple[int, ...], keys: Batch, n: int, domain: int) -> Counts:
        """For each of n keys the number of facts that have it in some columns."""

    def count(self, domain: int) -> int:
        """How many facts there are."""


class Scheme(Facts, Protocol):
    """How a relation is stored that has no row for each fact."""

    @property
    def name(self) -> str:
        """What users know it by."""

    def domain(self, truth: Truth) -> int:
        """The kinds of facts that satisfy a view over states."""

    def is_changed(self, changed: Collection[str]) -> bool:
        """Whether an update may have changed its facts; given the tables that have changed."""

    def about(self, domain: int) -> int:
        """About how many facts there are in a domain; cheap."""

    def changed(self, kind: int) -> Batch | Later:
        """The facts that the update which is under way gains, or loses."""

    @property
    def nbytes(self) -> int:
        """Bytes in use, beside the table of inputs."""


class Later(Protocol):
    """Facts that came or went, listed when somebody asks for them; later updates do not matter."""

    @property
    def count(self) -> int:
        """How many there are."""

    def batch(self) -> Batch:
        """The facts."""


def contains(scheme: Facts, facts: Batch, n: int, domain: int) -> Mask:
    """Which of n facts are in a domain."""
    inside: Mask = (scheme.kinds(facts, n) & np.uint8(domain)) != 0
    return inside
