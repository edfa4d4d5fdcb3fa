"""Facts under a renaming of terms: normal forms, the equalities among facts, and the facts that mention a term."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evermat.columns.equality.renaming import Ids
from evermat.columns.equality.union_find import Merged, UnionFind
from evermat.columns.state.datasets import Dataset
from evermat.columns.state.views import Listed, View
from evermat.columns.storage.arrays import NO_ROWS, Mask, Numbers, Rows
from evermat.columns.storage.dictionary import Dictionary
from evermat.columns.storage.table import Table
from evermat.engine import DifferentValuesError
from evermat.language import SAME_AS, TRIPLE, Program, equality_of, literal_value, rewritten_columns

_QUOTE = ord('"')  # how the spelling of a literal begins
_FEW_ROWS = 500  # that are looked at one by one rather than by an index


class TermSchema:
    """Which columns of which tables hold terms that are rewritten, and which facts say that terms are equal."""

    def __init__(self, program: Program, tables: Mapping[str, Table], dictionary: Dictionary) -> None:
        same = equality_of(program.relations)
        assert same is not None
        self.same, self.tables, self.dictionary = same.name, tables, dictionary
        self.columns: dict[str, Numbers] = {
            name: np.array(columns, np.int64)
            for name, relation in program.relations.items()
            if (columns := rewritten_columns(relation))
        }

    def _said(self, view: View) -> tuple[Ids, Ids]:
        """The pairs of terms of which some facts say that they are equal."""
        if self.same not in view.names:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        batch = self.tables[self.same].take(view.rows(self.same))
        if self.same == TRIPLE:
            batch = batch[:, batch[1] == self.dictionary.lookup(SAME_AS)]
        return batch[0], batch[-1]

    def equalities(self, view: View) -> tuple[Ids, Ids]:
        """The pairs of different terms of which some facts say that they are equal."""
        left, right = self._said(view)
        differ = left != right
        return left[differ], right[differ]

    def reflexive(self, terms: Ids) -> Listed:
        """The facts t ≈ t of some terms."""
        columns = [terms, terms]
        if self.same == TRIPLE:
            columns.insert(1, np.full_like(terms, self.dictionary.encode([SAME_AS])[0]))
        return Listed(self.tables, {self.same: [self.tables[self.same].locate(np.array(columns))]})

    def reflexive_terms(self, view: View) -> Ids:
        """The terms t for which t ≈ t is among some facts."""
        left, right = self._said(view)
        return np.unique(left[left == right])

    def mentioning(self, view: View, terms: Ids) -> Listed:
        """Those of some facts in which one of some terms occurs."""
        names = [name for name in view.names if name in self.columns] if len(terms) else []
        return Listed(self.tables, {name: [self.mentioning_in(view, name, terms)] for name in names})

    def mentioning_in(self, view: View, name: str, terms: Ids) -> Rows:
        """Those rows of a relation, of some facts, in which one of some terms occurs."""
        if not len(terms):
            return NO_ROWS
        keys = np.ascontiguousarray(terms, np.int64)[np.newaxis]
        table = self.tables[name]
        known = view.count(name) if isinstance(view, Dataset) else table.count
        if not known:
            return NO_ROWS
        if known <= _FEW_ROWS or known <= 4 * keys.size:
            rows = view.rows(name)
            inside = np.zeros(len(rows), np.bool_)
            wanted = np.zeros(len(self.dictionary), np.bool_)  # pages that are not written to cost nothing
            wanted[terms] = True
            for column in self.columns[name]:
                inside |= wanted[table.rows[rows, column]]
            return rows[inside]
        lo, hi, truth, listed = view.select(name)
        assert listed is None
        parts = [
            rows.copy()
            for column in self.columns[name]
            for _, rows in table.index((int(column),)).join(keys, truth, lo=lo, hi=hi)
        ]
        if len(parts) < 2:
            return parts[0] if parts else NO_ROWS
        return np.unique(np.concatenate(parts))

    def terms_in(self, view: View) -> Ids:
        """The terms that occur in some facts."""
        chosen = [(name, view.rows(name)) for name in view.names if name in self.columns]
        parts = [self.tables[name].rows[rows, column] for name, rows in chosen for column in self.columns[name]]
        if sum(map(len, parts)) < _FEW_ROWS:
            return np.unique(np.concatenate([np.empty(0, np.int64), *parts]))
        occurs = np.zeros(len(self.dictionary), np.bool_)
        for terms in parts:
            occurs[terms] = True
        return np.flatnonzero(occurs)


class RewrittenFacts:
    """Facts under one renaming."""

    def __init__(self, schema: TermSchema, union_find: UnionFind) -> None:
        self.schema, self.union_find = schema, union_find

    def normal_rows(self, name: str, rows: Rows) -> Rows:
        """The rows of the normal forms of rows of a relation, one for each."""
        columns = self.schema.columns.get(name)
        if columns is None or not self.union_find or not len(rows):
            return rows
        table = self.schema.tables[name]
        batch = table.take(rows)
        changed = self.union_find.rename(batch, columns)
        if not changed.any():
            return rows
        found = rows.copy()
        found[changed] = table.locate(np.ascontiguousarray(batch[:, changed]))
        return found

    def normal(self, view: View) -> Listed:
        return Listed(self.schema.tables, {n: [self.normal_rows(n, view.rows(n))] for n in list(view.names)})

    def is_normal(self, name: str, rows: Rows) -> Mask:
        """Which of some rows are in normal form."""
        columns = self.schema.columns.get(name)
        if columns is None or not self.union_find:
            return np.ones(len(rows), np.bool_)
        return ~self.union_find.rename(self.schema.tables[name].take(rows), columns)

    def merge(self, facts: View) -> Merged | None:
        """Makes terms equal of which some facts say so; None if nothing is new.

        Raises:
            DifferentValuesError: they are literals of different values; then nothing is changed.
        """
        left, right = self.schema.equalities(facts)
        if not len(left):
            return None
        merged = self.union_find.merge(left, right)
        if not len(merged.losers):
            return None
        self.refuse_different_values(merged, left, right)
        return merged

    def refuse_different_values(self, merged: Merged, left: Ids, right: Ids) -> None:
        """Undoes and refuses a step that made literals of different value equal; `left` and `right` are the pairs that it merged.

        Raises:
            DifferentValuesError: with two of them.
        """
        clash = self._different_values(merged)
        if clash is None:
            return
        self.union_find.part(merged)
        first, second = map(self.schema.dictionary.symbol, clash)
        raise DifferentValuesError.between(first, second, self._path(*clash, left, right))

    def _different_values(self, merged: Merged) -> tuple[int, int] | None:
        """Two literals of different value that are equal since a step."""
        dictionary = self.schema.dictionary
        pool, ends = dictionary.texts
        roots = np.unique(self.union_find.of(merged.winners))
        members, starts = self.union_find.names(roots)
        literal = pool[ends[members]] == _QUOTE
        if np.count_nonzero(literal) < 2:
            return None
        number = np.repeat(np.arange(len(roots)), np.diff(starts))
        values: dict[int, tuple[str, int]] = {}
        for root, member in zip(number[literal].tolist(), members[literal].tolist(), strict=True):
            value = literal_value(dictionary.symbol(member))
            if value is None:
                continue
            known, other = values.setdefault(root, (value, member))
            if value != known:
                return other, member
        return None

    def _path(self, start: int, end: int, left: Ids, right: Ids) -> tuple[tuple[str, ...], ...]:
        """A shortest way from a term to another along pairs that are to be made equal, as facts."""
        pairs = list(zip(left.tolist(), right.tolist(), strict=True))
        beside: dict[int, list[tuple[int, tuple[int, int]]]] = {}
        for pair, one, other in zip(
            pairs, self.union_find.of(left).tolist(), self.union_find.of(right).tolist(), strict=True
        ):
            beside.setdefault(one, []).append((other, pair))
            beside.setdefault(other, []).append((one, pair))
        first, last = self.union_find.of(np.array([start, end])).tolist()
        ways: dict[int, tuple[tuple[int, int], ...]] = {first: ()}
        waiting = [first]
        for node in waiting:
            for other, pair in beside.get(node, ()):
                if other not in ways:
                    ways[other] = (*ways[node], pair)
                    waiting.append(other)
        symbol, middle = self.schema.dictionary.symbol, (SAME_AS,) if self.schema.same == TRIPLE else ()
        return tuple((symbol(one), *middle, symbol(other)) for one, other in ways[last])
