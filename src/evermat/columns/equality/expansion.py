"""Expanded facts: what facts over representatives stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from evermat.columns.equality.renaming import Ids, Renaming
from evermat.columns.equality.rewritten_facts import RewrittenFacts
from evermat.columns.equality.union_find import Changed, UnionFind
from evermat.columns.state.datasets import Dataset, contains_facts
from evermat.columns.state.views import Listed, View
from evermat.columns.storage.arrays import Batch, Mask, Numbers, Rows, starts_of
from evermat.core import ask_for, check_stop

_MANY = 1 << 17  # facts that are made at a time

Names = tuple[Ids, Ids]
"""Lists of names, one after the other, and where each begins."""


def all_names(view: View, rewritten: RewrittenFacts) -> Listed:
    """What some facts stand for, as rows."""
    found: dict[str, list[Rows]] = {}
    for name in list(view.names):
        table, columns = rewritten.schema.tables[name], rewritten.schema.columns.get(name)
        rows = view.rows(name)
        if columns is None or not rewritten.union_find:
            found[name] = [rows]
        else:
            batches = expand_names(table.take(rows), columns, rewritten.union_find)
            found[name] = [table.locate(batch) for batch in batches]
    return Listed(rewritten.schema.tables, found)


def count_names(batch: Batch, columns: Numbers, union_find: Renaming | _Before) -> Ids:
    """For how many facts each fact stands."""
    found = np.ones(batch.shape[1], np.int64)
    for column in columns:
        found *= union_find.sizes(batch[column])
    return found


def expand_names(batch: Batch, columns: Numbers, union_find: Renaming | _Before) -> Iterator[Batch]:
    """What facts stand for, a limited number at a time."""
    sizes = count_names(batch, columns, union_find)
    if len(sizes) == int(sizes.sum()):
        if len(sizes):
            yield batch
        return
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        check_stop()
        before = int(ends[first - 1]) if first else 0
        end = max(int(np.searchsorted(ends, before + _MANY, side="right")), first + 1)
        part = np.ascontiguousarray(batch[:, first:end])
        if sizes[first] > _MANY:
            yield from _expand_fact(part, columns, union_find)
        else:
            for column in columns:
                part = with_names(part, int(column), union_find.names(part[column]))
            yield part
        first = end


def _expand_fact(fact: Batch, columns: Numbers, union_find: Renaming | _Before) -> Iterator[Batch]:
    """What one fact stands for that stands for many: some names in its first column at a time."""
    listed, _ = union_find.names(fact[columns[0]])
    for start in range(0, len(listed), _MANY):
        some = listed[start : start + _MANY]
        part = with_names(fact, int(columns[0]), (some, starts_of(np.array([len(some)]))))
        yield from expand_names(part, columns[1:], union_find)


def with_names(batch: Batch, column: int, names: Names) -> Batch:
    """Each fact once for each of the names that are listed for it, in a column."""
    listed, starts = names
    ask_for(batch.itemsize * len(batch) * len(listed))
    counts = np.diff(starts)
    made = np.repeat(batch, counts, axis=1)
    made[column] = listed
    return made


class ExpandedChange:
    """The expanded changes of an update, given its changes over representatives.

    A fact over names is lost iff its old normal form was in I and its new one is not. To be looked at are what facts stood for that I loses, and
    of facts that stay those whose terms have lost a name; likewise for what is gained.
    """

    def __init__(self, rewritten: RewrittenFacts, materialised: Dataset, lost: Listed, gained: Listed) -> None:
        """Between I, as it is still, and what it will be when it loses and gains facts."""
        self._rewritten, self._lost, self._gained = rewritten, lost, gained
        self._present = materialised
        self._old: View = materialised
        self._new: View = (materialised - lost) | gained
        self._changed = changed = rewritten.union_find.changed()
        self._touched = np.unique(np.concatenate([changed.old, changed.new]))
        self._before = _Before(changed, rewritten.union_find)

    def commit(self) -> None:
        """I has lost and gained them by now."""
        self._old, self._new = (self._present - self._gained) | self._lost, self._present

    def of(self, name: str) -> tuple[Batch, Batch]:
        """The facts of a relation that are lost and gained, in names; until the next update begins."""
        lost, gained = self._lost.rows(name), self._gained.rows(name)
        table, columns = self._rewritten.schema.tables[name], self._rewritten.schema.columns.get(name)
        if columns is None or not (self._rewritten.union_find or len(self._changed.terms)):
            return table.take(lost), table.take(gained)
        now, before = self._rewritten.union_find, self._before
        staying = self._rewritten.schema.mentioning_in(self._present, name, self._touched)
        staying = staying[~(self._lost | self._gained).mask(name, staying)]
        empty = np.empty((table.arity, 0), np.int64)
        if not len(lost) and not len(gained) and not len(staying):
            return empty, empty
        lost_facts, gained_facts = table.take(lost), table.take(gained)
        if not len(staying) and not before.concerns(lost_facts, columns) and not before.concerns(gained_facts, columns):
            return lost_facts, gained_facts
        kept = table.take(staying)
        losing, gaining = (kept[:, some[kept[columns]].any(axis=0)] for some in (before.loses, before.gains))
        old = [*expand_names(lost_facts, columns, before), *_differing(losing, columns, before, before.lost)]
        new = [*expand_names(gained_facts, columns, now), *_differing(gaining, columns, now, before.gained)]
        deleted, inserted = np.concatenate([empty, *old], axis=1), np.concatenate([empty, *new], axis=1)
        return (
            deleted[:, ~self._is_in(self._new, name, deleted, columns, old=False)],
            inserted[:, ~self._is_in(self._old, name, inserted, columns, old=True)],
        )

    def _is_in(self, view: View, name: str, batch: Batch, columns: Numbers, *, old: bool) -> Mask:
        """Whether the normal forms of facts, the old or the new ones, are in a view."""
        normal, now = batch.copy(), self._rewritten.union_find
        for column in columns if batch.shape[1] else ():
            normal[column] = self._changed.old_of(normal[column], now) if old else now.of(normal[column])
        return contains_facts(view, name, normal)


class _Before:
    """The names that representatives had before an update; and the names that those who stay representatives lose and gain."""

    def __init__(self, changed: Changed, now: UnionFind) -> None:
        self._now, self._changed = now, changed
        members, _ = now.names(np.unique(np.concatenate([changed.old, changed.new])))
        terms = np.unique(np.concatenate([members, changed.terms]))
        self._union_find = now.like()
        if len(terms):
            self._union_find.assign(terms, changed.old_of(terms, now))
        # Pages that are not written to cost nothing.
        self._is_touched, self.loses, self.gains = (np.zeros(now.terms, np.bool_) for _ in range(3))
        for marks, marked in ((self._is_touched, terms), (self.loses, changed.old), (self.gains, changed.new)):
            marks[marked] = True

    def concerns(self, batch: Batch, columns: Numbers) -> bool:
        """Whether a term of some facts has, or had, other names."""
        terms = batch[columns]
        return bool(self._is_touched[terms].any()) or bool((self._now.sizes(terms.ravel()) > 1).any())

    def sizes(self, representatives: Ids) -> Ids:
        found = self._now.sizes(representatives)
        touched = self._is_touched[representatives]
        if touched.any():
            found[touched] = self._union_find.sizes(representatives[touched])
        return found

    def names(self, representatives: Ids) -> Names:
        touched = self._is_touched[representatives]
        if not touched.any():
            return self._now.names(representatives)
        old, old_starts = self._union_find.names(representatives[touched])
        same, same_starts = self._now.names(representatives[~touched])
        counts = np.empty(len(representatives), np.int64)
        counts[touched], counts[~touched] = np.diff(old_starts), np.diff(same_starts)
        from_old = np.repeat(touched, counts)
        listed = np.empty(len(from_old), np.int64)
        listed[from_old], listed[~from_old] = old, same
        return listed, starts_of(counts)

    def lost(self, representatives: Ids) -> Names:
        """The names that each loses."""
        return _listed(self._changed.old, self._changed.terms, representatives)

    def gained(self, representatives: Ids) -> Names:
        """The names that each gains."""
        return _listed(self._changed.new, self._changed.terms, representatives)


def _differing(
    batch: Batch, columns: Numbers, names: Renaming | _Before, differing: Callable[[Ids], Names]
) -> Iterator[Batch]:
    """Of all that facts stand for what has a differing name in some column: each once, by the first such column."""
    for column in columns if batch.shape[1] else ():
        part = np.ascontiguousarray(batch)
        for other in columns:
            listed = names.names(part[other])
            if other == column:
                listed = differing(part[other])
            elif other < column:
                listed = _without(listed, differing(part[other]))
            part = with_names(part, int(other), listed)
            if not part.shape[1]:
                break
        if part.shape[1]:
            yield part


def _listed(owners: Ids, terms: Ids, asked: Ids) -> Names:
    """For each that is asked for, the terms that it owns."""
    order = np.argsort(owners, kind="stable")
    owners, terms = owners[order], terms[order]
    first, end = np.searchsorted(owners, asked, "left"), np.searchsorted(owners, asked, "right")
    starts = starts_of(end - first)
    positions = np.arange(int(starts[-1])) - np.repeat(starts[:-1], end - first) + np.repeat(first, end - first)
    return terms[positions], starts


def _without(names: Names, others: Names) -> Names:
    """Of each list what is not in the other."""
    owner = np.repeat(np.arange(len(names[1]) - 1), np.diff(names[1]))
    other_owner = np.repeat(np.arange(len(others[1]) - 1), np.diff(others[1]))
    width = int(max(names[0].max(initial=0), others[0].max(initial=0))) + 1
    kept = ~np.isin(owner * width + names[0], other_owner * width + others[0])
    return names[0][kept], starts_of(np.bincount(owner[kept], minlength=len(names[1]) - 1))
