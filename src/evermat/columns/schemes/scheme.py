"""The protocol of a storage scheme: its facts, read by domain (see `storage.selection`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from evermat.columns.storage.arrays import Batch, Mask, Numbers, Rows, Truth

if TYPE_CHECKING:
    from evermat.columns.schemes.interval_scheme import ClosedRelation
    from evermat.columns.schemes.value_directory import Mentions
    from evermat.columns.storage.readable_table import ReadableTable

Kinds = npt.NDArray[np.uint8]
Counts = Numbers

Freeze: TypeAlias = "Callable[[Any], ReadableTable]"
"""Returns a table as it was when the last update was committed: that of a relation with its scheme, always the same for one version.

Of a table that belongs to no relation, such as the nodes of a closure, it returns the present rows. That must not refer to the version: it is
kept for other versions.
"""


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


class Leaf(Facts, Protocol):
    """Facts that are not made of other sources: a closure, the rows of a table, or a scheme of its own."""

    @property
    def mentions(self) -> Mentions | None:
        """All values that its facts have, and had; None if they are not listed anywhere."""

    def as_closure(self) -> ClosedRelation | None:
        """Itself, if its facts are the pairs of a closure, which can be sent as intervals and expanded elsewhere."""


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

    def leaves(self) -> Sequence[Leaf]:
        """The leaves that its facts come from, closures first; several may have the same fact."""

    def changed(self, kind: int) -> Batch | DeferredFacts:
        """The facts that the update which is under way gains, or loses."""

    def frozen(self, rows: ReadableTable, freeze: Freeze) -> Scheme:
        """The scheme as it was when the last update was committed, given the frozen table of its relation, and those of others by `freeze`.

        It may be called while an update is under way, but not while one is committed, nor twice at a time. What it returns is read by any threads,
        and stays the same whatever becomes of the scheme: all its facts are KEPT. Cheap.
        """

    @property
    def nbytes(self) -> int:
        """Bytes in use, beside the table of inputs."""


class DeferredFacts(Protocol):
    """Facts that an update has inserted or deleted, listed when they are asked for; later updates do not matter."""

    @property
    def count(self) -> int:
        """How many there are."""

    def batch(self) -> Batch:
        """The facts."""


def in_domain(scheme: Facts, facts: Batch, n: int, domain: int) -> Mask:
    """Which of n facts are in a domain."""
    inside: Mask = (scheme.kinds(facts, n) & np.uint8(domain)) != 0
    return inside
