"""Values, batches and views for the tests of columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from evermat.columns.storage.arrays import Batch, Truth
from evermat.columns.storage.table import STATES

Fact = tuple[int, ...]

SMALL = st.integers(0, 5)
#: values that differ in how they can be stored: dense, sparse, negative, at the limits of 32 and 64 bits
EDGES = st.sampled_from([0, 1, 2, 70_000, -1, -5, 2**31 - 1, -(2**31), 2**31, 2**32, 2**32 + 1, 2**63 - 1, -(2**63)])
NARROW = st.sampled_from([0, 1, 2, 3, 50, 70_000, 2**31 - 1, -1, -(2**31)])
VALUES = st.sampled_from([SMALL, SMALL, NARROW, SMALL | EDGES])


@st.composite
def fact_lists(draw: st.DrawFn, arity: int, lists: int = 4, size: int = 12) -> list[list[Fact]]:
    """Several lists of facts; each list has its own kind of values, so that representations change on the way."""
    out = []
    for _ in range(draw(st.integers(1, lists))):
        values = draw(VALUES)
        out.append(draw(st.lists(st.tuples(*[values] * arity), max_size=size)))
    return out


def batch_of(facts: list[Fact], arity: int, spare: int = 0) -> Batch:
    """The facts as a batch, with `spare` unused tuples of garbage behind."""
    batch = np.full((arity, len(facts) + spare), -77, np.int64)
    for i, fact in enumerate(facts):
        batch[:, i] = fact
    return batch


def truth_of(test: Callable[[int], bool]) -> Truth:
    """The truth table of a view."""
    return np.array([test(word) for word in range(STATES)], np.uint8)
