"""Sets of facts in files: views are expressions, sets grow by jobs. Nothing here moves a fact to the driver.

A set holds, for every relation, files of facts that were added and files of facts that were taken out again since: so an update
writes what changes and nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evermat.language import Stratum
from evermat.spark.engine.context import EngineContext
from evermat.spark.engine.job_runner import Found, total_rows
from evermat.spark.engine.tasks.serialization import FactFile
from evermat.spark.engine.tasks.set_expressions import Counted, Expression, Files, combined, most

if TYPE_CHECKING:
    from evermat.spark.engine.rules import Bag

_MOST_FILES = 16  # of one bucket, before they are put together


class View(ABC):
    """Facts that can be read."""

    def __init__(self, context: EngineContext) -> None:
        self.context = context

    @abstractmethod
    def expression(self, name: str) -> Expression | None:
        """Its facts of a relation, as things are now; None if there can be none."""

    @property
    @abstractmethod
    def names(self) -> Iterable[str]:
        """Relations of which it may hold facts."""

    def most(self, name: str) -> int:
        """How many facts of a relation it holds at most."""
        return most(self.expression(name))

    def __or__(self, other: View) -> View:
        return _Combination("|", self, other)

    def __and__(self, other: View) -> View:
        return _Combination("&", self, other)

    def __sub__(self, other: View) -> View:
        return _Combination("-", self, other)

    def at(self, stratum: Stratum) -> View:
        """Only facts of relations of this stratum."""
        return self.only(stratum.relations)

    def only(self, names: Iterable[str]) -> View:
        """Only facts of some relations."""
        return _Restricted(self, frozenset(names), inside=True)

    def below(self, stratum: Stratum) -> View:
        """Only facts of relations of other strata; a stratum's rules read only lower ones."""
        return _Restricted(self, frozenset(stratum.relations), inside=False)

    def count(self, name: str) -> int:
        """How many facts of a relation are in it; a job, unless it is a set."""
        return self._counts([name])

    @property
    def size(self) -> int:
        """How many facts are in it."""
        return self._counts(self.names)

    def __bool__(self) -> bool:
        return self.size > 0

    def _counts(self, names: Iterable[str]) -> int:
        expressions = {name: self.expression(name) for name in names}
        found = self.context.evaluate("count facts", expressions, write=False)
        return sum(one.rows for one in found.values())

    def about(self, name: str) -> int:
        """How many facts of a relation are in it."""
        return self.count(name)

    def in_schemes(self) -> FactSet:
        """On a cluster every fact is in a file."""
        return FactSet("none", self.context)

    def listed(self) -> FactSet:
        """The facts in it now, whatever becomes of the sets that it is made of."""
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


@dataclass(slots=True)
class _Parts:
    """What a set holds of one relation: facts that were added, less those that were taken out since, which are among them."""

    added: tuple[FactFile, ...] = ()
    gone: tuple[FactFile, ...] = ()
    known: Expression | None = None  # the same object until something changes, so that tasks read it once

    @property
    def rows(self) -> int:
        return total_rows(self.added) - total_rows(self.gone)

    def expression(self) -> Expression | None:
        if self.known is None and self.rows:
            gone = Files(self.gone) if self.gone else None
            self.known = combined("-", Files(self.added), gone)
        return self.known


