"""The part that updates: facts are deleted and put back by every algorithm in turns."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

import evermat
from bench.modular.data import Data
from bench.modular.runs import (
    MODULAR,
    SEMINAIVE,
    Took,
    agree,
    as_json,
    average,
    draw,
    sizes_of,
    tables,
    tell,
    timed,
)
from bench.modular.shapes import Shape, Sizes
from evermat import Materialisation

LARGE = 0.25  # of the explicit facts, in a large deletion
AGAIN = 3  # samples after whose deletion everything is computed from scratch

UPDATES = {  # by which algorithm the state is made that an algorithm updates, and with which counters
    "dred-c-mod": (MODULAR, "both"),
    "bf-c-mod": (MODULAR, "nonrecursive"),
    "remat": (MODULAR, "none"),
    "dred-c": (SEMINAIVE, "both"),
}
FIGURES = ("overdeleted", "rederived", "checked", "proved", "deleted", "derivations")


class Subject:
    """A materialisation that one algorithm updates again and again, as long as it has time left."""

    def __init__(self, shape: str, algorithm: str, m: Materialisation, limit: float) -> None:
        self.name, self.algorithm, self.m, self.limit = f"{shape} by {algorithm}", algorithm, m, limit
        self.before = sizes_of(m)
        self.deleting: list[Took] = []
        self.inserting: list[Took] = []
        self.large: Took | None = None
        self.figures: dict[str, list[int]] = {}
        self._left = limit
        self._is_whole = True

    def round(self, sample: dict[str, pa.Table]) -> None:
        """Deletes facts and puts them back, unless the time for that is over."""
        if self._left <= 0:
            return
        self.deleting.append(self._update(delete=sample))
        if not self.deleting[-1].given_up:
            self.inserting.append(self._update(insert=sample))
            if self.inserting[-1].given_up:
                self._is_whole = False
                return
        agree(self.name, sizes_of(self.m), self.before)

    def delete_many(self, facts: dict[str, pa.Table], expected: Sizes) -> None:
        """Deletes very many facts."""
        if self._is_whole:
            self.large = self._update(delete=facts)
            agree(self.name, sizes_of(self.m), self.before if self.large.given_up else expected)

    def _update(self, **change: Any) -> Took:
        done, took = timed(partial(self.m.update, **change, algorithm=self.algorithm, limit_seconds=self.limit))
        self._left = 0.0 if took.given_up else self._left - took.wall
        (kind,) = change
        if done is not None and kind == "delete":
            for figure in FIGURES:
                self.figures.setdefault(figure, []).append(done.stats[figure])
        tell(self.name, kind, took)
        return took

    def told(self) -> dict[str, Any]:
        """Averages over all samples but the first, if there are others; the large deletion."""
        counted = slice(min(1, len(self.deleting) - 1), None)
        return {
            "algorithm": self.algorithm,
            "samples": len(self.deleting[counted]),
            "small_deletion": as_json(average(self.deleting[counted])),
            "small_insertion": as_json(average(self.inserting[counted])),
            "large_deletion": as_json(self.large),
            "each_deletion_cpu": [round(took.cpu, 4) for took in self.deleting],
            "figures_of_each_deletion": self.figures,
        }


def measure_updates(shape: Shape, quick: bool, limit: float, samples: int) -> dict[str, Any]:
    """Small deletions and insertions, and a large deletion, by every algorithm; and everything from scratch instead."""
    program = evermat.Program.parse(shape.program)
    data = shape.facts(quick)
    total = sum(map(len, data.values()))
    size = min(1_000, total // 10)
    facts = tables(data)
    subjects: list[Subject] = []
    notes = dict(shape.left_out)
    for algorithm, (how, counters) in UPDATES.items():
        if algorithm in notes:
            continue
        m, took = timed(
            partial(program.materialise, facts, algorithm=how, schemes="plain", counters=counters, limit_seconds=limit)
        )
        tell(shape.name, algorithm, "materialised:", took)
        if m is None:
            notes[algorithm] = f"counting its derivations alone took longer than {limit:g} s"
            continue
        agree(f"{shape.name} for {algorithm}", sizes_of(m), subjects[0].before if subjects else shape.expected(quick))
        subjects.append(Subject(shape.name, algorithm, m, limit))
    scratch: list[Took] = []
    for seed in range(samples + 1):
        sample, rest = draw(data, size, seed)
        for subject in subjects:
            subject.round(tables(sample))
        if seed in range(1, AGAIN + 1):
            scratch.append(from_scratch(program, rest)[1])
    many, rest = draw(data, int(LARGE * total), samples + 1)
    expected, scratch_large = from_scratch(program, rest)
    for subject in subjects:
        subject.delete_many(tables(many), expected)
    return {
        "shape": shape.name,
        "facts": sum(subjects[0].before.values()) if subjects else None,
        "explicit": total,
        "changed": size,
        "changed_large": int(LARGE * total),
        "algorithms": [subject.told() for subject in subjects],
        "scratch": {"small_deletion": as_json(average(scratch)), "large_deletion": as_json(scratch_large)},
        "notes": notes,
        "left_out": list(shape.left_out),
        "limit": limit,
    }


def from_scratch(program: evermat.Program, data: Data) -> tuple[Sizes, Took]:
    """Mat-Mod on what is left."""
    facts = tables(data)
    m, took = timed(partial(program.materialise, facts, algorithm=MODULAR, schemes="plain"))
    return sizes_of(m), took
