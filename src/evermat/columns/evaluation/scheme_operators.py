"""The steps of a plan that read a relation with a storage scheme."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evermat.columns.evaluation import buffers
from evermat.columns.evaluation.buffers import WEIGHT, Keys, Level
from evermat.columns.evaluation.operators import Figures, MatchOperation, SelectOperation, multiply
from evermat.columns.kernels import rows as row_kernels
from evermat.columns.schemes.scheme import Scheme, in_domain
from evermat.columns.storage.arrays import Batch, Rows
from evermat.columns.storage.selection import Selection
from evermat.language import Variable
from evermat.plan import Check, Match


class AbsentInScheme(SelectOperation):
    """A negated atom: keeps the bindings whose fact is not there."""

    def __init__(self, step: Check, level: Level, scheme: Scheme, live: set[Variable]) -> None:
        super().__init__(step, level, live)
        self._scheme, self._keys = scheme, Keys(step.key, level)

    def push(self, n: int) -> None:
        if domain := _domain(self._scheme, self.selection):
            self.keep(np.flatnonzero(~in_domain(self._scheme, self._keys.batch(n), n, domain)), n)
        else:
            self.next.push(n)


class ExistsInScheme(SelectOperation):
    """An atom that binds nothing: keeps the bindings for which some fact agrees, or multiplies their weight."""

    def __init__(self, step: Match, level: Level, scheme: Scheme, *, counted: bool, live: set[Variable]) -> None:
        super().__init__(step, level, live)
        self._scheme, self._keys = scheme, Keys(step.key, level)
        self._full = len(step.key) == step.relation.arity
        self._counted = counted
        self._weight = level.rows[WEIGHT][0] if counted else -1

    def push(self, n: int) -> None:
        domain = _domain(self._scheme, self.selection)
        if self._full:
            chosen = np.flatnonzero(in_domain(self._scheme, self._keys.batch(n), n, domain))
        else:
            found = (
                self._scheme.counts(self._keys.columns, self._keys.batch(n), n, domain)
                if self._keys.columns
                else np.full(n, self._count(domain))
            )
            chosen = np.flatnonzero(found)
            if self._counted:
                multiply(self._level.buffer[self._weight, :n], found)
        self.keep(chosen, n)

    def _count(self, domain: int) -> int:
        """Number of facts; 1 if there are any, where it does not matter."""
        if self._counted:
            return self._scheme.count(domain)
        return int(any(batch.shape[1] for batch in self._scheme.scan(domain, 1)))


class JoinWithScheme(MatchOperation):
    """An atom that binds variables: the facts that agree with each binding, or all."""

    def __init__(
        self, step: Match, level: Level, inner: Level, scheme: Scheme, pipeline: Figures, *, first: bool
    ) -> None:
        super().__init__(step, level, inner, pipeline, first=first)
        self._scheme, self._keys = scheme, Keys(step.key, level)

    def push(self, n: int) -> None:
        buffer, outer = self._inner.buffer, self._level.buffer if self._carry else None
        for positions, facts in self._matches(n):
            self._pipeline.matches += len(positions)
            for a, b in self._equal:
                agree = np.flatnonzero(facts[a] == facts[b])
                positions, facts = positions[agree], facts[:, agree]  # noqa: PLW2901
            size = len(positions)
            if not size:
                continue
            for source, row in self._carry:
                assert outer is not None
                row_kernels.gather_batch(outer, source, positions, buffer, row)
            for column, row in self._binds:
                buffer[row, :size] = facts[column]
            if self._weight_row is not None:
                buffer[self._weight_row, :size] = 1
            self.next.push(size)

    def _matches(self, n: int) -> Iterator[tuple[Rows, Batch]]:
        """The facts that agree with each binding, with the positions of the bindings."""
        domain = _domain(self._scheme, self.selection)
        if self._keys.columns:
            # A copy: the buffer that keys lie in may be used again before all facts are read.
            keys = np.ascontiguousarray(self._keys.batch(n)[:, :n])
            yield from self._scheme.join(self._keys.columns, keys, n, domain, buffers.CHUNK)
            return
        for facts in self._scheme.scan(domain, buffers.CHUNK):
            for position in range(n):
                yield np.full(facts.shape[1], position, np.int32), facts


def _domain(scheme: Scheme, selection: Selection) -> int:
    return 0 if selection.truth is None else scheme.domain(selection.truth)
