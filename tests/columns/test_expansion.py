"""Facts over representatives are expanded a limited number at a time, however large the classes of equal terms are."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from evermat.columns.equality import expansion
from evermat.columns.equality.union_find import UnionFind
from evermat.columns.storage.dictionary import Dictionary

MANY = 8


@pytest.mark.parametrize("seed", range(20))
def test_batches_are_small(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "_MANY", MANY)
    rng = Random(seed)
    dictionary = Dictionary()
    terms = dictionary.encode([f"<http://x/{i}>" for i in range(40)])
    union_find = UnionFind(dictionary)
    representatives = [0, 0, 0, 1, 2] * 8 if seed % 2 else [rng.randrange(5) for _ in terms]
    representatives[:5] = range(5)
    union_find.assign(np.arange(40), np.array(representatives, np.int64))
    names = {r: [t for t, one in enumerate(representatives) if one == r] for r in range(5)}
    facts = [tuple(rng.randrange(5) for _ in range(3)) for _ in range(6)]
    columns = rng.sample(range(3), rng.randint(1, 3))
    found = list(expansion.expand_names(np.array(facts, np.int64).T, np.array(columns), union_find))
    expected = [
        one for fact in facts for one in product(*(names[t] if c in columns else [t] for c, t in enumerate(fact)))
    ]
    assert sorted(zip(*np.concatenate(found, axis=1).tolist(), strict=True)) == sorted(expected)
    assert max(batch.shape[1] for batch in found) <= max(MANY, len(facts))
