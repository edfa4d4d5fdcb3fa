"""Sets of facts in files: views are expressions, sets grow by jobs. Nothing here moves a fact to the driver.

A set holds, for every relation, files of added facts and files of facts that were removed since: so an update writes only changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evermat.language import Stratum
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.job_runner import Found, total_rows
from evermat.spark.engine.tasks.serialization import FactFile
from evermat.spark.engine.tasks.set_expressions import Counted, Expression, Files, combined, files_of, most

if TYPE_CHECKING:
    from evermat.spark.engine.rules import Bag

_MOST_FILES = 16  # of one bucket, before they are compacted


class View(ABC):
    """Facts that can be read."""

    def __init__(self, context: EngineContext) -> None:
        self.context = context

    @abstractmethod
    def expression(self, name: str) -> Expression | None:
        """Its current facts of a relation; None if there can be none."""

    @property
    @abstractmethod
    def names(self) -> Iterable[str]:
        """Relations of which it may hold facts."""

    def most(self, name: str) -> int:
        """An upper bound of the number of facts of a relation."""
        return most(self.expression(name))

    def __or__(self, other: View) -> View:
        return _Combination("|", self, other)

    def __and__(self, other: View) -> View:
        return _Combination("&", self, other)

    def __sub__(self, other: View) -> View:
        return _Combination("-", self, other)

    def at(self, stratum: Stratum) -> View:
        return self.only(stratum.relations)

    def only(self, names: Iterable[str]) -> View:
        return _Restricted(self, frozenset(names), inside=True)

    def below(self, stratum: Stratum) -> View:
        """Only facts of relations of other strata; a stratum's rules read only lower ones."""
        return _Restricted(self, frozenset(stratum.relations), inside=False)

    def count(self, name: str) -> int:
        """The number of facts of a relation; a job counts them, unless it is a set."""
        return self._counts([name])

    @property
    def size(self) -> int:
        return self._counts(self.names)

    def __bool__(self) -> bool:
        return self.size > 0

    def _counts(self, names: Iterable[str]) -> int:
        expressions = {name: self.expression(name) for name in names}
        found = self.context.evaluate("count facts", expressions, write=False)
        return sum(one.rows for one in found.values())

    def about(self, name: str) -> int:
        return self.count(name)

    def in_schemes(self) -> FactSet:
        """None: on a cluster every fact is in a file."""
        return FactSet("none", self.context)

    def listed(self) -> FactSet:
        """A set of its current facts, which stays the same when the underlying sets change."""
        made = FactSet("listed", self.context)
        made.replace(self)
        return made


class _Combination(View):
    def __init__(self, operator: str, left: View, right: View) -> None:
        super().__init__(left.context)
        self._operator, self._left, self._right = operator, left, right

    def expression(self, name: str) -> Expression | None:
        return combined(self._operator, self._left.expression(name), self._right.expression(name))

    @property
    def names(self) -> Iterable[str]:
        if self._operator == "|":
            return dict.fromkeys([*self._left.names, *self._right.names])
        return self._left.names


class _Restricted(View):
    def __init__(self, view: View, relations: frozenset[str], *, inside: bool) -> None:
        super().__init__(view.context)
        self._view, self._relations, self._inside = view, relations, inside

    def expression(self, name: str) -> Expression | None:
        return self._view.expression(name) if (name in self._relations) == self._inside else None

    @property
    def names(self) -> Iterable[str]:
        return [name for name in self._view.names if (name in self._relations) == self._inside]

    def _counts(self, names: Iterable[str]) -> int:
        return sum(self._view.count(name) for name in names if (name in self._relations) == self._inside)


@dataclass(frozen=True, eq=False)
class _Parts:
    """The facts of one relation in a set: the added ones without the removed ones, which are among them. Sets share it."""

    added: tuple[FactFile, ...] = ()
    removed: tuple[FactFile, ...] = ()

    @cached_property
    def rows(self) -> int:
        return total_rows(self.added) - total_rows(self.removed)

    @cached_property
    def expression(self) -> Expression | None:
        """The same object until the facts change, so that tasks read it once."""
        return combined("-", Files(self.added), files_of(self.removed)) if self.rows else None


