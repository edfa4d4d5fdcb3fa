"""Storage schemes in tests: where they are used is decided by sizes, which tests do not have."""

from __future__ import annotations

import pytest

from evermat.columns.schemes import policy, union_scheme

_BOUNDS = (
    "LEAST_PAIRS",
    "LEAST_PAIRS_IF_READ_BACKWARDS",
    "LEAST_PAIRS_IF_RECURSIVE",
    "LEAST_GROWTH",
    "LEAST_COPIES",
    "LEAST_COPIES_IF_SLOW",
)


def use_schemes(patch: pytest.MonkeyPatch, *, wherever_possible: bool = True, turned: bool = False) -> None:
    """`auto` gives every relation a scheme for which there is one, with graphs turned around if so wanted; or considers it, and decides for tables."""
    for bound in _BOUNDS if wherever_possible else ():
        patch.setattr(policy, bound, 0)
    patch.setattr(union_scheme, "MANY_SOURCES", 3)
    patch.setattr(union_scheme, "MANY_FACTS", 2)
    if not wherever_possible:
        patch.setattr(policy, "LEAST_PAIRS", 1)
        patch.setattr(policy, "LEAST_GROWTH", 1 << 40)
    if turned:
        patch.setattr(policy, "MANY_INTERVALS", -1)
        patch.setattr(policy, "INTERVALS_PER_NODE", -1)
        patch.setattr(policy, "REVERSED_GAIN", 0)
