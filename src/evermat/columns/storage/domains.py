"""Domains: which facts are read while an update, or a round, is under way.

The storage paper has the domains I, Δ and I ∪ Δ. With deletion there are three kinds of facts while an update is under way: those that
hold before and after it, those that hold only before, those that hold only after; and likewise in a round of a stratum that is computed from
scratch, where the facts of the last round are Δ. A *domain* is any of them together; each kind has one state word, so that a view over states is
a domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from evermat.columns.storage.arrays import Truth
from evermat.columns.storage.table import ADDED, DELETED, MATERIALISED, STATES

#: kinds of facts: before and after, only before, only after
KEPT: Final = 1
LOST: Final = 2
GAINED: Final = 4
BEFORE, AFTER, ANY = KEPT | LOST, KEPT | GAINED, KEPT | LOST | GAINED
#: the state word of each kind, in an update
IN_UPDATE: Mapping[int, int] = {KEPT: MATERIALISED, LOST: MATERIALISED | DELETED, GAINED: ADDED}


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
