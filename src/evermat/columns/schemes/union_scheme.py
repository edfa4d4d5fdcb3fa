"""Relations that copy others: a fact holds if it is an input, or a fact of one of the sources.

A view, without a copy of anything (the paper's C_T is not needed): U := L_U ∪ ⋃ sources, in each domain. Sources may be schemes
themselves; of unions among them it is their sources that are read. A fact that several sources have is read from the first of them. Where there
are many sources, a list of the values that they mention says which of them are looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from evermat.columns.schemes.interval_scheme import ClosedRelation
from evermat.columns.schemes.scheme import Counts, Freeze, Kinds, Leaf, Scheme, in_domain
from evermat.columns.schemes.value_directory import Directories, Mentions, bit_of
from evermat.columns.storage.arrays import Batch, Rows, Truth
from evermat.columns.storage.readable_table import ReadableTable
from evermat.columns.storage.selection import AFTER, ANY, BEFORE, GAINED, KEPT, LOST, domain_of, rows_in
from evermat.columns.storage.table import MATERIALISED, STATES

#: so many sources have a list of the values that they mention; of so many facts only those are looked for in a source whose values it mentions
MANY_SOURCES = 6
MANY_FACTS = 512

#: the kind of a fact, by the kinds that it is in several sources: these are bits. What one loses and another gains is kept.
_KINDS_TOGETHER: Kinds = np.array([0, KEPT, LOST, KEPT, GAINED, KEPT, KEPT, KEPT], np.uint8)


class StoredRows:
    """The rows of a plain table, read by domain like a scheme; of a relation with a scheme these are its inputs."""

    def __init__(self, table: ReadableTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return self._table.count

    @property
    def mentions(self) -> Mentions:
        return Mentions(self._table, self._table.arity)

    def _rows_in(self, domain: int) -> Truth:
        """Which states of rows are in a domain."""
        return rows_in(domain)

    def as_closure(self) -> None:
        """None: each fact has a row."""

    def kinds(self, facts: Batch, n: int) -> Kinds:
        rows = self._table.find(facts, n)
        kinds: Kinds = _kind_of_state()[self._table.state[rows]]  # for -1 this reads some state; it is none then
        kinds[rows < 0] = 0
        return kinds

    def holds(self, fact: Batch) -> bool:
        if not self._table.count:
            return False
        row = int(self._table.find(fact, 1)[0])
        return row >= 0 and bool(self._table.state[row] & MATERIALISED)

    def scan(self, domain: int, chunk: int) -> Iterator[Batch]:
        for rows in self._table.scan(self._rows_in(domain), chunk=chunk):
            yield self._table.take(rows)

    def join(
        self, columns: tuple[int, ...], keys: Batch, n: int, domain: int, chunk: int
    ) -> Iterator[tuple[Rows, Batch]]:
        if not self._table.count:
            return  # an index would stay
        index = self._table.index(columns)
        for positions, rows in index.join(keys, self._rows_in(domain), lo=0, hi=self._table.count, n=n, chunk=chunk):
            yield positions, self._table.take(rows)

    def counts(self, columns: tuple[int, ...], keys: Batch, n: int, domain: int) -> Counts:
        return self._table.index(columns).counts(keys, self._rows_in(domain), lo=0, hi=self._table.count, n=n)

    def count(self, domain: int) -> int:
        return sum(len(rows) for rows in self._table.scan(self._rows_in(domain)))


class FrozenRows(StoredRows):
    """The rows of a frozen table. Those in I are all KEPT, whatever an update that is under way has written into their states."""

    def __init__(self, table: ReadableTable, growing: ReadableTable) -> None:
        """`growing`: the table that it was frozen from."""
        super().__init__(table)
        self._growing = growing

    @property
    def mentions(self) -> Mentions:
        return Mentions(self._growing, self._growing.arity)

    def _rows_in(self, domain: int) -> Truth:
        return rows_in(BEFORE if domain & KEPT else 0)

    def kinds(self, facts: Batch, n: int) -> Kinds:
        return self._table.contains(facts, self._rows_in(KEPT), n).view(np.uint8)  # KEPT, or 0


@cache
def _kind_of_state() -> Kinds:
    kinds = np.zeros(STATES, np.uint8)
    for kind in (KEPT, LOST, GAINED):
        kinds[rows_in(kind) != 0] = kind
    return kinds


class UnionOfRelations:
    """A union of relations; see `scheme.Scheme`."""

    name = "union"

    def __init__(
        self, inputs: ReadableTable, sources: Mapping[str, ReadableTable], growing: UnionOfRelations | None = None
    ) -> None:
        """`growing`: the union of the tables from which these are frozen."""
        self.sources = sources
        self.tables = [inputs, *sources.values()]
        if growing is None:
            self._rows, self.directories = [StoredRows(table) for table in self.tables], Directories()
        else:
            self._rows = [FrozenRows(*both) for both in zip(self.tables, growing.tables, strict=True)]
            self.directories = growing.directories
        self._found: _Leaves | None = None

    def frozen(self, rows: ReadableTable, freeze: Freeze) -> UnionOfRelations:
        return UnionOfRelations(rows, {name: freeze(table) for name, table in self.sources.items()}, self)

    def domain(self, truth: Truth) -> int:
        return domain_of(truth)

    def is_changed(self, changed: Collection[str]) -> bool:
        return not self.sources.keys().isdisjoint(changed) or any(
            table.scheme is not None and table.scheme.is_changed(changed) for table in self.tables[1:]
        )

    @property
    def _leaves(self) -> _Leaves:
        """Inputs and sources; first those that have most facts, as far as that is known: the facts of the first are not looked up in others."""
        known = self._found
        if known is None or not known.is_valid:
            leaves: list[Leaf] = []
            tables: list[StoredRows] = []
            watched: dict[int, tuple[ReadableTable, Scheme | None]] = {}
            self.collect(leaves, tables, watched)
            tables.sort(key=len, reverse=True)
            known = self._found = _Leaves([*_different(leaves), *tables], list(watched.values()), self.directories)
        return known

    def collect(
        self, leaves: list[Leaf], tables: list[StoredRows], seen: dict[int, tuple[ReadableTable, Scheme | None]]
    ) -> None:
        """Adds inputs and sources that were not seen before, and those of unions among them."""
        for number, (table, rows) in enumerate(zip(self.tables, self._rows, strict=True)):
            if number and id(table) in seen:
                continue
            seen[id(table)] = table, table.scheme
            scheme = table.scheme if number else None  # the rows of the union itself are its inputs
            if scheme is None:
                tables.append(rows)
            elif isinstance(scheme, UnionOfRelations):
                scheme.collect(leaves, tables, seen)  # so that all of its tables are watched
            else:
                leaves += scheme.leaves()

    def leaves(self) -> Sequence[Leaf]:
        return self._leaves.sources

    def about(self, domain: int) -> int:
        inputs, *others = self.tables
        tables = [inputs, *(table for table in others if table.scheme is None)]
        # What an update changes in tables is not known without looking.
        rows = sum(table.count for table in tables) if domain & KEPT else 0
        return rows + sum(table.scheme.about(domain) for table in others if table.scheme is not None)

    @property
    def nbytes(self) -> int:
        return 0 if self._found is None or self._found.directory is None else self._found.directory.nbytes

    def kinds(self, facts: Batch, n: int) -> Kinds:
        leaves = self._leaves
        return _KINDS_TOGETHER[leaves.kinds(range(len(leaves.sources)), facts, n)]

    def holds(self, fact: Batch) -> bool:
        leaves = self._leaves
        return any(leaves.sources[number].holds(fact) for number in leaves.mentioning_one(fact))

    def scan(self, domain: int, chunk: int) -> Iterator[Batch]:
        return self._scan(domain, chunk, first=0)

    def _scan(self, domain: int, chunk: int, *, first: int) -> Iterator[Batch]:
        """The facts of a domain, without those of sources before the `first`."""
        looked, leaves = _candidates(domain), self._leaves
        for number in range(first, len(leaves.sources)):
            earlier = leaves.earlier(number)
            for facts in leaves.sources[number].scan(looked, chunk):
                chosen = self._chosen(leaves, earlier, facts, domain)
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
        looked, leaves = _candidates(domain), self._leaves
        for number in leaves.mentioning(keys, n):
            earlier = leaves.earlier(number)
            for positions, facts in leaves.sources[number].join(columns, keys, n, looked, chunk):
                chosen = self._chosen(leaves, earlier, facts, domain)
                if chosen is None:
                    yield positions, facts
                elif len(chosen):
                    yield positions[chosen], np.ascontiguousarray(facts[:, chosen])

    def _chosen(self, leaves: _Leaves, earlier: Sequence[int], facts: Batch, domain: int) -> Rows | None:
        """Those of a source's facts that are in the domain, and that no earlier source has; None: all."""
        n, looked = facts.shape[1], _candidates(domain)
        # What one source gains or loses another may have kept.
        is_certain = looked == domain and domain not in (GAINED, LOST)
        if is_certain and not earlier:
            return None
        chosen = (leaves.kinds(earlier, facts, n) & looked) == 0
        if not is_certain:
            chosen &= in_domain(self, facts, n, domain)
        return None if np.count_nonzero(chosen) == n else np.flatnonzero(chosen).astype(np.int32)

    def counts(self, columns: tuple[int, ...], keys: Batch, n: int, domain: int) -> Counts:
        counts = np.zeros(n, np.int64)
        for positions, _ in self.join(columns, keys, n, domain, 1 << 16):
            counts += np.bincount(positions, minlength=n)
        return counts

    def changed(self, kind: int) -> Batch:
        return np.concatenate([np.empty((self.tables[0].arity, 0), np.int64), *self.scan(kind, 1 << 16)], axis=1)

    def count(self, domain: int) -> int:
        sources = self._leaves.sources
        skipped = int(domain in (BEFORE, AFTER, ANY) and len(sources) > 0)  # of the first all facts count
        counted = sources[0].count(domain) if skipped else 0
        return counted + sum(int(batch.shape[1]) for batch in self._scan(domain, 1 << 16, first=skipped))


