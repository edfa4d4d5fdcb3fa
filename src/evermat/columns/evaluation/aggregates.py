"""Aggregate rules over columns.

The bindings of the body stream through a pipeline; what is kept is one accumulator for each group. Sums of integers are
kept in two halves and cannot overflow; sums and means of floats are rounded once, at the end.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from evermat.columns.evaluation.buffers import EvaluationContext
from evermat.columns.evaluation.operators import Sink, locating
from evermat.columns.evaluation.pipeline import Pipeline, Select
from evermat.columns.kernels import rows as row_kernels
from evermat.columns.storage.arrays import Batch, Mask, Numbers, Rows, grown, ones, positions_in
from evermat.columns.storage.counter import Weights
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.encoding import as_typed
from evermat.columns.storage.table import Table
from evermat.core import check_stop, watched_each
from evermat.language import AGGREGATES, RANGES, Atom, Rule, Type
from evermat.plan import Plan, Role, Sizes, delta_plan, full_plan

_HALF = 32
_INT64_MAX = int(np.iinfo(np.int64).max)
_LOW = np.int64(0xFFFFFFFF)


class AggregatePipeline:
    """A compiled aggregate rule; `start` is None for all groups, 0 for the changed ones of the atom that lists them."""

    def __init__(self, rule: Rule, start: int | None, context: EvaluationContext, sizes: Sizes) -> None:
        assert rule.aggregate is not None
        assert start in (None, 0)
        self.plan = full_plan(rule, sizes) if start is None else delta_plan(rule, start, sizes)
        self._body = Pipeline(self.plan, context, counted=True)
        self._rule, self._dictionary = rule, context.dictionary
        self._groups: Pipeline | None = None
        if lists_groups(rule):
            self._groups = Pipeline(listing_plan(rule, start, sizes), context, counted=False)

    @property
    def matches(self) -> int:
        return self._body.matches

    @property
    def undefined(self) -> int:
        return self._body.undefined

    def run(self, select: Select, sink: Sink) -> None:
        groups = Groups(self._rule, self._dictionary)
        if self._groups is not None:
            self._groups.run(select, groups.listed)
        self._body.run(select, groups.collect)
        groups.send(sink)


class Groups:
    """The groups of an aggregate rule: their keys, and what is known of their results so far."""

    def __init__(self, rule: Rule, dictionary: Dictionary) -> None:
        assert rule.aggregate is not None
        self._aggregate = aggregate = rule.aggregate
        self._keys = Table(len(aggregate.keys))
        value_type = aggregate.result.type if aggregate.value is None else aggregate.value.type
        self._accumulator = _ACCUMULATORS[aggregate.function](value_type, dictionary)
        #: a sink for the keys of groups that are there whether or not anything belongs to them
        self.listed: Sink = locating(self._keys)
        if AGGREGATES[aggregate.function].zero and not aggregate.keys:
            self.listed(np.empty((0, 1), np.int64), 1, None)  # the one group is there, if only with 0

    def collect(self, batch: Batch, n: int, weights: Weights | None) -> None:
        """A sink for bindings: keys, and the value unless it is bindings that are counted."""
        if weights is None:
            weights = ones(n)
        groups = self._keys.locate(batch[: self._keys.arity], n)
        values = weights if self._aggregate.value is None else batch[-1, :n]
        self._accumulator.add(groups, values, weights, self._keys.count)

    def send(self, sink: Sink) -> None:
        """Sends one row (keys, result) for every group that has a result."""
        keys = self._keys
        if not keys.count:
            return
        values, valid = self._accumulator.results(keys.count, self._aggregate.result.type)
        rows = positions_in(valid)
        out = np.empty((keys.arity + 1, len(rows)), np.int64)
        out[:-1] = keys.take(rows)
        out[-1] = values if len(rows) == keys.count else values[rows]
        if len(rows):
            sink(out, len(rows), None)


def lists_groups(rule: Rule) -> bool:
    """Whether groups are there, with a result, although nothing belongs to them."""
    return rule.aggregate is not None and bool(rule.body) and AGGREGATES[rule.aggregate.function].zero


def listing_plan(rule: Rule, start: int | None, sizes: Sizes) -> Plan:
    """The groups to compute: the rule without its aggregate, projected to the keys."""
    assert rule.aggregate is not None
    head = Atom(rule.head.relation, rule.aggregate.keys)
    keys_only = Rule(head, rule.body, rule.span)
    plan = full_plan(keys_only, sizes) if start is None else delta_plan(keys_only, start, sizes)
    assert all(role in (Role.PRESENT, Role.CHANGED) for _, role in plan.relations)
    return plan


# --- accumulators ------------------------------------------------------------------------------------------


class _Accumulator(ABC):
    """The state of all groups. `add` takes group numbers, values and how often each value counts."""

    def __init__(self, type_: Type, dictionary: Dictionary) -> None:
        self.type, self.dictionary = type_, dictionary
        self.counts: Numbers = np.zeros(0, np.int64)

    def add(self, groups: Rows, values: Numbers, weights: Weights, size: int) -> None:
        del values
        self.counts = grown(self.counts, size)
        if row_kernels.add_counts(self.counts, groups, weights, 1, 0, _INT64_MAX) < len(groups):
            raise OverflowError("more than 2^63 bindings of one group")

    @abstractmethod
    def results(self, size: int, result: Type) -> tuple[Numbers, Mask]:
        """The result of each group as an integer, and whether it has one."""


class _Count(_Accumulator):
    def results(self, size: int, result: Type) -> tuple[Numbers, Mask]:
        del result
        return grown(self.counts, size)[:size], np.ones(size, np.bool_)


class _Sum(_Accumulator):
    """Exact sums: integers in two halves of 32 bits, so that 2³¹ of them cannot overflow; floats as lists."""

    def __init__(self, type_: Type, dictionary: Dictionary) -> None:
        super().__init__(type_, dictionary)
        self.high: Numbers = np.zeros(0, np.int64)
        self.low: Numbers = np.zeros(0, np.int64)
        self.extra: dict[int, int] = {}  # what heavy weights contribute
        self.floats: list[tuple[Rows, npt.NDArray[np.float64], Weights]] = []

    def add(self, groups: Rows, values: Numbers, weights: Weights, size: int) -> None:
        super().add(groups, values, weights, size)
        if self.type is Type.FLOAT:
            self.floats.append((groups.copy(), values.view(np.float64).copy(), weights.copy()))
            return
        heavy = weights > 1
        if heavy.any():
            exact = as_typed(values, self.type)[heavy].tolist()
            for group, value, weight in zip(groups[heavy].tolist(), exact, weights[heavy].tolist(), strict=True):
                self.extra[group] = self.extra.get(group, 0) + value * weight
            groups, values = groups[~heavy], values[~heavy]
        self.high, self.low = grown(self.high, size), grown(self.low, size)
        np.add.at(self.high, groups, (as_typed(values, self.type) >> _HALF).view(np.int64))
        np.add.at(self.low, groups, values & _LOW)

    def sums(self, size: int) -> list[Fraction | int]:
        if self.type is not Type.FLOAT:
            high, low = grown(self.high, size).tolist(), grown(self.low, size).tolist()
            return [(high[g] << _HALF) + low[g] + self.extra.get(g, 0) for g in watched_each(range(size))]
        totals: list[Fraction | int] = [0] * size
        for groups, values, weights in self.floats:
            check_stop()
            for group, value, weight in zip(groups.tolist(), values.tolist(), weights.tolist(), strict=True):
                totals[group] += Fraction(value) * weight
        return totals

    def results(self, size: int, result: Type) -> tuple[Numbers, Mask]:
        if any(bool(np.isinf(values).any()) for _, values, _ in self.floats):
            return self._with_infinities(size)
        return _as_integers(self._values(size, result))

    def _values(self, size: int, result: Type) -> list[int | float | None]:
        return [_rounded(total, result) for total in watched_each(self.sums(size))]

    def _with_infinities(self, size: int) -> tuple[Numbers, Mask]:
        """Infinity absorbs everything but its opposite, with which it has no sum."""
        lists: list[list[float]] = [[] for _ in range(size)]
        for groups, values, weights in self.floats:
            check_stop()
            for group, value, weight in zip(groups.tolist(), values.tolist(), weights.tolist(), strict=True):
                lists[group] += [value] * (weight if math.isfinite(value) else 1)
        return _as_integers([_infinite_sum(values) for values in watched_each(lists)])


class _Mean(_Sum):
    def _values(self, size: int, result: Type) -> list[int | float | None]:
        counts = grown(self.counts, size)[:size].tolist()
        return [
            _rounded(Fraction(t) / n, result) if n else None
            for t, n in watched_each(zip(self.sums(size), counts, strict=True))
        ]


class _Extreme(_Accumulator):
    """The least value of each group, in an order given by integer keys; for `max` the order is reversed."""

    reversed = False

    def __init__(self, type_: Type, dictionary: Dictionary) -> None:
        super().__init__(type_, dictionary)
        self.best: Numbers = np.zeros(0, np.int64)
        self.seen: Numbers = np.zeros(0, np.int64)  # 1 for groups that have a value

    def add(self, groups: Rows, values: Numbers, weights: Weights, size: int) -> None:
        super().add(groups, values, weights, size)
        self.best, self.seen = grown(self.best, size), grown(self.seen, size)
        order = np.lexsort((self._keys(values), groups))
        first = order[np.concatenate([[True], groups[order][1:] != groups[order][:-1]])]
        group, value = groups[first], values[first]
        better = (self.seen[group] == 0) | (self._keys(value) < self._keys(self.best[group]))
        self.best[group[better]] = value[better]
        self.seen[group] = 1

    def _keys(self, values: Numbers) -> Numbers:
        """Integers in the order of the values."""
        if self.type is Type.SYMBOL:
            keys = self.dictionary.rank()[values].astype(np.int64)
        elif self.type is Type.FLOAT:
            keys = np.where(values < 0, np.int64(-(2**63)) - values - 1, values)
        elif self.type is Type.UNSIGNED:
            keys = values ^ np.int64(-(2**63))
        else:
            keys = values
        return ~keys if self.reversed else keys

    def results(self, size: int, result: Type) -> tuple[Numbers, Mask]:
        del result
        return grown(self.best, size)[:size], grown(self.seen, size)[:size] != 0


class _Greatest(_Extreme):
    reversed = True


_ACCUMULATORS: dict[str, type[_Accumulator]] = {
    "count": _Count,
    "sum": _Sum,
    "mean": _Mean,
    "min": _Extreme,
    "max": _Greatest,
}


def _rounded(total: Fraction | int, type_: Type) -> int | float | None:
    """An exact number as a value of the type, or None if it does not fit."""
    if type_ is Type.FLOAT:
        try:
            return float(total)
        except OverflowError:
            return None
    low, high = RANGES[type_]
    return int(total) if low <= total <= high else None


def _infinite_sum(values: list[float]) -> float | None:
    infinities = {value for value in values if math.isinf(value)}
    if len(infinities) == 2:
        return None
    return infinities.pop() if infinities else _rounded(sum(map(Fraction, values)), Type.FLOAT)


def _as_integers(results: list[int | float | None]) -> tuple[Numbers, Mask]:
    valid = np.array([value is not None for value in results], np.bool_)
    if any(isinstance(value, float) for value in results):
        return (np.array([value or 0.0 for value in results], np.float64) + 0.0).view(np.int64), valid
    whole = [0 if value is None else int(value) for value in results]
    return np.array([v - 2**64 if v >= 2**63 else v for v in whole], np.int64), valid
