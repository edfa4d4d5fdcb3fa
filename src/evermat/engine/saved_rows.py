"""Facts of a relation as rows of a state directory, which both engines describe and restore."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ops: TypeAlias = npt.NDArray[np.int8]
Mask: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.int64]


class Op(IntEnum):
    """Change of a fact by a version, which deletes it, inserts it, or changes only its origin or its counters."""

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
        ops: The change of each fact, an `Op`.
        explicit: Which facts are explicit.
        counts: Derivations of each fact, by kind, of the kinds that are kept; undefined for a deleted fact.
    """

    facts: Sequence[Any]
    ops: Ops
    explicit: Mask
    counts: Mapping[str, Counts] = field(default_factory=dict)

    @property
    def inserted(self) -> int:
        return int(np.count_nonzero(self.ops == Op.INSERTED))

    @property
    def deleted(self) -> int:
        return int(np.count_nonzero(self.ops == Op.DELETED))


class WritableRows(ABC):
    """Rows of a relation, some at a time, that tasks may also write as files of a state directory."""

    @abstractmethod
    def __iter__(self) -> Iterator[SavedRows]: ...

    @abstractmethod
    def in_form(self, form: Callable[[SavedRows], Any]) -> Any:
        """The rows as tables of a state directory, which `form`, a function that tasks can be sent, makes of some of them."""


@dataclass(frozen=True)
class Difference:
    """The changes that turn the facts of a saved version into those of an engine.

    Attributes:
        rows: The rows of every relation, some at a time.
        inserted: The number of inserted facts of relations that users see.
        deleted: The number of deleted facts of such relations.
    """

    rows: Mapping[str, Any]
    inserted: int
    deleted: int