def _together(parts: Iterable[tuple[Rows, Batch]], chunk: int) -> Iterator[tuple[Rows, Batch]]:
    """The same matches in as few parts as a chunk allows: each costs its reader as much as many facts."""
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


class _Leaves:
    """The sources of a union, and those of unions among them, as long as these are stored as they are now.

    Attributes:
        sources: Closures, other schemes, then tables.
        directory: Which of them mention a value; None if there are so few that they are asked, or if one does not list its values.
    """

    def __init__(
        self, sources: list[Leaf], watched: list[tuple[ReadableTable, Scheme | None]], directories: Directories
    ) -> None:  # fmt: skip
        self.sources, self._watched = sources, watched
        self._closures = [source.as_closure() for source in sources]
        mentions = [source.mentions for source in sources]
        listed = [one for one in mentions if one is not None]
        many = len(sources) >= MANY_SOURCES and len(listed) == len(sources)
        self.directory = directories.of(listed) if many else None

    @property
    def is_valid(self) -> bool:
        """Whether all are stored in the same way still."""
        for table, scheme in self._watched:  # noqa: SIM110  (asked for every fact)
            if table.scheme is not scheme:
                return False
        return True

    def mentioning(self, keys: Batch, n: int) -> Iterable[int]:
        """The numbers of sources that may have facts with some of n keys."""
        found = None if self.directory is None else self.directory.of(keys, n)
        return self._marked(range(len(self.sources)), None if found is None else found[1])

    def mentioning_one(self, fact: Batch) -> Iterable[int]:
        """The numbers of sources that may have a fact."""
        mask = None if self.directory is None else self.directory.of_one(fact)
        return self._marked(range(len(self.sources)), mask)

    @staticmethod
    def _marked(numbers: Sequence[int], mask: int | None) -> Sequence[int]:
        """Those of some sources that are in a mask; None: all."""
        return numbers if mask is None else [number for number in numbers if mask >> number & 1] if mask else ()

    def kinds(self, numbers: Sequence[int], facts: Batch, n: int) -> Kinds:
        """The kinds of n facts in some sources, as bits."""
        together = np.zeros(n, np.uint8)
        found = None if self.directory is None else self.directory.of(facts, n)
        for number in self._marked(numbers, None if found is None else found[1]):
            source = self.sources[number]
            # Few of many facts are picked out; otherwise that takes longer than to look for all.
            few = np.flatnonzero(found[0] & bit_of(number)) if found is not None and n >= MANY_FACTS else None
            if few is not None and 4 * len(few) < n:
                together[few] |= source.kinds(np.ascontiguousarray(facts[:, few]), len(few))
            else:
                together |= source.kinds(facts, n)
            if np.count_nonzero(together & KEPT) == n:
                break
        return together

    def earlier(self, number: int) -> Sequence[int]:
        """The sources before one of them that may have facts which it has, too."""
        own = self._closures[number]
        if own is None or own.pairs.changes:
            return range(number)
        return [i for i, other in enumerate(self._closures[:number]) if other is None or other.pairs is not own.pairs]


def _different(leaves: list[Leaf]) -> list[Leaf]:
    """Closures without those that hold the same pairs as another; those that hold them reversed are read apart from it. Then the other leaves."""
    found: list[ClosedRelation] = []
    for closure in filter(None, (leaf.as_closure() for leaf in leaves)):
        alike = [other for other in found if other.pairs is closure.pairs]
        if not alike:
            found.append(closure)
        elif all(other.flipped != closure.flipped for other in alike):
            found.append(closure.apart_from_reversed())
    return [*found, *(leaf for leaf in leaves if leaf.as_closure() is None)]


def _candidates(domain: int) -> int:
    """Where facts of a domain are looked for in the sources: one may hold before in one source and after in another."""
    return domain if domain in (GAINED, LOST, BEFORE, AFTER) else ANY if domain else 0
