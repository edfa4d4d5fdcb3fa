"""Facts of a relation on their way to a state directory and back: what both engines describe and restore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ops: TypeAlias = npt.NDArray[np.int8]
Mask: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.int64]


class Op(IntEnum):
    """What a row says of its fact: a version deletes it, inserts it, or changes only its origin or its counters."""

    DELETED = 0
    INSERTED = 1
    UNCHANGED = 2


#: the kinds of counts: instances of nonrecursive rules and explicit facts, instances of recursive rules
NONRECURSIVE, RECURSIVE = "nonrecursive", "recursive"


@dataclass(frozen=True)
class SavedRows:
    """Some facts of a relation, each at most once.

    Attributes:
        facts: An Arrow column for each column of the relation, of the type that a state directory has for it.
        ops: What each row says of its fact.
        explicit: Which facts are explicit.
        counts: Derivations of each fact, by kind, of the kinds that are kept; of a deleted fact they say nothing.
    """

    facts: Sequence[Any]
    ops: Ops
    explicit: Mask
    counts: Mapping[str, Counts] = field(default_factory=dict)

    @property
    def inserted(self) -> int:
        """How many facts are inserted."""
        return int(np.count_nonzero(self.ops == Op.INSERTED))

    @property
    def deleted(self) -> int:
        """How many facts are deleted."""
        return int(np.count_nonzero(self.ops == Op.DELETED))


@dataclass(frozen=True)
class Difference:
    """What turns the facts of a saved version into those of an engine.

    Attributes:
        rows: The rows of every relation, some at a time.
        inserted: How many facts it inserts, of relations that users see.
        deleted: How many facts it deletes.
    """

    rows: Mapping[str, Any]
    inserted: int
    deleted: int