_NOTHING = _Parts()


class FactSet(View):
    """A set of facts that grows."""

    def __init__(self, name: str, context: EngineContext) -> None:
        super().__init__(context)
        self.name = name
        self._parts: dict[str, _Parts] = {}

    def expression(self, name: str) -> Expression | None:
        return self._parts.get(name, _NOTHING).expression

    @property
    def names(self) -> Iterable[str]:
        return [name for name, parts in self._parts.items() if parts.rows]

    def count(self, name: str) -> int:
        return self._parts.get(name, _NOTHING).rows

    def _counts(self, names: Iterable[str]) -> int:
        return sum(map(self.count, names))

    def files(self, name: str) -> tuple[tuple[FactFile, ...], tuple[FactFile, ...]]:
        """The files of added and of removed facts of a relation."""
        parts = self._parts.get(name, _NOTHING)
        return parts.added, parts.removed

    def add(self, facts: View | Bag | Counting) -> FactSet:
        counting, source = (facts, facts.facts) if isinstance(facts, Counting) else (None, facts)
        new = FactSet(f"new in {self.name}", self.context)
        if isinstance(source, View):
            if counting is None and not self._parts and isinstance(source, FactSet):
                for known in (self, new):
                    known.share(source, source.names)  # this set is empty, so all facts are new
                return new
            new._fill(self._new_of_view(source, counting))
        else:
            new._fill(source.derive(self, counting))
        for name in new.names:
            self.append(name, new.files(name)[0])
        return new

    def _new_of_view(self, source: View, counting: Counting | None) -> Mapping[str, Found]:
        expressions = {name: source.expression(name) for name in source.names}
        fresh = {name: combined("-", e, self.expression(name)) for name, e in expressions.items()}
        if counting is None:
            return self.context.evaluate(f"add to {self.name}", fresh)
        touched = {name: e for name, e in expressions.items() if e is not None}
        found = self.context.evaluate(f"count for {self.name}", fresh, touched=touched, sign=counting.sign)
        counting.counter.take(found)
        return found

    def append(self, name: str, files: Sequence[FactFile]) -> None:
        """Adds files with facts that are not in the set; many small files are compacted."""
        before, removed = self.files(name)
        added, buckets = (*before, *files), self.context.cluster.buckets
        if len(added) > _MOST_FILES * buckets:
            half = total_rows(added) / buckets / 2
            large = [file for file in added if file.rows > half]
            if small := [file for file in added if file.rows <= half]:
                added = (*large, *self.context.compact(name, small))
        self._parts[name] = _Parts(added, removed)

    def replace(self, facts: View) -> bool:
        """Replaces all facts by others, and returns whether there are any."""
        if isinstance(facts, FactSet):
            self.take_over(facts)
        else:
            found = self.context.evaluate(f"fill {self.name}", {name: facts.expression(name) for name in facts.names})
            self._parts = {}
            self._fill(found)
        return any(parts.rows for parts in self._parts.values())

    def change(self, lost: View, gained: View) -> None:
        """Removes facts that are in the set, and adds others that are not."""
        names = {*lost.names, *gained.names}
        added: dict[str, Expression | None] = {}
        removed: dict[str, Expression | None] = {}
        for name in names:
            before, inserted = files_of(self.files(name)[1]), gained.expression(name)
            added[name] = combined("-", inserted, before)  # facts that were removed before are still in the files
            removed[name] = combined("|", combined("-", before, inserted), lost.expression(name))
        new = self.context.evaluate("commit insertions", added)
        removed_now = self.context.evaluate("commit deletions", removed)
        for name in names:
            removed_files = tuple(removed_now[name].facts) if name in removed_now else ()
            self._parts[name] = _Parts(self.files(name)[0], removed_files)
            if name in new:
                self.append(name, new[name].facts)
            self._drop_removed(name)

    def remove(self, facts: FactSet) -> None:
        """Removes facts that are in the set. Only `change` may add any of them again."""
        for name in facts.names:
            added, removed = self.files(name)
            self._parts[name] = _Parts(added, (*removed, *facts.only_added(name)))
            self._drop_removed(name)
            added, removed = self.files(name)
            if len(removed) > _MOST_FILES * self.context.cluster.buckets:
                self._parts[name] = _Parts(added, tuple(self.context.compact(name, removed)))

    def _drop_removed(self, name: str) -> None:
        """Rewrites the facts of a relation without removed ones, if these are many."""
        added, removed = self.files(name)
        if 2 * total_rows(removed) > total_rows(added):
            found = self.context.evaluate("rewrite a set", {name: self.expression(name)})
            self._parts[name] = _Parts(tuple(found[name].facts)) if name in found else _NOTHING

    def only_added(self, name: str) -> tuple[FactFile, ...]:
        """The files of a relation of which no facts were removed."""
        added, removed = self.files(name)
        assert not removed
        return added

    def share(self, other: FactSet, names: Iterable[str]) -> None:
        """Replaces the facts of some relations by those of another set, in the same files."""
        for name in names:
            if name in other._parts:
                self._parts[name] = other._parts[name]

    def copy(self) -> FactSet:
        made = FactSet(self.name, self.context)
        made.take_over(self)
        return made

    def take_over(self, other: FactSet) -> None:
        """Replaces all facts by those of another set."""
        self._parts = dict(other._parts)

    def drop(self, names: Iterable[str]) -> None:
        """Removes all facts of some relations."""
        for name in names:
            self._parts.pop(name, None)

    def clear(self) -> None:
        self._parts = {}

    def _fill(self, found: Mapping[str, Found]) -> None:
        for name, one in found.items():
            if one.facts:
                self._parts[name] = _Parts(tuple(one.facts))


