"""The bits of a row's state word: which datasets a fact is in."""

from __future__ import annotations

#: what outlives an update. Where equal terms are represented by one, what is given is told from its normal form, which is then E.
EXPLICIT, MATERIALISED, NORMAL = 1, 2, 4
#: D and A, what an update deletes and adds
DELETED, ADDED = 1 << 15, 1 << 14
#: for the other working sets of an update; where no terms are represented by others, NORMAL too
FREE = [1 << i for i in range(3, 14)]
