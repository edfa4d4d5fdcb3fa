"""The record of a run: which versions an answer may be of, and which versions were seen.

Parts count their steps before and after they carry them out. An answer is of a version that has all steps that were done when it began, and
none that had not begun when it ended; nobody sees an earlier version than what was seen before. All versions that were seen for certain have an
order: there is one history.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, product
from operator import le
from typing import Any

from tests.threads.workload import PARTS, START, Facts, Version, Workload

_SHOWN = 6  # rows of a difference
_MANY = 3000  # versions that an answer is compared with


class Mismatch(AssertionError):
    """An answer is of no version that it may be of."""


class Floor:
    """The version that readers of one kind have reached: none of them may see an earlier one from then on."""

    def __init__(self) -> None:
        self.version: Version = START


def latest(*versions: Version) -> Version:
    """The steps of all of some versions."""
    first, second, third = map(max, zip(*versions, strict=True))
    return first, second, third


def earliest(versions: Iterable[Version]) -> Version:
    """The steps that all of some versions have in common."""
    first, second, third = map(min, zip(*versions, strict=True))
    return first, second, third


class Ledger:
    """What has begun, what is done, and what was seen.

    Attributes:
        memory: what readers of the materialisation have reached.
        disk: what readers of its state directory have reached; it may be ahead.
        base: the number of the first version in the state directory; None without one.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.begun, self.done = [0] * len(PARTS), [0] * len(PARTS)
        self.memory, self.disk = Floor(), Floor()
        self.base: int | None = None
        self._seen: dict[int, Version] = {0: START}
        self._lock = threading.Lock()

    def all_done(self) -> Version:
        first, second, third = self.done
        return first, second, third

    def all_begun(self) -> Version:
        first, second, third = self.begun
        return first, second, third

    def raise_floor(self, floor: Floor, version: Version) -> None:
        """From now on nobody may see an earlier version; what is in memory is on the disk."""
        with self._lock:
            floor.version = latest(floor.version, version)
            self.disk.version = latest(self.disk.version, self.memory.version)

    def saw(self, version: Version) -> None:
        """Records a version that was seen for certain.

        Raises:
            Mismatch: it has no place in the history.
        """
        with self._lock:
            other = self._seen.setdefault(sum(version), version)
        if other != version:
            raise Mismatch(f"two histories: one with the version {version}, one with {other}")

    def check_history(self) -> int:
        """Raises `Mismatch` unless the versions that were seen follow one another; returns how many there are."""
        seen = [version for _, version in sorted(self._seen.items())]
        for one, other in pairwise(seen):
            if not all(map(le, one, other)):
                raise Mismatch(f"two histories: one with the version {one}, one with {other}")
        return len(seen)


class Window:
    """The time in which a version was chosen for an answer: the versions that it may be.

    It begins when it is made and ends with the first call of `end`. `exact` is the version if it is known.
    """

    def __init__(self, ledger: Ledger, floor: Floor, exact: Version | None = None) -> None:
        self._ledger, self._floor, self._exact = ledger, floor, exact
        self.low = exact or latest(floor.version, ledger.all_done())
        self._high: Version | None = exact

    def end(self) -> None:
        """No later version may be seen."""
        if self._high is None:
            self._high = self._ledger.all_begun()

    @property
    def high(self) -> Version:
        self.end()
        assert self._high is not None
        return self._high

    def versions(self) -> Iterator[Version]:
        """The versions that an answer may be of."""
        yield from product(*(range(low, high + 1) for low, high in zip(self.low, self.high, strict=True)))  # type: ignore[misc]

    def claim(self, what: str, actual: Any, expected: Callable[[Facts], Any]) -> None:
        """Finds the version that an answer is of.

        Raises:
            Mismatch: there is none.
        """
        self.claim_version(what, actual, lambda version: expected(self._ledger.workload.facts(version)))

    def claim_version(self, what: str, actual: Any, expected: Callable[[Version], Any]) -> None:
        """The same for an answer that depends on more than facts."""
        found = []
        for number, version in enumerate(self.versions()):
            if actual == expected(version):
                found.append(version)
            elif number > _MANY:
                break
        if not found:
            raise Mismatch(self._report(what, actual, expected))
        if self._exact is None:
            self._ledger.raise_floor(self._floor, earliest(found))
            if len(found) == 1:
                self._ledger.saw(found[0])

    def _report(self, what: str, actual: Any, expected: Callable[[Version], Any]) -> str:
        where = f"version {self._exact}" if self._exact else f"any version from {self.low} to {self.high}"
        lines = [f"{what} is not that of {where}"]
        lines += [
            f"  {version}: {_difference(actual, expected(version))}" for version in dict.fromkeys((self.low, self.high))
        ]
        return "\n".join(lines)


def _difference(actual: Any, expected: Any) -> str:
    if not isinstance(actual, set | frozenset) or not isinstance(expected, set | frozenset):
        return f"found {actual!r:.300}, expected {expected!r:.300}"
    extra, missing = actual - expected, expected - actual
    some = [
        f"{len(rows)} {what} {sorted(rows)[:_SHOWN]}"
        for what, rows in (("too many", extra), ("missing", missing))
        if rows
    ]
    return ", ".join(some) or "the same rows"


def as_set(rows: Iterable[Any]) -> set[Any]:
    """Rows as a set.

    Raises:
        Mismatch: a row comes twice.
    """
    listed = list(rows)
    found = set(listed)
    if len(found) != len(listed):
        raise Mismatch(f"rows come twice: {sorted(row for row in found if listed.count(row) > 1)[:_SHOWN]}")
    return found
