"""Random updates for a long time: ``python -m tests.maintenance.fuzz SECONDS [FIRST_SEED]``.

Every seed is one program and some updates with one algorithm or a mix of them; what fails is told with its seed.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections import Counter
from random import Random

import evermat
from tests.maintenance.updates import ALGORITHMS, applied, assert_right, random_update
from tests.strategies import Features, random_program


def run_seed(seed: int) -> str:
    """One program with up to eight updates; hands back the algorithm."""
    rng = Random(seed)
    algorithm = rng.choice([*ALGORITHMS, "any"])
    random = random_program(rng, Features(recursion=algorithm != "counting"))
    m = evermat.Program.parse(random.text).materialise(
        random.facts, counters=rng.choice(["none", "nonrecursive", "both"])
    )
    explicit = random.facts
    for _ in range(rng.randint(1, 8)):
        delete, insert = random_update(rng, random.relations, explicit)
        m.update(
            insert=insert, delete=delete, algorithm=rng.choice(ALGORITHMS[1:]) if algorithm == "any" else algorithm
        )
        explicit = applied(explicit, delete, insert)
        assert_right(m, random, explicit)
    return algorithm


def main(seconds: float, seed: int) -> int:
    """Runs seed after seed until the time is over."""
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
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
