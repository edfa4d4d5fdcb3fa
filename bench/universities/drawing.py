"""Numbers at random, the same for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Random = np.random.Generator
Range = tuple[int, int]  # both ends are possible


def seeded(*numbers: int) -> Random:
    """What all that is drawn for a university or a department comes from: the seed and its numbers."""
    return np.random.default_rng(numbers)


def draw(random: Random, of: Range, how_many: int | None = None) -> Any:
    """A number in a range, or several."""
    return (
        random.integers(of[0], of[1] + 1, how_many) if how_many is not None else int(random.integers(of[0], of[1] + 1))
    )


def distinct(random: Random, rows: int, bound: int, columns: int) -> Numbers:
    """In each row as many different numbers below the bound, all choices alike.

    The next number of a row counts only those that are not taken: each taken one that is not larger moves it up by one.
    """
    chosen = np.empty((rows, columns), np.int64)
    for column in range(columns):
        number = random.integers(0, bound - column, rows)
        for taken in np.sort(chosen[:, :column], axis=1).T:
            number += number >= taken
        chosen[:, column] = number
    return chosen
