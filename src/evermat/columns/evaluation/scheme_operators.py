"""The steps of a plan that read a relation with a storage scheme."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evermat.columns.evaluation import buffers
from evermat.columns.evaluation.buffers import Keys, Level
from evermat.columns.evaluation.operators import Figures, MatchOperation
from evermat.columns.kernels import rows as row_kernels
from evermat.columns.schemes.scheme import Scheme, in_domain
from evermat.columns.storage.arrays import Batch, Mask, Numbers, Rows
from evermat.columns.storage.selection import Selection
from evermat.core import check_stop
from evermat.plan import Match


class SchemeFacts:
    """The facts of a storage scheme; see `operators.Facts`."""

    def __init__(self, scheme: Scheme, columns: tuple[int, ...]) -> None:
        self._scheme, self._columns = scheme, columns

    def contains(self, keys: Batch, n: int, selection: Selection) -> Mask:
        return in_domain(self._scheme, keys, n, _domain(self._scheme, selection))

    def counts(self, keys: Batch, n: int, selection: Selection, *, counted: bool) -> Numbers:
        del counted
        return self._scheme.counts(self._columns, keys, n, _domain(self._scheme, selection))

    def count(self, selection: Selection, *, counted: bool) -> int:
        domain = _domain(self._scheme, selection)
        if counted:
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
            check_stop()
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
