"""Random updates for a long time: ``python -m tests.fuzz.updates SECONDS [FIRST_SEED]``.

Every seed is one program and some updates with one algorithm or a mix of them; what fails is told with its seed.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from random import Random

import pytest

import evermat
from evermat.core import MATERIALISE_ALGORITHMS
from evermat.reasoning import choose as choose_module
from tests.support.schemes import use_schemes
from tests.support.strategies import Features, random_program
from tests.support.updates import ALGORITHMS, applied, assert_right, random_revision, random_update


def run_seed(seed: int) -> str:
    """One program with up to eight updates; hands back the algorithm."""
    with pytest.MonkeyPatch.context() as patch:
        return _run_seed(Random(seed), patch)


def _run_seed(rng: Random, patch: pytest.MonkeyPatch) -> str:
    algorithm = rng.choice([*ALGORITHMS, "any", "rules"])
    choose_module._FEW = rng.choice([0, 5, 20, 50_000])  # attempts of `auto` are given up at any time
    closures = rng.choice([0.0, Features.closures, 1.0])
    use_schemes(patch, wherever_possible=rng.random() < 0.7, turned=rng.random() < 0.5)
    random = random_program(rng, Features(recursion=algorithm != "counting", closures=closures))
    m = evermat.Program.parse(random.text).materialise(
        random.facts,
        counters=rng.choice(["none", "nonrecursive", "both"]),
        algorithm=rng.choice(MATERIALISE_ALGORITHMS.names),
    )
    explicit = random.facts
    assert_right(m, random, explicit)
    for _ in range(rng.randint(1, 8)):
        delete, insert = random_update(rng, random.relations, explicit)
        chosen = rng.choice(ALGORITHMS[1:]) if algorithm in ("any", "rules") else algorithm
        if algorithm == "rules" and rng.random() < 0.7:
            random, gone, come = random_revision(rng, random)
            m.update(insert=insert, delete=delete, add_rules="\n".join(come), remove_rules="\n".join(gone))
        else:
            m.update(insert=insert, delete=delete, algorithm=chosen)
        explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)
    return algorithm


def main(seconds: float, seed: int) -> int:
    """Runs seed after seed until the time is over."""
    choose_module._MOST_FOR_BF = choose_module._MOST_FOR_DRED = 0.0
    print(f"first seed {seed}", flush=True)
    end, done, failed = time.monotonic() + seconds, Counter(), 0
    while time.monotonic() < end:
        try:
            done[run_seed(seed)] += 1
        except Exception:
            failed += 1
            print(f"seed {seed} fails:\n{traceback.format_exc()}", flush=True)
        seed += 1
        if sum(done.values()) % 1000 == 0:
            print(f"{sum(done.values())} programs", flush=True)
    print(f"{sum(done.values())} passed, {failed} failed", dict(done), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else Random().getrandbits(32)))
