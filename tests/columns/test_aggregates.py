"""Results of aggregates whose groups come in several batches: whatever is kept for groups grows between them."""

from __future__ import annotations

import numpy as np
import pytest

from evermat.columns.evaluation.aggregates import _ACCUMULATORS
from evermat.columns.storage.dictionary import Dictionary
from evermat.language import Type


@pytest.mark.parametrize("first", [0, 1, 5, 6])
@pytest.mark.parametrize(
    ("function", "result", "expected"),
    [
        ("count", Type.NUMBER, lambda values: len(values)),
        ("sum", Type.NUMBER, lambda values: sum(values)),
        ("mean", Type.FLOAT, lambda values: sum(values) / len(values)),
        ("min", Type.NUMBER, lambda values: min(values)),
        ("max", Type.NUMBER, lambda values: max(values)),
    ],
)
def test_groups_that_come_in_two_batches(function, result, expected, first):
    accumulator = _ACCUMULATORS[function](Type.NUMBER, Dictionary())
    found = {group: [] for group in range(7)}
    for size in filter(None, (first, 7)):
        groups = np.arange(size, dtype=np.int32)
        values = 10 * groups.astype(np.int64) + size
        accumulator.add(groups, values, np.ones(size, np.int64), size)
        for group, value in zip(groups.tolist(), values.tolist(), strict=True):
            found[group].append(value)
    values, valid = accumulator.results(7, result)
    assert valid.all()
    assert values.view(np.float64 if result is Type.FLOAT else np.int64).tolist() == list(map(expected, found.values()))
