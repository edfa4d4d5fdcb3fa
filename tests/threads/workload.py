"""Workloads in which every answer shows of which version it is, because all consequences of each version are known.

Three *parts* change independently, so that their owners can work at the same time in any order: parts 0 and 1 own facts, part 2 owns the
rules. A *version* is the number of steps that each part has made. The facts of a step follow from the seed and the number of the step; the
consequences of a version are computed here, by a few lines of Python that share nothing with the engines.

Each part has a marker, a fact of `now`, that every one of its steps moves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, ClassVar, NamedTuple

Version = tuple[int, int, int]
Rows = frozenset[tuple[Any, ...]]
Facts = Mapping[str, Rows]

PARTS, RULES = (0, 1, 2), 2
START: Version = (0, 0, 0)
_SPARSE = 1 << 40  # what markers and weights are moved by, some of the time: columns get wider, tables sparse
_KEPT = 512  # versions whose consequences are remembered


class Step(NamedTuple):
    """One update: from one step of a part to the next one."""

    insert: dict[str, set[tuple[Any, ...]]]
    delete: dict[str, set[tuple[Any, ...]]]
    add_rules: str
    remove_rules: str


class Question(NamedTuple):
    """A query, and its answer where some facts hold."""

    text: str
    answer: Callable[[Facts], Iterable[tuple[Any, ...]]]


def marker(step: int) -> int:
    """The number by which a step is marked: small and dense for a while, then large, then small again."""
    return step + _SPARSE * (step // 16 % 2)


def version_of(now: Iterable[tuple[int, int]]) -> Version:
    """The version that the facts of `now` mark.

    Raises:
        ValueError: these are not the markers of one version.
    """
    rows = sorted(now)
    if [part for part, _ in rows] != list(PARTS):
        raise ValueError(f"the markers are {rows}")
    first, second, third = (number % _SPARSE for _, number in rows)
    found = first, second, third
    if rows != [(part, marker(step)) for part, step in enumerate(found)]:
        raise ValueError(f"the markers are {rows}")
    return found


class Workload(ABC):
    """A program, steps that change it, and what follows after any of them.

    Attributes:
        text: The program before the first step.
        choices: The rules that part 2 alternates between.
        late: Declarations that come with the first of them, by relation.
        questions: Queries; the first one asks for the markers.
    """

    text: ClassVar[str]
    choices: ClassVar[tuple[frozenset[str], ...]]
    late: ClassVar[Mapping[str, str]]
    questions: ClassVar[tuple[Question, ...]]

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._known: dict[Version, Facts] = {}

    @abstractmethod
    def owned(self, part: int, step: int, rng: Random) -> dict[str, set[tuple[Any, ...]]]:
        """The explicit facts of a part after a step, but for the marker."""

    @abstractmethod
    def derive(self, facts: dict[str, set[tuple[Any, ...]]], rules: frozenset[str]) -> None:
        """Adds to explicit facts all that follows from them."""

    def explicit(self, part: int, step: int) -> dict[str, set[tuple[Any, ...]]]:
        """The explicit facts of a part after a step."""
        own = self.owned(part, step, Random(f"{self.seed} {part} {step}")) if part != RULES else {}
        return {**own, "now": {(part, marker(step))}}

    def rules(self, step: int) -> frozenset[str]:
        """The rules that part 2 has added, after a step."""
        return self.choices[step % len(self.choices)]

    def step(self, part: int, step: int) -> Step:
        """The update after so many steps of a part."""
        old, new = self.explicit(part, step), self.explicit(part, step + 1)
        names = old.keys() | new.keys()
        insert = {name: new.get(name, set()) - old.get(name, set()) for name in names}
        delete = {name: old.get(name, set()) - new.get(name, set()) for name in names}
        if part != RULES:
            return Step(insert, delete, "", "")
        before, after = self.rules(step), self.rules(step + 1)
        declared = self.late.values() if step == 0 else ()
        return Step(insert, delete, "\n".join([*declared, *sorted(after - before)]), "\n".join(sorted(before - after)))

    def names(self, version: Version) -> set[str]:
        """The relations of a version."""
        return set(self.facts(version))

    def always(self) -> list[str]:
        """The relations that every version has."""
        return sorted(self.facts(START))

    def facts(self, version: Version) -> Facts:
        """All facts of a version, by relation."""
        known = self._known.get(version)
        if known is None:
            found: dict[str, set[tuple[Any, ...]]] = {}
            for part in PARTS:
                for name, rows in self.explicit(part, version[part]).items():
                    found.setdefault(name, set()).update(rows)
            if version[RULES]:
                for name in self.late:
                    found.setdefault(name, set())
            self.derive(found, self.rules(version[RULES]))
            known = {name: frozenset(rows) for name, rows in found.items()}
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[version] = known
        return known

    def oracle_text(self, version: Version) -> str:
        """The program of a version as one text, for the oracle."""
        declared = self.late.values() if version[RULES] else ()
        return "\n".join([self.text, *declared, *sorted(self.rules(version[RULES]))])

    def oracle_facts(self, version: Version) -> dict[str, set[tuple[Any, ...]]]:
        """The explicit facts of a version."""
        found: dict[str, set[tuple[Any, ...]]] = {}
        for part in PARTS:
            for name, rows in self.explicit(part, version[part]).items():
                found.setdefault(name, set()).update(rows)
        return found


def closure(edges: set[tuple[Any, Any]]) -> set[tuple[Any, Any]]:
    """The pairs that a path connects."""
    ahead: dict[Any, set[Any]] = {}
    for x, y in edges:
        ahead.setdefault(x, set()).add(y)
    found = set()
    for start, successors in ahead.items():
        seen, waiting = set(successors), list(successors)
        while waiting:
            new = ahead.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        found |= {(start, end) for end in seen}
    return found


def wave(step: int, height: int) -> int:
    """A number that goes up and down between 0 and a height, so that what was deleted comes again."""
    return height - abs(step % (2 * height) - height)
