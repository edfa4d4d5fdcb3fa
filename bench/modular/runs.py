"""What all parts share: runs and the time that they take, samples of facts, and the check of results."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bench.maintenance import arrow
from bench.modular.data import Data
from bench.modular.shapes import Sizes
from evermat import Materialisation
from evermat.core.errors import LimitError

MODULAR, SEMINAIVE = "modular", "seminaive"


@dataclass(frozen=True)
class Took:
    """Seconds of CPU, of the clock, and of CPU in the phase `reason`; if it was given up, those until then."""

    cpu: float
    wall: float
    reason: float
    given_up: bool = False

    def __str__(self) -> str:
        return f"{self.cpu:.4f} s CPU, {self.reason:.4f} of it reasoning" + (", given up" if self.given_up else "")


def as_json(took: Took | None) -> dict[str, Any] | None:
    return asdict(took) if took else None


def from_json(data: dict[str, Any] | None) -> Took | None:
    return Took(**data) if data else None


def timed(work: Callable[[], Any]) -> tuple[Any, Took]:
    """What a materialisation or an update handed back, and what it took; None if it was given up."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    try:
        done = work()
    except LimitError:
        done = None
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return done, Took(cpu, wall, cpu if done is None else done.stats["cpu_seconds"]["reason"], done is None)


def average(all_took: Sequence[Took]) -> Took | None:
    """The average of several, if there are any; given up if one of them was."""
    if not all_took:
        return None
    given_up = [took for took in all_took if took.given_up]
    if given_up:
        return given_up[0]
    columns = zip(*((t.cpu, t.wall, t.reason) for t in all_took), strict=True)
    return Took(*(sum(column) / len(all_took) for column in columns))


def sizes_of(m: Materialisation) -> Sizes:
    """The number of facts of every relation."""
    return {name: len(facts) for name, facts in m.items()}


def tables(data: Data) -> dict[str, pa.Table]:
    """Relations as Arrow tables."""
    return {name: arrow(rows) for name, rows in data.items()}


def draw(data: Data, count: int, seed: int) -> tuple[Data, Data]:
    """Facts at random from all relations alike; and the rest."""
    total = sum(map(len, data.values()))
    chosen = np.zeros(total, bool)
    chosen[np.random.default_rng(seed).choice(total, count, replace=False)] = True
    parts = np.split(chosen, np.cumsum([len(rows) for rows in data.values()])[:-1])
    named = list(zip(data.items(), parts, strict=True))
    return {name: rows[part] for (name, rows), part in named if part.any()}, {
        name: rows[~part] for (name, rows), part in named
    }


def agree(what: str, found: Sizes, expected: Sizes) -> None:
    """Ends everything if there are other numbers of facts than there should be: times of wrong results are worth nothing."""
    wrong = {name: (found[name], size) for name, size in expected.items() if found[name] != size}
    if wrong:
        raise SystemExit(f"{what}: facts found and expected: {wrong}")


def tell(*words: object) -> None:
    """One line of progress."""
    print(*words, file=sys.stderr, flush=True)
