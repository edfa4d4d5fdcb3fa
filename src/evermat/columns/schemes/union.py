"""Relations that copy others: a fact holds if it is an input, or a fact of one of the sources.

A view, without a copy of anything (the paper's C_T is not needed): U := L_U ∪ ⋃ sources, in each domain. Sources may be schemes
themselves, unions too. A fact that several sources have is handed out by the first of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from evermat.columns.schemes.closure import ClosedRelation
from evermat.columns.schemes.rows import StoredRows
from evermat.columns.schemes.scheme import (
    AFTER,
    ANY,
    BEFORE,
    GAINED,
    KEPT,
    LOST,
    Counts,
    Facts,
    Kinds,
    Scheme,
    contains,
    domain_of,
)
from evermat.columns.table import Batch, Rows, Table, Truth


class UnionOfRelations:
    """A union of relations; see `scheme.Scheme`."""

    name = "union"

    def __init__(self, inputs: Table, sources: Mapping[str, Table]) -> None:
        self._names = set(sources)
        self._tables = [inputs, *sources.values()]

    def domain(self, truth: Truth) -> int:
        return domain_of(truth)

    def is_changed(self, changed: Collection[str]) -> bool:
        """Whether an update has changed a source."""
        return not self._names.isdisjoint(changed) or any(
            table.scheme is not None and table.scheme.is_changed(changed) for table in self._tables[1:]
        )

    @property
    def _sources(self) -> list[Facts]:
        """Inputs and sources; first those that have most facts, as far as that is known: the facts of the first are not looked up in others."""
        inputs, *others = self._tables
        schemes = _different([table.scheme for table in others if table.scheme is not None])
        tables = [table for table in (inputs, *(one for one in others if one.scheme is None)) if len(table)]
        return [
            *sorted(schemes, key=lambda scheme: scheme.name == self.name),
            *map(StoredRows, sorted(tables, key=len, reverse=True)),
        ]

    def about(self, domain: int) -> int:
        inputs, *others = self._tables
        tables = [inputs, *(table for table in others if table.scheme is None)]
        # What an update changes in tables is not known without looking.
        rows = sum(map(len, tables)) if domain & KEPT else 0
        return rows + sum(table.scheme.about(domain) for table in others if table.scheme is not None)

    @property
    def nbytes(self) -> int:
        return 0

    def kinds(self, facts: Batch, n: int) -> Kinds:
        before, after = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        for number, source in enumerate(self._sources):
            kinds = source.kinds(facts, n)
            if not number and (kinds == KEPT).all():
                return kinds
            before |= (kinds & BEFORE) != 0
            after |= (kinds & AFTER) != 0
        kinds = np.where(before, np.where(after, KEPT, LOST), np.where(after, GAINED, 0))
        return kinds.astype(np.uint8)

    def holds(self, fact: Batch) -> bool:
        inputs, *others = self._tables
        return any(
            (StoredRows(table) if table is inputs or table.scheme is None else table.scheme).holds(fact)
            for table in (*others, inputs)
        )

    def scan(self, domain: int, chunk: int) -> Iterator[Batch]:
        return self._scan(domain, chunk, first=0)

    def _scan(self, domain: int, chunk: int, *, first: int) -> Iterator[Batch]:
        """The facts of a domain, without those of sources before the `first`."""
        looked, sources = _candidates(domain), self._sources
        for number in range(first, len(sources)):
            for facts in sources[number].scan(looked, chunk):
                chosen = self._chosen(_earlier(sources, number), facts, domain)
                if len(chosen) == facts.shape[1]:
                    yield facts
                elif len(chosen):
                    yield np.ascontiguousarray(facts[:, chosen])

    def join(
        self, columns: tuple[int, ...], keys: Batch, n: int, domain: int, chunk: int
    ) -> Iterator[tuple[Rows, Batch]]:
        looked = _candidates(domain)
        sources = self._sources
        for number, source in enumerate(sources):
            for positions, facts in source.join(columns, keys, n, looked, chunk):
                chosen = self._chosen(_earlier(sources, number), facts, domain)
                if len(chosen) == facts.shape[1]:
                    yield positions, facts
                elif len(chosen):
                    yield positions[chosen], np.ascontiguousarray(facts[:, chosen])

    def _chosen(self, earlier: Sequence[Facts], facts: Batch, domain: int) -> Rows:
        """Those of a source's facts that are in the domain, and that no earlier source hands out."""
        n, looked = facts.shape[1], _candidates(domain)
        if not earlier and looked == domain and domain not in (GAINED, LOST):
            return np.arange(n, dtype=np.int32)
        facts = np.ascontiguousarray(facts)
        chosen = np.ones(n, np.bool_)
        for source in earlier:
            chosen &= ~contains(source, facts, n, looked)
        if looked != domain or domain in (GAINED, LOST):  # what one source gains or loses another may have kept
            chosen &= contains(self, facts, n, domain)
        return np.flatnonzero(chosen).astype(np.int32)

    def counts(self, columns: tuple[int, ...], keys: Batch, n: int, domain: int) -> Counts:
        counts = np.zeros(n, np.int64)
        for positions, _ in self.join(columns, keys, n, domain, 1 << 16):
            counts += np.bincount(positions, minlength=n)
        return counts

    def changed(self, kind: int) -> Batch:
        return np.concatenate([np.empty((self._tables[0].arity, 0), np.int64), *self.scan(kind, 1 << 16)], axis=1)

    def count(self, domain: int) -> int:
        sources = self._sources
        skipped = int(domain in (BEFORE, AFTER, ANY) and len(sources) > 0)  # of the first all facts count
        counted = sources[0].count(domain) if skipped else 0
        return counted + sum(int(batch.shape[1]) for batch in self._scan(domain, 1 << 16, first=skipped))


def _different(schemes: list[Scheme]) -> list[Scheme]:
    """Schemes without those that hold the same pairs as another; and apart from that if turned around, which is then simply told."""
    found: list[Scheme] = []
    for scheme in schemes:
        alike = _alike(found, scheme)
        if not alike or not isinstance(scheme, ClosedRelation):
            found.append(scheme)
        elif all(other.flipped != scheme.flipped for other in alike):
            found.append(scheme if scheme.pairs.changes else scheme.apart_from_turned())
    return found


def _alike(schemes: Iterable[Facts], scheme: Facts) -> list[ClosedRelation]:
    """Members of the same closure."""
    if not isinstance(scheme, ClosedRelation):
        return []
    return [other for other in schemes if isinstance(other, ClosedRelation) and other.pairs is scheme.pairs]


def _earlier(sources: Sequence[Facts], number: int) -> Sequence[Facts]:
    """The sources before one of them that may have facts which it has, too."""
    source, before = sources[number], sources[:number]
    if not isinstance(source, ClosedRelation) or source.pairs.changes:
        return before
    alike = _alike(before, source)
    return [other for other in before if other not in alike]


def _candidates(domain: int) -> int:
    """Where facts of a domain are looked for in the sources: one may hold before in one source and after in another."""
    return domain if domain in (GAINED, LOST, BEFORE, AFTER) else ANY if domain else 0