class CountedFacts:
    """A derivation counter: files of amounts, in which a fact may occur repeatedly; its count is the sum."""

    def __init__(self, name: str, context: EngineContext) -> None:
        self.name, self.context = name, context
        self.files: dict[str, tuple[FactFile, ...]] = {}

    def add(self, facts: View | Bag) -> FactSet:
        """Counts every occurrence, and returns the counted facts."""
        touched = FactSet(f"counted by {self.name}", self.context)
        touched.add(Counting(self, facts, 1))
        return touched

    def take(self, found: Mapping[str, Found]) -> None:
        """Adds amounts that a job has written."""
        for name, one in found.items():
            if one.amounts:
                self.append(name, one.amounts)
        self.compact()

    def append(self, name: str, files: Sequence[FactFile]) -> None:
        self.files[name] = (*self.files.get(name, ()), *files)

    def compact(self) -> None:
        """Replaces many files of a relation by few with the same sums."""
        for name, files in self.files.items():
            if len(files) > _MOST_FILES * self.context.cluster.buckets:
                self.files[name] = tuple(self.context.sum_up(name, files))

    def drop(self, name: str) -> None:
        """Resets all counts of a relation to 0."""
        self.files.pop(name, None)


@dataclass(frozen=True, slots=True)
class Counting:
    """Facts that are counted up or down when they are added to a set."""

    counter: CountedFacts | Any
    facts: View | Bag
    sign: int


class Positive(View):
    """Facts that are counted at least once: only to be intersected with, or subtracted from, a small set."""

    def __init__(self, context: EngineContext, *counters: CountedFacts) -> None:
        super().__init__(context)
        self._counters = counters
        self._known: dict[str, tuple[tuple[FactFile, ...], Counted]] = {}

    def expression(self, name: str) -> Expression | None:
        files = tuple(file for counter in self._counters for file in counter.files.get(name, ()))
        known = self._known.get(name)
        if known is None or known[0] != files:
            known = self._known[name] = (files, Counted(files))
        return known[1] if files else None

    @property
    def names(self) -> Iterable[str]:
        raise AssertionError("facts that are counted are never enumerated")
