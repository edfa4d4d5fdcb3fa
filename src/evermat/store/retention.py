"""How many versions a state keeps: a number, or an age."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from evermat.core import ArgumentError, Problem, integer_argument
from evermat.core import error_catalogue as errors

_KEPT = re.compile(r"(\d{1,1000})([smhdw]?)")
_MOST = 10**15  # versions, or units of time: more than there will be
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MOST_SECONDS = 365_000 * 86_400


@dataclass(frozen=True, slots=True)
class Keep:
    """A number of versions, or the age that a version may have after the next one replaced it; the newest always stays."""

    text: str
    count: int | None = None
    age: timedelta | None = None

    @staticmethod
    def of(keep: int | str) -> Keep:
        """Reads `1000`, `30d` or `12h`.

        Raises:
            ArgumentError: it is neither a number from 1 on nor an age.
            TypeError: it is neither an integer nor a text.
        """
        if not isinstance(keep, str):
            keep = integer_argument("keep", keep, "a number of versions, or an age such as '30d'")
        text = str(keep).strip()
        found = _KEPT.fullmatch(text) if text.isascii() else None
        if found is None or not found.group(1).strip("0"):
            raise ArgumentError(Problem(errors.BAD_KEEP, {"text": keep}))
        number, unit = min(int(found.group(1)), _MOST), found.group(2)
        if not unit:
            return Keep(str(number), count=number)
        return Keep(f"{number}{unit}", age=timedelta(seconds=min(number * _SECONDS[unit], _MOST_SECONDS)))

    def oldest(self, times: Sequence[tuple[int, datetime]], now: datetime) -> int:
        """The oldest version to keep, given the versions and their times, ascending; at least one.

        A version is kept while the one after it is younger than the age. The first version that is kept keeps all later
        ones, so a clock that was set back keeps too many, never too few.
        """
        if self.count is not None:
            return max(times[0][0], times[-1][0] - self.count + 1)
        assert self.age is not None
        for (version, _), (_, until) in pairwise(times):
            if until >= now - self.age:
                return version
        return times[-1][0]


DEFAULT = Keep.of(1000)
