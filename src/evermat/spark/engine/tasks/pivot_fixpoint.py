"""Pivots: a whole fixpoint in one job without shuffles.

Where all recursive rules of a stratum keep a column (see `plan.pivot_columns`), facts that differ in it never join: each bucket, if the column
decides on buckets, can be saturated by itself. A task runs the columns engine over the facts of its bucket and all facts of lower strata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from evermat.algebra import Counters
from evermat.columns import MATERIALISED, AppendedRows, Rows
from evermat.columns import State as ColumnsState
from evermat.engine import Run
from evermat.language import Program, Stratum
from evermat.plan import pivots
from evermat.reasoning import saturate
from evermat.spark.engine.fact_sets import FactSet, View
from evermat.spark.engine.state import State, StratumRules
from evermat.spark.engine.tasks.serialization import Amounts, Part, Shape, buckets_of, by_bucket, to_arrow, write_file
from evermat.spark.engine.tasks.set_expressions import Expression, combined, most
from evermat.spark.engine.tasks.task_table import batches_of
from evermat.spark.engine.tasks.worker import Figures, numbers_of, outcome, settle

_BELOW = 16_000_000  # facts of lower strata that a task may hold
_SMALL = 1_000_000  # facts that one task reads quickly
_WRITTEN = 1 << 23  # facts that are written at a time
_ROOM = 64_000_000  # facts that a task may hold before more tasks continue


def has_pivot(state: State, stratum: Stratum) -> bool:
    """Whether the recursive rules of a stratum can be evaluated bucket by bucket."""
    found = pivots(stratum)
    if found is None or any(state.context.shapes[name].home != (column,) for name, column in found.items()):
        return False
    below = _read(stratum) - set(stratum.relations)
    return sum(most(state.materialised.expression(name)) for name in below) <= state.cluster.budget.whole(_BELOW)


def fits_one_task(state: State, stratum: Stratum) -> bool:
    """Whether one task can read all facts that the recursive rules of a stratum read."""
    names = {*_read(stratum), *stratum.relations}
    return sum(most(state.materialised.expression(name)) for name in names) <= _SMALL


def saturate_by_pivot(
    state: State, run: Run, rules: StratumRules, delta: View, *, counted: bool, whole: bool
) -> FactSet:
    """Adds all consequences of Δ by the recursive rules of a stratum, as `saturate`, and returns the rest of Δ.

    With `whole` one task does it all, else there is a task for each bucket.
    """
    stratum = rules.stratum
    names = list(stratum.relations)
    read = _read(stratum)
    expressions = {name: e for name in {*names, *read} if (e := state.materialised.expression(name)) is not None}
    cluster, tasks = state.cluster, 1 if whole else state.cluster.buckets
    room = cluster.budget.of(_ROOM)
    with cluster.results() as folder:
        closing = PivotTask(
            program=_only(state.program, rules, expressions.keys() | set(names) | read),
            shapes=dict(state.context.shapes),
            expressions=expressions,
            delta={name: e for name in names if (e := delta.expression(name)) is not None},
            counted=counted,
            room=room if run.limits.facts is None else min(room, run.limits.facts),
            rounds=None if run.limits.rounds is None else max(run.limits.rounds - run.rounds, 0),
            folder=folder,
            buckets=cluster.buckets,
            tasks=tasks,
        )
        rows = cluster.execute(f"close {', '.join(names)[:60]}", tasks, [closing], run.look)
        found, figures = cluster.gather(rows, len(names))
    left = FactSet("left", state.context)
    for name, one in zip(names, found, strict=True):
        if one.facts:
            state.materialised.append(name, one.facts)
        if one.amounts:
            state.recursive_counter.append(name, one.amounts)
        if one.left:
            left.append(name, one.left)
    run.rounds += figures.rounds
    run.check_facts()
    state.context.report(figures, "forward")
    return left


def _read(stratum: Stratum) -> set[str]:
    """The relations that recursive rules read."""
    return set[str]().union(*(rule.reads for rule in stratum.recursive))


def _only(program: Program, stratum: StratumRules, names: Iterable[str]) -> Program:
    """The recursive rules of a stratum as a program; relations of lower strata have no rules in it."""
    relations = {name: program.relations[name] for name in names}
    rules = tuple(stratum.recursive.rules)  # in normal form, where equal terms are represented by one
    own = Stratum(stratum.stratum.relations, (), rules)
    # Tasks do not need the text, which may be long.
    source = replace(program.source, text="")
    return Program(source, relations, rules, {}, strata=(own,))


@dataclass(frozen=True, eq=False)
class PivotTask:
    """Saturates a part of the buckets under the recursive rules of a stratum, starting from Δ."""

    program: Program
    shapes: Mapping[str, Shape]
    expressions: Mapping[str, Expression]
    delta: Mapping[str, Expression]
    counted: bool
    room: int
    rounds: int | None
    folder: str
    buckets: int
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in numbers_of(batches):
            yield from self._close(Part(self.buckets, self.tasks, number))
        settle()

    def _close(self, part: Part) -> Iterator[pa.RecordBatch]:
        run = Run()
        state = ColumnsState(self.program, run)
        (rules,) = state.strata
        known, start = self._load(state, rules.stratum, part)
        run.room, run.rounds_here = self.room + state.row_count, self.rounds
        list(run.strata(state))  # the run checks the size of this state
        counter = state.recursive_counter if self.counted else None
        left: Any = saturate(state, run, rules, start, counter)
        state.record_counters(rules.stratum, Counters.NONE)  # counts are complete
        for number, (name, before) in enumerate(known.items()):
            every = np.arange(state.tables[name].count, dtype=np.int32)
            yield from self._written(state, number, name, every[before:], "facts")
            if left:
                yield from self._written(state, number, name, left.rows(name), "left")
            if self.counted:
                counts = state.recursive_counter.counters[name].get(every)
                yield from self._written(state, number, name, every[counts > 0], "amounts", counts[counts > 0])
        asked = run.asked.get("forward")
        figures = Figures(run.derivations, 0 if asked is None else asked.matches, rounds=run.rounds)
        for rule, count in rules.recursive.undefined():
            figures.undefined[rule.span.start] += count
        yield outcome(0, 0, "figures", None, figures.packed())

    def _load(self, state: ColumnsState, stratum: Stratum, part: Part) -> tuple[dict[str, int], AppendedRows]:
        """Reads the part's own facts and all of lower strata; returns the number of facts of each own relation, and Δ.

        Facts of Δ are the last rows, for Δ must be a range of rows, and so must be the rest of I.
        """
        everything = Part(self.buckets, 1, 0)
        ranges: dict[str, tuple[int, int]] = {}
        for name, table in state.tables.items():
            own = part if name in stratum.relations else everything
            whole, delta = self.expressions.get(name), self.delta.get(name)
            rest = None if delta is whole else combined("-", whole, delta)
            before = 0
            for expression in (rest, delta):
                before = table.count
                for batch in batches_of(expression, self.shapes[name], state.dictionary, own):
                    table.add_new(batch, MATERIALISED)
            state.materialised.sizes[name] = table.count
            if delta is not None and table.count > before:
                ranges[name] = (before, table.count)
        return {name: state.tables[name].count for name in stratum.relations}, AppendedRows(state.tables, ranges)

    def _written(
        self,
        state: ColumnsState,
        target: int,
        name: str,
        rows: Rows,
        what: str,
        amounts: Amounts | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Writes facts to files of their buckets."""
        shape, dictionary = self.shapes[name], state.dictionary
        for first in range(0, len(rows), _WRITTEN):
            batch = state.tables[name].take(rows[first : first + _WRITTEN])
            for bucket, columns in by_bucket(buckets_of(batch, shape, self.buckets, dictionary)):
                own = None if amounts is None else amounts[first : first + _WRITTEN][columns]
                file = write_file(to_arrow(batch[:, columns], shape, dictionary, own), self.folder, bucket)
                yield outcome(target, bucket, what, file, b"", len(columns))
