"""Relations that copy others: a fact holds if it is an input, or a fact of one of the sources.

A view, without a copy of anything (the paper's C_T is not needed): U := L_U ∪ ⋃ sources, in each domain. Sources may be schemes
themselves; of unions among them it is their sources that are read. A fact that several sources have is handed out by the first of them.
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

#: the kind of a fact, by the kinds that it is in several sources: these are bits. What one loses and another gains is kept.
_KINDS_TOGETHER: Kinds = np.array([0, KEPT, LOST, KEPT, GAINED, KEPT, KEPT, KEPT], np.uint8)


class UnionOfRelations:
    """A union of relations; see `scheme.Scheme`."""

    name = "union"

    def __init__(self, inputs: Table, sources: Mapping[str, Table]) -> None:
        self._names = set(sources)
        self._tables = [inputs, *sources.values()]
        self._rows = [StoredRows(table) for table in self._tables]

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
        closures: list[Scheme] = []
        tables: list[StoredRows] = []
        self.collect(closures, tables, set())
        tables.sort(key=len, reverse=True)
        return [*_different(closures), *tables]

    def collect(self, closures: list[Scheme], tables: list[StoredRows], seen: set[int]) -> None:
        """Adds inputs and sources that were not seen before, and those of unions among them; tables only if they have rows."""
        for number, (table, rows) in enumerate(zip(self._tables, self._rows, strict=True)):
            if number and id(table) in seen:
                continue
            seen.add(id(table))
            scheme = table.scheme if number else None  # the rows of the union itself are its inputs
            if isinstance(scheme, UnionOfRelations):
                scheme.collect(closures, tables, seen)
            elif scheme is not None:
                closures.append(scheme)
            elif len(rows):
                tables.append(rows)

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
        together = np.zeros(n, np.uint8)
        for source in self._sources:
            together |= source.kinds(facts, n)
            if np.count_nonzero(together & KEPT) == n:
                break
        return _KINDS_TOGETHER[together]

    def holds(self, fact: Batch) -> bool:
        inputs, *others = self._rows
        for table, rows in zip(self._tables[1:], others, strict=True):
            if (rows if table.scheme is None else table.scheme).holds(fact):
                return True
        return inputs.holds(fact)

    def scan(self, domain: int, chunk: int) -> Iterator[Batch]:
        return self._scan(domain, chunk, first=0)

    def _scan(self, domain: int, chunk: int, *, first: int) -> Iterator[Batch]:
        """The facts of a domain, without those of sources before the `first`."""
        looked, sources = _candidates(domain), self._sources
        for number in range(first, len(sources)):
            earlier = _earlier(sources, number)
            for facts in sources[number].scan(looked, chunk):
                chosen = self._chosen(earlier, facts, domain)
                if chosen is None:
                    yield facts
                elif len(chosen):
                    yield np.ascontiguousarray(facts[:, chosen])

    def join(
        self, columns: tuple[int, ...], keys: Batch, n: int, domain: int, chunk: int
    ) -> Iterator[tuple[Rows, Batch]]:
        return _together(self._join(columns, keys, n, domain, chunk), chunk)

    def _join(
        self, columns: tuple[int, ...], keys: Batch, n: int, domain: int, chunk: int
    ) -> Iterator[tuple[Rows, Batch]]:
        """What comes of one source after the other."""
        looked, sources = _candidates(domain), self._sources
        for number, source in enumerate(sources):
            earlier = _earlier(sources, number)
            for positions, facts in source.join(columns, keys, n, looked, chunk):
                chosen = self._chosen(earlier, facts, domain)
                if chosen is None:
                    yield positions, facts
                elif len(chosen):
                    yield positions[chosen], np.ascontiguousarray(facts[:, chosen])

    def _chosen(self, earlier: Sequence[Facts], facts: Batch, domain: int) -> Rows | None:
        """Those of a source's facts that are in the domain, and that no earlier source hands out; None: all."""
        n, looked = facts.shape[1], _candidates(domain)
        # What one source gains or loses another may have kept.
        is_certain = looked == domain and domain not in (GAINED, LOST)
        if is_certain and not earlier:
            return None
        found = np.zeros(n, np.uint8)
        for source in earlier:
            found |= source.kinds(facts, n)
        chosen = (found & looked) == 0
        if not is_certain:
            chosen &= contains(self, facts, n, domain)
        return None if np.count_nonzero(chosen) == n else np.flatnonzero(chosen).astype(np.int32)

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


def _together(parts: Iterable[tuple[Rows, Batch]], chunk: int) -> Iterator[tuple[Rows, Batch]]:
    """The same matches in as few parts as a chunk allows: each costs whoever reads it as much as many facts."""
    held: list[tuple[Rows, Batch]] = []
    size = 0
    for positions, facts in parts:
        if size + len(positions) > chunk:
            yield _joined(held)
            held, size = [], 0
        held.append((positions.copy(), facts))
        size += len(positions)
    if held:
        yield _joined(held)


def _joined(parts: list[tuple[Rows, Batch]]) -> tuple[Rows, Batch]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([positions for positions, _ in parts]), np.concatenate([facts for _, facts in parts], axis=1)


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