class FactSet(View):
    """A set of facts that grows."""

    def __init__(self, name: str, context: EngineContext) -> None:
        super().__init__(context)
        self.name = name
        self._parts: dict[str, _Parts] = {}

    def expression(self, name: str) -> Expression | None:
        parts = self._parts.get(name)
        return None if parts is None else parts.expression()

    @property
    def names(self) -> Iterable[str]:
        return [name for name, parts in self._parts.items() if parts.rows]

    def count(self, name: str) -> int:
        parts = self._parts.get(name)
        return 0 if parts is None else parts.rows

    def _counts(self, names: Iterable[str]) -> int:
        return sum(map(self.count, names))

    def files(self, name: str) -> tuple[tuple[FactFile, ...], tuple[FactFile, ...]]:
        """The files of facts of a relation that were added, and those of facts taken out again."""
        parts = self._parts.get(name, _Parts())
        return parts.added, parts.gone

    def add(self, facts: View | Bag | Counting) -> FactSet:
        """Adds facts and returns those that were new."""
        counting = facts if isinstance(facts, Counting) else None
        source = facts.facts if isinstance(facts, Counting) else facts
        new = FactSet(f"new in {self.name}", self.context)
        if isinstance(source, View):
            if counting is None and not self._parts and isinstance(source, FactSet):
                for known in (self, new):
                    known.share(source, source.names)  # nothing is known yet, so all is new
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
        """Takes in files with facts that are not in the set."""
        parts = self._parts.setdefault(name, _Parts())
        parts.added, parts.known = (*parts.added, *files), None
        if len(parts.added) > _MOST_FILES * self.context.cluster.buckets:
            self._put_together(name, parts)

    def _put_together(self, name: str, parts: _Parts) -> None:
        """Writes the many small files of a relation as few; the large ones stay."""
        half = total_rows(parts.added) / self.context.cluster.buckets / 2
        small = tuple(file for file in parts.added if file.rows <= half)
        large = tuple(file for file in parts.added if file.rows > half)
        if not small:
            return
        parts.added, parts.known = (*large, *self.context.put_together(name, small)), None

    def replace(self, facts: View) -> bool:
        """Holds exactly these facts from now on; whether there are any."""
        if isinstance(facts, FactSet):
            self.take_over(facts)
        else:
            found = self.context.evaluate(f"fill {self.name}", {name: facts.expression(name) for name in facts.names})
            self._parts = {}
            self._fill(found)
        return any(parts.rows for parts in self._parts.values())

    def change(self, lost: View, gained: View) -> None:
        """Takes facts out that are in the set, and adds others that are not."""
        names = {*lost.names, *gained.names}
        added: dict[str, Expression | None] = {}
        gone: dict[str, Expression | None] = {}
        for name in names:
            _, out = self.files(name)
            taken_out = Files(out) if out else None
            coming = gained.expression(name)
            added[name] = combined("-", coming, taken_out)  # what was taken out before is in the files still
            gone[name] = combined("|", combined("-", taken_out, coming), lost.expression(name))
        new = self.context.evaluate("commit what comes", added)
        out_now = self.context.evaluate("commit what goes", gone)
        for name in names:
            parts = self._parts.setdefault(name, _Parts())
            parts.gone = tuple(out_now[name].facts) if name in out_now else ()
            parts.known = None
            if name in new:
                self.append(name, new[name].facts)
            self._write_anew(name, parts)

    def take_out(self, facts: FactSet) -> None:
        """Takes facts out that are in the set. None of them may be added again, but by `change`."""
        for name in facts.names:
            added, gone = facts.files(name)
            assert not gone
            parts = self._parts[name]
            parts.gone, parts.known = (*parts.gone, *added), None
            self._write_anew(name, parts)
            if len(parts.gone) > _MOST_FILES * self.context.cluster.buckets:
                parts.gone, parts.known = tuple(self.context.put_together(name, parts.gone)), None

    def _write_anew(self, name: str, parts: _Parts) -> None:
        """Writes the facts of a relation without those that are gone, if these are many."""
        if 2 * total_rows(parts.gone) > total_rows(parts.added):
            found = self.context.evaluate("rewrite a set", {name: parts.expression()})
            parts.added, parts.gone, parts.known = tuple(found[name].facts) if name in found else (), (), None

    def share(self, other: FactSet, names: Iterable[str]) -> None:
        """Holds what another set holds of some relations, in the same files."""
        for name in names:
            if name in other._parts:
                parts = other._parts[name]
                self._parts[name] = _Parts(parts.added, parts.gone, parts.known)

    def copy(self) -> FactSet:
        """A set that holds the same now."""
        made = FactSet(self.name, self.context)
        made.share(self, self._parts)
        return made

    def take_over(self, other: FactSet) -> None:
        """Holds exactly what another set holds."""
        self._parts = {}
        self.share(other, other._parts)

    def drop(self, names: Iterable[str]) -> None:
        """Holds no facts of some relations from now on."""
        for name in names:
            self._parts.pop(name, None)

    def clear(self) -> None:
        """Holds nothing from now on."""
        self._parts = {}

    def _fill(self, found: Mapping[str, Found]) -> None:
        for name, one in found.items():
            if one.facts:
                self._parts[name] = _Parts(tuple(one.facts))


class CountedFacts:
    """A derivation counter: files of amounts, which may name a fact repeatedly; its count is the sum."""

    def __init__(self, name: str, context: EngineContext) -> None:
        self.name, self.context = name, context
        self.files: dict[str, tuple[FactFile, ...]] = {}

    def add(self, facts: View | Bag) -> FactSet:
        """Counts every occurrence; the facts touched."""
        touched = FactSet(f"counted by {self.name}", self.context)
        touched.add(Counting(self, facts, 1))
        return touched

    def take(self, found: Mapping[str, Found]) -> None:
        """Takes in amounts that a job has written."""
        for name, one in found.items():
            if one.amounts:
                self.append(name, one.amounts)
        self.put_together()

    def append(self, name: str, files: Sequence[FactFile]) -> None:
        """Takes in files of amounts."""
        self.files[name] = (*self.files.get(name, ()), *files)

    def put_together(self) -> None:
        """Where there are many files, writes few that say the same."""
        for name, files in self.files.items():
            if len(files) > _MOST_FILES * self.context.cluster.buckets:
                self.files[name] = tuple(self.context.sum_up(name, files))

    def drop(self, name: str) -> None:
        """All counts of a relation become 0."""
        self.files.pop(name, None)


@dataclass(frozen=True, slots=True)
class Counting:
    """Facts that are counted up or down when they are added to a set."""

    counter: CountedFacts | Any
    facts: View | Bag
    sign: int


class Positive(View):
    """Facts that are counted at least once: only to be intersected with, or taken from, something small."""

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
